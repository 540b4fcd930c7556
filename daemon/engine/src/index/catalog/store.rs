//! The catalog as the store sees it: filled by a start, asked by sealing and compaction.

use std::collections::HashSet;
use std::error::Error;

use omir_core::model::Resource;
use omir_core::reference::{Ref, ResourceType};
use omird_store::{
    CompactionEntry, Fact, Files, Handle, Index, IndexExtractor, KeyPrefix, LearnedFacts, RefKey,
    Touch,
};

use super::Catalog;
use crate::index::block::{Block, DeletionOrigin, Kind, Row};
use crate::index::doc::{DocId, FileId, Location, Stamp};
use crate::index::facts::{Facts, Position, Times, terms_of};
use crate::index::text::{DocTerms, TextBlock, TextBlockBuilder, TextIndex};

impl Catalog {
    /// The bytes of a version, with the open file they lie in.
    pub fn handle(&self, id: DocId) -> Handle {
        Handle::of(self, id)
    }
}

impl IndexExtractor for Catalog {
    type Facts = Facts;
    type Places = Vec<Position>;
    type Times = Times;
    type Terms = DocTerms;
    type Words = TextBlock;
    type Gathering = TextBlockBuilder;

    fn format(kind: Kind) -> u32 {
        match kind {
            Kind::Places | Kind::Times => 11,
            // Words as they stand, since their stems are made in memory; rows say which versions carry a vector.
            Kind::Rows | Kind::Words => 12,
        }
    }

    fn facts(resource: &Resource) -> Facts {
        Facts::of(resource)
    }

    fn terms(resource: &Resource) -> DocTerms {
        terms_of(resource)
    }

    fn places(facts: &Facts) -> &Vec<Position> {
        &facts.places
    }

    fn times(facts: &Facts) -> Times {
        let Facts { when, since, valid_until, .. } = *facts;
        Times { when, since, valid_until }
    }

    fn join(facts: &mut Facts, places: Vec<Position>, times: Times) {
        facts.places = places;
        Times { when: facts.when, since: facts.since, valid_until: facts.valid_until } = times;
    }

    fn key(facts: &Facts) -> RefKey {
        facts.key
    }

    fn gather(words: &mut TextBlockBuilder, terms: &DocTerms) {
        words.add(terms);
    }

    fn gathered(words: TextBlockBuilder) -> TextBlock {
        words.finish()
    }

    /// Words for each row, and types there are.
    fn is_consistent(rows: &[Row], words: &TextBlock) -> bool {
        let types = ResourceType::ALL.len();
        rows.len() == words.docs()
            && rows.iter().all(|row| usize::from(row.facts.class.resource_type) < types)
    }
}

impl Index for Catalog {
    type Lexicon = TextIndex;

    fn loading() -> Self {
        Self::loading()
    }

    fn files(&self) -> &Files {
        &self.files
    }

    fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    fn load_rows(&mut self, block: &Block, file: FileId) -> DocId {
        self.load_rows(block, file)
    }

    fn take_lexicon(&mut self) -> TextIndex {
        std::mem::take(&mut self.text)
    }

    fn put_lexicon(&mut self, lexicon: TextIndex) {
        self.text = lexicon;
    }

    fn load_words(
        lexicon: &mut TextIndex,
        base: DocId,
        words: &TextBlock,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(lexicon.add_block(base, words)?)
    }

    fn load(&mut self, facts: &Facts, terms: &DocTerms, stamp: Stamp, location: Location) {
        self.put(facts, terms, None, stamp, location);
    }

    fn load_tombstone(&mut self, key: &RefKey, stamp: Stamp, by: DeletionOrigin) {
        self.forget(key, None, stamp, by);
    }

    fn replay_touch(&mut self, touch: &Touch) {
        self.replay_touch(touch);
    }

    fn learn(&mut self, facts: &[Fact]) -> LearnedFacts {
        self.learn(facts)
    }

    fn lose(&mut self, names: &HashSet<KeyPrefix>) -> u64 {
        self.lose(names)
    }

    fn lose_unknown(&mut self) {
        self.losses.note_unknown();
    }

    fn finish_loading(&mut self, threads: usize) {
        self.finish_loading(threads);
    }

    fn location(&self, id: DocId) -> Location {
        self.doc(id).location
    }

    fn live(&self, key: &RefKey) -> Option<(DocId, u64)> {
        self.live(key).map(|id| (id, self.doc(id).seq))
    }

    fn is_known(&self, key: &RefKey) -> bool {
        self.head(key).is_some()
    }

    fn may_be_lost(&self, key: &RefKey) -> bool {
        self.may_be_lost(key)
    }

    fn has_version_before(&self, key: &RefKey, seq: u64) -> bool {
        self.rows.has_version_before(key, seq)
    }

    fn forgotten_since(&self, key: &RefKey) -> Option<i64> {
        self.tombstones.forgotten_since(key, &self.rows)
    }

    fn is_name_reused(&self, key: &RefKey) -> bool {
        self.tombstones.name_reused(key).is_some()
    }

    fn stands(&self, from: DocId, target: &RefKey) -> bool {
        self.stands(from, target)
    }

    fn merged(&self) -> impl Iterator<Item = (RefKey, RefKey)> {
        self.tombstones.merged()
    }

    fn used_since(&self, id: DocId, reference: &Ref) -> Option<Touch> {
        self.usage_since_stored(id, reference.to_string())
    }

    fn compaction_entries(&self, first: u64, last: u64, horizon: i64) -> Vec<CompactionEntry> {
        self.rows.compaction_entries(first, last, horizon)
    }

    fn compact(
        &mut self,
        rows: &[Row],
        segment: FileId,
        dropped: &[DocId],
        tombstones: &[(RefKey, u64)],
    ) {
        self.compact(rows, segment, dropped, tombstones);
    }
}
