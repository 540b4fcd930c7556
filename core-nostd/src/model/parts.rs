//! Parts of several resources: metadata, extensions, confidence, decay, provenance.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::OmirVersion;
use crate::instant::Instant;
use crate::number::Number;
use crate::value::Value;

/// Metadata any resource may carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Meta {
    /// The release; when `meta` is there the validator demands it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omir_version: Option<OmirVersion>,
    /// Canonical URLs of the profiles this resource claims to conform to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Vec<String>>,
    /// The implementation that produced the resource, as `name/version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Time at which the resource was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Instant>,
    /// Time at which it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Instant>,
    /// Maturity level of the resource type in the specification, 0 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maturity: Option<Number>,
}

impl Meta {
    /// The least a valid `meta` holds: the release.
    pub fn r1() -> Self {
        Self { omir_version: Some(OmirVersion::R1), ..Self::default() }
    }
}

/// Implementation-specific data under a name of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Extension {
    /// Canonical URL that defines this extension.
    pub url: String,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_string: Option<String>,
    /// A number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_number: Option<Number>,
    /// A truth value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_boolean: Option<bool>,
    /// Any JSON; `Some(Value::Null)` is an explicit `null`.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub value_json: Option<Value>,
}

impl Extension {
    /// An extension without a value yet.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            value_string: None,
            value_number: None,
            value_boolean: None,
            value_json: None,
        }
    }

    /// An extension with structured content.
    pub fn json(url: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { value_json: Some(value.into()), ..Self::new(url) }
    }
}

/// Belief as a Beta posterior and its point estimate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confidence {
    /// Evidence for, above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Number>,
    /// Evidence against, above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<Number>,
    /// Calibrated estimate in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Number>,
}

/// Forgetting state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decay {
    /// Half-life in hours, above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life_hours: Option<Number>,
    /// Time at which the memory was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_access: Option<Instant>,
    /// Number of uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_count: Option<Number>,
    /// True if it resists decay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchored: Option<bool>,
}

/// Origin of a record, and how far to trust it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provenance {
    /// The origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its class, such as `conversation` or `observation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    /// Trust in it, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credibility: Option<Number>,
    /// Stable name upstream, as `system:id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}
