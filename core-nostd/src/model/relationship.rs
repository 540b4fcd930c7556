//! Relationship: a directed edge between two entities.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Extension, Meta, NormalizationScheme, NormalizedOver, tagged};
use crate::instant::Instant;
use crate::number::Number;
use crate::reference::{Id, Ref, Reference};

/// A directed, weighted edge between two entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "resourceType", rename_all = "camelCase", deny_unknown_fields)]
pub struct Relationship {
    /// Unique among resources of this type.
    pub id: Id,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// The entity the edge leaves.
    pub from: Reference,
    /// The entity it leads to.
    pub to: Reference,
    /// The relation, in an open vocabulary of snake_case words.
    pub relation_type: String,
    /// Weight in [0, 1], private to the producer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Number>,
    /// Weight of the way back, in [0, 1] (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_strength: Option<Number>,
    /// Portable weight in [0, 1]; goes with `normalization` (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalized_strength: Option<Number>,
    /// The normalization of the portable weight (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalization: Option<EdgeNormalization>,
    /// A note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Time at which it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Instant>,
    /// Time at which it was last seen to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_at: Option<Instant>,
    /// Time at which it ceased to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated_at: Option<Instant>,
    /// The episode that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_episode: Option<Reference>,
    /// Data beyond the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<Vec<Extension>>,
}

tagged!(Relationship);

impl Relationship {
    /// An edge with nothing but what every edge must have.
    pub fn new(id: Id, from: Ref, relation_type: impl Into<String>, to: Ref) -> Self {
        Self {
            id,
            meta: None,
            from: from.into(),
            to: to.into(),
            relation_type: relation_type.into(),
            strength: None,
            reverse_strength: None,
            normalized_strength: None,
            normalization: None,
            context: None,
            created_at: None,
            valid_at: None,
            invalidated_at: None,
            source_episode: None,
            extension: None,
        }
    }
}

/// The regime under which `normalizedStrength` is portable (draft).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeNormalization {
    /// The normalization of weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<NormalizationScheme>,
    /// Over which edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<NormalizedOver>,
}
