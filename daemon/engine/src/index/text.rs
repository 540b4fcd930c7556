//! Which documents speak of what was asked, and how well: BM25 over compressed postings.
//!
//! Documents are versions: one may be retired but stays findable, for questions about the past.
//! So postings only grow, while the statistics behind the ranking count live documents alone; a
//! retired version leaves the scores as if it had never been.
//!
//! Scoring is that of Robertson & Zaragoza (2009), k₁ = 1.2, b = 0.75, with the form of idf that
//! is never negative. The sum is divided by its upper bound over all terms of the query, unknown
//! ones included, so a score says how much of the question a document answers:
//!
//! ```text
//! idf(t)  = ln(1 + (N − df(t) + ½) / (df(t) + ½))
//! score   = Σ idf(t) · tf / (tf + k₁ (1 − b + b · length / mean length))  ÷  Σ idf(t)
//! ```
//!
//! (k₁ + 1 cancels.) Scores lie in (0, 1] and depend only on the query, the document's text and the
//! set of live texts: sums run in the order of the terms' spelling, never of arrival.
//!
//! Where there are enough documents to tell, a term that more than half of them have neither
//! selects nor scores beside a rarer one.
//!
//! Invariants: documents are added by ascending number, below 2³¹. A document without terms is in
//! no posting and not counted. Candidates include retired documents; callers filter.

mod block;
mod postings;

pub use block::{BlockError, TextBlock, TextBlockBuilder};

use super::{DocId, tokenizer};
use hashbrown::{DefaultHashBuilder, HashTable};
use postings::{MAX_DOCS, Postings, Reader, encode};
use std::hash::BuildHasher;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// From so many live documents on, a term in more than half of them is left out of a query that
/// also has a rarer one: "the", in any language, without a list of such words.
const COMMON_FROM: u32 = 32;

/// Documents whose scores are gathered at a time: 8 KiB, which stays in the nearest cache.
const WINDOW: u32 = 2048;

/// Counting fewer terms than these is no work for a thread of its own.
const FEW_TERMS: usize = 1024;

/// Beyond the last document, for a reader that has none left.
const END: DocId = DocId::MAX;

/// The terms of one document with their counts, sorted. Made outside any lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocTerms {
    /// The terms' texts, end to end.
    text: Box<str>,
    /// End of each term in `text`, and its count.
    terms: Box<[(u32, u32)]>,
    len: u32,
}

impl DocTerms {
    /// Tokenizes the fields of a document.
    pub fn of<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut all, mut spans) = (String::new(), Vec::new());
        for field in fields {
            tokenizer::tokens(field, |token| {
                let start = all.len();
                all.push_str(token);
                spans.push((start, all.len()));
            });
        }
        spans.sort_unstable_by_key(|&(start, end)| &all[start..end]);
        let (mut text, mut terms) = (String::new(), Vec::<(u32, u32)>::new());
        let mut previous = "";
        for &(start, end) in &spans {
            let token = &all[start..end];
            match terms.last_mut() {
                Some((_, count)) if token == previous => *count = count.saturating_add(1),
                _ => {
                    text.push_str(token);
                    terms.push((text.len() as u32, 1));
                    previous = token;
                }
            }
        }
        let len = u32::try_from(spans.len()).unwrap_or(u32::MAX);
        Self { text: text.into(), terms: terms.into(), len }
    }

    /// Each term once with its count, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut start = 0;
        self.terms.iter().map(move |&(end, count)| {
            let term = &self.text[start..end as usize];
            start = end as usize;
            (term, count)
        })
    }

    /// Length of the document in tokens, repetitions included.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the document has no words at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The terms of one document, as numbers that stay good: none is ever removed.
#[derive(Debug, Default)]
pub struct TermIds(Box<[u32]>);

/// A document's length as it is kept.
fn saturated(len: u32) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

struct Term {
    postings: Postings,
    /// Last document in the postings; 0 if there is none, from which the first distance counts.
    last: DocId,
    /// Live documents with this term.
    live: u32,
    /// Where its text is among all names.
    name: u32,
    name_len: u8,
}

/// Inverted index over the words of all document versions.
#[derive(Default)]
pub struct TextIndex {
    terms: Vec<Term>,
    /// The terms' texts, end to end.
    names: String,
    /// Terms by text, as positions in `terms`.
    lookup: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Length in tokens of every document number so far.
    lengths: Vec<u16>,
    /// A bit for every document number so far: has words and is not retired.
    live: Vec<u64>,
    live_docs: u32,
    live_tokens: u64,
    postings_bytes: usize,
}

/// A question: its distinct terms and what each is worth, as of when it was asked.
#[derive(Clone, Debug, Default)]
pub struct TextQuery {
    terms: Vec<QueryTerm>,
    norm: Norm,
}

#[derive(Clone, Debug)]
struct QueryTerm {
    text: Box<str>,
    idf: f64,
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

impl TextQuery {
    /// The distinct terms in order of spelling, their idf, and whether any document, live or
    /// retired, has them.
    pub fn terms(&self) -> impl Iterator<Item = (&str, f64, bool)> {
        self.terms.iter().map(|term| (&*term.text, term.idf, term.known.is_some()))
    }

    /// Whether the text had no words: then there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
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
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a document, live.
    ///
    /// # Panics
    /// If `doc` is not above every document added before, or not below 2³¹.
    pub fn add(&mut self, doc: DocId, terms: &DocTerms) {
        let ids = self.stage(doc, terms);
        self.enter(doc, &ids);
    }

    /// Adds a document that is found already and counts for nothing until [`enter`](Self::enter); gives its terms.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub fn stage(&mut self, doc: DocId, terms: &DocTerms) -> TermIds {
        assert!(
            self.next_doc() <= doc && doc < MAX_DOCS,
            "documents are added by ascending number"
        );
        self.add_lengths(doc, &[saturated(terms.len())]);
        let mut bytes = Vec::with_capacity(10);
        let mut ids = Vec::with_capacity(terms.terms.len());
        for (name, count) in terms.iter() {
            let id = self.intern(name);
            ids.push(id);
            let term = &mut self.terms[id as usize];
            bytes.clear();
            encode(doc - term.last, count, &mut bytes);
            term.last = doc;
            self.postings_bytes -= term.postings.heap_bytes();
            term.postings.extend(&bytes);
            self.postings_bytes += term.postings.heap_bytes();
        }
        TermIds(ids.into())
    }

    /// The terms of a document that was added with them; those that no document ever had are left out.
    pub fn ids(&self, terms: &DocTerms) -> TermIds {
        TermIds(terms.iter().filter_map(|(name, _)| self.find(name)).collect())
    }

    /// Counts a staged document in.
    pub fn enter(&mut self, doc: DocId, ids: &TermIds) {
        if ids.0.is_empty() {
            return;
        }
        self.set_live(doc, true);
        for &id in &ids.0 {
            self.terms[id as usize].live += 1;
        }
    }

    /// Takes a document out of the statistics; it is still found. `terms` must be what it was added
    /// with. Returns false, having done nothing, if it is retired already or has no words.
    pub fn retire(&mut self, doc: DocId, terms: &DocTerms) -> bool {
        self.is_live(doc) && self.leave(doc, &self.ids(terms))
    }

    /// As [`retire`](Self::retire), with the terms that [`ids`](Self::ids) gave.
    pub fn leave(&mut self, doc: DocId, ids: &TermIds) -> bool {
        if !self.is_live(doc) {
            return false;
        }
        self.set_live(doc, false);
        for &id in &ids.0 {
            let term = &mut self.terms[id as usize];
            term.live = term.live.saturating_sub(1);
        }
        true
    }

    /// Appends the documents of a stored block as `base`, `base + 1` and so on, all live until
    /// [`set_liveness`](Self::set_liveness).
    ///
    /// # Errors
    /// [`BlockError`] if the block is damaged or would not follow what is there; then nothing was
    /// added.
    pub fn add_block(&mut self, base: DocId, block: &TextBlock) -> Result<(), BlockError> {
        let next = self.next_doc();
        if base < next || u64::from(base) + block.docs() as u64 > u64::from(MAX_DOCS) {
            return Err(BlockError::Range { base, docs: block.docs(), next });
        }
        block.check()?;
        self.add_lengths(base, block.lengths());
        let with_words = (base..).zip(block.lengths()).filter(|(_, len)| **len > 0);
        with_words.for_each(|(doc, _)| self.set_live(doc, true));
        let mut first = Vec::with_capacity(10);
        block.each_term(|name, stored| {
            let mut reader = Reader::new(stored);
            let Some((doc, count)) = reader.next() else {
                return Ok(());
            };
            let rest = &stored[stored.len() - reader.bytes_left()..];
            let (docs, last) = reader.fold((1, doc), |(docs, _), (doc, _)| (docs + 1, doc));
            let term = self.intern(name);
            let term = &mut self.terms[term as usize];
            first.clear();
            encode(base + doc - term.last, count, &mut first);
            term.last = base + last;
            term.live += docs;
            self.postings_bytes -= term.postings.heap_bytes();
            term.postings.extend(&first);
            term.postings.extend(rest);
            self.postings_bytes += term.postings.heap_bytes();
            Ok(())
        })
    }

    /// Counts anew which documents are live. Reads every posting, on so many threads: for start-up.
    pub fn set_liveness(&mut self, is_live: impl Fn(DocId) -> bool, threads: usize) {
        self.live.fill(0);
        (self.live_docs, self.live_tokens) = (0, 0);
        for (doc, &len) in (0..).zip(&self.lengths) {
            if len > 0 && is_live(doc) {
                self.live[doc as usize / 64] |= 1 << (doc % 64);
                self.live_docs += 1;
                self.live_tokens += u64::from(len);
            }
        }
        let live = &self.live;
        let count = |terms: &mut [Term]| {
            for term in terms {
                let docs = Reader::new(term.postings.as_slice());
                term.live = docs.filter(|&(doc, _)| is_set(live, doc)).count() as u32;
            }
        };
        let share = self.terms.len().div_ceil(threads.max(1)).max(FEW_TERMS);
        std::thread::scope(|scope| {
            let mut shares = self.terms.chunks_mut(share);
            let own = shares.next();
            for terms in shares {
                scope.spawn(move || count(terms));
            }
            own.map(count);
        });
    }

    /// Prepares a question. Costs one look-up for each word; `text` should be bounded by the caller.
    pub fn query(&self, text: &str) -> TextQuery {
        let words = DocTerms::of([text]);
        let found: Vec<_> = words
            .iter()
            .map(|(text, _)| {
                let known = self.find(text);
                (text, known, known.map_or(0, |term| self.terms[term as usize].live))
            })
            .collect();
        let is_common = |df: u32| df > self.live_docs / 2;
        let drops_common =
            self.live_docs >= COMMON_FROM && found.iter().any(|&(.., df)| df > 0 && !is_common(df));
        let mut terms: Vec<_> = found
            .into_iter()
            .filter(|&(.., df)| !(drops_common && is_common(df)))
            .map(|(text, known, df)| QueryTerm {
                text: text.into(),
                idf: idf(self.live_docs, df),
                weight: 0.0,
                known,
            })
            .collect();
        let total: f64 = terms.iter().map(|term| term.idf).sum();
        for term in &mut terms {
            term.weight = (term.idf / total) as f32;
        }
        let mean = if self.live_docs == 0 {
            1.0
        } else {
            self.live_tokens as f64 / f64::from(self.live_docs)
        };
        let norm = Norm { fixed: (K1 * (1.0 - B)) as f32, per_token: (K1 * B / mean) as f32 };
        TextQuery { terms, norm }
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

    /// Live documents that have words.
    pub fn live_docs(&self) -> u32 {
        self.live_docs
    }

    /// Heap memory held, in bytes, without the allocator's own overhead.
    pub fn bytes(&self) -> usize {
        self.terms.capacity() * size_of::<Term>()
            + self.names.capacity()
            + self.lookup.allocation_size()
            + self.lengths.capacity() * size_of::<u16>()
            + self.live.capacity() * size_of::<u64>()
            + self.postings_bytes
    }

    /// The lowest number a document to be added may have.
    fn next_doc(&self) -> DocId {
        self.lengths.len() as DocId
    }

    fn is_live(&self, doc: DocId) -> bool {
        is_set(&self.live, doc)
    }

    /// Notes the lengths of documents from `base` on, none of them live; numbers skipped before it have no words.
    fn add_lengths(&mut self, base: DocId, lengths: &[u16]) {
        self.lengths.resize(base as usize, 0);
        self.lengths.extend_from_slice(lengths);
        self.live.resize(self.lengths.len().div_ceil(64), 0);
    }

    /// Counts a document that has words among the live ones, or no longer; it is not counted so already.
    fn set_live(&mut self, doc: DocId, is_live: bool) {
        self.live[doc as usize / 64] ^= 1 << (doc % 64);
        let len = u64::from(self.lengths[doc as usize]);
        if is_live {
            self.live_docs += 1;
            self.live_tokens += len;
        } else {
            self.live_docs -= 1;
            self.live_tokens -= len;
        }
    }

    fn find(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.lookup.find(hash, |&term| self.name(term) == name).copied()
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(term) = self.find(name) {
            return term;
        }
        let term = self.terms.len() as u32;
        self.terms.push(Term {
            postings: Postings::new(),
            last: 0,
            live: 0,
            name: self.names.len() as u32,
            name_len: name.len() as u8,
        });
        self.names.push_str(name);
        let (terms, names, hasher) = (&self.terms, &self.names, &self.hasher);
        let hash = |&term: &u32| hasher.hash_one(name_of(terms, names, term));
        self.lookup.insert_unique(hasher.hash_one(name), term, hash);
        term
    }

    fn name(&self, term: u32) -> &str {
        name_of(&self.terms, &self.names, term)
    }
}

fn name_of<'a>(terms: &[Term], names: &'a str, term: u32) -> &'a str {
    let Term { name, name_len, .. } = terms[term as usize];
    &names[name as usize..name as usize + usize::from(name_len)]
}

fn is_set(bits: &[u64], doc: DocId) -> bool {
    bits.get(doc as usize / 64).is_some_and(|bits| bits >> (doc % 64) & 1 == 1)
}

/// What a term tells, given how many of all documents have it. Above zero for any counts.
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

#[cfg(test)]
mod tests;
