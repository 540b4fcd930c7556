//! Accesses and co-activations: how they come into the catalog, and how a journal keeps them.

use omir_core::reference::ResourceType;
use omird_store::{RefKey, Touch};

use super::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::DecayState;
use crate::index::fading::Bond;

/// Most entities of one memory whose relationships are strengthened by it.
const MAX_ACTIVE: usize = 8;
/// Most relationships of one entity looked through for those to another, newest first.
const MAX_BONDS: usize = 256;

impl Catalog {
    /// Sets the decay state of a live record.
    pub fn touch(&mut self, key: &RefKey, access: DecayState) {
        if let Some(id) = self.live(key) {
            let doc = self.rows.doc_mut(id);
            if doc.access.is_some() {
                doc.is_touched = true;
                self.usage.set_decay_state(id, access);
                self.score_bounds.accessed(id);
                self.tier_counts.changed(id);
            }
        }
    }

    /// Returns true if there is a relationship, so that use could strengthen one.
    pub fn has_bonds(&self) -> bool {
        self.counts.live_of(ResourceType::Relationship) > 0
    }

    /// The use of a relationship since it was stored.
    pub fn bond(&self, id: DocId) -> Option<Bond> {
        self.usage.bond(id).copied()
    }

    /// The use of a relationship since it was stored, as a journal keeps it. The half-life is that
    /// of the configuration and is not read back.
    pub fn bond_touch(&self, id: DocId, target: String) -> Option<Touch> {
        let bond = self.bond(id)?;
        let fading = self.fading().copied().unwrap_or_default();
        Some(Touch {
            target,
            last_access: bond.last,
            access_count: bond.activations,
            half_life_hours: fading.bond_half_life.hours(),
        })
    }

    /// The use of a live version since it was stored, as a journal keeps it.
    pub(super) fn usage_since_stored(&self, id: DocId, target: String) -> Option<Touch> {
        match self.decay_state(id).filter(|_| self.doc(id).is_touched) {
            Some(DecayState { last_access, access_count, half_life_hours, .. }) => {
                Some(Touch { target, last_access, access_count, half_life_hours })
            }
            None => self.bond_touch(id, target),
        }
    }

    /// Counts that these entities were active together at `now` (microseconds): strengthens every
    /// live relationship between two of them, and returns their keys.
    pub fn activate(&mut self, entities: &[RefKey], now: i64) -> Vec<RefKey> {
        let mut active = Vec::new();
        for (at, one) in entities.iter().take(MAX_ACTIVE).enumerate() {
            let of_one = self.references.dependents(one);
            for other in entities.iter().take(MAX_ACTIVE).skip(at + 1) {
                let of_other = self.references.dependents(other);
                let (few, many) = if of_one.len() <= of_other.len() {
                    (of_one, of_other)
                } else {
                    (of_other, of_one)
                };
                // Both lists are in ascending order. An entity with very many relationships is a hub; those to
                // others are strengthened through the other end.
                let both = few.iter().rev().take(MAX_BONDS).copied();
                active.extend(both.filter(|id| many.binary_search(id).is_ok()));
            }
        }
        active.retain(|&id| self.doc(id).is_live());
        for &id in &active {
            self.usage.activate(id, now);
        }
        active.into_iter().map(|id| self.doc(id).key).collect()
    }

    /// Sets the use that a journal entry states.
    pub fn replay_touch(&mut self, touch: &Touch) {
        let key = RefKey::of_text(&touch.target);
        let Some(id) = self.live(&key) else { return };
        let doc = self.doc(id);
        if doc.class.resource_type() == ResourceType::Relationship {
            let bond = Bond { activations: touch.access_count, last: touch.last_access };
            self.usage.set_bond(id, bond);
            return;
        }
        let access = DecayState {
            half_life_hours: touch.half_life_hours,
            last_access: touch.last_access,
            access_count: touch.access_count,
            anchored: doc.access.is_some_and(|access| access.anchored),
        };
        self.touch(&key, access);
    }
}
