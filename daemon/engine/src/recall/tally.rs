//! Questions about all matches: how many, of what, where and when (`docs/keys.md`, "Questions about all matches").
//!
//! A search gives the rows of all matches, and everything here is counted over those: exactly what a scan would count.

use std::collections::BTreeMap;

use omir_core::instant::Timestamp;
use omird_store::RefKey;

use super::filter::Filter;
use super::query::Query;
use crate::index::catalog::Catalog;
use crate::index::doc::{Doc, DocId};
use crate::index::spatial::FrameId;
use crate::index::text::Docs;

const DAY_SECONDS: i64 = 86_400;

/// Questions about all matches of a recall.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Asks {
    /// Only how many there are: no hits.
    pub count: bool,
    /// How many of each.
    pub count_by: Option<CountBy>,
    /// As hits the newest match of each entity.
    pub distinct: bool,
    /// As hits the last match of each entity that no match mentions from this time on.
    pub unseen_since: Option<Timestamp>,
    /// Number of visits: matches further apart than so many microseconds are of two visits.
    pub visits: Option<i64>,
    /// The places of each entity that is asked for, one after the other.
    pub history: bool,
    /// Metres: the side of the squares of [`CountBy::Place`], and how far apart one place of a history reaches.
    pub cell: Option<f64>,
}

/// Metres that a cell has where none are stated.
pub(crate) const DEFAULT_CELL: f64 = 1.0;

/// Matches are counted by one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountBy {
    /// The entities that they mention.
    Entity,
    /// The squares that they lie in.
    Place,
    /// The days (UTC) that they are of.
    Day,
}

impl CountBy {
    /// The names, in `docs/keys.md`.
    pub const WORDS: [&'static str; 3] = ["entity", "place", "day"];

    /// Returns the one of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Entity, Self::Place, Self::Day];
        all.into_iter().zip(Self::WORDS).find(|(_, word)| *word == name).map(|(by, _)| by)
    }
}

impl Asks {
    /// Returns true if every match has to be looked at.
    pub(crate) fn need_all(&self) -> bool {
        self.count_by.is_some() || self.needs_newest() || self.visits.is_some() || self.history
    }

    /// Returns true if the hits are the newest matches of entities.
    pub(crate) fn needs_newest(&self) -> bool {
        self.distinct || self.unseen_since.is_some()
    }

    fn cell(&self) -> f64 {
        self.cell.unwrap_or(DEFAULT_CELL)
    }
}

/// A time as rows are ordered by it: of two at the same time the one recorded later is the newer one.
type Moment = ((i64, u32), u64, u32);

fn moment(doc: &Doc) -> Moment {
    ((doc.when.secs(), doc.when.nanos()), doc.seq, doc.ordinal)
}

/// The number of matches, and the first and the last of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub count: u64,
    pub first: Timestamp,
    pub last: Timestamp,
}

impl Run {
    fn of(at: Timestamp) -> Self {
        Self { count: 1, first: at, last: at }
    }

    fn add(&mut self, at: Timestamp) {
        self.count += 1;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
    }
}

/// What a group of matches has in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Of {
    /// They mention an entity; one of them, to tell its name.
    Entity(RefKey, DocId),
    /// They lie in this square of a frame.
    Square(FrameId, [i64; 2]),
    /// They are of this day since 1970.
    Day(i64),
}

/// One place of a thing, as long as it was seen there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stay {
    pub frame: FrameId,
    /// Where it was seen last.
    pub position: [f64; 3],
    /// Where it was seen first: the stay reaches around that.
    around: [f64; 3],
    pub run: Run,
    /// The last sighting.
    pub doc: DocId,
}

/// The answers about all matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// The groups on the page, and the number of all.
    pub groups: Option<(Vec<(Of, Run)>, u64)>,
    /// Number of visits, with the time of the first and the last match.
    pub visits: Option<(u64, Option<Run>)>,
    /// The stays of each entity that was asked for, the latest few, and how many there were.
    pub histories: Vec<(usize, Vec<Stay>, u64)>,
    /// The newest match of each entity that is asked about.
    pub newest: Vec<(RefKey, DocId)>,
}

impl Tally {
    /// Counts over the rows of all matches, ascending.
    pub(super) fn of(catalog: &Catalog, query: &Query, filter: &Filter<'_>, all: &[DocId]) -> Self {
        let asks = &query.asks;
        let mut tally = Self::default();
        let set: Docs = all.iter().copied().collect();
        if let Some(by) = asks.count_by {
            tally.groups = Some(groups(catalog, query, filter, all, &set, by));
        }
        if asks.needs_newest() {
            tally.newest = newest(catalog, query, &set);
        }
        if let Some(gap) = asks.visits {
            tally.visits = Some(visits(catalog, all, gap));
        }
        if asks.history {
            let most = query.limit.unwrap_or(usize::MAX);
            for (at, entity) in query.entities.iter().enumerate() {
                let (mut stays, count) =
                    (stays(catalog, filter, &set, &RefKey::of(entity), asks.cell()), 0u64);
                let count = count + stays.len() as u64;
                stays.drain(..stays.len().saturating_sub(most));
                tally.histories.push((at, stays, count));
            }
        }
        tally
    }

    /// The matches that are the newest of an entity.
    pub(super) fn newest_docs(&self) -> Docs {
        self.newest.iter().map(|(_, doc)| *doc).collect()
    }
}

fn groups(
    catalog: &Catalog,
    query: &Query,
    filter: &Filter<'_>,
    all: &[DocId],
    set: &Docs,
    by: CountBy,
) -> (Vec<(Of, Run)>, u64) {
    let mut groups: Vec<(Of, Run)> = match by {
        CountBy::Entity => {
            let mut groups = Vec::new();
            catalog.each_mentioned(|entity, docs| {
                let docs = docs.iter().copied().filter(|&doc| set.has(doc));
                if let Some((run, doc)) = run_of(catalog, docs) {
                    groups.push((Of::Entity(*entity, doc), run));
                }
            });
            groups
        }
        CountBy::Day => {
            let mut days: BTreeMap<i64, Run> = BTreeMap::new();
            for &id in all {
                let at = catalog.doc(id).when;
                let day = at.secs().div_euclid(DAY_SECONDS);
                days.entry(day).and_modify(|run| run.add(at)).or_insert_with(|| Run::of(at));
            }
            days.into_iter().map(|(day, run)| (Of::Day(day), run)).collect()
        }
        CountBy::Place => {
            let mut squares: BTreeMap<(FrameId, [i64; 2]), Run> = BTreeMap::new();
            let cell = query.asks.cell();
            for &id in all {
                let doc = catalog.doc(id);
                let mut own: Vec<(FrameId, [i64; 2])> = filter
                    .places_of(catalog, doc)
                    .map(|place| {
                        let [x, y, _] = place.position;
                        (place.frame, [x, y].map(|metres| (metres / cell).floor() as i64))
                    })
                    .collect();
                own.sort_unstable();
                own.dedup();
                for square in own {
                    let run = || Run::of(doc.when);
                    squares.entry(square).and_modify(|run| run.add(doc.when)).or_insert_with(run);
                }
            }
            let of = |((frame, square), run)| (Of::Square(frame, square), run);
            squares.into_iter().map(of).collect()
        }
    };
    let count = groups.len() as u64;
    // Days come in order of time, all else the most frequent first, and of those the one of which the latest match is.
    if by != CountBy::Day {
        groups.sort_by(|(a, a_run), (b, b_run)| {
            let rank = |run: &Run| (run.count, run.last);
            rank(b_run).cmp(&rank(a_run)).then_with(|| match (a, b) {
                (Of::Entity(a, _), Of::Entity(b, _)) => a.cmp(b),
                _ => std::cmp::Ordering::Equal,
            })
        });
    }
    groups.drain(..query.offset.min(groups.len()));
    groups.truncate(query.limit.unwrap_or(usize::MAX));
    (groups, count)
}

/// The run of some matches, and the newest of them.
fn run_of(catalog: &Catalog, docs: impl Iterator<Item = DocId>) -> Option<(Run, DocId)> {
    let mut found: Option<(Run, DocId)> = None;
    for id in docs {
        let doc = catalog.doc(id);
        match &mut found {
            None => found = Some((Run::of(doc.when), id)),
            Some((run, newest)) => {
                run.add(doc.when);
                if moment(doc) > moment(catalog.doc(*newest)) {
                    *newest = id;
                }
            }
        }
    }
    found
}

/// The newest match of each entity, in the order of their keys; of those that are unseen, if that is asked.
fn newest(catalog: &Catalog, query: &Query, set: &Docs) -> Vec<(RefKey, DocId)> {
    let named: Vec<RefKey> = query.entities.iter().map(RefKey::of).collect();
    let mut newest = Vec::new();
    catalog.each_mentioned(|entity, docs| {
        let docs = docs.iter().copied().filter(|&doc| set.has(doc));
        let Some((run, doc)) = run_of(catalog, docs) else { return };
        let is_asked = query
            .asks
            .unseen_since
            .is_none_or(|since| run.last < since && (named.is_empty() || named.contains(entity)));
        if is_asked {
            newest.push((*entity, doc));
        }
    });
    newest.sort_unstable();
    newest
}

fn visits(catalog: &Catalog, all: &[DocId], gap: i64) -> (u64, Option<Run>) {
    let mut times: Vec<Timestamp> = all.iter().map(|&id| catalog.doc(id).when).collect();
    times.sort_unstable();
    let apart = |pair: &&[Timestamp]| pair[1].micros_since(pair[0]) > gap;
    let count = times.windows(2).filter(apart).count() as u64 + u64::from(!times.is_empty());
    let run = match times[..] {
        [first, .., last] => Some(Run { count: times.len() as u64, first, last }),
        [only] => Some(Run::of(only)),
        [] => None,
    };
    (count, run)
}

/// The stays of an entity, in order of time.
fn stays(
    catalog: &Catalog,
    filter: &Filter<'_>,
    set: &Docs,
    entity: &RefKey,
    reach: f64,
) -> Vec<Stay> {
    let mentions = catalog.mentioning(entity).iter().copied().filter(|&doc| set.has(doc));
    let mut sightings: Vec<(Moment, DocId)> =
        mentions.map(|id| (moment(catalog.doc(id)), id)).collect();
    sightings.sort_unstable();
    sightings.dedup();
    let mut stays: Vec<Stay> = Vec::new();
    for (_, id) in sightings {
        let doc = catalog.doc(id);
        // The first pose decides, as where two observations are compared.
        let Some(place) = filter.places_of(catalog, doc).next() else { continue };
        let is_there = |stay: &&mut Stay| {
            let squares = stay.around.iter().zip(&place.position).map(|(a, b)| (a - b) * (a - b));
            stay.frame == place.frame && squares.sum::<f64>().sqrt() <= reach
        };
        match stays.last_mut().filter(is_there) {
            Some(stay) => {
                stay.run.add(doc.when);
                (stay.position, stay.doc) = (place.position, id);
            }
            None => stays.push(Stay {
                frame: place.frame,
                position: place.position,
                around: place.position,
                run: Run::of(doc.when),
                doc: id,
            }),
        }
    }
    stays
}
