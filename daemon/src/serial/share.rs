//! A bound on the share of a core: who used more has to rest.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The share of a core that a thread may use, more than 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

/// A thread at work.
#[derive(Debug)]
pub struct Turn<M = Thread> {
    share: Share,
    /// What the thread had used when it last rested.
    since: Duration,
    machine: M,
}

/// What work costs, and how to rest. Handed in, so that a test needs no time.
pub trait Machine {
    /// The time of a core used so far. Waiting is no work.
    fn used(&self) -> Duration;
    /// Lets so much time pass.
    fn rest(&self, owed: Duration);
}

/// The thread that asks.
#[derive(Debug, Clone, Copy)]
pub struct Thread;

impl Machine for Thread {
    fn used(&self) -> Duration {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(used.tv_sec.try_into().unwrap_or(0), used.tv_nsec.try_into().unwrap_or(0))
    }

    fn rest(&self, owed: Duration) {
        std::thread::sleep(owed);
    }
}

/// Work that is done before there is a rest: less is not worth waking up for.
const STRETCH: Duration = Duration::from_millis(5);

impl Share {
    /// `share` of a core; what is outside (0, 1] is taken as 1.
    pub fn new(share: f64) -> Share {
        Share(if share > 0.0 && share < 1.0 { share } else { 1.0 })
    }

    /// Work begins, on this thread.
    pub fn begin(self) -> Turn {
        self.begin_on(Thread)
    }

    fn begin_on<M: Machine>(self, machine: M) -> Turn<M> {
        Turn { share: self, since: machine.used(), machine }
    }

    /// How long to rest after so much work.
    fn owed(self, worked: Duration) -> Duration {
        worked.mul_f64(1.0 / self.0 - 1.0)
    }
}

impl<M: Machine> Turn<M> {
    /// Rests for what was worked since the last rest.
    pub fn rest(&mut self) {
        self.rest_after(Duration::ZERO);
    }

    /// The same, once it is worth it: for loops with little work in each turn.
    pub fn rest_if_due(&mut self) {
        self.rest_after(STRETCH);
    }

    fn rest_after(&mut self, least: Duration) {
        let worked = self.machine.used().saturating_sub(self.since);
        if worked < least {
            return;
        }
        let owed = self.share.owed(worked).min(Duration::from_secs(60));
        if !owed.is_zero() {
            self.machine.rest(owed);
        }
        self.since = self.machine.used();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Time that passes only by what is said here, milliseconds.
    #[derive(Default)]
    struct Simulated {
        used: Cell<u64>,
        rested: Cell<u64>,
    }

    impl Machine for &Simulated {
        fn used(&self) -> Duration {
            Duration::from_millis(self.used.get())
        }

        fn rest(&self, owed: Duration) {
            self.rested.set(self.rested.get() + owed.as_millis() as u64);
        }
    }

    #[test]
    fn in_the_long_run_no_more_than_the_share_is_used() {
        for (share, rested) in [(0.25, 3_000), (0.5, 1_000), (0.1, 9_000), (1.0, 0)] {
            let machine = Simulated::default();
            machine.used.set(77_000);
            let mut turn = Share::new(share).begin_on(&machine);
            for _ in 0..1_000 {
                machine.used.set(machine.used.get() + 1);
                turn.rest_if_due();
            }
            turn.rest();
            assert_eq!(machine.rested.get(), rested, "of {share}");
        }
    }

    #[test]
    fn rests_are_neither_tiny_nor_endless() {
        let machine = Simulated::default();
        let mut turn = Share::new(0.25).begin_on(&machine);
        machine.used.set(4);
        turn.rest_if_due();
        assert_eq!(machine.rested.get(), 0);
        machine.used.set(6);
        turn.rest_if_due();
        assert_eq!(machine.rested.get(), 18);
        machine.used.set(100_000);
        turn.rest();
        assert_eq!(machine.rested.get(), 60_018);
    }

    #[test]
    fn a_quarter_of_the_time_means_resting_for_three() {
        let worked = Duration::from_millis(8);
        assert_eq!(Share::new(0.25).owed(worked), Duration::from_millis(24));
        assert_eq!(Share::new(1.0).owed(worked), Duration::ZERO);
        assert_eq!(Share::new(f64::NAN).owed(worked), Duration::ZERO);
        assert_eq!(Share::new(0.0).owed(worked), Duration::ZERO);
    }
}
