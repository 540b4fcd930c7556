//! The text index of one sealed batch of documents, to be stored beside it.
//!
//! Start-up must not tokenize everything again. A block holds the postings of a contiguous range of
//! documents, numbered from zero, so that it can be appended to an index at any base: only the
//! first posting of each term is rewritten, the rest is copied.
//!
//! `terms` is a sequence, strictly ascending by the term's bytes:
//!
//! ```text
//! u8      bytes shared with the previous term (0 for the first)
//! u8      bytes that follow, n
//! n × u8  rest of the term                            UTF-8 once joined
//! varint  length of the postings, m (at least 1)
//! m × u8  postings                                    see the neighbouring module
//! ```
//!
//! Blocks come from disk: [`TextBlock::check`] accepts nothing that reading would stumble over.

use super::postings::{MAX_DOCS, Postings, Reader, encode, read_varint, write_varint};
use super::terms::{DocTerms, saturated};
use crate::index::doc::DocId;

use hashbrown::HashMap;
use omird_text::MAX_TERM_BYTES;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Postings and lengths of a contiguous range of documents, in the form that is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    /// Tokens in each document, in order; at most 65535.
    lengths: Vec<u16>,
    terms: Vec<u8>,
}

/// Reason for which a block was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockError {
    /// The stored bytes are damaged; the documents themselves can be indexed instead.
    Corrupt {
        /// Offset of the damaged term in the term sequence, in bytes.
        offset: usize,
        /// The fault, for people.
        reason: &'static str,
    },
    /// The block would overlap documents already in the index, or exceed the largest number.
    Range {
        /// First document the block was to have.
        base: DocId,
        /// Documents in the block.
        docs: usize,
        /// First document the index could take.
        next: DocId,
    },
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { offset, reason } => {
                write!(f, "text block damaged at byte {offset}: {reason}")
            }
            Self::Range { base, docs, next } => {
                write!(
                    f,
                    "text block of {docs} documents cannot start at {base}: the next free one is {next}"
                )
            }
        }
    }
}

impl std::error::Error for BlockError {}

/// A text block in the making, document by document: no more of a document is held than its postings.
#[derive(Default)]
pub struct TextBlockBuilder {
    lengths: Vec<u16>,
    /// The last document with the term, and the postings.
    lists: HashMap<Box<str>, (DocId, Postings)>,
}

impl TextBlockBuilder {
    /// Adds the next document; they get the numbers 0, 1, 2 and so on.
    ///
    /// # Panics
    /// If there are 2³¹ documents or more.
    pub fn add(&mut self, terms: &DocTerms) {
        let doc = DocId::try_from(self.lengths.len()).unwrap_or(MAX_DOCS);
        assert!(doc < MAX_DOCS, "too many documents for one text block");
        self.lengths.push(saturated(terms.len()));
        let mut bytes = Vec::with_capacity(10);
        for (term, count) in terms.iter() {
            let (last, postings) =
                self.lists.entry_ref(term).or_insert_with(|| (0, Postings::new()));
            bytes.clear();
            encode(doc - *last, count, &mut bytes);
            postings.extend(&bytes);
            *last = doc;
        }
    }

    /// The block.
    pub fn finish(self) -> TextBlock {
        let Self { mut lengths, lists } = self;
        let mut lists: Vec<_> = lists.into_iter().collect();
        lists.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut terms, mut previous) = (Vec::new(), "");
        for (term, (_, postings)) in &lists {
            let postings = postings.as_slice();
            let shared = previous.bytes().zip(term.bytes()).take_while(|(a, b)| a == b).count();
            let rest = &term.as_bytes()[shared..];
            // A term has at most 64 bytes.
            terms.extend([shared as u8, rest.len() as u8]);
            terms.extend_from_slice(rest);
            write_varint(postings.len() as u32, &mut terms);
            terms.extend_from_slice(postings);
            previous = term;
        }
        lengths.shrink_to_fit();
        terms.shrink_to_fit();
        TextBlock { lengths, terms }
    }
}

impl TextBlock {
    /// Makes the block of `docs`, which get the numbers 0, 1, 2 and so on.
    ///
    /// # Panics
    /// If there are 2³¹ documents or more.
    pub fn build<'a>(docs: impl Iterator<Item = &'a DocTerms>) -> Self {
        let mut block = TextBlockBuilder::default();
        docs.for_each(|terms| block.add(terms));
        block.finish()
    }

    /// Number of documents.
    pub fn docs(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn lengths(&self) -> &[u16] {
        &self.lengths
    }

    /// Proves the block sound: terms well formed and ascending, postings ascending and in range,
    /// and each document's counts adding up to its length.
    pub(super) fn check(&self) -> Result<(), BlockError> {
        let mut sums = vec![0u16; self.lengths.len()];
        self.each_term(|_, postings| {
            let (mut reader, mut next) = (Reader::new(postings), 0);
            for (doc, count) in reader.by_ref() {
                if doc < next {
                    return Err("documents out of order");
                }
                next = doc + 1;
                let sum = sums.get_mut(doc as usize).ok_or("document out of range")?;
                if count == 0 {
                    return Err("count of zero");
                }
                *sum = sum.saturating_add(saturated(count));
            }
            if reader.is_done() { Ok(()) } else { Err("postings cut off") }
        })?;
        if sums != self.lengths {
            return Err(BlockError::Corrupt {
                offset: self.terms.len(),
                reason: "lengths do not match the postings",
            });
        }
        Ok(())
    }

    /// Calls `f` with each term and its postings; what `f` complains about is damage too.
    pub(super) fn each_term(
        &self,
        mut f: impl FnMut(&str, &[u8]) -> Result<(), &'static str>,
    ) -> Result<(), BlockError> {
        let (mut rest, mut term, mut previous) = (self.terms.as_slice(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            let offset = self.terms.len() - rest.len();
            next_term(&mut rest, &mut term, &mut previous, &mut f)
                .map_err(|reason| BlockError::Corrupt { offset, reason })?;
        }
        Ok(())
    }
}

/// One step of [`TextBlock::each_term`]: `term` becomes the term read, `previous` the one before.
fn next_term(
    rest: &mut &[u8],
    term: &mut Vec<u8>,
    previous: &mut Vec<u8>,
    f: &mut impl FnMut(&str, &[u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let (&[shared, len], tail) = rest.split_first_chunk().ok_or("term cut off")?;
    let (suffix, mut tail) = tail.split_at_checked(len.into()).ok_or("term cut off")?;
    std::mem::swap(term, previous);
    term.clear();
    term.extend_from_slice(
        previous.get(..shared.into()).ok_or("shares more than the previous term has")?,
    );
    term.extend_from_slice(suffix);
    if term.len() > MAX_TERM_BYTES {
        return Err("term too long");
    }
    // The empty term cannot be above any other, so this rules it out as well.
    if term <= previous {
        return Err("terms out of order");
    }
    let name = std::str::from_utf8(term).map_err(|_| "term is not UTF-8")?;
    let size = read_varint(&mut tail).ok_or("postings cut off")?;
    let (postings, tail) = tail.split_at_checked(size as usize).ok_or("postings cut off")?;
    if postings.is_empty() {
        return Err("term without documents");
    }
    f(name, postings)?;
    *rest = tail;
    Ok(())
}
