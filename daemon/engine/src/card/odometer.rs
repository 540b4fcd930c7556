//! Bytes written to the card: since boot, over the life of the store, and today.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use omird_store::Mark;
use parking_lot::Mutex;

use crate::card::budget::Budget;
use crate::disk::Usage;
use crate::time::clock::ClockState;
use crate::time::timeline::Time;

/// The counters of what is written, and the budget that they fill.
pub(crate) struct Odometer {
    time: Arc<Time>,
    /// Bytes written since boot, and bytes on the disk.
    pub(crate) usage: Arc<Usage>,
    /// The time at which the odometers began to count, or 0 if no clock was ever right.
    began: AtomicI64,
    /// Bytes written before this start, over the life of the store.
    pub(crate) written_before: u64,
    /// Bytes of the memories that came in over the life of the store, as stored.
    pub(crate) payload: AtomicU64,
    /// Those of before this start.
    pub(crate) payload_before: u64,
    budget: Mutex<Budget>,
}

impl Odometer {
    /// Counters that go on from `mark`, with a bound on the bytes of a day.
    pub(crate) fn new(time: Arc<Time>, usage: Arc<Usage>, mark: &Mark, per_day: u64) -> Self {
        Self {
            time,
            usage,
            began: AtomicI64::new(mark.began),
            written_before: mark.written,
            payload: AtomicU64::new(mark.payload),
            payload_before: mark.payload,
            budget: Mutex::new(Budget::new(per_day, mark.day, mark.today)),
        }
    }

    /// Fills in the counters of a mark.
    pub(crate) fn fill(&self, mark: &mut Mark) {
        let budget = self.budget();
        mark.written = self.written_over_life();
        mark.began = self.began();
        mark.day = budget.day();
        mark.today = budget.today();
        mark.payload = self.payload.load(Ordering::Relaxed);
    }

    /// Bytes written over the life of the store.
    pub(crate) fn written_over_life(&self) -> u64 {
        self.written_before + self.bytes_written()
    }

    /// Sets the bound on the bytes of a day.
    pub(crate) fn set_per_day(&self, per_day: u64) {
        self.budget.lock().set_per_day(per_day);
    }

    /// Bytes written since boot.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.usage.written.load(Ordering::Relaxed)
    }

    /// The time at which the odometers began to count; microseconds since 1970, or 0 if no clock was right yet.
    pub(crate) fn began(&self) -> i64 {
        let moment = self.time.moment();
        if moment.state != ClockState::Unknown {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            let _ = self.began.compare_exchange(0, moment.now.as_micros(), success, failure);
        }
        self.began.load(Ordering::Acquire)
    }

    /// Returns the budget of today, as of now.
    pub(crate) fn budget(&self) -> Budget {
        let now = self.time.moment().now;
        let mut budget = self.budget.lock();
        budget.account(self.bytes_written(), now.as_micros());
        *budget
    }

    /// Returns true if today's budget leaves anything for what can wait.
    pub(crate) fn may_write_unasked(&self) -> bool {
        self.budget().may_write() > 0
    }
}
