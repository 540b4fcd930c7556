//! Any of the four resources, and what they have in common.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Entity, Episode, Extension, MemoryRecord, Meta, Relationship, take_tag};
use crate::instant::Instant;
use crate::reference::{Id, Ref, Reference, ResourceType};
use crate::validate::{self, Fault, Severity};
use crate::value::{DeError, Value, to_value};

/// One entry of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Resource {
    /// The atomic unit of memory.
    MemoryRecord(Box<MemoryRecord>),
    /// A named thing.
    Entity(Box<Entity>),
    /// A directed edge between two entities.
    Relationship(Box<Relationship>),
    /// A bounded experience.
    Episode(Box<Episode>),
}

/// The same expression for whichever resource it is.
macro_rules! each {
    ($resource:expr, $inner:ident => $result:expr) => {
        match $resource {
            Resource::MemoryRecord($inner) => $result,
            Resource::Entity($inner) => $result,
            Resource::Relationship($inner) => $result,
            Resource::Episode($inner) => $result,
        }
    };
}

impl Resource {
    /// Its type.
    pub fn resource_type(&self) -> ResourceType {
        match self {
            Self::MemoryRecord(_) => ResourceType::MemoryRecord,
            Self::Entity(_) => ResourceType::Entity,
            Self::Relationship(_) => ResourceType::Relationship,
            Self::Episode(_) => ResourceType::Episode,
        }
    }

    /// Its id within its type.
    pub fn id(&self) -> &Id {
        each!(self, resource => &resource.id)
    }

    /// Its name.
    pub fn reference(&self) -> Ref {
        Ref::new(self.resource_type(), self.id().clone())
    }

    /// Its metadata.
    pub fn meta(&self) -> Option<&Meta> {
        each!(self, resource => resource.meta.as_ref())
    }

    /// Its metadata, to be changed.
    pub fn meta_mut(&mut self) -> &mut Option<Meta> {
        each!(self, resource => &mut resource.meta)
    }

    /// Time at which it was recorded, as far as it says.
    pub fn created_at(&self) -> Option<&Instant> {
        match self {
            Self::MemoryRecord(record) => Some(&record.created_at),
            Self::Episode(episode) => Some(&episode.created_at),
            Self::Entity(entity) => entity.created_at.as_ref(),
            Self::Relationship(relationship) => relationship.created_at.as_ref(),
        }
    }

    /// Its extensions; none if the field is absent.
    pub fn extensions(&self) -> &[Extension] {
        each!(self, resource => resource.extension.as_deref().unwrap_or_default())
    }

    /// Its extensions, to be changed. An absent field becomes an empty list, which says the same.
    pub fn extensions_mut(&mut self) -> &mut Vec<Extension> {
        each!(self, resource => resource.extension.get_or_insert_default())
    }

    /// Shows every reference that must resolve: where it stands in the resource, whether the resource
    /// is invalid without it, and what it names. `interference.competesWith` need not resolve and is
    /// not shown.
    pub fn for_each_reference(&self, mut see: impl FnMut(&str, bool, &Ref)) {
        let mut list = |references: &Option<Vec<Reference>>| {
            for (index, reference) in references.iter().flatten().enumerate() {
                see(&format!("/entityRefs/{index}/ref"), false, &reference.target);
            }
        };
        match self {
            Self::MemoryRecord(record) => {
                list(&record.entity_refs);
                if let Some(parent) = &record.parent_id {
                    let parent = Ref::new(ResourceType::MemoryRecord, parent.clone());
                    see("/parentId", false, &parent);
                }
            }
            Self::Episode(episode) => list(&episode.entity_refs),
            Self::Relationship(relationship) => {
                see("/from/ref", true, &relationship.from.target);
                see("/to/ref", true, &relationship.to.target);
                if let Some(episode) = &relationship.source_episode {
                    see("/sourceEpisode/ref", false, &episode.target);
                }
            }
            Self::Entity(_) => {}
        }
    }

    /// Drops the optional references `keep` says no to: elements of `entityRefs`, `parentId` and
    /// `sourceEpisode`. Both ends of a relationship stay; without them it would be none. Returns
    /// whether anything was dropped.
    pub fn retain_references(&mut self, mut keep: impl FnMut(&Ref) -> bool) -> bool {
        let mut dropped = false;
        let mut list = |references: &mut Option<Vec<Reference>>| {
            if let Some(references) = references {
                let before = references.len();
                references.retain(|reference| keep(&reference.target));
                dropped |= references.len() < before;
            }
        };
        match self {
            Self::MemoryRecord(record) => {
                list(&mut record.entity_refs);
                if let Some(parent) = &record.parent_id
                    && !keep(&Ref::new(ResourceType::MemoryRecord, parent.clone()))
                {
                    record.parent_id = None;
                    dropped = true;
                }
            }
            Self::Episode(episode) => list(&mut episode.entity_refs),
            Self::Relationship(relationship) => {
                if let Some(episode) = &relationship.source_episode
                    && !keep(&episode.target)
                {
                    relationship.source_episode = None;
                    dropped = true;
                }
            }
            Self::Entity(_) => {}
        }
        dropped
    }

    /// The dynamic form, `resourceType` first.
    pub fn to_value(&self) -> Value {
        // Every field has a JSON form, so this cannot fail.
        to_value(self).unwrap_or_default()
    }

    /// Reads one resource, or says everything that is wrong with it.
    pub fn from_value(value: Value) -> Result<Self, Vec<Fault>> {
        Self::from_value_at(value, "/")
    }

    /// As [`Resource::from_value`], for a value that stands at `base` in a larger document.
    pub fn from_value_at(value: Value, base: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        validate::validate_resource(&value, base, &mut faults);
        faults.retain(|fault| fault.severity() == Severity::Error);
        if !faults.is_empty() {
            return Err(faults);
        }
        Self::typed(value).map_err(|error| alloc::vec![validate::disagreement(base, &error)])
    }

    /// The typed form of a value, by its `resourceType`.
    pub(super) fn typed(mut value: Value) -> Result<Self, DeError> {
        let kind = value.get("resourceType").and_then(Value::as_str).unwrap_or_default();
        let kind: ResourceType = kind.parse().map_err(de::Error::custom)?;
        take_tag(&mut value, kind.as_str()).map_err(de::Error::custom)?;
        // The derived functions, which read the fields beside the tag.
        Ok(match kind {
            ResourceType::MemoryRecord => MemoryRecord::deserialize(value)?.into(),
            ResourceType::Entity => Entity::deserialize(value)?.into(),
            ResourceType::Relationship => Relationship::deserialize(value)?.into(),
            ResourceType::Episode => Episode::deserialize(value)?.into(),
        })
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::typed(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl From<MemoryRecord> for Resource {
    fn from(record: MemoryRecord) -> Self {
        Self::MemoryRecord(Box::new(record))
    }
}

impl From<Entity> for Resource {
    fn from(entity: Entity) -> Self {
        Self::Entity(Box::new(entity))
    }
}

impl From<Relationship> for Resource {
    fn from(relationship: Relationship) -> Self {
        Self::Relationship(Box::new(relationship))
    }
}

impl From<Episode> for Resource {
    fn from(episode: Episode) -> Self {
        Self::Episode(Box::new(episode))
    }
}
