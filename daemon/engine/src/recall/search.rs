//! Finds what matches a query, exactly, and ranks it.
//!
//! One index proposes candidates — the spatial one where there is a radius or a box, else the
//! words, else mentions, else times, else everything — and every candidate is then checked against
//! every filter by the same plain comparisons a scan would use. Indexes may propose too much,
//! never too little, so the answer is exactly that of a scan.

use std::cell::RefCell;
use std::collections::{BinaryHeap, HashSet};
use std::ops::Bound;

use omir_core::geo::{CHORD_MARGIN, chord_for_distance};
use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::ResourceType;
use omir_core::space::Center;
use omir_core::tier::Tier;

use super::query::Query;
use super::score::{Parts, Weights, proximity};
use crate::index::catalog::{Catalog, Known, Past, PlaceRow};
use crate::index::doc::{Doc, DocId};
use crate::index::facts::position;
use crate::index::key::RefKey;
use crate::index::text::Scratch;

/// A match with its rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The version.
    pub doc: DocId,
    /// Its score in [0, 1].
    pub score: f64,
    /// What the score is made of.
    pub parts: Parts,
    /// Metres from `near` or `geo`, if either was asked for.
    pub distance: Option<f64>,
    /// The transaction that recorded it and its key: newer first where scores are equal. The order
    /// within a request means nothing (spec: Conformance, consumers).
    order: (u64, RefKey),
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

/// All that matches, counted, and the page that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The page, best first.
    pub page: Vec<Ranked>,
    /// How many match in all.
    pub total: u64,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// The filters of a query, turned into what rows of the index can be compared with.
struct Filter<'a> {
    query: &'a Query,
    known: Known,
    past: RefCell<Past>,
    now: i64,
    types: u16,
    kinds: u16,
    tiers: u16,
    experience_types: u16,
    labels: u16,
    frame: Option<u32>,
    needs_frame: bool,
    entities: Vec<RefKey>,
}

fn mask<T: PartialEq>(all: &[T], wanted: &[T]) -> u16 {
    wanted.iter().fold(0, |mask, value| mask | 1 << position(all, value))
}

fn allows(mask: u16, value: u8) -> bool {
    mask == 0 || (value < 16 && mask & (1 << value) != 0)
}

impl<'a> Filter<'a> {
    fn new(catalog: &Catalog, query: &'a Query, now: i64) -> Self {
        Self {
            query,
            known: query.known(),
            past: RefCell::new(Past::new(query.known())),
            now,
            types: mask(&ResourceType::ALL, &query.types),
            kinds: mask(Kind::ALL, &query.kinds),
            tiers: mask(&Tier::ALL, &query.tiers),
            experience_types: mask(ExperienceType::ALL, &query.experience_types),
            labels: mask(Label::ALL, &query.labels),
            frame: catalog.frame(query.frame()),
            needs_frame: query.near.is_some() || query.within.is_some() || query.frame.is_some(),
            entities: query.entities.iter().map(RefKey::of).collect(),
        }
    }

    /// Whether the version is one this query looks at: known at the right time, not forgotten, not
    /// expired, no intention — unless those were asked for.
    fn is_visible(&self, catalog: &Catalog, id: DocId, doc: &Doc) -> bool {
        let query = self.query;
        let stood = match self.known {
            Known::Now => doc.is_live(),
            Known::At(at) => doc.recorded <= at && at < doc.retired,
            Known::UpTo(seq) => {
                let stood_then = || self.past.borrow_mut().version(catalog, &doc.key) == Some(id);
                doc.seq <= seq && (doc.is_live() || stood_then())
            }
        };
        let was_there = match self.known {
            Known::Now => true,
            Known::At(at) => doc.recorded <= at,
            Known::UpTo(seq) => doc.seq <= seq,
        };
        let known = stood || (query.include_forgotten && doc.forgotten && was_there);
        known
            && !doc.gone
            && (query.include_expired || self.now < doc.valid_until)
            && (query.include_intentions || !doc.class.is_intention())
    }

    /// Every filter but those on words, mentions and time of access. Gives the distance.
    fn accepts(&self, catalog: &Catalog, id: DocId) -> Option<Option<f64>> {
        let query = self.query;
        let doc = catalog.doc(id);
        let class = &doc.class;
        let by_class = allows(self.types, class.resource_type)
            && allows(self.kinds, class.kind)
            && allows(self.experience_types, class.experience)
            && (self.labels == 0 || self.labels & class.labels != 0);
        // A comparison with NaN, which stands for "not stated", is false: no match.
        let by_score = query.min_importance.is_none_or(|least| doc.importance >= least)
            && query.min_confidence.is_none_or(|least| doc.confidence >= least);
        let by_time = query.time.is_none_or(|span| doc.is_dated && span.contains(doc.when));
        if !(by_class && by_score && by_time && self.is_visible(catalog, id, doc)) {
            return None;
        }
        let distance = self.distance(catalog, doc)?;
        // Where it is by now costs more than the rest, so it is asked last.
        if self.tiers != 0 {
            let (tier, _) = catalog.tier(id, query.as_of.is_some(), self.now)?;
            if !allows(self.tiers, position(&Tier::ALL, &tier)) {
                return None;
            }
        }
        Some(distance)
    }

    /// `None` if the version is not where the query wants it; else its distance, if one was asked.
    fn distance(&self, catalog: &Catalog, doc: &Doc) -> Option<Option<f64>> {
        let query = self.query;
        if !self.needs_frame && query.geo.is_none() {
            return Some(None);
        }
        let places = catalog.places(doc).iter().filter_map(|place| self.distance_to(place));
        // The nearest of its places speaks for it.
        places.min_by(|a, b| {
            let far = f64::INFINITY;
            a.unwrap_or(far).total_cmp(&b.unwrap_or(far))
        })
    }

    /// The same for one place.
    fn distance_to(&self, place: &PlaceRow) -> Option<Option<f64>> {
        let query = self.query;
        let point = place.position.into();
        if self.needs_frame && Some(place.frame) != self.frame {
            return None;
        }
        if !query.is_in_box(&point) {
            return None;
        }
        let near = query.near.as_ref().map(|near| near.distance_to(&point));
        let geo = match &query.geo {
            Some(geo) => Some(geo.distance_m(place.geo.as_ref()?)),
            None => None,
        };
        let beyond = |metres: Option<f64>| {
            query.radius.is_some_and(|radius| metres.is_some_and(|metres| metres > radius))
        };
        if beyond(near) || beyond(geo) { None } else { Some(near.or(geo)) }
    }
}

/// Keeps the best `room` of what is offered.
struct Best {
    heap: BinaryHeap<Ranked>,
    room: usize,
}

impl Best {
    /// The score that must be reached to be kept at all.
    fn bar(&self) -> f64 {
        if self.heap.len() < self.room {
            f64::NEG_INFINITY
        } else {
            self.heap.peek().map_or(f64::INFINITY, |worst| worst.score)
        }
    }

    fn offer(&mut self, ranked: Ranked) {
        if self.heap.len() < self.room {
            self.heap.push(ranked);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && ranked < *worst
        {
            *worst = ranked;
        }
    }

    /// What was kept, best first, without the first `offset`.
    fn page(self, offset: usize) -> Vec<Ranked> {
        let mut page = self.heap.into_sorted_vec();
        page.drain(..offset.min(page.len()));
        page
    }
}

/// Answers a query at `now` (microseconds, the store's clock).
pub fn search(catalog: &Catalog, query: &Query, now: i64) -> Found {
    let at = query.at(now);
    let filter = Filter::new(catalog, query, at);
    let weights = Weights::of(query);
    let room = query.limit.map_or(usize::MAX, |limit| query.offset.saturating_add(limit));
    if let Some(found) = nearest(catalog, query, &filter, &weights, room, at) {
        return found;
    }
    let mut best = Best { heap: BinaryHeap::new(), room };
    let mut total = 0u64;
    let skims = is_words_only(query) && catalog.glances_hold_at(at);
    propose(catalog, query, &filter, &mut |id, text| {
        if skims {
            let glance = catalog.glance(id);
            let most = Parts {
                text,
                proximity: 0.0,
                retrievability: glance.retrievability(),
                recency: glance.recency(),
                importance: glance.importance(),
                confidence: glance.confidence(),
            };
            if glance.is_plain && weights.score(&most) < best.bar() {
                total += 1;
                return;
            }
        }
        let doc = catalog.doc(id);
        let Some(distance) = filter.accepts(catalog, id) else { return };
        let mut parts = Parts {
            text,
            proximity: distance.map_or(0.0, |metres| proximity(metres, query.radius)),
            retrievability: 1.0,
            recency: 1.0,
            importance: catalog.importance(id, query.as_of.is_some(), at),
            confidence: catalog.confidence(id, doc),
        };
        // With everything else known, even being used and having happened just now may not lift it
        // onto the page.
        let within_reach = weights.score(&parts) >= best.bar();
        if within_reach || query.min_retrievability.is_some() {
            parts.retrievability = catalog.retrievability(id, query.as_of.is_some(), at);
            if query.min_retrievability.is_some_and(|least| parts.retrievability < least) {
                return;
            }
        }
        total += 1;
        if within_reach && best.room > 0 {
            parts.recency = doc.recency(at);
            let score = weights.score(&parts);
            let order = (doc.seq, doc.key);
            best.offer(Ranked { doc: id, score, parts, distance, order });
        }
    });
    Found { page: best.page(query.offset), total }
}

/// Whether a query has words and nothing that narrows.
fn is_words_only(query: &Query) -> bool {
    let bare = Query {
        text: query.text.clone(),
        limit: query.limit,
        offset: query.offset,
        touch: query.touch,
        explain: query.explain,
        ..Query::default()
    };
    query.text.is_some() && bare == *query
}

/// The nearest few, without looking at the rest: for a place in a frame and nothing else.
///
/// The spatial index gives them in order, and the catalog keeps the count of what such a query
/// sees. `None` for any other query.
fn nearest(
    catalog: &Catalog,
    query: &Query,
    filter: &Filter<'_>,
    weights: &Weights,
    room: usize,
    at: i64,
) -> Option<Found> {
    let near = query.near.as_ref()?;
    let bare = Query {
        near: query.near,
        frame: query.frame.clone(),
        limit: query.limit,
        offset: query.offset,
        touch: query.touch,
        explain: query.explain,
        ..Query::default()
    };
    if bare != *query {
        return None;
    }
    let Some(frame) = filter.frame else { return Some(Found { page: Vec::new(), total: 0 }) };
    let special = catalog.special().filter(|&id| filter.accepts(catalog, id).is_some()).count();
    let total = catalog.plain_in_frame(frame) + special as u64;
    let mut best = Best { heap: BinaryHeap::new(), room };
    let mut seen = HashSet::new();
    for (id, _) in catalog.space.nearest(query.frame(), center_of(near)) {
        let doc = catalog.doc(id);
        let Some(Some(distance)) = filter.accepts(catalog, id) else { continue };
        if doc.places > 1 && !seen.insert(id) {
            continue;
        }
        let parts = Parts {
            text: 0.0,
            proximity: proximity(distance, None),
            retrievability: catalog.retrievability(id, false, at),
            recency: doc.recency(at),
            importance: catalog.importance(id, false, at),
            confidence: catalog.confidence(id, doc),
        };
        let score = weights.score(&parts);
        // Further ones only score less. As many are as near as the last on the page compete by age.
        if score < best.bar() {
            break;
        }
        let order = (doc.seq, doc.key);
        best.offer(Ranked { doc: id, score, parts, distance: Some(distance), order });
    }
    Some(Found { page: best.page(query.offset), total })
}

fn center_of(near: &Center) -> (f64, f64, Option<f64>) {
    match *near {
        Center::Plane { x, y } => (x, y, None),
        Center::Space { x, y, z } => (x, y, Some(z)),
    }
}

/// Calls `f` for every version that may match, once, with its agreement with the words.
fn propose(catalog: &Catalog, query: &Query, filter: &Filter<'_>, f: &mut dyn FnMut(DocId, f64)) {
    if filter.needs_frame && filter.frame.is_none() {
        return;
    }
    let by_place = candidates_by_place(catalog, query);
    let by_mention = (!filter.entities.is_empty()).then(|| {
        let mut ids: Vec<DocId> = filter
            .entities
            .iter()
            .flat_map(|entity| catalog.mentioning(entity).iter().copied())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    });
    let narrowed = match (by_place, by_mention) {
        (Some(a), Some(b)) => Some(intersection(&a, &b)),
        (Some(ids), None) | (None, Some(ids)) => Some(ids),
        (None, None) => None,
    };
    if let Some(words) = &query.text {
        SCRATCH.with_borrow_mut(|scratch| {
            let words = catalog.text.query(words);
            let mut narrowed = narrowed.as_deref().map(|ids| ids.iter().peekable());
            catalog.text.candidates(&words, scratch, |id, score| {
                let wanted = match &mut narrowed {
                    // Both come in ascending order: walk them side by side.
                    Some(ids) => {
                        while ids.next_if(|&&other| other < id).is_some() {}
                        ids.peek() == Some(&&id)
                    }
                    None => true,
                };
                if wanted {
                    f(id, f64::from(score));
                }
            });
        });
    } else if let Some(ids) = narrowed {
        ids.into_iter().for_each(|id| f(id, 0.0));
    } else if let Some(span) = query.time.filter(|_| !catalog.docs().is_empty()) {
        let key = |bound: Bound<Timestamp>| match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(at) => Bound::Included((at.secs(), at.nanos())),
            Bound::Excluded(at) => Bound::Excluded((at.secs(), at.nanos())),
        };
        catalog.time.range(key(span.from), key(span.to), |id| f(id, 0.0));
    } else {
        (0..catalog.docs().len() as DocId).for_each(|id| f(id, 0.0));
    }
}

fn intersection(a: &[DocId], b: &[DocId]) -> Vec<DocId> {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short.iter().copied().filter(|id| long.binary_search(id).is_ok()).collect()
}

/// What lies in the radius or box, in ascending order; `None` if the query sets neither.
fn candidates_by_place(catalog: &Catalog, query: &Query) -> Option<Vec<DocId>> {
    let mut ids = Vec::new();
    if let Some(within) = query.box_bounds() {
        let (min, max) = (&within.min, &within.max);
        let (min, max) = ([min.x, min.y, min.z], [max.x, max.y, max.z]);
        catalog.space.in_box(query.frame(), min, max, |id| ids.push(id));
    } else if let (Some(near), Some(radius)) = (&query.near, query.radius) {
        catalog.space.within(query.frame(), center_of(near), radius, |id| ids.push(id));
    } else if let (Some(geo), Some(radius)) = (&query.geo, query.radius) {
        let chord = chord_for_distance(radius) + CHORD_MARGIN;
        catalog.space.geo_within(geo.unit_vector(), chord, |id| ids.push(id));
    } else {
        return None;
    }
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

#[cfg(test)]
mod tests {
    use omir_core::instant::Instant;
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::catalog::hops;
    use crate::index::doc::{FileId, Location, Stamp};
    use crate::index::facts::{Facts, terms_of};
    use crate::recall::query::Fence;

    #[test]
    fn what_stood_at_a_fence_is_found_in_one_walk() {
        const VERSIONS: u64 = 300;
        let mut catalog = Catalog::new();
        let at = Timestamp::from_unix(0, 0);
        for seq in 1..=2 * VERSIONS {
            let id = format!("m{}", seq % 2);
            let record: Resource =
                MemoryRecord::new(id.parse().unwrap(), "a cup", Instant::from(at)).into();
            let stamp = Stamp { seq, ordinal: 0, version: seq.div_ceil(2), recorded: 1_000 };
            let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
            catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp, location);
        }
        let fence = Some(Fence { seq: VERSIONS, at });
        let query = Query { fence, ..Query::everything() };
        hops::take();
        let mut found: Vec<u64> =
            search(&catalog, &query, 0).page.iter().map(|one| catalog.doc(one.doc).seq).collect();
        found.sort_unstable();
        assert_eq!(found, [VERSIONS - 1, VERSIONS]);
        let hops = hops::take();
        assert!(hops <= catalog.docs().len(), "{hops} hops over {} rows", catalog.docs().len());
    }
}
