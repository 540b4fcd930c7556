//! Tombstones: what was forgotten, and names that were given to something new since.

use omird_store::RefKey;

use super::rows::Rows;
use crate::index::block::DeletionOrigin;

/// A deletion whose tombstone is still held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tombstone {
    /// The transaction.
    pub(super) seq: u64,
    /// The transaction that ended the thing: an earlier one, if a rule had let go of it before a user had it forgotten.
    pub(super) ended: u64,
    /// The time of the order; microseconds.
    pub(super) at: i64,
    pub(super) by: DeletionOrigin,
}

/// The tombstones that are held, by name.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    held: hashbrown::HashMap<RefKey, Tombstone>,
    /// The transaction that last gave the name of something forgotten to a new thing.
    reused: hashbrown::HashMap<RefKey, u64>,
}

impl Tombstones {
    /// Returns true if nothing was ever forgotten, so that no reference can dangle.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.reused.is_empty()
    }

    pub(super) fn get(&self, key: &RefKey) -> Option<&Tombstone> {
        self.held.get(key)
    }

    /// Adds a tombstone. A later rule does not take back that a user had the thing forgotten.
    pub(super) fn add(&mut self, key: RefKey, seq: u64, at: i64, by: DeletionOrigin) {
        let tombstone = Tombstone { seq, ended: seq, at, by };
        let held = self.held.entry(key).or_insert(tombstone);
        if held.by != DeletionOrigin::User {
            *held = Tombstone { ended: held.ended, ..tombstone };
        }
    }

    pub(super) fn remove(&mut self, key: &RefKey) {
        self.held.remove(key);
    }

    /// Gives the name of something forgotten to a new thing.
    pub(super) fn reuse(&mut self, key: RefKey, seq: u64) {
        self.held.remove(&key);
        self.reused.insert(key, seq);
    }

    /// The transaction that last gave the name of something forgotten to a new thing.
    pub(super) fn name_reused(&self, key: &RefKey) -> Option<u64> {
        self.reused.get(key).copied()
    }

    /// The records that became a part of another, with that one.
    pub(super) fn merged(&self) -> impl Iterator<Item = (RefKey, RefKey)> + '_ {
        self.held.iter().filter_map(|(key, tombstone)| match tombstone.by {
            DeletionOrigin::Merging(into) => Some((*key, into)),
            DeletionOrigin::User | DeletionOrigin::Rule => None,
        })
    }

    /// The time (microseconds) at which a user had something forgotten: what last bore the name, or the record that
    /// it became a part of. `None` if only rules let go of it. If the origin of a deletion is lost, it is treated as a
    /// user's deletion at the beginning of time.
    pub(super) fn forgotten_since(&self, key: &RefKey, rows: &Rows) -> Option<i64> {
        const UNKNOWN: Option<i64> = Some(i64::MIN);
        let Some(mut tombstone) = self.get(key) else { return UNKNOWN };
        // The bearers of a reused name are not told apart.
        if tombstone.by != DeletionOrigin::User && self.name_reused(key).is_some() {
            return UNKNOWN;
        }
        loop {
            let into = match tombstone.by {
                DeletionOrigin::User => return Some(tombstone.at),
                DeletionOrigin::Rule => return None,
                DeletionOrigin::Merging(into) => into,
            };
            // It became a part of what bore the name then.
            if self.name_reused(&into).is_some_and(|seq| seq > tombstone.seq) {
                return UNKNOWN;
            }
            match self.get(&into) {
                Some(later) if later.seq > tombstone.seq => tombstone = later,
                Some(_) => return UNKNOWN,
                None if rows.live(&into).is_some() => return None,
                None => return UNKNOWN,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};
    use omird_store::{Index as _, RefKey};

    use crate::index::block::DeletionOrigin;
    use crate::index::catalog::Catalog;
    use crate::index::doc::{FileId, Location, Stamp};
    use crate::index::facts::{Facts, terms_of};

    fn key(id: &str) -> RefKey {
        RefKey::of_text(&format!("MemoryRecord/{id}"))
    }

    fn stamp(seq: u64) -> Stamp {
        Stamp { seq, ordinal: 0, version: seq, recorded: 10 * seq.cast_signed() }
    }

    fn put(catalog: &mut Catalog, id: &str, seq: u64) {
        let at = Instant::from(Timestamp::from_unix(0, 0));
        let record: Resource = MemoryRecord::new(id.parse().unwrap(), "a cup", at).into();
        let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
        catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp(seq), location);
    }

    fn forget(catalog: &mut Catalog, id: &str, seq: u64, by: DeletionOrigin) {
        catalog.forget(&key(id), None, stamp(seq), by);
    }

    /// `a` became a part of `b`, and that of `c`.
    fn merged() -> Catalog {
        let mut catalog = Catalog::new();
        ["a", "b", "c"].into_iter().zip(1..).for_each(|(id, seq)| put(&mut catalog, id, seq));
        forget(&mut catalog, "a", 4, DeletionOrigin::Merging(key("b")));
        forget(&mut catalog, "b", 5, DeletionOrigin::Merging(key("c")));
        catalog
    }

    #[test]
    fn what_became_a_part_is_forgotten_with_the_rest() {
        let mut catalog = merged();
        let since = |catalog: &Catalog| ["a", "b"].map(|id| catalog.forgotten_since(&key(id)));
        assert_eq!(since(&catalog), [None, None]);
        put(&mut catalog, "c", 6);
        assert_eq!(since(&catalog), [None, None], "another version");
        forget(&mut catalog, "c", 7, DeletionOrigin::User);
        assert_eq!(since(&catalog), [Some(70), Some(70)]);
        assert_eq!(catalog.version_forgotten_since(0), Some(70));
        // A rule that comes later takes nothing back.
        forget(&mut catalog, "c", 8, DeletionOrigin::Rule);
        assert_eq!(since(&catalog), [Some(70), Some(70)]);

        let mut catalog = merged();
        forget(&mut catalog, "c", 7, DeletionOrigin::Rule);
        assert_eq!(since(&catalog), [None, None]);
    }

    #[test]
    fn what_nothing_is_known_of_may_have_been_forgotten_by_someone() {
        const UNKNOWN: Option<i64> = Some(i64::MIN);
        // The name of a part belongs to something new.
        for (id, found) in [("b", [UNKNOWN, UNKNOWN]), ("a", [UNKNOWN, None])] {
            let mut catalog = merged();
            put(&mut catalog, id, 7);
            let since = |of: &str| catalog.forgotten_since(&key(of));
            assert_eq!([since("a"), since("b")], found, "{id} is back");
            forget(&mut catalog, id, 8, DeletionOrigin::Rule);
            let doc = catalog.doc(0);
            assert_eq!((doc.key, catalog.version_forgotten_since(0)), (key("a"), Some(40)));
        }
        let mut catalog = merged();
        forget(&mut catalog, "c", 7, DeletionOrigin::User);
        put(&mut catalog, "c", 8);
        assert_eq!(catalog.forgotten_since(&key("a")), UNKNOWN, "that is another");
        // But what becomes a part of the new one is not.
        put(&mut catalog, "d", 9);
        forget(&mut catalog, "d", 10, DeletionOrigin::Merging(key("c")));
        assert_eq!(catalog.forgotten_since(&key("d")), None);
        // No store writes these.
        put(&mut catalog, "e", 11);
        forget(&mut catalog, "e", 12, DeletionOrigin::Merging(key("e")));
        assert_eq!(catalog.forgotten_since(&key("e")), UNKNOWN);
        put(&mut catalog, "f", 13);
        forget(&mut catalog, "f", 14, DeletionOrigin::Merging(key("lost")));
        assert_eq!(catalog.forgotten_since(&key("f")), UNKNOWN);
    }
}
