//! Budget of a day: bytes that work which no caller waits for may write to the card.
//!
//! A token bucket that is filled once a day: every byte written takes from it, an acknowledged
//! memory like a compaction; only what no caller waits for asks first: compaction, the merging and expiry of
//! a sweep, access counts. What was written beyond a day's share
//! is owed by the days after, so that the mean holds over any length of time.

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Bytes written today, and the bound on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Budget {
    /// Bytes in a day; 0 for no bound.
    per_day: u64,
    /// Beginning of today; microseconds since 1970 on the store's clock.
    day: i64,
    /// Bytes that count for today.
    today: u64,
    /// Reading of the odometer at the last look.
    seen: u64,
}

impl Budget {
    /// A budget that goes on from what was marked last: `today` bytes since `day`, with an odometer
    /// that begins at zero.
    pub(crate) fn new(per_day: u64, day: i64, today: u64) -> Self {
        Self { per_day, day, today, seen: 0 }
    }

    /// Takes over how many bytes were written by `now` (microseconds since 1970). A clock that
    /// stands still, or goes back, keeps the day as it is.
    pub(crate) fn account(&mut self, written: u64, now: i64) {
        let begun = now.div_euclid(DAY) * DAY;
        if begun > self.day {
            let days = u64::try_from((begun - self.day) / DAY).unwrap_or(0);
            // Without a bound nothing is owed.
            let paid = if self.per_day == 0 { u64::MAX } else { self.per_day.saturating_mul(days) };
            self.today = self.today.saturating_sub(paid);
            self.day = begun;
        }
        self.today = self.today.saturating_add(written.saturating_sub(self.seen));
        self.seen = self.seen.max(written);
    }

    /// Bytes that may be written today by what can wait; all there are if there is no bound.
    pub(crate) fn may_write(&self) -> u64 {
        match self.per_day {
            0 => u64::MAX,
            per_day => per_day.saturating_sub(self.today),
        }
    }

    /// Goes on with another bound. What was written today counts against it.
    pub(crate) fn set_per_day(&mut self, per_day: u64) {
        self.per_day = per_day;
    }

    /// Bytes in a day; 0 for no bound.
    pub(crate) fn per_day(&self) -> u64 {
        self.per_day
    }

    /// Beginning of today; microseconds since 1970.
    pub(crate) fn day(&self) -> i64 {
        self.day
    }

    /// Bytes that count for today, with what is owed from the days before.
    pub(crate) fn today(&self) -> u64 {
        self.today
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_owed_is_paid_before_anything_may_wait_no_longer() {
        let mut budget = Budget::new(100, 0, 0);
        budget.account(250, 5);
        assert_eq!((budget.today(), budget.may_write()), (250, 0));
        budget.account(250, DAY + 5);
        assert_eq!((budget.today(), budget.may_write()), (150, 0));
        budget.account(250, 2 * DAY);
        assert_eq!((budget.today(), budget.may_write()), (50, 50));
        budget.account(260, 2 * DAY + 1);
        assert_eq!(budget.may_write(), 40);
        // A boot in 1970, and a clock that was set at last.
        budget.account(270, 7);
        assert_eq!((budget.day(), budget.may_write()), (2 * DAY, 30));
        budget.account(270, 20_000 * DAY);
        assert_eq!(budget.may_write(), 100);
    }

    #[test]
    fn a_start_goes_on_where_the_last_mark_stood() {
        let mut before = Budget::new(1000, 3 * DAY, 0);
        before.account(400, 3 * DAY + 9);
        let mut after = Budget::new(1000, before.day(), before.today());
        after.account(50, 3 * DAY + 10);
        assert_eq!(after.may_write(), 550);
    }

    proptest! {
        /// Whatever comes in by itself, what can wait never makes it more than a day's share a day.
        #[test]
        fn the_mean_holds_over_any_time(
            per_day in 1u64..1000,
            steps in prop::collection::vec((0i64..DAY, 0u64..300, prop::bool::ANY), 1..200),
        ) {
            let mut budget = Budget::new(per_day, 0, 0);
            let (mut now, mut written) = (0, 0);
            for (later, bytes, can_wait) in steps {
                now += later;
                budget.account(written, now);
                let bytes = if can_wait { bytes.min(budget.may_write()) } else { bytes };
                written += bytes;
                let days = u64::try_from(now / DAY).unwrap() + 1;
                if can_wait && bytes > 0 {
                    prop_assert!(written <= per_day * days, "{written} by day {days}");
                }
            }
        }
    }
}
