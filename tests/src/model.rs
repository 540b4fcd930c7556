//! A model of a store's contents: a map.
//!
//! The model shares no code with the store but the typed resources and the arithmetic of belief.
//! It says of every request how it must be answered and what it leaves behind.
//!
//! Its versions only rise, also over what was forgotten: invariant 7 of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};

use omir_core::confidence::{Beta, FeedbackOutcome, Weight};
use omir_core::model::{Confidence, MemoryRecord, Resource};
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omird::engine::{Code, Effect, Error, Receipt};

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Store these, all or none.
    Remember(Vec<Resource>),
    /// Forget this and what cannot exist without it.
    Forget(Ref),
    /// Pin a record, or let it go.
    Anchor(Ref, bool),
    /// Evidence for or against a record.
    Feedback(Ref, FeedbackOutcome),
}

/// One reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Its version, or that of its tombstone.
    pub version: u64,
    /// Its contents, or nothing if it was forgotten.
    pub resource: Option<Resource>,
    /// Number of times it was forgotten.
    pub lives: u64,
    /// Number of versions since it was last forgotten.
    pub held: u64,
    /// Memories forgotten since it was stored. References to such things are gone, also where
    /// something new has the name; sealing drops those to what is not there at that time.
    pub loose: BTreeSet<Ref>,
}

/// The answer that a request must get.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Reference, version and whether it was there already, the same.
    Stored(Vec<(Ref, u64, bool)>),
    /// So many were forgotten.
    Forgotten(u64),
    /// Refused.
    Refused(Code),
}

/// The expected contents of a store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    /// Everything that was ever stored.
    pub memories: BTreeMap<Ref, Memory>,
    /// Number of versions ever stored.
    pub versions: u64,
    /// Number of those that a tombstone ended.
    pub tombstones: u64,
    /// Number of those that a tombstone followed, at once or later.
    pub forgotten_versions: u64,
}

impl Answer {
    /// The engine's answer, in the same words.
    pub fn of(result: &Result<Receipt, Error>) -> Self {
        match result {
            Err(error) => Self::Refused(error.code),
            Ok(receipt) => match &receipt.effect {
                Effect::Remembered(stored) => Self::Stored(
                    stored.iter().map(|s| (s.target.clone(), s.version, s.unchanged)).collect(),
                ),
                Effect::Forgotten(count) => Self::Forgotten(*count),
                Effect::Swept(_) | Effect::Rebased { .. } => {
                    unreachable!("no life sweeps or moves by a request")
                }
                Effect::Anchored(s, _) | Effect::Believed(s, _) => {
                    Self::Stored(vec![(s.target.clone(), s.version, s.unchanged)])
                }
            },
        }
    }
}

impl Model {
    /// The live resources.
    pub fn live(&self) -> impl Iterator<Item = (&Ref, &Memory, &Resource)> {
        self.memories
            .iter()
            .filter_map(|(target, memory)| Some((target, memory, memory.resource.as_ref()?)))
    }

    /// Returns true if something is live.
    pub fn is_live(&self, target: &Ref) -> bool {
        self.memories.get(target).is_some_and(|memory| memory.resource.is_some())
    }

    /// Carries out a request and says how it must be answered. What is refused changes nothing.
    pub fn apply(&mut self, request: &Request) -> Answer {
        match request {
            Request::Remember(resources) => self.remember(resources),
            Request::Forget(target) => Answer::Forgotten(self.forget(target)),
            Request::Anchor(target, anchored) => self.revise(target, |record| {
                let decay = record.decay.get_or_insert_default();
                let changes = decay.anchored.unwrap_or(false) != *anchored;
                if changes {
                    decay.anchored = Some(*anchored);
                }
                changes
            }),
            Request::Feedback(target, outcome) => self.revise(target, |record| {
                let confidence = record.confidence.get_or_insert_default();
                let belief = belief(confidence).after(*outcome, Weight::ONE);
                confidence.alpha = Number::from_f64(belief.alpha());
                confidence.beta = Number::from_f64(belief.beta());
                confidence.calibrated = Number::from_f64(belief.damped());
                true
            }),
        }
    }

    fn remember(&mut self, resources: &[Resource]) -> Answer {
        for resource in resources {
            let mut dangles = false;
            resource.for_each_reference(|_, _, target| {
                let here = resources.iter().any(|other| other.reference() == *target);
                dangles |= !here && !self.is_live(target);
            });
            if dangles {
                return Answer::Refused(Code::InvalidResource);
            }
            let current = self.memories.get(&resource.reference());
            if current.is_some_and(|m| m.resource.is_some() && stated(resource) < Some(m.version))
                && stated(resource).is_some()
            {
                return Answer::Refused(Code::Conflict);
            }
        }
        let stored = resources.iter().map(|resource| self.store(resource.clone())).collect();
        Answer::Stored(stored)
    }

    fn store(&mut self, mut resource: Resource) -> (Ref, u64, bool) {
        let target = resource.reference();
        let mut version = stated(&resource).unwrap_or(1);
        if let Some(current) = self.memories.get(&target) {
            version = version.max(current.version + 1);
            if let Some(before) = &current.resource {
                if let (Resource::MemoryRecord(new), Resource::MemoryRecord(old)) =
                    (&mut resource, before)
                    && new.decay.is_none()
                {
                    new.decay = old.decay.clone();
                }
                let mut same = resource.clone();
                stamp(&mut same, current.version);
                let mut before = without_decay(before);
                before.retain_references(|target| !current.loose.contains(target));
                if without_decay(&same) == before {
                    return (target, current.version, true);
                }
            }
            stamp(&mut resource, version);
        }
        let (lives, held) = self.memories.get(&target).map_or((0, 0), |m| (m.lives, m.held));
        let (resource, held, loose) = (Some(resource), held + 1, BTreeSet::new());
        let memory = Memory { version, resource, lives, held, loose };
        self.memories.insert(target.clone(), memory);
        self.versions += 1;
        (target, version, false)
    }

    fn forget(&mut self, target: &Ref) -> u64 {
        if !self.is_live(target) {
            return 0;
        }
        let mut dependents = Vec::new();
        for (other, memory) in &mut self.memories {
            let Some(resource) = &memory.resource else { continue };
            resource.for_each_reference(|_, required, mentioned| {
                if mentioned == target {
                    if required {
                        dependents.push(other.clone());
                    }
                    memory.loose.insert(target.clone());
                }
            });
        }
        if let Some(memory) = self.memories.get_mut(target) {
            memory.version += 1;
            memory.resource = None;
            memory.lives += 1;
            self.forgotten_versions += std::mem::take(&mut memory.held);
            memory.loose.clear();
        }
        self.tombstones += 1;
        1 + dependents.iter().map(|dependent| self.forget(dependent)).sum::<u64>()
    }

    fn revise(&mut self, target: &Ref, f: impl FnOnce(&mut MemoryRecord) -> bool) -> Answer {
        let memory = self.memories.get_mut(target);
        let found = memory.and_then(|memory| {
            Some((&mut memory.version, &mut memory.held, memory.resource.as_mut()?))
        });
        let Some((version, held, Resource::MemoryRecord(record))) = found else {
            return Answer::Refused(Code::NotFound);
        };
        let mut revised = record.clone();
        if !f(&mut revised) {
            return Answer::Stored(vec![(target.clone(), *version, true)]);
        }
        *version += 1;
        *held += 1;
        revised.version = Some(Number::from(*version));
        *record = revised;
        let version = *version;
        self.versions += 1;
        Answer::Stored(vec![(target.clone(), version, false)])
    }

    /// Counts the live resources of a type.
    pub fn count(&self, of: ResourceType) -> u64 {
        self.live().filter(|(target, ..)| target.kind == of).count() as u64
    }
}

fn belief(confidence: &Confidence) -> Beta {
    let number = |n: &Option<Number>| n.as_ref().map(Number::as_f64);
    match (number(&confidence.alpha), number(&confidence.beta)) {
        (Some(alpha), Some(beta)) => Beta::new(alpha, beta).unwrap_or(Beta::PRIOR),
        _ => Beta::PRIOR,
    }
}

fn stated(resource: &Resource) -> Option<u64> {
    match resource {
        Resource::MemoryRecord(record) => record.version.as_ref()?.as_u64(),
        _ => None,
    }
}

fn stamp(resource: &mut Resource, version: u64) {
    if let Resource::MemoryRecord(record) = resource
        && stated_or_first(record) != version
    {
        record.version = Some(Number::from(version));
    }
}

fn stated_or_first(record: &MemoryRecord) -> u64 {
    record.version.as_ref().and_then(Number::as_u64).unwrap_or(1)
}

/// A resource without what recalls and time change: that is no acknowledged memory.
pub fn without_decay(resource: &Resource) -> Resource {
    let mut resource = resource.clone();
    if let Resource::MemoryRecord(record) = &mut resource {
        if let Some(decay) = &mut record.decay {
            decay.half_life_hours = None;
            decay.last_access = None;
            decay.access_count = None;
        }
        record.decay = record.decay.take().filter(|decay| decay.anchored.is_some());
        record.tier = None;
    }
    resource
}

/// A resource as it can be compared after a restart: without what time changes, and without references that sealing
/// may or may not have dropped.
pub fn comparable(resource: &Resource, loose: &BTreeSet<Ref>) -> Resource {
    let mut resource = without_decay(resource);
    resource.retain_references(|target| !loose.contains(target));
    resource
}
