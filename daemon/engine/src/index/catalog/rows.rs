//! Rows: all versions in the order they were recorded, and the newest of each name.
//!
//! A name leads to its newest version, and each version to the one before it.

use crate::index::block::Row;
use crate::index::doc::{Doc, DocId, FileId, Location};
use omird_store::{CompactionEntry, Fate, RefKey};

/// The newest version of a reference, live or forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its row. After a compaction what was forgotten may have none ([`DocId::MAX`]).
    pub doc: DocId,
    /// Its version, or that of the tombstone.
    pub version: u64,
    /// True if it is live.
    pub live: bool,
    /// True if a version that a compaction dropped came after it: while a store is loaded, the next one is still to
    /// come.
    pub(crate) dropped: bool,
}

/// All versions, by row and by name.
#[derive(Debug, Default)]
pub(super) struct Rows {
    docs: Vec<Doc>,
    heads: hashbrown::HashMap<RefKey, Head>,
    /// Number of rows that a compaction dropped.
    dropped: u64,
}

impl Rows {
    pub(super) fn docs(&self) -> &[Doc] {
        &self.docs
    }

    pub(super) fn doc(&self, id: DocId) -> &Doc {
        &self.docs[id as usize]
    }

    pub(super) fn doc_mut(&mut self, id: DocId) -> &mut Doc {
        &mut self.docs[id as usize]
    }

    pub(super) fn head(&self, key: &RefKey) -> Option<Head> {
        self.heads.get(key).copied()
    }

    pub(super) fn live(&self, key: &RefKey) -> Option<DocId> {
        self.head(key).filter(|head| head.live).map(|head| head.doc)
    }

    /// Names of which something is held.
    pub(super) fn names(&self) -> impl Iterator<Item = &RefKey> {
        self.heads.keys()
    }

    /// Number of versions that are held.
    pub(super) fn held(&self) -> u64 {
        self.docs.len() as u64 - self.dropped
    }

    /// The row that the next version gets.
    pub(super) fn next_id(&self) -> DocId {
        DocId::try_from(self.docs.len()).expect("fewer than 2^32 versions")
    }

    pub(super) fn push(&mut self, doc: Doc) {
        self.docs.push(doc);
    }

    /// The versions of a reference, newest first.
    pub(super) fn versions(&self, key: &RefKey) -> impl Iterator<Item = (DocId, &Doc)> {
        let mut next = self.head(key).map_or(DocId::MAX, |head| head.doc);
        std::iter::from_fn(move || {
            let id = next;
            let doc = self.docs.get(id as usize)?;
            next = doc.older;
            Some((id, doc))
        })
    }

    /// Returns true if a version of a reference recorded before transaction `seq` is still held.
    pub(super) fn has_version_before(&self, key: &RefKey, seq: u64) -> bool {
        self.versions(key).any(|(_, doc)| doc.seq < seq)
    }

    /// Makes a row the live version of its name, and returns the head before it.
    pub(super) fn set_head(&mut self, id: DocId) -> Option<Head> {
        let Doc { key, version, .. } = *self.doc(id);
        let before = self.heads.insert(key, Head { doc: id, version, live: true, dropped: false });
        if let Some(before) = before {
            self.doc_mut(id).older = before.doc;
        }
        before
    }

    /// Ends the newest version of a name at `version`: a tombstone, or a version that is not held any more
    /// (`dropped`). Returns the head before it, or `None` if nothing of the name was held.
    pub(super) fn end_head(&mut self, key: &RefKey, version: u64, dropped: bool) -> Option<Head> {
        let before = self.head(key);
        let doc = before.map_or(DocId::MAX, |head| head.doc);
        self.heads.insert(*key, Head { doc, version, live: false, dropped });
        before
    }

    /// Raises the version of a head: a newer one is known that cannot be read.
    pub(super) fn raise_version(&mut self, key: &RefKey, version: u64) {
        if let Some(head) = self.heads.get_mut(key) {
            head.version = version;
        }
    }

    /// Marks all versions of a reference as followed by a tombstone.
    pub(super) fn mark_forgotten(&mut self, key: &RefKey) {
        let mut at = self.head(key).map_or(DocId::MAX, |head| head.doc);
        while let Some(doc) = self.docs.get_mut(at as usize).filter(|doc| !doc.tombstoned) {
            doc.tombstoned = true;
            at = doc.older;
        }
    }

    /// The versions of transactions `first` to `last`, and what a compaction of their segments does to each, in the
    /// order they were recorded. It drops what was superseded before `horizon` (microseconds) or forgotten.
    pub(super) fn compaction_entries(
        &self,
        first: u64,
        last: u64,
        horizon: i64,
    ) -> Vec<CompactionEntry> {
        let start = self.docs.partition_point(|doc| doc.seq < first);
        let end = self.docs.partition_point(|doc| doc.seq <= last);
        let versions = (start as DocId..).zip(&self.docs[start..end]);
        versions
            .filter(|(_, doc)| !doc.dropped)
            .map(|(id, doc)| {
                let fate = match (doc.tombstoned, doc.is_live()) {
                    (true, _) => Fate::Forgotten,
                    (false, true) => Fate::Live,
                    (false, false) if doc.retired < horizon => Fate::Superseded,
                    (false, false) => Fate::Kept,
                };
                let Doc { key, seq, ordinal, version, retired, .. } = *doc;
                CompactionEntry { id, key, seq, ordinal, version, retired, fate }
            })
            .collect()
    }

    /// Points versions at the segment they were sealed or compacted into.
    ///
    /// `rows` are the segment's, in the order of their stamps, which is the order of the catalog.
    pub(super) fn relocate(&mut self, rows: &[Row], segment: FileId) {
        let Some(first) = rows.first() else { return };
        let first = (first.stamp.seq, first.stamp.ordinal);
        let start = self.docs.partition_point(|doc| (doc.seq, doc.ordinal) < first);
        let mut docs = self.docs[start..].iter_mut();
        for row in rows {
            let stamp = (row.stamp.seq, row.stamp.ordinal);
            if let Some(doc) = docs.find(|doc| (doc.seq, doc.ordinal) == stamp) {
                doc.location =
                    Location { file: segment, offset: row.offset, len: row.len, crc: row.crc };
            }
        }
    }

    /// Drops a row and takes it out of the versions of its name.
    pub(super) fn drop_version(&mut self, id: DocId) {
        self.dropped += 1;
        let doc = self.doc_mut(id);
        doc.dropped = true;
        let (key, older) = (doc.key, doc.older);
        let Some(head) = self.heads.get_mut(&key) else { return };
        if head.doc == id {
            // Compaction drops nothing that lives. Were it to, no row would be asked for under the name.
            head.live = false;
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

    /// Drops the tombstone of a name if it has this version, and returns true if it did.
    pub(super) fn drop_tombstone(&mut self, key: &RefKey, version: u64) -> bool {
        let is_it = self.head(key).is_some_and(|head| !head.live && head.version == version);
        if is_it {
            self.heads.remove(key);
        }
        is_it
    }
}
