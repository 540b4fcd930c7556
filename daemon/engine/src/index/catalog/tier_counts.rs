//! Counts of live records by tier, without a walk over all of them.
//!
//! The tier of a record is worked out when it is asked for, so time alone moves it and no event tells of the move. So
//! rows are counted in blocks of [`ROWS`]. A count holds until a row of the block changes, or until the first of its
//! records moves; only blocks whose count does not hold are counted again.

use omir_core::tier::Tier;
use parking_lot::Mutex;

use crate::index::doc::DocId;

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

/// Counts of a catalog's records, by blocks of rows.
#[derive(Debug, Default)]
pub(super) struct TierCounts {
    /// Locked by readers alone; a change of the catalog has it to itself.
    blocks: Mutex<Vec<Block>>,
}

impl TierCounts {
    /// Notes that a row is new, or that its decay state or its life changed.
    pub(super) fn changed(&mut self, id: DocId) {
        let blocks = self.blocks.get_mut();
        if let Some(block) = blocks.get_mut(id as usize / ROWS) {
            *block = Block::STALE;
        }
    }

    /// Notes that the rule of tiers is another.
    pub(super) fn all_changed(&mut self) {
        self.blocks.get_mut().clear();
    }

    /// Goes on with a count over so many rows; returns true when it is complete. `tier` tells the tier of a live
    /// record, and until when it stays there if it is not accessed (microseconds).
    pub(super) fn go_on(
        &self,
        count: &mut TierCount,
        rows: usize,
        tier: impl Fn(DocId) -> Option<(Tier, i64)>,
    ) -> bool {
        let now = count.now;
        let mut blocks = self.blocks.lock();
        let all = rows.div_ceil(ROWS);
        if blocks.len() < all {
            blocks.resize(all, Block::STALE);
        }
        let mut recounted = 0;
        for block in blocks.iter_mut().take(all).skip(count.next) {
            if !(block.from <= now && now < block.until) {
                if recounted == COUNTED_AT_ONCE {
                    return false;
                }
                recounted += 1;
                *block = Block { tiers: [0; Tier::ALL.len()], from: now, until: i64::MAX };
                let first = count.next * ROWS;
                for id in first..rows.min(first + ROWS) {
                    if let Some((tier, until)) = tier(id as DocId) {
                        block.tiers[tier as usize] += 1;
                        block.until = block.until.min(until);
                    }
                }
                // At the moment of a move a count holds for that moment alone.
                block.until = block.until.max(now.saturating_add(1));
            }
            for (sum, tier) in count.tiers.iter_mut().zip(block.tiers) {
                *sum += u64::from(tier);
            }
            count.next += 1;
        }
        true
    }
}

/// A count of live records by tier, under way; see `Catalog::count_tiers`.
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

    /// The time of the count; microseconds.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Numbers of records in each tier, in the order of [`Tier::ALL`].
    pub fn tiers(&self) -> [u64; Tier::ALL.len()] {
        self.tiers
    }
}

#[cfg(test)]
mod tests;
