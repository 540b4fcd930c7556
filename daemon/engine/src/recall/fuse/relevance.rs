//! Relevance of a candidate: its parts, and the most that they can come to.
//!
//! The most is known without a look at the version, so what cannot reach the page is passed over (`recall/collect.rs`). What
//! neighbours bring is the only part that needs more than the candidate: their sum bounds it, and whether they are of the same
//! source and hour is asked for those that are scored.

use super::candidate::Candidate;
use crate::index::doc::Doc;
use crate::index::scores::ScorePart;
use crate::recall::score::Weights;

/// Longest time between neighbours; microseconds.
const SAME_HOUR: i64 = 3_600_000_000;

/// Weights of the parts of relevance in one question.
pub(super) struct Relevance {
    /// The weights of the parts in a score.
    pub(super) weights: Weights,
    /// The relevance that comes to neighbours, by part.
    pub(super) per_text: f64,
    pub(super) lent_per_cosine: f64,
    pub(super) per_akin: f64,
}

impl Relevance {
    /// The relevance that comes to neighbours.
    #[inline]
    pub(super) fn lent(&self, candidate: &Candidate) -> f64 {
        if candidate.is_hidden {
            return 0.0;
        }
        self.per_text * f64::from(candidate.said())
            + self.lent_per_cosine * f64::from(candidate.cosine)
            + self.per_akin * f64::from(candidate.akin)
    }

    /// The most that the parts bring to a candidate's score.
    #[inline]
    pub(super) fn most(&self, candidate: &Candidate) -> f64 {
        let of = |part, value: f32| self.weights.of_part(part) * f64::from(value);
        of(ScorePart::Text, candidate.said())
            + of(ScorePart::Meaning, candidate.cosine)
            + of(ScorePart::Akin, candidate.akin)
            + of(ScorePart::Neighbours, candidate.beside)
            + of(ScorePart::Related, candidate.related)
    }
}

/// Returns true if two versions recorded one after the other tell of the same hour, from the same source.
pub(super) fn is_neighbour(a: &Doc, b: &Doc) -> bool {
    let apart = a.when.as_micros().abs_diff(b.when.as_micros());
    a.class.is_event()
        && b.class.is_event()
        && a.class.resource_type == b.class.resource_type
        && a.producer == b.producer
        && apart <= SAME_HOUR.unsigned_abs()
        && !b.dropped
}
