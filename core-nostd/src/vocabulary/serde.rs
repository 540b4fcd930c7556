//! The words of the lists through serde: as text.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    EpisodeSource, ExperienceType, Kind, Label, NormalizationScheme, NormalizedOver, OmirVersion,
    SketchDomain, SketchKind,
};
use crate::tier::Tier;

/// Hands the text to a list's own reader.
struct Word<T, E>(fn(&str) -> Result<T, E>);

impl<T, E: fmt::Display> de::Visitor<'_> for Word<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<D: de::Error>(self, text: &str) -> Result<T, D> {
        (self.0)(text).map_err(D::custom)
    }
}

/// Each of these lists is read and written as the word that documents spell.
macro_rules! as_text {
    ($($list:ident),+) => {$(
        impl Serialize for $list {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $list {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Word(Self::from_str))
            }
        }
    )+};
}
as_text!(
    OmirVersion,
    Kind,
    ExperienceType,
    Label,
    EpisodeSource,
    NormalizationScheme,
    NormalizedOver,
    SketchKind,
    SketchDomain,
    Tier
);
