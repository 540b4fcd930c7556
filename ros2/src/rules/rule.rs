//! One rule at work: a message and the transforms in, outcomes out.
//!
//! First each element of a message is drawn out, and placed if it will be stored or its place decides
//! about that; then all are judged. So a message that must wait for a transform has changed nothing.

use std::sync::Arc;

use omir_core::reference::ResourceType;

use super::Arrival;
use super::bind::Bound;
use super::config::TopicRule;
use super::keep::{Spot, Watch};
use super::look::{Looker, elements};
use super::outcome::{Outcome, Reason, Untold, Wait};
use super::placing::Setup;
use super::resource::record_id;
use super::written::ConfigError;
use crate::interface::MessageType;
use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// A rule, and what it has seen.
#[derive(Debug)]
pub struct Rule {
    /// The rule.
    pub written: TopicRule,
    /// One for each type of that name; a type that changed takes the place of the one before.
    bindings: Vec<Binding>,
}

#[derive(Debug)]
struct Binding {
    ty: Arc<MessageType>,
    state: Result<State, ConfigError>,
}

#[derive(Debug)]
struct State {
    bound: Bound,
    watch: Watch,
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
        let state = state_for(&self.written, &mut self.bindings, ty, setup);
        state.map(|_| ()).map_err(ConfigError::clone)
    }

    /// What becomes of a message. If it `may_wait`, either all of it is decided or nothing.
    pub fn observe(
        &mut self,
        arrival: &Arrival<'_>,
        message: &Message,
        tf: &Buffer,
        setup: &Setup,
        may_wait: bool,
    ) -> Vec<Outcome> {
        let state = state_for(&self.written, &mut self.bindings, message.ty(), setup);
        let Ok(State { bound, watch }) = state else {
            return vec![Outcome::Dropped(Reason::WrongType)];
        };
        watch.at(arrival.received);
        let looker = Looker { bound, tf, setup, arrival, message };
        let mut candidates = Vec::new();
        for (index, element) in elements(bound, message).into_iter().enumerate() {
            let mut candidate = looker.candidate(element, index);
            if let Ok(candidate) = &mut candidate
                && looker.is_to_be_placed(watch, &candidate.sight)
            {
                match looker.place(candidate) {
                    Err((expected, reason)) if may_wait => {
                        return vec![Outcome::Wait(Wait { rule: 0, expected, reason })];
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            candidates.push(candidate);
        }
        let mut encoded = None;
        let mut decide = |candidate| {
            let name = &self.written.name;
            looker.decide(candidate, watch, |element, event| {
                let bytes = encoded.get_or_insert_with(|| message.encode());
                record_id(name, arrival.topic, event, element, bytes)
            })
        };
        let outcomes = candidates.into_iter();
        outcomes.map(|candidate| candidate.map_or_else(Outcome::Dropped, &mut decide)).collect()
    }

    /// How often things were seen since their memories were written; see
    /// [`Rules::untold`](super::Rules::untold).
    pub fn untold(&mut self, now: Stamp, all: bool) -> Vec<Untold> {
        let states = self.bindings.iter_mut().filter_map(|binding| binding.state.as_mut().ok());
        let untold = states.flat_map(|State { bound, watch }| {
            let kind = bound.make.resource_type();
            watch.untold(now, all).into_iter().map(move |thing| Untold {
                reference: format!("{kind}/{}", thing.memo.id),
                seen: thing.untold,
                last: thing.last,
            })
        });
        untold.collect()
    }

    /// Whether it knows a thing that has this memory.
    pub fn has_memory(&self, kind: ResourceType, id: &str) -> bool {
        let states = self.bindings.iter().filter_map(|binding| binding.state.as_ref().ok());
        let mut of_kind = states.filter(|state| state.bound.make.resource_type() == kind);
        of_kind.any(|state| state.watch.has_memory(id))
    }

    /// Moves the things of a memory that lies there by now.
    pub fn map_moved(&mut self, kind: ResourceType, id: &str, to: &Spot) {
        let states = self.bindings.iter_mut().filter_map(|binding| binding.state.as_mut().ok());
        let of_kind = states.filter(|state| state.bound.make.resource_type() == kind);
        of_kind.for_each(|state| state.watch.map_moved(id, to));
    }

    /// How many things it knows again.
    pub fn things(&self) -> usize {
        let states = self.bindings.iter().filter_map(|binding| binding.state.as_ref().ok());
        states.map(|state| state.watch.len()).sum()
    }

    /// Why messages are dropped, for each type that does not fit.
    pub fn misfits(&self) -> impl Iterator<Item = &ConfigError> {
        self.bindings.iter().filter_map(|binding| binding.state.as_ref().err())
    }
}

fn state_for<'a>(
    written: &TopicRule,
    bindings: &'a mut Vec<Binding>,
    ty: &Arc<MessageType>,
    setup: &Setup,
) -> Result<&'a mut State, &'a ConfigError> {
    let known = bindings.iter().position(|binding| binding.ty.name == ty.name);
    let at = match known {
        Some(at) if Arc::ptr_eq(&bindings[at].ty, ty) || *bindings[at].ty == **ty => at,
        _ => {
            let state = Bound::new(written, ty).map(|bound| State {
                watch: Watch::new(bound.policy.clone(), setup.things),
                bound,
            });
            let binding = Binding { ty: ty.clone(), state };
            match known {
                Some(at) => {
                    bindings[at] = binding;
                    at
                }
                None => {
                    bindings.push(binding);
                    bindings.len() - 1
                }
            }
        }
    };
    match &mut bindings[at].state {
        Ok(state) => Ok(state),
        Err(error) => Err(error),
    }
}
