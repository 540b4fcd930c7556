//! MemoryRecord: the atomic unit of memory.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Confidence, Decay, ExperienceType, Extension, Kind, Meta, Provenance, Tier, tagged};
use crate::instant::Instant;
use crate::number::Number;
use crate::reference::{Id, Reference};

/// A remembered experience, plan, prompt or learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "resourceType", rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryRecord {
    /// Unique among resources of this type.
    pub id: Id,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// The content.
    pub content: String,
    /// Lifecycle class; `memory` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Finer nature of the experience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experience_type: Option<ExperienceType>,
    /// Place in the memory hierarchy; `working` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Time at which it was recorded.
    pub created_at: Instant,
    /// Time of the event that is described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time: Option<Instant>,
    /// Value in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<Number>,
    /// Belief.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Forgetting state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay: Option<Decay>,
    /// Origin and trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Entities mentioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_refs: Option<Vec<Reference>>,
    /// Id of the parent record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Id>,
    /// Superseded after this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Instant>,
    /// Counts the changes, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Number>,
    /// Novelty against a model (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information_content: Option<InformationContent>,
    /// Consolidation priority in [0, 1] (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_priority: Option<Number>,
    /// The reason for its competition with others (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
    /// Data beyond the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<Vec<Extension>>,
}

tagged!(MemoryRecord);

impl MemoryRecord {
    /// A record with nothing but what every record must have.
    pub fn new(id: Id, content: impl Into<String>, created_at: Instant) -> Self {
        Self {
            id,
            meta: None,
            content: content.into(),
            kind: None,
            experience_type: None,
            tier: None,
            created_at,
            event_time: None,
            importance: None,
            confidence: None,
            decay: None,
            provenance: None,
            entity_refs: None,
            parent_id: None,
            valid_until: None,
            version: None,
            information_content: None,
            replay_priority: None,
            interference: None,
            extension: None,
        }
    }
}

/// The new information in a record, against a generative model (draft).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InformationContent {
    /// Novelty in [0, 1], relative to the producer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub novelty: Option<Number>,
    /// Surprisal in bits, not negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprisal_bits: Option<Number>,
    /// The model both are measured against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// True if the content can be regenerated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstructable: Option<bool>,
    /// The model that can regenerate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconstructable_by: Option<String>,
}

/// Competition of a record with similar ones (draft).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Interference {
    /// Probability in [0, 1] that it is needed soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need_probability: Option<Number>,
    /// Crowding among its neighbours, not negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_density: Option<Number>,
    /// Similar records. These references need not resolve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competes_with: Option<Vec<Reference>>,
}
