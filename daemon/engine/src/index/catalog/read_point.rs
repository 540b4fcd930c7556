//! Versions as of another moment than now.
//!
//! A moment is told by a time of the order of the store, or by a transaction. The first is what people ask by; a
//! transaction tells exactly, also among those that bear one stamp because the clock was set back.

use std::collections::HashMap;

use omird_store::RefKey;

use super::Catalog;
use crate::index::doc::DocId;

/// The moment that a reader asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPoint {
    /// The newest.
    Now,
    /// A time of the order; microseconds.
    At(i64),
    /// The moment when this transaction was the newest.
    UpTo(u64),
}

impl Catalog {
    /// The version of a reference that was live at `at` (microseconds).
    fn version_at(&self, key: &RefKey, at: i64) -> Option<DocId> {
        let (id, doc) = self.rows.versions(key).find(|(_, doc)| doc.recorded <= at)?;
        (doc.is_live() || at < doc.retired).then_some(id)
    }

    /// The last version of a reference that is not newer than the transaction `seq`, whatever became of it.
    fn reach(&self, key: &RefKey, seq: u64) -> Option<Reach> {
        let mut newer = None;
        for (id, doc) in self.rows.versions(key) {
            #[cfg(test)]
            hops::count();
            if doc.seq <= seq {
                return Some(Reach { id, newer });
            }
            newer = Some(doc.version);
        }
        None
    }

    /// Returns true if a version of [`Catalog::reach`] was live when the transaction `seq` was the newest. One that
    /// was forgotten counts only if that is known to have been later.
    fn was_live(&self, key: &RefKey, reach: &Reach, seq: u64) -> bool {
        let doc = self.doc(reach.id);
        // Later versions of something forgotten may be dropped, and this one still be held.
        let is_followed = reach.newer.map_or(doc.forgotten, |newer| newer == doc.version + 1);
        // The tombstone that ended it is not held any more if the name was given to something new.
        let was_last = || self.tombstones.name_reused(key).is_none_or(|seq| seq <= doc.seq);
        let ended_later = || self.tombstones.get(key).is_some_and(|one| one.ended > seq);
        let forgotten_later = || is_followed && was_last() && ended_later();
        !doc.dropped && (!doc.tombstoned || forgotten_later())
    }
}

/// The last of the versions of a reference that are not newer than a transaction.
#[derive(Debug, Clone, Copy)]
struct Reach {
    id: DocId,
    /// The version that came next.
    newer: Option<u64>,
}

/// The versions that count, for who asks for many of them.
///
/// Where a thing has changed often since, the way from its newest version to the one of then is long, and each
/// version and each reference to it asks: so it is gone once. The answer of one catalog stays good while that
/// changes: versions only come in above what was reached.
#[derive(Debug)]
pub(crate) struct VersionReader {
    point: ReadPoint,
    /// Names under which something newer has come since.
    reached: HashMap<RefKey, Option<Reach>>,
}

impl VersionReader {
    /// Of one catalog.
    pub(crate) fn new(point: ReadPoint) -> Self {
        Self { point, reached: HashMap::new() }
    }

    /// The version of a reference that counts.
    pub(crate) fn version(&mut self, catalog: &Catalog, key: &RefKey) -> Option<DocId> {
        match self.point {
            ReadPoint::Now => catalog.live(key),
            ReadPoint::At(at) => catalog.version_at(key, at),
            ReadPoint::UpTo(seq) => self.version_up_to(catalog, key, seq),
        }
    }

    fn version_up_to(&mut self, catalog: &Catalog, key: &RefKey, seq: u64) -> Option<DocId> {
        let reach = match self.reached.get(key) {
            Some(&reach) => reach,
            None => {
                let reach = catalog.reach(key, seq);
                // That nothing came yet does not stay so.
                if reach.is_none_or(|reach| reach.newer.is_some()) {
                    self.reached.insert(*key, reach);
                }
                reach
            }
        };
        reach.filter(|reach| catalog.was_live(key, reach, seq)).map(|reach| reach.id)
    }

    /// Returns true if a reference of version `from` stood then. As of a time, references are given as they were written.
    pub(crate) fn stood(&mut self, catalog: &Catalog, from: DocId, target: &RefKey) -> bool {
        match self.point {
            ReadPoint::Now => catalog.stands(from, target),
            ReadPoint::At(_) => true,
            ReadPoint::UpTo(seq) => {
                let reused = catalog.tombstones.name_reused(target).filter(|&at| at <= seq);
                self.version_up_to(catalog, target, seq).is_some()
                    && reused.is_none_or(|at| at <= catalog.doc(from).seq)
            }
        }
    }
}

/// Steps from a version to the one before it, for tests of how many there are.
#[cfg(test)]
pub(crate) mod hops {
    use std::cell::Cell;

    thread_local! {
        static HOPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        HOPS.set(HOPS.get() + 1);
    }

    /// Those of this thread since they were last taken.
    pub(crate) fn take() -> usize {
        HOPS.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::block::DeletionOrigin;
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
        catalog.forget(&key("b"), None, stamp(4), DeletionOrigin::User);
        assert_eq!(catalog.newest(), 4);
        let versions = |catalog: &Catalog, id| {
            let version = |seq| VersionReader::new(ReadPoint::UpTo(seq)).version(catalog, &key(id));
            (0..=6).map(version).collect::<Vec<_>>()
        };
        let of_a = [None, Some(first), Some(first), Some(second), Some(second)];
        assert_eq!(versions(&catalog, "a")[..5], of_a);
        assert_eq!(versions(&catalog, "b")[..5], [None, None, Some(other), Some(other), None]);
        // Someone has had forgotten what a rule had let go of.
        let mut other = Catalog::new();
        put(&mut other, "b", 1);
        other.forget(&key("b"), None, stamp(2), DeletionOrigin::Rule);
        other.forget(&key("b"), None, stamp(4), DeletionOrigin::User);
        assert_eq!(versions(&other, "b")[..4], [None, Some(0), None, None]);
        // It had been forgotten before, and came back in between.
        put(&mut other, "b", 5);
        other.forget(&key("b"), None, stamp(6), DeletionOrigin::User);
        assert_eq!(versions(&other, "b")[1..], [None, None, None, None, Some(1), None]);
        // The name of something forgotten for something new: who mentioned the old one does not mention that.
        let new = put(&mut catalog, "b", 5);
        let last = put(&mut catalog, "a", 6);
        assert_eq!(versions(&catalog, "b")[4..], [None, Some(new), Some(new)]);
        let stood =
            |from, seq| VersionReader::new(ReadPoint::UpTo(seq)).stood(&catalog, from, &key("b"));
        assert!(!stood(second, 4) && !stood(second, 6) && stood(last, 6));
    }

    /// A reader that asked before a change gets the same answer after it as one that asks for the first time.
    #[test]
    fn what_is_asked_again_is_as_if_it_were_asked_first() {
        const SNAPSHOT: u64 = 3;
        let mut catalog = Catalog::new();
        let ids = ["a", "b", "c", "d"];
        ids.into_iter().zip(1..).for_each(|(id, seq)| _ = put(&mut catalog, id, seq));
        let mut past = VersionReader::new(ReadPoint::UpTo(SNAPSHOT));
        let mut check = |catalog: &Catalog| {
            let first =
                |id| VersionReader::new(ReadPoint::UpTo(SNAPSHOT)).version(catalog, &key(id));
            for id in ids {
                assert_eq!(past.version(catalog, &key(id)), first(id), "{id}");
            }
            ids.map(first)
        };
        assert_eq!(check(&catalog), [Some(0), Some(1), Some(2), None]);
        put(&mut catalog, "a", 5);
        catalog.forget(&key("b"), None, stamp(6), DeletionOrigin::User);
        assert_eq!(check(&catalog), [Some(0), Some(1), Some(2), None]);
        // Its name for something new.
        put(&mut catalog, "b", 7);
        put(&mut catalog, "c", 8);
        assert_eq!(check(&catalog), [Some(0), None, Some(2), None]);
        catalog.compact(&[], FileId::Log(1), &[0, 1], &[]);
        assert_eq!(check(&catalog), [None, None, Some(2), None]);
    }

    #[test]
    fn the_way_back_is_gone_once_for_any_number_of_references() {
        const VERSIONS: u64 = 100;
        let mut catalog = Catalog::new();
        let from = put(&mut catalog, "from", 1);
        (2..2 + VERSIONS).for_each(|seq| _ = put(&mut catalog, "to", seq));
        let mut past = VersionReader::new(ReadPoint::UpTo(2));
        hops::take();
        assert!((0..VERSIONS).all(|_| past.stood(&catalog, from, &key("to"))));
        assert_eq!(hops::take() as u64, VERSIONS);
    }
}
