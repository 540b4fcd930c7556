//! Episode: a bounded experience the other resources derive from.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{EpisodeSource, Extension, Meta, tagged};
use crate::instant::Instant;
use crate::number::Number;
use crate::reference::{Id, Reference};

/// The raw event from which records, entities and relationships are derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "resourceType", rename_all = "camelCase", deny_unknown_fields)]
pub struct Episode {
    /// Unique among resources of this type.
    pub id: Id,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// A title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The experience itself.
    pub content: String,
    /// The kind of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EpisodeSource>,
    /// Time at which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time: Option<Instant>,
    /// Time at which it was recorded.
    pub created_at: Instant,
    /// Entities found in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_refs: Option<Vec<Reference>>,
    /// Further keys and texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Surprise at its boundary, in [0, 1] (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary_strength: Option<Number>,
    /// The reason for the boundary (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary_reason: Option<String>,
    /// Data beyond the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<Vec<Extension>>,
}

tagged!(Episode);

impl Episode {
    /// An episode with nothing but what every episode must have.
    pub fn new(id: Id, content: impl Into<String>, created_at: Instant) -> Self {
        Self {
            id,
            meta: None,
            name: None,
            content: content.into(),
            source: None,
            event_time: None,
            created_at,
            entity_refs: None,
            metadata: None,
            boundary_strength: None,
            boundary_reason: None,
            extension: None,
        }
    }
}
