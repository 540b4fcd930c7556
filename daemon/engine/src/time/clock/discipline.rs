//! From what the clocks of a machine show to the time that memories are dated and fade by.
//!
//! A state machine without any input of its own: it is shown readings and holds the *dating* line,
//! the best wall clock known. That line is not the order of the store, which never runs backwards
//! (see `engine/time/timeline.rs`); it may step back, once a clock that follows a better one says so.
//!
//! - While the time is unknown, dating goes on from where it was last known by the monotonic
//!   clock: the time the machine was off is unknown and counts as none.
//! - When the clock is set, dating steps to it. So the time off is accounted for, once.
//! - A clock that may be right is believed when it shows a later time, however much later: a robot
//!   may have been in its box for months. When it shows an earlier one, dating stands still until
//!   the clock has caught up; more than [`TOLERANCE`] earlier, it is not believed at all: a board that
//!   goes on from what it saved an hour ago would stand still for that hour.
//! - A synchronised clock is believed whatever it shows. Only steps up to [`SLACK`] (a leap second,
//!   a daemon that corrects itself) are waited out.

use super::{ClockState, EARLIEST_PLAUSIBLE};

/// A coarse clock this far behind what was known is wrong: a battery died, or there is none and the
/// clock goes on from a file. Microseconds; a minute.
pub(crate) const TOLERANCE: i64 = 60_000_000;

/// Largest difference that is no jump: slewing, a leap second that is repeated. Microseconds.
pub(crate) const SLACK: i64 = 5_000_000;

/// The last second that RFC 3339 can write, 9999-12-31T23:59:59Z. Microseconds.
const LATEST: i64 = 253_402_300_799_000_000;

/// A reading of the clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock; microseconds since 1970.
    pub wall: i64,
    /// Time since the machine started; microseconds.
    pub monotonic: i64,
    /// Trust in the wall clock by itself: without knowing what it showed before.
    pub judged: ClockState,
}

/// The state changed, or dating did not go on as the monotonic clock did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockStep {
    /// The state before.
    pub from: ClockState,
    /// The state from now on.
    pub to: ClockState,
    /// The time; microseconds since the machine started.
    pub monotonic: i64,
    /// The date before the step; microseconds since 1970.
    pub before: i64,
    /// The date after the step; microseconds since 1970.
    pub after: i64,
}

impl ClockStep {
    /// Returns true if dating did not go on as the monotonic clock did.
    pub(crate) fn has_jumped(&self) -> bool {
        self.after.abs_diff(self.before) > SLACK.unsigned_abs()
    }
}

/// Holds the dating line.
#[derive(Debug, Clone)]
pub(crate) struct ClockDiscipline {
    state: ClockState,
    /// Dating as of the last reading; microseconds since 1970.
    dating: i64,
    /// The monotonic clock of the last reading; microseconds.
    monotonic: i64,
}

impl ClockDiscipline {
    /// Goes on from `dating` at `monotonic`; see [`resumed`].
    pub(crate) fn new(dating: i64, monotonic: i64) -> Self {
        Self { state: ClockState::Unknown, dating, monotonic }
    }

    /// Trust in the dates.
    pub(crate) fn state(&self) -> ClockState {
        self.state
    }

    /// Dating as of the last reading; microseconds since 1970.
    pub(crate) fn dating(&self) -> i64 {
        self.dating
    }

    /// The monotonic clock of the last reading; microseconds.
    pub(crate) fn monotonic(&self) -> i64 {
        self.monotonic
    }

    /// Takes a reading in.
    pub(crate) fn observe(&mut self, reading: Reading) -> Option<ClockStep> {
        let Reading { wall, judged, .. } = reading;
        // Readings of several threads may come in another order than they were taken.
        let monotonic = reading.monotonic.max(self.monotonic);
        let predicted = self.dating.saturating_add(monotonic.saturating_sub(self.monotonic));
        // A known time that is waited for stands; an unknown one goes on.
        let reached = if self.state == ClockState::Unknown { predicted } else { self.dating };
        let to = match judged {
            ClockState::Coarse if wall < reached.saturating_sub(TOLERANCE) => ClockState::Unknown,
            judged => judged,
        };
        let after = match to {
            ClockState::Unknown => predicted,
            ClockState::Synchronised if wall < reached.saturating_sub(SLACK) => wall,
            ClockState::Coarse | ClockState::Synchronised => wall.max(reached),
        };
        let from = std::mem::replace(&mut self.state, to);
        self.dating = after;
        self.monotonic = monotonic;
        let step = ClockStep { from, to, monotonic, before: predicted, after };
        (from != to || step.has_jumped()).then_some(step)
    }
}

/// The date at `monotonic` (microseconds since the start of the machine) after it was
/// last known to be `marked.0` at `marked.1` of the same start of the machine, or, if
/// `is_same_boot` is `Some(false)`, of another. Where that cannot be told, as little time as possible
/// is taken to have gone by.
pub(crate) fn resumed(marked: (i64, i64), is_same_boot: Option<bool>, monotonic: i64) -> i64 {
    let (now, at) = marked;
    let since_mark = monotonic.saturating_sub(at).max(0);
    let elapsed = match is_same_boot {
        Some(true) => since_mark,
        Some(false) => monotonic,
        None if monotonic >= at => since_mark,
        None => monotonic,
    };
    // Whatever the store says, it is not earlier than that, nor later than RFC 3339 can write.
    now.saturating_add(elapsed).clamp(EARLIEST_PLAUSIBLE.as_micros(), LATEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000;
    const HOUR: i64 = 3600 * SECOND;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    /// 2026-06-01.
    const DAWN: i64 = 1_780_272_000 * SECOND;

    fn reading(wall: i64, monotonic: i64, judged: ClockState) -> Reading {
        Reading { wall, monotonic, judged }
    }

    use ClockState::{Coarse, Synchronised, Unknown};

    /// A discipline that knew it was [`DAWN`] when the machine began.
    fn discipline() -> ClockDiscipline {
        ClockDiscipline::new(DAWN, 0)
    }

    #[test]
    fn a_boot_in_1970_goes_on_from_what_was_known_and_counts_the_time_off_once() {
        let mut discipline = discipline();
        assert_eq!(discipline.observe(reading(9 * SECOND, 9 * SECOND, Unknown)), None);
        assert_eq!(discipline.dating(), DAWN + 9 * SECOND);
        discipline.observe(reading(HOUR, HOUR, Unknown));
        assert_eq!((discipline.dating(), discipline.state()), (DAWN + HOUR, Unknown));
        let step = discipline.observe(reading(DAWN + 30 * DAY, 2 * HOUR, Coarse)).unwrap();
        assert_eq!((step.from, step.to), (Unknown, Coarse));
        assert_eq!((step.before, step.after), (DAWN + 2 * HOUR, DAWN + 30 * DAY));
        assert_eq!(discipline.observe(reading(DAWN + 30 * DAY + HOUR, 3 * HOUR, Coarse)), None);
        let step =
            discipline.observe(reading(DAWN + 30 * DAY + HOUR, 3 * HOUR, Synchronised)).unwrap();
        assert_eq!(step.before, step.after, "nothing is counted again");
    }

    #[test]
    fn a_flat_battery_is_noticed_by_what_was_known() {
        let mut discipline = discipline();
        discipline.observe(reading(DAWN - 2 * HOUR, SECOND, Coarse));
        assert_eq!((discipline.dating(), discipline.state()), (DAWN + SECOND, Unknown));
        discipline.observe(reading(DAWN - 30 * SECOND, 2 * SECOND, Coarse));
        assert_eq!((discipline.dating(), discipline.state()), (DAWN + 2 * SECOND, Coarse));
        discipline.observe(reading(DAWN - 29 * SECOND, 3 * SECOND, Coarse));
        assert_eq!(discipline.dating(), DAWN + 2 * SECOND, "it waits for the clock");
    }

    #[test]
    fn a_synchronised_clock_wins_over_one_that_was_a_year_ahead() {
        let mut discipline = discipline();
        discipline.observe(reading(DAWN + YEAR, 0, Coarse));
        assert_eq!((discipline.dating(), discipline.state()), (DAWN + YEAR, Coarse));
        // Set right, before anything says that it is synchronised.
        discipline.observe(reading(DAWN, SECOND, Coarse));
        assert_eq!((discipline.dating(), discipline.state()), (DAWN + YEAR + SECOND, Unknown));
        let step = discipline.observe(reading(DAWN, SECOND, Synchronised)).unwrap();
        assert_eq!((step.after, discipline.dating()), (DAWN, DAWN));
        // The clock loses the source that it follows: it is as right as it was.
        discipline.observe(reading(DAWN + SECOND, 2 * SECOND, Coarse));
        assert_eq!((discipline.dating(), discipline.state()), (DAWN + SECOND, Coarse));
    }

    #[test]
    fn a_leap_second_is_waited_out() {
        let mut discipline = discipline();
        discipline.observe(reading(DAWN, 0, Synchronised));
        for (wall, shows) in
            [(0, 0), (SECOND / 2, SECOND / 2), (-SECOND / 2, SECOND / 2), (SECOND, SECOND)]
        {
            let step = discipline.observe(reading(DAWN + wall, SECOND, Synchronised));
            assert_eq!((step, discipline.dating()), (None, DAWN + shows));
        }
    }

    #[test]
    fn a_suspend_is_no_step_and_a_pause_of_the_machine_is_one() {
        let mut discipline = discipline();
        discipline.observe(reading(DAWN, 0, Synchronised));
        assert_eq!(discipline.observe(reading(DAWN + DAY, DAY, Synchronised)), None);
        let step = discipline.observe(reading(DAWN + 3 * DAY, DAY, Synchronised)).unwrap();
        assert_eq!((step.before, step.after), (DAWN + DAY, DAWN + 3 * DAY));
    }

    #[test]
    fn a_recording_that_starts_over_takes_dating_with_it() {
        let mut discipline = discipline();
        discipline.observe(reading(100 * SECOND, 0, Synchronised));
        assert_eq!(discipline.dating(), 100 * SECOND);
        discipline.observe(reading(40 * SECOND, SECOND, Synchronised));
        assert_eq!(discipline.dating(), 40 * SECOND);
    }

    #[test]
    fn a_start_goes_on_by_the_least_time_that_went_by() {
        let marked = (DAWN, HOUR);
        assert_eq!(resumed(marked, Some(true), 3 * HOUR), DAWN + 2 * HOUR, "the same boot");
        assert_eq!(resumed(marked, Some(false), 3 * HOUR), DAWN + 3 * HOUR, "another one");
        assert_eq!(resumed(marked, None, 3 * HOUR), DAWN + 2 * HOUR);
        assert_eq!(resumed(marked, None, HOUR / 2), DAWN + HOUR / 2, "surely another");
        assert_eq!(resumed((0, 0), Some(false), SECOND), EARLIEST_PLAUSIBLE.as_micros());
        assert_eq!(resumed((i64::MAX, i64::MIN), Some(true), i64::MAX), LATEST);
    }

    fn judged() -> impl Strategy<Value = ClockState> {
        prop_oneof![Just(Unknown), Just(Coarse), Just(Synchronised)]
    }

    proptest! {
        #[test]
        fn dating_runs_back_only_where_a_synchronised_clock_says_so(
            readings in prop::collection::vec((any::<i64>(), 0..i64::MAX, judged()), 1..40),
        ) {
            let mut discipline = discipline();
            for (wall, monotonic, judged) in readings {
                let (before, was) = (discipline.dating(), discipline.state());
                let step = discipline.observe(reading(wall, monotonic, judged));
                if discipline.dating() < before {
                    prop_assert_eq!(discipline.state(), Synchronised);
                    prop_assert_eq!(discipline.dating(), wall);
                    prop_assert!(step.is_some(), "somebody is told");
                }
                prop_assert_eq!(step.is_some_and(|step| step.from != step.to), was != discipline.state());
            }
        }

        #[test]
        fn while_nobody_knows_dating_goes_on_as_the_monotonic_clock_does(
            steps in prop::collection::vec((0..DAY, any::<i64>()), 1..40),
        ) {
            let (mut discipline, mut monotonic) = (discipline(), 0);
            for (by, wall) in steps {
                monotonic += by;
                prop_assert_eq!(discipline.observe(reading(wall, monotonic, Unknown)), None);
                prop_assert_eq!(discipline.dating(), DAWN + monotonic);
            }
        }

        /// Boots without a clock, restarts of the daemon and times off, in any order: less than the
        /// true time is counted until the clock is set, and exactly that from then on.
        #[test]
        fn in_the_end_all_time_is_counted_and_none_twice(
            life in prop::collection::vec((0..2 * YEAR, 0..DAY, 0..3u8), 1..30),
        ) {
            let (mut truth, mut booted) = (DAWN, DAWN);
            let mut marked = (DAWN, 0);
            for (off, on, restarts) in life {
                // Power comes back after the time off, with the clock in 1970.
                truth += off;
                let mut is_same_boot = Some(false);
                booted = truth;
                for _ in 0..=restarts {
                    let monotonic = truth - booted;
                    let dating = resumed(marked, is_same_boot, monotonic);
                    let mut discipline = ClockDiscipline::new(dating, monotonic);
                    truth += on;
                    discipline.observe(reading(truth - booted, truth - booted, Unknown));
                    prop_assert!((marked.0 + on..=truth).contains(&discipline.dating()));
                    marked = (discipline.dating(), truth - booted);
                    is_same_boot = Some(true);
                }
            }
            let mut discipline = ClockDiscipline::new(marked.0, marked.1);
            discipline.observe(reading(truth, truth - booted, Synchronised));
            prop_assert_eq!(discipline.dating(), truth);
        }
    }
}
