//! One write of one method: all of it or none, and only if nothing has changed since it was read.

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::model::{Entity, Label, Resource};
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird_engine::{Code, Effect, Encoding, Precondition, Receipt};

use super::{Shape, Store, Stored, encode, shape};
use crate::failure::Failure;
use crate::names::Sort;
use crate::state::{Memory, State};

/// Times that a write is worked out again after a lost race.
const TRIES: usize = 3;

/// The changes of one method.
#[derive(Default)]
pub(crate) struct Batch {
    records: Vec<(Ref, Value, Precondition)>,
    entities: Vec<(Ref, Value)>,
    memories: Vec<Memory>,
    tasks: Vec<String>,
}

/// The receipt of a batch.
pub(crate) struct Written {
    receipt: Receipt,
}

impl Written {
    /// Returns the version that a record has now, and true if it was the same before.
    pub(crate) fn version(&self, name: &Ref) -> Option<(u64, bool)> {
        let Effect::Remembered(stored) = &self.receipt.effect else { return None };
        let one = stored.iter().find(|one| one.target == *name)?;
        Some((one.version, one.unchanged))
    }

    /// Returns true if it survives a power cut.
    pub(crate) fn is_durable(&self) -> bool {
        self.receipt.durable
    }

    /// Returns what was written, for the audit line.
    pub(crate) fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

impl Batch {
    /// Returns true if there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Notes a memory that it writes.
    pub(crate) fn note_memory(&mut self, memory: &Memory) {
        self.memories.push(memory.clone());
    }

    /// Returns true if it writes the memory of this id.
    pub(crate) fn writes_memory(&self, id: &str) -> bool {
        self.memories.iter().any(|memory| memory.memory_id == id)
    }

    /// Notes a task that it writes.
    pub(crate) fn note_task(&mut self, task: &str) {
        self.tasks.push(task.to_owned());
    }

    /// Takes the memories and tasks that it writes.
    pub(crate) fn take_notes(&mut self) -> (Vec<Memory>, Vec<String>) {
        (std::mem::take(&mut self.memories), std::mem::take(&mut self.tasks))
    }
}

impl Store {
    /// Adds a handle, unless there is one already: entities are written once.
    pub(crate) fn add_handle(
        &self,
        batch: &mut Batch,
        sort: Sort,
        id: &str,
        label: Label,
    ) -> Result<Ref, Failure> {
        let name = self.name(sort, id)?;
        if batch.entities.iter().any(|(known, _)| *known == name) || self.has(&name) {
            return Ok(name);
        }
        let mut entity = Entity::new(name.id.clone(), id);
        entity.labels = Some(vec![label]);
        let attributes = [("id".to_owned(), id.to_owned())];
        entity.attributes = Some(attributes.into());
        batch.entities.push((name.clone(), Resource::from(entity).to_value()));
        Ok(name)
    }

    /// Adds a state that is not there yet.
    pub(crate) fn add<S: State>(
        &self,
        batch: &mut Batch,
        sort: Sort,
        state: &S,
        shape: &Shape,
    ) -> Result<Ref, Failure> {
        let name = self.name(sort, state.identity().1)?;
        let value = shape.to_new(&name, state.agent(), encode(state)?);
        batch.records.push((name.clone(), value, Precondition::Absent));
        Ok(name)
    }

    /// Adds a state that is there, and has changed.
    pub(crate) fn change<S: State>(
        &self,
        batch: &mut Batch,
        stored: &Stored<S>,
        state: &S,
        shape: &Shape,
    ) -> Result<Ref, Failure> {
        let value = shape.to_changed(&stored.record, encode(state)?);
        let name = Resource::from(stored.record.clone()).reference();
        batch.records.push((name.clone(), value, Precondition::Version(stored.version)));
        Ok(name)
    }

    /// Refuses the batch if a state has changed since it was read. Nothing is written for it: the engine keeps the version of a
    /// record that comes as it is.
    pub(crate) fn expect<S: State>(&self, batch: &mut Batch, stored: &Stored<S>) {
        let name = Resource::from(stored.record.clone()).reference();
        let value = shape::unchanged(&stored.record);
        batch.records.push((name, value, Precondition::Version(stored.version)));
    }

    /// Writes a batch, and waits until it is durable.
    ///
    /// # Errors
    /// A lost race is told apart from other refusals: [`Failure::is_race`].
    pub(crate) fn commit(&self, batch: Batch) -> Result<Written, Failure> {
        let Batch { records, entities, .. } = batch;
        let conditions: Vec<(Ref, Precondition)> =
            records.iter().map(|(name, _, condition)| (name.clone(), *condition)).collect();
        let values = entities.into_iter().map(|(_, value)| value);
        let values: Value = values.chain(records.into_iter().map(|(_, value, _)| value)).collect();
        let bytes = cbor::to_vec(&values);
        let change = self.engine().prepare(&bytes, Encoding::Cbor, None)?.only_if_each(|name| {
            let condition = conditions.iter().find(|(known, _)| known == name);
            condition.map_or(Precondition::None, |(_, one)| *one)
        });
        match self.engine().execute_counted(change, bytes.len()) {
            Ok(receipt) => Ok(Written { receipt }),
            Err(error) if error.code == Code::Conflict => Err(Failure::race(error.message)),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes an instant as states have it.
    pub(crate) fn stamp(at: Timestamp) -> String {
        at.writable().to_string()
    }
}

/// Works a change out, and again if another client was faster.
///
/// # Errors
/// `CONFLICT` after three lost races.
pub(crate) fn retried<T>(mut f: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        match f() {
            Err(failure) if failure.is_race() && tries < TRIES => {}
            ended => return ended,
        }
    }
}
