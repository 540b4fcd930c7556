//! Search: the versions that match a query, exactly, and their ranks.
//!
//! Indexes propose candidates (`recall/propose.rs`), and every candidate is compared with every filter, as a scan
//! would do. So the answer is exactly that of a scan.

use std::collections::HashSet;

use super::filter::Filter;
use super::propose::{center_of, propose, ranked_part};
use super::query::Query;
use super::ranking::{Ranked, TopHits};
use super::score::{Weights, proximity};
use crate::index::catalog::Catalog;
use crate::index::scores::{ScorePart, Scores};
use crate::index::space::FrameId;

/// The matches of a query: their number, and the page that was asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Matches {
    /// The page, best first.
    pub page: Vec<Ranked>,
    /// Number of matches in all.
    pub total: u64,
}

/// Answers a query at `now` (microseconds, the store's clock).
pub(crate) fn search(catalog: &Catalog, query: &Query, now: i64) -> Matches {
    let at = query.at(now);
    let filter = Filter::new(catalog, query, at);
    if filter.is_void() {
        return Matches::default();
    }
    let weights = Weights::of(query);
    let room = query.limit.map_or(usize::MAX, |limit| query.offset.saturating_add(limit));
    let mut best = TopHits::new(room);
    if let Some(frame) = filter.frame().filter(|_| is_nearest_only(query)) {
        let total = nearest(catalog, query, &filter, frame, &weights, &mut best, at);
        return Matches { page: best.page(query.offset), total };
    }
    let mut total = 0u64;
    let prunes = is_words_only(query) && catalog.score_bounds.hold_at(at);
    let ranked = ranked_part(query);
    propose(catalog, query, &mut |id, proposed| {
        if prunes {
            let bound = catalog.score_bounds.of(id);
            let mut most = bound.scores();
            most[ScorePart::Text] = proposed;
            if bound.is_plain && weights.score(&most) < best.threshold() {
                total += 1;
                return;
            }
        }
        let doc = catalog.doc(id);
        let Some(distance) = filter.accepts(catalog, id) else { return };
        let mut scores = Scores::default();
        if let Some(part) = ranked {
            scores[part] = proposed;
        }
        scores[ScorePart::Proximity] =
            distance.map_or(0.0, |metres| proximity(metres, query.radius));
        scores[ScorePart::Retrievability] = 1.0;
        scores[ScorePart::Recency] = 1.0;
        scores[ScorePart::Importance] = catalog.importance(id, query.as_of.is_some(), at);
        scores[ScorePart::Confidence] = catalog.confidence(id, doc);
        // The last two parts cost the most. They are computed only if the best they can be reaches the page.
        let within_reach = weights.score(&scores) >= best.threshold();
        if within_reach || query.min_retrievability.is_some() {
            let retrievability = catalog.retrievability(id, query.as_of.is_some(), at);
            if query.min_retrievability.is_some_and(|least| retrievability < least) {
                return;
            }
            scores[ScorePart::Retrievability] = retrievability;
        }
        total += 1;
        if within_reach && room > 0 {
            scores[ScorePart::Recency] = doc.recency(at);
            let (score, order) = (weights.score(&scores), (doc.seq, doc.key));
            best.offer(Ranked { doc: id, score, scores, distance, order });
        }
    });
    Matches { page: best.page(query.offset), total }
}

/// The same query with nothing but its words or its place, its page and its way of reporting.
fn bare(query: &Query) -> Query {
    Query {
        limit: query.limit,
        offset: query.offset,
        touch: query.touch,
        explain: query.explain,
        ..Query::default()
    }
}

/// Returns true if a query has words and nothing that narrows.
fn is_words_only(query: &Query) -> bool {
    query.text.is_some() && Query { text: query.text.clone(), ..bare(query) } == *query
}

/// Returns true if a query has a point in a frame and nothing that narrows.
fn is_nearest_only(query: &Query) -> bool {
    let frame = query.frame.clone();
    query.near.is_some() && Query { near: query.near, frame, ..bare(query) } == *query
}

/// Offers the nearest few, without looking at the rest, and returns the number of matches: for a query of
/// [`is_nearest_only`].
///
/// The spatial index gives them in order, and the catalog keeps the count of what such a query sees.
fn nearest(
    catalog: &Catalog,
    query: &Query,
    filter: &Filter<'_>,
    frame: FrameId,
    weights: &Weights,
    best: &mut TopHits,
    at: i64,
) -> u64 {
    let Some(near) = &query.near else { return 0 };
    let special = catalog
        .visibility
        .special_from(0)
        .filter(|&id| filter.accepts(catalog, id).is_some())
        .count();
    let mut seen = HashSet::new();
    for (id, _) in catalog.places.index().nearest(query.frame(), center_of(near)) {
        let doc = catalog.doc(id);
        let Some(Some(distance)) = filter.accepts(catalog, id) else { continue };
        if doc.places > 1 && !seen.insert(id) {
            continue;
        }
        let mut scores = Scores::default();
        scores[ScorePart::Proximity] = proximity(distance, None);
        scores[ScorePart::Retrievability] = catalog.retrievability(id, false, at);
        scores[ScorePart::Recency] = doc.recency(at);
        scores[ScorePart::Importance] = catalog.importance(id, false, at);
        scores[ScorePart::Confidence] = catalog.confidence(id, doc);
        let score = weights.score(&scores);
        // Those further away only score less. As many as are as near as the last on the page compete by age.
        if score < best.threshold() {
            break;
        }
        let (distance, order) = (Some(distance), (doc.seq, doc.key));
        best.offer(Ranked { doc: id, score, scores, distance, order });
    }
    catalog.visibility.plain_in_frame(frame) + special as u64
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::catalog::hops;
    use crate::index::doc::{FileId, Location, Stamp};
    use crate::index::facts::{Facts, terms_of};
    use crate::recall::query::Snapshot;

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
        let snapshot = Some(Snapshot { seq: VERSIONS, at });
        let query = Query { snapshot, ..Query::everything() };
        hops::take();
        let mut found: Vec<u64> =
            search(&catalog, &query, 0).page.iter().map(|one| catalog.doc(one.doc).seq).collect();
        found.sort_unstable();
        assert_eq!(found, [VERSIONS - 1, VERSIONS]);
        let hops = hops::take();
        assert!(hops <= catalog.docs().len(), "{hops} hops over {} rows", catalog.docs().len());
    }
}
