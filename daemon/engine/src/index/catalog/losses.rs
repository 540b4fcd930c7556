//! Losses: versions that existed, as their second copy tells (`store/log/witness.rs`), and that no file gives back.
//!
//! A reference whose newest version is lost keeps its name: what mentions it still does, its next version is above the
//! lost one, and the version before it, which is still there, is not served as current.
//!
//! Invariant 10 of ARCHITECTURE.md.

use omird_store::{KeyPrefix, RefKey};

use crate::index::doc::Stamp;

/// The newest version or tombstone of a name, if nothing as new can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Its version and time.
    pub stamp: Stamp,
    /// True if it is a tombstone: nothing is missing, but its version number is taken.
    pub is_forgotten: bool,
    /// True if nothing but damaged bytes names it. A caller that asks for it is told that it is lost. A caller that
    /// writes it again meets nothing: a protocol whose handle is gone could write no more otherwise.
    pub is_presumed: bool,
}

/// The losses, by name.
#[derive(Debug, Default)]
pub struct Losses {
    lost: hashbrown::HashMap<KeyPrefix, Lost>,
    /// True if first versions are lost whose names are unknown.
    has_unknown: bool,
}

impl Losses {
    /// The lost version that is newer than all that is held of a reference, if there is one.
    pub fn of(&self, key: &RefKey) -> Option<Lost> {
        self.lost.get(&key.prefix()).copied()
    }

    /// The lost version that a reader who asks for a reference misses.
    pub fn missed(&self, key: &RefKey) -> Option<Lost> {
        self.of(key).filter(|lost| !lost.is_forgotten)
    }

    /// The lost version that keeps the name of a reference: a second copy tells of it.
    pub fn kept(&self, key: &RefKey) -> Option<Lost> {
        self.missed(key).filter(|lost| !lost.is_presumed)
    }

    /// Number of references that have lost their newest version.
    pub fn count(&self) -> u64 {
        self.lost.values().filter(|lost| !lost.is_forgotten).count() as u64
    }

    /// The least version of a reference of which no head is held.
    pub fn least_version(&self, key: &RefKey) -> u64 {
        match self.of(key) {
            Some(lost) => lost.stamp.version.saturating_add(1),
            None => 1 + u64::from(self.has_unknown),
        }
    }

    /// Returns true if nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    pub(super) fn add(&mut self, name: KeyPrefix, lost: Lost) {
        self.lost.insert(name, lost);
    }

    /// Adds a name of which nothing is known but that its first version is lost, unless more is known; tells whether it did.
    /// The time is unknown at which that was recorded: its stamp is before all others.
    pub(super) fn add_first(&mut self, name: KeyPrefix) -> bool {
        let stamp = Stamp { seq: 0, ordinal: 0, version: 1, recorded: 0 };
        let is_new = !self.lost.contains_key(&name);
        if is_new {
            self.add(name, Lost { stamp, is_forgotten: false, is_presumed: true });
        }
        is_new
    }

    /// Returns true if first versions are lost whose names cannot be read.
    pub fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Notes that something newer than any loss came under a name.
    pub(super) fn remove(&mut self, key: &RefKey) {
        self.lost.remove(&key.prefix());
    }

    /// Notes that acknowledged first versions of unknown names are lost: nothing new may take the version 1.
    pub(super) fn note_unknown(&mut self) {
        self.has_unknown = true;
    }
}
