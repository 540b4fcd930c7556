//! The store as the protocol sees it: states in records of OMIR, read with the version they have, written all or none.

mod batch;
mod find;
mod shape;
mod sketch;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::extension::COMPASS_URL;
use omir_core::instant::Timestamp;
use omir_core::model::{MemoryRecord, Resource};
use omir_core::reference::Ref;
use omir_core::value::{Map, Value, from_value, to_value};
use omird_engine::{ClockState, Engine, Lookup};

pub(crate) use self::batch::{Batch, Written, retried};
pub(crate) use self::find::{Search, Understood};
pub(crate) use self::shape::Shape;
pub(crate) use self::sketch::Sketch;
use crate::failure::Failure;
use crate::names::{self, Sort, uuid};
use crate::state::State;

/// No version has this number. A hit of a search does not tell its own.
pub(crate) const UNSEEN: u64 = 0;

/// A state as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Stored<S> {
    /// The state.
    pub(crate) state: S,
    /// The record that holds it.
    pub(crate) record: MemoryRecord,
    /// The version of the record; [`UNSEEN`] if a search found it: read it again before a change.
    pub(crate) version: u64,
    /// The record as CBOR, as it was read.
    pub(crate) bytes: Vec<u8>,
}

impl<S> Stored<S> {
    /// Returns how often the memory was used.
    pub(crate) fn accesses(&self) -> u64 {
        let decay = self.record.decay.as_ref();
        decay.and_then(|decay| decay.access_count.as_ref()?.as_u64()).unwrap_or(0)
    }

    /// Returns the time of its last use.
    pub(crate) fn last_access(&self) -> Option<Timestamp> {
        // The block may state an access that never was: the engine counts from the time of the record.
        let decay = self.record.decay.as_ref().filter(|_| self.accesses() > 0)?;
        decay.last_access.as_ref().map(|instant| instant.at())
    }
}

/// The memories of one tenant.
#[derive(Clone)]
pub(crate) struct Store {
    engine: Engine,
    tenant: String,
    /// Searches go on without records that the disk does not give back: one that is rotten holds up no task.
    left_out: Arc<AtomicUsize>,
}

impl Store {
    /// Returns the store of a tenant.
    pub(crate) fn new(engine: &Engine, tenant: &str) -> Self {
        let (engine, tenant) = (engine.clone(), tenant.to_owned());
        Self { engine, tenant, left_out: Arc::default() }
    }

    /// Returns the number of records that searches left out.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Returns the tenant.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the name of something in the store.
    pub(crate) fn name(&self, sort: Sort, id: &str) -> Result<Ref, Failure> {
        names::name(sort, &self.tenant, id)
    }

    /// Returns a new id.
    pub(crate) fn new_id(&self) -> String {
        uuid(&self.engine.new_id())
    }

    /// Returns the time, and how far it can be trusted.
    pub(crate) fn now(&self) -> (Timestamp, ClockState) {
        self.engine.now()
    }

    /// Returns true if something lives under a name, so that a record may refer to it.
    pub(crate) fn has(&self, name: &Ref) -> bool {
        self.engine.may_refer_to(name)
    }

    /// Returns what a caller knows by this id, of any owner.
    pub(crate) fn get<S: State>(&self, sort: Sort, id: &str) -> Result<Option<Stored<S>>, Failure> {
        let name = self.name(sort, id)?;
        let Some((bytes, version)) = self.engine.get_versioned(&name)? else { return Ok(None) };
        let Some(stored) = decode::<S>(bytes, version)? else { return Ok(None) };
        let is_it = stored.state.identity() == (self.tenant.as_str(), id);
        Ok(is_it.then_some(stored))
    }

    /// As [`Store::get`], for what is only looked at: one that the card does not give back is left out.
    pub(crate) fn get_readable<S: State>(
        &self,
        sort: Sort,
        id: &str,
    ) -> Result<Option<Stored<S>>, Failure> {
        let failure = match self.get(sort, id) {
            Err(failure) => failure,
            found => return found,
        };
        match self.engine.look_up(&self.name(sort, id)?)? {
            Lookup::Damaged(_) | Lookup::Lost(_) => {
                self.left_out.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(id, message = failure.error.message, "left out");
                Ok(None)
            }
            Lookup::Nothing | Lookup::Whole(_) => Err(failure),
        }
    }

    /// Counts memories as used.
    pub(crate) fn touch<'r>(&self, records: impl IntoIterator<Item = &'r [u8]>) {
        self.engine.touch(records);
    }

    /// Returns the engine, for what is no state: feedback, forgetting.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// Reads a state from a stored record. `None` if it holds none of this kind.
fn decode<S: State>(bytes: Vec<u8>, version: u64) -> Result<Option<Stored<S>>, Failure> {
    let wrong = |what: String| Failure::internal(format!("a stored record cannot be read: {what}"));
    let value =
        cbor::from_slice(&bytes, &Limits::default()).map_err(|error| wrong(error.to_string()))?;
    let resource = Resource::from_value(value)
        .map_err(|faults| wrong(faults.first().map(ToString::to_string).unwrap_or_default()))?;
    let Resource::MemoryRecord(record) = resource else { return Ok(None) };
    let extensions = record.extension.iter().flatten();
    let held = extensions.filter(|extension| extension.url == COMPASS_URL).find_map(|extension| {
        let map = extension.value_json.as_ref()?.as_object()?;
        (map.get("is").and_then(Value::as_str) == Some(S::IS)).then_some(map)
    });
    let Some(held) = held else { return Ok(None) };
    // Another client may write such an extension: one with faults is none of ours.
    let Ok(state) = from_value::<S>(Value::Object(held.clone())) else { return Ok(None) };
    Ok(Some(Stored { state, record: *record, version, bytes }))
}

/// Writes a state as the value of the extension.
fn encode<S: State>(state: &S) -> Result<Map, Failure> {
    let wrong = |what: String| Failure::internal(format!("a state cannot be written: {what}"));
    let value = to_value(state).map_err(|error| wrong(error.to_string()))?;
    let Value::Object(members) = value else { return Err(wrong(format!("it is {value}"))) };
    let mut map = Map::new();
    map.insert("is", S::IS);
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        map.insert(name, value.clone());
    }
    Ok(map)
}
