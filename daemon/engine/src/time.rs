//! The two time lines of a store.
//!
//! *Order* stamps what is recorded. It never runs backwards, across starts and whatever the clocks
//! do: it is a hybrid logical clock (Kulkarni et al. 2014) without the counter, which the number of
//! the transaction is. *Dating* is the best wall clock known, by which memories are dated and fade.
//! It may step; what was dated before a step is listed until it is put right: see [`Unsettled`] and
//! `engine::settle`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::doubt::{Doubt, may_wait};
use crate::clock::{Clock, ClockState, Source, TOLERANCE, Timekeeper, Turn, resumed};
use crate::store::mark::{Mark, Unsettled};
use crate::store::stamps::{AHEAD, Stamps};

/// Most spans that wait to be put right; each is one boot without a clock.
const MAX_UNSETTLED: usize = 16;

/// Between its last mark and a cut a store can have recorded for so long; microseconds.
const UNMARKED: i64 = 3_600_000_000;

/// What a quartz may drift: one part in so many (200 ppm). A clock that is found to have been wrong by
/// no more was right when the span began, and dates in it are left alone.
const DRIFT: i64 = 5_000;

/// Both time lines, and what they are made of, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Dating.
    pub now: Timestamp,
    /// How far dating can be trusted.
    pub state: ClockState,
    /// What the wall clock shows; microseconds since 1970.
    pub wall: i64,
    /// Since the start of the machine; microseconds.
    pub monotonic: i64,
}

/// A turn of dating that the writer has to act on.
#[derive(Debug, Clone)]
pub struct Adjustment {
    /// What happened.
    pub turn: Turn,
    /// The spans that can be put right by it.
    pub settles: Vec<Unsettled>,
    /// The spans as they were before.
    was: Vec<Unsettled>,
}

/// While nothing says that the clock is right, the time that what cannot be undone goes by catches up
/// with dating so many times faster than time passes: a week off in three and a half hours, a year
/// that was never lived in a week. A robot that is on for half an hour a day keeps up.
const CATCH_UP: i64 = 48;

struct Lines {
    keeper: Timekeeper,
    /// The time that what cannot be undone goes by, and when that was on the monotonic clock.
    certain: (i64, i64),
    unsettled: Vec<Unsettled>,
    adjustments: VecDeque<Adjustment>,
    /// How far dating last jumped; microseconds.
    last_step: i64,
}

/// The time of a running store.
pub struct Time {
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
    /// Whether one of these was refused.
    pub refused: AtomicBool,
}

impl Time {
    /// The time of a store at its start number `boot`, whose history reaches to `latest` and that
    /// was last marked with `mark`.
    pub fn new(clock: Arc<dyn Clock>, boot: u64, latest: Timestamp, mark: &Mark) -> Self {
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
        let mut unsettled = mark.unsettled.clone();
        // What was dated in a boot that ended without a clock can not be dated any better.
        unsettled.retain(|span| span.after.is_some() || is_same_boot == Some(true));
        let lines = Lines {
            keeper: Timekeeper::new(dating, reading.monotonic),
            certain: (0, reading.monotonic),
            unsettled,
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
    pub fn knowing(self, stamps: Stamps) -> Self {
        Self { stamps: Mutex::new(stamps), ..self }
    }

    /// Reads the clocks.
    fn look(&self) -> (Moment, MutexGuard<'_, Lines>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = self.clock.read();
        let turn = lines.keeper.observe(reading);
        let moment = Moment {
            now: Timestamp::from_micros(lines.keeper.dating()),
            state: lines.keeper.state(),
            wall: reading.wall,
            monotonic: lines.keeper.monotonic(),
        };
        if let Some(turn) = turn {
            self.turn(&mut lines, turn);
        } else if moment.state == ClockState::Unknown {
            self.doubt(&mut lines);
        }
        (moment, lines)
    }

    fn turn(&self, lines: &mut Lines, turn: Turn) {
        let was = lines.unsettled.clone();
        let settles = self.settles(lines, &turn);
        match turn.to {
            ClockState::Unknown => self.doubt(lines),
            // A clock that was right is as right as it was, unless it jumps.
            ClockState::Coarse if turn.from == ClockState::Unknown || turn.has_jumped() => {
                if turn.has_jumped() {
                    self.end_coarse_span(lines, turn.monotonic);
                }
                if self.open_span(lines, true).is_none() {
                    self.begin_span(lines, true);
                }
            }
            ClockState::Coarse | ClockState::Synchronised => {}
        }
        if turn.has_jumped() {
            lines.last_step = turn.after.saturating_sub(turn.before);
        }
        if !settles.is_empty() || turn.after < turn.before {
            lines.adjustments.push_back(Adjustment { turn, settles, was });
        }
    }

    /// Ends the spans that a turn puts an end to, and gives those back that can be put right.
    fn settles(&self, lines: &mut Lines, turn: &Turn) -> Vec<Unsettled> {
        let mut settles = Vec::new();
        if turn.to == ClockState::Unknown {
            self.end_coarse_span(lines, turn.monotonic);
            return settles;
        }
        let after = turn.after.saturating_sub(turn.monotonic);
        lines.unsettled.retain_mut(|span| {
            let is_told = !span.coarse || turn.to == ClockState::Synchronised;
            if span.boot_id != self.boot_id || span.after.is_some() || !is_told {
                return true;
            }
            if span.until == 0 {
                span.until = turn.monotonic;
            }
            let was_wrong = !span.coarse || {
                let by_drift = span.until.saturating_sub(span.from) / DRIFT;
                let limit = TOLERANCE.saturating_add(by_drift);
                after.abs_diff(span.before) > limit.unsigned_abs()
            };
            span.after = Some(after);
            if was_wrong {
                settles.push(span.clone());
            }
            was_wrong
        });
        settles
    }

    fn end_coarse_span(&self, lines: &mut Lines, monotonic: i64) {
        if let Some(span) = self.open_span(lines, true) {
            span.until = monotonic;
        }
    }

    /// Notes that from now on nobody knows the time, if that is new.
    fn doubt(&self, lines: &mut Lines) {
        if self.open_span(lines, false).is_none() {
            self.begin_span(lines, false);
        }
    }

    fn begin_span(&self, lines: &mut Lines, coarse: bool) {
        if lines.unsettled.len() >= MAX_UNSETTLED {
            lines.unsettled.remove(0);
        }
        let (dating, monotonic) = (lines.keeper.dating(), lines.keeper.monotonic());
        lines.unsettled.push(Unsettled {
            boot_id: self.boot_id.clone(),
            since: dating.max(self.latest.load(Ordering::Acquire)),
            from: monotonic,
            until: 0,
            before: dating.saturating_sub(monotonic),
            after: None,
            coarse,
        });
    }

    fn open_span<'a>(&self, lines: &'a mut Lines, coarse: bool) -> Option<&'a mut Unsettled> {
        lines.unsettled.iter_mut().find(|span| {
            span.coarse == coarse
                && span.until == 0
                && span.after.is_none()
                && span.boot_id == self.boot_id
        })
    }

    /// Dating now, and what goes with it.
    pub fn moment(&self) -> Moment {
        self.look().0
    }

    /// The order stamp of what is recorded now. After a clock that was far ahead one stamp follows the
    /// other, for as long as it takes to get there: then only they tell what came when.
    pub fn order(&self) -> Timestamp {
        let latest = self.latest.load(Ordering::Acquire);
        let now = self.moment().now.as_micros();
        let is_far = latest.saturating_sub(now) > AHEAD;
        Timestamp::from_micros(now.max(latest.saturating_add(i64::from(is_far))))
    }

    /// When what bears an order stamp was recorded, at the latest, by the time that history is kept by;
    /// both in microseconds.
    pub fn recorded_by(&self, stamp: i64) -> i64 {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner).given_by(stamp)
    }

    /// The time for what cannot be undone: expiry, and letting go of history. It is dating where a
    /// synchronised clock shows that, and never ahead of it; a clock that only may be right moves it
    /// by little, so that one which is a year ahead has lost nothing by the time it is found out.
    pub fn certain(&self) -> Timestamp {
        let (moment, mut lines) = self.look();
        Timestamp::from_micros(self.certain_at(&moment, &mut lines))
    }

    /// The time that history is kept by: that of order, by which it is stamped, as far as it is
    /// certain.
    pub fn history(&self) -> Timestamp {
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
    pub fn advance(&self, at: Timestamp) {
        self.latest.fetch_max(at.as_micros(), Ordering::AcqRel);
    }

    /// Dating less the monotonic clock, unless a turn is still to be acted on.
    pub fn settled_offset(&self) -> Option<i64> {
        let (moment, lines) = self.look();
        lines
            .adjustments
            .is_empty()
            .then(|| moment.now.as_micros().saturating_sub(moment.monotonic))
    }

    /// The next turn to act on, if there is one.
    pub fn next_adjustment(&self) -> Option<Adjustment> {
        self.look().1.adjustments.pop_front()
    }

    /// The spans that may still be put right, those included that can be by now.
    pub fn unsettled(&self) -> Vec<Unsettled> {
        self.look().1.unsettled.clone()
    }

    /// The spans that can be put right.
    pub fn settling(&self) -> Vec<Unsettled> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.unsettled.iter().filter(|span| span.after.is_some()).cloned().collect()
    }

    /// Notes that everything in these spans was put right.
    pub fn settled(&self, spans: &[Unsettled]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.unsettled.retain(|span| !spans.contains(span));
        self.to_correct.store(0, Ordering::Relaxed);
    }

    /// What is noted on a memory that comes in now, if nobody knows the time.
    pub fn doubt_now(&self, moment: &Moment) -> Option<Doubt> {
        (moment.state == ClockState::Unknown).then(|| Doubt {
            boot: Some(self.boot),
            boot_id: self.boot_id.clone(),
            monotonic: moment.monotonic,
            wall: moment.wall,
            stamped: false,
        })
    }

    /// Counts a version that was stored and may have to be dated anew.
    pub fn count_waiting(&self, resource: &[u8]) {
        let has_open = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            self.open_span(&mut lines, false).is_some()
        };
        if has_open && may_wait(resource) {
            self.to_correct.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts versions that were dated anew.
    pub fn count_corrected(&self, count: u64) {
        self.corrected.fetch_add(count, Ordering::Relaxed);
        let subtract = |n: u64| Some(n.saturating_sub(count));
        let _ = self.to_correct.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
    }

    /// Whether the time comes from outside the machine.
    pub fn is_simulated(&self) -> bool {
        self.clock.source() == Source::Simulated
    }

    /// Writes into a mark what time it is.
    pub fn fill(&self, mark: &mut Mark) {
        let (moment, mut lines) = self.look();
        mark.certain = self.certain_at(&moment, &mut lines);
        let latest = self.latest.load(Ordering::Acquire);
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        stamps.note(latest, mark.certain);
        mark.boot_id.clone_from(&self.boot_id);
        match lines.adjustments.front() {
            None => {
                mark.now = moment.now.as_micros();
                mark.monotonic = moment.monotonic;
                mark.unsettled.clone_from(&lines.unsettled);
            }
            // What a turn does to access states is journaled with it or not at all: until then the
            // store stands where it stood before.
            Some(Adjustment { turn, was, .. }) => {
                mark.now = turn.before;
                mark.monotonic = turn.monotonic;
                mark.unsettled.clone_from(was);
            }
        }
    }

    /// For `status`.
    pub fn status(&self) -> Map {
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
        let is_settling = lines.unsettled.iter().any(|span| span.after.is_some());
        map.insert("settling", Value::Bool(is_settling));
        map.insert("corrected", count(&self.corrected));
        map.insert("toCorrect", count(&self.to_correct));
        map
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// 2026-06-01.
    const DAWN: i64 = 1_780_272_000_000_000;
    const DAY: i64 = 86_400_000_000;

    #[derive(Default)]
    struct Turned {
        wall: AtomicI64,
        monotonic: AtomicU64,
        is_synchronised: AtomicBool,
    }

    impl Turned {
        fn turn(&self, wall: i64, by: u64, is_synchronised: bool) {
            self.wall.store(wall, Ordering::Relaxed);
            self.monotonic.fetch_add(by, Ordering::Relaxed);
            self.is_synchronised.store(is_synchronised, Ordering::Relaxed);
        }
    }

    impl Clock for Turned {
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
        let clock = Arc::new(Turned::default());
        let mark = Mark { now: DAWN, boot_id: "another".into(), ..Mark::default() };
        let time = Time::new(clock.clone(), 2, Timestamp::from_micros(DAWN), &mark);
        clock.turn(DAWN + DAY, 5, true);
        assert_eq!(time.moment().now.as_micros(), DAWN + DAY);
        let before = marked(&time);
        assert_eq!((before.now, before.monotonic, before.unsettled[0].after), (DAWN + 5, 5, None));
        let settles = time.next_adjustment().unwrap().settles;
        assert_eq!(settles[0].step(), Some(DAY - 5));
        let after = marked(&time);
        assert_eq!((after.now, &after.unsettled), (DAWN + DAY, &settles));
        // Cut in between, a start finds the same turn again.
        let again = Time::new(clock, 3, Timestamp::from_micros(DAWN), &before);
        assert_eq!(again.next_adjustment().unwrap().settles, settles);
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
            let clock = Arc::new(Turned::default());
            let mut last = Timestamp::from_micros(DAWN);
            let mut mark = Mark::default();
            let mut time = Time::new(clock.clone(), 1, last, &mark);
            for (wall, by, is_synchronised, what) in life {
                clock.turn(wall, by, is_synchronised);
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
                prop_assert!(marked(&time).unsettled.len() <= MAX_UNSETTLED);
            }
        }
    }
}
