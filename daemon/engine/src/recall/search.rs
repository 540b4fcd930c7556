//! Search: the versions that match a query, exactly, and their ranks.
//!
//! Indexes propose candidates (`recall/propose.rs`), and a collector compares every candidate with every filter
//! (`recall/collect.rs`), as a scan would do. So the answer is exactly that of a scan.

use std::sync::atomic::Ordering;

use super::collect::{Collected, Collector, OutOfReach, Scoring};
use super::filter::Filter;
use super::fuse::Candidates;
use super::propose::{ResolvedQuery, ranked_part};
use super::query::{Order, Query};
use super::ranking::{Ranked, TopHits};
use super::score::Weights;
use super::tally::Tally;
use super::texts::{Check, Verdicts};
use super::walk::{bare, walk};
use crate::index::catalog::{Catalog, ReadPoint};
use crate::index::doc::DocId;
use crate::index::text::{Docs, TextQuery};

/// The matches of a query: their number, and the page that was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matches {
    /// The page, in the order that was asked for.
    pub page: Vec<Ranked>,
    /// Number of matches in all.
    pub total: u64,
    /// Number of those that are no hits, since they have too little of the words.
    pub hidden: u64,
    /// The words that were asked for, as they were looked up.
    pub words: Option<TextQuery>,
    /// The weights, where words and meaning share one.
    pub weights: Option<Weights>,
    /// True if `total` may be too low, and some matches may be missing where long vectors were compared by their signs.
    pub is_approximate: bool,
    /// Answers about all matches, if any were asked.
    pub tally: Option<Tally>,
    /// Number of versions that answers about all matches leave out: a newer one is lost.
    pub outdated: u64,
    /// Number of versions that no vector was made of yet, where vectors were compared.
    pub without_vector: u64,
}

/// Answers a query at `now` (microseconds, the store's clock). `verdicts` tell of texts that were read for it.
pub(crate) fn search(
    catalog: &Catalog,
    query: &Query,
    now: i64,
    verdicts: &mut Verdicts,
) -> Matches {
    let filter = Filter::new(catalog, query, query.at(now));
    let asks = &query.asks;
    let has_hits = !asks.count && asks.count_by.is_none();
    if !asks.need_all() {
        return match has_hits {
            true => select(catalog, query, &filter, now, verdicts, &mut Pass::of(query)),
            false => {
                let mut pass = Pass { is_of_all: true, ..Pass::without_hits() };
                select(catalog, query, &filter, now, verdicts, &mut pass)
            }
        };
    }
    let mut all = Vec::new();
    let mut pass = match has_hits && !asks.needs_newest() {
        true => Pass::of(query),
        false => Pass::without_hits(),
    };
    pass.is_of_all = true;
    pass.all = Some(&mut all);
    let mut found = select(catalog, query, &filter, now, verdicts, &mut pass);
    all.sort_unstable();
    let tally = Tally::of(catalog, query, &filter, &all);
    if has_hits && asks.needs_newest() {
        let newest = tally.newest_docs();
        let mut pass = Pass { only: Some(&newest), ..Pass::of(query) };
        found.page = select(catalog, query, &filter, now, verdicts, &mut pass).page;
    }
    found.tally = Some(tally);
    found
}

/// One pass over the candidates of a query.
struct Pass<'a> {
    /// Hits that are kept, with those of earlier pages.
    top_k: usize,
    /// Hits that are skipped.
    offset: usize,
    /// The versions that are looked at, if not all are.
    only: Option<&'a Docs>,
    /// The rows of all matches that are not hidden.
    all: Option<&'a mut Vec<DocId>>,
    /// True if something is told of all matches: a version that is out of date tells nothing.
    is_of_all: bool,
}

impl Pass<'_> {
    fn of(query: &Query) -> Self {
        let top_k = query.limit.map_or(usize::MAX, |limit| query.offset.saturating_add(limit));
        Self { top_k, offset: query.offset, only: None, all: None, is_of_all: false }
    }

    fn without_hits() -> Self {
        Self { top_k: 0, offset: 0, only: None, all: None, is_of_all: false }
    }

    /// The treatment of a plain version that is out of reach, where bounds tell of that. `has_phrases` if texts are compared.
    fn out_of_reach(&self, query: &Query, has_phrases: bool) -> OutOfReach {
        if !has_phrases && is_words_only(query) {
            return OutOfReach::Counted;
        }
        // Without a page a number is all that is asked for, and nothing is dropped.
        let may_drop = !query.exact_total
            && self.top_k > 0
            && query.order == Order::Score
            && query.read_point() == ReadPoint::Now
            && self.all.is_none();
        if may_drop { OutOfReach::Dropped } else { OutOfReach::Examined }
    }
}

fn select(
    catalog: &Catalog,
    query: &Query,
    filter: &Filter<'_>,
    now: i64,
    verdicts: &mut Verdicts,
    pass: &mut Pass<'_>,
) -> Matches {
    if filter.is_void() {
        return Matches::default();
    }
    let at = query.at(now);
    let weights = Weights::of(query);
    let (top_k, offset) = (pass.top_k, pass.offset);
    let mut best = TopHits::new(top_k);
    let omits_outdated = pass.is_of_all && !catalog.losses.is_empty();
    if !omits_outdated && let Some(total) = walk(catalog, query, filter, &weights, &mut best, at) {
        return Matches { page: best.page(offset), total, ..Matches::default() };
    }
    let resolved = ResolvedQuery::new(catalog, query, pass.only);
    let check = Check::of(catalog, query, verdicts);
    let out_of_reach = match catalog.score_bounds.hold_at(at) && !omits_outdated {
        true => pass.out_of_reach(query, check.is_some()),
        false => OutOfReach::Examined,
    };
    let counts_unseen = out_of_reach == OutOfReach::Counted;
    let is_plain = |id: DocId| counts_unseen && catalog.score_bounds.of(id).is_plain;
    let fused = Candidates::of(catalog, &resolved, query, filter, &is_plain);
    if fused.is_none() && query.vector.is_some() && !query.has_words() {
        // The model was taken away since the question came in.
        return Matches::default();
    }
    let weights = fused.as_ref().map_or(weights, Candidates::weights);
    let collector = Collector {
        catalog,
        query,
        filter,
        resolved: &resolved,
        fused: fused.as_ref(),
        at,
        scoring: Scoring::new(weights, ranked_part(query)),
        top_k,
        out_of_reach,
        omits_outdated,
        check,
        all: pass.all.as_deref_mut(),
        collected: Collected::new(best),
    };
    let Collected { best, total, hidden, outdated, has_dropped } = collector.collect();
    let without_vector = match &query.vector {
        Some(_) => catalog.vectors.pending.load(Ordering::Relaxed),
        None => 0,
    };
    let is_approximate = has_dropped
        || without_vector > 0
        || fused.as_ref().is_some_and(|fused| fused.is_approximate);
    Matches {
        page: best.page(offset),
        total,
        hidden,
        words: resolved.into_words(),
        weights: fused.map(|fused| fused.weights()),
        is_approximate,
        tally: None,
        outdated,
        without_vector,
    }
}

/// Returns true if nothing but words and a vector is asked for.
fn is_bare_beside_words(query: &Query) -> bool {
    let alone = Query {
        text: query.text.clone(),
        floor: query.floor,
        vector: query.vector.clone(),
        min_cosine: query.min_cosine,
        ..bare(query)
    };
    alone == *query
}

/// Returns true if a query has words or a vector, and nothing that narrows.
fn is_words_only(query: &Query) -> bool {
    query.order == Order::Score
        && (query.has_words() || query.vector.is_some())
        && is_bare_beside_words(query)
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
    fn what_stood_at_a_snapshot_is_found_in_one_walk() {
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
        let mut found: Vec<u64> = search(&catalog, &query, 0, &mut Verdicts::default())
            .page
            .iter()
            .map(|one| catalog.doc(one.doc).seq)
            .collect();
        found.sort_unstable();
        assert_eq!(found, [VERSIONS - 1, VERSIONS]);
        let hops = hops::take();
        assert!(hops <= catalog.docs().len(), "{hops} hops over {} rows", catalog.docs().len());
    }
}
