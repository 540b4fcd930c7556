//! The members of OMIR that a state is mapped to, for readers of the store that do not know COMPASS.

use omir_core::extension::COMPASS_URL;
use omir_core::instant::Timestamp;
use omir_core::model::{
    Decay, ExperienceType, Extension, Kind, MemoryRecord, Provenance, Resource, Tier,
};
use omir_core::number::Number;
use omir_core::reference::{Id, Ref};
use omir_core::spatial::SpatialPose;
use omir_core::value::{Map, Value};
use omird_embedding::EMBEDDING_URL;

use crate::model::embedding::is_own;

/// The members of a record beside the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    pub(crate) content: String,
    pub(crate) kind: Option<Kind>,
    pub(crate) experience_type: Option<ExperienceType>,
    pub(crate) tier: Option<Tier>,
    pub(crate) importance: Option<f64>,
    /// It is never merged, evicted or expired.
    pub(crate) anchored: bool,
    pub(crate) event_time: Option<Timestamp>,
    pub(crate) valid_until: Option<Timestamp>,
    pub(crate) entities: Vec<Ref>,
    pub(crate) parent: Option<Id>,
    /// The name upstream.
    pub(crate) external_id: Option<String>,
    /// The vector of its text that a server of models made.
    pub(crate) vector: Option<Extension>,
    /// The place of a record that is new.
    pub(crate) pose: Option<SpatialPose>,
}

impl Shape {
    /// Returns the shape that a record has.
    pub(crate) fn of(record: &MemoryRecord) -> Self {
        let provenance = record.provenance.as_ref();
        let entities = record.entity_refs.iter().flatten();
        Self {
            content: record.content.clone(),
            kind: record.kind,
            experience_type: record.experience_type,
            tier: record.tier,
            importance: record.importance.as_ref().map(Number::as_f64),
            anchored: record.decay.as_ref().and_then(|decay| decay.anchored) == Some(true),
            event_time: record.event_time.as_ref().map(|at| at.at()),
            valid_until: record.valid_until.as_ref().map(|at| at.at()),
            entities: entities.map(|one| one.target.clone()).collect(),
            parent: record.parent_id.clone(),
            external_id: provenance.and_then(|provenance| provenance.external_id.clone()),
            vector: None,
            pose: None,
        }
    }

    /// Writes a record that is new.
    pub(super) fn to_new(&self, name: &Ref, agent: &str, state: Map) -> Value {
        // The date is the engine's: it is taken away again below.
        let at = Timestamp::from_micros(0).into();
        let mut record = MemoryRecord::new(name.id.clone(), self.content.clone(), at);
        record.tier = self.tier;
        let provenance = Provenance {
            source: Some(agent.to_owned()).filter(|agent| !agent.is_empty()),
            external_id: self.external_id.clone(),
            ..Provenance::default()
        };
        record.provenance = Some(provenance);
        record.extension = Some(self.pose.iter().map(SpatialPose::to_extension).collect());
        if self.anchored {
            record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
        }
        self.write(&mut record, state);
        finished(record, self.anchored)
    }

    /// Writes a record that is there already. What others added to it stays, such as a place or evidence.
    pub(super) fn to_changed(&self, before: &MemoryRecord, state: Map) -> Value {
        let mut record = before.clone();
        let was_anchored = record.decay.as_ref().and_then(|decay| decay.anchored) == Some(true);
        let moves = was_anchored != self.anchored;
        if moves {
            record.decay.get_or_insert_default().anchored = Some(self.anchored);
        }
        let is_other = self.content != before.content;
        if is_other || self.vector.is_some() {
            // A vector of the old content goes, also one that a client made. A vector by a former model of ours goes,
            // too.
            let goes = |one: &Extension| {
                if is_other { one.url == EMBEDDING_URL } else { is_own(one) }
            };
            record.extension.get_or_insert_default().retain(|one| !goes(one));
        }
        self.write(&mut record, state);
        // A tier that time has changed stays.
        record.tier = self.tier.filter(|_| before.tier.is_none());
        finished(record, moves)
    }

    fn write(&self, record: &mut MemoryRecord, state: Map) {
        record.content.clone_from(&self.content);
        record.kind = self.kind;
        record.experience_type = self.experience_type;
        record.importance = self.importance.and_then(Number::from_f64);
        record.event_time = self.event_time.map(Into::into);
        record.valid_until = self.valid_until.map(Into::into);
        record.parent_id.clone_from(&self.parent);
        let entities: Vec<_> = self.entities.iter().cloned().map(Into::into).collect();
        record.entity_refs = Some(entities).filter(|entities| !entities.is_empty());
        let extensions = record.extension.get_or_insert_default();
        extensions.retain(|extension| extension.url != COMPASS_URL);
        extensions.push(Extension::json(COMPASS_URL, state));
        extensions.extend(self.vector.clone());
    }
}

/// Writes a record as it is.
pub(super) fn unchanged(record: &MemoryRecord) -> Value {
    finished(record.clone(), false)
}

/// Writes a record without what the engine keeps by itself: dates, versions, and accesses unless they are stated.
fn finished(record: MemoryRecord, states_decay: bool) -> Value {
    let mut value = Resource::from(record).to_value();
    if let Some(map) = value.as_object_mut() {
        for name in ["createdAt", "version", "meta"] {
            map.remove(name);
        }
        if !states_decay {
            map.remove("decay");
        }
    }
    value
}
