//! The kept index: what a start needs of each sealed segment, so that it need not read the segment.
//!
//! Each kind ([`IndexKind`]) lies apart, under a key of its own, with its own checksum, format and the digest of the segment
//! it was made of. One that is missing, damaged, of another format or of another segment is rebuilt alone; the others
//! are used as they are. Whatever goes wrong here costs a rebuild, never data.
//! Invariant 4 of ARCHITECTURE.md.

use std::io;

use super::block::IndexKind;
use super::block_codec::{self, BlockParts, Outline};
use super::derived::{Derived, DerivedEntry};
use super::index_extractor::{BlockOf, IndexExtractor};
use crate::digest::Digest;

/// The index on disk, or nothing if it cannot be used.
pub struct Cache {
    store: Option<Box<dyn Derived>>,
    /// Blocks of smaller segments are not kept.
    least: u64,
    /// True after everything was thrown away, until it is rebuilt.
    is_lacking: bool,
}

impl Cache {
    /// A cache that keeps nothing: every start rebuilds.
    pub fn none() -> Self {
        Self { store: None, least: 0, is_lacking: false }
    }

    /// A cache that keeps the index in `store`.
    pub fn new(store: Box<dyn Derived>) -> Self {
        Self { store: Some(store), least: 0, is_lacking: false }
    }

    /// Keeps only blocks of segments of at least so many bytes from now on: that of a small one is
    /// rebuilt in less time than sled needs to write it, and wears out no card.
    #[must_use]
    pub fn keeping(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    /// Returns true if the block of a segment of so many bytes is worth keeping.
    pub fn is_for(&self, bytes: u64) -> bool {
        bytes >= self.least
    }

    /// Reads the kept kinds of a segment, if they are of this very file.
    pub fn get<D: IndexExtractor>(&self, segment: u64, digest: &Digest) -> BlockParts<D> {
        let part = |kind| self.value(&key(kind, segment));
        BlockParts::read(digest, part)
    }

    /// Reads the outline of a segment, without its block.
    pub fn outline(&self, segment: u64, digest: &Digest) -> Option<Outline> {
        let bytes = self.value(&outline_key(segment))?;
        Outline::from_bytes(&bytes).filter(|outline| outline.digest == *digest)
    }

    fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.store.as_ref()?.get(key).ok().flatten()
    }

    /// Keeps these kinds of the block of a segment of so many bytes, if it is worth it; returns how many bytes were
    /// written. A failure is logged: it only costs a rebuild.
    pub fn put<D: IndexExtractor>(
        &mut self,
        segment: u64,
        bytes: u64,
        block: &BlockOf<D>,
        kinds: &[IndexKind],
    ) -> u64 {
        if !self.is_for(bytes) || self.store.is_none() {
            return 0;
        }
        let mut entries: Vec<DerivedEntry> =
            vec![(outline_key(segment), Some(Outline::of(block).to_bytes()))];
        for &kind in kinds {
            match block_codec::encode::<D>(block, kind) {
                Ok(value) => entries.push((key(kind, segment), Some(value))),
                Err(error) => {
                    tracing::warn!(segment, %kind, %error, "cannot encode the index of a segment");
                    return 0;
                }
            }
        }
        let written = entries.iter().map(|(_, value)| value.as_ref().map_or(0, Vec::len) as u64);
        let written = written.sum();
        if self.write(entries) { written } else { 0 }
    }

    /// Writes; where the store refuses it is rebuilt, once.
    fn write(&mut self, entries: Vec<DerivedEntry>) -> bool {
        let Some(store) = &mut self.store else { return false };
        let Err(reason) = store.write(&entries) else { return true };
        tracing::warn!(%reason, "the index cannot be written and is rebuilt");
        self.is_lacking = true;
        let again = store.clear().map_err(|error| error.to_string());
        match again.and_then(|()| store.write(&entries).map_err(|reason| reason.to_string())) {
            Ok(()) => true,
            Err(reason) => {
                tracing::warn!(%reason, "running without a kept index");
                self.store = None;
                false
            }
        }
    }

    /// Drops what is kept of segments that were replaced.
    pub fn remove(&mut self, segments: &[u64]) {
        self.retain(|number| !segments.contains(&number));
    }

    /// Drops what is kept of segments that are no longer there, and what is no key of ours.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let Some(store) = &self.store else { return };
        let keys = store.keys().unwrap_or_else(|reason| {
            tracing::warn!(%reason, "cannot tidy the index");
            Vec::new()
        });
        let is_kept = |key: &Vec<u8>| number_of(key).is_some_and(&keep);
        let dropped: Vec<DerivedEntry> =
            keys.into_iter().filter(|key| !is_kept(key)).map(|key| (key, None)).collect();
        if !dropped.is_empty() {
            self.write(dropped);
        }
    }

    /// Throws everything away, before segments with something that was forgotten are replaced: a store may hold what
    /// was removed from it for as long as it likes. [`Cache::is_lacking`] until it is rebuilt, here or at the next
    /// start.
    ///
    /// # Errors
    /// If the disk refuses. Then nothing may be purged yet.
    pub fn clear(&mut self) -> io::Result<()> {
        let Some(store) = &mut self.store else { return Ok(()) };
        self.is_lacking = true;
        store.clear()
    }

    /// Returns true if something may have to be rebuilt.
    pub(crate) fn is_lacking(&self) -> bool {
        self.is_lacking && self.store.is_some()
    }

    /// Notes that everything there was to keep is kept.
    pub fn is_complete(&mut self) {
        self.is_lacking = false;
    }

    /// Returns true if the block of this segment is kept, or was.
    pub fn holds(&self, segment: u64) -> bool {
        self.value(&outline_key(segment)).is_some()
    }

    /// Bytes on disk, as far as they can be told.
    pub fn size_on_disk(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.size_on_disk())
    }
}

/// The tag of an outline, beside those of kinds.
const OUTLINE: u8 = b'o';

/// The key of a segment's outline.
fn outline_key(segment: u64) -> Vec<u8> {
    tagged(OUTLINE, segment)
}

/// The key of one kind of a segment's index: those of a kind lie side by side.
fn key(kind: IndexKind, segment: u64) -> Vec<u8> {
    tagged(kind.tag(), segment)
}

fn tagged(tag: u8, segment: u64) -> Vec<u8> {
    let mut key = vec![tag];
    key.extend_from_slice(&segment.to_be_bytes());
    key
}

/// The segment that a key belongs to.
fn number_of(key: &[u8]) -> Option<u64> {
    let (tag, number) = key.split_first()?;
    let is_ours = *tag == OUTLINE || IndexKind::ALL.iter().any(|kind| kind.tag() == *tag);
    let number: [u8; 8] = number.try_into().ok()?;
    is_ours.then(|| u64::from_be_bytes(number))
}
