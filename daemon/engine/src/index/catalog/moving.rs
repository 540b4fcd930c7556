//! How versions move from file to file, and which of them are left behind.

use super::{Catalog, Head};
use crate::index::block::Row;
use crate::index::doc::{Doc, DocId, FileId, Location};
use crate::index::key::RefKey;
use crate::store::index::{End, Fate};

impl Catalog {
    /// What becomes of the versions of transactions `first` to `last` when their segments are
    /// compacted, in the order they were recorded: what was superseded before `horizon`
    /// (microseconds) and what was forgotten is dropped.
    pub fn fates(&self, first: u64, last: u64, horizon: i64) -> Vec<Fate> {
        let start = self.docs.partition_point(|doc| doc.seq < first);
        let end = self.docs.partition_point(|doc| doc.seq <= last);
        let versions = (start as DocId..).zip(&self.docs[start..end]);
        versions
            .filter(|(_, doc)| !doc.gone)
            .map(|(id, doc)| {
                let end = match (doc.buried, doc.is_live()) {
                    (true, _) => End::Forgotten,
                    (false, true) => End::Live,
                    (false, false) if doc.retired < horizon => End::Superseded,
                    (false, false) => End::Kept,
                };
                let Doc { key, seq, ordinal, version, retired, .. } = *doc;
                Fate { id, key, seq, ordinal, version, retired, end }
            })
            .collect()
    }

    /// Whether a version of a reference recorded before transaction `seq` is still held.
    pub fn has_version_before(&self, key: &RefKey, seq: u64) -> bool {
        let mut at = self.head(key).map_or(DocId::MAX, |head| head.doc);
        while let Some(doc) = self.docs.get(at as usize) {
            if doc.seq < seq {
                return true;
            }
            at = doc.older;
        }
        false
    }

    /// Points versions at the segment they were sealed or compacted into.
    ///
    /// `rows` are the segment's, in the order of their stamps, which is the order of the catalog.
    pub fn relocate(&mut self, rows: &[Row], segment: FileId) {
        let Some(first) = rows.first() else { return };
        let start = self
            .docs
            .partition_point(|doc| (doc.seq, doc.ordinal) < (first.stamp.seq, first.stamp.ordinal));
        let mut at = start;
        for row in rows {
            while let Some(doc) = self.docs.get_mut(at) {
                at += 1;
                if (doc.seq, doc.ordinal) == (row.stamp.seq, row.stamp.ordinal) {
                    doc.location =
                        Location { file: segment, offset: row.offset, len: row.len, crc: row.crc };
                    break;
                }
            }
        }
    }

    /// Moves the versions of a compacted run to their new places, and takes out what was dropped:
    /// versions, and tombstones by key and version. `rows` and `dropped` are in the order they were
    /// recorded.
    pub fn compact(
        &mut self,
        rows: &[Row],
        segment: FileId,
        dropped: &[DocId],
        tombstones: &[(RefKey, u64)],
    ) {
        self.relocate(rows, segment);
        for &id in dropped {
            let doc = &mut self.docs[id as usize];
            self.counts.dropped(doc);
            doc.gone = true;
            let (key, older) = (doc.key, doc.older);
            self.beliefs.remove(&id);
            self.skip(&key, id, older);
        }
        self.gone += dropped.len() as u64;
        for (key, version) in tombstones {
            let is_it = |head: &Head| !head.live && head.version == *version;
            if self.heads.get(key).is_some_and(is_it) {
                self.heads.remove(key);
                self.graves.remove(key);
            }
        }
    }

    /// Takes a row out of the versions of its reference.
    fn skip(&mut self, key: &RefKey, id: DocId, older: DocId) {
        let Some(head) = self.heads.get_mut(key) else { return };
        if head.doc == id {
            head.doc = older;
            return;
        }
        let mut at = head.doc;
        while let Some(doc) = self.docs.get_mut(at as usize) {
            if doc.older == id {
                doc.older = older;
                return;
            }
            at = doc.older;
        }
    }

    /// How many rows are of versions that a compaction dropped.
    pub fn gone(&self) -> u64 {
        self.gone
    }
}
