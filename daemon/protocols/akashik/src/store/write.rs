//! What a batch writes, as one transaction.

use std::collections::BTreeSet;

use omir_core::cbor;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird_engine::{Change, Encoding, Precondition};

use super::Store;
use super::record::finished;
use crate::failure::Failure;
use crate::log::{Delta, Entry, Read};
use crate::model::Model;
use crate::names::Sort;
use crate::types::Unit;

/// What a batch writes.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) units: Vec<Unit>,
    pub(crate) reads: Vec<Read>,
}

impl Store {
    /// Writes a batch, and waits until it is durable.
    ///
    /// # Errors
    /// Nothing of it was written; or, if the engine broke, that is unknown.
    pub(crate) fn commit(&self, batch: &Batch, model: &Model) -> Result<(), Failure> {
        let (change, bytes) = self.prepared(batch, model)?;
        self.engine.execute_counted(change, bytes)?;
        Ok(())
    }

    /// Returns the bytes of the entry, of each unit with its id, and of all conflicts that an operation writes. A record of a
    /// conflict is smaller than the entry that it stands in.
    pub(crate) fn sizes(
        &self,
        entry: &Entry,
        units: &[Unit],
    ) -> Result<Vec<(Option<String>, usize)>, Failure> {
        let log = self.name(Sort::Log, "log")?;
        let name = self.name(Sort::Entry, &entry.epoch.to_string())?;
        let size = |value: &Value| cbor::to_vec(value).len();
        let record = self.past(&name, String::new(), "entry", entry, &log, &entry.at)?;
        let of_entry = size(&finished(record));
        let mut sizes = vec![(None, of_entry)];
        for unit in units {
            let name = self.name(Sort::Unit, &unit.id)?;
            let (_, value) = self.unit_record(&name, unit, Vec::new())?;
            sizes.push((Some(unit.id.clone()), size(&value)));
        }
        if entry.deltas.iter().any(|delta| matches!(delta, Delta::Conflict(_))) {
            sizes.push((None, of_entry));
        }
        Ok(sizes)
    }

    /// Prepares a batch to be written.
    fn prepared(&self, batch: &Batch, model: &Model) -> Result<(Change, usize), Failure> {
        let mut resources = Vec::new();
        let mut conditions = Vec::new();
        let mut handles: BTreeSet<Ref> = BTreeSet::new();
        let field =
            self.handle(&mut resources, &mut handles, Sort::Field, "field", "Akashik field")?;
        let log = self.handle(&mut resources, &mut handles, Sort::Log, "log", "Akashik log")?;
        for unit in &batch.units {
            let mut of = vec![field.clone()];
            let source = &unit.source;
            of.push(self.handle(
                &mut resources,
                &mut handles,
                Sort::Agent,
                &source.agent_id,
                &source.agent_id,
            )?);
            if let Some(task) = &unit.intent.task_id {
                of.push(self.handle(&mut resources, &mut handles, Sort::Task, task, task)?);
            }
            if let Some(session) = &source.session_id {
                of.push(self.handle(
                    &mut resources,
                    &mut handles,
                    Sort::Session,
                    session,
                    session,
                )?);
            }
            let name = self.name(Sort::Unit, &unit.id)?;
            conditions.push((name.clone(), Precondition::Absent));
            resources.push(self.unit_record(&name, unit, of)?);
        }
        for entry in &batch.entries {
            let name = self.name(Sort::Entry, &entry.epoch.to_string())?;
            conditions.push((name.clone(), Precondition::Absent));
            let content = format!("Akashik {} at epoch {}", entry.operation.as_str(), entry.epoch);
            let record = self.past(&name, content, "entry", entry, &log, &entry.at)?;
            resources.push((name, finished(record)));
            for delta in &entry.deltas {
                if let Delta::Conflict(conflict) = delta {
                    let name = self.name(Sort::Conflict, &conflict.id)?;
                    resources.retain(|known: &(Ref, Value)| known.0 != name);
                    resources.push(self.conflict_record(
                        &name,
                        conflict,
                        &field,
                        (model, batch),
                    )?);
                }
            }
        }
        if let (Some(first), Some(last)) = (batch.reads.first(), batch.reads.last()) {
            let id = format!("{}-{}-{}", first.epoch, last.epoch, self.engine.new_id());
            let name = self.name(Sort::Reads, &id)?;
            let content = format!("Akashik, {} operations without a change", batch.reads.len());
            let mut record = self.past(&name, content, "reads", &batch.reads, &field, &last.at)?;
            record.decay = None;
            resources.push((name, finished(record)));
        }
        let values: Value = resources.into_iter().map(|(_, value)| value).collect();
        let bytes = cbor::to_vec(&values);
        let change = self.engine.prepare(&bytes, Encoding::Cbor, None)?.only_if_each(|name| {
            let condition = conditions.iter().find(|(known, _)| known == name);
            condition.map_or(Precondition::None, |(_, one)| *one)
        });
        Ok((change, bytes.len()))
    }

    /// Writes reads without waiting for it: what is lost of them is lost with the power.
    pub(crate) fn write_reads(&self, batch: &Batch) {
        let written = self.prepared(batch, &Model::default());
        match written {
            Ok((change, bytes)) => self.engine.submit(change, bytes, Box::new(|_| {})),
            Err(failure) => tracing::debug!(message = failure.message, "reads are not noted"),
        }
    }

    /// Forgets the records of units. Their tombstones are in the log already.
    ///
    /// # Errors
    /// The store refuses; a start tries again.
    pub(crate) fn purge(&self, ids: &[String]) -> Result<(), Failure> {
        let names =
            ids.iter().map(|id| self.name(Sort::Unit, id)).collect::<Result<Vec<_>, _>>()?;
        let live = names.into_iter().filter(|name| self.engine.live_version(name).is_some());
        let live: Vec<Ref> = live.collect();
        if live.is_empty() || self.engine.settings().read_only {
            return Ok(());
        }
        self.engine.execute(Change::Forget(live))?;
        Ok(())
    }
}
