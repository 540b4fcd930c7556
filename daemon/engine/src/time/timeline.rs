//! The two time lines of a store.
//!
//! *Order* stamps what is recorded. It never runs backwards, across starts and whatever the clocks
//! do: it is a hybrid logical clock (Kulkarni et al. 2014) without the counter, which the number of
//! the transaction is. *Dating* is the best wall clock known, by which memories are dated and fade.
//! It may step; what was dated before a step is listed until it is put right: see [`UntrustedInterval`] and
//! `engine/write/redate.rs`.

mod intervals;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use omird_store::{Mark, Stamps, UntrustedInterval};
use parking_lot::{Mutex, MutexGuard};

use crate::time::clock::{Clock, ClockDiscipline, ClockState, ClockStep, Source, resumed};
use crate::time::uncertainty::ClockUncertainty;

/// Between its last mark and a cut a store can have recorded for so long; microseconds.
const UNMARKED: i64 = 3_600_000_000;

/// Both time lines, and what they are made of, at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Dating.
    pub now: Timestamp,
    /// Trust in the dates.
    pub state: ClockState,
    /// Reading of the wall clock; microseconds since 1970.
    pub wall: i64,
    /// Since the start of the machine; microseconds.
    pub monotonic: i64,
}

/// A step of dating that the writer has to act on.
#[derive(Debug, Clone)]
pub(crate) struct Adjustment {
    /// The step of the clock.
    pub step: ClockStep,
    /// The intervals that can be put right by it.
    pub correctable: Vec<UntrustedInterval>,
    /// The intervals as they were before.
    was: Vec<UntrustedInterval>,
}

/// While nothing says that the clock is right, the time that what cannot be undone goes by catches up
/// with dating so many times faster than time passes: a week off in three and a half hours, a year
/// that was never lived in a week. A robot that is on for half an hour a day keeps up.
const CATCH_UP: i64 = 48;

struct Lines {
    discipline: ClockDiscipline,
    /// The time that what cannot be undone goes by, and when that was on the monotonic clock.
    certain: (i64, i64),
    untrusted: Vec<UntrustedInterval>,
    adjustments: VecDeque<Adjustment>,
    /// The last jump of the dates; microseconds.
    last_step: i64,
}

/// The time of a running store.
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    boot_id: String,
    /// Starts of the daemon, this one included.
    boot: u64,
    /// The latest instant anything was recorded at; microseconds.
    latest: AtomicI64,
    lines: Mutex<Lines>,
    stamps: Mutex<Stamps>,
    /// Versions made since boot because the clock was set.
    pub corrected: AtomicU64,
    /// Versions known to wait for that.
    pub to_correct: AtomicU64,
    /// Batches of them on their way to the disk.
    pub in_flight: AtomicU64,
    /// True if one of these was refused.
    pub refused: AtomicBool,
}

impl Time {
    /// The time of a store at its start number `boot`, whose history reaches to `latest` and that
    /// was last marked with `mark`.
    pub(crate) fn new(clock: Arc<dyn Clock>, boot: u64, latest: Timestamp, mark: &Mark) -> Self {
        let boot_id = clock.boot_id();
        let reading = clock.read();
        let has_names = !boot_id.is_empty() && !mark.boot_id.is_empty();
        let is_same_boot = has_names.then(|| boot_id == mark.boot_id);
        let latest = latest.as_micros();
        // A little time may have gone by between the last mark and the last thing recorded.
        let is_behind =
            is_same_boot != Some(true) && (0..=UNMARKED).contains(&latest.saturating_sub(mark.now));
        let now = if mark.now == 0 || is_behind { latest } else { mark.now };
        let dating = resumed((now, mark.monotonic), is_same_boot, reading.monotonic);
        let mut untrusted = mark.untrusted.clone();
        // Memories of a boot that ended without a clock cannot be dated any better.
        untrusted.retain(|interval| interval.after.is_some() || is_same_boot == Some(true));
        let lines = Lines {
            discipline: ClockDiscipline::new(dating, reading.monotonic),
            certain: (0, reading.monotonic),
            untrusted,
            adjustments: VecDeque::new(),
            last_step: 0,
        };
        let time = Self {
            clock,
            boot_id,
            boot,
            latest: AtomicI64::new(latest),
            lines: Mutex::new(lines),
            stamps: Mutex::default(),
            corrected: AtomicU64::default(),
            to_correct: AtomicU64::default(),
            in_flight: AtomicU64::default(),
            refused: AtomicBool::default(),
        };
        {
            let (moment, mut lines) = time.look();
            lines.certain.0 = match (mark.certain, mark.now) {
                // A store without a past has nothing to lose.
                (0, 0) => moment.now.as_micros().max(latest),
                (0, now) => now,
                (certain, _) => certain,
            };
            if mark.now == 0 {
                // Nothing was known that a step could be told from.
                lines.last_step = 0;
            }
        }
        time
    }

    /// The same, where it is known when stamps of a time to come were given out.
    pub(crate) fn knowing(self, stamps: Stamps) -> Self {
        Self { stamps: Mutex::new(stamps), ..self }
    }

    /// Reads the clocks.
    fn look(&self) -> (Moment, MutexGuard<'_, Lines>) {
        let mut lines = self.lines.lock();
        let reading = self.clock.read();
        let step = lines.discipline.observe(reading);
        let moment = Moment {
            now: Timestamp::from_micros(lines.discipline.dating()),
            state: lines.discipline.state(),
            wall: reading.wall,
            monotonic: lines.discipline.monotonic(),
        };
        if let Some(step) = step {
            self.record_step(&mut lines, step);
        } else if moment.state == ClockState::Unknown {
            self.begin_unknown(&mut lines);
        }
        (moment, lines)
    }

    /// Dating now, and what goes with it.
    pub(crate) fn moment(&self) -> Moment {
        self.look().0
    }

    /// The order stamp of what is recorded now. After a clock that was far ahead one stamp follows the
    /// other, for as long as it takes to get there: then only they tell what came when.
    pub(crate) fn order(&self) -> Timestamp {
        let latest = self.latest.load(Ordering::Acquire);
        let now = self.moment().now.as_micros();
        let is_far = latest.saturating_sub(now) > Stamps::AHEAD;
        Timestamp::from_micros(now.max(latest.saturating_add(i64::from(is_far))))
    }

    /// Latest time at which the bearer of an order stamp was recorded, by the time that history is kept by;
    /// both in microseconds.
    pub(crate) fn recorded_by(&self, stamp: i64) -> i64 {
        self.stamps.lock().given_by(stamp)
    }

    /// The time for what cannot be undone: expiry, and letting go of history. It is dating where a
    /// synchronised clock shows that, and never ahead of it; a clock that only may be right moves it
    /// by little, so that one which is a year ahead has lost nothing by the time it is found out.
    pub(crate) fn certain(&self) -> Timestamp {
        let (moment, mut lines) = self.look();
        Timestamp::from_micros(self.certain_at(&moment, &mut lines))
    }

    /// The time that history is kept by: that of order, by which it is stamped, as far as it is
    /// certain.
    pub(crate) fn history(&self) -> Timestamp {
        self.order().min(self.certain())
    }

    fn certain_at(&self, moment: &Moment, lines: &mut Lines) -> i64 {
        let (now, monotonic) = (moment.now.as_micros(), moment.monotonic);
        let (certain, since) = lines.certain;
        let is_told = moment.state == ClockState::Synchronised || self.is_simulated();
        let lived = monotonic.saturating_sub(since).max(0).saturating_mul(CATCH_UP);
        let certain = if is_told { now } else { certain.saturating_add(lived).min(now) };
        lines.certain = (certain, monotonic);
        certain
    }

    /// Notes that something was recorded at `at`.
    pub(crate) fn advance(&self, at: Timestamp) {
        self.latest.fetch_max(at.as_micros(), Ordering::AcqRel);
    }

    /// Dating less the monotonic clock, unless a step is still to be acted on.
    pub(crate) fn stable_offset(&self) -> Option<i64> {
        let (moment, lines) = self.look();
        lines
            .adjustments
            .is_empty()
            .then(|| moment.now.as_micros().saturating_sub(moment.monotonic))
    }

    /// The next step to act on, if there is one.
    pub(crate) fn next_adjustment(&self) -> Option<Adjustment> {
        self.look().1.adjustments.pop_front()
    }

    /// The note for a memory that comes in now, if the time is unknown.
    pub(crate) fn uncertainty_now(&self, moment: &Moment) -> Option<ClockUncertainty> {
        (moment.state == ClockState::Unknown).then(|| ClockUncertainty {
            boot: Some(self.boot),
            boot_id: self.boot_id.clone(),
            monotonic: moment.monotonic,
            wall: moment.wall,
            stamped: false,
        })
    }

    /// Returns true if the time comes from outside the machine.
    pub(crate) fn is_simulated(&self) -> bool {
        self.clock.source() == Source::Simulated
    }

    /// Writes into a mark what time it is.
    pub(crate) fn fill(&self, mark: &mut Mark) {
        let (moment, mut lines) = self.look();
        mark.certain = self.certain_at(&moment, &mut lines);
        let latest = self.latest.load(Ordering::Acquire);
        let mut stamps = self.stamps.lock();
        stamps.note(latest, mark.certain);
        mark.boot_id.clone_from(&self.boot_id);
        match lines.adjustments.front() {
            None => {
                mark.now = moment.now.as_micros();
                mark.monotonic = moment.monotonic;
                mark.untrusted.clone_from(&lines.untrusted);
            }
            // Changes of access states by a step are journaled with it or not at all. Until then the
            // store stands where it stood before.
            Some(Adjustment { step, was, .. }) => {
                mark.now = step.before;
                mark.monotonic = step.monotonic;
                mark.untrusted.clone_from(was);
            }
        }
    }

    /// For `status`.
    pub(crate) fn status(&self) -> Map {
        let (moment, lines) = self.look();
        let seconds =
            |micros: i64| Number::from_f64(micros as f64 / 1e6).map_or(Value::Null, Value::Number);
        let count = |n: &AtomicU64| Value::Number(Number::from(n.load(Ordering::Relaxed)));
        let mut map = Map::new();
        map.insert("state", moment.state.as_str());
        map.insert("now", moment.now.to_string());
        map.insert("source", self.clock.source().as_str());
        map.insert("boot", Value::Number(Number::from(self.boot)));
        map.insert("bootId", self.boot_id.as_str());
        map.insert("monotonicSeconds", seconds(moment.monotonic));
        map.insert("offsetSeconds", seconds(moment.wall.saturating_sub(moment.now.as_micros())));
        map.insert("steppedBySeconds", seconds(lines.last_step));
        let is_correcting = lines.untrusted.iter().any(|interval| interval.after.is_some());
        map.insert("settling", Value::Bool(is_correcting));
        map.insert("corrected", count(&self.corrected));
        map.insert("toCorrect", count(&self.to_correct));
        map
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::intervals::MAX_UNTRUSTED;
    use super::*;

    /// 2026-06-01.
    const DAWN: i64 = 1_780_272_000_000_000;
    const DAY: i64 = 86_400_000_000;

    #[derive(Default)]
    struct TestClock {
        wall: AtomicI64,
        monotonic: AtomicU64,
        is_synchronised: AtomicBool,
    }

    impl TestClock {
        fn set(&self, wall: i64, by: u64, is_synchronised: bool) {
            self.wall.store(wall, Ordering::Relaxed);
            self.monotonic.fetch_add(by, Ordering::Relaxed);
            self.is_synchronised.store(is_synchronised, Ordering::Relaxed);
        }
    }

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.wall.load(Ordering::Relaxed))
        }

        fn monotonic(&self) -> Duration {
            Duration::from_micros(self.monotonic.load(Ordering::Relaxed))
        }

        fn boot_id(&self) -> String {
            "a boot".to_owned()
        }

        fn is_synchronised(&self) -> bool {
            self.is_synchronised.load(Ordering::Relaxed)
        }
    }

    fn marked(time: &Time) -> Mark {
        let mut mark = Mark::default();
        time.fill(&mut mark);
        mark
    }

    #[test]
    fn a_mark_tells_of_a_turn_only_with_what_it_does() {
        let clock = Arc::new(TestClock::default());
        let mark = Mark { now: DAWN, boot_id: "another".into(), ..Mark::default() };
        let time = Time::new(clock.clone(), 2, Timestamp::from_micros(DAWN), &mark);
        clock.set(DAWN + DAY, 5, true);
        assert_eq!(time.moment().now.as_micros(), DAWN + DAY);
        let before = marked(&time);
        assert_eq!((before.now, before.monotonic, before.untrusted[0].after), (DAWN + 5, 5, None));
        let correctable = time.next_adjustment().unwrap().correctable;
        assert_eq!(correctable[0].step(), Some(DAY - 5));
        let after = marked(&time);
        assert_eq!((after.now, &after.untrusted), (DAWN + DAY, &correctable));
        // Cut in between, a start finds the same step again.
        let again = Time::new(clock, 3, Timestamp::from_micros(DAWN), &before);
        assert_eq!(again.next_adjustment().unwrap().correctable, correctable);
    }

    proptest! {
        #[test]
        fn order_never_runs_back_whatever_the_clocks_show(
            life in prop::collection::vec(
                (prop_oneof![any::<i64>(), DAWN..DAWN + 900 * DAY], 0..u64::MAX / 64, any::<bool>(),
                    0..4u8),
                1..40,
            ),
        ) {
            let clock = Arc::new(TestClock::default());
            let mut last = Timestamp::from_micros(DAWN);
            let mut mark = Mark::default();
            let mut time = Time::new(clock.clone(), 1, last, &mark);
            for (wall, by, is_synchronised, what) in life {
                clock.set(wall, by, is_synchronised);
                match what {
                    // A start, with a mark that may be old.
                    0 => time = Time::new(clock.clone(), 2, last, &mark),
                    1 => mark = marked(&time),
                    2 => drop(time.next_adjustment()),
                    _ => {}
                }
                let at = time.order();
                prop_assert!(at >= last);
                time.advance(at);
                last = at;
                prop_assert!(marked(&time).untrusted.len() <= MAX_UNTRUSTED);
            }
        }
    }
}
