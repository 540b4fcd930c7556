//! Words and meaning in one ranking: candidates of both, and how much each counts.
//!
//! A version matches if it has one of the words, or if the cosine of its vector with that of the question reaches the floor
//! (`minCosine`). With `t` the agreement with the words and `c` the cosine, relevance is
//!
//! ```text
//! r = w · t / t_max + (1 − w) · c / c_max        w = words · min(1, t_max / ½)²
//! ```
//!
//! `t_max` and `c_max` are the largest among the matches. `words` is 0.6 by default. Where no memory has more than half of the
//! weight of the words, words say less, and `w` falls. Then a share of the relevance of the memories recorded right before
//! and after comes to it, where they are of the same source and of the same hour. Relevance takes the place that words have
//! without vectors; where neither words nor cosine are strong, it counts for less. `docs/recall.md`, "Fusion", says what was
//! measured.

use super::filter::Filter;
use super::propose::{Asked, narrowed, propose_words};
use super::score::Weights;
use crate::index::catalog::Catalog;
use crate::index::doc::{Doc, DocId};
use crate::index::scores::{ScorePart, Scores};
use crate::index::vectors::{Near, compare};
use crate::recall::query::{AskedVector, Query};

/// Share of the words' weight from which words count in full.
const STRONG_WORDS: f64 = 0.5;
/// Cosine from which meaning counts in full.
const STRONG_COSINE: f64 = 0.5;
/// Longest time between neighbours; microseconds.
const SAME_HOUR: i64 = 3_600_000_000;

/// A version that matches by words, by meaning, or by both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) id: DocId,
    /// Agreement with the words.
    pub(super) text: f64,
    /// The cosine; 0 for one that does not reach the floor.
    pub(super) cosine: f64,
    /// True if it has too little of the words, and does not reach the floor.
    pub(super) is_hidden: bool,
    /// The relevance of its neighbours, at most.
    near: f64,
    /// True if it matches by meaning, so that its filters were compared already.
    pub(super) is_accepted: bool,
}

/// All candidates of a question, ascending.
pub(super) struct Candidates {
    pub(super) all: Vec<Candidate>,
    pub(super) weights: Weights,
    /// True if some that are near may be missing.
    pub(super) is_approximate: bool,
    /// Relevance by part, as the weights have it.
    per_text: f64,
    per_cosine: f64,
}

impl Candidates {
    /// The candidates of a query with a vector; `None` if its model is not there any more.
    pub(super) fn of(
        catalog: &Catalog,
        asked: &Asked<'_>,
        query: &Query,
        filter: &Filter<'_>,
        is_plain: &dyn Fn(DocId) -> bool,
    ) -> Option<Self> {
        let vector = query.vector.as_ref()?;
        let within = narrowed(catalog, asked);
        let (mut near, is_approximate) =
            near(catalog, query, vector, within.as_deref(), &mut |id| {
                asked.is_looked_at(id) && (is_plain(id) || filter.accepts(catalog, id).is_some())
            })?;
        near.sort_unstable_by_key(|(id, _)| *id);
        let c_max = near.iter().map(|(_, cosine)| f64::from(*cosine)).fold(0.0, f64::max);
        let (all, t_max) = merge(catalog, asked, filter, &near);
        let fusion = catalog.fusion();
        let strength = (t_max / STRONG_WORDS).min(1.0);
        let words = if query.has_words() { fusion.words * strength * strength } else { 0.0 };
        let scale = strength.max((c_max / STRONG_COSINE).min(1.0));
        let per = |weight: f64, max: f64| if max > 0.0 { scale * weight / max } else { 0.0 };
        let mut candidates = Self {
            all,
            weights: Weights::of(query),
            is_approximate,
            per_text: per(words, t_max),
            per_cosine: per(1.0 - words, c_max),
        };
        // No score is above 1, whatever comes of neighbours.
        let share = 1.0 / (1.0 + 2.0 * fusion.neighbours);
        candidates.weights = candidates.weights.fused(&[
            (ScorePart::Text, candidates.per_text * share),
            (ScorePart::Meaning, candidates.per_cosine * share),
            (ScorePart::Neighbours, fusion.neighbours * share),
        ]);
        if fusion.neighbours > 0.0 {
            candidates.look_at_neighbours();
        }
        Some(candidates)
    }

    fn relevance(&self, candidate: &Candidate) -> f64 {
        if candidate.is_hidden {
            return 0.0;
        }
        self.per_text * candidate.text + self.per_cosine * candidate.cosine
    }

    /// Notes the most that neighbours can bring: those recorded right before and after, whatever they are.
    fn look_at_neighbours(&mut self) {
        let mut before: Option<(DocId, f64)> = None;
        for at in 0..self.all.len() {
            let Some(one) = self.all.get(at).copied() else { break };
            let own = self.relevance(&one);
            let next = self.all.get(at + 1).filter(|next| next.id == one.id + 1);
            let next = next.map_or(0.0, |next| self.relevance(next));
            let last = before.filter(|(id, _)| id + 1 == one.id).map_or(0.0, |(_, last)| last);
            if let Some(one) = self.all.get_mut(at) {
                one.near = last + next;
            }
            before = Some((one.id, own));
        }
    }

    /// The parts of a candidate's score that this decides, with all that neighbours can bring at most.
    pub(super) fn most(candidate: &Candidate, scores: &mut Scores) {
        scores[ScorePart::Text] = candidate.text;
        scores[ScorePart::Meaning] = candidate.cosine;
        scores[ScorePart::Neighbours] = candidate.near;
    }

    /// The same with what neighbours bring: those of the same source and hour.
    pub(super) fn exactly(&self, catalog: &Catalog, at: usize, scores: &mut Scores) {
        let Some(one) = self.all.get(at) else { return };
        Self::most(one, scores);
        if one.near > 0.0 {
            let before = at.checked_sub(1).and_then(|at| self.all.get(at));
            let beside = [before, self.all.get(at + 1)];
            let of = |other: &&Candidate| {
                other.id.abs_diff(one.id) == 1
                    && is_neighbour(catalog.doc(one.id), catalog.doc(other.id))
            };
            let near = beside.into_iter().flatten().filter(of).map(|other| self.relevance(other));
            scores[ScorePart::Neighbours] = near.sum();
        }
    }
}

/// Returns true if two versions recorded one after the other tell of the same hour, from the same source.
fn is_neighbour(a: &Doc, b: &Doc) -> bool {
    let apart = a.when.as_micros().abs_diff(b.when.as_micros());
    a.class.is_event()
        && b.class.is_event()
        && a.class.resource_type == b.class.resource_type
        && a.producer == b.producer
        && apart <= SAME_HOUR.unsigned_abs()
        && !b.dropped
}

/// The versions that are near in meaning, and true if some may be missing; `None` if there are no vectors of that model.
fn near(
    catalog: &Catalog,
    query: &Query,
    asked: &AskedVector,
    within: Option<&[DocId]>,
    passes: &mut dyn FnMut(DocId) -> bool,
) -> Option<(Vec<Near>, bool)> {
    let floor = query.min_cosine.unwrap_or(catalog.fusion().min_cosine) as f32;
    let spaces = catalog.vectors.spaces();
    let space = spaces.iter().find(|space| compare(space.model(), &asked.model))?;
    // Only where a total that is too low will do.
    let signs_first = !query.exact_total && space.has_signs();
    Some((space.near(&asked.vector, floor, within, signs_first, passes), signs_first))
}

/// Candidates by words and by meaning in one list, and the best agreement with the words.
fn merge(
    catalog: &Catalog,
    asked: &Asked<'_>,
    filter: &Filter<'_>,
    near: &[Near],
) -> (Vec<Candidate>, f64) {
    let by_meaning = |(id, cosine): Near| Candidate {
        id,
        text: 0.0,
        cosine: f64::from(cosine).max(0.0),
        is_hidden: false,
        near: 0.0,
        is_accepted: true,
    };
    let mut all = Vec::with_capacity(near.len());
    let mut rest = near.iter().copied().peekable();
    let mut t_max = 0.0_f64;
    propose_words(catalog, asked, &mut |id, text| {
        while let Some(other) = rest.next_if(|(other, _)| *other < id) {
            all.push(by_meaning(other));
        }
        let mut one = match rest.next_if(|(other, _)| *other == id) {
            Some(both) => by_meaning(both),
            None => Candidate {
                is_hidden: asked.is_hidden(),
                is_accepted: false,
                cosine: 0.0,
                ..by_meaning((id, 0.0))
            },
        };
        one.text = text;
        // The best match decides, so only what may be the best is compared with the filters here.
        if text > t_max && (one.is_accepted || filter.accepts(catalog, id).is_some()) {
            t_max = text;
        }
        all.push(one);
    });
    all.extend(rest.map(by_meaning));
    (all, t_max)
}

#[cfg(test)]
mod tests;
