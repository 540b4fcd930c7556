//! The index of words: documents ranked by BM25 (`text/query.rs`) over compressed postings of words as they stand. What
//! the forms of a word have in common is worked out in memory (`text/forms.rs`).
//!
//! Documents are versions: one may be retired but stays findable, for questions about the past.
//! So postings only grow, while the statistics behind the ranking count live documents alone; a
//! retired version leaves the scores as if it had never been.
//!
//! Invariants: documents are added by ascending number, below 2³¹. A document without terms is in
//! no posting and not counted. Candidates include retired documents; callers filter.

mod akin;
mod block;
mod docs;
mod forms;
mod postings;
mod query;
mod terms;

pub(crate) use akin::AkinTerms;
pub(crate) use block::{BlockError, TextBlock, TextBlockBuilder};
pub(crate) use docs::Docs;
pub use query::Correction;
pub(crate) use query::{Scratch, TextQuery};
pub(crate) use terms::DocTerms;

use self::forms::Stems;
use super::doc::DocId;
use hashbrown::{DefaultHashBuilder, HashTable};
use postings::{MAX_DOCS, Postings, Reader, encode};
use std::hash::BuildHasher;
use terms::saturated;

/// Counting fewer terms than these is no work for a thread of its own.
const FEW_TERMS: usize = 1024;

/// The terms of one document, as numbers that stay good: none is ever removed.
#[derive(Debug, Default)]
pub struct TermIds(Box<[u32]>);

struct Term {
    postings: Postings,
    /// Last document in the postings; 0 if there is none, from which the first distance counts.
    last: DocId,
    /// Live documents with this term.
    live: u32,
    /// Start of its text among all names; the next term's begins where it ends.
    name: u32,
    /// Another term of the same stem, [`forms::NONE`] if there is no more.
    kin: u32,
}

/// Inverted index over the words of all document versions.
#[derive(Default)]
pub struct TextIndex {
    terms: Vec<Term>,
    /// The terms' texts, end to end.
    names: String,
    /// Terms by text, as positions in `terms`.
    lookup: HashTable<u32>,
    /// Terms by stem.
    stems: Stems,
    hasher: DefaultHashBuilder,
    /// Length in tokens of every document number so far.
    lengths: Vec<u16>,
    /// A bit for every document number so far: has words and is not retired.
    live: Vec<u64>,
    live_docs: u32,
    live_tokens: u64,
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
        let mut ids = Vec::with_capacity(terms.distinct());
        for (name, count) in terms.iter() {
            let id = self.intern(name);
            ids.push(id);
            let term = &mut self.terms[id as usize];
            bytes.clear();
            encode(doc - term.last, count, &mut bytes);
            term.last = doc;
            term.postings.extend(&bytes);
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
            term.postings.extend(&first);
            term.postings.extend(rest);
            Ok(())
        })
    }

    /// Recounts the live documents. Reads every posting, on so many threads: for start-up.
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
            kin: forms::NONE,
        });
        self.names.push_str(name);
        let (terms, names, hasher) = (&self.terms, &self.names, &self.hasher);
        let hash = |&term: &u32| hasher.hash_one(name_of(terms, names, term));
        self.lookup.insert_unique(hasher.hash_one(name), term, hash);
        self.link(term);
        term
    }

    fn name(&self, term: u32) -> &str {
        name_of(&self.terms, &self.names, term)
    }
}

fn name_of<'a>(terms: &[Term], names: &'a str, term: u32) -> &'a str {
    let start = terms[term as usize].name as usize;
    let end = terms.get(term as usize + 1).map_or(names.len(), |next| next.name as usize);
    &names[start..end]
}

fn is_set(bits: &[u64], doc: DocId) -> bool {
    bits.get(doc as usize / 64).is_some_and(|bits| bits >> (doc % 64) & 1 == 1)
}

#[cfg(test)]
mod tests;
