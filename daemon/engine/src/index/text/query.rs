//! A query for words: the documents that have one of them, and how well each agrees. `text/docs.rs` has sets of documents
//! without a score.
//!
//! Scoring is that of Robertson & Zaragoza (2009), k₁ = 0.9, b = 0.4, with the form of idf that is never negative. A
//! *term* of the query is all forms of a word, or all words with a beginning: its count in a document is that of all of
//! them, and its df is the sum of theirs, at most N. The sum is divided by its upper bound over all terms of the query,
//! unknown ones included, so a score says how much of the query a document answers:
//!
//! ```text
//! idf(t)  = ln(1 + (N − df(t) + ½) / (df(t) + ½))
//! score   = Σ idf(t) · tf / (tf + k₁ (1 − b + b · length / mean length))  ÷  Σ idf(t)
//! ```
//!
//! (k₁ + 1 cancels.) Scores lie in (0, 1] and depend only on the query, the document's text and the set of live texts:
//! sums run in the order of the terms' spelling, never of arrival.
//!
//! Stop words of the store's language neither select nor score beside other words. If there are enough documents to tell,
//! nor does a term that more than half of them have, beside a rarer one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::TextIndex;
use super::postings::Reader;
use crate::index::doc::DocId;
use crate::question::{Phrase, Question};

pub(super) const K1: f64 = 0.9;
pub(super) const B: f64 = 0.4;

/// From so many live documents on, a term in more than half of them is left out of a query that
/// also has a rarer one: "the", in any language, without a list of such words.
pub(super) const COMMON_FROM: u32 = 32;

/// Words that no memory has and that are looked up as typing errors, of one question. Further ones are what they are: no words of
/// the store.
pub(super) const MOST_CORRECTED: usize = 16;

/// Documents whose scores are gathered at a time: 8 KiB, which stays in the nearest cache.
pub(super) const WINDOW: u32 = 2048;

/// Beyond the last document, for a reader that has none left.
pub(super) const END: DocId = DocId::MAX;

/// A query: its distinct terms in order of spelling, with their weights as of when it was made.
#[derive(Clone, Debug, Default)]
pub struct TextQuery {
    terms: Vec<QueryTerm>,
    norm: Norm,
    /// BM25 of a score of 1.
    scale: f64,
    /// What all its words together tell, in words that no document has.
    rarity: f64,
    corrected: Vec<Correction>,
}

impl TextQuery {
    /// BM25 as the books have it, with the factor k₁ + 1, of a score.
    pub fn bm25(&self, score: f64) -> f64 {
        score * self.scale
    }

    /// How much the words tell that a document has with this share of the weight: the sum of their rarities, 1 for a word that no
    /// document has. By chance, one document of all has words of about 1.
    pub(crate) fn rarity_of(&self, share: f32) -> f64 {
        self.rarity * f64::from(share)
    }

    /// Words that no live document has, and what they were taken for.
    pub fn into_corrected(self) -> Vec<Correction> {
        self.corrected
    }
}

/// A word that no live document has, and the words at one typing error from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The word as it was asked for.
    pub from: String,
    /// Words that it was taken for, one for each stem; any of them counts.
    pub to: Vec<String>,
}

#[derive(Clone, Debug)]
struct QueryTerm {
    /// Share of this term in the best attainable score.
    weight: f32,
    /// Positions of its forms in the index's terms: none, if no document ever had any.
    forms: Box<[u32]>,
}

/// Damping of a term's count by document length: `fixed + per_token · length`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Norm {
    fixed: f32,
    per_token: f32,
}

impl Norm {
    /// The same where the length of a document counts so many times as much.
    pub(super) fn steeper(self, times: f32) -> Self {
        Self { per_token: self.per_token * times, ..self }
    }

    #[inline]
    pub(super) fn score(self, weight: f32, count: f32, len: u16) -> f32 {
        weight * count / (count + self.fixed + self.per_token * f32::from(len))
    }
}

/// Working memory of [`TextIndex::candidates`] and [`TextIndex::akin`], about 24 KiB, to be kept between calls.
pub struct Scratch {
    pub(super) scores: Box<[f32]>,
    pub(super) found: [u64; WINDOW as usize / 64],
    /// Counts of a term with several forms, and the documents that have one of them.
    counts: Box<[u32]>,
    pub(super) counted: [u64; WINDOW as usize / 64],
    /// Shares of the query that documents have.
    pub(super) shares: Box<[f32]>,
}

thread_local! {
    static OF_THREAD: RefCell<Scratch> = RefCell::new(Scratch::new());
}

impl Scratch {
    /// Calls `f` with the working memory of this thread. `f` must not call this again.
    pub fn with<T>(f: impl FnOnce(&mut Self) -> T) -> T {
        OF_THREAD.with_borrow_mut(f)
    }

    /// Fresh working memory.
    pub fn new() -> Self {
        let bits = [0; WINDOW as usize / 64];
        Self {
            scores: vec![0.0; WINDOW as usize].into(),
            found: bits,
            counts: vec![0; WINDOW as usize].into(),
            counted: bits,
            shares: vec![0.0; WINDOW as usize].into(),
        }
    }

    /// A caller's panic may have left something behind.
    pub(super) fn clear(&mut self) {
        self.scores.fill(0.0);
        self.found.fill(0);
        self.counts.fill(0);
        self.counted.fill(0);
        self.shares.fill(0.0);
    }
}

impl TextIndex {
    /// Prepares a query. Costs one look-up for each word, and a few hundred for each of the first [`MOST_CORRECTED`] that no memory
    /// has, or a look at all terms if they are not ASCII; such a look for each beginning of a word. [`Question::parse`] bounds both.
    pub fn query(&self, question: &Question) -> TextQuery {
        let language = self.language();
        // Forms and how many live documents have them, by spelling. What ends in a sign is a beginning.
        let mut found: BTreeMap<String, (Vec<u32>, u32)> = BTreeMap::new();
        let mut add = |name: String, forms: Vec<u32>| {
            let frequency = self.frequency(&forms);
            found.insert(name, (forms, frequency));
        };
        let (mut corrected, mut looked_for) = (Vec::new(), 0);
        let is_stop = |word: &&String| omird_text::is_stop_word(language, word);
        let has_content =
            !question.prefixes().is_empty() || !question.words().iter().all(|word| is_stop(&word));
        for word in question.words().iter().filter(|word| !has_content || !is_stop(word)) {
            let stem = self.stem(word);
            let mut forms = self.forms(&stem);
            let is_corrected = question.is_typed()
                && looked_for < MOST_CORRECTED
                && self.frequency(&forms) == 0
                && !question.phrases().iter().any(|phrase| has(phrase, word));
            looked_for += usize::from(is_corrected);
            let meant = if is_corrected { self.corrected(word) } else { Vec::new() };
            if !meant.is_empty() {
                // Those that had the word, and are retired, are still found by it.
                forms.extend(meant.iter().flat_map(|meant| self.forms(&self.stem(meant))));
                corrected.push(Correction { from: word.clone(), to: meant });
            }
            add(stem.into_owned(), forms);
        }
        for prefix in question.prefixes() {
            add(format!("{prefix}*"), self.beginning_with(prefix));
        }
        corrected.dedup();
        // A client that writes a beginning means it.
        let is_common = |name: &str, df: u32| df > self.live_docs / 2 && !name.ends_with('*');
        let is_rarer =
            |(name, (_, df)): (&String, &(Vec<u32>, u32))| *df > 0 && !is_common(name, *df);
        if self.live_docs >= COMMON_FROM && found.iter().any(is_rarer) {
            found.retain(|name, (_, df)| !is_common(name, *df));
        }
        let found: Vec<(Vec<u32>, u32)> = found.into_values().collect();
        let idf = |df| idf(self.live_docs, df);
        let total: f64 = found.iter().map(|&(_, df)| idf(df)).sum();
        let weighted = |(forms, df): (Vec<u32>, u32)| QueryTerm {
            weight: (idf(df) / total) as f32,
            forms: forms.into(),
        };
        // A word that no document has counts in the total alone.
        let terms =
            found.into_iter().filter(|(forms, _)| !forms.is_empty()).map(weighted).collect();
        let (scale, rarity) = (total * (K1 + 1.0), total / idf(0));
        TextQuery { terms, norm: self.norm(), scale, rarity, corrected }
    }

    /// The damping of today.
    pub(super) fn norm(&self) -> Norm {
        let mean = if self.live_docs == 0 {
            1.0
        } else {
            self.live_tokens as f64 / f64::from(self.live_docs)
        };
        Norm { fixed: (K1 * (1.0 - B)) as f32, per_token: (K1 * B / mean) as f32 }
    }

    /// The postings of a term, to walk through.
    pub(super) fn list(&self, term: u32) -> List<'_> {
        List::new(Reader::new(self.terms[term as usize].postings.as_slice()))
    }

    /// Calls `f` once, ascending, with every document that has at least one of the query's terms, and its score in (0, 1].
    /// Retired documents are scored by today's statistics.
    ///
    /// `query` must come from this index; scores are as of when it was made.
    pub fn candidates(
        &self,
        query: &TextQuery,
        scratch: &mut Scratch,
        mut f: impl FnMut(DocId, f32),
    ) {
        let len = |doc: DocId| self.lengths.get(doc as usize).copied().unwrap_or(0);
        if let [QueryTerm { weight, forms }] = &query.terms[..]
            && let [form] = &forms[..]
        {
            for (doc, count) in Reader::new(self.terms[*form as usize].postings.as_slice()) {
                f(doc, query.norm.score(*weight, count as f32, len(doc)).min(1.0));
            }
            return;
        }
        self.windows::<false>(query, scratch, |base, scratch| {
            each(&mut scratch.found, |slot| {
                f(base + slot as DocId, std::mem::take(&mut scratch.scores[slot]).min(1.0));
            });
        });
    }

    /// Calls `f` once, ascending, with every candidate, its score, and the share of the query's weight that it has: 1 for
    /// one with all terms, however often.
    pub fn candidates_with_shares(
        &self,
        query: &TextQuery,
        scratch: &mut Scratch,
        mut f: impl FnMut(DocId, f32, f32),
    ) {
        self.windows::<true>(query, scratch, |base, scratch| {
            each(&mut scratch.found, |slot| {
                let score = std::mem::take(&mut scratch.scores[slot]).min(1.0);
                let share = std::mem::take(&mut scratch.shares[slot]).min(1.0);
                f(base + slot as DocId, score, share);
            });
        });
    }

    /// Fills window after window, and hands each to `emit`, which empties it.
    fn windows<const WITH_SHARES: bool>(
        &self,
        query: &TextQuery,
        scratch: &mut Scratch,
        mut emit: impl FnMut(DocId, &mut Scratch),
    ) {
        let lengths = self.lengths.as_slice();
        let len = |doc: DocId| lengths.get(doc as usize).copied().unwrap_or(0);
        let list = |form: &u32| self.list(*form);
        let mut terms: Vec<(f32, Vec<List<'_>>)> = query
            .terms
            .iter()
            .map(|term| (term.weight, term.forms.iter().map(list).collect()))
            .collect();
        scratch.clear();
        let norm = query.norm;
        loop {
            let docs = terms.iter().flat_map(|(_, lists)| lists.iter().map(List::doc));
            let base = docs.min().unwrap_or(END);
            if base == END {
                return;
            }
            let Scratch { scores, found, counts, counted, shares } = scratch;
            // Terms are in order of spelling, so each document's sum is too.
            for (weight, lists) in &mut terms {
                let weight = *weight;
                let mut add = |slot: usize, count: u32| {
                    let doc = base + slot as DocId;
                    scores[slot] += norm.score(weight, count as f32, len(doc));
                    if WITH_SHARES {
                        shares[slot] += weight;
                    }
                    found[slot / 64] |= 1 << (slot % 64);
                };
                if let [list] = &mut lists[..] {
                    list.take_below(base + WINDOW, |doc, count| add((doc - base) as usize, count));
                    continue;
                }
                for list in lists {
                    list.take_below(base + WINDOW, |doc, count| {
                        let slot = (doc - base) as usize;
                        counts[slot] = counts[slot].saturating_add(count);
                        counted[slot / 64] |= 1 << (slot % 64);
                    });
                }
                each(counted, |slot| add(slot, std::mem::take(&mut counts[slot])));
            }
            emit(base, scratch);
        }
    }
}

/// Returns true if a word is one of a phrase.
fn has(phrase: &Phrase, word: &String) -> bool {
    phrase.readings().any(|words| words.contains(word))
}

/// Calls `f` with each bit that is set, ascending, and clears them.
#[inline]
pub(super) fn each(bits: &mut [u64], mut f: impl FnMut(usize)) {
    for (word, bits) in bits.iter_mut().enumerate() {
        let mut bits = std::mem::take(bits);
        while bits != 0 {
            f(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

/// Inverse document frequency of a term. Above zero for any counts.
pub(super) fn idf(all: u32, with_term: u32) -> f64 {
    let (all, with_term) = (f64::from(all), f64::from(with_term));
    ((all - with_term + 0.5) / (with_term + 0.5)).ln_1p()
}

/// One form's postings on their way through a query.
pub(super) struct List<'a> {
    /// The posting that comes next, read ahead.
    next: Option<(DocId, u32)>,
    rest: Reader<'a>,
}

impl<'a> List<'a> {
    fn new(mut rest: Reader<'a>) -> Self {
        Self { next: rest.next(), rest }
    }

    pub(super) fn doc(&self) -> DocId {
        self.next.map_or(END, |(doc, _)| doc)
    }

    #[inline]
    pub(super) fn take_below(&mut self, end: DocId, mut f: impl FnMut(DocId, u32)) {
        // Copies, so that the loop runs in registers.
        let (mut next, mut rest) = (self.next, self.rest.clone());
        while let Some((doc, count)) = next.filter(|&(doc, _)| doc < end) {
            f(doc, count);
            next = rest.next();
        }
        (self.next, self.rest) = (next, rest);
    }
}
