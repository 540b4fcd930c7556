//! A field in the store: units and conflicts as memories, and the log as records of its own.
//!
//! | record | holds |
//! |---|---|
//! | `MemoryRecord/ak.<key>` | a unit, as it was recorded, for good |
//! | `MemoryRecord/akc.<key>` | a conflict, for readers of the store that do not know Akashik |
//! | `MemoryRecord/akl.<key>` | an entry of the log: the truth |
//! | `MemoryRecord/akr.<key>` | operations that changed nothing, some of them together |
//!
//! An entry and what it made are one transaction: all of it, or none. Entries are past from the beginning (`validUntil`), so that no
//! recall of a robot meets them, and anchored, so that nothing takes them away. Operations that changed nothing are past too and
//! are not anchored: they expire, or agents that only ask would fill the card.
//!
//! | module | holds |
//! |---|---|
//! | `load` | the state, added up from the log at a start |
//! | `write` | what a batch writes, as one transaction |
//! | `record`, `held` | units, conflicts and entries as records, and back |
//! | `view` | the store as an operation sees it |

mod held;
mod load;
mod record;
mod view;
mod write;

use std::time::Duration;

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omird_engine::Engine;
use serde::de::DeserializeOwned;

use self::held::{held, unit_in};
pub(crate) use self::view::{MOST_SEARCHED, StoreView};
pub(crate) use self::write::Batch;
use crate::failure::Failure;
use crate::names::Sort;
use crate::types::Unit;
use crate::{meaning, names};

/// The records of one field.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) engine: Engine,
    pub(crate) tenant: String,
    /// False if all is gone at a stop.
    pub(crate) persists: bool,
    /// The longest time that a DETECT looks for conflicts.
    pub(crate) patience: Duration,
}

fn wrong(what: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("a record of the field cannot be read: {what}"))
}

/// Returns the key of a message, for an agent that sends it once more.
pub(crate) fn message_key(agent_id: &str, message_id: &str) -> u128 {
    u128::from_be_bytes(names::digest(&[agent_id.as_bytes(), message_id.as_bytes()]))
}

impl Store {
    /// Returns the time as the wire has it.
    pub(crate) fn now(&self) -> (String, Timestamp) {
        let at = self.engine.now().0;
        (at.writable().to_string(), at)
    }

    fn name(&self, sort: Sort, id: &str) -> Result<Ref, Failure> {
        names::name(sort, &self.tenant, id)
    }

    fn read<T: DeserializeOwned>(
        &self,
        sort: Sort,
        id: &str,
        is: &str,
    ) -> Result<Option<T>, Failure> {
        match self.engine.get(&self.name(sort, id)?)? {
            Some(bytes) => held(&bytes, is, &self.tenant),
            None => Ok(None),
        }
    }

    /// Returns the name of what makes the vectors that units are ranked by: the store's model, or hashing.
    pub(crate) fn embedding(&self) -> String {
        self.engine.embedding_model().unwrap_or_else(meaning::embedding_name)
    }

    /// Returns a unit of the store, with its content.
    pub(crate) fn unit(&self, id: &str) -> Result<Option<Unit>, Failure> {
        let Some(bytes) = self.engine.get(&self.name(Sort::Unit, id)?)? else { return Ok(None) };
        let unit = unit_in(&bytes, &self.tenant)?;
        Ok(unit.filter(|unit| unit.id == id))
    }
}
