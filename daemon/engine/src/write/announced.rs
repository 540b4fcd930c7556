//! Moves between tiers that were announced.

use omir_core::tier::Tier;

use crate::index::doc::DocId;

/// Moves that were announced: the tier last told of each row, `None` if none was since the start.
#[derive(Debug, Default)]
pub(crate) struct Announced(Vec<Option<Tier>>);

impl Announced {
    /// The tier last told of a row.
    pub(crate) fn get(&self, id: DocId) -> Option<Tier> {
        self.0.get(id as usize).copied().flatten()
    }

    /// Notes the tier told of a row.
    pub(crate) fn set(&mut self, id: DocId, tier: Tier) {
        let at = id as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(tier);
    }
}
