//! What the parts of the engine share besides the catalog.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use omir_core::instant::Timestamp;

use crate::clock::{Clock, ClockState, StoreClock};
use crate::index::key::RefKey;
use crate::store::transaction::Mark;

/// A record that a recall has just used.
#[derive(Debug, Clone)]
pub struct Access {
    /// Its key.
    pub key: RefKey,
    /// `Type/id`.
    pub target: String,
    /// When; microseconds on the store's clock.
    pub at: i64,
}

/// Most accesses that may wait to be counted. A flood of recalls beyond it is not counted: access
/// counts steer forgetting and are no memory themselves.
const MAX_ACCESSES: usize = 100_000;

/// Counters and small state.
pub struct Shared {
    clock: Arc<dyn Clock>,
    latest: AtomicI64,
    accesses: Mutex<Vec<Access>>,
    /// Bytes of the changes that wait.
    pub queued_bytes: AtomicUsize,
    /// Changes taken into the queue since boot.
    pub accepted: AtomicU64,
    /// Changes answered since boot.
    pub committed: AtomicU64,
    /// Requests refused since boot.
    pub rejected: AtomicU64,
    /// Whether the disk was full at the last write.
    pub storage_full: AtomicBool,
    /// Logs that wait to be sealed.
    pub unsealed_logs: AtomicU64,
    /// Segments on disk.
    pub segments: AtomicU64,
    /// Bytes written since boot.
    pub bytes_written: Arc<AtomicU64>,
    /// Bytes written before this start, over the life of the store.
    pub written_before: u64,
    /// Bytes of the memories that came in over the life of the store, as stored.
    pub payload: AtomicU64,
    /// Those of before this start.
    pub payload_before: u64,
    /// Bytes of the kept index.
    pub index_bytes: AtomicU64,
    /// Versions that could not be read since boot.
    pub unreadable: AtomicU64,
}

impl Shared {
    /// State of a store whose history reaches to `latest` and that was last marked with `mark`.
    pub fn new(
        clock: Arc<dyn Clock>,
        latest: Timestamp,
        mark: &Mark,
        bytes_written: Arc<AtomicU64>,
    ) -> Self {
        Self {
            clock,
            latest: AtomicI64::new(latest.as_micros()),
            accesses: Mutex::default(),
            queued_bytes: AtomicUsize::default(),
            accepted: AtomicU64::default(),
            committed: AtomicU64::default(),
            rejected: AtomicU64::default(),
            storage_full: AtomicBool::default(),
            unsealed_logs: AtomicU64::default(),
            segments: AtomicU64::default(),
            bytes_written,
            written_before: mark.written,
            payload: AtomicU64::new(mark.payload),
            payload_before: mark.payload,
            index_bytes: AtomicU64::default(),
            unreadable: AtomicU64::default(),
        }
    }

    /// The store's time, and how far it can be trusted.
    pub fn now(&self) -> (Timestamp, ClockState) {
        let latest = Timestamp::from_micros(self.latest.load(Ordering::Acquire));
        // Whole microseconds, as everything recorded is.
        let wall = Timestamp::from_micros(self.clock.now().as_micros());
        StoreClock::new(latest).read(wall)
    }

    /// Notes that something was recorded at `at`.
    pub fn advance(&self, at: Timestamp) {
        self.latest.fetch_max(at.as_micros(), Ordering::AcqRel);
    }

    /// Where the store stands.
    pub fn mark(&self) -> Mark {
        let (now, _) = self.now();
        Mark {
            now: now.as_micros(),
            written: self.written_before + self.bytes_written.load(Ordering::Relaxed),
            payload: self.payload.load(Ordering::Relaxed),
            ..Mark::default()
        }
    }

    /// Notes accesses, to be counted by the writer.
    pub fn note_accesses(&self, new: impl IntoIterator<Item = Access>) {
        let mut accesses = self.accesses.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_ACCESSES.saturating_sub(accesses.len());
        accesses.extend(new.into_iter().take(room));
    }

    /// Takes what was noted.
    pub fn take_accesses(&self) -> Vec<Access> {
        std::mem::take(&mut *self.accesses.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
