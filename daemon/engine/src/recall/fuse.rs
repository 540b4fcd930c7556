//! Words and meaning in one ranking: candidates of both, and how much each counts.
//!
//! A version matches if it has one of the words, or if the cosine of its vector with that of the question reaches the floor
//! (`minCosine`). With `t` the agreement with the words times the share of their weight that a version has, and `c` the cosine,
//! relevance is
//!
//! ```text
//! r = w · t / t_max + (1 − w) · c / c_max        w = words · max(min(1, t_max / ½), min(1, rarity / 1½))²
//! ```
//!
//! `rarity` is that of the words that the best version has, together: 1 is what one version of all has by chance, so that words
//! say more the less likely it is that they were met by chance.
//!
//! - `words` is 0.6 by default. Where no memory has much of the words, they say less, and `w` falls. It does not beside a model that
//!   knows words by their letters alone.
//! - `t_max` and `c_max` are the largest among the versions that pass the filters. `minRetrievability` and phrases are compared later.
//! - Where the model has vectors of single words, `k / k_max` has three quarters of the weight of meaning, and `c / c_max` the rest. `k` is
//!   the agreement with words akin to those of the question (`recall/akin.rs`). It ranks, and finds nothing by itself.
//! - Where a question asks to spread over relationships, half of the relevance of what leads here is added.
//! - A share of the relevance of the versions recorded right before and after is added, where those pass the filters too and are of the same
//!   source and hour. Where there are vectors of words, that is the relevance of words and akin words alone.
//! - Relevance takes the place that words have without vectors. Where neither words nor cosine are strong, it counts for less.
//!
//! `docs/recall.md`, "Fusion", says what was measured.
//!
//! | file | holds |
//! |---|---|
//! | `candidate`, `lists`, `pool` | a candidate; all of them, in order; the memory that they take |
//! | `by_words`, `by_meaning`, `by_relationship` | what each of them finds |
//! | `relevance` | relevance of a candidate, and the most that it can come to |

mod by_meaning;
mod by_relationship;
mod by_words;
mod candidate;
mod lists;
mod pool;
mod relevance;

use self::by_meaning::similar;
use self::by_relationship::related;
use self::by_words::{gather, look_at_akin};
use self::lists::Lists;
use self::relevance::{Relevance, is_neighbour};
use super::filter::Filter;
use super::propose::{ResolvedQuery, narrowed};
use super::query::Query;
use super::score::Weights;
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::scores::{ScorePart, Scores};
use crate::index::vectors::Similar;

pub(super) use self::candidate::Candidate;

/// Agreement with the words from which they count in full.
const STRONG_WORDS: f64 = 0.5;
/// Rarity of the words of one version from which they count in full.
const STRONG_RARITY: f64 = 1.5;
/// Cosine from which meaning counts in full.
const STRONG_COSINE: f64 = 0.5;
/// Share of akin words in what meaning counts, where there are vectors of words.
const AKIN: f64 = 0.75;
/// Share of the relevance of a match that what it is related to has.
const SPREAD: f64 = 0.5;

/// All candidates of a question.
pub(super) struct Candidates {
    lists: Lists,
    relevance: Relevance,
    /// True if some that are similar may be missing.
    pub(super) is_approximate: bool,
    /// True if relevance comes to neighbours.
    has_neighbours: bool,
}

impl Candidates {
    /// The candidates of a query with a vector or with related entities; `None` if it has neither, or if the model of its
    /// vector is not there any more.
    pub(super) fn of(
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        query: &Query,
        filter: &Filter<'_>,
        is_plain: &dyn Fn(DocId) -> bool,
    ) -> Option<Self> {
        if query.vector.is_none() && query.related.is_empty() {
            return None;
        }
        let within = narrowed(catalog, resolved);
        let mut passes = |id| {
            resolved.is_looked_at(id) && (is_plain(id) || filter.accepts(catalog, id).is_some())
        };
        let mut lists = pool::take();
        let of = |vector| {
            similar(catalog, query, vector, within.as_deref(), &mut passes, &mut lists.similar)
        };
        let Some(is_approximate) = query.vector.as_ref().map_or(Some(false), of) else {
            pool::give_back(lists);
            return None;
        };
        let max = |most: f64, (_, value): &Similar| most.max(f64::from(*value));
        let c_max = lists.similar.iter().fold(0.0, max);
        let related = related(catalog, query, within.as_deref(), &mut passes);
        let (t_max, share) = gather(catalog, resolved, filter, related, &mut lists);
        let k_max = match &query.vector {
            Some(vector) if !vector.words.is_empty() => {
                look_at_akin(catalog, vector, filter, &mut lists)
            }
            _ => 0.0,
        };
        let fusion = catalog.fusion();
        let rarity = match (&query.vector, resolved.words()) {
            (Some(_), Some(words)) => words.rarity_of(share),
            _ => 0.0,
        };
        let strength = (t_max / STRONG_WORDS).max(rarity / STRONG_RARITY).min(1.0);
        let words = match (&query.vector, query.has_words()) {
            // It knows no other words, so where those of the question are missing it knows no better.
            (Some(vector), true) if vector.is_lexical => fusion.words,
            (Some(_), true) => fusion.words * strength * strength,
            (None, true) => 1.0,
            (_, false) => 0.0,
        };
        let neighbours = if query.vector.is_some() { fusion.neighbours } else { 0.0 };
        let spread = if query.related.is_empty() { 0.0 } else { SPREAD };
        let scale = strength.max((c_max / STRONG_COSINE).min(1.0));
        let per = |weight: f64, max: f64| if max > 0.0 { scale * weight / max } else { 0.0 };
        let akin = if k_max > 0.0 { AKIN } else { 0.0 };
        let per_cosine = per((1.0 - words) * (1.0 - akin), c_max);
        let (per_text, per_akin) = (per(words, t_max), per((1.0 - words) * akin, k_max));
        // No score is above 1, whatever comes of neighbours and relationships.
        let share = 1.0 / (1.0 + 2.0 * neighbours + spread);
        let weights = Weights::of(query).fused(&[
            (ScorePart::Text, per_text * share),
            (ScorePart::Meaning, per_cosine * share),
            (ScorePart::Akin, per_akin * share),
            (ScorePart::Neighbours, neighbours * share),
            (ScorePart::Related, spread * scale * share),
        ]);
        // Texts of one hour are somewhat alike, whatever was asked.
        let lent_per_cosine = if akin > 0.0 { 0.0 } else { per_cosine };
        let relevance = Relevance { weights, per_text, lent_per_cosine, per_akin };
        Some(Self { lists, relevance, is_approximate, has_neighbours: neighbours > 0.0 })
    }

    /// The weights of the parts of a score.
    pub(super) fn weights(&self) -> Weights {
        self.relevance.weights
    }

    /// Calls `f` with each candidate, ascending, and with the most that neighbours can bring it: those recorded right before and
    /// after, whatever they are.
    pub(super) fn each(&self, mut f: impl FnMut(&Candidate)) {
        let mut all = self.lists.merged();
        let mut before: Option<(DocId, f64)> = None;
        let mut next = all.next();
        while let Some(mut one) = next {
            next = all.next();
            if self.has_neighbours {
                let last = before.filter(|(id, _)| id + 1 == one.id).map_or(0.0, |(_, lent)| lent);
                let after = next.as_ref().filter(|next| next.id == one.id + 1);
                let beside = last + after.map_or(0.0, |after| self.relevance.lent(after));
                before = Some((one.id, self.relevance.lent(&one)));
                // Rounded up: it is a bound.
                one.beside = if beside > 0.0 { (beside as f32).next_up() } else { 0.0 };
            }
            f(&one);
        }
    }

    /// The most that the parts bring to a candidate's score that this decides.
    #[inline]
    pub(super) fn most_relevance(&self, candidate: &Candidate) -> f64 {
        self.relevance.most(candidate)
    }

    /// The parts of a candidate's score that this decides, with what neighbours bring: those of the same source and hour.
    pub(super) fn exactly(
        &self,
        catalog: &Catalog,
        filter: &Filter<'_>,
        one: &Candidate,
        scores: &mut Scores,
    ) {
        scores[ScorePart::Text] = one.said().into();
        scores[ScorePart::Meaning] = one.cosine.into();
        scores[ScorePart::Akin] = one.akin.into();
        scores[ScorePart::Related] = one.related.into();
        if one.beside > 0.0 {
            let beside = [one.id.checked_sub(1), one.id.checked_add(1)];
            let of = |other: &Candidate| {
                is_neighbour(catalog.doc(one.id), catalog.doc(other.id))
                    // A version that is no answer itself, such as an older version of this one, makes nothing else an answer.
                    && (other.is_accepted || filter.accepts(catalog, other.id).is_some())
            };
            let beside =
                beside.into_iter().flatten().filter_map(|id| self.lists.find(id)).filter(of);
            // A sum of nothing is -0, which a reader would wonder about.
            scores[ScorePart::Neighbours] =
                beside.fold(0.0, |sum, other| sum + self.relevance.lent(&other));
        }
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        pool::give_back(std::mem::take(&mut self.lists));
    }
}

#[cfg(test)]
mod tests;
