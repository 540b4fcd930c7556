//! Learning: taking in the facts of second copies (`store/log/witness.rs`), which tell of versions that no file gives back.

use std::collections::{HashMap, HashSet};

use omird_store::{Fact, FactKind, KeyPrefix, LearnedFacts, RefKey};

use super::Catalog;
use super::losses::Lost;
use crate::index::doc::{DocId, Stamp};

impl Catalog {
    /// Takes in the facts of second copies, in any order. A name of which something newer is held stays as it is.
    /// To be called before [`Catalog::finish_loading`].
    pub fn learn(&mut self, facts: &[Fact]) -> LearnedFacts {
        let mut newest: HashMap<KeyPrefix, Fact> = HashMap::new();
        for fact in facts {
            let held = newest.entry(fact.key).or_insert(*fact);
            if held.order() < fact.order() {
                *held = *fact;
            }
        }
        if newest.is_empty() {
            return LearnedFacts::default();
        }
        let named: HashMap<KeyPrefix, RefKey> = self
            .rows
            .names()
            .map(|key| (key.prefix(), *key))
            .filter(|(prefix, _)| newest.contains_key(prefix))
            .collect();
        let mut learned = LearnedFacts::default();
        for fact in newest.into_values() {
            let key = named.get(&fact.key);
            if key.is_some_and(|key| self.is_as_new(key, &fact)) {
                continue;
            }
            match (fact.by(), key) {
                (Some(by), Some(key)) => {
                    self.add_tombstone(key, fact.stamp, by);
                    learned.forgotten += 1;
                }
                (_, key) => {
                    if let Some(key) = key {
                        self.rows.raise_version(key, fact.stamp.version);
                    }
                    let is_forgotten = fact.kind != FactKind::Version;
                    learned.lost += u64::from(!is_forgotten);
                    let lost = Lost { stamp: fact.stamp, is_forgotten, is_presumed: false };
                    self.losses.add(fact.key, lost);
                }
            }
        }
        learned
    }

    /// Takes in names that damaged bytes tell, after [`Catalog::learn`]. One of which nothing is held, and no second copy
    /// tells, has lost its first version at least. Returns how many those are.
    pub fn lose(&mut self, names: &HashSet<KeyPrefix>) -> u64 {
        if names.is_empty() {
            return 0;
        }
        let mut unheld = names.clone();
        for key in self.rows.names() {
            unheld.remove(&key.prefix());
        }
        unheld.into_iter().map(|name| u64::from(self.losses.add_first(name))).sum()
    }

    /// Returns true if a version or a tombstone is held that is as new as a fact.
    fn is_as_new(&self, key: &RefKey, fact: &Fact) -> bool {
        let Some(head) = self.head(key) else { return false };
        let doc = self.docs().get(head.doc as usize);
        let is_doc_newer = doc.is_some_and(|doc| (doc.seq, doc.ordinal) >= fact.order());
        let tombstone = self.tombstones.get(key);
        let is_tombstone_newer = tombstone.is_some_and(|tombstone| tombstone.seq >= fact.stamp.seq);
        // A compaction may have left nothing but the number.
        let is_number_newer = doc.is_none() && head.version >= fact.stamp.version;
        is_doc_newer || is_tombstone_newer || is_number_newer
    }

    /// The version that is missing if this row is the newest that is held of something live: the row must not be
    /// served as current.
    pub fn missing(&self, id: DocId) -> Option<Stamp> {
        if self.losses.is_empty() {
            return None;
        }
        let doc = self.doc(id);
        self.losses.of(&doc.key).filter(|_| doc.is_live()).map(|lost| lost.stamp)
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::block::DeletionOrigin;
    use crate::index::doc::{FileId, Location};
    use crate::index::facts::{Facts, terms_of};
    use omird_store::Index as _;

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
        assert_eq!(catalog.learn(&[updated]), LearnedFacts { lost: 1, forgotten: 0 });
        assert_eq!(catalog.missing(first), Some(stamp(5, 2)));
        assert_eq!(catalog.live(&key("door")), Some(first), "what mentions it still does");
        assert_eq!(catalog.head(&key("door")).unwrap().version, 2);
        assert_eq!(catalog.losses.count(), 1);
        let next = put(&mut catalog, "door", 6, 3);
        assert_eq!((catalog.missing(next), catalog.losses.count()), (None, 0));
        assert_eq!(
            catalog.learn(&[updated]),
            LearnedFacts::default(),
            "it is known of something newer"
        );
    }

    #[test]
    fn what_was_forgotten_stays_so() {
        let mut catalog = Catalog::new();
        put(&mut catalog, "door", 1, 1);
        let forgotten = Fact::tombstone(&key("door"), stamp(5, 2), DeletionOrigin::User);
        let updated = Fact::version(&key("door"), stamp(4, 2)).unwrap();
        assert_eq!(catalog.learn(&[forgotten, updated]), LearnedFacts { lost: 0, forgotten: 1 });
        assert_eq!(catalog.live(&key("door")), None);
        assert_eq!(catalog.forgotten_since(&key("door")), Some(50));
        assert_eq!(catalog.learn(&[forgotten, updated]), LearnedFacts::default());
    }

    #[test]
    fn a_version_number_is_never_given_twice() {
        let mut catalog = Catalog::new();
        assert_eq!(catalog.losses.least_version(&key("new")), 1);
        catalog.learn(&[Fact::tombstone(&key("gone"), stamp(4, 7), DeletionOrigin::Rule)]);
        catalog.learn(&[Fact::version(&key("lost"), stamp(4, 3)).unwrap()]);
        assert_eq!(
            ["gone", "lost", "new"].map(|id| catalog.losses.least_version(&key(id))),
            [8, 4, 1]
        );
        assert_eq!(catalog.losses.count(), 1);
        catalog.losses.note_unknown();
        assert_eq!(catalog.losses.least_version(&key("new")), 2);
    }
}
