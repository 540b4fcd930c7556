//! Usage: accesses and co-activations since versions were stored, and the rules by which memories fade.

use crate::index::doc::{Doc, DocId};
use crate::index::facts::DecayState;
use crate::index::fading::{Bond, Fading};

/// The use of live versions since they were stored.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// DecayState states that are newer than the stored ones.
    decay_states: hashbrown::HashMap<DocId, DecayState>,
    bonds: hashbrown::HashMap<DocId, Bond>,
    /// The rules; without them nothing moves between tiers, and no bond fades.
    fading: Option<Fading>,
}

impl Usage {
    pub(super) fn fading(&self) -> Option<&Fading> {
        self.fading.as_ref()
    }

    pub(super) fn set_fading(&mut self, fading: Option<Fading>) {
        self.fading = fading;
    }

    /// The decay state of a version with all accesses so far.
    pub(super) fn decay_state(&self, id: DocId, doc: &Doc) -> Option<DecayState> {
        if doc.is_touched { self.decay_states.get(&id).copied() } else { doc.access }
    }

    pub(super) fn set_decay_state(&mut self, id: DocId, access: DecayState) {
        self.decay_states.insert(id, access);
    }

    pub(super) fn bond(&self, id: DocId) -> Option<&Bond> {
        self.bonds.get(&id)
    }

    pub(super) fn set_bond(&mut self, id: DocId, bond: Bond) {
        self.bonds.insert(id, bond);
    }

    /// Counts that both ends of a relationship were active together.
    pub(super) fn activate(&mut self, id: DocId, now: i64) {
        self.bonds.entry(id).or_default().activated(now);
    }

    /// Ends the use of a version that is live no longer.
    pub(super) fn retire(&mut self, id: DocId) {
        self.decay_states.remove(&id);
        self.bonds.remove(&id);
    }
}
