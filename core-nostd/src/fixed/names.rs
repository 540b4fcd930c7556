//! Names of fixed capacity: ids, references, frames.

use core::fmt;

use super::Text;
use crate::reference::{IdError, RefError, ResourceType, check_id, split};

/// An identifier of at most `N` characters: see [`check_id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id<const N: usize>(Text<N>);

impl<const N: usize> Id<N> {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> TryFrom<&str> for Id<N> {
    type Error = NameError;

    fn try_from(text: &str) -> Result<Self, NameError> {
        check_id(text).map_err(NameError::Id)?;
        Text::try_from(text).map(Self).map_err(|_| NameError::NoRoom)
    }
}

/// The name of a resource, `Type/id`, whose id has at most `N` characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<const N: usize> {
    /// Its type.
    pub kind: ResourceType,
    /// Its id within that type.
    pub id: Id<N>,
}

impl<const N: usize> TryFrom<&str> for Reference<N> {
    type Error = NameError;

    fn try_from(text: &str) -> Result<Self, NameError> {
        let (kind, id) = split(text).map_err(NameError::Reference)?;
        Ok(Self { kind, id: id.try_into()? })
    }
}

/// The name of a coordinate frame, such as `map`, of 1 to `N` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<const N: usize>(Text<N>);

impl<const N: usize> Frame<N> {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> TryFrom<&str> for Frame<N> {
    type Error = NameError;

    fn try_from(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        Text::try_from(text).map(Self).map_err(|_| NameError::NoRoom)
    }
}

/// A text that is no name here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// It is longer than the capacity this program was built with.
    NoRoom,
    /// A frame has no name.
    Empty,
    /// It is no identifier.
    Id(IdError),
    /// It is no reference.
    Reference(RefError),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom => f.write_str("longer than this program has room for"),
            Self::Empty => f.write_str("a frame needs a name"),
            Self::Id(error) => error.fmt(f),
            Self::Reference(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for NameError {}
