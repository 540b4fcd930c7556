//! Entries of the log: one for each change. The state of a field is what its entries add up to.

use omir_core::value::{Map, Value};
use serde::{Deserialize, Serialize};

use crate::types::{Agent, Conflict, Handoff, Session, Subscription, Task};
use crate::words::{Operation, UnitStatus};

/// One thing that an operation changed. Objects stand in it whole, as they are from then on; the content of a unit does not,
/// so that a purge leaves none of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delta {
    /// An agent is so.
    Agent(Agent),
    /// A unit is recorded; a record of its own holds it.
    Unit {
        /// Its id.
        id: String,
        /// A digest of it, so that a record that was changed from outside is not taken for it. Logs of before 2026-11-27 have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A unit has another status.
    Status {
        /// Its id.
        id: String,
        /// The status.
        to: UnitStatus,
    },
    /// A unit is archived.
    Archived {
        /// Its id.
        id: String,
    },
    /// A unit is purged: the tombstone.
    Purged {
        /// Its id.
        id: String,
        /// The moment.
        at: String,
        /// The reason.
        reason: String,
    },
    /// A conflict is so.
    Conflict(Conflict),
    /// A task is so.
    Task(Task),
    /// A session is so.
    Session(Session),
    /// A handoff is so.
    Handoff(Handoff),
    /// A subscription is so.
    Subscription(Subscription),
    /// A subscription is gone.
    Unsubscribed {
        /// Its id.
        id: String,
    },
    /// Units whose conflicts are still to be looked for.
    Deferred {
        /// Their ids.
        ids: Vec<String>,
    },
    /// Their conflicts have been looked for.
    Detected {
        /// Their ids.
        ids: Vec<String>,
    },
}

/// An entry: who did what, when, with which authority, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) epoch: u64,
    /// The epoch of the entry before it; 0 for the first one. A hole in the log shows by it.
    #[serde(default)]
    pub(crate) previous: u64,
    /// RFC 3339.
    pub(crate) at: String,
    pub(crate) operation: Operation,
    pub(crate) agent_id: String,
    pub(crate) authority: u32,
    /// The name of the token, as audit lines have it.
    pub(crate) caller: String,
    pub(crate) message_id: String,
    /// A digest of the message: the same id with another message is a fault.
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    /// The epoch up to which answers may go from here on.
    pub(crate) lease: u64,
    pub(crate) description: String,
    pub(crate) deltas: Vec<Delta>,
    /// The answer, for the message that comes once more.
    pub(crate) status: u16,
    /// As JSON: it comes back byte by byte.
    pub(crate) reply: String,
}

/// An operation that changed nothing, or was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) epoch: u64,
    pub(crate) at: String,
    pub(crate) operation: Operation,
    pub(crate) agent_id: String,
    /// `ok`, or the code of the error.
    pub(crate) outcome: String,
}

/// The thing that a delta is about: kind and id.
impl Delta {
    /// Returns the kind of thing it is about, and the ids.
    pub(crate) fn about(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Agent(agent) => vec![("agent", &agent.id)],
            Self::Unit { id, .. }
            | Self::Status { id, .. }
            | Self::Archived { id }
            | Self::Purged { id, .. } => vec![("unit", id)],
            Self::Conflict(one) => {
                vec![("conflict", &*one.id), ("unit", &*one.unit_a), ("unit", &*one.unit_b)]
            }
            Self::Task(one) => vec![("task", &one.id)],
            Self::Session(one) => vec![("session", &one.id)],
            Self::Handoff(one) => vec![("handoff", &*one.id), ("task", &*one.task_id)],
            Self::Subscription(_) | Self::Unsubscribed { .. } => Vec::new(),
            Self::Deferred { .. } | Self::Detected { .. } => Vec::new(),
        }
    }
}

/// Returns an object of these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    for (name, value) in members {
        map.insert(name, value);
    }
    Value::Object(map)
}
