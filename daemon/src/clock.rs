//! What time it is, handed in: nothing below the program reads the system's clock by itself.

use std::time::{SystemTime, UNIX_EPOCH};

use omir_core::instant::Timestamp;

/// A source of wall-clock time. It may be wrong and may jump; see [`StoreClock`].
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, in UTC.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        };
        Timestamp::from_micros(micros)
    }
}

/// No omird was built before this instant (2026-01-01T00:00:00Z): an earlier wall clock is unset.
pub const EARLIEST_PLAUSIBLE: Timestamp = Timestamp::from_unix(1_767_225_600, 0);

/// How far the wall clock can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockState {
    /// The wall clock shows a time before omird existed (a board without a battery clock).
    Unknown,
    /// The wall clock is plausible but behind what the store has already seen.
    Behind,
    /// The wall clock is plausible and ahead of everything recorded.
    Plausible,
}

impl ClockState {
    /// The name shown in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Behind => "behind",
            Self::Plausible => "plausible",
        }
    }
}

/// The store's own time line: the wall clock, but never before what was already recorded.
///
/// A board that boots in 1970 must neither date a new memory before the old ones nor find every
/// old memory unfaded, so its time stands at the last recorded instant until the clock is set.
#[derive(Debug, Clone, Copy)]
pub struct StoreClock {
    latest: Timestamp,
}

impl StoreClock {
    /// A time line that has already reached `latest`.
    pub fn new(latest: Timestamp) -> Self {
        Self { latest }
    }

    /// The time to use for `wall`, and how it was judged. Never decreases.
    pub fn read(&self, wall: Timestamp) -> (Timestamp, ClockState) {
        if wall < EARLIEST_PLAUSIBLE {
            (self.latest.max(wall), ClockState::Unknown)
        } else if wall < self.latest {
            (self.latest, ClockState::Behind)
        } else {
            (wall, ClockState::Plausible)
        }
    }

    /// Notes that something was recorded at `at`.
    pub fn advance(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_in_1970_stands_at_the_last_recorded_instant() {
        let recorded = Timestamp::from_unix(1_780_000_000, 0);
        let clock = StoreClock::new(recorded);
        assert_eq!(clock.read(Timestamp::from_unix(12, 0)), (recorded, ClockState::Unknown));
        let later = Timestamp::from_unix(1_780_000_060, 0);
        assert_eq!(clock.read(later), (later, ClockState::Plausible));
    }

    #[test]
    fn a_clock_set_back_does_not_run_backwards() {
        let recorded = Timestamp::from_unix(1_790_000_000, 0);
        let clock = StoreClock::new(recorded);
        let earlier = Timestamp::from_unix(1_780_000_000, 0);
        assert_eq!(clock.read(earlier), (recorded, ClockState::Behind));
    }
}
