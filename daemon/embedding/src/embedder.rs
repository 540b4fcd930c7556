//! The seam between the engine and any way to make vectors.

use crate::usual::Usual;
use crate::vector::Vector;

/// The name of what made a vector. Vectors of two names do not compare.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelName {
    /// The name that people and clients use.
    pub name: String,
    /// Numbers in a vector.
    pub dims: usize,
    /// SHA-256 of all that decides a vector: the files of a model. Zeros where nothing but the name does.
    pub hash: [u8; 32],
}

/// Makes a vector of a text.
pub trait Embedder: Send + Sync {
    /// The name of what makes the vectors.
    fn model(&self) -> &ModelName;

    /// Fills `out`, of as many numbers as [`Embedder::model`] says, with the vector of `text`, and returns true. Returns
    /// false if the text has nothing to make one of; `out` is then of no use. The same text gives the same vector.
    fn embed(&self, text: &str, out: &mut [f32]) -> bool;

    /// Returns true if it knows words by their letters alone: no synonyms.
    fn is_lexical(&self) -> bool {
        false
    }

    /// Fills `out` with the vector of one word, as `omird_text::words` gives it, and returns true. Returns false if single words
    /// have no vectors, or this one tells nothing; `out` is then of no use.
    fn word(&self, _word: &str, _out: &mut [f32]) -> bool {
        false
    }

    /// The cosines that words have with this vector as a rule; `None` if single words have no vectors.
    fn usual(&self, _vector: &Vector) -> Option<Usual> {
        None
    }
}
