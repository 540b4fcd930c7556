//! Facts of one version of a resource that the index needs, drawn from the typed model.
//!
//! This is the only place that says which fields are searchable and what stands in for a missing
//! one. The live writer, the log replay and the rebuild of a segment all come through here, so
//! they cannot disagree.
//!
//! Invariant 11 of ARCHITECTURE.md.

use omir_core::confidence::Beta;
use omir_core::forgetting::HalfLife;
use omir_core::geo::GeoPoint;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Decay, ExperienceType, Kind, Label, Resource};
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::tier::Tier;
use omird_embedding::Given;
use omird_store::RefKey;
use serde::{Deserialize, Serialize};

use super::producers::Producer;
use super::text::DocTerms;

/// The enumerated fields of a resource, one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Position in [`ResourceType::ALL`].
    pub resource_type: u8,
    /// Position in [`Kind::ALL`]; [`Class::NONE`] for what is no memory record.
    pub kind: u8,
    /// Position in [`Tier::ALL`]; [`Class::NONE`] for what is no memory record.
    pub tier: u8,
    /// Position in [`ExperienceType::ALL`], or [`Class::NONE`].
    pub experience: u8,
    /// One bit for each of [`Label::ALL`], and [`Class::CARRIES_VECTOR`].
    pub labels: u16,
}

const _: () = assert!(Label::ALL.len() < 15, "the highest bit is no label");

impl Class {
    /// Stands for an absent value.
    pub const NONE: u8 = u8::MAX;
    /// The bit of `labels` that says that the resource carries a vector.
    const CARRIES_VECTOR: u16 = 1 << 15;

    /// Returns true if the resource carries a vector that a client stated.
    pub fn carries_vector(&self) -> bool {
        self.labels & Self::CARRIES_VECTOR != 0
    }

    /// The resource's type.
    pub fn resource_type(&self) -> ResourceType {
        ResourceType::ALL[usize::from(self.resource_type) % ResourceType::ALL.len()]
    }

    /// Returns true for an event: an Episode, or a record of kind `memory` that is no
    /// intention. A lesson, a plan or an intention holds until something else does.
    pub fn is_event(&self) -> bool {
        match self.resource_type() {
            ResourceType::MemoryRecord => {
                self.kind == position(Kind::ALL, &Kind::Memory) && !self.is_intention()
            }
            ResourceType::Episode => true,
            ResourceType::Entity | ResourceType::Relationship => false,
        }
    }

    /// Returns true for an intention (prospective memory, spec: Memory Semantics §8).
    pub fn is_intention(&self) -> bool {
        self.experience == position(ExperienceType::ALL, &ExperienceType::Intention)
    }
}

/// Position of an enumerated value in its list.
pub(crate) fn position<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter()
        .position(|candidate| candidate == value)
        .and_then(|index| u8::try_from(index).ok())
        .unwrap_or(Class::NONE)
}

/// The state of forgetting of a record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DecayState {
    /// Half-life in hours; the default of the core where the record states none.
    pub half_life_hours: f64,
    /// Last access, microseconds since 1970; `createdAt` where the record states none.
    pub last_access: i64,
    /// Accesses so far.
    pub access_count: u32,
    /// True if the record resists forgetting.
    pub anchored: bool,
}

/// A position in space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Coordinate frame, by name.
    pub frame: String,
    /// Metres, REP-103 axes.
    pub position: [f64; 3],
    /// Latitude and longitude in degrees, altitude in metres (WGS 84).
    pub geo: Option<(f64, f64, Option<f64>)>,
}

impl Position {
    /// The geographic point, if there is one.
    pub fn geo_point(&self) -> Option<GeoPoint> {
        let (lat, lon, alt) = self.geo?;
        GeoPoint::new(lat, lon, alt).ok()
    }
}

/// The times of a version, kept apart from the rest of [`Facts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// [`Facts::when`].
    pub when: Option<(i64, u32)>,
    /// [`Facts::since`].
    pub since: Option<i64>,
    /// [`Facts::valid_until`].
    pub valid_until: Option<i64>,
}

/// Facts of one version, without its words. Places and times are kept apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The resource's key.
    pub key: RefKey,
    /// Its enumerated fields.
    pub class: Class,
    /// `eventTime`, else `createdAt`, as seconds and nanoseconds; `None` if it has neither.
    #[serde(skip)]
    pub when: Option<(i64, u32)>,
    /// `createdAt` of a record; of a relationship when its strength was last seen to hold. What else
    /// states it has it in `when`. Microseconds.
    #[serde(skip)]
    pub since: Option<i64>,
    /// `validUntil` of a record, `invalidatedAt` of a relationship; microseconds.
    #[serde(skip)]
    pub valid_until: Option<i64>,
    /// `importance` of a record, `salience` of an entity, `strength` of a relationship.
    pub importance: Option<f64>,
    /// `confidence.calibrated`, else the damped mean of its α and β.
    pub confidence: Option<f64>,
    /// Another producer, whose scores have a scale of their own; `None` for us.
    pub producer: Option<Producer>,
    /// Confidence by our own rule, where another producer states the evidence: that can be compared,
    /// its `calibrated` cannot (spec: Memory Semantics §1).
    pub belief: Option<f64>,
    /// Forgetting state; only memory records have one.
    pub access: Option<DecayState>,
    /// Its positions, one for each spatial pose it carries: one thing may have one in `map` and
    /// one in `odom`.
    #[serde(skip)]
    pub places: Vec<Position>,
    /// Entities it mentions or connects.
    pub mentions: Vec<RefKey>,
    /// Those of `mentions` it cannot exist without: the ends of a relationship.
    pub required: Vec<RefKey>,
    /// The record it is a part of.
    pub parent: Option<RefKey>,
}

fn micros(instant: &Instant) -> i64 {
    instant.at().as_micros()
}

fn number(n: &Option<Number>) -> Option<f64> {
    n.as_ref().map(Number::as_f64)
}

impl Facts {
    /// Draws the facts from a valid resource.
    pub fn of(resource: &Resource) -> Self {
        let mut mentions = Vec::new();
        let mut required = Vec::new();
        resource.for_each_reference(|_, is_required, target: &Ref| {
            if target.kind == ResourceType::Entity {
                let key = RefKey::of(target);
                if !mentions.contains(&key) {
                    mentions.push(key);
                }
                if is_required && !required.contains(&key) {
                    required.push(key);
                }
            }
        });
        let mut facts = Self {
            key: RefKey::of(&resource.reference()),
            class: Class {
                resource_type: position(&ResourceType::ALL, &resource.resource_type()),
                kind: Class::NONE,
                tier: Class::NONE,
                experience: Class::NONE,
                labels: if Given::is_in(resource) { Class::CARRIES_VECTOR } else { 0 },
            },
            when: resource.created_at().map(|at| pair(at.at())),
            since: None,
            valid_until: None,
            importance: None,
            confidence: None,
            producer: Producer::of(resource),
            belief: None,
            access: None,
            places: places_of(resource),
            mentions,
            required,
            parent: None,
        };
        match resource {
            Resource::MemoryRecord(record) => {
                facts.class.kind = position(Kind::ALL, &record.kind.unwrap_or(Kind::Memory));
                facts.class.tier = position(&Tier::ALL, &record.tier.unwrap_or(Tier::Working));
                if let Some(experience) = &record.experience_type {
                    facts.class.experience = position(ExperienceType::ALL, experience);
                }
                if let Some(event) = &record.event_time {
                    facts.when = Some(pair(event.at()));
                }
                facts.since = Some(micros(&record.created_at));
                facts.valid_until = record.valid_until.as_ref().map(micros);
                facts.parent = record.parent_id.as_ref().map(|id| {
                    RefKey::of(&Ref { kind: ResourceType::MemoryRecord, id: id.clone() })
                });
                facts.importance = number(&record.importance);
                if let Some(confidence) = &record.confidence {
                    let evidence = number(&confidence.alpha).zip(number(&confidence.beta));
                    let belief = evidence.and_then(|(alpha, beta)| Beta::new(alpha, beta));
                    let belief = belief.map(Beta::damped);
                    facts.confidence = number(&confidence.calibrated).or(belief);
                    facts.belief = belief.filter(|_| facts.producer.is_some());
                }
                facts.access = Some(access_of(record.decay.as_ref(), record.created_at.at()));
            }
            Resource::Entity(entity) => {
                facts.importance = number(&entity.salience);
                for label in entity.labels.iter().flatten() {
                    facts.class.labels |= 1 << position(Label::ALL, label);
                }
            }
            Resource::Relationship(relationship) => {
                facts.importance = number(&relationship.strength);
                let updated =
                    relationship.meta.as_ref().and_then(|meta| meta.last_updated.as_ref());
                let held = relationship.valid_at.as_ref().or(updated);
                facts.since = held.or(relationship.created_at.as_ref()).map(micros);
                facts.valid_until = relationship.invalidated_at.as_ref().map(micros);
            }
            Resource::Episode(episode) => {
                if let Some(event) = &episode.event_time {
                    facts.when = Some(pair(event.at()));
                }
            }
        }
        facts
    }
}

fn places_of(resource: &Resource) -> Vec<Position> {
    let poses = resource.extensions().iter().filter(|extension| extension.url == SPATIAL_POSE_URL);
    // Extensions that are no pose are refused when they come in; an older store may hold some.
    poses
        .filter_map(|extension| SpatialPose::from_extension(extension).ok())
        .map(|pose| Position {
            frame: pose.frame,
            position: [pose.position.x, pose.position.y, pose.position.z],
            geo: pose.geo.map(|geo| (geo.lat(), geo.lon(), geo.alt())),
        })
        .collect()
}

fn pair(at: Timestamp) -> (i64, u32) {
    (at.secs(), at.nanos())
}

/// A record that states no access was last thought of when it was made: `createdAt`, its encoding
/// time, not the event, which may be long past.
fn access_of(decay: Option<&Decay>, created: Timestamp) -> DecayState {
    let when = created.as_micros();
    let stated = decay.and_then(|d| number(&d.half_life_hours)).and_then(HalfLife::new);
    DecayState {
        half_life_hours: stated.unwrap_or_default().hours(),
        last_access: decay.and_then(|d| d.last_access.as_ref()).map_or(when, micros),
        access_count: decay
            .and_then(|d| d.access_count.as_ref())
            .map_or(0, |n| u32::try_from(n.as_u64().unwrap_or(u64::MAX)).unwrap_or(u32::MAX)),
        anchored: decay.and_then(|d| d.anchored).unwrap_or(false),
    }
}

/// The text of a resource that a vector is made of; `None` for what says nothing by itself, as a relationship between two
/// names.
pub(crate) fn meaning_of(resource: &Resource) -> Option<String> {
    let mut fields: Vec<&str> = Vec::new();
    match resource {
        Resource::MemoryRecord(record) => fields.push(&record.content),
        Resource::Entity(entity) => {
            fields.push(&entity.name);
            fields.extend(entity.summary.as_deref());
            fields.extend(entity.attributes.iter().flatten().map(|(_, value)| value.as_str()));
        }
        Resource::Relationship(_) => return None,
        Resource::Episode(episode) => {
            fields.extend(episode.name.as_deref());
            fields.push(&episode.content);
        }
    }
    Some(fields.join(". "))
}

/// The words of a resource: what `q` searches.
pub(crate) fn terms_of(resource: &Resource) -> DocTerms {
    DocTerms::of(texts_of(resource))
}

/// The texts of a resource that its words come from.
pub(crate) fn texts_of(resource: &Resource) -> Vec<&str> {
    let mut fields: Vec<&str> = Vec::new();
    match resource {
        Resource::MemoryRecord(record) => fields.push(&record.content),
        Resource::Entity(entity) => {
            fields.push(&entity.name);
            fields.extend(entity.summary.as_deref());
            fields.extend(entity.labels.iter().flatten().map(|label| label.as_str()));
            fields.extend(entity.attributes.iter().flatten().map(|(_, value)| value.as_str()));
        }
        Resource::Relationship(relationship) => {
            fields.push(&relationship.relation_type);
            fields.extend(relationship.context.as_deref());
        }
        Resource::Episode(episode) => {
            fields.extend(episode.name.as_deref());
            fields.push(&episode.content);
        }
    }
    fields
}
