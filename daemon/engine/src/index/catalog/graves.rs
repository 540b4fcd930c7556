//! What was forgotten, by whom, and what is left of its name.

use super::{Catalog, Head};
use crate::index::block::By;
use crate::index::doc::{DocId, Stamp};
use crate::index::key::RefKey;

/// That something was forgotten, of which the tombstone is still held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grave {
    /// The transaction.
    pub(super) seq: u64,
    /// The one that ended it: another, if someone had forgotten what a rule had let go of.
    pub(super) ended: u64,
    /// When; microseconds.
    pub(super) at: i64,
    pub(super) by: By,
}

impl Catalog {
    /// Whether anything was forgotten, so that a reference to it may be left somewhere.
    pub fn has_graves(&self) -> bool {
        !self.graves.is_empty() || !self.reborn.is_empty()
    }

    /// Since when (microseconds) someone has had forgotten what was last forgotten under this name, or
    /// the record that it became a part of; `None` while only rules have let go of it. What nothing is
    /// known of any more, someone may have had forgotten, and any time ago.
    pub fn forgotten_since(&self, key: &RefKey) -> Option<i64> {
        const UNKNOWN: Option<i64> = Some(i64::MIN);
        let Some(mut grave) = self.graves.get(key) else { return UNKNOWN };
        // Which of those that bore the name it was is not looked into.
        if grave.by != By::Someone && self.is_reborn(key) {
            return UNKNOWN;
        }
        loop {
            let into = match grave.by {
                By::Someone => return Some(grave.at),
                By::Rule => return None,
                By::Merging(into) => into,
            };
            // It became a part of what bore the name then.
            if self.reborn.get(&into).is_some_and(|&seq| seq > grave.seq) {
                return UNKNOWN;
            }
            match self.graves.get(&into) {
                Some(later) if later.seq > grave.seq => grave = later,
                Some(_) => return UNKNOWN,
                None if self.live(&into).is_some() => return None,
                None => return UNKNOWN,
            }
        }
    }

    /// Since when (microseconds) someone has had a version forgotten that is
    /// [`End::Forgotten`](crate::store::index::End::Forgotten); `None` while only rules have let go of it.
    pub fn version_forgotten_since(&self, id: DocId) -> Option<i64> {
        let doc = self.doc(id);
        self.forgotten_since(&doc.key).map(|at| if at == i64::MIN { doc.retired } else { at })
    }

    /// What became a part of which record, as far as the tombstones are still held.
    pub fn merged(&self) -> impl Iterator<Item = (RefKey, RefKey)> + '_ {
        self.graves.iter().filter_map(|(key, grave)| match grave.by {
            By::Merging(into) => Some((*key, into)),
            By::Someone | By::Rule => None,
        })
    }

    /// Whether a reference of version `from` still stands: what it names is live and was not
    /// forgotten since. A new thing under the name of a forgotten one starts unmentioned, whether
    /// or not the reference was sealed, and so dropped, in between.
    pub fn stands(&self, from: DocId, target: &RefKey) -> bool {
        self.live(target).is_some()
            && self.reborn.get(target).is_none_or(|&seq| seq <= self.doc(from).seq)
    }

    /// Whether this is the name of something new, and once was that of something that was forgotten.
    pub fn is_reborn(&self, key: &RefKey) -> bool {
        self.reborn.contains_key(key)
    }

    pub(super) fn bury(&mut self, key: &RefKey, stamp: Stamp, by: By) -> Option<DocId> {
        // What mentioned it no longer does: a new thing under the same name starts unmentioned.
        self.mentions.remove(key);
        self.dependents.remove(key);
        self.children.remove(key);
        self.lost.remove(&key.prefix());
        let nothing = Head { doc: DocId::MAX, version: 0, live: false, dropped: true };
        let head = self.heads.entry(*key).or_insert(nothing);
        let was_live = head.live;
        // What was forgotten by someone stays so. Of what a compaction dropped, only the tombstone may
        // be left.
        let grave = Grave { seq: stamp.seq, ended: stamp.seq, at: stamp.recorded, by };
        let held = self.graves.entry(*key).or_insert(grave);
        if held.by != By::Someone {
            *held = Grave { ended: held.ended, ..grave };
        }
        *head = Head { version: stamp.version, live: false, dropped: false, ..*head };
        let doc = head.doc;
        let mut at = doc;
        while let Some(doc) = self.docs.get_mut(at as usize).filter(|doc| !doc.buried) {
            doc.buried = true;
            at = doc.older;
        }
        was_live.then(|| {
            self.retire(doc, stamp.recorded, true);
            doc
        })
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::doc::{FileId, Location};
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

    fn forget(catalog: &mut Catalog, id: &str, seq: u64, by: By) {
        catalog.forget(&key(id), None, stamp(seq), by);
    }

    /// `a` became a part of `b`, and that of `c`.
    fn merged() -> Catalog {
        let mut catalog = Catalog::new();
        ["a", "b", "c"].into_iter().zip(1..).for_each(|(id, seq)| put(&mut catalog, id, seq));
        forget(&mut catalog, "a", 4, By::Merging(key("b")));
        forget(&mut catalog, "b", 5, By::Merging(key("c")));
        catalog
    }

    #[test]
    fn what_became_a_part_is_forgotten_with_the_rest() {
        let mut catalog = merged();
        let since = |catalog: &Catalog| ["a", "b"].map(|id| catalog.forgotten_since(&key(id)));
        assert_eq!(since(&catalog), [None, None]);
        put(&mut catalog, "c", 6);
        assert_eq!(since(&catalog), [None, None], "another version");
        forget(&mut catalog, "c", 7, By::Someone);
        assert_eq!(since(&catalog), [Some(70), Some(70)]);
        assert_eq!(catalog.version_forgotten_since(0), Some(70));
        // A rule that comes later takes nothing back.
        forget(&mut catalog, "c", 8, By::Rule);
        assert_eq!(since(&catalog), [Some(70), Some(70)]);

        let mut catalog = merged();
        forget(&mut catalog, "c", 7, By::Rule);
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
            forget(&mut catalog, id, 8, By::Rule);
            let doc = catalog.doc(0);
            assert_eq!((doc.key, catalog.version_forgotten_since(0)), (key("a"), Some(40)));
        }
        let mut catalog = merged();
        forget(&mut catalog, "c", 7, By::Someone);
        put(&mut catalog, "c", 8);
        assert_eq!(catalog.forgotten_since(&key("a")), UNKNOWN, "that is another");
        // But what becomes a part of the new one is not.
        put(&mut catalog, "d", 9);
        forget(&mut catalog, "d", 10, By::Merging(key("c")));
        assert_eq!(catalog.forgotten_since(&key("d")), None);
        // No store writes these.
        put(&mut catalog, "e", 11);
        forget(&mut catalog, "e", 12, By::Merging(key("e")));
        assert_eq!(catalog.forgotten_since(&key("e")), UNKNOWN);
        put(&mut catalog, "f", 13);
        forget(&mut catalog, "f", 14, By::Merging(key("lost")));
        assert_eq!(catalog.forgotten_since(&key("f")), UNKNOWN);
    }
}
