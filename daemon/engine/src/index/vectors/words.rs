//! The vectors of the words that the store holds, one for each, so that a question finds words akin to its own.
//!
//! They are of the same model as those of memories, and are never written: the index of words has the words, and a vector of
//! one takes microseconds. A word stays as long as its term, which is until the next start.

use omird_embedding::{Embedder, ModelName, Vector};

use super::vector_space::{Similar, VectorSpace};

/// Most words, those that came first: 2.4 MB of 64 numbers each. A question compares each of its words with all of them.
const MOST_WORDS: usize = 1 << 15;

/// Vectors of words; a row is a term of the index of words.
#[derive(Debug)]
pub(crate) struct Words {
    space: VectorSpace,
    /// Terms that were looked at.
    looked: usize,
}

impl Words {
    /// No words yet.
    pub(crate) fn new(model: ModelName) -> Self {
        Self { space: VectorSpace::new(model, false), looked: 0 }
    }

    pub(crate) fn model(&self) -> &ModelName {
        self.space.model()
    }

    /// The first term that was not looked at yet.
    pub(crate) fn looked(&self) -> usize {
        self.looked
    }

    /// Number of words.
    pub(crate) fn len(&self) -> usize {
        self.space.rows()
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.space.memory()
    }

    /// Adds vectors of terms, and notes that all before `looked` were looked at.
    pub(crate) fn add(&mut self, made: &[(u32, Vector)], looked: usize) {
        for (term, vector) in made.iter().take(MOST_WORDS.saturating_sub(self.len())) {
            self.space.push(*term, vector);
        }
        self.looked = looked;
    }

    /// Adds to `found` the terms whose vectors have at least the cosine `floor` with that of a word.
    pub(crate) fn similar(&self, word: &Vector, floor: f32, found: &mut Vec<Similar>) {
        self.space.similar(word, floor, None, false, &mut |_| true, found);
    }
}

/// The vector of a term, if it is a word that tells something.
pub(crate) fn vector_of(
    embedder: &dyn Embedder,
    term: &str,
    numbers: &mut [f32],
) -> Option<Vector> {
    let is_made = embedder.word(term, numbers);
    Vector::of(numbers).filter(|_| is_made)
}
