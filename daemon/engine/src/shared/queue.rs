//! Counters of the queue to the writer.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of changes.
#[derive(Default)]
pub(crate) struct QueueCounts {
    /// Bytes of the changes that wait.
    pub(crate) bytes: AtomicUsize,
    /// Changes taken into the queue since boot.
    pub(crate) accepted: AtomicU64,
    /// Changes answered since boot.
    pub(crate) committed: AtomicU64,
    /// Requests refused since boot.
    pub(crate) rejected: AtomicU64,
}

impl QueueCounts {
    /// Returns true if no change waits for the writer.
    pub(crate) fn is_idle(&self) -> bool {
        self.accepted.load(Ordering::Acquire) == self.committed.load(Ordering::Acquire)
    }
}
