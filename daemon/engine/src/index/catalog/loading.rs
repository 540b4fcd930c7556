//! How the catalog is filled when a store is opened.

use super::{Catalog, Head};
use crate::index::block::{Block, Ending, Tombstone};
use crate::index::doc::{Doc, DocId, FileId, Location, Stamp};
use crate::index::key::RefKey;
use crate::index::space::SpaceIndex;
use crate::index::text::BlockError;

impl Catalog {
    /// An empty index for all that a store holds: places can be searched only after
    /// [`Catalog::finish_loading`].
    pub fn loading() -> Self {
        Self { space: SpaceIndex::loading(), ..Self::default() }
    }

    /// Adds the versions of a sealed segment at start-up. [`Catalog::finish_loading`] must follow.
    ///
    /// # Errors
    /// If the words of the block are damaged; the catalog is then to be thrown away.
    pub fn load(&mut self, block: &Block, file: FileId) -> Result<(), BlockError> {
        let base = self.load_rows(block, file);
        self.text.add_block(base, &block.text)
    }

    /// The same without the words, which are to be added to [`Catalog::text`] with the row that is
    /// returned as their first document.
    pub fn load_rows(&mut self, block: &Block, file: FileId) -> DocId {
        let base = DocId::try_from(self.docs.len()).expect("fewer than 2^32 versions");
        let mut graves = block.tombstones.iter().peekable();
        for row in &block.rows {
            let before = |grave: &&Tombstone| {
                (grave.stamp.seq, grave.stamp.ordinal) < (row.stamp.seq, row.stamp.ordinal)
            };
            while let Some(grave) = graves.next_if(before) {
                self.bury_loaded(grave);
            }
            let location = Location { file, offset: row.offset, len: row.len, crc: row.crc };
            self.push(&row.facts, row.stamp, location);
        }
        for grave in graves {
            self.bury_loaded(grave);
        }
        for touch in &block.touches {
            self.replay_touch(touch);
        }
        base
    }

    fn bury_loaded(&mut self, grave: &Tombstone) {
        let key = grave.key();
        match grave.ending {
            Ending::Forgotten(by) => {
                self.bury(&key, grave.stamp, by);
            }
            Ending::Dropped => self.end(&key, grave.stamp),
        }
    }

    /// Ends the head of a reference at a version that is not held any more. A later one, or a
    /// tombstone, follows.
    fn end(&mut self, key: &RefKey, stamp: Stamp) {
        let Some(head) = self.heads.get_mut(key) else { return };
        let was_live = head.live;
        self.graves.remove(key);
        *head = Head { version: stamp.version, live: false, dropped: true, ..*head };
        let doc = head.doc;
        if was_live {
            self.retire(doc, stamp.recorded, false);
        }
    }

    /// Works out what depends on which versions are live, and arranges places for search, once all
    /// segments and logs are loaded; on so many threads.
    pub fn finish_loading(&mut self, threads: usize) {
        let docs = &self.docs;
        let is_live = |id: DocId| docs.get(id as usize).is_some_and(Doc::is_live);
        self.text.set_liveness(is_live, threads);
        self.space.finish_loading(threads);
    }
}
