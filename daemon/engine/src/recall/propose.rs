//! Candidates for a query, proposed by the indexes.
//!
//! An index may propose too much, never too little: every candidate is compared with every filter afterwards. A new
//! kind of index is one more [`Proposer`] in [`PROPOSERS`].

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Bound;

use omir_core::geo::{CHORD_MARGIN, chord_for_distance};
use omir_core::instant::Timestamp;
use omir_core::space::Center;
use omird_store::RefKey;

use super::query::Query;
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::scores::ScorePart;
use crate::index::text::{Docs, Scratch, TextQuery};
use crate::question::Question;

/// Rounding error of a sum of shares.
const ROUNDING: f64 = 1e-5;

/// A query with its words looked up.
pub(super) struct ResolvedQuery<'q> {
    query: &'q Query,
    words: Option<TextQuery>,
    excluded: Docs,
    /// The versions that are looked at, if not all are.
    only: Option<&'q Docs>,
    /// The share of the words' weight that the candidate has which is proposed right now; 1 where nothing asks for it.
    share: Cell<f32>,
}

impl<'q> ResolvedQuery<'q> {
    pub(super) fn new(catalog: &Catalog, query: &'q Query, only: Option<&'q Docs>) -> Self {
        let text = query.text.as_ref();
        let words = text.filter(|text| text.ranks()).map(|text| catalog.text.query(text));
        let excluded = text.map(|text| catalog.text.excluded(text)).unwrap_or_default();
        Self { query, words, excluded, only, share: Cell::new(1.0) }
    }

    /// The words, if there are some to rank by.
    pub(super) fn words(&self) -> Option<&TextQuery> {
        self.words.as_ref()
    }

    /// Returns true if the query has a vector.
    pub(super) fn has_vector(&self) -> bool {
        self.query.vector.is_some()
    }

    /// The share of the words' weight that the candidate has which is proposed right now. Known where there is a vector or a floor.
    #[inline]
    pub(super) fn share(&self) -> f32 {
        self.share.get()
    }

    /// Returns true if the candidate that is proposed right now has too little of the words.
    #[inline]
    pub(super) fn is_hidden(&self) -> bool {
        f64::from(self.share.get()) + ROUNDING < self.query.floor
    }

    /// Returns true if a version has no word that is excluded, and is one of those that are looked at.
    pub(super) fn is_looked_at(&self, id: DocId) -> bool {
        !self.excluded.has(id) && self.only.is_none_or(|only| only.has(id))
    }

    /// As [`ResolvedQuery::words`], to keep.
    pub(super) fn into_words(self) -> Option<TextQuery> {
        self.words
    }
}

/// The use of an index's candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing else can match. The candidates of several such indexes are intersected.
    Narrows,
    /// Nothing else can match, and each candidate has a score in this part.
    Ranks(ScorePart),
    /// Nothing else can match, but the candidates are many: used only if no other index narrows.
    Lists,
}

/// An index that proposes candidates.
trait Proposer: Sync {
    /// The use of its candidates.
    fn role(&self) -> Role;

    /// Returns true if the query asks something of this index.
    fn applies(&self, query: &Query) -> bool;

    /// Calls `f` with each candidate and its score, which is 0 unless the index ranks. One that narrows may repeat a
    /// candidate and keep no order; any other calls once for each, and one that ranks in ascending order.
    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    );

    /// All candidates of one that narrows, where they lie in ascending order, each once, so that they need not be copied.
    fn ascending<'c>(&self, _: &'c Catalog, _: &Query) -> Option<&'c [DocId]> {
        None
    }
}

/// All indexes, the preferred one of each role first.
const PROPOSERS: [&dyn Proposer; 7] =
    [&Places, &Mentions, &AllWords, &Phrases, &Words, &Times, &Everything];

/// The proposer of a role that a query asks first.
fn first(query: &Query, is_role: impl Fn(Role) -> bool) -> Option<&'static dyn Proposer> {
    PROPOSERS.into_iter().find(|one| is_role(one.role()) && one.applies(query))
}

/// The part of the score that candidates of a query are proposed with.
pub(super) fn ranked_part(query: &Query) -> Option<ScorePart> {
    first(query, |role| matches!(role, Role::Ranks(_))).and_then(|one| match one.role() {
        Role::Ranks(part) => Some(part),
        Role::Narrows | Role::Lists => None,
    })
}

/// Calls `f` once for each version that may match, with its score in [`ranked_part`]. None has a word that is excluded.
pub(super) fn propose(
    catalog: &Catalog,
    resolved: &ResolvedQuery<'_>,
    f: &mut dyn FnMut(DocId, f64),
) {
    if resolved.excluded.is_empty() && resolved.only.is_none() {
        return propose_all(catalog, resolved, f);
    }
    propose_all(catalog, resolved, &mut |id, score| {
        if resolved.is_looked_at(id) {
            f(id, score);
        }
    });
}

/// Calls `f` once for each version that may match by its words, ascending, with its agreement. None without words.
pub(super) fn propose_words(
    catalog: &Catalog,
    resolved: &ResolvedQuery<'_>,
    f: &mut dyn FnMut(DocId, f64),
) {
    if ranked_part(resolved.query).is_some() {
        propose(catalog, resolved, f);
    }
}

/// All versions that may match, ascending; `None` if nothing narrows.
pub(super) fn narrowed<'c>(
    catalog: &'c Catalog,
    resolved: &ResolvedQuery<'_>,
) -> Option<Cow<'c, [DocId]>> {
    let narrowing = PROPOSERS.iter().filter(|one| one.role() == Role::Narrows);
    narrowing
        .filter(|one| one.applies(resolved.query))
        .map(|one| {
            if let Some(ids) = one.ascending(catalog, resolved.query) {
                return Cow::Borrowed(ids);
            }
            let mut ids = Vec::new();
            one.propose(catalog, resolved, &mut |id, _| ids.push(id));
            ids.sort_unstable();
            ids.dedup();
            Cow::Owned(ids)
        })
        .reduce(|a, b| Cow::Owned(intersection(&a, &b)))
}

fn propose_all(catalog: &Catalog, resolved: &ResolvedQuery<'_>, f: &mut dyn FnMut(DocId, f64)) {
    let query = resolved.query;
    let narrowed = narrowed(catalog, resolved);
    let ranking = first(query, |role| matches!(role, Role::Ranks(_)));
    match (ranking, narrowed) {
        (Some(ranking), None) => ranking.propose(catalog, resolved, f),
        (Some(ranking), Some(narrowed)) => {
            let mut narrowed = narrowed.iter().peekable();
            ranking.propose(catalog, resolved, &mut |id, score| {
                // Both ascend: walk them side by side.
                while narrowed.next_if(|&&other| other < id).is_some() {}
                if narrowed.peek() == Some(&&id) {
                    f(id, score);
                }
            });
        }
        (None, Some(narrowed)) => narrowed.iter().for_each(|id| f(*id, 0.0)),
        (None, None) => {
            if let Some(listing) = first(query, |role| role == Role::Lists) {
                listing.propose(catalog, resolved, f);
            }
        }
    }
}

fn intersection(a: &[DocId], b: &[DocId]) -> Vec<DocId> {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short.iter().copied().filter(|id| long.binary_search(id).is_ok()).collect()
}

/// Versions with a place in the radius or box.
struct Places;

impl Proposer for Places {
    fn role(&self) -> Role {
        Role::Narrows
    }

    fn applies(&self, query: &Query) -> bool {
        query.within.is_some() || (query.radius.is_some() && query.has_center())
    }

    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    ) {
        let query = resolved.query;
        if let Some(within) = query.box_bounds() {
            let (min, max) = (&within.min, &within.max);
            let (min, max) = ([min.x, min.y, min.z], [max.x, max.y, max.z]);
            catalog.places.index().in_box(query.frame(), min, max, |id| f(id, 0.0));
        } else if let (Some(near), Some(radius)) = (&query.near, query.radius) {
            catalog.places.index().within(query.frame(), center_of(near), radius, |id| f(id, 0.0));
        } else if let (Some(geo), Some(radius)) = (&query.geo, query.radius) {
            let chord = chord_for_distance(radius) + CHORD_MARGIN;
            catalog.places.index().geo_within(geo.unit_vector(), chord, |id| f(id, 0.0));
        }
    }
}

/// A point as the index of places takes it.
pub(super) fn center_of(near: &Center) -> (f64, f64, Option<f64>) {
    match *near {
        Center::Plane { x, y } => (x, y, None),
        Center::Space { x, y, z } => (x, y, Some(z)),
    }
}

/// Versions that mention one of the entities.
struct Mentions;

impl Proposer for Mentions {
    fn role(&self) -> Role {
        Role::Narrows
    }

    fn applies(&self, query: &Query) -> bool {
        !query.entities.is_empty()
    }

    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    ) {
        let query = resolved.query;
        for entity in &query.entities {
            catalog.mentioning(&RefKey::of(entity)).iter().for_each(|&id| f(id, 0.0));
        }
    }

    fn ascending<'c>(&self, catalog: &'c Catalog, query: &Query) -> Option<&'c [DocId]> {
        let [entity] = &query.entities[..] else { return None };
        let ids = catalog.mentioning(&RefKey::of(entity));
        ids.is_sorted_by(|a, b| a < b).then_some(ids)
    }
}

/// Versions with all of the words.
struct AllWords;

impl Proposer for AllWords {
    fn role(&self) -> Role {
        Role::Narrows
    }

    fn applies(&self, query: &Query) -> bool {
        query.all_words && query.text.is_some()
    }

    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    ) {
        let Some(text) = &resolved.query.text else { return };
        catalog.text.with_all(text).into_iter().for_each(|id| f(id, 0.0));
    }
}

/// Versions with the words of the phrases.
struct Phrases;

impl Proposer for Phrases {
    fn role(&self) -> Role {
        Role::Narrows
    }

    fn applies(&self, query: &Query) -> bool {
        query.text.as_ref().is_some_and(|text| !text.phrases().is_empty())
    }

    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    ) {
        let phrases = resolved.query.text.as_ref().map_or(&[][..], Question::phrases);
        catalog.text.with_words_of(phrases).into_iter().for_each(|id| f(id, 0.0));
    }
}

/// Versions with one of the words, scored by their agreement with all of them.
struct Words;

impl Proposer for Words {
    fn role(&self) -> Role {
        Role::Ranks(ScorePart::Text)
    }

    fn applies(&self, query: &Query) -> bool {
        query.has_words()
    }

    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    ) {
        let Some(words) = resolved.words() else { return };
        Scratch::with(|scratch| {
            if resolved.query.floor > 0.0 || resolved.query.vector.is_some() {
                return catalog.text.candidates_with_shares(words, scratch, |id, score, share| {
                    resolved.share.set(share);
                    f(id, f64::from(score));
                });
            }
            catalog.text.candidates(words, scratch, |id, score| f(id, f64::from(score)));
        });
    }
}

/// Versions with a time in the range.
struct Times;

impl Proposer for Times {
    fn role(&self) -> Role {
        Role::Lists
    }

    fn applies(&self, query: &Query) -> bool {
        query.time.is_some()
    }

    fn propose(
        &self,
        catalog: &Catalog,
        resolved: &ResolvedQuery<'_>,
        f: &mut dyn FnMut(DocId, f64),
    ) {
        let query = resolved.query;
        let Some(range) = query.time else { return };
        let key = |bound: Bound<Timestamp>| bound.map(|at| (at.secs(), at.nanos()));
        catalog.time.range(key(range.from), key(range.to), |id| f(id, 0.0));
    }
}

/// All versions.
struct Everything;

impl Proposer for Everything {
    fn role(&self) -> Role {
        Role::Lists
    }

    fn applies(&self, _: &Query) -> bool {
        true
    }

    fn propose(&self, catalog: &Catalog, _: &ResolvedQuery<'_>, f: &mut dyn FnMut(DocId, f64)) {
        (0..catalog.docs().len() as DocId).for_each(|id| f(id, 0.0));
    }
}
