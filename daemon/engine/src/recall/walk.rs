//! Questions that an index answers in order: the nearest few, the latest few. The walk ends where the page is full, and
//! the catalog keeps the count of what such a question sees.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::filter::Filter;
use super::propose::center_of;
use super::query::{Order, Query};
use super::ranking::{Rank, Ranked, TopHits};
use super::score::{Weights, proximity};
use super::tally::Asks;
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::scores::{ScorePart, Scores};
use crate::index::spatial::FrameId;

/// Offers the first few matches, without looking at the rest, and returns the number of all; `None` if no index has the
/// matches of this query in its order.
pub(super) fn walk(
    catalog: &Catalog,
    query: &Query,
    filter: &Filter<'_>,
    weights: &Weights,
    best: &mut TopHits,
    at: i64,
) -> Option<u64> {
    let walk = Walk { catalog, query, filter, weights, at };
    match query.order {
        Order::Score | Order::Distance if is_nearest_only(query) => {
            filter.frame().map(|frame| walk.nearest(frame, best))
        }
        Order::Latest | Order::Earliest if is_time_only(query) => Some(walk.by_time(best)),
        Order::Score | Order::Distance | Order::Latest | Order::Earliest => None,
    }
}

/// The same query with nothing but its order, its page and its way of reporting.
pub(super) fn bare(query: &Query) -> Query {
    Query {
        order: query.order,
        limit: query.limit,
        offset: query.offset,
        touch: query.touch,
        explain: query.explain,
        exact_total: query.exact_total,
        by_meaning: query.by_meaning,
        asks: Asks { count: query.asks.count, ..Asks::default() },
        ..Query::default()
    }
}

/// Returns true if a query has a point in a frame and nothing that narrows.
fn is_nearest_only(query: &Query) -> bool {
    let frame = query.frame.clone();
    query.near.is_some() && Query { near: query.near, frame, ..bare(query) } == *query
}

/// Returns true if a query has nothing that narrows.
fn is_time_only(query: &Query) -> bool {
    bare(query) == *query
}

struct Walk<'a> {
    catalog: &'a Catalog,
    query: &'a Query,
    filter: &'a Filter<'a>,
    weights: &'a Weights,
    at: i64,
}

impl Walk<'_> {
    /// The spatial index gives them in order of their places.
    fn nearest(&self, frame: FrameId, best: &mut TopHits) -> u64 {
        let (catalog, query) = (self.catalog, self.query);
        let Some(near) = &query.near else { return 0 };
        let mut seen = HashSet::new();
        for (id, _) in catalog.places.index().nearest(query.frame(), center_of(near)) {
            let Some(Some(distance)) = self.filter.accepts(catalog, id) else { continue };
            if catalog.doc(id).places > 1 && !seen.insert(id) {
                continue;
            }
            let hit = self.ranked(id, Some(distance));
            // Those further away only score less. As many as are as near as the last on the page compete by age.
            let measure = Rank::measure(query.order, catalog.doc(id), hit.score, hit.distance);
            if best.is_closed_to(query.order, measure) {
                break;
            }
            best.offer(hit);
        }
        catalog.visibility.plain_in_frame(frame) + self.special()
    }

    /// The index of times gives them in order; what states no time is in another one.
    fn by_time(&self, best: &mut TopHits) -> u64 {
        let catalog = self.catalog;
        let (dated, undated) = (catalog.time.entries(), catalog.undated.entries());
        if self.query.order == Order::Latest {
            self.offer_merged(dated.rev(), undated.rev(), Ordering::Greater, best);
        } else {
            self.offer_merged(dated, undated, Ordering::Less, best);
        }
        catalog.visibility.plain() + self.special()
    }

    /// Offers what two lists hold; of their heads the one that compares so with the other is next.
    fn offer_merged(
        &self,
        one: impl Iterator<Item = ((i64, u32), DocId)>,
        other: impl Iterator<Item = ((i64, u32), DocId)>,
        is_next: Ordering,
        best: &mut TopHits,
    ) {
        let (mut one, mut other) = (one.peekable(), other.peekable());
        loop {
            let takes_one = match (one.peek(), other.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b) == is_next || a == b,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return,
            };
            let next = if takes_one { one.next() } else { other.next() };
            let Some((time, id)) = next else { return };
            if best.is_closed_to(self.query.order, time) {
                return;
            }
            if self.filter.accepts(self.catalog, id).is_some() {
                let rank = Rank::new(self.query.order, time, self.catalog.doc(id));
                if best.would_keep(&rank) {
                    best.offer(self.ranked(id, None));
                }
            }
        }
    }

    /// Number of matches that must be looked at one by one.
    fn special(&self) -> u64 {
        let special = self.catalog.visibility.special_from(0);
        special.filter(|&id| self.filter.accepts(self.catalog, id).is_some()).count() as u64
    }

    fn ranked(&self, id: DocId, distance: Option<f64>) -> Ranked {
        let (catalog, doc) = (self.catalog, self.catalog.doc(id));
        let mut scores = Scores::default();
        scores[ScorePart::Proximity] = distance.map_or(0.0, |metres| proximity(metres, None));
        scores[ScorePart::Retrievability] = catalog.retrievability(id, false, self.at);
        scores[ScorePart::Recency] = doc.recency(self.at);
        scores[ScorePart::Importance] = catalog.importance(id, false, self.at);
        scores[ScorePart::Confidence] = catalog.confidence(id, doc);
        let score = self.weights.score(&scores);
        let order = self.query.order;
        let rank = Rank::new(order, Rank::measure(order, doc, score, distance), doc);
        Ranked { doc: id, score, scores, text: 0.0, distance, rank }
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{Entity, MemoryRecord, Resource};
    use proptest::prelude::*;

    use super::*;
    use crate::index::catalog::Catalog;
    use crate::index::doc::{FileId, Location, Stamp};
    use crate::index::facts::{Facts, terms_of};
    use crate::recall::search::search;
    use crate::recall::texts::Verdicts;

    /// Records with a time of their own, and entities without any, in transactions of up to three.
    fn catalog(times: &[Option<i64>]) -> Catalog {
        let mut catalog = Catalog::new();
        for (number, when) in (0..).zip(times) {
            let id: omir_core::reference::Id = format!("m{number}").parse().unwrap();
            let resource: Resource = match when {
                Some(seconds) => {
                    let at = Instant::from(Timestamp::from_unix(*seconds, 5));
                    MemoryRecord::new(id, "a cup", at).into()
                }
                None => Entity::new(id, "a cup".to_owned()).into(),
            };
            let (seq, ordinal) = (1 + number / 3, (number % 3) as u32);
            let stamp = Stamp { seq, ordinal, version: 1, recorded: 1_000_000 * seq as i64 };
            let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
            catalog.put(&Facts::of(&resource), &terms_of(&resource), None, stamp, location);
        }
        catalog
    }

    fn page(catalog: &Catalog, query: &Query) -> Vec<DocId> {
        search(catalog, query, 0, &mut Verdicts::default()).page.iter().map(|hit| hit.doc).collect()
    }

    proptest! {
        #[test]
        fn the_latest_are_those_of_a_sorted_list(
            times in prop::collection::vec(prop::option::weighted(0.8, 0i64..12), 0..60),
            limit in 0usize..20,
            offset in 0usize..20,
        ) {
            let catalog = catalog(&times);
            let mut model: Vec<DocId> = (0..times.len() as DocId).collect();
            model.sort_by_key(|&id| {
                let doc = catalog.doc(id);
                let time = times[id as usize].map_or((doc.seq as i64, 0), |seconds| (seconds, 5));
                (time, doc.seq, doc.key)
            });
            let order = Order::Earliest;
            let query = Query { order, limit: Some(limit), offset, ..Query::default() };
            let wanted = |model: &[DocId]| -> Vec<DocId> {
                model.iter().copied().skip(offset).take(limit).collect()
            };
            prop_assert_eq!(page(&catalog, &query), wanted(&model));
            // The same by a scan: a filter that everything passes.
            let scanned = Query { include_expired: true, ..query.clone() };
            prop_assert_eq!(page(&catalog, &scanned), wanted(&model));
            prop_assert_eq!(search(&catalog, &query, 0, &mut Verdicts::default()).total, times.len() as u64);
            model.reverse();
            let latest = Query { order: Order::Latest, ..query };
            prop_assert_eq!(page(&catalog, &latest), wanted(&model));
            let scanned = Query { include_expired: true, ..latest };
            prop_assert_eq!(page(&catalog, &scanned), wanted(&model));
        }
    }
}
