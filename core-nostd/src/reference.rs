//! Names of resources: the four types, ids, and `Type/id` references.

#[cfg(feature = "alloc")]
mod owned;

#[cfg(feature = "alloc")]
pub use owned::{Id, Ref, Reference};

use core::fmt;
use core::str::FromStr;

/// The four resource types of R1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "alloc", derive(serde::Serialize, serde::Deserialize))]
pub enum ResourceType {
    /// The atomic unit of memory.
    MemoryRecord,
    /// A named thing.
    Entity,
    /// A directed edge between two entities.
    Relationship,
    /// A bounded experience the others derive from.
    Episode,
}

impl ResourceType {
    /// Every type, in the order of the specification.
    pub const ALL: [Self; 4] =
        [Self::MemoryRecord, Self::Entity, Self::Relationship, Self::Episode];

    /// The name as `resourceType` and references spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MemoryRecord => "MemoryRecord",
            Self::Entity => "Entity",
            Self::Relationship => "Relationship",
            Self::Episode => "Episode",
        }
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ResourceType {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(RefError::UnknownType)
    }
}

/// Longest identifier, in characters.
pub const MAX_ID_LEN: usize = 128;

/// Says why `text` is no identifier, without allocating.
pub fn check_id(text: &str) -> Result<(), IdError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if let Some((at, found)) = text.char_indices().find(|&(_, c)| !allowed(c)) {
        return Err(IdError::Character { at, found });
    }
    if text.len() > MAX_ID_LEN {
        return Err(IdError::TooLong { len: text.len() });
    }
    Ok(())
}

/// A text that is no identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdError {
    /// The text is empty.
    Empty,
    /// The text is longer than [`MAX_ID_LEN`].
    TooLong {
        /// Its length.
        len: usize,
    },
    /// A character outside the alphabet.
    Character {
        /// Bytes before it.
        at: usize,
        /// The character.
        found: char,
    },
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an id cannot be empty"),
            Self::TooLong { len } => {
                write!(f, "an id has at most {} characters, not {len}", MAX_ID_LEN)
            }
            Self::Character { found, .. } => {
                write!(f, "{found:?} is not allowed in an id; use letters, digits and . _ : -")
            }
        }
    }
}

impl core::error::Error for IdError {}

/// The parts of a `Type/id` text, checked, without allocating.
#[cfg(any(feature = "alloc", feature = "fixed"))]
pub(crate) fn split(text: &str) -> Result<(ResourceType, &str), RefError> {
    let (kind, id) = text.split_once('/').ok_or(RefError::NoSlash)?;
    let kind = kind.parse()?;
    check_id(id).map_err(RefError::Id)?;
    Ok((kind, id))
}

/// A text that is no reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefError {
    /// There is no slash between type and id.
    NoSlash,
    /// The part before the slash is none of the four types.
    UnknownType,
    /// The part after the slash is no id.
    Id(IdError),
}

impl fmt::Display for RefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlash => f.write_str("a reference is written Type/id, as in Entity/kitchen"),
            Self::UnknownType => {
                f.write_str("the type is not one of MemoryRecord, Entity, Relationship, Episode")
            }
            Self::Id(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RefError {}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_pattern() {
        for good in ["a", "A.b_c:d-9", &"x".repeat(128)] {
            assert_eq!(Id::new(good).unwrap().as_str(), good);
        }
        assert_eq!(Id::new(""), Err(IdError::Empty));
        assert_eq!(Id::new("x".repeat(129)), Err(IdError::TooLong { len: 129 }));
        for (bad, at) in [("a b", 1), ("küche", 1), ("a/b", 1), ("a\n", 1), ("%", 0)] {
            assert!(matches!(Id::new(bad), Err(IdError::Character { at: a, .. }) if a == at));
        }
    }

    #[test]
    fn references_split_at_the_first_slash() {
        let target: Ref = "Entity/varun".parse().unwrap();
        assert_eq!(target.kind, ResourceType::Entity);
        assert_eq!(target.to_string(), "Entity/varun");
        assert_eq!("Entity".parse::<Ref>(), Err(RefError::NoSlash));
        assert_eq!("entity/x".parse::<Ref>(), Err(RefError::UnknownType));
        assert_eq!("Bundle/x".parse::<Ref>(), Err(RefError::UnknownType));
        assert!(matches!("Entity/a/b".parse::<Ref>(), Err(RefError::Id(_))));
        assert_eq!("Entity/".parse::<Ref>(), Err(RefError::Id(IdError::Empty)));
    }
}
