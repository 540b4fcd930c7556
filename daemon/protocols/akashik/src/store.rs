//! A field in the store: units and conflicts as memories, and the log as records of its own.
//!
//! | record | holds |
//! |---|---|
//! | `MemoryRecord/ak.<key>` | a unit, as it was recorded, for good |
//! | `MemoryRecord/akc.<key>` | a conflict, for whoever reads the store without knowing Akashik |
//! | `MemoryRecord/akl.<key>` | an entry of the log: the truth |
//! | `MemoryRecord/akr.<key>` | operations that changed nothing, some of them together |
//!
//! An entry and what it made are one transaction: all of it, or none. Entries are past from the beginning (`validUntil`), so that no
//! recall of a robot meets them, and anchored, so that nothing takes them away. Operations that changed nothing are past too and
//! are not anchored: they expire, or agents that only ask would fill the card.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::extension::{AKASHIK_URL, COMPASS_URL, EXPERIENCE_URL};
use omir_core::instant::Timestamp;
use omir_core::model::{
    Confidence as Belief, Decay, Entity, ExperienceType, Extension, Kind, Label, MemoryRecord,
    Provenance, Resource, Tier,
};
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::{Map, Value, from_value, to_value};
use omird_engine::{Change, Encoding, Engine, Order, Precondition, Query, ScorePart};
use omird_router::DEFAULT_TENANT;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::claims::KnownClaims;
use crate::clock::{Clock, LEASE};
use crate::failure::Failure;
use crate::fingerprint;
use crate::log::{Delta, Entry, Read};
use crate::meaning;
use crate::model::Model;
use crate::names::{self, Sort};
use crate::turn::{Agreement, Contents, RobotMemory};
use crate::types::{Conflict, Intent, Source, Unit};
use crate::words::{MemoryType, Mode, UnitStatus};

/// Units that a search by words looks at.
const MOST_RANKED: usize = 200;
/// The experience types that units have. Other records of a field have none.
const OF_UNITS: [ExperienceType; 7] = [
    ExperienceType::Observation,
    ExperienceType::Decision,
    ExperienceType::Discovery,
    ExperienceType::Intention,
    ExperienceType::Learning,
    ExperienceType::Command,
    ExperienceType::Context,
];
/// Records among which memories of the robot are looked for: those of protocols may lie before them.
pub(crate) const MOST_SEARCHED: usize = 4096;
/// Pieces of evidence that a confidence score stands for.
const EVIDENCE: f64 = 10.0;

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

/// What a batch writes.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) units: Vec<Unit>,
    pub(crate) reads: Vec<Read>,
}

fn wrong(what: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("a record of the field cannot be read: {what}"))
}

/// Returns the key of a message, for whoever sends it once more.
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

    /// Adds up the log. Each entry is read and let go, so that memory is for what they add up to.
    ///
    /// An entry that was forgotten, or that the card does not give back, is left out: a robot goes on with the rest. What the
    /// entry changed is unknown, so each answer of the field names the gap from then on ([`Model::gaps`]).
    ///
    /// # Errors
    /// The card fails meanwhile, or an entry holds what cannot be understood.
    pub(crate) fn load(&self) -> Result<(Model, Clock), Failure> {
        let is_whole = self.engine.live_version(&self.name(Sort::Log, "log")?).is_some()
            || self.engine.live_version(&self.name(Sort::Field, "field")?).is_none();
        let (mut model, mut clock) = self.add_up(!is_whole)?;
        if is_whole && !model.gaps.is_empty() {
            // Somebody forgot the handle of the log, and with it who mentions it: all memories are looked through.
            (model, clock) = self.add_up(true)?;
        }
        if !model.gaps.is_empty() {
            tracing::error!(
                tenant = self.tenant,
                epochs = ?model.gaps,
                "entries of the log of this field are missing, so its answers may be wrong; restore them from a backup"
            );
        }
        Ok((model, clock))
    }

    /// Adds up the entries under the handle of the log, or all there are.
    fn add_up(&self, everywhere: bool) -> Result<(Model, Clock), Failure> {
        let query = Query {
            entities: vec![self.name(Sort::Log, "log")?],
            types: vec![ResourceType::MemoryRecord],
            ..everything()
        };
        let mut epochs = BTreeSet::new();
        let mut failed = None;
        let mut meet = |bytes: &[u8]| match epoch_in(bytes, &self.tenant) {
            Ok(epoch) => {
                epochs.extend(epoch);
                ControlFlow::Continue(())
            }
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        };
        if everywhere {
            let _ = self.engine.each_or_unread(Some(ResourceType::MemoryRecord), |one| match one {
                Ok(bytes) => meet(&bytes),
                Err(_) => ControlFlow::Continue(()),
            });
        } else {
            self.engine.recall_each(&query, |hit| meet(&hit.resource))?;
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
        let (mut model, mut leased, mut last) = (Model::default(), 0, 0);
        let mut gaps = Vec::new();
        let mut purged = Vec::new();
        for epoch in epochs {
            let entry: Option<Entry> = self.read(Sort::Entry, &epoch.to_string(), "entry")?;
            let entry = entry.ok_or_else(|| wrong(format!("entry {epoch} is gone")))?;
            // Logs of before 2026-11-27 do not say which entry came before.
            if entry.previous > last {
                gaps.push(entry.previous);
            }
            (leased, last) = (entry.lease.max(leased), entry.epoch);
            let message = message_key(&entry.agent_id, &entry.message_id);
            let mut unreadable = None;
            model.apply(&entry, Some(message), &mut |id| match self.recorded(id, &entry) {
                Ok(unit) => unit,
                Err(failure) => {
                    // One damaged unit takes no field away.
                    unreadable = Some(failure);
                    None
                }
            });
            if let Some(failure) = unreadable {
                tracing::error!(
                    epoch,
                    message = failure.message,
                    "a unit is left out of its field"
                );
            }
            purged.extend(entry.deltas.iter().filter_map(|delta| match delta {
                Delta::Purged { id, .. } => Some(id.clone()),
                _ => None,
            }));
        }
        // The last ones have none behind them that names them. Under the lease there are few epochs to ask for.
        for epoch in last + 1..=leased.min(last + LEASE) {
            if self.engine.live_version(&self.name(Sort::Entry, &epoch.to_string())?).is_some() {
                gaps.push(epoch);
            }
        }
        model.gaps = gaps;
        // The power may have gone between the tombstone and the purge.
        self.purge(&purged)?;
        let mut clock = Clock::resumed(leased);
        clock.go_to(last, leased);
        Ok((model, clock))
    }

    /// Writes a batch, and waits until it is durable.
    ///
    /// # Errors
    /// Nothing of it was written; or, if the engine broke, nobody knows.
    pub(crate) fn commit(&self, batch: &Batch, model: &Model) -> Result<(), Failure> {
        let (change, bytes) = self.prepared(batch, model)?;
        self.made(change, bytes)
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
        let mut change = self.engine.prepare(&bytes, Encoding::Cbor, None)?;
        if let Change::Remember(prepared) = &mut change {
            for item in prepared {
                let name = item.resource.reference();
                let condition = conditions.iter().find(|(known, _)| *known == name);
                item.precondition = condition.map_or(Precondition::None, |(_, one)| *one);
            }
        }
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

    /// Makes a change and waits for its receipt. The queue counts its bytes, as those of any other request.
    fn made(&self, change: Change, bytes: usize) -> Result<(), Failure> {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        // Whoever waits takes the one answer; it never blocks.
        self.engine.submit(change, bytes, Box::new(move |ended| drop(tell.send(ended))));
        told.recv().unwrap_or_else(|_| Err(omird_engine::unanswered()))?;
        Ok(())
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
        self.made(Change::Forget(live), 0)
    }

    /// Adds a handle, unless there is one.
    fn handle(
        &self,
        resources: &mut Vec<(Ref, Value)>,
        known: &mut BTreeSet<Ref>,
        sort: Sort,
        id: &str,
        title: &str,
    ) -> Result<Ref, Failure> {
        let name = self.name(sort, id)?;
        if !known.insert(name.clone()) || self.engine.live_version(&name).is_some() {
            return Ok(name);
        }
        let mut entity = Entity::new(name.id.clone(), title);
        entity.labels = Some(vec![match sort {
            Sort::Agent => Label::Technology,
            Sort::Task => Label::Project,
            Sort::Session => Label::Event,
            _ => Label::Concept,
        }]);
        entity.attributes = Some([("id".to_owned(), id.to_owned())].into());
        resources.push((name.clone(), Resource::from(entity).to_value()));
        Ok(name)
    }

    fn extension<T: Serialize>(&self, is: &str, held: &T) -> Result<Vec<Extension>, Failure> {
        let value = to_value(held).map_err(|error| Failure::internal(error.to_string()))?;
        let mut map = Map::new();
        map.insert("is", is);
        map.insert("tenant", self.tenant.as_str());
        map.insert(is, value);
        Ok(vec![Extension::json(AKASHIK_URL, map)])
    }

    fn unit_record(&self, name: &Ref, unit: &Unit, of: Vec<Ref>) -> Result<(Ref, Value), Failure> {
        let mut record = bare(name, &unit.content);
        record.kind = Some(match unit.of {
            MemoryType::Intention => Kind::Plan,
            MemoryType::Synthesis | MemoryType::Correction => Kind::Learning,
            _ => Kind::Memory,
        });
        record.experience_type = Some(match unit.of {
            MemoryType::Observation => ExperienceType::Observation,
            MemoryType::Decision => ExperienceType::Decision,
            MemoryType::Finding => ExperienceType::Discovery,
            MemoryType::Intention => ExperienceType::Intention,
            MemoryType::Synthesis | MemoryType::Correction => ExperienceType::Learning,
            MemoryType::HumanDirective => ExperienceType::Command,
            _ => ExperienceType::Context,
        });
        // A draft is in the hands of its author alone.
        record.tier = (unit.mode == Mode::Draft).then_some(Tier::Working);
        record.event_time = Timestamp::parse(&unit.source.timestamp).ok().map(Into::into);
        if let Some(score) = unit.score() {
            let least = 1e-3;
            let alpha = (score * EVIDENCE).max(least);
            let beta = ((1.0 - score) * EVIDENCE).max(least);
            record.confidence = Some(Belief {
                alpha: Number::from_f64(alpha),
                beta: Number::from_f64(beta),
                calibrated: None,
            });
        }
        record.provenance = Some(Provenance {
            source: Some(unit.source.agent_id.clone()),
            external_id: Some(unit.id.clone()),
            ..Provenance::default()
        });
        record.entity_refs = Some(of.into_iter().map(Into::into).collect());
        record.extension =
            Some(self.extension("unit", &Unit { content: String::new(), ..unit.clone() })?);
        Ok((name.clone(), finished(record)))
    }

    fn conflict_record(
        &self,
        name: &Ref,
        conflict: &Conflict,
        field: &Ref,
        (model, batch): (&Model, &Batch),
    ) -> Result<(Ref, Value), Failure> {
        let status = conflict.status.as_str();
        let mut record = bare(name, &format!("Conflict ({status}): {}", conflict.description));
        record.kind = Some(Kind::Learning);
        let mut of = vec![field.clone()];
        for id in conflict.units() {
            let kept = model.units.get(id).map(|kept| &kept.unit);
            if let Some(unit) = kept.or_else(|| batch.units.iter().find(|unit| unit.id == id)) {
                let author = self.name(Sort::Agent, &unit.source.agent_id)?;
                if !of.contains(&author) {
                    of.push(author);
                }
            }
        }
        record.entity_refs = Some(of.into_iter().map(Into::into).collect());
        record.extension = Some(self.extension("conflict", conflict)?);
        Ok((name.clone(), finished(record)))
    }

    /// Returns a record that no recall meets, and nothing takes away.
    fn past<T: Serialize>(
        &self,
        name: &Ref,
        content: String,
        is: &str,
        held: &T,
        of: &Ref,
        at: &str,
    ) -> Result<MemoryRecord, Failure> {
        let mut record = bare(name, &content);
        record.event_time = Timestamp::parse(at).ok().map(Into::into);
        record.valid_until = record.event_time.clone();
        record.entity_refs = Some(vec![of.clone().into()]);
        record.extension = Some(self.extension(is, held)?);
        Ok(record)
    }

    /// Returns the name of what makes the vectors that units are ranked by: the store's model, or hashing.
    pub(crate) fn embedding(&self) -> String {
        self.engine.embedding_model().unwrap_or_else(meaning::embedding_name)
    }

    /// Returns the unit that an entry recorded.
    ///
    /// # Errors
    /// It cannot be read, or its record is not what was recorded.
    fn recorded(&self, id: &str, entry: &Entry) -> Result<Option<Unit>, Failure> {
        let Some(unit) = self.unit(id)? else { return Ok(None) };
        let stated = entry.deltas.iter().find_map(|delta| match delta {
            Delta::Unit { id: of, digest } if of == id => digest.as_deref(),
            _ => None,
        });
        if stated.is_some_and(|stated| fingerprint::of_unit(&unit).as_deref() != Some(stated)) {
            return Err(wrong(format!("unit {id} was changed past its field")));
        }
        Ok(Some(unit))
    }

    /// Returns a unit of the store, with its content.
    pub(crate) fn unit(&self, id: &str) -> Result<Option<Unit>, Failure> {
        let Some(bytes) = self.engine.get(&self.name(Sort::Unit, id)?)? else { return Ok(None) };
        let unit = unit_in(&bytes, &self.tenant)?;
        Ok(unit.filter(|unit| unit.id == id))
    }
}

/// A query for all there is under a handle.
fn everything() -> Query {
    Query {
        include_expired: true,
        include_intentions: true,
        order: Order::Earliest,
        limit: None,
        touch: false,
        ..Query::default()
    }
}

fn bare(name: &Ref, content: &str) -> MemoryRecord {
    // The date is the engine's: it is taken away again below.
    let at = Timestamp::from_micros(0).into();
    let mut record = MemoryRecord::new(name.id.clone(), content, at);
    record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
    record
}

fn finished(record: MemoryRecord) -> Value {
    let mut value = Resource::from(record).to_value();
    if let Some(map) = value.as_object_mut() {
        for name in ["createdAt", "version", "meta"] {
            map.remove(name);
        }
    }
    value
}

fn record_in(bytes: &[u8]) -> Result<Option<MemoryRecord>, Failure> {
    let value = cbor::from_slice(bytes, &Limits::default()).map_err(wrong)?;
    let resource = Resource::from_value(value)
        .map_err(|faults| wrong(faults.first().map(ToString::to_string).unwrap_or_default()))?;
    match resource {
        Resource::MemoryRecord(record) => Ok(Some(*record)),
        _ => Ok(None),
    }
}

/// Returns what the extension of a record holds, if it is of this kind and tenant. Somebody else may write such an extension: what it
/// does not say rightly is none of ours.
fn value_in(record: &MemoryRecord, is: &str, tenant: &str) -> Option<Value> {
    let extensions = record.extension.iter().flatten();
    extensions.filter(|extension| extension.url == AKASHIK_URL).find_map(|extension| {
        let map = extension.value_json.as_ref()?.as_object()?;
        let says = |name: &str| map.get(name).and_then(Value::as_str);
        let is_it = says("is") == Some(is) && says("tenant") == Some(tenant);
        is_it.then(|| map.get(is).cloned())?
    })
}

fn held<T: DeserializeOwned>(bytes: &[u8], is: &str, tenant: &str) -> Result<Option<T>, Failure> {
    let Some(record) = record_in(bytes)? else { return Ok(None) };
    let Some(value) = value_in(&record, is, tenant) else { return Ok(None) };
    from_value(value).map(Some).map_err(wrong)
}

/// Returns the epoch of the entry that a record is; `None` if it is none of this field.
fn epoch_in(bytes: &[u8], tenant: &str) -> Result<Option<u64>, Failure> {
    let Some(record) = record_in(bytes)? else { return Ok(None) };
    let Some(value) = value_in(&record, "entry", tenant) else { return Ok(None) };
    let epoch = value.get("epoch").and_then(Value::as_u64);
    // Its name proves it: a copy under another name is none of ours.
    let own = epoch.and_then(|epoch| names::name(Sort::Entry, tenant, &epoch.to_string()).ok());
    Ok(epoch.filter(|_| own.is_some_and(|own| own.id == record.id)))
}

fn unit_in(bytes: &[u8], tenant: &str) -> Result<Option<Unit>, Failure> {
    let Some(record) = record_in(bytes)? else { return Ok(None) };
    let Some(value) = value_in(&record, "unit", tenant) else { return Ok(None) };
    let Ok(unit) = from_value::<Unit>(value) else { return Ok(None) };
    Ok(Some(Unit { content: record.content, ..unit }))
}

/// The store, and units that are not written yet.
pub(crate) struct StoreView<'a> {
    pub(crate) store: &'a Store,
    pub(crate) known: &'a KnownClaims,
    pub(crate) pending: &'a HashMap<String, Unit>,
    /// Entries that are not written yet.
    pub(crate) entries: &'a [Entry],
}

impl Contents for StoreView<'_> {
    fn unit(&self, id: &str) -> Result<Option<Unit>, Failure> {
        match self.pending.get(id) {
            Some(unit) => Ok(Some(unit.clone())),
            None => self.store.unit(id),
        }
    }

    fn embedding(&self) -> String {
        self.store.embedding()
    }

    fn known(&self) -> &KnownClaims {
        self.known
    }

    fn persists(&self) -> bool {
        self.store.persists
    }

    fn patience(&self) -> Duration {
        self.store.patience
    }

    fn ranked(&self, text: &str, f: &mut dyn FnMut(&str, Agreement)) -> Result<(), Failure> {
        let query = Query {
            text: Some(text.into()),
            by_meaning: true,
            types: vec![ResourceType::MemoryRecord],
            entities: vec![self.store.name(Sort::Field, "field")?],
            // Conflicts and notes of reads would take the places of units.
            experience_types: OF_UNITS.to_vec(),
            include_expired: true,
            include_intentions: true,
            limit: Some(MOST_RANKED),
            touch: false,
            explain: true,
            ..Query::default()
        };
        self.store.engine.recall_each(&query, |hit| {
            let agreement = Agreement {
                words: hit.part(ScorePart::Text).unwrap_or(0.0),
                cosine: hit.part(ScorePart::Meaning).filter(|cosine| *cosine > 0.0),
            };
            if let Ok(Some(unit)) = unit_in(&hit.resource, &self.store.tenant) {
                f(&unit.id, agreement);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn robot(&self, text: &str, most: usize) -> Result<(Vec<RobotMemory>, bool), Failure> {
        if self.store.tenant != DEFAULT_TENANT {
            return Ok((Vec::new(), true));
        }
        let query = Query {
            text: Some(text.into()),
            by_meaning: true,
            types: vec![ResourceType::MemoryRecord],
            limit: Some(MOST_SEARCHED),
            touch: false,
            ..Query::default()
        };
        let mut found = Vec::new();
        let matches = self.store.engine.recall_each(&query, |hit| {
            if let Ok(Some(record)) = record_in(&hit.resource)
                && let Some(unit) = observed(record)
            {
                found.push(RobotMemory { unit, score: hit.score });
            }
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let is_whole = found.len() >= most || matches <= MOST_SEARCHED as u64;
        Ok((found, is_whole))
    }

    fn entry(&self, epoch: u64) -> Result<Option<Entry>, Failure> {
        match self.entries.iter().find(|entry| entry.epoch == epoch) {
            Some(entry) => Ok(Some(entry.clone())),
            None => self.store.read(Sort::Entry, &epoch.to_string(), "entry"),
        }
    }
}

/// Returns a memory of the robot as agents see it; `None` for what a protocol keeps for itself.
fn observed(record: MemoryRecord) -> Option<Unit> {
    let of_protocol = [AKASHIK_URL, COMPASS_URL, EXPERIENCE_URL];
    let mut extensions = record.extension.iter().flatten();
    if extensions.any(|extension| of_protocol.contains(&extension.url.as_str())) {
        return None;
    }
    let source = record.provenance.and_then(|provenance| provenance.source);
    let at = record.event_time.unwrap_or(record.created_at);
    Some(Unit {
        id: format!("omir:MemoryRecord/{}", record.id),
        mode: Mode::Committed,
        of: MemoryType::Observation,
        content: record.content,
        intent: Intent { purpose: "observed by the robot".to_owned(), ..Intent::default() },
        confidence: None,
        source: Source {
            agent_id: source.unwrap_or_else(|| "robot".to_owned()),
            agent_role: "robot".to_owned(),
            session_id: None,
            timestamp: at.to_string(),
        },
        relations: Vec::new(),
        status: UnitStatus::Active,
        epoch: 0,
    })
}
