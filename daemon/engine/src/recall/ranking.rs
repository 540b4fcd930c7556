//! Ranked hits, and the best few of them.

use std::collections::BinaryHeap;

use crate::index::doc::DocId;
use crate::index::key::RefKey;
use crate::index::scores::Scores;

/// A match and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    /// The version.
    pub doc: DocId,
    /// Its score in [0, 1].
    pub score: f64,
    /// The parts of the score.
    pub scores: Scores,
    /// Metres from `near` or `geo`, if either was asked for.
    pub distance: Option<f64>,
    /// The transaction that recorded it and its key: newer first where scores are equal. The order
    /// within a request means nothing (spec: Conformance, consumers).
    pub(super) order: (u64, RefKey),
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    /// Best first, so that the greatest of a heap is the worst that is kept.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then_with(|| other.order.cmp(&self.order))
    }
}

/// The best `room` of the hits that were offered.
pub(super) struct TopHits {
    heap: BinaryHeap<Ranked>,
    room: usize,
}

impl TopHits {
    pub(super) fn new(room: usize) -> Self {
        Self { heap: BinaryHeap::new(), room }
    }

    /// The score that a hit must reach to be kept.
    pub(super) fn threshold(&self) -> f64 {
        if self.heap.len() < self.room {
            f64::NEG_INFINITY
        } else {
            self.heap.peek().map_or(f64::INFINITY, |worst| worst.score)
        }
    }

    pub(super) fn offer(&mut self, hit: Ranked) {
        if self.heap.len() < self.room {
            self.heap.push(hit);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// The hits that were kept, best first, without the first `offset`.
    pub(super) fn page(self, offset: usize) -> Vec<Ranked> {
        let mut page = self.heap.into_sorted_vec();
        page.drain(..offset.min(page.len()));
        page
    }
}
