//! Bundle: the document that carries resources.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{OmirVersion, Resource, SketchDomain, SketchKind, tagged};
use crate::instant::Instant;
use crate::number::Number;
use crate::reference::Id;
use crate::validate::{self, Fault};
use crate::value::{DeError, Value, from_value, to_value};

/// A collection of resources, as it lies in an `.omir` file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "resourceType", rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    /// JSON-LD context, kept as it came.
    #[serde(
        rename = "@context",
        default,
        deserialize_with = "super::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub context: Option<Value>,
    /// The release.
    pub omir_version: OmirVersion,
    /// A name for the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// Time at which it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated_at: Option<Instant>,
    /// The implementation that wrote it, as `name/version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Contents that the producer plausibly holds (draft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub familiarity_sketch: Option<FamiliaritySketch>,
    /// The resources; their order means nothing.
    pub entry: Vec<Resource>,
}

tagged!(Bundle);

impl Bundle {
    /// A bundle of these resources and nothing else.
    pub fn new(entry: Vec<Resource>) -> Self {
        Self {
            context: None,
            omir_version: OmirVersion::R1,
            id: None,
            generated_at: None,
            source: None,
            familiarity_sketch: None,
            entry,
        }
    }

    /// The dynamic form, `resourceType` first.
    pub fn to_value(&self) -> Value {
        // Every field has a JSON form, so this cannot fail.
        to_value(self).unwrap_or_default()
    }

    /// Reads a bundle whose envelope and entries are valid; else every fault, warnings left out.
    ///
    /// Whether ids are unique and references resolve is not asked here, since a part of a memory may
    /// refer to the rest of it: [`validate::validate_bundle`] asks.
    pub fn from_value(value: Value) -> Result<Self, Vec<Fault>> {
        let faults = validate::validate_shape(&value);
        if !faults.is_empty() {
            return Err(faults);
        }
        Self::typed(value).map_err(|error| alloc::vec![validate::disagreement("/", &error)])
    }

    fn typed(mut value: Value) -> Result<Self, DeError> {
        // The entries go their own way, so that each is rebuilt once and not once per layer of serde.
        let entry = value.as_object_mut().and_then(|map| map.get_mut("entry"));
        let entry = entry.map(|entry| core::mem::replace(entry, Value::Array(Vec::new())));
        let mut bundle: Self = from_value(value)?;
        if let Some(Value::Array(entry)) = entry {
            bundle.entry = entry.into_iter().map(Resource::typed).collect::<Result<_, _>>()?;
        }
        Ok(bundle)
    }
}

/// Approximate membership over what a producer holds (draft). A negative answer is certain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FamiliaritySketch {
    /// Sketch family.
    pub kind: SketchKind,
    /// Its domain.
    pub domain: SketchDomain,
    /// Number of hash functions, from 1.
    pub hashes: Number,
    /// Width in bits, from 1.
    pub bits: Number,
    /// Named and versioned hash function.
    pub hash_alg: String,
    /// The filter, in base64.
    pub data: String,
}
