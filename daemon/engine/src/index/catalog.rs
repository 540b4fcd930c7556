//! The whole index in memory: the current version of everything, and where to look.
//!
//! Versions only come in, in the order they were recorded; a newer version or a tombstone retires
//! the older one but leaves it findable, because `asOf` asks for what was known then. The catalog
//! holds no bytes of resources: those stay on disk and are read where [`Location`] says.
//!
//! Each part of it has one concern and its own file. The catalog itself moves a version through all of them: staged,
//! live, retired, dropped.

use std::sync::Arc;

use super::block::{DeletionOrigin, Row};
use super::doc::{Doc, DocId, FileId, Location, Stamp};
use super::facts::Facts;
use super::producers::Producers;
use super::text::TextIndex;
use super::time::TimeIndex;
use super::vectors::{Fusion, Vectors};
use omird_store::{Files, RefKey};

use self::counts::Counts;
use self::losses::Losses;
use self::places::Places;
use self::references::References;
use self::rows::Rows;
pub(crate) use self::score_bounds::BoundWeights;
use self::score_bounds::ScoreBounds;
use self::tier_counts::TierCounts;
use self::tombstones::Tombstones;
use self::usage::Usage;
use self::visibility::Visibility;

mod accesses;
mod counts;
mod garbage;
mod learning;
mod loading;
mod losses;
mod places;
mod ranking;
mod read_point;
mod references;
mod rows;
mod score_bounds;
mod staging;
mod store;
mod tier_counts;
mod tombstones;
mod usage;
mod visibility;

pub(crate) use self::garbage::{Garbage, garbage_in_logs, garbage_in_segments};
pub(crate) use self::places::PositionRow;
#[cfg(test)]
pub(crate) use self::read_point::hops;
pub(crate) use self::read_point::{ReadPoint, VersionReader};
pub(crate) use self::rows::Head;
pub(crate) use self::staging::Staged;
pub(crate) use self::tier_counts::TierCount;

/// The index in memory.
#[derive(Default)]
pub struct Catalog {
    rows: Rows,
    tombstones: Tombstones,
    /// The newest transaction of those: kept, since each page of a recall names it.
    newest: u64,
    /// Versions that the card has lost.
    pub losses: Losses,
    references: References,
    /// Words.
    pub text: TextIndex,
    /// Places.
    pub places: Places,
    /// Times of events.
    pub time: TimeIndex,
    /// Times of recording of what states no time of its own.
    pub undated: TimeIndex,
    /// Versions that every ordinary query sees.
    pub visibility: Visibility,
    /// Upper bounds of scores.
    pub score_bounds: ScoreBounds,
    usage: Usage,
    producers: Producers,
    /// Counts of versions.
    pub counts: Counts,
    tier_counts: TierCounts,
    /// The files that versions lie in.
    pub files: Files,
    /// Vectors of versions, which another thread adds to.
    pub(crate) vectors: Arc<Vectors>,
    fusion: Fusion,
}

/// Versions and names.
impl Catalog {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// The way in which words and meaning are weighed.
    pub fn fusion(&self) -> &Fusion {
        &self.fusion
    }

    /// Weighs words and meaning otherwise from now on.
    pub fn set_fusion(&mut self, fusion: Fusion) {
        self.fusion = fusion;
    }

    /// All versions, in the order they were recorded.
    pub fn docs(&self) -> &[Doc] {
        self.rows.docs()
    }

    /// One version.
    pub fn doc(&self, id: DocId) -> &Doc {
        self.rows.doc(id)
    }

    /// Number of versions held.
    pub fn version_count(&self) -> u64 {
        self.rows.held() - self.counts.staged()
    }

    /// The newest version of a reference, live or not.
    pub fn head(&self, key: &RefKey) -> Option<Head> {
        self.rows.head(key)
    }

    /// The row of the live version of a reference.
    pub fn live(&self, key: &RefKey) -> Option<DocId> {
        self.rows.live(key)
    }

    /// Versions that mention an entity and were recorded since it last began to exist.
    pub fn mentioning(&self, entity: &RefKey) -> &[DocId] {
        self.references.mentions(entity)
    }

    /// Calls `f` with each entity that was mentioned since it last began to exist, and with the versions that mention it.
    pub fn each_mentioned(&self, f: impl FnMut(&RefKey, &[DocId])) {
        self.references.each_mentioned(f);
    }

    /// Live relationships that cannot exist without this entity.
    pub fn dependents(&self, entity: &RefKey) -> impl Iterator<Item = DocId> + '_ {
        let dependents = self.references.dependents(entity).iter().copied();
        dependents.filter(|&id| self.doc(id).is_live())
    }

    /// Returns true if a live record is a part of this one.
    pub fn has_children(&self, record: &RefKey) -> bool {
        self.references.children(record).iter().any(|&child| self.doc(child).is_live())
    }
}

/// Deletions.
impl Catalog {
    /// Returns true if anything was forgotten, so that a reference to it may be left somewhere.
    pub fn has_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// Returns true if the card may have lost what had this name: nothing of it lives, and it was not forgotten. What mentions
    /// it still does.
    pub fn may_be_lost(&self, key: &RefKey) -> bool {
        let is_nameless = || self.losses.has_unknown() && self.head(key).is_none();
        self.live(key).is_none() && (self.losses.missed(key).is_some() || is_nameless())
    }

    /// Returns true if a reference of version `from` still stands: its target is live or lost, and was not
    /// forgotten since. A new thing under the name of a forgotten one starts unmentioned, even if the reference was
    /// sealed, and so dropped, in between.
    pub fn stands(&self, from: DocId, target: &RefKey) -> bool {
        (self.live(target).is_some() || self.may_be_lost(target))
            && self.tombstones.name_reused(target).is_none_or(|seq| seq <= self.doc(from).seq)
    }

    /// Returns when something was forgotten (microseconds), if its tombstone is still held or its last version is.
    pub fn forgotten_at(&self, key: &RefKey) -> Option<i64> {
        // A rule may have let go of it before a user had it forgotten: its last version knows the earlier time.
        let doc = self.head(key).and_then(|head| self.docs().get(head.doc as usize));
        let retired = doc.filter(|doc| doc.forgotten).map(|doc| doc.retired);
        retired.or_else(|| self.tombstones.get(key).map(|tombstone| tombstone.at))
    }

    /// The time (microseconds) at which a user had a version forgotten that is
    /// [`Fate::Forgotten`](omird_store::Fate::Forgotten); `None` if only rules let go of it.
    pub fn version_forgotten_since(&self, id: DocId) -> Option<i64> {
        let doc = self.doc(id);
        let since = self.tombstones.forgotten_since(&doc.key, &self.rows);
        since.map(|at| if at == i64::MIN { doc.retired } else { at })
    }

    /// The newest transaction that made a version or a tombstone, even if that is not held any more.
    pub fn newest(&self) -> u64 {
        self.newest
    }
}

/// The life of a version: staged, live, retired, dropped.
impl Catalog {
    /// Adds the row of a version, staged: indexes propose it, and every reader passes over it until
    /// [`Catalog::enter`]. Its words are added apart.
    fn add_row(&mut self, facts: &Facts, stamp: Stamp, location: Location) -> DocId {
        let id = self.rows.next_id();
        let (place, places) = self.places.add(id, &facts.places);
        let producer = self.producers.number(facts.producer);
        let mut doc = Doc::new(facts, producer, stamp, location, place, places);
        doc.stage();
        if let Some(belief) = facts.belief.filter(|belief| Some(*belief) != facts.confidence) {
            self.producers.add_belief(id, belief);
        }
        match facts.when {
            Some(when) => self.time.insert(when, id),
            None => self.undated.insert((doc.when.secs(), doc.when.nanos()), id),
        }
        self.score_bounds.push(&doc, self.confidence(id, &doc));
        self.rows.push(doc);
        self.counts.stage();
        id
    }

    /// Makes a staged row the current version, and retires the one before it; returns its row if it was live.
    fn enter(&mut self, id: DocId, facts: &Facts) -> Option<DocId> {
        let doc = self.rows.doc_mut(id);
        doc.enter();
        let (seq, recorded) = (doc.seq, doc.recorded);
        self.newest = self.newest.max(seq);
        self.producers.count(doc.producer, doc.class.resource_type, doc.importance, true);
        self.counts.enter(doc);
        self.tier_counts.changed(id);
        self.count_visible(id, true);
        self.references.add(id, facts);
        self.losses.remove(&facts.key);
        let before = self.rows.set_head(id)?;
        if !before.live && !before.dropped {
            self.tombstones.reuse(facts.key, seq);
        }
        before.live.then(|| {
            self.retire(before.doc, recorded, false);
            before.doc
        })
    }

    /// Adds a tombstone; returns the row that it retires.
    fn add_tombstone(&mut self, key: &RefKey, stamp: Stamp, by: DeletionOrigin) -> Option<DocId> {
        // A new thing under the same name starts unmentioned.
        self.references.remove(key);
        self.losses.remove(key);
        self.newest = self.newest.max(stamp.seq);
        self.tombstones.add(*key, stamp.seq, stamp.recorded, by);
        let before = self.rows.end_head(key, stamp.version, false);
        self.rows.mark_forgotten(key);
        let retired = before.filter(|before| before.live)?.doc;
        self.retire(retired, stamp.recorded, true);
        Some(retired)
    }

    /// Ends the life of a version.
    fn retire(&mut self, id: DocId, at: i64, forgotten: bool) {
        self.count_visible(id, false);
        let doc = self.rows.doc_mut(id);
        doc.retired = at;
        doc.forgotten = forgotten;
        doc.is_touched = false;
        self.producers.count(doc.producer, doc.class.resource_type, doc.importance, false);
        self.counts.retire(doc);
        self.tier_counts.changed(id);
        self.usage.retire(id);
    }

    /// Counts a live version in or out of what ordinary queries see.
    fn count_visible(&mut self, id: DocId, comes: bool) {
        let doc = self.rows.doc(id);
        if Visibility::is_plain(doc) {
            self.score_bounds.set_plain(id, comes);
            self.visibility.count_plain(self.places.of(doc), comes);
        } else {
            self.visibility.note_special(id, comes);
        }
    }

    /// Moves the versions of a compacted run to their new positions, and drops versions, and tombstones by key and
    /// version. `rows` and `dropped` are in the order they were recorded.
    pub fn compact(
        &mut self,
        rows: &[Row],
        segment: FileId,
        dropped: &[DocId],
        tombstones: &[(RefKey, u64)],
    ) {
        self.rows.relocate(rows, segment);
        for &id in dropped {
            self.counts.drop_version(self.rows.doc(id));
            self.producers.remove_belief(id);
            self.rows.drop_version(id);
        }
        for (key, version) in tombstones {
            if self.rows.drop_tombstone(key, *version) {
                self.tombstones.remove(key);
            }
        }
    }
}
