//! What the card has lost: versions that are known to have been there, by their second copy
//! (`store/witness.rs`), and that nothing gives back.
//!
//! A reference whose newest version is lost keeps its place: what mentions it still does, its next version is
//! above the lost one, and the version before it, which is still there, is not served as current.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::collections::HashMap;

use super::{Catalog, Head};
use crate::index::doc::{DocId, Stamp};
use crate::index::key::{KeyPrefix, RefKey};
use crate::store::index::Learned;
use crate::store::witness::{Fact, Kind};

/// The newest that is known of a name, where nothing as new can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// As which version, and when.
    pub stamp: Stamp,
    /// Whether it was forgotten then: there is nothing to miss, but its version number is taken.
    pub is_forgotten: bool,
}

impl Catalog {
    /// Takes in what second copies say, in any order. What is known of something newer under a name stays as it
    /// is. To be called before [`Catalog::finish_loading`].
    pub fn learn(&mut self, facts: &[Fact]) -> Learned {
        let mut newest: HashMap<KeyPrefix, Fact> = HashMap::new();
        for fact in facts {
            let held = newest.entry(fact.key).or_insert(*fact);
            if held.order() < fact.order() {
                *held = *fact;
            }
        }
        if newest.is_empty() {
            return Learned::default();
        }
        let named: HashMap<KeyPrefix, RefKey> = self
            .heads
            .keys()
            .map(|key| (key.prefix(), *key))
            .filter(|(prefix, _)| newest.contains_key(prefix))
            .collect();
        let mut learned = Learned::default();
        for fact in newest.into_values() {
            let key = named.get(&fact.key);
            if key.is_some_and(|key| self.is_known_since(key, &fact)) {
                continue;
            }
            match (fact.by(), key) {
                (Some(by), Some(key)) => {
                    self.bury(key, fact.stamp, by);
                    learned.forgotten += 1;
                }
                (_, key) => {
                    if let Some(head) = key.and_then(|key| self.heads.get_mut(key)) {
                        *head = Head { version: fact.stamp.version, ..*head };
                    }
                    let is_forgotten = fact.kind != Kind::Version;
                    learned.lost += u64::from(!is_forgotten);
                    self.lost.insert(fact.key, Lost { stamp: fact.stamp, is_forgotten });
                }
            }
        }
        learned
    }

    /// Whether a version or a tombstone is held that is as new as a fact.
    fn is_known_since(&self, key: &RefKey, fact: &Fact) -> bool {
        let Some(head) = self.heads.get(key) else { return false };
        let doc = self.docs.get(head.doc as usize);
        let is_doc_newer = doc.is_some_and(|doc| (doc.seq, doc.ordinal) >= fact.order());
        let is_buried_since = self.graves.get(key).is_some_and(|grave| grave.seq >= fact.stamp.seq);
        // Of what a compaction dropped only the number may be left.
        let is_number_newer = doc.is_none() && head.version >= fact.stamp.version;
        is_doc_newer || is_buried_since || is_number_newer
    }

    /// Notes that acknowledged first versions of unknown names are lost: nothing new may take the version 1.
    pub fn lose_unknown(&mut self) {
        self.has_lost_unknown = true;
    }

    /// The lost version that is newer than all that is held of a reference, if there is one.
    pub fn lost(&self, key: &RefKey) -> Option<Lost> {
        self.lost.get(&key.prefix()).copied()
    }

    /// The version that is missing where this row is the newest that is held of something that lives: it must
    /// not be served as current.
    pub fn missing(&self, id: DocId) -> Option<Stamp> {
        if self.lost.is_empty() {
            return None;
        }
        let doc = self.doc(id);
        self.lost(&doc.key).filter(|_| doc.is_live()).map(|lost| lost.stamp)
    }

    /// How many references have lost their newest version.
    pub fn lost_count(&self) -> u64 {
        self.lost.values().filter(|lost| !lost.is_forgotten).count() as u64
    }

    /// The version that a reference of which no head is held may have at the least.
    pub fn least_version(&self, key: &RefKey) -> u64 {
        match self.lost(key) {
            Some(lost) => lost.stamp.version.saturating_add(1),
            None => 1 + u64::from(self.has_lost_unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::block::By;
    use crate::index::doc::{FileId, Location};
    use crate::index::facts::{Facts, terms_of};

    fn key(id: &str) -> RefKey {
        RefKey::of_text(&format!("MemoryRecord/{id}"))
    }

    fn stamp(seq: u64, version: u64) -> Stamp {
        Stamp { seq, ordinal: 0, version, recorded: 10 * seq.cast_signed() }
    }

    fn put(catalog: &mut Catalog, id: &str, seq: u64, version: u64) -> DocId {
        let at = Instant::from(Timestamp::from_unix(0, 0));
        let record: Resource = MemoryRecord::new(id.parse().unwrap(), "a cup", at).into();
        let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
        catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp(seq, version), location)
    }

    #[test]
    fn a_lost_version_is_missed_until_a_newer_one_comes() {
        let mut catalog = Catalog::new();
        let first = put(&mut catalog, "door", 1, 1);
        let updated = Fact::version(&key("door"), stamp(5, 2)).unwrap();
        assert_eq!(catalog.learn(&[updated]), Learned { lost: 1, forgotten: 0 });
        assert_eq!(catalog.missing(first), Some(stamp(5, 2)));
        assert_eq!(catalog.live(&key("door")), Some(first), "what mentions it still does");
        assert_eq!(catalog.head(&key("door")).unwrap().version, 2);
        assert_eq!(catalog.lost_count(), 1);
        let next = put(&mut catalog, "door", 6, 3);
        assert_eq!((catalog.missing(next), catalog.lost_count()), (None, 0));
        assert_eq!(catalog.learn(&[updated]), Learned::default(), "it is known of something newer");
    }

    #[test]
    fn what_was_forgotten_stays_so() {
        let mut catalog = Catalog::new();
        put(&mut catalog, "door", 1, 1);
        let forgotten = Fact::tombstone(&key("door"), stamp(5, 2), By::Someone);
        let updated = Fact::version(&key("door"), stamp(4, 2)).unwrap();
        assert_eq!(catalog.learn(&[forgotten, updated]), Learned { lost: 0, forgotten: 1 });
        assert_eq!(catalog.live(&key("door")), None);
        assert_eq!(catalog.forgotten_since(&key("door")), Some(50));
        assert_eq!(catalog.learn(&[forgotten, updated]), Learned::default());
    }

    #[test]
    fn a_version_number_is_never_given_twice() {
        let mut catalog = Catalog::new();
        assert_eq!(catalog.least_version(&key("new")), 1);
        catalog.learn(&[Fact::tombstone(&key("gone"), stamp(4, 7), By::Rule)]);
        catalog.learn(&[Fact::version(&key("lost"), stamp(4, 3)).unwrap()]);
        assert_eq!(["gone", "lost", "new"].map(|id| catalog.least_version(&key(id))), [8, 4, 1]);
        assert_eq!(catalog.lost_count(), 1);
        catalog.lose_unknown();
        assert_eq!(catalog.least_version(&key("new")), 2);
    }
}
