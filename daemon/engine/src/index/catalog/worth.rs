//! What a version counts for by now: how time and use have changed what was stored.

use omir_core::reference::ResourceType;
use omir_core::tier::{Tier, TierReason};

use super::{Catalog, neutral};
use crate::index::doc::{self, Doc, DocId};
use crate::index::facts::{Access, position};
use crate::index::fading::{Bond, Fading};
use crate::index::key::RefKey;
use crate::index::producers::OURS;
use crate::store::transaction::Touch;

/// Most entities of one memory whose relationships are strengthened by it.
const MAX_ACTIVE: usize = 8;
/// Most relationships of one entity looked through for those to another, newest first.
const MAX_BONDS: usize = 256;

impl Catalog {
    /// What the importance of a version counts for when it is ranked at `now` (microseconds): see
    /// [`Producers`](crate::index::producers::Producers), and for relationships [`Fading::bond`].
    /// `as_stored` leaves out their use since.
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

    /// What the confidence of a version counts for when it is ranked: as we state it, and what
    /// others believe by our own rule where they give the evidence.
    pub fn confidence(&self, id: DocId, doc: &Doc) -> f64 {
        let belief = if doc.producer == OURS { None } else { self.beliefs.get(&id).copied() };
        belief.unwrap_or(neutral(doc.confidence))
    }

    /// How memories move and bonds fade from now on; `None` leaves everything as it was stored.
    pub fn set_fading(&mut self, fading: Option<Fading>) {
        self.fading = fading;
        self.counts.all_changed();
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

    /// The forgetting state of a version with all accesses so far; `None` for what does not fade.
    pub fn access(&self, id: DocId) -> Option<Access> {
        let doc = self.doc(id);
        if doc.is_touched { self.touched.get(&id).copied() } else { doc.access }
    }

    /// Probability that a version can still be recalled at `now` (`docs/keys.md`, "Retrievability"). What is no
    /// memory record has no decay block in R1 and does not fade. `as_stored` leaves out accesses
    /// that came after the version was recorded.
    pub fn retrievability(&self, id: DocId, as_stored: bool, now: i64) -> f64 {
        let access = if as_stored { self.doc(id).access } else { self.access(id) };
        access.map_or(1.0, |access| doc::retrievability(&access, now))
    }

    /// Sets the access state of a live record.
    pub fn touch(&mut self, key: &RefKey, access: Access) {
        if let Some(id) = self.live(key) {
            let doc = &mut self.docs[id as usize];
            if doc.access.is_some() {
                doc.is_touched = true;
                self.glances[id as usize].used();
                self.touched.insert(id, access);
                self.counts.changed(id);
            }
        }
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
}
