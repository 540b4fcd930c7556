//! A bound on the share of a core that is used for a port, by all of its threads together.
//!
//! Work is paid for when it is done: each stretch of it puts off the moment from which the port may work again.
//! A thread that begins waits for that moment, and one that works long rests in between.
//!
//! Invariant 33 of ARCHITECTURE.md.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::engine::keep_scans_on_this_thread;

/// The share of a core that may be used, more than 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

impl Share {
    /// `share` of a core; what is outside (0, 1] is taken as 1.
    pub fn new(share: f64) -> Share {
        Share(if share > 0.0 && share < 1.0 { share } else { 1.0 })
    }

    /// Returns the time that so much work takes with the rest it owes.
    fn whole(self, worked: Duration) -> Duration {
        worked.mul_f64(1.0 / self.0).min(worked + MOST_REST)
    }
}

/// Work that is done before there is a rest: less is not worth waking up for.
const STRETCH: Duration = Duration::from_millis(5);
/// The longest rest.
const MOST_REST: Duration = Duration::from_secs(60);

/// State shared by the threads of a port.
#[derive(Debug, Clone)]
pub struct Budget {
    share: Share,
    /// From when on work is paid for, on the clock of [`Machine::now`].
    free_at: Arc<Mutex<Duration>>,
}

/// A thread at work. What it did is paid for when this is dropped, at the latest.
#[derive(Debug)]
pub struct BudgetGuard<M: Machine = Thread> {
    budget: Budget,
    /// The thread's use when it last paid.
    since: Duration,
    machine: M,
}

/// Clock and rest of a thread. Handed in, so that a test needs no time.
pub trait Machine {
    /// Time since any fixed moment, the same for all threads.
    fn now(&self) -> Duration;
    /// The time of a core used so far. Waiting is no work.
    fn used(&self) -> Duration;
    /// Lets so much time pass.
    fn rest(&self, owed: Duration);
}

/// The thread that asks.
#[derive(Debug, Clone, Copy)]
pub struct Thread;

impl Thread {
    fn clock(id: ClockId) -> Duration {
        let time = clock_gettime(id);
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    }
}

impl Machine for Thread {
    fn now(&self) -> Duration {
        Thread::clock(ClockId::Monotonic)
    }

    fn used(&self) -> Duration {
        Thread::clock(ClockId::ThreadCPUTime)
    }

    fn rest(&self, owed: Duration) {
        std::thread::sleep(owed);
    }
}

impl Budget {
    /// Of a port that nothing was done for yet.
    pub fn new(share: Share) -> Budget {
        Budget { share, free_at: Arc::default() }
    }

    /// Work begins on this thread, after the rest that is owed for what was done before.
    pub fn begin(&self) -> BudgetGuard {
        let turn = self.begin_at_once();
        turn.wait();
        turn
    }

    /// The same without a rest, for a thread with other things to do: see [`BudgetGuard::finish`].
    pub fn begin_at_once(&self) -> BudgetGuard {
        // Work of helper threads would count for no port.
        keep_scans_on_this_thread();
        self.begin_on(Thread)
    }

    pub(super) fn begin_on<M: Machine>(&self, machine: M) -> BudgetGuard<M> {
        BudgetGuard { budget: self.clone(), since: machine.used(), machine }
    }
}

impl<M: Machine> BudgetGuard<M> {
    /// Rests for what was worked since the last rest.
    pub fn rest(&mut self) {
        self.pay();
        self.wait();
    }

    /// The same, once it is worth it: for loops with little work in each turn.
    pub fn rest_if_due(&mut self) {
        if self.machine.used().saturating_sub(self.since) >= STRETCH {
            self.rest();
        }
    }

    /// Ends the work; how long the port is to rest, which the caller sees to.
    pub fn finish(mut self) -> Duration {
        self.pay();
        self.owed()
    }

    fn pay(&mut self) {
        let used = self.machine.used();
        let worked = used.saturating_sub(self.since);
        self.since = used;
        let begun = self.machine.now().saturating_sub(worked);
        let mut free_at = self.budget.free_at.lock();
        *free_at = begun.max(*free_at) + self.budget.share.whole(worked);
    }

    fn owed(&self) -> Duration {
        let free_at = *self.budget.free_at.lock();
        free_at.saturating_sub(self.machine.now())
    }

    fn wait(&self) {
        let owed = self.owed().min(MOST_REST);
        if !owed.is_zero() {
            self.machine.rest(owed);
        }
    }
}

impl<M: Machine> Drop for BudgetGuard<M> {
    fn drop(&mut self) {
        self.pay();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Time that passes only by what is said here, milliseconds.
    #[derive(Default)]
    struct Simulated {
        now: Cell<u64>,
        used: Cell<u64>,
        rested: Cell<u64>,
    }

    impl Simulated {
        fn work(&self, millis: u64) {
            self.now.set(self.now.get() + millis);
            self.used.set(self.used.get() + millis);
        }
    }

    impl Machine for &Simulated {
        fn now(&self) -> Duration {
            Duration::from_millis(self.now.get())
        }

        fn used(&self) -> Duration {
            Duration::from_millis(self.used.get())
        }

        fn rest(&self, owed: Duration) {
            self.rested.set(self.rested.get() + owed.as_millis() as u64);
            self.now.set(self.now.get() + owed.as_millis() as u64);
        }
    }

    #[test]
    fn in_the_long_run_no_more_than_the_share_is_used() {
        for (share, rested) in [(0.25, 3_000), (0.5, 1_000), (0.1, 9_000), (1.0, 0)] {
            let machine = Simulated::default();
            machine.used.set(77_000);
            let mut turn = Budget::new(Share::new(share)).begin_on(&machine);
            for _ in 0..1_000 {
                machine.work(1);
                turn.rest_if_due();
            }
            turn.rest();
            assert_eq!(machine.rested.get(), rested, "of {share}");
        }
    }

    #[test]
    fn many_short_commands_pay_as_one_long_one() {
        let machine = Simulated::default();
        let budget = Budget::new(Share::new(0.25));
        for _ in 0..1_000 {
            let turn = budget.begin_on(&machine);
            turn.wait();
            machine.work(1);
        }
        assert_eq!(machine.rested.get(), 999 * 3);
    }

    #[test]
    fn threads_at_the_same_time_share_it() {
        let machine = Simulated::default();
        let budget = Budget::new(Share::new(0.25));
        let turns = [(); 4].map(|()| budget.begin_on(&machine));
        // Each worked ten milliseconds, at the same time on a core of its own.
        machine.work(10);
        drop(turns);
        assert_eq!(budget.begin_on(&machine).owed(), Duration::from_millis(150));
        machine.now.set(160);
        assert_eq!(budget.begin_on(&machine).owed(), Duration::ZERO);
        // Unused time is not saved up.
        machine.now.set(10_000);
        let turn = budget.begin_on(&machine);
        machine.work(10);
        assert_eq!(turn.finish(), Duration::from_millis(30));
    }

    #[test]
    fn rests_are_neither_tiny_nor_endless() {
        let machine = Simulated::default();
        let mut turn = Budget::new(Share::new(0.25)).begin_on(&machine);
        machine.work(4);
        turn.rest_if_due();
        assert_eq!(machine.rested.get(), 0);
        machine.work(2);
        turn.rest_if_due();
        assert_eq!(machine.rested.get(), 18);
        machine.work(100_000);
        turn.rest();
        assert_eq!(machine.rested.get(), 60_018);
    }

    #[test]
    fn a_quarter_of_the_time_means_resting_for_three() {
        let worked = Duration::from_millis(8);
        assert_eq!(Share::new(0.25).whole(worked), Duration::from_millis(32));
        for all in [1.0, f64::NAN, 0.0] {
            assert_eq!(Share::new(all).whole(worked), worked);
        }
    }
}
