//! The four resources of OMIR R1 and the Bundle, typed.
//!
//! Field for field the schemas of the specification, draft fields included; names in the documents are
//! those of the structs in camelCase. Numbers and instants keep the form they came in, so a document
//! read and written again says what it said. Reading goes through the validator
//! ([`Resource::from_value`], [`Bundle::from_value`]), so a value of these types is always valid, and a failed read
//! returns every reason.

mod bundle;
mod entity;
mod episode;
mod parts;
mod record;
mod relationship;
mod resource;

pub use crate::tier::Tier;
pub use crate::vocabulary::{
    EpisodeSource, ExperienceType, Kind, Label, NormalizationScheme, NormalizedOver, OmirVersion,
    SketchDomain, SketchKind, UnknownWord,
};
pub use bundle::{Bundle, FamiliaritySketch};
pub use entity::Entity;
pub use episode::Episode;
pub use parts::{Confidence, Decay, Extension, Meta, Provenance};
pub use record::{InformationContent, Interference, MemoryRecord};
pub use relationship::{EdgeNormalization, Relationship};
pub use resource::Resource;

/// Serde for a struct that names its own type: `resourceType` is written first and demanded when read.
///
/// The derived code under `#[serde(remote = "Self")]` handles the other fields; this adds the tag,
/// which serde's own `tag` attribute writes but, with unknown fields denied, cannot read.
macro_rules! tagged {
    ($resource:ident) => {
        impl serde::Serialize for $resource {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $resource::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $resource {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut value =
                    <$crate::value::Value as serde::Deserialize>::deserialize(deserializer)?;
                $crate::model::take_tag(&mut value, stringify!($resource))
                    .map_err(serde::de::Error::custom)?;
                $resource::deserialize(value).map_err(serde::de::Error::custom)
            }
        }
    };
}
use tagged;

/// Removes `resourceType` from an object, which must have it and say `expected`.
fn take_tag(value: &mut crate::value::Value, expected: &str) -> Result<(), alloc::string::String> {
    let tag = value.as_object_mut().and_then(|map| map.remove("resourceType"));
    match tag {
        Some(tag) if tag.as_str() == Some(expected) => Ok(()),
        Some(tag) => Err(alloc::format!("resourceType is {tag}, expected {expected:?}")),
        None => Err(alloc::format!("resourceType {expected:?} is missing")),
    }
}

/// Reads a field that is there, `null` or not: `Some(Null)` differs from a missing field.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<crate::value::Value>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
