//! The whole index in memory: what the current version of everything is, and where to look.
//!
//! Versions only come in, in the order they were recorded; a newer version or a tombstone retires
//! the older one but leaves it findable, because `asOf` asks for what was known then. The catalog
//! holds no bytes of resources: those stay on disk and are read where [`Location`] says.

use std::collections::BTreeSet;

use omir_core::geo::GeoPoint;
use omir_core::reference::ResourceType;

use self::counts::Counts;
use self::graves::Grave;
use super::doc::{Doc, DocId, Location, NEUTRAL, NEVER, Stamp};
use super::facts::{Access, Facts, Place};
use super::fading::{Bond, Fading};
use super::key::{KeyPrefix, RefKey};
use super::producers::Producers;
use super::space::SpaceIndex;
use super::text::TextIndex;
use super::time::TimeIndex;
use crate::store::files::Files;

mod counts;
mod glance;
mod graves;
mod known;
mod loading;
mod lost;
mod moving;
mod staging;
mod store;
mod survey;
mod worth;

pub use self::counts::TierCount;
pub use self::glance::Glance;
#[cfg(test)]
pub use self::known::hops;
pub use self::known::{Known, Past};
pub use self::lost::Lost;
pub use self::staging::Staged;
pub use self::survey::{InLogs, Survey, survey, survey_logs};

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
    /// The files that versions lie in.
    pub files: Files,
    /// Records that are a part of the record.
    children: hashbrown::HashMap<RefKey, Vec<DocId>>,
    /// Access states that are newer than the stored ones.
    touched: hashbrown::HashMap<DocId, Access>,
    /// Use of live relationships since they were stored.
    bonds: hashbrown::HashMap<DocId, Bond>,
    /// How memories move between tiers and bonds fade; nothing moves without it.
    fading: Option<Fading>,
    live: [u64; ResourceType::ALL.len()],
    counts: Counts,
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
    /// Names whose newest version the card has lost.
    lost: hashbrown::HashMap<KeyPrefix, Lost>,
    /// Whether first versions are lost whose names nobody knows.
    has_lost_unknown: bool,
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

    /// All versions, in the order they were recorded.
    pub fn docs(&self) -> &[Doc] {
        &self.docs
    }

    /// One version.
    pub fn doc(&self, id: DocId) -> &Doc {
        &self.docs[id as usize]
    }

    /// The newest version of a reference, live or not. After a compaction the row of what was
    /// forgotten may be none ([`DocId::MAX`]).
    pub fn head(&self, key: &RefKey) -> Option<Head> {
        self.heads.get(key).copied()
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
        let id = self.add_row(facts, stamp, location);
        (id, self.enter(id, facts))
    }

    /// Adds the row of a version, staged: indexes propose it, and no reader takes it for anything until
    /// [`Catalog::enter`].
    fn add_row(&mut self, facts: &Facts, stamp: Stamp, location: Location) -> DocId {
        let id = DocId::try_from(self.docs.len()).expect("fewer than 2^32 versions");
        let place = u32::try_from(self.places.len()).expect("fewer than 2^32 places");
        let places = u16::try_from(facts.places.len()).unwrap_or(u16::MAX);
        facts.places.iter().take(usize::from(places)).for_each(|place| self.add_place(place, id));
        let producer = self.producers.number(facts.producer);
        let mut doc = Doc::new(facts, producer, stamp, location, place, places);
        doc.stage();
        if let Some(belief) = facts.belief.filter(|belief| Some(*belief) != facts.confidence) {
            self.beliefs.insert(id, belief);
        }
        if let Some(when) = facts.when {
            self.time.insert(when, id);
        }
        self.glances.push(Glance::of(&doc, self.confidence(id, &doc), self.glanced_at));
        self.docs.push(doc);
        self.counts.staged += 1;
        id
    }

    /// Makes a staged row the current version, and retires the one before it; gives its row if it was live.
    fn enter(&mut self, id: DocId, facts: &Facts) -> Option<DocId> {
        let doc = &mut self.docs[id as usize];
        doc.enter();
        let (seq, recorded, version) = (doc.seq, doc.recorded, doc.version);
        self.producers.count(doc.producer, doc.class.resource_type, doc.importance, true);
        self.counts.staged -= 1;
        self.counts.changed(id);
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
        let head = Head { doc: id, version, live: true, dropped: false };
        self.lost.remove(&facts.key.prefix());
        let before = self.heads.insert(facts.key, head);
        if let Some(before) = before {
            self.docs[id as usize].older = before.doc;
            if !before.live && !before.dropped {
                self.graves.remove(&facts.key);
                self.reborn.insert(facts.key, seq);
            }
        }
        let old = before.filter(|old| old.live).map(|old| old.doc);
        self.live[usize::from(facts.class.resource_type)] += 1;
        if let Some(old) = old {
            self.retire(old, recorded, false);
        }
        old
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
        self.counts.changed(id);
        if forgotten {
            self.counts.forgot();
        }
    }
}

fn neutral(stated: f64) -> f64 {
    if stated.is_nan() { NEUTRAL } else { stated }
}
