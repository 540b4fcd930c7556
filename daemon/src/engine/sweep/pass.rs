//! One pass over the store, in slices.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use omir_core::model::{MemoryRecord, Resource};
use omir_core::reference::{Ref, ResourceType};
use omir_core::tier::{Tier, TierReason};

use super::Purpose;
use super::consolidate::{MAX_SOURCES, count, event_time, sources};
use super::duplicates::Sighting;
use super::report::SweepReport;
use crate::engine::command::{Act, Cause, Change, Chosen, Event, EventKind};
use crate::engine::view::{Outgoing, id_of};
use crate::engine::{Engine, doubt, plan};
use crate::error::Error;
use crate::index::catalog::Catalog;
use crate::index::doc::{Doc, DocId, NEVER, hours};
use crate::index::fading::Fading;
use crate::index::key::RefKey;
use crate::store::read::Handle;
use crate::store::mark::Unsettled;

/// Most rows looked at in one slice.
const ROWS: usize = 2048;
/// How long a slice may hold the catalog: a change waits for it, and recalls wait for that.
const SLICE: Duration = Duration::from_micros(500);
/// Rows between two looks at the time.
const LOOK: usize = 32;
/// Most new observations compared with others in one slice; each is read from the disk.
const COMPARED: usize = 16;
/// How long that may take: with the pause after it a fifth of one core. Where many are near each
/// other one observation alone takes about a millisecond.
const COMPARING: Duration = Duration::from_millis(2);
/// Most rows of one entity an observation looks through for others of its place, newest first.
const MAX_LOOKED_AT: usize = 4096;
/// So many of the same are merged at once, however new they are.
const MANY: usize = 16;
/// Most observations one is compared with.
const MAX_NEIGHBOURS: usize = 64;
/// Moves announced between two pauses; each is read from the disk.
const ANNOUNCED: usize = 64;
/// Most acts in one transaction.
const BATCH: usize = 256;
const DAY: i64 = 86_400_000_000;
const HOUR: f64 = 3_600_000_000.0;

/// Which moves were announced: the tier last told of each row, `None` where none was since the start.
#[derive(Debug, Default)]
pub struct Announced(Vec<Option<Tier>>);

impl Announced {
    fn get(&self, id: DocId) -> Option<Tier> {
        self.0.get(id as usize).copied().flatten()
    }

    fn set(&mut self, id: DocId, tier: Tier) {
        let at = id as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(tier);
    }
}

/// A pass under way.
pub struct Pass<'a> {
    engine: &'a Engine,
    announced: &'a mut Announced,
    dry_run: bool,
    /// Whether what has time is left for later: nobody asks.
    is_upkeep: bool,
    /// Whether it may write what can wait.
    may_write: bool,
    /// Lets others have their turn; false when the pass is to end.
    pause: &'a dyn Fn() -> bool,
    now: i64,
    /// When the last whole pass was.
    swept: i64,
    /// What came in then may still be dated anew.
    unsettled: Vec<Unsettled>,
    report: SweepReport,
}

/// Why a pass ended early: it was told to stop, or the writer refused.
enum End {
    Stopped,
    Refused(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// What is left of a slice.
struct Slice {
    began: Instant,
    rows: usize,
}

impl Slice {
    fn new() -> Self {
        Self { began: Instant::now(), rows: 0 }
    }

    /// Whether one more row may be looked at.
    fn takes_one(&mut self) -> bool {
        self.rows += 1;
        let has_time = || !self.rows.is_multiple_of(LOOK) || self.began.elapsed() < SLICE;
        self.rows <= ROWS && has_time()
    }
}

struct Move {
    id: DocId,
    tiers: (Tier, Tier),
    reason: TierReason,
    version: u64,
    outgoing: Outgoing,
}

/// A row that may go when there is no room, and what it is worth.
struct Evictable {
    is_young: bool,
    need: f64,
    id: DocId,
    key: RefKey,
    bytes: u64,
}

impl<'a> Pass<'a> {
    pub fn new(
        engine: &'a Engine,
        announced: &'a mut Announced,
        purpose: Purpose,
        pause: &'a dyn Fn() -> bool,
    ) -> Self {
        let (now, _) = engine.now();
        let dry_run = purpose == Purpose::DryRun;
        Self {
            engine,
            announced,
            dry_run,
            is_upkeep: purpose == Purpose::Upkeep,
            may_write: purpose != Purpose::Upkeep || engine.inner.shared.may_write_unasked(),
            pause,
            now: now.as_micros(),
            swept: engine.inner.shared.swept.load(Ordering::Relaxed),
            unsettled: engine.inner.shared.time.unsettled(),
            report: SweepReport { dry_run, ..SweepReport::default() },
        }
    }

    /// Runs to the end, or until it is told to stop.
    pub fn run(mut self) -> Result<SweepReport, Error> {
        let began = Instant::now();
        let fading = self.engine.catalog().fading().copied();
        if let Some(fading) = fading {
            let ended = self.stages(&fading);
            match ended {
                // What was left out is looked at from the same time on.
                Ok(()) if !self.dry_run && self.may_write => {
                    self.engine.inner.shared.swept.fetch_max(self.now, Ordering::Relaxed);
                }
                Ok(()) | Err(End::Stopped) => {}
                Err(End::Refused(error)) => return Err(error),
            }
        }
        let took = began.elapsed().as_micros();
        self.report.took_micros = u64::try_from(took).unwrap_or(u64::MAX);
        Ok(self.report)
    }

    fn stages(&mut self, fading: &Fading) -> Result<(), End> {
        self.announce_moves(fading)?;
        if self.may_write {
            if self.engine.inner.settings.forgetting.merge {
                self.merge_duplicates(fading)?;
            }
            self.expire()?;
        }
        // A store that takes too much of the card is worse than one that writes too much.
        self.evict(fading)
    }

    fn yield_to_others(&self) -> Result<(), End> {
        if (self.pause)() { Ok(()) } else { Err(End::Stopped) }
    }

    /// Has the writer do these, and waits for it.
    fn submit(&self, acts: Vec<Act>) -> Result<(), End> {
        if !acts.is_empty() && !self.dry_run {
            self.engine.execute(Change::Sweep(acts))?;
        }
        Ok(())
    }

    // Tiers.

    fn announce_moves(&mut self, fading: &Fading) -> Result<(), End> {
        let mut next = 0;
        loop {
            let moves = {
                let catalog = self.engine.catalog();
                let rest = catalog.docs().get(next..).unwrap_or_default();
                if rest.is_empty() {
                    return Ok(());
                }
                let mut slice = Slice::new();
                let mut moves = Vec::new();
                for (id, doc) in (next as DocId..).zip(rest) {
                    if !slice.takes_one() {
                        break;
                    }
                    next += 1;
                    let Some((from, to, reason)) = self.moved(&catalog, fading, id, doc) else {
                        continue;
                    };
                    if from != to {
                        let outgoing = Outgoing::of(&catalog, id, false, self.now);
                        let version = doc.version;
                        moves.push(Move { id, tiers: (from, to), reason, version, outgoing });
                    } else if !self.dry_run {
                        self.announced.set(id, to);
                    }
                }
                moves
            };
            for part in moves.chunks(ANNOUNCED) {
                let acts = part.iter().filter_map(|each| self.announce(each)).collect();
                self.submit(acts)?;
                if !self.dry_run {
                    part.iter().for_each(|each| self.announced.set(each.id, each.tiers.1));
                }
                self.yield_to_others()?;
            }
            self.yield_to_others()?;
        }
    }

    /// The tier last told of a row, the one it is in by now, and why; `None` for what has none.
    fn moved(
        &self,
        catalog: &Catalog,
        fading: &Fading,
        id: DocId,
        doc: &Doc,
    ) -> Option<(Tier, Tier, TierReason)> {
        if !doc.is_live() {
            return None;
        }
        let (to, reason) = catalog.tier(id, false, self.now)?;
        let from = match self.announced.get(id) {
            Some(tier) => tier,
            None => {
                // An access after the last pass is no part of what was announced then.
                let access = catalog.access(id).filter(|access| access.last_access <= self.swept);
                fading.tier(doc, &access.or(doc.access)?, self.swept).0
            }
        };
        Some((from, to, reason))
    }

    fn announce(&mut self, each: &Move) -> Option<Act> {
        // What cannot be read is noticed by those who need it.
        let resource = self.engine.emit(&each.outgoing).ok()?;
        let target = Ref { kind: ResourceType::MemoryRecord, id: id_of(&resource)?.parse().ok()? };
        let reason = match each.reason {
            // Back to the tier it was stored with: the accesses since have undone the move.
            TierReason::Stays => "it was used again".to_owned(),
            reason => reason.to_string(),
        };
        let cause = Cause { name: "sweep", reason, tiers: Some(each.tiers) };
        self.report.note(&target.to_string(), &cause);
        let chosen = Chosen { target: target.clone(), version: each.version };
        let kind = EventKind::Tier;
        Some(Act::Move(chosen, Event { kind, target, resource, cause: Some(cause) }))
    }

    // Near-duplicates.

    /// Compares what has become old enough since the last pass with the rest: pairs of older ones were
    /// compared when the younger of them was.
    ///
    /// A merge writes the whole record anew, so what is the same is left to gather: until the oldest
    /// of it has been in the store for `merge_after`, or there are [`MANY`], or somebody asks.
    fn merge_duplicates(&mut self, fading: &Fading) -> Result<(), End> {
        let settled = (fading.tiers.session_after_hours * HOUR) as i64;
        let gathered = self.engine.inner.settings.forgetting.merge_after.as_micros();
        let gathered = i64::try_from(gathered).unwrap_or(i64::MAX).max(settled);
        let mut gone: HashSet<RefKey> = HashSet::new();
        if !self.is_upkeep {
            return self.merge_recorded((gathered, settled), settled, 1, &mut gone);
        }
        self.merge_recorded((settled, settled), settled, MANY - 1, &mut gone)?;
        self.merge_recorded((gathered, gathered), settled, 1, &mut gone)
    }

    /// Merges what was recorded so long (microseconds) before the last pass, or later, until so long
    /// before now, with what is like it, if that is `least` or more.
    fn merge_recorded(
        &mut self,
        (from, until): (i64, i64),
        settled: i64,
        least: usize,
        gone: &mut HashSet<RefKey>,
    ) -> Result<(), End> {
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
                    acts.extend(self.merge_of(id, settled, least, gone));
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
        settled: i64,
        least: usize,
        gone: &mut HashSet<RefKey>,
    ) -> Option<Act> {
        let first = self.observed(id, gone)?;
        let mut group = self.like(&first, id, settled, least, gone);
        // All must be like the newest, not only like the one that led here, or a chain of small
        // differences would join what has nothing in common.
        let newest =
            group.iter().max_by_key(|other| other.order()).filter(|o| o.order() > first.order());
        let (newest, at) = match newest {
            None => (first, id),
            Some(newest) => (self.observed(newest.id, gone)?, newest.id),
        };
        if at != id {
            group = self.like(&newest, at, settled, least, gone);
            group.retain(|other| other.order() < newest.order());
        }
        let has_children = |other: &Observed| {
            let catalog = self.engine.catalog();
            catalog.has_children(&RefKey::of(&other.chosen.target))
        };
        group.retain(|other| !has_children(other));
        // What has taken in as much as one record can stays as it is, or nothing more would become one.
        while let Some(at) = too_much(&newest, &group) {
            group.swap_remove(at);
        }
        if group.is_empty() || group.len() < least {
            return None;
        }
        // What stands for most already keeps its name: others may know it by that, and it may be
        // sealed, where a version that was superseded costs less than one that was forgotten. What is
        // forgotten is new then, and most of that is dropped before it ever is in a segment.
        let most = |(_, one): &(usize, &Observed)| (one.count, Reverse(one.order()));
        let keeper = match has_children(&newest) {
            true => newest,
            false => {
                group.push(newest);
                let (at, _) = group.iter().enumerate().max_by_key(most)?;
                group.swap_remove(at)
            }
        };
        // Nothing of it is looked at again in this pass.
        gone.insert(RefKey::of(&keeper.chosen.target));
        let reason = format!("same as {} by entities, place and words", keeper.chosen.target);
        for other in &group {
            gone.insert(RefKey::of(&other.chosen.target));
            let cause = Cause { name: "consolidation", reason: reason.clone(), tiers: None };
            self.report.note(&other.chosen.target.to_string(), &cause);
        }
        Some(Act::Merge(keeper.chosen, group.into_iter().map(|other| other.chosen).collect()))
    }

    fn observed(&self, id: DocId, gone: &HashSet<RefKey>) -> Option<Observed> {
        let (handle, doc) = {
            let catalog = self.engine.catalog();
            (Handle::of(&catalog, id), catalog.doc(id).clone())
        };
        if gone.contains(&doc.key) || !is_candidate(&doc) {
            return None;
        }
        let resource = handle.resource().ok()?;
        // The dates of what is merged come of several, which cannot be put right together.
        if doubt::waits(&resource, &self.unsettled) {
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
        settled: i64,
        least: usize,
        gone: &HashSet<RefKey>,
    ) -> Vec<Observed> {
        let forgetting = &self.engine.inner.settings.forgetting;
        let radius = forgetting.merge_radius_m;
        let near: Vec<DocId> = {
            let catalog = self.engine.catalog();
            let doc = catalog.doc(id);
            let lists = of.mentions.iter().map(|entity| catalog.mentioning(entity));
            let rarest = lists.min_by_key(|list| list.len()).unwrap_or_default();
            let is_near = |other: &Doc| {
                let places = catalog.places(other);
                let has_near = catalog.places(doc).iter().any(|place| {
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
                        && row.recorded <= self.now.saturating_sub(settled)
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

    // What is no longer valid.

    fn expire(&mut self) -> Result<(), End> {
        let kept = self.engine.inner.settings.forgetting.expire_after.as_micros();
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        let certain = self.engine.inner.shared.time.certain().as_micros();
        let mut next = 0;
        loop {
            let (ids, last) = {
                let catalog = self.engine.catalog();
                let slice: Vec<DocId> = catalog.special_from(next).take(ROWS).collect();
                let is_over = |id: &DocId| {
                    let doc = catalog.doc(*id);
                    doc.valid_until != NEVER
                        && doc.valid_until.saturating_add(kept) <= certain
                        && !catalog.access(*id).is_some_and(|access| access.anchored)
                };
                let last = slice.last().copied();
                (slice.into_iter().filter(is_over).collect::<Vec<_>>(), last)
            };
            for part in ids.chunks(BATCH) {
                let acts = part.iter().filter_map(|&id| self.expiry_of(id)).collect();
                self.submit(acts)?;
            }
            let Some(last) = last else { return Ok(()) };
            next = last.saturating_add(1);
            self.yield_to_others()?;
        }
    }

    fn expiry_of(&mut self, id: DocId) -> Option<Act> {
        let (chosen, doc) = self.chosen(id)?;
        let days = hours(self.now.saturating_sub(doc.valid_until)) / 24.0;
        let reason = format!("it stopped being valid {days:.1} days ago");
        let cause = Cause { name: "expiry", reason, tiers: None };
        self.report.note(&chosen.target.to_string(), &cause);
        Some(Act::Forget(chosen, cause))
    }

    fn chosen(&self, id: DocId) -> Option<(Chosen, Doc)> {
        let (handle, doc) = {
            let catalog = self.engine.catalog();
            (Handle::of(&catalog, id), catalog.doc(id).clone())
        };
        let target = handle.resource().ok()?.reference();
        Some((Chosen { target, version: doc.version }, doc))
    }

    // Room.

    fn evict(&mut self, fading: &Fading) -> Result<(), End> {
        let shared = &self.engine.inner.shared;
        // Said once, done once; the pressure is measured anew each time.
        let asked = match self.dry_run {
            true => shared.bytes_to_free.load(Ordering::Relaxed),
            false => shared.bytes_to_free.swap(0, Ordering::Relaxed),
        };
        let wanted = asked.max(shared.pressure().bytes_to_free());
        if wanted == 0 {
            shared.can_free.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let (mut rows, dead) = self.evictable(fading)?;
        shared.can_free.store(dead > 0 || !rows.is_empty(), Ordering::Relaxed);
        // What compaction may drop already is freed by it, without losing anything.
        let mut wanted = wanted.saturating_sub(dead);
        rows.sort_by(|a, b| {
            let order = a.is_young.cmp(&b.is_young).then(a.need.total_cmp(&b.need));
            order.then(a.key.cmp(&b.key))
        });
        let mut rows = rows.into_iter();
        while wanted > 0 {
            let mut acts = Vec::new();
            for row in rows.by_ref() {
                let Some((chosen, _)) = self.chosen(row.id) else { continue };
                let reason = format!("no room, and its need of {:.4} is the lowest", row.need);
                let cause = Cause { name: "eviction", reason, tiers: None };
                self.report.note(&chosen.target.to_string(), &cause);
                acts.push(Act::Evict(chosen, cause));
                wanted = wanted.saturating_sub(row.bytes);
                if wanted == 0 || acts.len() == BATCH {
                    break;
                }
            }
            if acts.is_empty() {
                break;
            }
            self.submit(acts)?;
            self.yield_to_others()?;
        }
        Ok(())
    }

    /// All that may go, and the bytes that compaction may drop as it is.
    fn evictable(&self, fading: &Fading) -> Result<(Vec<Evictable>, u64), End> {
        let (mut rows, mut dead, mut next) = (Vec::new(), 0u64, 0);
        let history = self.engine.inner.settings.keep_history.as_micros();
        let order = self.engine.inner.shared.time.history().as_micros();
        let horizon = order.saturating_sub(i64::try_from(history).unwrap_or(i64::MAX));
        loop {
            {
                let catalog = self.engine.catalog();
                let rest = catalog.docs().get(next..).unwrap_or_default();
                if rest.is_empty() {
                    return Ok((rows, dead));
                }
                let mut slice = Slice::new();
                for (id, doc) in (next as DocId..).zip(rest) {
                    if !slice.takes_one() {
                        break;
                    }
                    next += 1;
                    if doc.gone {
                        continue;
                    }
                    if doc.buried || doc.retired < horizon {
                        dead += u64::from(doc.location.len);
                    } else if let Some(need) = plan::need_of(&catalog, fading, id, self.now) {
                        rows.push(Evictable {
                            is_young: self.now.saturating_sub(doc.held_since(self.now)) < DAY,
                            need,
                            id,
                            key: doc.key,
                            bytes: u64::from(doc.location.len),
                        });
                    }
                }
            }
            self.yield_to_others()?;
        }
    }
}

/// Whether a row can be an observation that is merged, as far as the index knows.
fn is_candidate(doc: &Doc) -> bool {
    let is_free = doc.access.is_some_and(|access| !access.anchored);
    doc.is_live() && is_free && !doc.class.is_intention()
}

/// Which of others, if any, is too much to become one record with this: that with the most sources, as
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
    /// How many observations it stands for.
    count: u64,
    /// Where its evidence came from.
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
