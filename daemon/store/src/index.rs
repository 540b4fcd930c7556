//! The seam between the store and the index above it.
//!
//! The store keeps bytes, and knows when, as what and where each version was recorded. The meaning of a version, and
//! how it is found, is the index's business. Two traits say what passes between them:
//!
//! | trait | who calls it, and when |
//! |---|---|
//! | [`IndexExtractor`] | readers of a segment: the index extracts from each version what it needs |
//! | [`Index`] | a start, which fills the index; sealing and compaction, which ask it what is live |
//!
//! What was extracted is opaque here: the kept index stores it beside the number of its segment and hands it back.

use std::collections::HashSet;
use std::error::Error;

use omir_core::reference::Ref;

use crate::files::Files;
use crate::kept_index::block::Row;
use crate::kept_index::index_extractor::{BlockOf, IndexExtractor};
use crate::log::witness::Fact;
use crate::recorded::ref_key::{KeyPrefix, RefKey};
use crate::recorded::tombstone::DeletionOrigin;
use crate::recorded::transaction::Touch;
use crate::recorded::version::{DocId, FileId, Location, Stamp};

/// The fate of a version in a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is the current one.
    Live,
    /// It was superseded not long ago: questions about the past still find it.
    Kept,
    /// It was superseded long ago and is dropped.
    Superseded,
    /// It, or a later version of the same, was forgotten; it is dropped.
    Forgotten,
}

/// A version in a compaction.
#[derive(Debug, Clone, Copy)]
pub struct CompactionEntry {
    /// Its row.
    pub id: DocId,
    /// Of what.
    pub key: RefKey,
    /// The transaction that recorded it.
    pub seq: u64,
    /// Its position there.
    pub ordinal: u32,
    /// As which version of the resource.
    pub version: u64,
    /// When another version or a tombstone took its place; microseconds.
    pub retired: i64,
    /// Its fate.
    pub fate: Fate,
}

/// Facts that only second copies told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LearnedFacts {
    /// References whose newest version is lost.
    pub lost: u64,
    /// References that were forgotten.
    pub forgotten: u64,
}

/// The index that a start fills, and that sealing and compaction ask.
pub trait Index: IndexExtractor + Send + Sync + Sized {
    /// The part of the index that takes in words, which a start fills on a thread of its own.
    type Lexicon: Send;

    /// An empty index for all that a store holds. [`Index::finish_loading`] must follow.
    fn loading() -> Self;

    /// The files that versions lie in.
    fn files(&self) -> &Files;

    /// The files that versions lie in, to be changed.
    fn files_mut(&mut self) -> &mut Files;

    /// Takes in the versions of a segment without their words, and returns the row of the first.
    fn load_rows(&mut self, block: &BlockOf<Self>, file: FileId) -> DocId;

    /// Takes the words out, to be filled elsewhere.
    fn take_lexicon(&mut self) -> Self::Lexicon;

    /// Puts the words back.
    fn put_lexicon(&mut self, lexicon: Self::Lexicon);

    /// Takes in the words of a segment whose first row is `base`.
    ///
    /// # Errors
    /// If the words are damaged; the index is then to be thrown away.
    fn load_words(
        lexicon: &mut Self::Lexicon,
        base: DocId,
        words: &Self::Words,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Takes in a version from a log.
    fn load(&mut self, facts: &Self::Facts, terms: &Self::Terms, stamp: Stamp, location: Location);

    /// Takes in a tombstone from a log, and who forgot.
    fn load_tombstone(&mut self, key: &RefKey, stamp: Stamp, by: DeletionOrigin);

    /// Takes in how a resource was used.
    fn replay_touch(&mut self, touch: &Touch);

    /// Takes in what second copies say, in any order.
    fn learn(&mut self, facts: &[Fact]) -> LearnedFacts;

    /// Takes in names that damaged bytes tell, once [`Index::learn`] was called. Returns the number of names of which nothing else is known:
    /// they are lost.
    fn lose(&mut self, names: &HashSet<KeyPrefix>) -> u64;

    /// Notes that acknowledged first versions of unknown names are lost.
    fn lose_unknown(&mut self);

    /// Works out what depends on which versions are live, once all segments and logs are loaded; on so many threads.
    fn finish_loading(&mut self, threads: usize);

    /// The position of a version.
    fn location(&self, id: DocId) -> Location;

    /// The live version of a reference: its row, and the transaction that recorded it.
    fn live(&self, key: &RefKey) -> Option<(DocId, u64)>;

    /// Returns true if a version or a tombstone of the reference is held.
    fn is_known(&self, key: &RefKey) -> bool;

    /// Returns true if the card may have lost what had this name: nothing of it lives, and nobody forgot it.
    fn may_be_lost(&self, key: &RefKey) -> bool;

    /// Returns true if a version recorded before transaction `seq` is still held.
    fn has_version_before(&self, key: &RefKey, seq: u64) -> bool;

    /// Since when (microseconds) someone has had a resource forgotten; `None` while only rules have let go of it. What
    /// nothing is known of any more, someone may have had forgotten, and any time ago.
    fn forgotten_since(&self, key: &RefKey) -> Option<i64>;

    /// Returns true if this is the name of something new, and once was that of something that was forgotten.
    fn is_name_reused(&self, key: &RefKey) -> bool;

    /// Returns true if a reference of version `from` still names what it named then.
    fn stands(&self, from: DocId, target: &RefKey) -> bool;

    /// Lists what became a part of which record, as far as the tombstones are still held.
    fn merged(&self) -> impl Iterator<Item = (RefKey, RefKey)>;

    /// How a live version was used since it was stored.
    fn used_since(&self, id: DocId, reference: &Ref) -> Option<Touch>;

    /// Decides the fates of the versions of transactions `first` to `last` when their segments are compacted, in the
    /// order they were recorded. Drops the forgotten, and those superseded before `horizon` (microseconds).
    fn compaction_entries(&self, first: u64, last: u64, horizon: i64) -> Vec<CompactionEntry>;

    /// Moves versions to the segment they were sealed or compacted into, and takes out what was dropped: versions, and
    /// tombstones by key and version. `rows` and `dropped` are in the order they were recorded.
    fn compact(
        &mut self,
        rows: &[Row<Self::Facts>],
        segment: FileId,
        dropped: &[DocId],
        tombstones: &[(RefKey, u64)],
    );
}
