//! One rule at work: a message and the transforms in, decisions out.
//!
//! First each element of a message is drawn out, and placed if it will be stored or its place decides
//! about that; then all are judged. So a message that must wait for a transform has changed nothing.

use std::sync::Arc;

use omir_core::reference::ResourceType;
use sha2::{Digest, Sha256};

use super::Arrival;
use super::bind::Bound;
use super::config::TopicRule;
use super::decision::{Decision, Reason, UnreportedSightings, Wait};
use super::frame_position::FramePosition;
use super::look::{RuleEvaluation, elements};
use super::placing::Setup;
use super::resource::record_id;
use super::sighting_tracker::SightingTracker;
use super::written::ConfigError;
use crate::interface::MessageType;
use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// Definitions of one name that are kept ready; while a fleet is updated there may be two at once.
const MOST_VERSIONS: usize = 4;
/// Names of types that a rule is kept ready for: it is for a topic, and a publisher there may say any name.
const MOST_NAMES: usize = 16;

/// Elements of one message that are looked at: each may become a memory, and everything else waits meanwhile.
pub(super) const MOST_ELEMENTS: usize = 1000;

/// A rule, and what it has seen.
#[derive(Debug)]
pub struct Rule {
    /// The rule.
    pub written: TopicRule,
    /// One for each name of a type, the one that was used last at the end.
    bindings: Vec<Binding>,
}

/// A rule bound to messages whose type has one name.
#[derive(Debug)]
struct Binding {
    /// The definitions of that name, the newest last; none is the same as another.
    versions: Vec<Version>,
    /// Sightings, whatever the definition: a thing is the same after its message has changed. There is
    /// none before a definition fits.
    tracker: Option<SightingTracker>,
}

impl Binding {
    /// Returns true if resources of a type come of it; which, the rule says, whatever the definition.
    fn makes(&self, kind: ResourceType) -> bool {
        let mut bound = self.versions.iter().filter_map(|version| version.bound.as_ref().ok());
        bound.any(|bound| bound.make.resource_type() == kind)
    }
}

#[derive(Debug)]
struct Version {
    ty: Arc<MessageType>,
    bound: Result<Bound, ConfigError>,
}

impl Rule {
    /// A rule that has seen nothing.
    pub fn new(written: TopicRule) -> Self {
        Self { written, bindings: Vec::new() }
    }

    /// Makes it ready for messages of that type, if it is not.
    ///
    /// # Errors
    /// What does not fit.
    pub fn bind(&mut self, ty: &Arc<MessageType>, setup: &Setup) -> Result<(), ConfigError> {
        let ready = ready_for(&self.written, &mut self.bindings, ty, setup);
        ready.map(|_| ()).map_err(ConfigError::clone)
    }

    /// Decides about a message. If it `may_wait`, either all of it is decided or nothing.
    pub fn observe(
        &mut self,
        arrival: &Arrival<'_>,
        message: &Message,
        tf: &Buffer,
        setup: &Setup,
        may_wait: bool,
    ) -> Vec<Decision> {
        let ready = ready_for(&self.written, &mut self.bindings, message.ty(), setup);
        let Ok((bound, tracker)) = ready else {
            return vec![Decision::Dropped(Reason::WrongType)];
        };
        tracker.at(arrival.received);
        let looker = RuleEvaluation { bound, tf, setup, arrival, message };
        let mut candidates = Vec::new();
        let elements = elements(bound, message);
        let beyond = elements.len().saturating_sub(MOST_ELEMENTS) as u64;
        for (index, element) in elements.into_iter().take(MOST_ELEMENTS).enumerate() {
            let mut candidate = looker.candidate(element, index);
            if let Ok(candidate) = &mut candidate
                && looker.is_to_be_placed(tracker, &candidate.sight)
            {
                match looker.place(candidate) {
                    Err((expected, reason)) if may_wait => {
                        return vec![Decision::Wait(Wait { rule: 0, expected, reason })];
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            candidates.push(candidate);
        }
        // Once for all elements, and not at all where nothing is new.
        let mut digest = None;
        let mut decide = |candidate| {
            let name = &self.written.name;
            looker.decide(candidate, tracker, |element, event| {
                let digest = digest.get_or_insert_with(|| Sha256::digest(message.encode()).into());
                record_id(name, arrival.topic, event, element, digest)
            })
        };
        let decisions = candidates.into_iter();
        let decided = decisions.map(|one| one.map_or_else(Decision::Dropped, &mut decide));
        decided.chain((beyond > 0).then_some(Decision::Beyond(beyond))).collect()
    }

    /// Returns the sights of things since their memories were written; see
    /// [`Rules::untold`](super::Rules::untold).
    pub fn untold(&mut self, now: Stamp, all: bool) -> Vec<UnreportedSightings> {
        let mut untold = Vec::new();
        for Binding { versions, tracker } in &mut self.bindings {
            let make = versions.iter().find_map(|version| Some(version.bound.as_ref().ok()?.make));
            let (Some(make), Some(tracker)) = (make, tracker) else { continue };
            let kind = make.resource_type();
            untold.extend(tracker.untold(now, all).into_iter().map(|thing| UnreportedSightings {
                reference: format!("{kind}/{}", thing.memo.id),
                seen: thing.untold,
                last: thing.last,
                heard: thing.heard,
                late: thing.late,
            }));
        }
        untold
    }

    /// Returns true if it knows a thing that has this memory.
    pub fn has_memory(&self, kind: ResourceType, id: &str) -> bool {
        let of_kind = self.bindings.iter().filter(|binding| binding.makes(kind));
        of_kind.filter_map(|binding| binding.tracker.as_ref()).any(|tracker| tracker.has_memory(id))
    }

    /// Moves the things of a memory that lies there by now.
    pub fn map_moved(&mut self, kind: ResourceType, id: &str, to: &FramePosition) {
        let of_kind = self.bindings.iter_mut().filter(|binding| binding.makes(kind));
        let watches = of_kind.filter_map(|binding| binding.tracker.as_mut());
        watches.for_each(|tracker| tracker.map_moved(id, to));
    }

    /// Number of things that it recognises.
    pub fn things(&self) -> usize {
        self.bindings
            .iter()
            .filter_map(|binding| binding.tracker.as_ref())
            .map(SightingTracker::len)
            .sum()
    }

    /// Returns the misfit of each type that does not fit.
    pub fn misfits(&self) -> impl Iterator<Item = &ConfigError> {
        let versions = self.bindings.iter().flat_map(|binding| &binding.versions);
        versions.filter_map(|version| version.bound.as_ref().err())
    }
}

/// A rule bound to messages of that type, and its sightings of that name.
fn ready_for<'a>(
    written: &TopicRule,
    bindings: &'a mut Vec<Binding>,
    ty: &Arc<MessageType>,
    setup: &Setup,
) -> Result<(&'a Bound, &'a mut SightingTracker), &'a ConfigError> {
    let is_of = |binding: &Binding| binding.versions.iter().any(|known| known.ty.name == ty.name);
    let binding = match bindings.iter().position(is_of) {
        Some(at) => bindings.remove(at),
        None => {
            if bindings.len() >= MOST_NAMES {
                // One that does not fit has nothing to lose.
                let misfit = bindings.iter().position(|binding| binding.tracker.is_none());
                bindings.remove(misfit.unwrap_or(0));
            }
            Binding { versions: Vec::new(), tracker: None }
        }
    };
    let last = bindings.len();
    bindings.push(binding);
    let Binding { versions, tracker } = &mut bindings[last];
    let is_this = |known: &Version| Arc::ptr_eq(&known.ty, ty) || *known.ty == **ty;
    let at = versions.iter().position(is_this).unwrap_or_else(|| {
        if versions.len() >= MOST_VERSIONS {
            versions.remove(0);
        }
        versions.push(Version { ty: ty.clone(), bound: Bound::new(written, ty) });
        versions.len() - 1
    });
    match &versions[at].bound {
        Ok(bound) => {
            let new = || SightingTracker::new(bound.policy.clone(), setup.things);
            Ok((bound, tracker.get_or_insert_with(new)))
        }
        Err(error) => Err(error),
    }
}
