//! The seam between the engine and any way to make vectors.

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
}
