//! Ranked hits, and the first few of them.

use std::collections::BinaryHeap;

use omird_store::RefKey;

use super::query::Order;
use crate::index::doc::{Doc, DocId};
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
    /// Agreement with the words, whatever their part of the score makes of it.
    pub text: f64,
    /// Metres from `near` or `geo`, if either was asked for.
    pub distance: Option<f64>,
    /// Its place in the order that was asked for.
    pub(super) rank: Rank,
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    /// First in the order first, so that the greatest of a heap is the last that is kept.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

/// The number that an order goes by: seconds and nanoseconds of a time, or the bits of a score or distance.
pub(super) type Measure = (i64, u32);

/// A place in an order: the lesser comes first.
///
/// Where the measure is equal, the newer transaction comes first, and then the greater key. The order within a request
/// means nothing (spec: Conformance, consumers). `earliest` is `latest` backwards in this too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    measure: Measure,
    tie: (u64, RefKey),
    rises: bool,
}

impl Rank {
    /// Returns the place of a version with this measure.
    pub(super) fn new(order: Order, measure: Measure, doc: &Doc) -> Self {
        Self { measure, tie: (doc.seq, doc.key), rises: order == Order::Earliest }
    }

    /// Returns the measure of a version by an order.
    pub(super) fn measure(order: Order, doc: &Doc, score: f64, distance: Option<f64>) -> Measure {
        match order {
            Order::Score => (sortable(score), 0),
            Order::Latest | Order::Earliest => (doc.when.secs(), doc.when.nanos()),
            // The greater measure comes first, so the lesser distance has the greater one.
            Order::Distance => (!sortable(distance.unwrap_or(f64::INFINITY)), 0),
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let rising = self.measure.cmp(&other.measure).then_with(|| self.tie.cmp(&other.tie));
        if self.rises { rising } else { rising.reverse() }
    }
}

/// A number whose order is that of [`f64::total_cmp`].
fn sortable(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The first `top_k` of the hits that were offered.
pub(super) struct TopHits {
    heap: BinaryHeap<Ranked>,
    top_k: usize,
}

impl TopHits {
    pub(super) fn new(top_k: usize) -> Self {
        Self { heap: BinaryHeap::new(), top_k }
    }

    /// The score that a hit must reach to be kept, where the order is that of scores.
    pub(super) fn threshold(&self) -> f64 {
        if self.heap.len() < self.top_k {
            f64::NEG_INFINITY
        } else {
            self.heap.peek().map_or(f64::INFINITY, |worst| worst.score)
        }
    }

    /// Returns true if a hit of this rank would be kept.
    pub(super) fn would_keep(&self, rank: &Rank) -> bool {
        self.heap.len() < self.top_k || self.heap.peek().is_some_and(|worst| *rank < worst.rank)
    }

    /// Returns true if no hit of this measure would be kept, whatever decides between equals; nor any behind it.
    pub(super) fn is_closed_to(&self, order: Order, measure: Measure) -> bool {
        if self.heap.len() < self.top_k {
            return false;
        }
        self.heap.peek().is_none_or(|worst| match order {
            Order::Earliest => measure > worst.rank.measure,
            Order::Score | Order::Latest | Order::Distance => measure < worst.rank.measure,
        })
    }

    pub(super) fn offer(&mut self, hit: Ranked) {
        if self.heap.len() < self.top_k {
            self.heap.push(hit);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// The hits that were kept, first one first, without the first `offset`.
    pub(super) fn page(self, offset: usize) -> Vec<Ranked> {
        let mut page = self.heap.into_sorted_vec();
        page.drain(..offset.min(page.len()));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sortable_numbers_are_in_the_order_of_numbers() {
        let numbers = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 0.5, 1.0, 1e300, f64::INFINITY];
        for pair in numbers.windows(2) {
            assert!(sortable(pair[0]) < sortable(pair[1]), "{pair:?}");
            assert!(!sortable(pair[0]) > !sortable(pair[1]), "{pair:?}");
        }
    }
}
