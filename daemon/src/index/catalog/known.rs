//! What was there at another moment than now.
//!
//! A moment is told by a time of the order of the store, or by a transaction. The first is what people ask by; a
//! transaction tells exactly, also among those that bear one stamp because the clock was set back.

use super::Catalog;
use crate::index::doc::{DocId, NEVER};
use crate::index::key::RefKey;

/// Which versions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The newest.
    Now,
    /// What was known at a time of the order; microseconds.
    At(i64),
    /// What was there when this transaction was the newest.
    UpTo(u64),
}

impl Catalog {
    /// The newest transaction that made a version or a tombstone which is held.
    pub fn newest(&self) -> u64 {
        let versions = self.docs.iter().map(|doc| doc.seq);
        versions.chain(self.graves.values().map(|grave| grave.seq)).max().unwrap_or(0)
    }

    /// The version of a reference that counts.
    pub fn version(&self, key: &RefKey, known: Known) -> Option<DocId> {
        match known {
            Known::Now => self.live(key),
            Known::At(at) => self.version_at(key, at),
            Known::UpTo(seq) => self.version_up_to(key, seq),
        }
    }

    /// The version of a reference that was live at `at` (microseconds).
    fn version_at(&self, key: &RefKey, at: i64) -> Option<DocId> {
        let mut id = self.head(key)?.doc;
        while let Some(doc) = self.docs.get(id as usize) {
            if doc.recorded <= at {
                return (doc.retired == NEVER || at < doc.retired).then_some(id);
            }
            id = doc.older;
        }
        None
    }

    /// The version of a reference that was live when the transaction `seq` was the newest. One that was forgotten
    /// counts only if that is known to have been later.
    fn version_up_to(&self, key: &RefKey, seq: u64) -> Option<DocId> {
        let mut id = self.head(key)?.doc;
        let mut newer = None;
        while let Some(doc) = self.docs.get(id as usize) {
            if doc.seq <= seq {
                // Later versions of what was forgotten may be dropped, and this one still be held.
                let is_followed = newer.map_or(doc.forgotten, |newer| newer == doc.version + 1);
                // What ended it is not held any more where something new has had the name since.
                let was_last = || self.reborn.get(key).is_none_or(|&reborn| reborn <= doc.seq);
                let ended_later = || self.graves.get(key).is_some_and(|grave| grave.ended > seq);
                let forgotten_later = || is_followed && was_last() && ended_later();
                return (!doc.buried || forgotten_later()).then_some(id);
            }
            newer = Some(doc.version);
            id = doc.older;
        }
        None
    }

    /// Whether a reference of version `from` stood then. What was known at a time is given as it was written.
    pub fn stood(&self, from: DocId, target: &RefKey, known: Known) -> bool {
        match known {
            Known::Now => self.stands(from, target),
            Known::At(_) => true,
            Known::UpTo(seq) => {
                let reborn = self.reborn.get(target).filter(|&&reborn| reborn <= seq);
                self.version_up_to(target, seq).is_some()
                    && reborn.is_none_or(|&reborn| reborn <= self.doc(from).seq)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::block::By;
    use crate::index::doc::{FileId, Location, Stamp};
    use crate::index::facts::{Facts, terms_of};

    fn key(id: &str) -> RefKey {
        RefKey::of_text(&format!("MemoryRecord/{id}"))
    }

    /// All of them bear one stamp: the clock was set back.
    fn stamp(seq: u64) -> Stamp {
        Stamp { seq, ordinal: 0, version: seq, recorded: 1_000 }
    }

    fn put(catalog: &mut Catalog, id: &str, seq: u64) -> DocId {
        let at = Instant::from(Timestamp::from_unix(0, 0));
        let record: Resource = MemoryRecord::new(id.parse().unwrap(), "a cup", at).into();
        let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
        catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp(seq), location)
    }

    #[test]
    fn a_transaction_tells_versions_of_one_stamp_apart() {
        let mut catalog = Catalog::new();
        let first = put(&mut catalog, "a", 1);
        let other = put(&mut catalog, "b", 2);
        let second = put(&mut catalog, "a", 3);
        catalog.forget(&key("b"), None, stamp(4), By::Someone);
        assert_eq!(catalog.newest(), 4);
        let versions = |catalog: &Catalog, id| {
            (0..=6).map(|seq| catalog.version(&key(id), Known::UpTo(seq))).collect::<Vec<_>>()
        };
        let of_a = [None, Some(first), Some(first), Some(second), Some(second)];
        assert_eq!(versions(&catalog, "a")[..5], of_a);
        assert_eq!(versions(&catalog, "b")[..5], [None, None, Some(other), Some(other), None]);
        // Someone has had forgotten what a rule had let go of.
        let mut other = Catalog::new();
        put(&mut other, "b", 1);
        other.forget(&key("b"), None, stamp(2), By::Rule);
        other.forget(&key("b"), None, stamp(4), By::Someone);
        assert_eq!(versions(&other, "b")[..4], [None, Some(0), None, None]);
        // It had been forgotten before, and came back in between.
        put(&mut other, "b", 5);
        other.forget(&key("b"), None, stamp(6), By::Someone);
        assert_eq!(versions(&other, "b")[1..], [None, None, None, None, Some(1), None]);
        // The name of something forgotten for something new: who mentioned the old one does not mention that.
        let new = put(&mut catalog, "b", 5);
        let last = put(&mut catalog, "a", 6);
        assert_eq!(versions(&catalog, "b")[4..], [None, Some(new), Some(new)]);
        let stood = |from, seq| catalog.stood(from, &key("b"), Known::UpTo(seq));
        assert!(!stood(second, 4) && !stood(second, 6) && stood(last, 6));
    }
}
