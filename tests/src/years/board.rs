//! The robot's computer: what its clock shows, which is not always what time it is.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use std::time::Duration;

use omir_core::instant::Timestamp;
use omird::engine::Clock;

/// Microseconds of one second, minute, hour and day.
pub const SECOND: i64 = 1_000_000;
#[allow(missing_docs)]
pub const MINUTE: i64 = 60 * SECOND;
#[allow(missing_docs)]
pub const HOUR: i64 = 60 * MINUTE;
#[allow(missing_docs)]
pub const DAY: i64 = 24 * HOUR;

/// The source of a computer's time after a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A battery kept the clock.
    WithClock,
    /// It begins in 1970 and is set by the network after so many microseconds.
    SetAfter(i64),
    /// It begins in 1970 and is not set before the power goes again.
    NeverSet,
}

/// The computer's clock.
#[derive(Debug)]
pub struct Board {
    /// The true time; microseconds since 1970.
    truth: AtomicI64,
    /// The start of the computer, in true time.
    started: AtomicI64,
    /// From when on its clock is right, in truth.
    right_from: AtomicI64,
    starts: AtomicU64,
}

impl Board {
    /// A computer that has not started yet, at this instant.
    pub fn new(truth: i64) -> Self {
        Self {
            truth: AtomicI64::new(truth),
            started: AtomicI64::new(truth),
            right_from: AtomicI64::new(truth),
            starts: AtomicU64::new(0),
        }
    }

    /// Time passes until `truth`.
    pub fn pass(&self, truth: i64) {
        self.truth.store(truth, Ordering::Release);
    }

    /// Starts.
    pub fn start(&self, start: Start) {
        let truth = self.truth();
        self.started.store(truth, Ordering::Release);
        let right_from = match start {
            Start::WithClock => truth,
            Start::SetAfter(micros) => truth + micros,
            Start::NeverSet => i64::MAX,
        };
        self.right_from.store(right_from, Ordering::Release);
        self.starts.fetch_add(1, Ordering::AcqRel);
    }

    /// The true time; microseconds since 1970.
    pub fn truth(&self) -> i64 {
        self.truth.load(Ordering::Acquire)
    }

    /// Returns true if the clock shows it.
    pub fn is_right(&self) -> bool {
        self.truth() >= self.right_from.load(Ordering::Acquire)
    }
}

impl Clock for Board {
    fn now(&self) -> Timestamp {
        let truth = self.truth();
        let since_start = truth - self.started.load(Ordering::Acquire);
        Timestamp::from_micros(if self.is_right() { truth } else { since_start })
    }

    fn monotonic(&self) -> Duration {
        let since_start = self.truth() - self.started.load(Ordering::Acquire);
        Duration::from_micros(since_start.unsigned_abs())
    }

    fn boot_id(&self) -> String {
        format!("boot-{}", self.starts.load(Ordering::Acquire))
    }

    fn is_synchronised(&self) -> bool {
        // A clock that a battery kept may be right, but follows a better one only a while later.
        let since_start = self.truth() - self.started.load(Ordering::Acquire);
        self.is_right() && since_start >= MINUTE
    }
}
