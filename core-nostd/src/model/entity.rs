//! Entity: a named thing.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Extension, Label, Meta, tagged};
use crate::instant::Instant;
use crate::number::Number;
use crate::reference::Id;

/// A person, place, organization, concept, product, skill or keyword.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "resourceType", rename_all = "camelCase", deny_unknown_fields)]
pub struct Entity {
    /// Unique among resources of this type.
    pub id: Id,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Canonical surface form.
    pub name: String,
    /// Type labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<Label>>,
    /// Summary of what surrounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Number of mentions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mention_count: Option<Number>,
    /// Importance in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salience: Option<Number>,
    /// True if the name is a proper noun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proper_noun: Option<bool>,
    /// Type-specific attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<BTreeMap<String, String>>,
    /// Time at which it was first recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Instant>,
    /// Time at which it was last met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Instant>,
    /// Data beyond the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<Vec<Extension>>,
}

tagged!(Entity);

impl Entity {
    /// An entity with nothing but what every entity must have.
    pub fn new(id: Id, name: impl Into<String>) -> Self {
        Self {
            id,
            meta: None,
            name: name.into(),
            labels: None,
            summary: None,
            mention_count: None,
            salience: None,
            proper_noun: None,
            attributes: None,
            created_at: None,
            last_seen_at: None,
            extension: None,
        }
    }
}
