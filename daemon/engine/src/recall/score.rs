//! The score: one number to rank by, made of ten parts.
//!
//! The score is a weighted mean of parts that all lie in [0, 1], in the tradition of relevance +
//! recency + importance (Park et al. 2023, *Generative Agents*, §4.1):
//!
//! | part | meaning | weight |
//! |---|---|---|
//! | `text` | BM25, as a fraction of the most this query could reach | 0.35 |
//! | `meaning`, `akin`, `neighbours`, `related` | the cosine of the vectors, the agreement with words akin to those of the question, the relevance of neighbours in time, and that of what a relationship leads here from; with words they share the 0.35: `recall/fuse.rs` | |
//! | `proximity` | 1 / (1 + d/s); s is half the radius, 1 m without one | 0.35 |
//! | `retrievability` | from the time and number of accesses: `docs/keys.md`, "Retrievability" | 0.05 |
//! | `recency` | from the time of the event: [`Doc::recency`] | 0.15 |
//! | `importance` | as stated, 0.5 if not; of another producer by rank | 0.10 |
//! | `confidence` | as stated, 0.5 if not; of another producer from its α and β | 0.05 |
//!
//! OMIR keeps the time of the last use apart from the time of the event (Memory Semantics §2 and §6), and so does
//! the score. Use alone does not tell where a thing is now: each query uses every place that it lists, those of
//! last month too. Among hits that otherwise agree, the latest event comes first, however often the others were
//! asked for. A query with a time range states the time itself, so recency does not count.
//!
//! Scores of two producers share no scale (spec: Theory & Scope). Importance, salience and strength of another
//! producer count by their rank among its own scores, mapped onto ours if we have 20 of that type
//! (`crate::index::producers`). The ranks are those of now, also for `asOf`. If another producer states α and β, its
//! confidence is (α + 1) / (α + β + 2), our own rule. Filters compare the stated values.
//!
//! Parts that were not asked for do not count, and the weights of the others are scaled to sum to
//! one. A place without a radius and without words means "nearest first": proximity alone counts.

#[cfg(doc)]
use crate::index::doc::Doc;

use super::query::Query;
use crate::index::scores::{ScorePart, Scores};

/// The weight of a part beside the others, if a query asks for it; `None` for a part that has a share of the weight of words
/// and no weight of its own: [`Weights::fused`].
pub(crate) fn own_weight(part: ScorePart) -> Option<f64> {
    match part {
        ScorePart::Text | ScorePart::Proximity => Some(0.35),
        ScorePart::Recency => Some(0.15),
        ScorePart::Importance => Some(0.10),
        ScorePart::Retrievability | ScorePart::Confidence => Some(0.05),
        ScorePart::Meaning | ScorePart::Akin | ScorePart::Neighbours | ScorePart::Related => None,
    }
}

/// The weight of each part in one query; the weights sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights(Scores);

impl Weights {
    /// The weights for a query.
    pub fn of(query: &Query) -> Self {
        let has_place = query.near.is_some() || query.geo.is_some();
        let mut weights = Scores::default();
        let has_relevance = query.has_words() || query.vector.is_some();
        if has_place && query.radius.is_none() && !has_relevance {
            weights[ScorePart::Proximity] = 1.0;
            return Self(weights);
        }
        for part in ScorePart::ALL {
            let is_asked = match part {
                ScorePart::Text => has_relevance,
                ScorePart::Proximity => has_place,
                ScorePart::Recency => query.time.is_none(),
                _ => true,
            };
            weights[part] = own_weight(part).filter(|_| is_asked).unwrap_or_default();
        }
        Self(weights.normalized())
    }

    /// The weights where the weight of words is shared out: each part has so much of it.
    pub(super) fn fused(&self, shares: &[(ScorePart, f64)]) -> Self {
        let mut fused = self.0;
        let weight = fused[ScorePart::Text];
        for (part, share) in shares {
            fused[*part] = weight * share;
        }
        Self(fused)
    }

    /// The weight of one part, for `explain`.
    pub fn of_part(&self, part: ScorePart) -> f64 {
        self.0[part]
    }

    /// The weighted mean of the parts.
    #[inline]
    pub fn score(&self, scores: &Scores) -> f64 {
        self.0.dot(scores)
    }
}

/// Closeness of something `distance` metres away, for a query of this radius.
pub(crate) fn proximity(distance: f64, radius: Option<f64>) -> f64 {
    let scale = radius.map_or(1.0, |radius| (radius / 2.0).max(f64::MIN_POSITIVE));
    1.0 / (1.0 + distance / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::query::TimeRange;
    use omir_core::space::Center;
    use std::ops::Bound;

    #[test]
    fn weights_always_sum_to_one() {
        let near = Some(Center::Plane { x: 0.0, y: 0.0 });
        for text in [None, Some("dock")] {
            for near in [None, near] {
                for radius in [None, Some(2.0)] {
                    let text = text.map(Into::into);
                    let query = Query { text, near, radius, ..Query::default() };
                    let weights = Weights::of(&query);
                    let sum: f64 = ScorePart::ALL.map(|part| weights.of_part(part)).iter().sum();
                    assert!((sum - 1.0).abs() < 1e-12, "{query:?}");
                }
            }
        }
    }

    #[test]
    fn recency_does_not_count_where_a_time_is_asked_for() {
        let text = Some("dock".into());
        let whenever = Query { text, ..Query::default() };
        let weights = Weights::of(&whenever);
        assert!(weights.of_part(ScorePart::Recency) > weights.of_part(ScorePart::Importance));
        let time = Some(TimeRange { from: Bound::Unbounded, to: Bound::Unbounded });
        let then = Query { time, ..whenever };
        assert_eq!(Weights::of(&then).of_part(ScorePart::Recency), 0.0);
    }

    #[test]
    fn proximity_is_one_here_and_a_third_at_the_edge() {
        assert_eq!(proximity(0.0, Some(0.0)), 1.0);
        assert_eq!(proximity(2.0, Some(2.0)), 1.0 / 3.0);
        assert_eq!(proximity(1.0, None), 0.5);
    }
}
