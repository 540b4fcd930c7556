//! Intervals in which the time could not be trusted: when they begin and end, and how much in them is still to be put right.

use std::sync::atomic::Ordering;

use omird_store::UntrustedInterval;

use super::{Adjustment, Lines, Time};
use crate::time::clock::{ClockState, ClockStep, TOLERANCE};
use crate::time::uncertainty::may_wait;

/// Most intervals that wait to be put right; each is one boot without a clock.
pub(super) const MAX_UNTRUSTED: usize = 16;

/// Drift of a quartz: one part in so many (200 ppm). A clock that is found to have been wrong by
/// no more was right when the interval began, and dates in it are left alone.
const DRIFT: i64 = 5_000;

impl Time {
    /// Notes what a step of the clock does to the intervals.
    pub(super) fn record_step(&self, lines: &mut Lines, step: ClockStep) {
        let was = lines.untrusted.clone();
        let correctable = self.end_intervals(lines, &step);
        match step.to {
            ClockState::Unknown => self.begin_unknown(lines),
            // A clock that was right is as right as it was, unless it jumps.
            ClockState::Coarse if step.from == ClockState::Unknown || step.has_jumped() => {
                if step.has_jumped() {
                    self.end_coarse_interval(lines, step.monotonic);
                }
                if self.open_interval(lines, true).is_none() {
                    self.begin_interval(lines, true);
                }
            }
            ClockState::Coarse | ClockState::Synchronised => {}
        }
        if step.has_jumped() {
            lines.last_step = step.after.saturating_sub(step.before);
        }
        if !correctable.is_empty() || step.after < step.before {
            lines.adjustments.push_back(Adjustment { step, correctable, was });
        }
    }

    /// Ends the intervals that a step puts an end to, and gives those back that can be put right.
    fn end_intervals(&self, lines: &mut Lines, step: &ClockStep) -> Vec<UntrustedInterval> {
        let mut correctable = Vec::new();
        if step.to == ClockState::Unknown {
            self.end_coarse_interval(lines, step.monotonic);
            return correctable;
        }
        let after = step.after.saturating_sub(step.monotonic);
        lines.untrusted.retain_mut(|interval| {
            let is_told = !interval.coarse || step.to == ClockState::Synchronised;
            if interval.boot_id != self.boot_id || interval.after.is_some() || !is_told {
                return true;
            }
            if interval.until == 0 {
                interval.until = step.monotonic;
            }
            let was_wrong = !interval.coarse || {
                let by_drift = interval.until.saturating_sub(interval.from) / DRIFT;
                let limit = TOLERANCE.saturating_add(by_drift);
                after.abs_diff(interval.before) > limit.unsigned_abs()
            };
            interval.after = Some(after);
            if was_wrong {
                correctable.push(interval.clone());
            }
            was_wrong
        });
        correctable
    }

    fn end_coarse_interval(&self, lines: &mut Lines, monotonic: i64) {
        if let Some(interval) = self.open_interval(lines, true) {
            interval.until = monotonic;
        }
    }

    /// Notes that from now on the time is unknown, if that is new.
    pub(super) fn begin_unknown(&self, lines: &mut Lines) {
        if self.open_interval(lines, false).is_none() {
            self.begin_interval(lines, false);
        }
    }

    fn begin_interval(&self, lines: &mut Lines, coarse: bool) {
        if lines.untrusted.len() >= MAX_UNTRUSTED {
            lines.untrusted.remove(0);
        }
        let (dating, monotonic) = (lines.discipline.dating(), lines.discipline.monotonic());
        lines.untrusted.push(UntrustedInterval {
            boot_id: self.boot_id.clone(),
            since: dating.max(self.latest.load(Ordering::Acquire)),
            from: monotonic,
            until: 0,
            before: dating.saturating_sub(monotonic),
            after: None,
            coarse,
        });
    }

    fn open_interval<'a>(
        &self,
        lines: &'a mut Lines,
        coarse: bool,
    ) -> Option<&'a mut UntrustedInterval> {
        lines.untrusted.iter_mut().find(|interval| {
            interval.coarse == coarse
                && interval.until == 0
                && interval.after.is_none()
                && interval.boot_id == self.boot_id
        })
    }

    /// The intervals that may still be put right, those included that can be by now.
    pub(crate) fn untrusted(&self) -> Vec<UntrustedInterval> {
        self.look().1.untrusted.clone()
    }

    /// The intervals that can be put right.
    pub(crate) fn correctable(&self) -> Vec<UntrustedInterval> {
        let lines = self.lines.lock();
        lines.untrusted.iter().filter(|interval| interval.after.is_some()).cloned().collect()
    }

    /// Notes that everything in these intervals was put right.
    pub(crate) fn drop_corrected(&self, intervals: &[UntrustedInterval]) {
        let mut lines = self.lines.lock();
        lines.untrusted.retain(|interval| !intervals.contains(interval));
        self.to_correct.store(0, Ordering::Relaxed);
    }

    /// Counts a version that was stored and may have to be redated.
    pub(crate) fn count_waiting(&self, resource: &[u8]) {
        let has_open = {
            let mut lines = self.lines.lock();
            self.open_interval(&mut lines, false).is_some()
        };
        if has_open && may_wait(resource) {
            self.to_correct.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts versions that were redated.
    pub(crate) fn count_corrected(&self, count: u64) {
        self.corrected.fetch_add(count, Ordering::Relaxed);
        let subtract = |n: u64| Some(n.saturating_sub(count));
        let _ = self.to_correct.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
    }
}
