//! Names that own their text.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{IdError, MAX_ID_LEN, RefError, ResourceType, check_id, split};

/// An identifier: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`, unique within its type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

impl Id {
    /// Longest identifier, in characters.
    pub const MAX_LEN: usize = MAX_ID_LEN;

    /// Checks `text`.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        Self::check(&text)?;
        Ok(Self(text))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says why `text` is no identifier, without allocating: [`check_id`].
    pub fn check(text: &str) -> Result<(), IdError> {
        check_id(text)
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The name of one resource, written `Type/id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref {
    /// The resource's type.
    pub kind: ResourceType,
    /// Its id within that type.
    pub id: Id,
}

impl Ref {
    /// The name of the resource of that type and id.
    pub const fn new(kind: ResourceType, id: Id) -> Self {
        Self { kind, id }
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

impl FromStr for Ref {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let (kind, id) = split(text)?;
        Ok(Self { kind, id: Id(id.into()) })
    }
}

impl Serialize for Ref {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{self}"))
    }
}

impl<'de> Deserialize<'de> for Ref {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A reference as a resource holds it: `{"ref": "Type/id"}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The resource that is meant.
    #[serde(rename = "ref")]
    pub target: Ref,
}

impl From<Ref> for Reference {
    fn from(target: Ref) -> Self {
        Self { target }
    }
}
