//! Phrases: the index proposes what has their words, and the texts themselves tell.
//!
//! Texts lie on the card, and no thread may wait for it with the index locked. So they are read beforehand
//! (`read/phrases.rs`), and the search looks at what was found; what came in since, it reads itself.

use std::collections::HashMap;

use omir_core::model::Resource;
use omird_store::Handle;

use super::filter::Filter;
use super::fuse::Candidates;
use super::propose::{ResolvedQuery, propose};
use super::query::Query;
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::texts_of;
use crate::index::text::Docs;
use crate::question::{Phrase, Question, Sequence};

/// What texts say of the phrases of one question.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    of: HashMap<DocId, bool>,
    /// Texts that the card does not give back. They match nothing.
    pub unreadable: u64,
}

impl Verdicts {
    /// Number of texts that were read.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    /// Reads a text and notes what it says.
    pub(crate) fn read(&mut self, question: &Question, id: DocId, handle: &Handle) -> bool {
        let agrees = match handle.resource() {
            Ok(resource) => agrees(question, &resource),
            Err(error) => {
                tracing::error!(%error, "not looked through for a phrase");
                self.unreadable += 1;
                false
            }
        };
        self.of.insert(id, agrees);
        agrees
    }
}

/// Returns true if a resource has every phrase that must occur and none that must not.
fn agrees(question: &Question, resource: &Resource) -> bool {
    let texts: Vec<Sequence> = texts_of(resource).iter().map(|text| Sequence::of(text)).collect();
    let has = |phrase: &Phrase| texts.iter().any(|text| phrase.is_in(text));
    question.phrases().iter().all(has) && !question.excluded().phrases.iter().any(has)
}

/// The check of a search: which versions have the phrases.
pub(super) struct Check<'a> {
    question: &'a Question,
    /// Versions with the words of a phrase that is excluded.
    suspects: Docs,
    verdicts: &'a mut Verdicts,
}

impl<'a> Check<'a> {
    /// That of a query, if it has phrases.
    pub(super) fn of(
        catalog: &Catalog,
        query: &'a Query,
        verdicts: &'a mut Verdicts,
    ) -> Option<Self> {
        let question = query.text.as_ref().filter(|text| text.needs_texts())?;
        let one = |phrase| catalog.text.with_words_of(std::slice::from_ref(phrase));
        let suspects = question.excluded().phrases.iter().flat_map(one).collect();
        Some(Self { question, suspects, verdicts })
    }

    /// Returns what is known of a version without its text.
    fn known(&self, id: DocId) -> Option<bool> {
        // The index proposes only what may have the phrases that must occur.
        if self.question.phrases().is_empty() && !self.suspects.has(id) {
            return Some(true);
        }
        self.verdicts.of.get(&id).copied()
    }

    /// Returns true if a version has the phrases; reads its text unless that was done.
    pub(super) fn passes(&mut self, catalog: &Catalog, id: DocId) -> bool {
        self.known(id).unwrap_or_else(|| self.verdicts.read(self.question, id, &catalog.handle(id)))
    }
}

/// The versions that match but for their texts, which are still to be read.
pub(crate) fn unread(
    catalog: &Catalog,
    query: &Query,
    now: i64,
    verdicts: &mut Verdicts,
) -> Vec<DocId> {
    let filter = Filter::new(catalog, query, query.at(now));
    let Some(check) = Check::of(catalog, query, verdicts).filter(|_| !filter.is_void()) else {
        return Vec::new();
    };
    let mut unread = Vec::new();
    let mut look = |id| {
        if check.known(id).is_none() && filter.accepts(catalog, id).is_some() {
            unread.push(id);
        }
    };
    let resolved = ResolvedQuery::new(catalog, query, None);
    // Matches by meaning and by a relationship have texts too.
    match Candidates::of(catalog, &resolved, query, &filter, &|_| false) {
        Some(candidates) => candidates.each(|one| look(one.id)),
        None => propose(catalog, &resolved, &mut |id, _| look(id)),
    }
    unread
}
