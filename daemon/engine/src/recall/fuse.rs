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

use parking_lot::Mutex;

use super::akin::akin;
use super::filter::Filter;
use super::propose::{ResolvedQuery, narrowed, propose_words};
use super::score::Weights;
use crate::index::catalog::{Catalog, ReadPoint, VersionReader};
use crate::index::doc::{Doc, DocId};
use crate::index::key::RefKey;
use crate::index::scores::{ScorePart, Scores};
use crate::index::vectors::{Similar, compare};
use crate::recall::query::{Query, QueryVector};

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
/// Longest time between neighbours; microseconds.
const SAME_HOUR: i64 = 3_600_000_000;

/// Most entries of a list whose room is kept for the next question: two megabytes each. Room that is given back to the system
/// costs a page fault for each of its pages when it is taken again, some two hundred for a question with 33,000 matches.
const MOST_NEAR_KEPT: usize = 1 << 18;
const MOST_CANDIDATES_KEPT: usize = 1 << 16;
/// Rooms that are kept. More are made while more questions are asked at once.
const MOST_ROOMS: usize = 2;

/// Room for lists that may be as long as there are memories.
#[derive(Default)]
struct Room {
    /// All that are near in meaning, ascending.
    near: Vec<Similar>,
    /// Those that match by words or by a relationship, and those that are near and have akin words; ascending.
    others: Vec<Candidate>,
}

/// Rooms that no question uses right now. The one used last is taken first: the processor's cache knows it still, whatever
/// thread it was.
static ROOMS: Mutex<Vec<Room>> = Mutex::new(Vec::new());

impl Room {
    fn take() -> Self {
        ROOMS.lock().pop().unwrap_or_default()
    }

    fn give_back(self) {
        let room = Self {
            near: emptied(self.near, MOST_NEAR_KEPT),
            others: emptied(self.others, MOST_CANDIDATES_KEPT),
        };
        let mut rooms = ROOMS.lock();
        if rooms.len() < MOST_ROOMS {
            rooms.push(room);
        }
    }
}

/// Empties a list, and gives its room back if it is large.
fn emptied<T>(mut list: Vec<T>, most: usize) -> Vec<T> {
    list.clear();
    list.shrink_to(most);
    list
}

/// A version that matches by words, by meaning, by a relationship, or by several of them.
///
/// There may be as many as there are memories, so they are small: what they hold was computed in single precision, or is
/// a bound. Of one that is near in meaning and nothing else, only the cosine is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) id: DocId,
    /// Agreement with the words.
    pub(super) text: f32,
    /// The share of the words' weight that it has; 1 where nothing asks for it.
    share: f32,
    /// The cosine; 0 for one that does not reach the floor.
    cosine: f32,
    /// Agreement with words akin to those of the question.
    akin: f32,
    /// The relevance of what a relationship leads here from; 0 for none.
    related: f32,
    /// True if it has too little of the words, does not reach the floor, and nothing leads here.
    pub(super) is_hidden: bool,
    /// The relevance of its neighbours, at most. Known of one that [`Candidates::each`] gives.
    beside: f32,
    /// True if it matches not by words alone, so that its filters were compared already.
    pub(super) is_accepted: bool,
}

impl Candidate {
    fn bare(id: DocId) -> Self {
        Self {
            id,
            text: 0.0,
            share: 0.0,
            cosine: 0.0,
            akin: 0.0,
            related: 0.0,
            is_hidden: false,
            beside: 0.0,
            is_accepted: false,
        }
    }

    fn near((id, cosine): Similar) -> Self {
        Self { cosine: cosine.max(0.0), is_accepted: true, ..Self::bare(id) }
    }

    /// What its words say: agreement, and less where many of them are missing.
    #[inline]
    fn said(&self) -> f32 {
        self.text * self.share
    }
}

/// All candidates of a question.
pub(super) struct Candidates {
    room: Room,
    pub(super) weights: Weights,
    /// True if some that are near may be missing.
    pub(super) is_approximate: bool,
    /// The relevance that comes to neighbours, by part.
    per_text: f64,
    lent_per_cosine: f64,
    per_akin: f64,
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
        let mut room = Room::take();
        let of =
            |vector| near(catalog, query, vector, within.as_deref(), &mut passes, &mut room.near);
        let Some(is_approximate) = query.vector.as_ref().map_or(Some(false), of) else {
            room.give_back();
            return None;
        };
        let max = |most: f64, (_, value): &Similar| most.max(f64::from(*value));
        let c_max = room.near.iter().fold(0.0, max);
        let related = related(catalog, query, within.as_deref(), &mut passes);
        let (t_max, share) = gather(catalog, resolved, filter, related, &mut room);
        let k_max = match &query.vector {
            Some(vector) if !vector.words.is_empty() => {
                look_at_akin(catalog, vector, filter, &mut room)
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
        let has_neighbours = neighbours > 0.0;
        Some(Self {
            room,
            weights,
            is_approximate,
            per_text,
            per_akin,
            lent_per_cosine,
            has_neighbours,
        })
    }

    /// Calls `f` with each candidate, ascending, and with the most that neighbours can bring it: those recorded right before and
    /// after, whatever they are.
    pub(super) fn each(&self, mut f: impl FnMut(&Candidate)) {
        let mut all = Merged { near: &self.room.near, others: &self.room.others };
        let mut before: Option<(DocId, f64)> = None;
        let mut next = all.next();
        while let Some(mut one) = next {
            next = all.next();
            if self.has_neighbours {
                let last = before.filter(|(id, _)| id + 1 == one.id).map_or(0.0, |(_, lent)| lent);
                let after = next.as_ref().filter(|next| next.id == one.id + 1);
                let beside = last + after.map_or(0.0, |after| self.lent(after));
                before = Some((one.id, self.lent(&one)));
                // Rounded up: it is a bound.
                one.beside = if beside > 0.0 { (beside as f32).next_up() } else { 0.0 };
            }
            f(&one);
        }
    }

    /// The candidate of a version.
    fn find(&self, id: DocId) -> Option<Candidate> {
        let Room { near, others } = &self.room;
        let of_others = others.binary_search_by_key(&id, |one| one.id).ok();
        of_others.and_then(|at| others.get(at).copied()).or_else(|| {
            let at = near.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            near.get(at).copied().map(Candidate::near)
        })
    }

    /// The relevance that comes to neighbours.
    fn lent(&self, candidate: &Candidate) -> f64 {
        if candidate.is_hidden {
            return 0.0;
        }
        self.per_text * f64::from(candidate.said())
            + self.lent_per_cosine * f64::from(candidate.cosine)
            + self.per_akin * f64::from(candidate.akin)
    }

    /// The most that the parts bring to a candidate's score that this decides.
    #[inline]
    pub(super) fn most_relevance(&self, candidate: &Candidate) -> f64 {
        let of = |part, value: f32| self.weights.of_part(part) * f64::from(value);
        of(ScorePart::Text, candidate.said())
            + of(ScorePart::Meaning, candidate.cosine)
            + of(ScorePart::Akin, candidate.akin)
            + of(ScorePart::Neighbours, candidate.beside)
            + of(ScorePart::Related, candidate.related)
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
                    // What is no answer itself, such as an older version of this one, makes nothing else an answer.
                    && (other.is_accepted || filter.accepts(catalog, other.id).is_some())
            };
            let beside = beside.into_iter().flatten().filter_map(|id| self.find(id)).filter(of);
            // A sum of nothing is -0, which a reader would wonder about.
            scores[ScorePart::Neighbours] = beside.fold(0.0, |sum, other| sum + self.lent(&other));
        }
    }
}

/// All candidates, ascending, each once.
struct Merged<'a> {
    near: &'a [Similar],
    others: &'a [Candidate],
}

impl Iterator for Merged<'_> {
    type Item = Candidate;

    #[inline]
    fn next(&mut self) -> Option<Candidate> {
        let near = self.near.split_first();
        if let Some((other, others)) = self.others.split_first()
            && near.is_none_or(|((id, _), _)| other.id <= *id)
        {
            self.others = others;
            if let Some(((id, _), rest)) = near
                && *id == other.id
            {
                self.near = rest;
            }
            return Some(*other);
        }
        let (first, rest) = near?;
        self.near = rest;
        Some(Candidate::near(*first))
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        std::mem::take(&mut self.room).give_back();
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

/// Adds the versions that are near in meaning, and returns true if some may be missing; `None` if there are no vectors of that model.
fn near(
    catalog: &Catalog,
    query: &Query,
    wanted: &QueryVector,
    within: Option<&[DocId]>,
    passes: &mut dyn FnMut(DocId) -> bool,
    found: &mut Vec<Similar>,
) -> Option<bool> {
    let floor = query.min_cosine.unwrap_or(catalog.fusion().min_cosine) as f32;
    let spaces = catalog.vectors.spaces();
    let space = spaces.iter().find(|space| compare(space.model(), &wanted.model))?;
    // Only where a total that is too low will do.
    let signs_first = !query.exact_total && space.has_signs();
    space.similar(&wanted.vector, floor, within, signs_first, passes, found);
    // Rows lie in order unless some were made later.
    if !found.is_sorted_by(|(a, _), (b, _)| a < b) {
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        found.dedup_by_key(|(id, _)| *id);
    }
    Some(signs_first)
}

/// The versions that mention a related entity, or are one, ascending, with the largest relevance that leads there.
fn related(
    catalog: &Catalog,
    query: &Query,
    within: Option<&[DocId]>,
    passes: &mut dyn FnMut(DocId) -> bool,
) -> Vec<(DocId, f32)> {
    let mut versions = VersionReader::new(query.read_point());
    let mut found = Vec::new();
    for (entity, relevance) in &query.related {
        let key = RefKey::of(entity);
        let own = match query.read_point() {
            ReadPoint::Now => catalog.live(&key),
            _ => versions.version(catalog, &key),
        };
        let ids = catalog.mentioning(&key).iter().copied().chain(own);
        let is_within = |id: &DocId| within.is_none_or(|within| within.binary_search(id).is_ok());
        let ids = ids.filter(is_within).filter(|id| passes(*id));
        found.extend(ids.map(|id| (id, *relevance as f32)));
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    found.dedup_by_key(|(id, _)| *id);
    found
}

/// Gathers the candidates by words and by relationships, and returns the most that words say, and the largest share of their weight.
fn gather(
    catalog: &Catalog,
    resolved: &ResolvedQuery<'_>,
    filter: &Filter<'_>,
    related: Vec<(DocId, f32)>,
    room: &mut Room,
) -> (f64, f32) {
    let Room { near, others } = room;
    let mut near = near.as_slice();
    // The candidate of a version, near in meaning or not, and the relevance that leads there if any does; versions must ascend.
    let mut candidate = |id: DocId, related: Option<f32>| {
        while near.first().is_some_and(|(other, _)| *other < id) {
            near = &near[1..];
        }
        let near = near.first().filter(|(other, _)| *other == id);
        let mut one = near.map_or_else(|| Candidate::bare(id), |near| Candidate::near(*near));
        one.related = related.unwrap_or_default();
        one.is_accepted |= related.is_some();
        one
    };
    let mut related = related.into_iter().peekable();
    let (mut t_max, mut most) = (0.0_f32, 0.0_f32);
    let has_vector = resolved.has_vector();
    propose_words(catalog, resolved, &mut |id, text| {
        while let Some((other, relevance)) = related.next_if(|(other, _)| *other < id) {
            others.push(candidate(other, Some(relevance)));
        }
        let leads_here = related.next_if(|(other, _)| *other == id);
        let mut one = candidate(id, leads_here.map(|(_, relevance)| relevance));
        one.is_hidden = !one.is_accepted && resolved.is_hidden();
        one.text = text as f32;
        one.share = if has_vector { resolved.share() } else { 1.0 };
        // The best match that is shown decides, so only what may be the best is compared with the filters here.
        let (said, share) = (one.said(), one.share);
        if (said > t_max || share > most)
            && !one.is_hidden
            && (one.is_accepted || filter.accepts(catalog, id).is_some())
        {
            (t_max, most) = (t_max.max(said), most.max(share));
        }
        others.push(one);
    });
    others.extend(related.map(|(id, relevance)| candidate(id, Some(relevance))));
    (t_max.into(), most)
}

/// Notes the agreement of candidates with words akin to those of the question, and returns the best.
fn look_at_akin(
    catalog: &Catalog,
    wanted: &QueryVector,
    filter: &Filter<'_>,
    room: &mut Room,
) -> f64 {
    let Room { near, others } = room;
    let (known, mut at) = (others.len(), 0);
    let mut near = near.as_slice();
    let mut k_max = 0.0_f32;
    akin(catalog, wanted, |id, agreement| {
        while others.get(at).is_some_and(|one| at < known && one.id < id) {
            at += 1;
        }
        let is_known = at < known && others.get(at).is_some_and(|one| one.id == id);
        if !is_known {
            near = &near[near.partition_point(|(other, _)| *other < id)..];
            let Some(one) = near.first().filter(|(other, _)| *other == id) else { return };
            others.push(Candidate::near(*one));
        }
        let one = if is_known { others.get_mut(at) } else { others.last_mut() };
        let Some(one) = one else { return };
        one.akin = agreement;
        if agreement > k_max
            && !one.is_hidden
            && (one.is_accepted || filter.accepts(catalog, id).is_some())
        {
            k_max = agreement;
        }
    });
    // Two lists in order, one behind the other: the sort merges them.
    if known < others.len() {
        others.sort_by_key(|one| one.id);
    }
    k_max.into()
}

#[cfg(test)]
mod tests;
