//! The whole index in memory: what the current version of everything is, and where to look.
//!
//! Versions only come in, in the order they were recorded; a newer version or a tombstone retires
//! the older one but leaves it findable, because `asOf` asks for what was known then. The catalog
//! holds no bytes of resources: those stay on disk and are read where [`Location`] says.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use omir_core::geo::GeoPoint;
use omir_core::reference::ResourceType;
use omir_core::tier::{Tier, TierReason};

use super::block::{Block, By, Ending, Row, Tombstone};
use super::doc::{self, Doc, DocId, FileId, Location, NEUTRAL, NEVER, Stamp};
use super::facts::{Access, Facts, Place, position};
use super::fading::{Bond, Fading};
use super::key::RefKey;
use super::producers::{OURS, Producers};
use super::space::SpaceIndex;
use super::text::{BlockError, DocTerms, TextIndex};
use super::time::TimeIndex;
use crate::disk::DiskFile;
use crate::store::transaction::Touch;

/// The newest version of a reference, live or forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its row.
    pub doc: DocId,
    /// Its version, or that of the tombstone.
    pub version: u64,
    /// Whether it is live.
    pub live: bool,
    /// Whether it was followed by a version that a compaction dropped: while a store is loaded the
    /// next one is still to come.
    pub(crate) dropped: bool,
}

/// That something was forgotten, of which the tombstone is still held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grave {
    /// The transaction.
    seq: u64,
    /// When; microseconds.
    at: i64,
    by: By,
}

/// Most entities of one memory whose relationships are strengthened by it.
const MAX_ACTIVE: usize = 8;
/// Most relationships of one entity looked through for those to another, newest first.
const MAX_BONDS: usize = 256;

/// Where a version was, in full.
#[derive(Debug, Clone)]
pub struct PlaceRow {
    /// Number of the frame in the catalog's table of frames.
    pub frame: u32,
    /// Metres in that frame.
    pub position: [f64; 3],
    /// Geographic point.
    pub geo: Option<GeoPoint>,
}

/// What becomes of a version in a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is the current one.
    Live,
    /// It was superseded not long ago: questions about the past still find it.
    Kept,
    /// It was superseded long ago and is dropped.
    Superseded,
    /// It, or a later version of the same, was forgotten; it is dropped.
    Forgotten,
}

/// A version in a compaction.
#[derive(Debug, Clone, Copy)]
pub struct Fate {
    /// Its row.
    pub id: DocId,
    /// Of what.
    pub key: RefKey,
    /// The transaction that recorded it.
    pub seq: u64,
    /// Its position there.
    pub ordinal: u32,
    /// What becomes of it.
    pub end: End,
}

/// What can be seen of a version at a glance, in five bytes: enough to pass over most candidates
/// of a query for common words without touching their rows.
#[derive(Debug, Clone, Copy)]
pub struct Glance {
    /// Whether every ordinary query sees it: live, no intention, valid for ever.
    pub is_plain: bool,
    importance: u8,
    confidence: u8,
    /// As of [`Catalog::refresh_glances`]; it only falls from then on, unless there is an access.
    retrievability: u8,
    /// As of then, too.
    recency: u8,
}

impl Glance {
    fn of(doc: &Doc, confidence: f64) -> Self {
        // What another producer's importance counts for moves with every memory that comes or goes.
        // The same goes for a bond, which grows with use.
        let is_bond = doc.class.resource_type() == ResourceType::Relationship;
        let is_fixed = !is_bond && (doc.producer == OURS || doc.importance.is_nan());
        Self {
            is_plain: false,
            importance: if is_fixed { Self::up(neutral(doc.importance)) } else { u8::MAX },
            confidence: Self::up(confidence),
            retrievability: u8::MAX,
            recency: u8::MAX,
        }
    }

    /// Rounded up, so that a bound made of it is never too low.
    fn up(score: f64) -> u8 {
        (score.clamp(0.0, 1.0) * 255.0).ceil() as u8
    }

    /// Not less than its retrievability, if [`Catalog::glances_hold_at`] says so.
    pub fn retrievability(self) -> f64 {
        f64::from(self.retrievability) / 255.0
    }

    /// Not less than its recency, likewise.
    pub fn recency(self) -> f64 {
        f64::from(self.recency) / 255.0
    }

    /// Not less than its importance.
    pub fn importance(self) -> f64 {
        f64::from(self.importance) / 255.0
    }

    /// Not less than its confidence.
    pub fn confidence(self) -> f64 {
        f64::from(self.confidence) / 255.0
    }
}

fn neutral(stated: f64) -> f64 {
    if stated.is_nan() { NEUTRAL } else { stated }
}

/// The transactions that a segment covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub first_seq: u64,
    /// The last.
    pub last_seq: u64,
}

/// The index in memory.
#[derive(Default)]
pub struct Catalog {
    docs: Vec<Doc>,
    glances: Vec<Glance>,
    /// When the glances were last refreshed; microseconds.
    glanced_at: i64,
    heads: hashbrown::HashMap<RefKey, Head>,
    places: Vec<PlaceRow>,
    frames: Vec<String>,
    frame_numbers: hashbrown::HashMap<String, u32>,
    mentions: hashbrown::HashMap<RefKey, Vec<DocId>>,
    /// Relationships that end with the entity.
    dependents: hashbrown::HashMap<RefKey, Vec<DocId>>,
    /// Rows of versions that are not held any more.
    gone: u64,
    files: HashMap<FileId, Arc<dyn DiskFile>>,
    spans: HashMap<FileId, Span>,
    /// Records that are a part of the record.
    children: hashbrown::HashMap<RefKey, Vec<DocId>>,
    /// Access states that are newer than the stored ones.
    touched: hashbrown::HashMap<DocId, Access>,
    /// Use of live relationships since they were stored.
    bonds: hashbrown::HashMap<DocId, Bond>,
    /// How memories move between tiers and bonds fade; nothing moves without it.
    fading: Option<Fading>,
    live: [u64; ResourceType::ALL.len()],
    /// What is forgotten, by name.
    graves: hashbrown::HashMap<RefKey, Grave>,
    /// The transaction that last gave the name of something forgotten to a new thing.
    reborn: hashbrown::HashMap<RefKey, u64>,
    /// How many live versions that are always visible have a place in each frame.
    plain_in_frame: Vec<u64>,
    /// Live versions that are not always visible: intentions, and what stops being valid.
    special: BTreeSet<DocId>,
    producers: Producers,
    /// Confidence by our own rule of what others produced, where it is not the stated one.
    beliefs: hashbrown::HashMap<DocId, f64>,
    /// Words.
    pub text: TextIndex,
    /// Places.
    pub space: SpaceIndex,
    /// Times of events.
    pub time: TimeIndex,
}

impl Catalog {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty index for all that a store holds: places can be searched only after
    /// [`Catalog::finish_loading`].
    pub fn loading() -> Self {
        Self { space: SpaceIndex::loading(), ..Self::default() }
    }

    /// All versions, in the order they were recorded.
    pub fn docs(&self) -> &[Doc] {
        &self.docs
    }

    /// One version.
    pub fn doc(&self, id: DocId) -> &Doc {
        &self.docs[id as usize]
    }

    /// One version, at a glance.
    pub fn glance(&self, id: DocId) -> Glance {
        self.glances[id as usize]
    }

    /// Works out anew how retrievable and how recent everything is at `now` (microseconds), for the glances.
    pub fn refresh_glances(&mut self, now: i64) {
        for id in 0..self.docs.len() {
            if self.docs[id].is_live() {
                let retrievability = self.retrievability(id as DocId, false, now);
                let recency = self.docs[id].recency(now);
                let glance = &mut self.glances[id];
                glance.retrievability = Glance::up(retrievability);
                glance.recency = Glance::up(recency);
            }
        }
        self.glanced_at = now;
    }

    /// Whether the retrievability and recency of the glances are bounds at `now`: memories fade as time
    /// goes on, but a clock may be set back.
    pub fn glances_hold_at(&self, now: i64) -> bool {
        now >= self.glanced_at
    }

    /// The newest version of a reference, live or not. After a compaction the row of what was
    /// forgotten may be none ([`DocId::MAX`]).
    pub fn head(&self, key: &RefKey) -> Option<Head> {
        self.heads.get(key).copied()
    }

    /// Whether anything was forgotten, so that a reference to it may be left somewhere.
    pub fn has_graves(&self) -> bool {
        !self.graves.is_empty() || !self.reborn.is_empty()
    }

    /// Since when (microseconds) someone has had forgotten what was last forgotten under this name, or
    /// the record that it became a part of; `None` while only rules have let go of it. What nothing is
    /// known of any more, someone may have had forgotten, and any time ago.
    pub fn forgotten_since(&self, key: &RefKey) -> Option<i64> {
        const UNKNOWN: Option<i64> = Some(i64::MIN);
        let Some(mut grave) = self.graves.get(key) else { return UNKNOWN };
        // Which of those that bore the name it was is not looked into.
        if grave.by != By::Someone && self.is_reborn(key) {
            return UNKNOWN;
        }
        loop {
            let into = match grave.by {
                By::Someone => return Some(grave.at),
                By::Rule => return None,
                By::Merging(into) => into,
            };
            // It became a part of what bore the name then.
            if self.reborn.get(&into).is_some_and(|&seq| seq > grave.seq) {
                return UNKNOWN;
            }
            match self.graves.get(&into) {
                Some(later) if later.seq > grave.seq => grave = later,
                Some(_) => return UNKNOWN,
                None if self.live(&into).is_some() => return None,
                None => return UNKNOWN,
            }
        }
    }

    /// Since when (microseconds) someone has had a version forgotten that is [`End::Forgotten`]; `None`
    /// while only rules have let go of it.
    pub fn version_forgotten_since(&self, id: DocId) -> Option<i64> {
        let doc = self.doc(id);
        self.forgotten_since(&doc.key).map(|at| if at == i64::MIN { doc.retired } else { at })
    }

    /// What became a part of which record, as far as the tombstones are still held.
    pub fn merged(&self) -> impl Iterator<Item = (RefKey, RefKey)> + '_ {
        self.graves.iter().filter_map(|(key, grave)| match grave.by {
            By::Merging(into) => Some((*key, into)),
            By::Someone | By::Rule => None,
        })
    }

    /// Whether a reference of version `from` still stands: what it names is live and was not
    /// forgotten since. A new thing under the name of a forgotten one starts unmentioned, whether
    /// or not the reference was sealed, and so dropped, in between.
    pub fn stands(&self, from: DocId, target: &RefKey) -> bool {
        self.live(target).is_some()
            && self.reborn.get(target).is_none_or(|&seq| seq <= self.doc(from).seq)
    }

    /// Whether this is the name of something new, and once was that of something that was forgotten.
    pub fn is_reborn(&self, key: &RefKey) -> bool {
        self.reborn.contains_key(key)
    }

    /// The row of the live version of a reference.
    pub fn live(&self, key: &RefKey) -> Option<DocId> {
        self.head(key).filter(|head| head.live).map(|head| head.doc)
    }

    /// How many live resources of each type there are, in the order of [`ResourceType::ALL`].
    pub fn live_counts(&self) -> [u64; ResourceType::ALL.len()] {
        self.live
    }

    /// The places of a version; most have one or none.
    pub fn places(&self, doc: &Doc) -> &[PlaceRow] {
        let start = doc.place as usize;
        self.places.get(start..start + usize::from(doc.places)).unwrap_or_default()
    }

    /// The number of a frame, if anything was ever recorded in it.
    pub fn frame(&self, name: &str) -> Option<u32> {
        self.frame_numbers.get(name).copied()
    }

    /// How many versions with a place in `frame` an ordinary query sees without looking at each:
    /// live, no intention, valid for ever. See [`Catalog::special`] for the others.
    pub fn plain_in_frame(&self, frame: u32) -> u64 {
        self.plain_in_frame.get(frame as usize).copied().unwrap_or(0)
    }

    /// Live versions that an ordinary query must look at: intentions, and what stops being valid.
    pub fn special(&self) -> impl Iterator<Item = DocId> + '_ {
        self.special.iter().copied()
    }

    /// The same, from a row on.
    pub fn special_from(&self, first: DocId) -> impl Iterator<Item = DocId> + '_ {
        self.special.range(first..).copied()
    }

    /// Counts a live version in or out of what [`Catalog::plain_in_frame`] and
    /// [`Catalog::special`] tell.
    fn count_visible(&mut self, id: DocId, comes: bool) {
        let doc = &self.docs[id as usize];
        if doc.class.is_intention() || doc.valid_until != NEVER {
            if comes {
                self.special.insert(id);
            } else {
                self.special.remove(&id);
            }
            return;
        }
        self.glances[id as usize].is_plain = comes;
        let start = doc.place as usize;
        for at in start..start + usize::from(doc.places) {
            let frame = self.places[at].frame;
            // Once for each frame, however many places it has there.
            if self.places[start..at].iter().any(|before| before.frame == frame) {
                continue;
            }
            let frame = frame as usize;
            if self.plain_in_frame.len() <= frame {
                self.plain_in_frame.resize(frame + 1, 0);
            }
            let count = &mut self.plain_in_frame[frame];
            *count = if comes { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// Versions that mention an entity and were recorded since it last began to exist.
    pub fn mentioning(&self, entity: &RefKey) -> &[DocId] {
        self.mentions.get(entity).map_or(&[], Vec::as_slice)
    }

    /// Live relationships that cannot exist without this entity.
    pub fn dependents(&self, entity: &RefKey) -> impl Iterator<Item = DocId> + '_ {
        self.dependents
            .get(entity)
            .into_iter()
            .flatten()
            .copied()
            .filter(|&doc| self.doc(doc).is_live())
    }

    /// Whether a live record is a part of this one.
    pub fn has_children(&self, record: &RefKey) -> bool {
        self.children.get(record).into_iter().flatten().any(|&child| self.doc(child).is_live())
    }

    /// Makes a log's bytes reachable.
    pub fn add_log(&mut self, id: FileId, file: Arc<dyn DiskFile>) {
        self.files.insert(id, file);
    }

    /// Makes a segment's bytes reachable; it covers the transactions of `span`.
    pub fn add_segment(&mut self, id: FileId, file: Arc<dyn DiskFile>, span: Span) {
        self.files.insert(id, file);
        self.spans.insert(id, span);
    }

    /// Forgets a file that no version lies in any more. Readers that hold it keep it open.
    pub fn drop_file(&mut self, id: FileId) {
        self.files.remove(&id);
        self.spans.remove(&id);
    }

    /// The segments that are served, in the order of their transactions.
    pub fn segments(&self) -> Vec<(u64, Span, Arc<dyn DiskFile>)> {
        let mut segments: Vec<_> = self
            .spans
            .iter()
            .filter_map(|(id, span)| match id {
                FileId::Segment(number) => {
                    Some((u64::from(*number), *span, self.files.get(id)?.clone()))
                }
                FileId::Log(_) => None,
            })
            .collect();
        segments.sort_by_key(|(number, span, _)| (span.first_seq, *number));
        segments
    }

    /// The file a version lies in.
    pub fn file(&self, id: FileId) -> Option<Arc<dyn DiskFile>> {
        self.files.get(&id).cloned()
    }

    fn add_place(&mut self, place: &Place, doc: DocId) {
        let frame = self.frame(&place.frame).unwrap_or_else(|| {
            let next = u32::try_from(self.frames.len()).expect("fewer than 2^32 frames");
            self.frames.push(place.frame.clone());
            self.frame_numbers.insert(place.frame.clone(), next);
            next
        });
        let geo = place.geo_point();
        self.space.insert(&place.frame, place.position, doc);
        if let Some(point) = &geo {
            self.space.insert_geo(point.unit_vector(), doc);
        }
        self.places.push(PlaceRow { frame, position: place.position, geo });
    }

    /// Adds a version without its words, and retires the one before it.
    ///
    /// Returns its row and the row it superseded, if that was live.
    fn push(&mut self, facts: &Facts, stamp: Stamp, location: Location) -> (DocId, Option<DocId>) {
        let id = DocId::try_from(self.docs.len()).expect("fewer than 2^32 versions");
        let place = u32::try_from(self.places.len()).expect("fewer than 2^32 places");
        let places = u16::try_from(facts.places.len()).unwrap_or(u16::MAX);
        facts.places.iter().take(usize::from(places)).for_each(|place| self.add_place(place, id));
        let producer = self.producers.number(facts.producer);
        let doc = Doc::new(facts, producer, stamp, location, place, places);
        if let Some(belief) = facts.belief.filter(|belief| Some(*belief) != facts.confidence) {
            self.beliefs.insert(id, belief);
        }
        if let Some(when) = facts.when {
            self.time.insert(when, id);
        }
        self.glances.push(Glance::of(&doc, self.confidence(id, &doc)));
        self.producers.count(producer, doc.class.resource_type, doc.importance, true);
        self.docs.push(doc);
        self.count_visible(id, true);
        for key in &facts.mentions {
            self.mentions.entry(*key).or_default().push(id);
        }
        for key in &facts.required {
            self.dependents.entry(*key).or_default().push(id);
        }
        if let Some(key) = facts.parent {
            self.children.entry(key).or_default().push(id);
        }
        let head = Head { doc: id, version: stamp.version, live: true, dropped: false };
        let before = self.heads.insert(facts.key, head);
        if let Some(before) = before {
            self.docs[id as usize].older = before.doc;
            if !before.live && !before.dropped {
                self.graves.remove(&facts.key);
                self.reborn.insert(facts.key, stamp.seq);
            }
        }
        let old = before.filter(|old| old.live).map(|old| old.doc);
        self.live[usize::from(facts.class.resource_type)] += 1;
        if let Some(old) = old {
            self.retire(old, stamp.recorded, false);
        }
        (id, old)
    }

    fn retire(&mut self, id: DocId, at: i64, forgotten: bool) {
        self.count_visible(id, false);
        let doc = &mut self.docs[id as usize];
        doc.retired = at;
        doc.forgotten = forgotten;
        doc.is_touched = false;
        self.producers.count(doc.producer, doc.class.resource_type, doc.importance, false);
        self.touched.remove(&id);
        self.bonds.remove(&id);
        self.live[usize::from(doc.class.resource_type)] -= 1;
    }

    /// Adds a version that was just recorded. `superseded` are the words of the live version it
    /// replaces, if there is one.
    pub fn put(
        &mut self,
        facts: &Facts,
        terms: &DocTerms,
        superseded: Option<&DocTerms>,
        stamp: Stamp,
        location: Location,
    ) -> DocId {
        let (id, old) = self.push(facts, stamp, location);
        self.text.add(id, terms);
        if let (Some(old), Some(terms)) = (old, superseded) {
            self.text.retire(old, terms);
        }
        id
    }

    /// Adds a tombstone, and who forgot. `terms` are the words of the live version, if there is one.
    pub fn forget(
        &mut self,
        key: &RefKey,
        terms: Option<&DocTerms>,
        stamp: Stamp,
        by: By,
    ) -> Option<DocId> {
        let retired = self.bury(key, stamp, by);
        if let (Some(old), Some(terms)) = (retired, terms) {
            self.text.retire(old, terms);
        }
        retired
    }

    fn bury(&mut self, key: &RefKey, stamp: Stamp, by: By) -> Option<DocId> {
        // What mentioned it no longer does: a new thing under the same name starts unmentioned.
        self.mentions.remove(key);
        self.dependents.remove(key);
        self.children.remove(key);
        let nothing = Head { doc: DocId::MAX, version: 0, live: false, dropped: true };
        let head = self.heads.entry(*key).or_insert(nothing);
        let was_live = head.live;
        // What was forgotten by someone stays so. Of what a compaction dropped, only the tombstone may
        // be left.
        let grave = Grave { seq: stamp.seq, at: stamp.recorded, by };
        let held = self.graves.entry(*key).or_insert(grave);
        if held.by != By::Someone {
            *held = grave;
        }
        *head = Head { version: stamp.version, live: false, dropped: false, ..*head };
        let doc = head.doc;
        let mut at = doc;
        while let Some(doc) = self.docs.get_mut(at as usize).filter(|doc| !doc.buried) {
            doc.buried = true;
            at = doc.older;
        }
        was_live.then(|| {
            self.retire(doc, stamp.recorded, true);
            doc
        })
    }

    /// What the importance of a version counts for when it is ranked at `now` (microseconds): see
    /// [`Producers`], and for relationships [`Fading::bond`]. `as_stored` leaves out their use since.
    pub fn importance(&self, id: DocId, as_stored: bool, now: i64) -> f64 {
        let doc = self.doc(id);
        let kind = doc.class.resource_type;
        let stated = neutral(self.producers.comparable(doc.producer, kind, doc.importance));
        match &self.fading {
            Some(fading) if doc.class.resource_type() == ResourceType::Relationship => {
                let bond = if as_stored { None } else { self.bonds.get(&id) };
                fading.bond(stated, doc, bond, now)
            }
            _ => stated,
        }
    }

    /// How memories move and bonds fade from now on; `None` leaves everything as it was stored.
    pub fn set_fading(&mut self, fading: Option<Fading>) {
        self.fading = fading;
    }

    /// How memories move and bonds fade.
    pub fn fading(&self) -> Option<&Fading> {
        self.fading.as_ref()
    }

    /// Where a record is at `now` (microseconds), and the last rule that moved it there since it was
    /// stored; `None` for what is no record. `as_stored` leaves out accesses since. What was
    /// superseded or forgotten stays where it was then.
    pub fn tier(&self, id: DocId, as_stored: bool, now: i64) -> Option<(Tier, TierReason)> {
        let doc = self.doc(id);
        let stored = doc.stored_tier()?;
        let Some(fading) = &self.fading else { return Some((stored, TierReason::Stays)) };
        let access = if as_stored { doc.access } else { self.access(id) }?;
        Some(fading.tier(doc, &access, now.min(doc.retired)))
    }

    /// The tier of a record at `now` where it is another than the stored one.
    pub fn moved(&self, id: DocId, as_stored: bool, now: i64) -> Option<Tier> {
        let (tier, _) = self.tier(id, as_stored, now)?;
        (self.doc(id).stored_tier() != Some(tier)).then_some(tier)
    }

    /// Whether there is any relationship that use could strengthen.
    pub fn has_bonds(&self) -> bool {
        self.live[usize::from(position(&ResourceType::ALL, &ResourceType::Relationship))] > 0
    }

    /// The use of a relationship since it was stored.
    pub fn bond(&self, id: DocId) -> Option<Bond> {
        self.bonds.get(&id).copied()
    }

    /// The use of a relationship since it was stored, as a journal keeps it. The half-life is that
    /// of the configuration and is not read back.
    pub fn bond_touch(&self, id: DocId, target: String) -> Option<Touch> {
        let bond = self.bond(id)?;
        let fading = self.fading.unwrap_or_default();
        Some(Touch {
            target,
            last_access: bond.last,
            access_count: bond.activations,
            half_life_hours: fading.bond_half_life.hours(),
        })
    }

    /// Counts that these entities were active together at `now` (microseconds): strengthens every
    /// live relationship between two of them, and gives their keys.
    pub fn activate(&mut self, entities: &[RefKey], now: i64) -> Vec<RefKey> {
        let mut active = Vec::new();
        for (at, one) in entities.iter().take(MAX_ACTIVE).enumerate() {
            let Some(of_one) = self.dependents.get(one) else { continue };
            for other in entities.iter().take(MAX_ACTIVE).skip(at + 1) {
                let Some(of_other) = self.dependents.get(other) else { continue };
                let (few, many) = if of_one.len() <= of_other.len() {
                    (of_one, of_other)
                } else {
                    (of_other, of_one)
                };
                // Both lists are in ascending order; an entity with very many is a hub, and what
                // joins it to others is strengthened through those.
                let both = few.iter().rev().take(MAX_BONDS).copied();
                active.extend(both.filter(|id| many.binary_search(id).is_ok()));
            }
        }
        active.retain(|&id| self.doc(id).is_live());
        for &id in &active {
            self.bonds.entry(id).or_default().activated(now);
        }
        active.into_iter().map(|id| self.doc(id).key).collect()
    }

    /// What the confidence of a version counts for when it is ranked: as we state it, and what
    /// others believe by our own rule where they give the evidence.
    pub fn confidence(&self, id: DocId, doc: &Doc) -> f64 {
        let belief = if doc.producer == OURS { None } else { self.beliefs.get(&id).copied() };
        belief.unwrap_or(neutral(doc.confidence))
    }

    /// Sets the access state of a live record.
    pub fn touch(&mut self, key: &RefKey, access: Access) {
        if let Some(id) = self.live(key) {
            let doc = &mut self.docs[id as usize];
            if doc.access.is_some() {
                doc.is_touched = true;
                self.glances[id as usize].retrievability = u8::MAX;
                self.touched.insert(id, access);
            }
        }
    }

    /// The forgetting state of a version with all accesses so far; `None` for what does not fade.
    pub fn access(&self, id: DocId) -> Option<Access> {
        let doc = self.doc(id);
        if doc.is_touched { self.touched.get(&id).copied() } else { doc.access }
    }

    /// Probability that a version can still be recalled at `now` (contract section 6). What is no
    /// memory record has no decay block in R1 and does not fade. `as_stored` leaves out accesses
    /// that came after the version was recorded.
    pub fn retrievability(&self, id: DocId, as_stored: bool, now: i64) -> f64 {
        let access = if as_stored { self.doc(id).access } else { self.access(id) };
        access.map_or(1.0, |access| doc::retrievability(&access, now))
    }

    /// Sets the access state a journal entry tells of.
    pub fn replay_touch(&mut self, touch: &Touch) {
        let key = RefKey::of_text(&touch.target);
        let bond = self
            .live(&key)
            .filter(|&id| self.doc(id).class.resource_type() == ResourceType::Relationship);
        if let Some(id) = bond {
            self.bonds
                .insert(id, Bond { activations: touch.access_count, last: touch.last_access });
            return;
        }
        let anchored = self
            .live(&key)
            .and_then(|id| self.doc(id).access)
            .is_some_and(|access| access.anchored);
        self.touch(
            &key,
            Access {
                half_life_hours: touch.half_life_hours,
                last_access: touch.last_access,
                access_count: touch.access_count,
                anchored,
            },
        );
    }

    /// Adds the versions of a sealed segment at start-up. [`Catalog::finish_loading`] must follow.
    ///
    /// # Errors
    /// If the words of the block are damaged; the catalog is then to be thrown away.
    pub fn load(&mut self, block: &Block, file: FileId) -> Result<(), BlockError> {
        let base = self.load_rows(block, file);
        self.text.add_block(base, &block.text)
    }

    /// The same without the words, which are to be added to [`Catalog::text`] with the row that is
    /// returned as their first document.
    pub fn load_rows(&mut self, block: &Block, file: FileId) -> DocId {
        let base = DocId::try_from(self.docs.len()).expect("fewer than 2^32 versions");
        let mut graves = block.tombstones.iter().peekable();
        for row in &block.rows {
            let before = |grave: &&Tombstone| {
                (grave.stamp.seq, grave.stamp.ordinal) < (row.stamp.seq, row.stamp.ordinal)
            };
            while let Some(grave) = graves.next_if(before) {
                self.bury_loaded(grave);
            }
            let location = Location { file, offset: row.offset, len: row.len, crc: row.crc };
            self.push(&row.facts, row.stamp, location);
        }
        for grave in graves {
            self.bury_loaded(grave);
        }
        for touch in &block.touches {
            self.replay_touch(touch);
        }
        base
    }

    fn bury_loaded(&mut self, grave: &Tombstone) {
        let key = grave.key();
        match grave.ending {
            Ending::Forgotten(by) => {
                self.bury(&key, grave.stamp, by);
            }
            Ending::Dropped => self.end(&key, grave.stamp),
        }
    }

    /// Ends the head of a reference at a version that is not held any more. A later one, or a
    /// tombstone, follows.
    fn end(&mut self, key: &RefKey, stamp: Stamp) {
        let Some(head) = self.heads.get_mut(key) else { return };
        let was_live = head.live;
        self.graves.remove(key);
        *head = Head { version: stamp.version, live: false, dropped: true, ..*head };
        let doc = head.doc;
        if was_live {
            self.retire(doc, stamp.recorded, false);
        }
    }

    /// Works out what depends on which versions are live, and arranges places for search, once all
    /// segments and logs are loaded; on so many threads.
    pub fn finish_loading(&mut self, threads: usize) {
        let docs = &self.docs;
        let is_live = |id: DocId| docs.get(id as usize).is_some_and(Doc::is_live);
        self.text.set_liveness(is_live, threads);
        self.space.finish_loading(threads);
    }

    /// Points versions at the segment they were sealed or compacted into.
    ///
    /// `rows` are the segment's, in the order of their stamps, which is the order of the catalog.
    pub fn relocate(&mut self, rows: &[Row], segment: FileId) {
        let Some(first) = rows.first() else { return };
        let start = self
            .docs
            .partition_point(|doc| (doc.seq, doc.ordinal) < (first.stamp.seq, first.stamp.ordinal));
        let mut at = start;
        for row in rows {
            while let Some(doc) = self.docs.get_mut(at) {
                at += 1;
                if (doc.seq, doc.ordinal) == (row.stamp.seq, row.stamp.ordinal) {
                    doc.location =
                        Location { file: segment, offset: row.offset, len: row.len, crc: row.crc };
                    break;
                }
            }
        }
    }

    /// What becomes of the versions of transactions `first` to `last` when their segments are
    /// compacted, in the order they were recorded: what was superseded before `horizon`
    /// (microseconds) and what was forgotten is dropped.
    pub fn fates(&self, first: u64, last: u64, horizon: i64) -> Vec<Fate> {
        let start = self.docs.partition_point(|doc| doc.seq < first);
        let end = self.docs.partition_point(|doc| doc.seq <= last);
        let versions = (start as DocId..).zip(&self.docs[start..end]);
        versions
            .filter(|(_, doc)| !doc.gone)
            .map(|(id, doc)| {
                let end = match (doc.buried, doc.is_live()) {
                    (true, _) => End::Forgotten,
                    (false, true) => End::Live,
                    (false, false) if doc.retired < horizon => End::Superseded,
                    (false, false) => End::Kept,
                };
                Fate { id, key: doc.key, seq: doc.seq, ordinal: doc.ordinal, end }
            })
            .collect()
    }

    /// Whether a version of a reference recorded before transaction `seq` is still held.
    pub fn has_version_before(&self, key: &RefKey, seq: u64) -> bool {
        let mut at = self.head(key).map_or(DocId::MAX, |head| head.doc);
        while let Some(doc) = self.docs.get(at as usize) {
            if doc.seq < seq {
                return true;
            }
            at = doc.older;
        }
        false
    }

    /// Moves the versions of a compacted run to their new places, and takes out what was dropped:
    /// versions, and tombstones by key and version. `rows` and `dropped` are in the order they were
    /// recorded.
    pub fn compact(
        &mut self,
        rows: &[Row],
        segment: FileId,
        dropped: &[DocId],
        tombstones: &[(RefKey, u64)],
    ) {
        self.relocate(rows, segment);
        for &id in dropped {
            let doc = &mut self.docs[id as usize];
            doc.gone = true;
            let (key, older) = (doc.key, doc.older);
            self.beliefs.remove(&id);
            self.skip(&key, id, older);
        }
        self.gone += dropped.len() as u64;
        for (key, version) in tombstones {
            let is_it = |head: &Head| !head.live && head.version == *version;
            if self.heads.get(key).is_some_and(is_it) {
                self.heads.remove(key);
                self.graves.remove(key);
            }
        }
    }

    /// Takes a row out of the versions of its reference.
    fn skip(&mut self, key: &RefKey, id: DocId, older: DocId) {
        let Some(head) = self.heads.get_mut(key) else { return };
        if head.doc == id {
            head.doc = older;
            return;
        }
        let mut at = head.doc;
        while let Some(doc) = self.docs.get_mut(at as usize) {
            if doc.older == id {
                doc.older = older;
                return;
            }
            at = doc.older;
        }
    }

    /// How many rows are of versions that a compaction dropped.
    pub fn gone(&self) -> u64 {
        self.gone
    }

    /// The version of a reference that was live at `at` (microseconds).
    pub fn version_at(&self, key: &RefKey, at: i64) -> Option<DocId> {
        let mut id = self.head(key)?.doc;
        while let Some(doc) = self.docs.get(id as usize) {
            if doc.recorded <= at {
                return (doc.retired == NEVER || at < doc.retired).then_some(id);
            }
            id = doc.older;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use omir_core::instant::{Instant, Timestamp};
    use omir_core::model::{MemoryRecord, Resource};

    use super::*;
    use crate::index::facts::terms_of;

    fn key(id: &str) -> RefKey {
        RefKey::of_text(&format!("MemoryRecord/{id}"))
    }

    fn stamp(seq: u64) -> Stamp {
        Stamp { seq, ordinal: 0, version: seq, recorded: 10 * seq.cast_signed() }
    }

    fn put(catalog: &mut Catalog, id: &str, seq: u64) {
        let at = Instant::from(Timestamp::from_unix(0, 0));
        let record: Resource = MemoryRecord::new(id.parse().unwrap(), "a cup", at).into();
        let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
        catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp(seq), location);
    }

    fn forget(catalog: &mut Catalog, id: &str, seq: u64, by: By) {
        catalog.forget(&key(id), None, stamp(seq), by);
    }

    /// `a` became a part of `b`, and that of `c`.
    fn merged() -> Catalog {
        let mut catalog = Catalog::new();
        ["a", "b", "c"].into_iter().zip(1..).for_each(|(id, seq)| put(&mut catalog, id, seq));
        forget(&mut catalog, "a", 4, By::Merging(key("b")));
        forget(&mut catalog, "b", 5, By::Merging(key("c")));
        catalog
    }

    #[test]
    fn what_became_a_part_is_forgotten_with_the_rest() {
        let mut catalog = merged();
        let since = |catalog: &Catalog| ["a", "b"].map(|id| catalog.forgotten_since(&key(id)));
        assert_eq!(since(&catalog), [None, None]);
        put(&mut catalog, "c", 6);
        assert_eq!(since(&catalog), [None, None], "another version");
        forget(&mut catalog, "c", 7, By::Someone);
        assert_eq!(since(&catalog), [Some(70), Some(70)]);
        assert_eq!(catalog.version_forgotten_since(0), Some(70));
        // A rule that comes later takes nothing back.
        forget(&mut catalog, "c", 8, By::Rule);
        assert_eq!(since(&catalog), [Some(70), Some(70)]);

        let mut catalog = merged();
        forget(&mut catalog, "c", 7, By::Rule);
        assert_eq!(since(&catalog), [None, None]);
    }

    #[test]
    fn what_nothing_is_known_of_may_have_been_forgotten_by_someone() {
        const UNKNOWN: Option<i64> = Some(i64::MIN);
        // The name of a part belongs to something new.
        for (id, found) in [("b", [UNKNOWN, UNKNOWN]), ("a", [UNKNOWN, None])] {
            let mut catalog = merged();
            put(&mut catalog, id, 7);
            let since = |of: &str| catalog.forgotten_since(&key(of));
            assert_eq!([since("a"), since("b")], found, "{id} is back");
            forget(&mut catalog, id, 8, By::Rule);
            let doc = catalog.doc(0);
            assert_eq!((doc.key, catalog.version_forgotten_since(0)), (key("a"), Some(40)));
        }
        let mut catalog = merged();
        forget(&mut catalog, "c", 7, By::Someone);
        put(&mut catalog, "c", 8);
        assert_eq!(catalog.forgotten_since(&key("a")), UNKNOWN, "that is another");
        // But what becomes a part of the new one is not.
        put(&mut catalog, "d", 9);
        forget(&mut catalog, "d", 10, By::Merging(key("c")));
        assert_eq!(catalog.forgotten_since(&key("d")), None);
        // No store writes these.
        put(&mut catalog, "e", 11);
        forget(&mut catalog, "e", 12, By::Merging(key("e")));
        assert_eq!(catalog.forgotten_since(&key("e")), UNKNOWN);
        put(&mut catalog, "f", 13);
        forget(&mut catalog, "f", 14, By::Merging(key("lost")));
        assert_eq!(catalog.forgotten_since(&key("f")), UNKNOWN);
    }
}
