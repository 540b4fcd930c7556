//! State between the sweep, the writer and those who ask for a sweep.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

/// State of the sweep.
#[derive(Default)]
pub(crate) struct SweepState {
    /// True if a sweep may still find something to drop. Without sweeps there is nothing.
    pub(crate) can_free: AtomicBool,
    /// The time up to which moves between tiers were announced; microseconds since 1970.
    pub(crate) swept: AtomicI64,
    /// Bytes too many on the disk, for the next sweep to make room for, once.
    pub(crate) bytes_to_free: AtomicU64,
    /// True if a sweep was asked for: one that was not gives way to it.
    pub(crate) is_asked: AtomicBool,
}

impl SweepState {
    /// The state of a store that was swept last at `swept`.
    pub(crate) fn after(swept: i64) -> Self {
        Self { swept: AtomicI64::new(swept), ..Self::default() }
    }
}
