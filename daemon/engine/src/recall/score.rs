//! One number to rank by, and what it is made of.
//!
//! The score is a weighted mean of parts that all lie in [0, 1], in the tradition of relevance +
//! recency + importance (Park et al. 2023, *Generative Agents*, §4.1):
//!
//! | part | what it is | weight |
//! |---|---|---|
//! | `text` | BM25, as a fraction of the most this query could reach | 0.35 |
//! | `proximity` | 1 / (1 + d/s); s is half the radius, 1 m without one | 0.35 |
//! | `retrievability` | how lately and how often it was used: `docs/keys.md`, "Retrievability" | 0.05 |
//! | `recency` | how lately it happened: [`Doc::recency`] | 0.15 |
//! | `importance` | as stated, 0.5 if not; of another producer by rank | 0.10 |
//! | `confidence` | as stated, 0.5 if not; of another producer from its α and β | 0.05 |
//!
//! OMIR keeps two times apart, when something was last used and when it happened (Memory Semantics §2
//! and §6), and so does the score. Use alone does not tell where a thing is now: each question uses
//! every place that it lists, those of last month too. Of hits that say the same the one that happened
//! last comes first, however often others were asked for. A question with a time range says when by
//! itself: all in the range is meant alike, and recency does not count.
//!
//! Scores of two producers share no scale (spec: Theory & Scope), so importance, salience and
//! strength of another producer count by their rank among its own, laid onto ours where we have 20
//! of that type: `crate::index::producers`. That is the ranks as they are now, also for `asOf`.
//! Where α and β are stated by another, confidence is (α + 1) / (α + β + 2), as we would say it.
//! Filters are on what is stated.
//!
//! Parts that were not asked for do not count, and the weights of the others are scaled to sum to
//! one. A place without a radius and without words means "nearest first": proximity alone counts.

#[cfg(doc)]
use crate::index::doc::Doc;

use super::query::Query;

/// The parts of one score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parts {
    /// Agreement with the words.
    pub text: f64,
    /// Closeness.
    pub proximity: f64,
    /// How lately it was used.
    pub retrievability: f64,
    /// How lately it happened.
    pub recency: f64,
    /// Importance.
    pub importance: f64,
    /// Confidence.
    pub confidence: f64,
}

/// How much each part counts in one query; the weights sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights(Parts);

impl Weights {
    /// The weights for a query.
    pub fn of(query: &Query) -> Self {
        let has_place = query.near.is_some() || query.geo.is_some();
        if has_place && query.radius.is_none() && query.text.is_none() {
            return Self(Parts {
                text: 0.0,
                proximity: 1.0,
                retrievability: 0.0,
                recency: 0.0,
                importance: 0.0,
                confidence: 0.0,
            });
        }
        let parts = Parts {
            text: if query.text.is_some() { 0.35 } else { 0.0 },
            proximity: if has_place { 0.35 } else { 0.0 },
            retrievability: 0.05,
            recency: if query.time.is_none() { 0.15 } else { 0.0 },
            importance: 0.10,
            confidence: 0.05,
        };
        let sum = parts.text
            + parts.proximity
            + parts.retrievability
            + parts.recency
            + parts.importance
            + parts.confidence;
        Self(Parts {
            text: parts.text / sum,
            proximity: parts.proximity / sum,
            retrievability: parts.retrievability / sum,
            recency: parts.recency / sum,
            importance: parts.importance / sum,
            confidence: parts.confidence / sum,
        })
    }

    /// The weights themselves, for `explain`.
    pub fn parts(&self) -> &Parts {
        &self.0
    }

    /// The score.
    pub fn score(&self, parts: &Parts) -> f64 {
        let w = &self.0;
        w.text * parts.text
            + w.proximity * parts.proximity
            + w.retrievability * parts.retrievability
            + w.recency * parts.recency
            + w.importance * parts.importance
            + w.confidence * parts.confidence
    }
}

/// Closeness of something `distance` metres away, for a query of this radius.
pub fn proximity(distance: f64, radius: Option<f64>) -> f64 {
    let scale = radius.map_or(1.0, |radius| (radius / 2.0).max(f64::MIN_POSITIVE));
    1.0 / (1.0 + distance / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::query::Span;
    use omir_core::space::Center;
    use std::ops::Bound;

    #[test]
    fn weights_always_sum_to_one() {
        let near = Some(Center::Plane { x: 0.0, y: 0.0 });
        for text in [None, Some("dock".to_owned())] {
            for near in [None, near] {
                for radius in [None, Some(2.0)] {
                    let query = Query { text: text.clone(), near, radius, ..Query::default() };
                    let one = Parts {
                        text: 1.0,
                        proximity: 1.0,
                        retrievability: 1.0,
                        recency: 1.0,
                        importance: 1.0,
                        confidence: 1.0,
                    };
                    let sum = Weights::of(&query).score(&one);
                    assert!((sum - 1.0).abs() < 1e-12, "{query:?}");
                }
            }
        }
    }

    #[test]
    fn recency_does_not_count_where_a_time_is_asked_for() {
        let text = Some("dock".to_owned());
        let whenever = Query { text, ..Query::default() };
        assert!(Weights::of(&whenever).parts().recency > Weights::of(&whenever).parts().importance);
        let time = Some(Span { from: Bound::Unbounded, to: Bound::Unbounded });
        let then = Query { time, ..whenever };
        assert_eq!(Weights::of(&then).parts().recency, 0.0);
    }

    #[test]
    fn proximity_is_one_here_and_a_third_at_the_edge() {
        assert_eq!(proximity(0.0, Some(0.0)), 1.0);
        assert_eq!(proximity(2.0, Some(2.0)), 1.0 / 3.0);
        assert_eq!(proximity(1.0, None), 0.5);
    }
}
