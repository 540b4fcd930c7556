//! Near-duplicate observations become one record.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use omir_core::model::{MemoryRecord, Resource};
use omird_store::RefKey;

use super::{Pass, PassEnd, ROWS};
use crate::index::doc::{Doc, DocId};
use crate::index::fading::Fading;
use crate::time::uncertainty;
use crate::upkeep::sweep::similarity::Sighting;
use crate::write::command::{Act, Cause, Chosen};
use crate::write::consolidate::{MAX_SOURCES, count, event_time, sources};

/// Most new observations compared with others in one slice; each is read from the disk.
const COMPARED: usize = 16;
/// Longest time for that: with the pause after it a fifth of one core. Where many are near each
/// other one observation alone takes about a millisecond.
const COMPARING: Duration = Duration::from_millis(2);
/// Most rows of one entity an observation looks through for others of its place, newest first.
const MAX_LOOKED_AT: usize = 4096;
/// So many of the same are merged at once, however new they are.
const MANY: usize = 16;
/// Most observations one is compared with.
const MAX_NEIGHBOURS: usize = 64;
const HOUR: f64 = 3_600_000_000.0;

impl Pass<'_> {
    /// Compares what has become old enough since the last pass with the rest: pairs of older ones were
    /// compared when the younger of them was.
    ///
    /// A merge writes the whole record again, so what is the same is left to gather: until the oldest
    /// of it has been in the store for `merge_after`, or there are [`MANY`], or a caller asks.
    pub(super) fn merge_duplicates(&mut self, fading: &Fading) -> Result<(), PassEnd> {
        let min_age = (fading.tiers.session_after_hours * HOUR) as i64;
        let gathered = self.engine.settings().forgetting.merge_after.as_micros();
        let gathered = i64::try_from(gathered).unwrap_or(i64::MAX).max(min_age);
        let mut gone: HashSet<RefKey> = HashSet::new();
        if !self.is_upkeep {
            return self.merge_recorded((gathered, min_age), min_age, 1, &mut gone);
        }
        self.merge_recorded((min_age, min_age), min_age, MANY - 1, &mut gone)?;
        self.merge_recorded((gathered, gathered), min_age, 1, &mut gone)
    }

    /// Merges what was recorded so long (microseconds) before the last pass, or later, until so long
    /// before now, with what is like it, if that is `least` or more.
    fn merge_recorded(
        &mut self,
        (from, until): (i64, i64),
        min_age: i64,
        least: usize,
        gone: &mut HashSet<RefKey>,
    ) -> Result<(), PassEnd> {
        let (mut next, end) = {
            let catalog = self.engine.catalog();
            // Rows stand in the order of their recording.
            let rows = |at: i64| catalog.docs().partition_point(|doc| doc.recorded <= at);
            (rows(self.swept.saturating_sub(from)), rows(self.now.saturating_sub(until)))
        };
        while next < end {
            let upto = end.min(next + ROWS);
            let fresh: Vec<DocId> = {
                let catalog = self.engine.catalog();
                let rows = next as DocId..upto as DocId;
                rows.filter(|&id| is_candidate(catalog.doc(id))).collect()
            };
            next = upto;
            let mut fresh = fresh.into_iter().peekable();
            while fresh.peek().is_some() {
                let began = Instant::now();
                let mut acts = Vec::new();
                let part = fresh.by_ref().take(COMPARED);
                for id in part {
                    acts.extend(self.merge_of(id, min_age, least, gone));
                    if began.elapsed() >= COMPARING {
                        break;
                    }
                }
                self.submit(acts)?;
                self.yield_to_others()?;
            }
            self.yield_to_others()?;
        }
        Ok(())
    }

    /// The merge that this observation gives rise to, if at least so many others are like it.
    fn merge_of(
        &mut self,
        id: DocId,
        min_age: i64,
        least: usize,
        gone: &mut HashSet<RefKey>,
    ) -> Option<Act> {
        let first = self.observed(id, gone)?;
        let mut group = self.like(&first, id, min_age, least, gone);
        // All must be like the newest, not only like the one that led here, or a chain of small
        // differences would join what has nothing in common.
        let newest =
            group.iter().max_by_key(|other| other.order()).filter(|o| o.order() > first.order());
        let (newest, at) = match newest {
            None => (first, id),
            Some(newest) => (self.observed(newest.id, gone)?, newest.id),
        };
        if at != id {
            group = self.like(&newest, at, min_age, least, gone);
            group.retain(|other| other.order() < newest.order());
        }
        let has_children = |other: &Observed| {
            let catalog = self.engine.catalog();
            catalog.has_children(&RefKey::of(&other.chosen.target))
        };
        group.retain(|other| !has_children(other));
        // A record that has taken in as much as one can stays as it is, or nothing more would become one.
        while let Some(at) = too_much(&newest, &group) {
            group.swap_remove(at);
        }
        if group.is_empty() || group.len() < least {
            return None;
        }
        // The record that stands for most already keeps its name. Others may know it by that, and it may be
        // sealed, where a superseded version costs less than a forgotten one. The forgotten ones are
        // new then, and most of them are dropped before they ever are in a segment.
        let most = |(_, one): &(usize, &Observed)| (one.count, Reverse(one.order()));
        let survivor = match has_children(&newest) {
            true => newest,
            false => {
                group.push(newest);
                let (at, _) = group.iter().enumerate().max_by_key(most)?;
                group.swap_remove(at)
            }
        };
        // Nothing of it is looked at again in this pass.
        gone.insert(RefKey::of(&survivor.chosen.target));
        let reason = format!("same as {} by entities, place and words", survivor.chosen.target);
        for other in &group {
            gone.insert(RefKey::of(&other.chosen.target));
            let cause = Cause { name: "consolidation", reason: reason.clone(), tiers: None };
            self.report.note(&other.chosen.target.to_string(), &cause);
        }
        Some(Act::Merge(survivor.chosen, group.into_iter().map(|other| other.chosen).collect()))
    }

    fn observed(&self, id: DocId, gone: &HashSet<RefKey>) -> Option<Observed> {
        let (handle, doc) = {
            let catalog = self.engine.catalog();
            (catalog.handle(id), catalog.doc(id).clone())
        };
        if gone.contains(&doc.key) || !is_candidate(&doc) {
            return None;
        }
        let resource = handle.resource().ok()?;
        // The dates of what is merged come of several, which cannot be put right together.
        if uncertainty::waits(&resource, &self.untrusted) {
            return None;
        }
        let Resource::MemoryRecord(record) = resource else { return None };
        let sighting = Sighting::of(&record);
        sighting.is_candidate().then(|| Observed::new(id, &doc, *record, sighting))
    }

    /// Others like this one that have been in the store for long enough; none if they cannot be
    /// `least`.
    fn like(
        &self,
        of: &Observed,
        id: DocId,
        min_age: i64,
        least: usize,
        gone: &HashSet<RefKey>,
    ) -> Vec<Observed> {
        let forgetting = &self.engine.settings().forgetting;
        let radius = forgetting.merge_radius_m;
        let near: Vec<DocId> = {
            let catalog = self.engine.catalog();
            let doc = catalog.doc(id);
            let lists = of.mentions.iter().map(|entity| catalog.mentioning(entity));
            let rarest = lists.min_by_key(|list| list.len()).unwrap_or_default();
            let is_near = |other: &Doc| {
                let places = catalog.places.of(other);
                let has_near = catalog.places.of(doc).iter().any(|place| {
                    places.iter().any(|p| {
                        let far =
                            (0..3).any(|i| (p.position[i] - place.position[i]).abs() > radius);
                        p.frame == place.frame && !far
                    })
                });
                has_near || (places.is_empty() && doc.places == 0)
            };
            rarest
                .iter()
                .rev()
                .take(MAX_LOOKED_AT)
                .copied()
                .filter(|&other| {
                    let row = catalog.doc(other);
                    other != id
                        && is_candidate(row)
                        && row.recorded <= self.now.saturating_sub(min_age)
                        && row.class.kind == doc.class.kind
                        && row.class.experience == doc.class.experience
                        && row.valid_until == doc.valid_until
                        && row.producer == doc.producer
                        && is_near(row)
                })
                .take(MAX_NEIGHBOURS)
                .collect()
        };
        if near.len() < least {
            return Vec::new();
        }
        near.into_iter()
            .filter_map(|other| self.observed(other, gone))
            .filter(|other| {
                of.sighting.is_like(&other.sighting, radius, forgetting.merge_similarity)
            })
            .collect()
    }
}

/// Returns true if a row can be an observation that is merged, as far as the index knows.
fn is_candidate(doc: &Doc) -> bool {
    let is_free = doc.access.is_some_and(|access| !access.anchored);
    doc.is_live() && is_free && !doc.class.is_intention()
}

/// The record, if any, that is too much to become one with this: that with the most sources, as
/// long as all together have more than a record keeps apart.
fn too_much(one: &Observed, others: &[Observed]) -> Option<usize> {
    let all: BTreeSet<&String> =
        others.iter().chain([one]).flat_map(|observed| &observed.sources).collect();
    let most = others.iter().enumerate().max_by_key(|(_, other)| other.sources.len());
    most.filter(|_| all.len() > MAX_SOURCES).map(|(at, _)| at)
}

/// An observation that was read.
struct Observed {
    id: DocId,
    chosen: Chosen,
    mentions: Vec<RefKey>,
    sighting: Sighting,
    /// Number of observations it stands for.
    count: u64,
    /// The source of its evidence.
    sources: BTreeSet<String>,
    when: (i64, u32),
    seq: u64,
    key: RefKey,
}

impl Observed {
    fn new(id: DocId, doc: &Doc, record: MemoryRecord, sighting: Sighting) -> Self {
        let at = event_time(&record);
        let entities = record.entity_refs.iter().flatten();
        Self {
            id,
            mentions: entities.map(|entity| RefKey::of(&entity.target)).collect(),
            sighting,
            count: count(&record),
            sources: sources(&record),
            when: (at.secs(), at.nanos()),
            seq: doc.seq,
            key: doc.key,
            chosen: Chosen { target: Resource::from(record).reference(), version: doc.version },
        }
    }

    /// By the time of the event; of the same time the one recorded last, then by name.
    fn order(&self) -> ((i64, u32), u64, RefKey) {
        (self.when, self.seq, self.key)
    }
}
