//! One operation being decided: what it sees, and what it changes.

use omir_core::value::Value;
use serde::Serialize;

use crate::envelope::Envelope;
use crate::failure::{
    AGENT_NOT_REGISTERED, Failure, INSUFFICIENT_AUTHORITY, SESSION_NOT_FOUND, UNIT_NOT_FOUND,
};
use crate::log::Delta;
use crate::machines::{UNITS, UnitCause, next};
use crate::model::{IndexedUnit, Model};
use crate::rights::{self, Act, Viewer};
use crate::store::StoreView;
use crate::types::{Agent, Unit};
use crate::words::SessionState;

/// What a caller may do, as far as the protocol goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallerRights {
    /// The authority of the credential.
    pub(crate) authority: u32,
    /// The name of the token; empty where there is none.
    pub(crate) holder: String,
    /// The name in audit lines.
    pub(crate) caller: String,
    /// The agents it speaks as; empty: the agent that the message names.
    pub(crate) agents: Vec<String>,
    /// It may read the robot's own memories.
    pub(crate) reads_robot: bool,
    /// The person at the machine.
    pub(crate) is_owner: bool,
}

impl CallerRights {
    /// Decides if the caller registered an agent, or may stand for it.
    pub(crate) fn may_be(&self, agent: &Agent) -> bool {
        self.is_owner || agent.holder == self.holder || self.agents.contains(&agent.id)
    }

    /// Returns the authority of the caller when it speaks as an agent, if that is registered.
    pub(crate) fn authority_as(&self, agent: Option<&Agent>) -> u32 {
        let declared = agent.and_then(|agent| agent.declared);
        declared.map_or(self.authority, |declared| declared.min(self.authority))
    }
}

/// An operation being decided.
pub(crate) struct OperationContext<'a> {
    pub(crate) model: &'a Model,
    pub(crate) contents: &'a StoreView<'a>,
    pub(crate) who: &'a CallerRights,
    /// The authority of the credential, or what the sender declared if that is less.
    pub(crate) authority: u32,
    pub(crate) envelope: &'a Envelope,
    pub(crate) epoch: u64,
    pub(crate) at: &'a str,
    /// Detection is put off: too much is waiting.
    pub(crate) is_busy: bool,
    pub(crate) deltas: Vec<Delta>,
    pub(crate) units: Vec<Unit>,
    pub(crate) description: String,
}

/// The answer of an operation.
pub(crate) type OperationResult = Result<(u16, Value), Failure>;

impl<'a> OperationContext<'a> {
    /// Returns the sender.
    pub(crate) fn agent_id(&self) -> &'a str {
        &self.envelope.agent_id
    }

    /// Checks that the sender is registered, and that the caller may speak as it.
    pub(crate) fn sender(&self) -> Result<&'a Agent, Failure> {
        let id = self.agent_id();
        let Some(agent) = self.model.agent(id) else {
            let message = format!("agent {id:?} is not registered");
            return Err(Failure::new(&AGENT_NOT_REGISTERED, message));
        };
        if !self.who.may_be(agent) {
            let message = format!("agent {id:?} was registered with another token");
            return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
        }
        Ok(agent)
    }

    /// Returns the sender as a viewer.
    pub(crate) fn viewer(&self) -> Viewer<'a> {
        let role = self.model.agent(self.agent_id()).map_or("", |agent| agent.role.as_str());
        Viewer {
            agent_id: self.agent_id(),
            role,
            authority: self.authority,
            active: self.envelope.session_id.as_deref(),
        }
    }

    /// Checks the authority for an act.
    pub(crate) fn may(&self, act: Act) -> Result<(), Failure> {
        rights::may(act, self.authority)
    }

    /// Checks that the sender has as much authority as the agents that recorded some units.
    pub(crate) fn outranks<'u>(
        &self,
        units: impl IntoIterator<Item = &'u IndexedUnit>,
    ) -> Result<(), Failure> {
        let most = units.into_iter().map(|indexed| indexed.authority).max().unwrap_or_default();
        if self.authority >= most {
            return Ok(());
        }
        let authority = self.authority;
        let message =
            format!("a unit was recorded with authority {most}, and the sender has {authority}");
        Err(Failure::new(&INSUFFICIENT_AUTHORITY, message))
    }

    /// Checks the session of the message: a declared one has the sender as a member, and nothing changes in one that is not
    /// active.
    pub(crate) fn check_session(&self, changes: bool) -> Result<(), Failure> {
        let Some(id) = self.envelope.session_id.as_deref() else { return Ok(()) };
        let Some(session) = self.model.session(id) else { return Ok(()) };
        if !session.members.contains(self.agent_id()) {
            return Err(Failure::unknown(&SESSION_NOT_FOUND, "session", id));
        }
        if changes && session.state != SessionState::Active {
            let state = session.state.as_str();
            return Err(Failure::transition("session", id, state, "worked in"));
        }
        Ok(())
    }

    /// Returns a unit that the sender sees.
    pub(crate) fn visible(&self, id: &str) -> Result<&'a IndexedUnit, Failure> {
        let viewer = self.viewer();
        let found = self.model.visible(&viewer, id);
        found.ok_or_else(|| Failure::unknown(&UNIT_NOT_FOUND, "unit", id))
    }

    /// Returns the content of a unit.
    pub(crate) fn content(&self, id: &str) -> Result<String, Failure> {
        if let Some(unit) = self.units.iter().find(|unit| unit.id == id) {
            return Ok(unit.content.clone());
        }
        Ok(self.stored(id)?.map(|unit| unit.content).unwrap_or_default())
    }

    /// Returns a unit as it was recorded; `None` if the store has it no more, or has something else in its place.
    pub(crate) fn stored(&self, id: &str) -> Result<Option<Unit>, Failure> {
        let unit = self.contents.unit(id)?;
        Ok(unit.filter(|unit| self.model.units.get(id).is_none_or(|indexed| indexed.is(unit))))
    }

    /// Returns an id of this operation: unique, for no two operations have one epoch.
    pub(crate) fn new_id(&self, kind: &str, taken: usize) -> String {
        let epoch = self.epoch;
        if taken == 0 { format!("{kind}-{epoch}") } else { format!("{kind}-{epoch}-{taken}") }
    }

    /// Moves a unit to where a cause leads it from its status now.
    pub(crate) fn move_unit(&mut self, id: &str, cause: UnitCause) -> Result<(), Failure> {
        let Some(from) = self.status_of(id) else { return Ok(()) };
        let Some(to) = next(UNITS, Some(from), cause) else {
            let what = format!("{cause:?}").to_lowercase();
            return Err(Failure::transition("unit", id, from.as_str(), &what));
        };
        if to != from {
            self.deltas.push(Delta::Status { id: id.to_owned(), to });
        }
        Ok(())
    }

    /// Returns the status of a unit after what this operation has changed so far.
    pub(crate) fn status_of(&self, id: &str) -> Option<crate::words::UnitStatus> {
        let changed = self.deltas.iter().rev().find_map(|delta| match delta {
            Delta::Status { id: of, to } if of == id => Some(*to),
            _ => None,
        });
        let new = || self.units.iter().find(|unit| unit.id == id).map(|unit| unit.status);
        changed.or_else(new).or_else(|| self.model.units.get(id).map(|indexed| indexed.status))
    }
}

/// Writes something as a value.
pub(crate) fn value<T: Serialize>(of: &T) -> Result<Value, Failure> {
    omir_core::value::to_value(of)
        .map_err(|error| Failure::internal(format!("an answer cannot be written: {error}")))
}
