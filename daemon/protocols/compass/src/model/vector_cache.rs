//! Vectors that were made lately, in memory.

use std::collections::VecDeque;

use omird_embedding::Vector;
use parking_lot::Mutex;

use super::embedding::Maker;

/// Vectors that are kept in mind, by their texts.
const MOST_KEPT: usize = 256;

/// Vectors by their texts: the same text is not paid for twice in a row.
#[derive(Default)]
pub(crate) struct VectorCache(Mutex<VecDeque<(String, Vector)>>);

impl VectorCache {
    /// Returns the vector of a text.
    pub(crate) fn get(&self, maker: &Maker, hash: &str) -> Option<Vector> {
        let key = maker.key(hash);
        let kept = self.0.lock();
        kept.iter().find(|(known, _)| *known == key).map(|(_, vector)| vector.clone())
    }

    /// Keeps the vector of a text, and lets go of the oldest.
    pub(crate) fn put(&self, maker: &Maker, hash: &str, vector: Vector) {
        let key = maker.key(hash);
        let mut kept = self.0.lock();
        kept.retain(|(known, _)| *known != key);
        if kept.len() >= MOST_KEPT {
            kept.pop_front();
        }
        kept.push_back((key, vector));
    }
}
