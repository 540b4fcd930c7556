//! A candidate of a fused ranking, and what words, meaning and relationships say of it.
//!
//! There may be as many candidates as there are memories, so they are small: their numbers were computed in single precision, or
//! are bounds. A version that matches by its vector alone is not even kept as one. It stays a [`Similar`], 8 bytes instead of 32,
//! and becomes a candidate where the lists are walked (`fuse/lists.rs`).

use crate::index::doc::DocId;
use crate::index::vectors::Similar;

/// A version that matches by words, by meaning, by a relationship, or by several of them.
#[derive(Debug, Clone, Copy)]
pub(in crate::recall) struct Candidate {
    pub(in crate::recall) id: DocId,
    /// Agreement with the words.
    pub(in crate::recall) text: f32,
    /// The share of the words' weight that it has; 1 where nothing asks for it.
    pub(super) share: f32,
    /// The cosine; 0 for one that does not reach the floor.
    pub(super) cosine: f32,
    /// Agreement with words akin to those of the question.
    pub(super) akin: f32,
    /// The relevance of what a relationship leads here from; 0 for none.
    pub(super) related: f32,
    /// True if it has too little of the words, does not reach the floor, and nothing leads here.
    pub(in crate::recall) is_hidden: bool,
    /// The relevance of its neighbours, at most. Known of one that `Candidates::each` gives.
    pub(super) beside: f32,
    /// True if it matches not by words alone, so that its filters were compared already.
    pub(super) is_accepted: bool,
}

impl Candidate {
    #[inline]
    pub(super) fn bare(id: DocId) -> Self {
        Self {
            id,
            text: 0.0,
            share: 0.0,
            cosine: 0.0,
            akin: 0.0,
            related: 0.0,
            is_hidden: false,
            beside: 0.0,
            is_accepted: false,
        }
    }

    #[inline]
    pub(super) fn by_meaning((id, cosine): Similar) -> Self {
        Self { cosine: cosine.max(0.0), is_accepted: true, ..Self::bare(id) }
    }

    /// Agreement with the words, less where many of them are missing.
    #[inline]
    pub(super) fn said(&self) -> f32 {
        self.text * self.share
    }
}
