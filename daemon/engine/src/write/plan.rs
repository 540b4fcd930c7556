//! From a change to a transaction: resolves references, decides versions, writes nothing.
//!
//! Plans of one group are made one after the other against the catalog and the plans before them,
//! so that a record may refer to an entity that is still on its way to the disk.

mod correct;
mod forget;
mod import;
mod inherit;
mod rebase;
mod remember;
mod revise;
mod sweep;
mod version;

pub(crate) use self::inherit::{inherit_access, set_tier};
pub(crate) use self::sweep::need_of;

use std::collections::{HashMap, HashSet};

use omir_core::cbor;
use omir_core::event::EventKind;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::reference::{Ref, ResourceType};
use omir_core::tier::Tier;
use omird_store::{Handle, Op, ReadError, ReadGuard, RecordedOrigin, RefKey, RwLock};

use self::inherit::{bare, tier_of};
use self::revise::Revision;
use self::version::check_version;
use crate::disk;
use crate::error::{Code, Error};
use crate::index::block::DeletionOrigin;
use crate::index::catalog::{Catalog, Head};
use crate::index::doc::DocId;
use crate::index::facts::{DecayState, Facts};
use crate::index::text::DocTerms;
use crate::ingest::request::Prepared;
use crate::write::command::{Cause, Change, Effect, Event};

/// One step on the catalog.
#[derive(Debug)]
pub(crate) enum Step {
    /// Add a version.
    Put {
        /// Its number.
        version: u64,
        /// Length of its bytes.
        len: u32,
        /// CRC-32 (IEEE) of its bytes.
        crc: u32,
        /// The facts for the index.
        facts: Box<Facts>,
        /// Its words.
        terms: DocTerms,
        /// Words of the live version it replaces.
        superseded: Option<DocTerms>,
    },
    /// Add a tombstone.
    Forget {
        /// The version that it takes.
        version: u64,
        /// Of what.
        key: RefKey,
        /// The originator of the deletion.
        by: DeletionOrigin,
        /// Words of the live version.
        terms: Option<DocTerms>,
    },
}

impl Step {
    /// The version that it adds.
    pub(crate) fn version(&self) -> u64 {
        match self {
            Self::Put { version, .. } | Self::Forget { version, .. } => *version,
        }
    }
}

/// An operation for the log, and the same step for the catalog.
#[derive(Debug)]
pub(crate) struct PlannedStep {
    /// For the log.
    pub op: Op,
    /// For the catalog.
    pub step: Step,
}

/// A change, worked out.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The steps. Empty if the change changes nothing.
    pub steps: Vec<PlannedStep>,
    /// The answer.
    pub effect: Effect,
    /// The announcements.
    pub events: Vec<Event>,
}

impl Plan {
    /// A plan that has nothing to write yet.
    fn to(effect: Effect) -> Self {
        Self { steps: Vec::new(), effect, events: Vec::new() }
    }

    /// Adds the tombstone of a live version.
    fn write_tombstone(
        &mut self,
        target: Ref,
        version: u64,
        terms: Option<DocTerms>,
        who: RecordedOrigin,
        cause: Option<Cause>,
    ) {
        let key = RefKey::of(&target);
        let by = match who {
            RecordedOrigin::User => DeletionOrigin::User,
            RecordedOrigin::Rule => DeletionOrigin::Rule,
            RecordedOrigin::Merging(at) => match self.steps.get(at) {
                Some(PlannedStep { step: Step::Put { facts, .. }, .. }) => {
                    DeletionOrigin::Merging(facts.key)
                }
                _ => DeletionOrigin::User,
            },
        };
        let version = version.saturating_add(1);
        self.steps.push(PlannedStep {
            op: Op::Forget { target: target.clone(), version, who },
            step: Step::Forget { version, key, by, terms },
        });
        let kind = EventKind::Forgotten;
        self.events.push(Event { kind, target, resource: Vec::new(), cause, seq: 0 });
    }
}

/// The reason why there is no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// The change is refused.
    Refused(Error),
    /// The change depends on one that is planned and not committed yet: plan it again afterwards.
    Later,
}

impl From<Error> for NoPlan {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Plans the changes of one group.
pub(crate) struct Planner<'a> {
    catalog: &'a RwLock<Catalog>,
    /// State of a reference after the earlier plans of this group: live or not.
    pending: HashMap<RefKey, bool>,
    max_resource_bytes: usize,
    now: Timestamp,
}

impl<'a> Planner<'a> {
    /// A planner for a new group, whose changes are made at `now`.
    pub(crate) fn new(
        catalog: &'a RwLock<Catalog>,
        max_resource_bytes: usize,
        now: Timestamp,
    ) -> Self {
        Self { catalog, pending: HashMap::new(), max_resource_bytes, now }
    }

    fn catalog(&self) -> ReadGuard<'a, Catalog> {
        self.catalog.read()
    }

    /// Works out a change. A refused change leaves no trace in the planner.
    pub(crate) fn plan(&mut self, change: &mut Change) -> Result<Plan, NoPlan> {
        match change {
            Change::Remember(prepared) => {
                if prepared.iter().any(|p| self.pending.contains_key(&p.facts.key)) {
                    return Err(NoPlan::Later);
                }
                for item in prepared.iter() {
                    check_version(&item.resource, &item.pointer)?;
                    let target = item.resource.reference();
                    item.precondition.check(&self.catalog(), &target, &item.pointer)?;
                }
                self.check_references(prepared)?;
                self.remember(std::mem::take(prepared))
            }
            Change::Correct(keys, spans) => self.correct(keys, spans),
            Change::Merge(prepared, precedence, _) => self.merge(prepared, *precedence),
            Change::Forget(targets) => self.forget(targets, u64::MAX),
            Change::ForgetUpTo(targets, seq) => self.forget(targets, *seq),
            Change::Anchor(target, anchored) => {
                let (target, anchored) = (target.clone(), *anchored);
                self.revise(&target, Revision::Anchor(anchored))
            }
            Change::Feedback(target, outcome, weight) => {
                let (target, outcome, weight) = (target.clone(), *outcome, *weight);
                self.revise(&target, Revision::Feedback(outcome, weight))
            }
            Change::Rebase(request) => self.rebase(request),
            Change::Sweep(acts) => self.sweep(acts),
        }
    }

    /// Reads a stored version without its references to what was forgotten since. They are gone:
    /// sealing may have dropped them already or do it any moment.
    fn read(&self, id: DocId, handle: &Handle) -> Result<Resource, Error> {
        let mut resource = handle.resource().map_err(internal)?;
        let catalog = self.catalog();
        if let Some(missing) = catalog.missing(id) {
            let message =
                format!("version {}, the newest, is lost; remember it again", missing.version);
            return Err(internal(message));
        }
        if catalog.has_tombstones() {
            resource.retain_references(|target| catalog.stands(id, &RefKey::of(target)));
        }
        Ok(resource)
    }

    /// Returns true if a resource says what the stored one says: as it was stored, or as clients got it at
    /// any time since. A tier that the record was in on its way to where it is by now is no
    /// difference: who sends back what it got some time ago has not moved it.
    fn is_as_stored(&self, resource: &Resource, id: DocId, old: &Old, shown: &[u8]) -> bool {
        let (before, state) = old;
        let in_tier = |tier: Option<Tier>| {
            let mut resource = resource.clone();
            if let Resource::MemoryRecord(record) = &mut resource {
                record.tier = tier;
            }
            bare(resource)
        };
        match self.moved_on(resource, id, state) {
            Some(moved) => {
                in_tier(Some(moved)) == shown || in_tier(tier_of(before)) == bare(before.clone())
            }
            None => {
                let bytes = bare(resource.clone());
                bytes == shown || bytes == bare(before.clone())
            }
        }
    }

    /// The tier a stored record is in by now, if it is another than the stored one and `resource`
    /// states one that it was in on its way there.
    fn moved_on(&self, resource: &Resource, id: DocId, state: &State) -> Option<Tier> {
        let catalog = self.catalog();
        let (moved, access, stated) = (state.moved?, state.access?, tier_of(resource)?);
        let now = self.now.as_micros();
        catalog.fading()?.passes(catalog.doc(id), &access, now, stated).then_some(moved)
    }

    fn check_references(&self, prepared: &[Prepared]) -> Result<(), Error> {
        let within = names(prepared);
        prepared.iter().try_for_each(|item| self.check_references_of(item, &within))
    }

    /// Returns true if something is live once the plans before this one are carried out.
    fn will_live(&self, catalog: &Catalog, key: &RefKey) -> bool {
        let live = || catalog.live(key).is_some();
        self.pending.get(key).copied().unwrap_or_else(live)
    }

    /// Checks that what `item` refers to is `within` the request or in the store.
    fn check_references_of(&self, item: &Prepared, within: &HashSet<RefKey>) -> Result<(), Error> {
        let catalog = self.catalog();
        let mut fault = None;
        item.resource.for_each_reference(|pointer, _, target| {
            if fault.is_some() {
                return;
            }
            let at = format!("{}{pointer}", item.pointer);
            let expected = expected_type(pointer);
            if target.kind != expected {
                let message = format!("{target} is no {expected}, which this must refer to");
                fault = Some(Error::at(Code::InvalidResource, at, message));
                return;
            }
            let key = RefKey::of(target);
            if !within.contains(&key) && !self.will_live(&catalog, &key) {
                let message = format!(
                    "{target} is neither in this request nor in the store; remember it first or \
                     send both together"
                );
                fault = Some(Error::at(Code::InvalidResource, at, message));
            }
        });
        fault.map_or(Ok(()), Err)
    }

    /// Returns true if the newest version of a reference can be read, if it has one.
    ///
    /// # Errors
    /// `INTERNAL` if that cannot be told: the card is away for now.
    fn whole(&self, key: &RefKey) -> Result<bool, Error> {
        let (handle, is_missing) = {
            let catalog = self.catalog();
            let Some(id) = catalog.live(key) else { return Ok(catalog.losses.of(key).is_none()) };
            (catalog.handle(id), catalog.missing(id).is_some())
        };
        if is_missing {
            return Ok(false);
        }
        match handle.bytes() {
            Ok(_) => Ok(true),
            Err(ReadError::Disk { error, .. })
                if !disk::is_loss(&error) || disk::is_gone(&error) =>
            {
                Err(internal(error))
            }
            Err(_) => Ok(false),
        }
    }

    /// The newest version of a reference, and what it is of if it is live.
    fn stored(&self, key: &RefKey) -> Result<(Option<Head>, Option<Old>), Error> {
        let (head, old) = {
            let catalog = self.catalog();
            let head = catalog.head(key);
            let old = head.filter(|head| head.live).map(|head| {
                let state = State::of(&catalog, head.doc, self.now);
                (head.doc, catalog.handle(head.doc), state)
            });
            (head, old)
        };
        let old = match old {
            Some((id, handle, access)) => Some((self.read(id, &handle)?, access)),
            None => None,
        };
        Ok((head, old))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one version")]
    fn push(
        &self,
        plan: &mut Plan,
        resource: Resource,
        facts: Facts,
        terms: DocTerms,
        superseded: Option<DocTerms>,
        version: u64,
        event: EventKind,
    ) -> Result<(), Error> {
        let target = resource.reference();
        let bytes = cbor::to_vec(&resource.to_value());
        if bytes.len() > self.max_resource_bytes {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "{target} is {} bytes; limits.max_resource_bytes is {}",
                    bytes.len(),
                    self.max_resource_bytes
                ),
            ));
        }
        let (kind, resource) = (event, bytes.clone());
        plan.events.push(Event { kind, target, resource, cause: None, seq: 0 });
        let step = Step::Put {
            version,
            len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            crc: crc32fast::hash(&bytes),
            facts: Box::new(facts),
            terms,
            superseded,
        };
        plan.steps.push(PlannedStep { op: Op::Put { version, resource: bytes }, step });
        Ok(())
    }
}

/// A live version and what time and use have made of it.
type Old = (Resource, State);

/// A version as time and use have changed it since it was stored.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Its access state; `None` for what does not fade.
    access: Option<DecayState>,
    /// Its tier, where it is another than the stored one.
    moved: Option<Tier>,
}

impl State {
    fn of(catalog: &Catalog, id: DocId, now: Timestamp) -> Self {
        let moved = catalog.moved(id, false, now.as_micros());
        Self { access: catalog.decay_state(id), moved }
    }
}

fn names(prepared: &[Prepared]) -> HashSet<RefKey> {
    prepared.iter().map(|item| item.facts.key).collect()
}

fn internal(fault: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("a stored resource cannot be read: {fault}"))
}

/// The type that a reference at this place must name (spec: "Reference constraint").
fn expected_type(pointer: &str) -> ResourceType {
    if pointer.starts_with("/sourceEpisode") {
        ResourceType::Episode
    } else if pointer.starts_with("/parentId") {
        ResourceType::MemoryRecord
    } else {
        ResourceType::Entity
    }
}
