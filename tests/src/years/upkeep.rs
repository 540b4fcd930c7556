//! Maintenance of an idle store.

use omird::engine::testing::ByHand;
use omird::engine::{CompactionScope, Engine};

use super::card::{Card, Cause};
use crate::Result;

/// Its work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Records that time moved to another tier.
    pub moved: u64,
    /// Observations that became part of another record.
    pub merged: u64,
    /// Memories forgotten because they stopped being valid long ago.
    pub expired: u64,
    /// Memories forgotten to make room.
    pub evicted: u64,
    /// Compactions that replaced segments.
    pub compactions: u64,
    /// Versions that compaction dropped because later ones took their place.
    pub superseded: u64,
    /// Versions that compaction dropped because they were forgotten.
    pub purged: u64,
}

/// Does what is due.
///
/// # Errors
/// If the engine refuses.
pub fn run(engine: &Engine, card: &Card, done: &mut Done) -> Result {
    card.doing(Cause::Sweeps);
    let report = engine.sweep_gently(&|| true)?;
    done.moved += report.moved;
    done.merged += report.merged;
    done.expired += report.expired;
    done.evicted += report.evicted;
    card.doing(Cause::Compaction);
    let compacted = engine.compact(CompactionScope::Due)?;
    done.compactions += u64::from(compacted.bytes_written > 0);
    done.superseded += compacted.superseded;
    done.purged += compacted.forgotten;
    Ok(())
}
