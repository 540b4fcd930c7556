//! The collector: compares each candidate of a query with the filters, counts the matches and keeps the best.

use super::filter::Filter;
use super::fuse::{Candidate, Candidates};
use super::propose::{ResolvedQuery, propose};
use super::query::{Order, Query};
use super::ranking::{Rank, Ranked, TopHits};
use super::score::{Weights, proximity};
use super::texts::Check;
use crate::index::catalog::{BoundWeights, Catalog};
use crate::index::doc::{Doc, DocId};
use crate::index::scores::{ScorePart, Scores};

/// Most difference of a sum of ten parts that is added in another order.
const ROUNDING: f64 = 1e-12;

/// Treatment of a plain version whose score cannot reach the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutOfReach {
    /// Its row is examined, as any other.
    Examined,
    /// It is counted without a look at its row: no filter of the query refuses a plain version.
    Counted,
    /// It is not even counted: the query does not ask for the exact total.
    Dropped,
}

/// The collector of one query.
pub(super) struct Collector<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) query: &'a Query,
    pub(super) filter: &'a Filter<'a>,
    pub(super) resolved: &'a ResolvedQuery<'a>,
    /// The candidates, if they were fused; the indexes propose them otherwise.
    pub(super) fused: Option<&'a Candidates>,
    /// The time that is asked about; microseconds.
    pub(super) at: i64,
    pub(super) scoring: Scoring,
    /// Number of hits that are kept.
    pub(super) top_k: usize,
    pub(super) out_of_reach: OutOfReach,
    /// True if a version is left out where a newer one is lost.
    pub(super) omits_outdated: bool,
    /// The phrases that texts are compared with, if there are some.
    pub(super) check: Option<Check<'a>>,
    /// Receives the rows of all matches that are not hidden.
    pub(super) all: Option<&'a mut Vec<DocId>>,
    pub(super) collected: Collected,
}

/// The result of a collector.
pub(super) struct Collected {
    pub(super) best: TopHits,
    /// Number of matches, without those that were dropped.
    pub(super) total: u64,
    /// Number of those that are no hits, since they have too little of the words.
    pub(super) hidden: u64,
    /// Number of versions that were left out: a newer one is lost.
    pub(super) outdated: u64,
    /// True if candidates were dropped.
    pub(super) has_dropped: bool,
}

impl Collected {
    pub(super) fn new(best: TopHits) -> Self {
        Self { best, total: 0, hidden: 0, outdated: 0, has_dropped: false }
    }
}

/// The weights of a query, as a look at a candidate needs them.
pub(super) struct Scoring {
    weights: Weights,
    /// The part of the score that candidates are proposed with, if they are.
    ranked: Option<ScorePart>,
    ranked_weight: f64,
    bound_weights: BoundWeights,
    /// The most that a part brings which is neither relevance nor has a bound.
    most_elsewhere: f64,
}

impl Scoring {
    pub(super) fn new(weights: Weights, ranked: Option<ScorePart>) -> Self {
        Self {
            weights,
            ranked,
            ranked_weight: ranked.map_or(0.0, |part| weights.of_part(part)),
            bound_weights: BoundWeights::of(|part| weights.of_part(part)),
            most_elsewhere: weights.of_part(ScorePart::Proximity) + ROUNDING,
        }
    }
}

impl Collector<'_> {
    /// Looks at all candidates.
    pub(super) fn collect(mut self) -> Collected {
        let (catalog, resolved) = (self.catalog, self.resolved);
        match self.fused {
            Some(fused) => fused.each(|one| self.look(one.id, one.text.into(), Some(one))),
            None => propose(catalog, resolved, &mut |id, proposed| self.look(id, proposed, None)),
        }
        self.collected
    }

    /// Looks at one candidate. `proposed` is its score in the part that candidates are proposed with.
    #[inline]
    fn look(&mut self, id: DocId, proposed: f64, candidate: Option<&Candidate>) {
        let (catalog, query, at) = (self.catalog, self.query, self.at);
        let is_hidden = candidate.map_or_else(|| self.resolved.is_hidden(), |one| one.is_hidden);
        if self.out_of_reach != OutOfReach::Examined
            && self.is_out_of_reach(id, proposed, candidate)
        {
            return self.pass_over(is_hidden);
        }
        let doc = catalog.doc(id);
        let Some(distance) = self.filter.accepts(catalog, id) else { return };
        if self.check.as_mut().is_some_and(|check| !check.passes(catalog, id)) {
            return;
        }
        if self.omits_outdated && self.is_outdated(id) {
            self.collected.outdated += 1;
            return;
        }
        let mut scores = self.scores_at_most(id, doc, proposed, candidate, distance);
        // The last two parts cost the most. They are computed only if the best they can be reaches the page.
        let within_reach = self.reaches_page(doc, &scores, distance);
        if (within_reach && !is_hidden) || query.min_retrievability.is_some() {
            let retrievability = catalog.retrievability(id, query.as_of.is_some(), at);
            if query.min_retrievability.is_some_and(|least| retrievability < least) {
                return;
            }
            scores[ScorePart::Retrievability] = retrievability;
        }
        self.collected.total += 1;
        if is_hidden {
            self.collected.hidden += 1;
            return;
        }
        if let Some(all) = &mut self.all {
            all.push(id);
        }
        if within_reach && self.top_k > 0 {
            scores[ScorePart::Recency] = doc.recency(at);
            let score = self.scoring.weights.score(&scores);
            let measure = Rank::measure(query.order, doc, score, distance);
            let rank = Rank::new(query.order, measure, doc);
            let hit = Ranked { doc: id, score, scores, text: proposed, distance, rank };
            self.collected.best.offer(hit);
        }
    }

    /// Returns true if a version is plain and its score cannot reach the page. Reads no row.
    #[inline]
    fn is_out_of_reach(&self, id: DocId, proposed: f64, candidate: Option<&Candidate>) -> bool {
        let bound = self.catalog.score_bounds.of(id);
        if !bound.is_plain {
            return false;
        }
        let scoring = &self.scoring;
        let relevance = match (self.fused, candidate) {
            (Some(fused), Some(candidate)) => fused.most_relevance(candidate),
            _ => scoring.ranked_weight * proposed,
        };
        let most = relevance + scoring.most_elsewhere + bound.most(&scoring.bound_weights);
        most < self.collected.best.threshold()
    }

    /// Counts a version that is out of reach, unless such versions are dropped.
    #[inline]
    fn pass_over(&mut self, is_hidden: bool) {
        if self.out_of_reach == OutOfReach::Dropped {
            self.collected.has_dropped = true;
            return;
        }
        self.collected.total += 1;
        self.collected.hidden += u64::from(is_hidden);
    }

    /// Returns true if a newer version was lost, as of the time that is asked about.
    fn is_outdated(&self, id: DocId) -> bool {
        let newer = self.catalog.missing(id);
        newer.is_some_and(|stamp| self.query.as_of.is_none() || stamp.recorded <= self.at)
    }

    /// The parts of a score, with retrievability and recency at the most that they can be.
    #[inline]
    fn scores_at_most(
        &self,
        id: DocId,
        doc: &Doc,
        proposed: f64,
        candidate: Option<&Candidate>,
        distance: Option<f64>,
    ) -> Scores {
        let (catalog, query) = (self.catalog, self.query);
        let mut scores = Scores::default();
        match (self.fused, candidate) {
            (Some(fused), Some(one)) => fused.exactly(catalog, self.filter, one, &mut scores),
            _ => {
                if let Some(part) = self.scoring.ranked {
                    scores[part] = proposed;
                }
            }
        }
        scores[ScorePart::Proximity] =
            distance.map_or(0.0, |metres| proximity(metres, query.radius));
        scores[ScorePart::Retrievability] = 1.0;
        scores[ScorePart::Recency] = 1.0;
        scores[ScorePart::Importance] = catalog.importance(id, query.as_of.is_some(), self.at);
        scores[ScorePart::Confidence] = catalog.confidence(id, doc);
        scores
    }

    /// Returns true if a version with these parts of a score, or with lesser ones, may be kept.
    #[inline]
    fn reaches_page(&self, doc: &Doc, scores: &Scores, distance: Option<f64>) -> bool {
        let (best, order) = (&self.collected.best, self.query.order);
        if order == Order::Score {
            return self.scoring.weights.score(scores) >= best.threshold();
        }
        let measure = Rank::measure(order, doc, 0.0, distance);
        best.would_keep(&Rank::new(order, measure, doc))
    }
}
