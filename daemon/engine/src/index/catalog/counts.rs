//! Counts of versions, by tier and by what became of them, without a walk over all of them.
//!
//! Live versions, forgotten ones and those that a compaction dropped are counted as they come and go. The tier of a
//! record is worked out when it is asked for, so time alone moves it and nothing tells when. So rows are counted in
//! blocks of [`ROWS`]. A count holds until a row of the block changes, or until the first of its records moves; only
//! blocks whose count does not hold are counted again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use omir_core::tier::Tier;

use super::Catalog;
use crate::index::doc::{Doc, DocId};

/// Rows of a block: few, because one access has a whole block counted again; and many, because each block takes
/// 32 bytes.
const ROWS: usize = 128;
/// Most blocks that are counted again in one hold of the catalog: a change waits for it.
const COUNTED_AT_ONCE: usize = 128;

/// Live records by tier, in the order of [`Tier::ALL`].
type ByTier<T> = [T; Tier::ALL.len()];

/// The records of a block in each tier, and the time from and until which that holds; microseconds.
#[derive(Debug, Clone, Copy)]
struct Block {
    tiers: ByTier<u8>,
    from: i64,
    until: i64,
}

const _: () = assert!(ROWS <= u8::MAX as usize, "a block's count fits");

impl Block {
    /// A block that must be counted.
    const STALE: Self = Self { tiers: [0; Tier::ALL.len()], from: i64::MAX, until: i64::MIN };
}

/// Counts of a catalog's rows.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Rows that were forgotten and are still held.
    forgotten: u64,
    /// Rows that no reader may see yet.
    pub(super) staged: u64,
    /// Locked by readers alone; whoever changes the catalog has it to itself.
    blocks: Mutex<Vec<Block>>,
}

impl Counts {
    /// Notes that a row is new, or that its access state or its life changed.
    pub(super) fn changed(&mut self, id: DocId) {
        let blocks = self.blocks.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = blocks.get_mut(id as usize / ROWS) {
            *block = Block::STALE;
        }
    }

    /// Notes that the rule of tiers is another.
    pub(super) fn all_changed(&mut self) {
        self.blocks.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Notes that a row was forgotten.
    pub(super) fn forgot(&mut self) {
        self.forgotten += 1;
    }

    /// Notes that a compaction drops a row.
    pub(super) fn dropped(&mut self, doc: &Doc) {
        self.forgotten -= u64::from(doc.forgotten && !doc.gone);
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A count of live records by tier, under way; see [`Catalog::count_tiers`].
#[derive(Debug)]
pub struct TierCount {
    now: i64,
    next: usize,
    tiers: ByTier<u64>,
}

impl TierCount {
    /// A count of the tiers at `now` (microseconds).
    pub fn at(now: i64) -> Self {
        Self { now, next: 0, tiers: [0; Tier::ALL.len()] }
    }

    /// Counts of records in each tier, in the order of [`Tier::ALL`].
    pub fn tiers(&self) -> [u64; Tier::ALL.len()] {
        self.tiers
    }
}

impl Catalog {
    /// Counts the versions held that were forgotten.
    pub fn forgotten_count(&self) -> u64 {
        self.counts.forgotten
    }

    /// Counts the versions held.
    pub fn version_count(&self) -> u64 {
        self.docs.len() as u64 - self.gone - self.counts.staged
    }

    /// Goes on with a count; returns true when it is complete. Bounded, so that a change need not wait for all of it.
    pub fn count_tiers(&self, count: &mut TierCount) -> bool {
        let mut blocks = self.counts.blocks();
        let all = self.docs.len().div_ceil(ROWS);
        if blocks.len() < all {
            blocks.resize(all, Block::STALE);
        }
        let mut recounted = 0;
        for block in blocks.iter_mut().take(all).skip(count.next) {
            if !(block.from <= count.now && count.now < block.until) {
                if recounted == COUNTED_AT_ONCE {
                    return false;
                }
                recounted += 1;
                *block = self.count_block(count.next, count.now);
            }
            for (sum, tier) in count.tiers.iter_mut().zip(block.tiers) {
                *sum += u64::from(tier);
            }
            count.next += 1;
        }
        true
    }

    fn count_block(&self, block: usize, now: i64) -> Block {
        let mut counted = Block { tiers: [0; Tier::ALL.len()], from: now, until: i64::MAX };
        let first = block * ROWS;
        let rows = self.docs.get(first..).unwrap_or_default().iter().take(ROWS);
        for (id, doc) in (first as DocId..).zip(rows).filter(|(_, doc)| doc.is_live()) {
            let Some((tier, _)) = self.tier(id, false, now) else { continue };
            counted.tiers[tier as usize] += 1;
            if let (Some(fading), Some(access)) = (&self.fading, self.access(id)) {
                counted.until = counted.until.min(fading.stays_until(doc, &access, now));
            }
        }
        // At the moment of a move a count holds for that moment alone.
        counted.until = counted.until.max(now.saturating_add(1));
        counted
    }
}

#[cfg(test)]
mod tests;
