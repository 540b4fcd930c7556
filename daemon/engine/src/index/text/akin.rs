//! Documents by words that are akin to those of a question, where a model of meaning says which are.
//!
//! For each word of the question a document has the best of its terms, however often, and the sum over the words counts:
//!
//! ```text
//! score = Σ weight(word) · max over its terms in the document of how much the term says  ÷  Σ weight(word)
//! ```

use super::query::{END, List, WINDOW, each, idf};
use super::{Scratch, TextIndex};
use crate::index::doc::DocId;

/// A word of a question, and the terms that stand for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AkinTerms {
    /// Share of this word in a score.
    pub(crate) weight: f32,
    /// Terms with how much each says of the word, in (0, 1].
    pub(crate) terms: Vec<(u32, f32)>,
}

impl TextIndex {
    /// The terms from one on, in the order in which they came, with their texts.
    pub(crate) fn names_from(&self, first: usize) -> impl Iterator<Item = (u32, &str)> {
        (first..self.terms.len()).map(|term| (term as u32, self.name(term as u32)))
    }

    /// The text of a term.
    pub(crate) fn name_of(&self, term: u32) -> &str {
        self.name(term)
    }

    /// How rare a term is among live documents: 1 for one that none has, towards 0 for one that all have; `None` for one that
    /// no live document has.
    pub(crate) fn rarity(&self, term: u32) -> Option<f64> {
        let live = self.terms.get(term as usize)?.live;
        (live > 0).then(|| idf(self.live_docs, live) / idf(self.live_docs, 0))
    }

    /// Number of live documents that have a term.
    pub(crate) fn postings(&self, term: u32) -> usize {
        self.terms.get(term as usize).map_or(0, |term| term.live as usize)
    }

    /// Calls `f` once, ascending, with every document that has at least one of the terms, and its score in (0, 1].
    pub(crate) fn akin(
        &self,
        words: &[AkinTerms],
        scratch: &mut Scratch,
        mut f: impl FnMut(DocId, f32),
    ) {
        scratch.clear();
        let mut words: Vec<(f32, Vec<(f32, List<'_>)>)> = words
            .iter()
            .map(|word| {
                let lists = word.terms.iter().map(|(term, says)| (*says, self.list(*term)));
                (word.weight, lists.collect())
            })
            .collect();
        loop {
            let lists = words.iter().flat_map(|(_, lists)| lists);
            let base = lists.map(|(_, list)| list.doc()).min().unwrap_or(END);
            if base == END {
                return;
            }
            let Scratch { scores, found, counted, shares: best, .. } = &mut *scratch;
            for (weight, lists) in &mut words {
                for (says, list) in lists {
                    list.take_below(base + WINDOW, |doc, _| {
                        let slot = (doc - base) as usize;
                        best[slot] = best[slot].max(*says);
                        counted[slot / 64] |= 1 << (slot % 64);
                    });
                }
                each(counted, |slot| {
                    scores[slot] += *weight * std::mem::take(&mut best[slot]);
                    found[slot / 64] |= 1 << (slot % 64);
                });
            }
            each(found, |slot| {
                f(base + slot as DocId, std::mem::take(&mut scores[slot]).min(1.0));
            });
        }
    }
}
