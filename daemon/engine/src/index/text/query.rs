//! A query for words: the documents that have them, and how well each agrees.
//!
//! Scoring is that of Robertson & Zaragoza (2009), k₁ = 1.2, b = 0.75, with the form of idf that is never negative.
//! The sum is divided by its upper bound over all terms of the query, unknown ones included, so a score says how much
//! of the query a document answers:
//!
//! ```text
//! idf(t)  = ln(1 + (N − df(t) + ½) / (df(t) + ½))
//! score   = Σ idf(t) · tf / (tf + k₁ (1 − b + b · length / mean length))  ÷  Σ idf(t)
//! ```
//!
//! (k₁ + 1 cancels.) Scores lie in (0, 1] and depend only on the query, the document's text and the set of live texts:
//! sums run in the order of the terms' spelling, never of arrival.
//!
//! If there are enough documents to tell, a term that more than half of them have neither selects nor scores beside a
//! rarer one.

use super::TextIndex;
use super::postings::Reader;
use super::terms::DocTerms;
use crate::index::doc::DocId;

pub(super) const K1: f64 = 1.2;
pub(super) const B: f64 = 0.75;

/// From so many live documents on, a term in more than half of them is left out of a query that
/// also has a rarer one: "the", in any language, without a list of such words.
pub(super) const COMMON_FROM: u32 = 32;

/// Documents whose scores are gathered at a time: 8 KiB, which stays in the nearest cache.
const WINDOW: u32 = 2048;

/// Beyond the last document, for a reader that has none left.
const END: DocId = DocId::MAX;

/// A query: its distinct terms in order of spelling, with their weights as of when it was made.
#[derive(Clone, Debug, Default)]
pub struct TextQuery {
    terms: Vec<QueryTerm>,
    norm: Norm,
}

#[derive(Clone, Debug)]
struct QueryTerm {
    /// Share of this term in the best attainable score.
    weight: f32,
    /// Position in the index's terms, if any document ever had it.
    known: Option<u32>,
}

/// Damping of a term's count by document length: `fixed + per_token · length`.
#[derive(Clone, Copy, Debug, Default)]
struct Norm {
    fixed: f32,
    per_token: f32,
}

/// Working memory of [`TextIndex::candidates`], about 8 KiB, to be kept between calls.
pub struct Scratch {
    scores: Box<[f32]>,
    found: [u64; WINDOW as usize / 64],
}

impl Scratch {
    /// Fresh working memory.
    pub fn new() -> Self {
        Self { scores: vec![0.0; WINDOW as usize].into(), found: [0; WINDOW as usize / 64] }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl TextIndex {
    /// Prepares a query. Costs one look-up for each word; `text` should be bounded by the caller.
    pub fn query(&self, text: &str) -> TextQuery {
        let words = DocTerms::of([text]);
        // Each term's position, and how many live documents have it.
        let mut found: Vec<_> = words
            .iter()
            .map(|(text, _)| {
                let known = self.find(text);
                (known, known.map_or(0, |term| self.terms[term as usize].live))
            })
            .collect();
        let is_common = |df: u32| df > self.live_docs / 2;
        if self.live_docs >= COMMON_FROM && found.iter().any(|&(_, df)| df > 0 && !is_common(df)) {
            found.retain(|&(_, df)| !is_common(df));
        }
        let idf = |df| idf(self.live_docs, df);
        let total: f64 = found.iter().map(|&(_, df)| idf(df)).sum();
        let weighted = |(known, df)| QueryTerm { weight: (idf(df) / total) as f32, known };
        let terms = found.into_iter().map(weighted).collect();
        let mean = if self.live_docs == 0 {
            1.0
        } else {
            self.live_tokens as f64 / f64::from(self.live_docs)
        };
        let norm = Norm { fixed: (K1 * (1.0 - B)) as f32, per_token: (K1 * B / mean) as f32 };
        TextQuery { terms, norm }
    }

    /// The documents that have every term of a text, ascending, common terms included. None has those of a text without
    /// terms.
    pub fn with_all(&self, text: &str) -> Vec<DocId> {
        let words = DocTerms::of([text]);
        let terms: Option<Vec<&[u8]>> = words
            .iter()
            .map(|(name, _)| Some(self.terms[self.find(name)? as usize].postings.as_slice()))
            .collect();
        let mut terms = terms.unwrap_or_default();
        // What the rarest has is all that the others are compared with.
        terms.sort_unstable_by_key(|postings| postings.len());
        let mut terms = terms.into_iter();
        let mut docs: Vec<DocId> = terms.next().map(docs_of).into_iter().flatten().collect();
        for postings in terms {
            let mut others = docs_of(postings).peekable();
            docs.retain(|&doc| {
                while others.next_if(|&other| other < doc).is_some() {}
                others.peek() == Some(&doc)
            });
        }
        docs
    }

    /// Calls `f` once, ascending, with every document that has at least one of the query's terms,
    /// and its score in (0, 1]. Retired documents are scored by today's statistics.
    ///
    /// `query` must come from this index; scores are as of when it was made.
    pub fn candidates(
        &self,
        query: &TextQuery,
        scratch: &mut Scratch,
        mut f: impl FnMut(DocId, f32),
    ) {
        let score = |weight: f32, doc: DocId, count: u32| {
            let len = self.lengths.get(doc as usize).copied().unwrap_or(0);
            let count = count as f32;
            weight * count / (count + query.norm.fixed + query.norm.per_token * f32::from(len))
        };
        let postings = |term: &QueryTerm| {
            Some(Reader::new(self.terms.get(term.known? as usize)?.postings.as_slice()))
        };
        let mut lists: Vec<_> = query
            .terms
            .iter()
            .filter_map(|term| Some(List::new(term.weight, postings(term)?)))
            .collect();
        if let [List { weight, next, rest }] = &mut lists[..] {
            for (doc, count) in next.iter().copied().filter(|&(doc, _)| doc != END).chain(rest) {
                f(doc, score(*weight, doc, count).min(1.0));
            }
            return;
        }
        // A caller's panic may have left something behind.
        scratch.scores.fill(0.0);
        scratch.found.fill(0);
        loop {
            let base = lists.iter().map(List::doc).min().unwrap_or(END);
            if base == END {
                return;
            }
            // Lists are in order of spelling, so each document's sum is too.
            for list in &mut lists {
                list.take_below(base + WINDOW, |weight, doc, count| {
                    let slot = (doc - base) as usize;
                    scratch.scores[slot] += score(weight, doc, count);
                    scratch.found[slot / 64] |= 1 << (slot % 64);
                });
            }
            for (word, found) in scratch.found.iter_mut().enumerate() {
                let mut bits = std::mem::take(found);
                while bits != 0 {
                    let slot = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    f(base + slot as DocId, std::mem::take(&mut scratch.scores[slot]).min(1.0));
                }
            }
        }
    }
}

/// The documents of postings, ascending.
fn docs_of(postings: &[u8]) -> impl Iterator<Item = DocId> {
    Reader::new(postings).map(|(doc, _)| doc)
}

/// Inverse document frequency of a term. Above zero for any counts.
fn idf(all: u32, with_term: u32) -> f64 {
    let (all, with_term) = (f64::from(all), f64::from(with_term));
    ((all - with_term + 0.5) / (with_term + 0.5)).ln_1p()
}

/// One term's postings on their way through a query.
struct List<'a> {
    weight: f32,
    /// The posting that comes next, read ahead.
    next: Option<(DocId, u32)>,
    rest: Reader<'a>,
}

impl<'a> List<'a> {
    fn new(weight: f32, mut rest: Reader<'a>) -> Self {
        Self { weight, next: rest.next(), rest }
    }

    fn doc(&self) -> DocId {
        self.next.map_or(END, |(doc, _)| doc)
    }

    fn take_below(&mut self, end: DocId, mut f: impl FnMut(f32, DocId, u32)) {
        // Copies, so that the loop runs in registers.
        let (weight, mut next, mut rest) = (self.weight, self.next, self.rest.clone());
        while let Some((doc, count)) = next.filter(|&(doc, _)| doc < end) {
            f(weight, doc, count);
            next = rest.next();
        }
        (self.next, self.rest) = (next, rest);
    }
}
