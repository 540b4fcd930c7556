//! Loading: filling the catalog from the blocks of segments when a store is opened.

use omird_store::RefKey;

use super::{Catalog, Places};
use crate::index::block::{Block, EndCause, Tombstone};
use crate::index::doc::{Doc, DocId, FileId, Location, Stamp};

impl Catalog {
    /// An empty index for all that a store holds: places can be searched only after
    /// [`Catalog::finish_loading`].
    pub fn loading() -> Self {
        Self { places: Places::loading(), ..Self::default() }
    }

    /// Adds the versions of a sealed segment at start-up, without their words, which are to be added to
    /// [`Catalog::text`] with the row that is returned as their first document. [`Catalog::finish_loading`] must
    /// follow.
    pub fn load_rows(&mut self, block: &Block, file: FileId) -> DocId {
        let base = self.rows.next_id();
        let mut tombstones = block.tombstones.iter().peekable();
        for row in &block.rows {
            let before = |tombstone: &&Tombstone| {
                let Stamp { seq, ordinal, .. } = tombstone.stamp;
                (seq, ordinal) < (row.stamp.seq, row.stamp.ordinal)
            };
            while let Some(tombstone) = tombstones.next_if(before) {
                self.load_tombstone(tombstone);
            }
            let location = Location { file, offset: row.offset, len: row.len, crc: row.crc };
            let id = self.add_row(&row.facts, row.stamp, location);
            self.enter(id, &row.facts);
        }
        for tombstone in tombstones {
            self.load_tombstone(tombstone);
        }
        for touch in &block.touches {
            self.replay_touch(touch);
        }
        base
    }

    fn load_tombstone(&mut self, tombstone: &Tombstone) {
        let key = tombstone.key();
        match tombstone.ending {
            EndCause::Forgotten(by) => {
                self.add_tombstone(&key, tombstone.stamp, by);
            }
            EndCause::Dropped => self.end(&key, tombstone.stamp),
        }
    }

    /// Ends the head of a reference at a version that is not held any more. A later one, or a
    /// tombstone, follows.
    fn end(&mut self, key: &RefKey, stamp: Stamp) {
        if let Some(before) = self.rows.head(key) {
            self.rows.end_head(key, stamp.version, true);
            self.tombstones.remove(key);
            if before.live {
                self.retire(before.doc, stamp.recorded, false);
            }
        }
    }

    /// Works out what depends on which versions are live, and arranges places for search, once all
    /// segments and logs are loaded; on so many threads.
    pub fn finish_loading(&mut self, threads: usize) {
        let docs = self.rows.docs();
        let is_live = |id: DocId| docs.get(id as usize).is_some_and(Doc::is_live);
        self.text.set_liveness(is_live, threads);
        self.places.finish_loading(threads);
    }
}
