//! The Lamport clock of a field.
//!
//! Each operation advances it, and a message of a later epoch takes it along. What is stored is a lease: an epoch that no answer
//! passes before the next lease is durable. So a start after a power cut goes on above every epoch that was ever answered.

use std::time::{Duration, Instant};

/// Epochs that are leased at a time.
pub(crate) const LEASE: u64 = 1024;
/// Largest epoch: the largest integer that every JSON parser keeps, less one lease.
pub(crate) const LAST: u64 = (1 << 53) - 1 - LEASE;
/// Most epochs that messages may take the clock ahead in an hour, all together: agents bring epochs of other fields. So it
/// takes 239 years to use the clock up.
pub(crate) const LEAP: u64 = 1 << 32;
/// Most that a message may which is of no registered agent.
pub(crate) const LEAP_OF_STRANGERS: u64 = 1 << 24;
/// The leap that counts for nothing: with ten thousand of these a second, the clock lasts for a century.
const STEP: u64 = 1 << 8;
/// The time for which [`LEAP`] is.
const HOUR: Duration = Duration::from_secs(3600);

/// The epochs that messages have taken the clock ahead in an hour. A start begins again.
#[derive(Debug, Default)]
pub(crate) struct ClockAdvances {
    began: Option<Instant>,
    taken: u64,
}

impl ClockAdvances {
    /// Returns how far the next message may take the clock ahead, if its sender may take it so far.
    pub(crate) fn open(&mut self, now: Instant, most: u64) -> u64 {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= HOUR) {
            *self = Self { began: Some(now), taken: 0 };
        }
        most.min(LEAP.saturating_sub(self.taken).max(STEP))
    }

    /// Counts how far a message has taken the clock.
    pub(crate) fn take(&mut self, from: u64, to: u64) {
        let leap = to.saturating_sub(from);
        if leap > STEP {
            self.taken = self.taken.saturating_add(leap);
        }
    }
}

/// The clock ran over, or a message would have it do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow;

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clock {
    now: u64,
    leased: u64,
}

impl Clock {
    /// Returns the clock as it is after a start: nothing above the lease was ever answered.
    pub(crate) fn resumed(leased: u64) -> Self {
        Self { now: leased, leased }
    }

    /// Returns the last epoch.
    pub(crate) fn now(self) -> u64 {
        self.now
    }

    /// Returns the epoch up to which answers may go.
    pub(crate) fn leased(self) -> u64 {
        self.leased
    }

    /// Returns the epoch of an operation whose message has this one: `max(local, received) + 1`.
    ///
    /// It may be `leap` ahead.
    ///
    /// # Errors
    /// [`Overflow`]; the clock stays as it is.
    pub(crate) fn after(self, received: u64, leap: u64) -> Result<u64, Overflow> {
        if received > self.now.saturating_add(leap) {
            return Err(Overflow);
        }
        let next = self.now.max(received) + 1;
        if next > LAST { Err(Overflow) } else { Ok(next) }
    }

    /// Returns the lease that covers an epoch: the one in force, or the next.
    pub(crate) fn lease_for(self, epoch: u64) -> u64 {
        if epoch < self.leased { self.leased } else { epoch + LEASE }
    }

    /// Takes back a lease that was not written. Epochs stay: one may have been answered.
    pub(crate) fn lease_back(&mut self, leased: u64) {
        self.leased = leased;
    }

    /// Goes to an epoch under a lease that is durable.
    pub(crate) fn go_to(&mut self, epoch: u64, leased: u64) {
        self.now = self.now.max(epoch);
        self.leased = self.leased.max(leased);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_draft() {
        let clock = Clock::default();
        assert_eq!(clock.after(1, LEAP), Ok(2));
        let mut later = Clock::default();
        later.go_to(3, 2000);
        assert_eq!((later.after(10, LEAP), later.after(0, LEAP)), (Ok(11), Ok(4)));
    }

    #[test]
    fn it_does_not_run_over() {
        assert_eq!(Clock::default().after(u64::MAX, LEAP), Err(Overflow));
        assert_eq!(Clock::default().after(LEAP + 1, LEAP), Err(Overflow));
        assert_eq!(Clock::resumed(LAST).after(0, LEAP), Err(Overflow));
        assert_eq!(Clock::resumed(LAST - 1).after(LAST - 1, LEAP), Ok(LAST));
    }

    #[test]
    fn strangers_do_not_run_the_clock_out() {
        let (mut clock, mut leaps) = (Clock::default(), ClockAdvances::default());
        let began = Instant::now();
        let hours = 1000;
        for hour in 0..hours {
            let now = began + HOUR * hour;
            // Each message comes from as far ahead as it may.
            for _ in 0..100 {
                let leap = leaps.open(now, LEAP);
                let epoch = clock.after(clock.now() + leap, leap).unwrap();
                leaps.take(clock.now(), epoch);
                clock.go_to(epoch, epoch);
            }
            assert_eq!(leaps.open(now, LEAP), STEP, "the next must be near");
        }
        let years = LAST / (clock.now() / u64::from(hours)) / (24 * 365);
        assert!(years >= 200, "{years}");
    }

    proptest! {
        /// Whatever comes in, epochs rise, and a start at the lease goes on above all of them.
        #[test]
        fn epochs_rise(received in prop::collection::vec(0_u64..10_000, 1..200)) {
            let mut clock = Clock::default();
            let mut last = 0;
            for received in received {
                let epoch = clock.after(received, LEAP).unwrap();
                prop_assert!(epoch > last && epoch > received);
                let leased = clock.lease_for(epoch);
                prop_assert!(leased > epoch);
                clock.go_to(epoch, leased);
                last = epoch;
                prop_assert!(Clock::resumed(clock.leased()).after(0, LEAP).unwrap() > last);
            }
        }
    }
}
