//! Contents of a segment that takes the place of others.
//!
//! Versions are read one by one, to find what they refer to; the bytes of those that stay are
//! copied. So the memory needed is that of the new segment and of one old one, then of the new one twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::Range;

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::reference::Ref;

use crate::index::{CompactionEntry, Fate, Index};
use crate::read::{Handle, ReadError};
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::{DeletionOrigin, EndCause, Target, Tombstone};
use crate::recorded::transaction::Touch;
use crate::recorded::version::{DocId, Stamp};
use crate::segment::locate::{BadSegment, bad};
use crate::segment::manifest::{Manifest, Older};
use crate::segment::{self, Layout};
use crate::sync::{ReadGuard, RwLock};

/// The bounds of what need not be written again; microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Versions superseded before are not kept.
    pub horizon: i64,
    /// Everything recorded before is durable. An end that may be lost yet ends nothing.
    pub durable: i64,
}

/// The new segment and what it leaves out.
#[derive(Default)]
pub(crate) struct Rewritten {
    pub(crate) bytes: Vec<u8>,
    /// Rows of the versions that were dropped, in the order they were recorded.
    pub(crate) dropped: Vec<DocId>,
    /// Key and version of the tombstones that were dropped.
    pub(crate) tombstones: Vec<(RefKey, u64)>,
    pub(crate) superseded: u64,
    pub(crate) forgotten: u64,
    /// True if words or names of what was forgotten were in the index of a source.
    pub(crate) purged_names: bool,
}

/// A segment being put together.
pub(crate) struct Rewrite<'a, I> {
    catalog: &'a RwLock<I>,
    compaction_entries: Vec<CompactionEntry>,
    /// The resources that become entries.
    present: HashSet<RefKey>,
    /// References whose first version is in the run.
    born: HashSet<RefKey>,
    /// Records, each with the resources that became a part of it. Its tombstone tells who had it forgotten, and is
    /// held as long as theirs.
    parts: HashMap<RefKey, HashSet<RefKey>>,
    /// Of logs that become a segment, and are no segments: before when what ended is durable
    /// (microseconds).
    durable: Option<i64>,
    /// True if nothing is older than the run.
    is_oldest: bool,
    /// True if no tombstone may be dropped: a damaged file that is set aside may name what it ended, and a start
    /// would take that for lost.
    keeps_tombstones: bool,
    first_seq: u64,
    horizon: i64,
    manifest: Manifest,
    /// All versions that stay, end to end.
    bytes: Vec<u8>,
    /// Positions of the entries.
    entries: Vec<Range<usize>>,
    /// The older versions: the stamp of each, and where it lies.
    older: Vec<(Stamp, Range<usize>)>,
    /// Resources recorded elsewhere that entries refer to; nothing for what is gone.
    copies: BTreeMap<Ref, Option<Vec<u8>>>,
    /// Access states of what was recorded before the run, by name.
    touched_before: BTreeMap<String, Touch>,
    dropped: Vec<DocId>,
    tombstones: Vec<(RefKey, u64)>,
    superseded: u64,
    forgotten: u64,
    purged_names: bool,
    /// That the disk refused to give what had to be copied.
    refused: Option<io::Error>,
}

/// Changes of a version's references.
enum Resolved {
    /// All of them resolve.
    Whole,
    /// Some were dropped.
    Changed,
    /// It cannot exist without something that was forgotten.
    Forgotten,
    /// It mentions something that the card does not give back.
    Incomplete,
}

impl<'a, I: Index> Rewrite<'a, I> {
    /// A merge into segment `number` of the segments that hold the transactions `span`, first and
    /// last. What was superseded before `horizon` (microseconds) is dropped.
    pub(super) fn new(
        catalog: &'a RwLock<I>,
        number: u64,
        span: (u64, u64),
        is_oldest: bool,
        horizon: i64,
    ) -> Self {
        let (compaction_entries, born) = {
            let catalog = catalog.read();
            let compaction_entries = catalog.compaction_entries(span.0, span.1, horizon);
            let first = compaction_entries.iter().filter(|entry| entry.version == 1);
            let born = first.map(|entry| entry.key).collect();
            (compaction_entries, born)
        };
        let live = compaction_entries.iter().filter(|entry| entry.fate == Fate::Live);
        let present = live.map(|entry| entry.key).collect();
        let manifest = Manifest {
            segment: number,
            first_seq: span.0,
            last_seq: span.1,
            ..Manifest::default()
        };
        Self {
            catalog,
            compaction_entries,
            present,
            born,
            parts: HashMap::new(),
            durable: None,
            is_oldest,
            keeps_tombstones: false,
            first_seq: span.0,
            horizon,
            manifest,
            bytes: Vec::new(),
            entries: Vec::new(),
            older: Vec::new(),
            copies: BTreeMap::new(),
            touched_before: BTreeMap::new(),
            dropped: Vec::new(),
            tombstones: Vec::new(),
            superseded: 0,
            forgotten: 0,
            purged_names: false,
            refused: None,
        }
    }

    /// The same for logs that become segment `number`. What ended behind them stays in it, if that may
    /// not be durable yet.
    pub(super) fn of_logs(
        catalog: &'a RwLock<I>,
        number: u64,
        span: (u64, u64),
        is_oldest: bool,
        lapse: Retention,
    ) -> Self {
        let merge = Self::new(catalog, number, span, is_oldest, lapse.horizon);
        let mut parts: HashMap<RefKey, HashSet<RefKey>> = HashMap::new();
        for (part, into) in merge.catalog().merged() {
            parts.entry(into).or_default().insert(part);
        }
        Self { durable: Some(lapse.durable), parts, ..merge }
    }

    /// The same, and whether all tombstones stay.
    pub(super) fn keeping_tombstones(self, keeps_tombstones: bool) -> Self {
        Self { keeps_tombstones, ..self }
    }

    fn catalog(&self) -> ReadGuard<'a, I> {
        self.catalog.read()
    }

    /// Takes in the next segment.
    pub(super) fn take(
        &mut self,
        number: u64,
        bytes: &[u8],
        layout: Layout,
    ) -> Result<(), BadSegment> {
        if !layout.is_manifest_whole {
            return Err(bad(bytes.len(), "the manifest does not pass its checksum"));
        }
        let is_log = self.durable.is_some();
        // As much as may come, at once: what grows by and by is copied, and there twice meanwhile.
        self.bytes.reserve_exact(layout.versions_len());
        let newest = layout.entries.into_iter().map(|entry| (entry, true));
        let older = layout.superseded.into_iter().map(|entry| (entry, false));
        for ((stamp, range), is_newest) in newest.chain(older) {
            let start = range.start;
            self.version(stamp, &bytes[range], is_newest)
                .map_err(|fault| bad(start + fault.offset, fault.message))?;
        }
        let from = layout.manifest;
        for touch in from.touched {
            self.touch_before(touch);
        }
        for tombstone in from.forgotten {
            self.tombstone(tombstone);
        }
        let into = &mut self.manifest;
        if !is_log {
            into.replaces.push(number);
        }
        into.log = into.log.max(from.log);
        into.boots = into.boots.max(from.boots);
        into.last_recorded = into.last_recorded.max(from.last_recorded);
        if let Some(mark) = &from.mark {
            into.mark.get_or_insert_default().follow(mark);
        }
        Ok(())
    }

    /// Takes in a version, and whether it is the newest of its reference in what it comes from.
    fn version(&mut self, stamp: Stamp, raw: &[u8], is_newest: bool) -> Result<(), BadSegment> {
        let place = (stamp.seq, stamp.ordinal);
        let found = self
            .compaction_entries
            .binary_search_by_key(&place, |entry| (entry.seq, entry.ordinal));
        let entry = *found
            .ok()
            .and_then(|at| self.compaction_entries.get(at))
            .ok_or_else(|| bad(0, "the index does not know this version"))?;
        let is_durable = !is_newest || self.durable.is_none_or(|before| entry.retired < before);
        match entry.fate {
            Fate::Superseded | Fate::Forgotten if is_durable => {
                self.drop_version(&entry, stamp);
                return Ok(());
            }
            _ => {}
        }
        let mut resource = segment::decode_resource(raw)?;
        let is_live = entry.fate == Fate::Live;
        let (is_changed, is_entry) = match self.resolve(entry.id, &mut resource, is_live) {
            Resolved::Whole => (false, is_live),
            Resolved::Changed => (true, is_live),
            // It tells of what must not be told.
            Resolved::Forgotten if !is_live => {
                self.drop_version(&entry, stamp);
                return Ok(());
            }
            // No entry of a valid Bundle, but not ours to drop. Nobody forgot what lives.
            Resolved::Forgotten | Resolved::Incomplete => (false, false),
        };
        let start = self.bytes.len();
        match is_changed {
            true => cbor::write(&resource.to_value(), &mut self.bytes),
            false => self.bytes.extend_from_slice(raw),
        }
        let range = start..self.bytes.len();
        if !is_entry {
            self.older.push((stamp, range));
            return Ok(());
        }
        self.manifest.crcs.push(crc32fast::hash(&self.bytes[range.clone()]));
        self.manifest.entries.push(stamp);
        self.entries.push(range);
        self.touch(&entry, &resource);
        Ok(())
    }

    /// Drops references to what is gone. For an entry, notes what must be copied in.
    fn resolve(&mut self, id: DocId, resource: &mut Resource, is_entry: bool) -> Resolved {
        let mut lacks: Option<RefKey> = None;
        let mut is_out_of_reach = false;
        resource.for_each_reference(|_, required, target| {
            let is_meant = required || self.catalog().stands(id, &RefKey::of(target));
            if is_meant && self.is_out_of_reach(target, is_entry) {
                is_out_of_reach = true;
            } else if required && !self.is_reachable(target, is_entry) {
                lacks = Some(RefKey::of(target));
            }
        });
        if is_entry && is_out_of_reach {
            return Resolved::Incomplete;
        }
        if let Some(key) = lacks {
            return match self.catalog().is_known(&key) {
                true => Resolved::Forgotten,
                // Nobody knows of it: that was lost.
                false => Resolved::Incomplete,
            };
        }
        // Also those to something new under a forgotten name: once the tombstone is dropped as well,
        // nothing could tell them from references to the new thing.
        match resource.retain_references(|target| {
            // Let go of first: in one expression it would be held until the end of that.
            let stands = self.catalog().stands(id, &RefKey::of(target));
            stands
                && (self.is_reachable(target, is_entry) || self.is_out_of_reach(target, is_entry))
        }) {
            true => Resolved::Changed,
            false => Resolved::Whole,
        }
    }

    /// Returns true if the card does not give back what nobody forgot: what mentions it still does.
    fn is_out_of_reach(&mut self, target: &Ref, is_entry: bool) -> bool {
        let key = RefKey::of(target);
        if self.present.contains(&key) {
            return false;
        }
        let (is_live, may_be_lost) = {
            let catalog = self.catalog();
            (catalog.live(&key).is_some(), catalog.may_be_lost(&key))
        };
        // Looking for a copy finds out.
        may_be_lost || is_live && !self.is_reachable(target, is_entry)
    }

    fn is_reachable(&mut self, target: &Ref, is_entry: bool) -> bool {
        let key = RefKey::of(target);
        if self.present.contains(&key) {
            return true;
        }
        if !is_entry {
            return self.catalog().live(&key).is_some();
        }
        if let Some(copy) = self.copies.get(target) {
            return copy.is_some();
        }
        let copy = self.copy_of(&key);
        let is_there = copy.is_some();
        self.copies.insert(target.clone(), copy);
        is_there
    }

    /// A resource that was recorded elsewhere, without references of its own.
    fn copy_of(&mut self, key: &RefKey) -> Option<Vec<u8>> {
        let handle = {
            let catalog = self.catalog();
            let (id, _) = catalog.live(key)?;
            Handle::of(&*catalog, id)
        };
        match handle.resource() {
            Ok(mut resource) => {
                resource.retain_references(|_| false);
                Some(cbor::to_vec(&resource.to_value()))
            }
            Err(ReadError::Disk { error, .. }) => {
                self.refused = Some(error);
                None
            }
            Err(fault) => {
                tracing::error!(%fault, "a stored resource cannot be copied");
                None
            }
        }
    }

    /// Carries over how a record was accessed, or a relationship used, since it was stored.
    fn touch(&mut self, entry: &CompactionEntry, resource: &Resource) {
        let touch = self.catalog().used_since(entry.id, &resource.reference());
        self.manifest.touched.extend(touch);
    }

    /// Carries over how something was accessed or used that was recorded before the run: what is newer
    /// was noted for this version of it.
    fn touch_before(&mut self, touch: Touch) {
        let live = self.catalog().live(&RefKey::of_text(&touch.target));
        match live.map(|(_, seq)| seq) {
            None => self.purged_names = true,
            Some(seq) if seq < self.first_seq => {
                self.touched_before.insert(touch.target.clone(), touch);
            }
            Some(_) => {}
        }
    }

    fn drop_version(&mut self, entry: &CompactionEntry, stamp: Stamp) {
        self.dropped.push(entry.id);
        if entry.fate == Fate::Forgotten {
            self.forgotten += 1;
            self.purged_names = true;
        } else {
            self.superseded += 1;
        }
        self.end(entry.key, stamp);
    }

    /// Notes that a version ended here, if an older one stays behind in another segment:
    /// else it would seem to have been current until the next version that is still held.
    fn end(&mut self, key: RefKey, stamp: Stamp) {
        if !self.is_oldest && self.catalog().has_version_before(&key, self.first_seq) {
            let target = Target::Key(key);
            self.manifest.forgotten.push(Tombstone { target, stamp, ending: EndCause::Dropped });
        }
    }

    fn tombstone(&mut self, tombstone: Tombstone) {
        let key = tombstone.key();
        if tombstone.ending == EndCause::Dropped {
            return self.end(key, tombstone.stamp);
        }
        self.purged_names |= tombstone.name().is_some();
        // All that could refer to it was recorded before it and after its first version, and so is in
        // the run as well.
        let is_whole = self.is_oldest
            || (self.durable.is_some()
                && self.born.contains(&key)
                && self.parts.get(&key).is_none_or(HashSet::is_empty)
                && !self.catalog().is_name_reused(&key));
        if is_whole && !self.keeps_tombstones && tombstone.stamp.recorded < self.horizon {
            // A record that became part of another was forgotten before that one.
            if let EndCause::Forgotten(DeletionOrigin::Merging(into)) = tombstone.ending
                && let Some(parts) = self.parts.get_mut(&into)
            {
                parts.remove(&key);
            }
            self.tombstones.push((key, tombstone.stamp.version));
        } else {
            self.manifest.forgotten.push(Tombstone { target: Target::Key(key), ..tombstone });
        }
    }

    /// The disk's error when it refused to give what had to be copied: then nothing may come of this,
    /// as references to what is only out of reach were dropped.
    pub(super) fn refused(&mut self) -> Option<io::Error> {
        self.refused.take()
    }

    /// The segment.
    pub(crate) fn finish(mut self, sealed_at: Timestamp) -> Rewritten {
        let manifest = &mut self.manifest;
        manifest.touched.extend(self.touched_before.into_values());
        self.older.sort_by_key(|(stamp, _)| (stamp.seq, stamp.ordinal));
        let raw = |range: &Range<usize>| &self.bytes[range.clone()];
        let older: Vec<Older<'_>> =
            self.older.iter().map(|(stamp, range)| (*stamp, raw(range))).collect();
        manifest.forgotten.sort_by_key(|tombstone| (tombstone.stamp.seq, tombstone.stamp.ordinal));
        manifest.touched.sort_by(|a, b| a.target.cmp(&b.target));
        self.dropped.sort_unstable();
        let copies: Vec<Vec<u8>> = self.copies.into_values().flatten().collect();
        let count = manifest.entries.len() + copies.len();
        let parts = self.entries.iter().map(raw).chain(copies.iter().map(Vec::as_slice));
        let bytes = segment::bundle(manifest, count, parts, &older, sealed_at);
        Rewritten {
            bytes,
            dropped: self.dropped,
            tombstones: self.tombstones,
            superseded: self.superseded,
            forgotten: self.forgotten,
            purged_names: self.purged_names,
        }
    }
}
