//! Tombstones: the ends of versions that no other version replaced.

use std::fmt;

use omir_core::reference::Ref;
use serde::{Deserialize, Serialize};

use super::ref_key::RefKey;
use super::version::Stamp;

/// The name on a tombstone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// `Type/id`.
    Name(String),
    /// All that is left of the name after a compaction.
    Key(RefKey),
}

/// The origin of a deletion. It decides how long the deleted version may stay on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionOrigin {
    /// A user, who asked for it or stated until when it is valid. It is purged within a bounded time.
    User,
    /// A rule that let go of it: it is dead, and dropped when that is worth it.
    Rule,
    /// A rule that made it a part of the record with this key: it is dead, until someone has that
    /// record forgotten, and this with it.
    Merging(RefKey),
}

impl DeletionOrigin {
    /// A name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "someone",
            Self::Rule => "rule",
            Self::Merging(_) => "merging",
        }
    }
}

impl fmt::Display for DeletionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "someone",
            Self::Rule => "a rule",
            Self::Merging(_) => "a rule that made it a part of another record",
        })
    }
}

/// Why a version ended without another in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    /// It was forgotten.
    Forgotten(DeletionOrigin),
    /// A later one took its place, and that was dropped by a compaction.
    Dropped,
}

/// The end of a version within the span of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Of what.
    pub target: Target,
    /// When and as which version.
    pub stamp: Stamp,
    /// Why.
    pub ending: EndCause,
}

impl Tombstone {
    /// The tombstone of something that was just forgotten.
    pub fn of(target: &Ref, stamp: Stamp, by: DeletionOrigin) -> Self {
        Self { target: Target::Name(target.to_string()), stamp, ending: EndCause::Forgotten(by) }
    }

    /// The key of what it ends.
    pub fn key(&self) -> RefKey {
        match &self.target {
            Target::Name(name) => RefKey::of_text(name),
            Target::Key(key) => *key,
        }
    }

    /// `Type/id`, if it is not only a hash any more.
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            Target::Name(name) => Some(name),
            Target::Key(_) => None,
        }
    }

    /// Returns true if something was forgotten, and not only dropped.
    pub fn is_forgotten(&self) -> bool {
        matches!(self.ending, EndCause::Forgotten(_))
    }
}
