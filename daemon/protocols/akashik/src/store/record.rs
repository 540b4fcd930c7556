//! Units, conflicts and entries as records of the store.

use std::collections::BTreeSet;

use omir_core::extension::AKASHIK_URL;
use omir_core::instant::Timestamp;
use omir_core::model::{
    Confidence as Belief, Decay, Entity, ExperienceType, Extension, Kind, Label, MemoryRecord,
    Provenance, Resource, Tier,
};
use omir_core::number::Number;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value, to_value};
use serde::Serialize;

use super::{Batch, Store};
use crate::failure::Failure;
use crate::model::Model;
use crate::names::Sort;
use crate::types::{Conflict, Unit};
use crate::words::{MemoryType, Mode};

/// Pieces of evidence that a confidence score stands for.
const EVIDENCE: f64 = 10.0;

impl Store {
    /// Adds a handle, unless there is one.
    pub(super) fn handle(
        &self,
        resources: &mut Vec<(Ref, Value)>,
        known: &mut BTreeSet<Ref>,
        sort: Sort,
        id: &str,
        title: &str,
    ) -> Result<Ref, Failure> {
        let name = self.name(sort, id)?;
        if !known.insert(name.clone()) || self.engine.may_refer_to(&name) {
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

    pub(super) fn extension<T: Serialize>(
        &self,
        is: &str,
        held: &T,
    ) -> Result<Vec<Extension>, Failure> {
        let value = to_value(held).map_err(|error| Failure::internal(error.to_string()))?;
        let mut map = Map::new();
        map.insert("is", is);
        map.insert("tenant", self.tenant.as_str());
        map.insert(is, value);
        Ok(vec![Extension::json(AKASHIK_URL, map)])
    }

    pub(super) fn unit_record(
        &self,
        name: &Ref,
        unit: &Unit,
        of: Vec<Ref>,
    ) -> Result<(Ref, Value), Failure> {
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

    pub(super) fn conflict_record(
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
            let indexed = model.units.get(id).map(|indexed| &indexed.unit);
            if let Some(unit) = indexed.or_else(|| batch.units.iter().find(|unit| unit.id == id)) {
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
    pub(super) fn past<T: Serialize>(
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
}

fn bare(name: &Ref, content: &str) -> MemoryRecord {
    // The date is the engine's: it is taken away again below.
    let at = Timestamp::from_micros(0).into();
    let mut record = MemoryRecord::new(name.id.clone(), content, at);
    record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
    record
}

pub(super) fn finished(record: MemoryRecord) -> Value {
    let mut value = Resource::from(record).to_value();
    if let Some(map) = value.as_object_mut() {
        for name in ["createdAt", "version", "meta"] {
            map.remove(name);
        }
    }
    value
}
