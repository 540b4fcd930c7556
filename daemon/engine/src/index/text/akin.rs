//! Documents by words that are akin to those of a question, where a model of meaning says which are.
//!
//! For each word of the question a document has the best of its terms, damped as words are, and the sum over the words counts:
//!
//! ```text
//! score = Σ weight(word) · max over its terms in the document of says(term) · tf / (tf + k₁ (1 − b + 2 b · length / mean length))
//!         ÷  Σ weight(word)
//! ```
//!
//! The length counts twice as much as among words: many terms stand for a word, and a long text has one of them sooner.

use super::query::{END, List, WINDOW, each, idf};
use super::{Scratch, Term, TextIndex};
use crate::index::doc::DocId;

/// How many times as much the length of a document counts as among words.
const LENGTH: f32 = 2.0;

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

    /// The same of a word in all its forms; 1 for one that no memory has.
    pub(crate) fn rarity_of_word(&self, word: &str) -> f64 {
        let forms = self.forms(&self.stem(word));
        idf(self.live_docs, self.frequency(&forms)) / idf(self.live_docs, 0)
    }

    /// What a walk over a term's list costs, in postings of live documents. Those of retired ones are walked past too, and stay
    /// until the next start: a byte or more each, so that no list costs more than four times what this says.
    pub(crate) fn postings(&self, term: u32) -> usize {
        let of = |term: &Term| (term.live as usize).max(term.postings.as_slice().len() / 4);
        self.terms.get(term as usize).map_or(0, of)
    }

    /// Calls `f` once, ascending, with every document that has at least one of the terms, and its score in (0, 1].
    pub(crate) fn akin(
        &self,
        words: &[AkinTerms],
        scratch: &mut Scratch,
        mut f: impl FnMut(DocId, f32),
    ) {
        scratch.clear();
        let norm = self.norm().steeper(LENGTH);
        let len = |doc: DocId| self.lengths.get(doc as usize).copied().unwrap_or(0);
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
                    list.take_below(base + WINDOW, |doc, count| {
                        let slot = (doc - base) as usize;
                        best[slot] = best[slot].max(norm.score(*says, count as f32, len(doc)));
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
