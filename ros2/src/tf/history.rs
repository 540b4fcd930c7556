//! One frame's transform to its parent over time: a ring ordered by stamp.
//!
//! Appending is O(1) amortised and a look-up O(log n). A late arrival moves the samples after it, of
//! which there are few. The newest sample always stays, so a history is never empty.

use std::collections::VecDeque;
use std::time::Duration;

use super::frames::FrameId;
use super::transform::{Transform, interpolate};
use crate::stamp::Stamp;

/// So many samples in a row that are too old mean that their publisher's clock was set back, or that one
/// stamp from the future shut the others out: the history begins again with them. tf2 would refuse them
/// until time has caught up.
const RESTART_AFTER: u32 = 10;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) stamp: Stamp,
    pub(super) parent: FrameId,
    pub(super) transform: Transform,
}

#[derive(Debug)]
pub(super) struct History {
    /// Oldest first, stamps distinct.
    samples: VecDeque<Sample>,
    /// Number of samples that were too old since the last that was not, and the newest of their stamps.
    too_old: (u32, Stamp),
}

/// Outcome of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    New,
    /// It said what was known already.
    Same,
    /// It replaced what was said of the same moment.
    Replaced,
    /// The publisher's time ran backwards: all before was dropped.
    Restarted,
    /// Older than the history reaches back.
    TooOld,
}

impl History {
    pub(super) fn new(first: Sample) -> Self {
        Self { samples: VecDeque::from([first]), too_old: (0, Stamp::MIN) }
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    pub(super) fn newest(&self) -> &Sample {
        &self.samples[self.samples.len() - 1]
    }

    pub(super) fn oldest(&self) -> &Sample {
        &self.samples[0]
    }

    /// The stamp of the last sample that is no later.
    pub(super) fn last_before(&self, at: Stamp) -> Option<Stamp> {
        let after = self.samples.partition_point(|sample| sample.stamp <= at);
        Some(self.samples.get(after.checked_sub(1)?)?.stamp)
    }

    /// The mean time between samples; zero if there is but one.
    pub(super) fn mean_period(&self) -> Duration {
        let span = self.newest().stamp.nanos_since(self.oldest().stamp).unsigned_abs();
        Duration::from_nanos(span / (self.len() as u64 - 1).max(1))
    }

    /// Returns true if a sample of that moment would be the newest after [`History::push`].
    pub(super) fn would_lead(&self, stamp: Stamp, keep: Duration, at_most: usize) -> bool {
        stamp >= self.newest().stamp
            || self.is_too_old(stamp, keep, at_most) && self.would_restart(stamp)
    }

    fn is_too_old(&self, stamp: Stamp, keep: Duration, at_most: usize) -> bool {
        stamp < self.newest().stamp.saturating_sub(keep)
            || self.len() >= at_most && stamp < self.oldest().stamp
    }

    fn would_restart(&self, stamp: Stamp) -> bool {
        self.too_old.0 + 1 >= RESTART_AFTER && stamp > self.too_old.1
    }

    /// Takes a sample in and drops what is older than `keep` before the newest, or beyond `at_most`.
    pub(super) fn push(&mut self, sample: Sample, keep: Duration, at_most: usize) -> Pushed {
        if self.is_too_old(sample.stamp, keep, at_most) {
            if self.would_restart(sample.stamp) {
                *self = Self::new(sample);
                return Pushed::Restarted;
            }
            // Stamps that do not rise are repetitions, no new beginning.
            if sample.stamp > self.too_old.1 {
                self.too_old = (self.too_old.0 + 1, sample.stamp);
            }
            return Pushed::TooOld;
        }
        self.too_old = (0, Stamp::MIN);
        let at = if sample.stamp > self.newest().stamp {
            self.samples.len()
        } else {
            self.samples.partition_point(|known| known.stamp < sample.stamp)
        };
        match self.samples.get_mut(at) {
            Some(known) if *known == sample => return Pushed::Same,
            Some(known) if known.stamp == sample.stamp => {
                *known = sample;
                return Pushed::Replaced;
            }
            _ => self.samples.insert(at, sample),
        }
        let oldest = self.newest().stamp.saturating_sub(keep);
        while self.len() > at_most.max(1) || self.oldest().stamp < oldest {
            self.samples.pop_front();
        }
        Pushed::New
    }

    /// Drops the oldest eighth, at least one, but not the last.
    pub(super) fn shed(&mut self) -> usize {
        let count = (self.len() / 8).max(1).min(self.len() - 1);
        self.samples.drain(..count);
        count
    }

    /// The parent and the transform to it at a moment: interpolated; while the parent changes, what the
    /// older sample says (as tf2). `None` outside of what is known.
    pub(super) fn at(&self, stamp: Stamp) -> Option<(FrameId, Transform)> {
        let after = self.samples.partition_point(|sample| sample.stamp <= stamp);
        let older = &self.samples[after.checked_sub(1)?];
        if older.stamp == stamp {
            return Some((older.parent, older.transform));
        }
        let newer = self.samples.get(after)?;
        if newer.parent != older.parent {
            return Some((older.parent, older.transform));
        }
        let gone = stamp.nanos_since(older.stamp) as f64;
        let ratio = gone / newer.stamp.nanos_since(older.stamp) as f64;
        Some((older.parent, interpolate(&older.transform, &newer.transform, ratio)))
    }

    /// Returns the last sample by then: it holds until something else is said. `None` before anything was.
    pub(super) fn said(&self, by: Stamp) -> Option<(FrameId, Transform)> {
        let after = self.samples.partition_point(|sample| sample.stamp <= by);
        let last = &self.samples[after.checked_sub(1)?];
        Some((last.parent, last.transform))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_secs(10);

    fn sample(seconds: f64, x: f64) -> Sample {
        let stamp = Stamp::from_nanos((seconds * 1e9) as i64);
        Sample { stamp, parent: FrameId(0), transform: Transform::translation(x, 0.0, 0.0) }
    }

    fn at(history: &History, seconds: f64) -> Option<f64> {
        let stamp = Stamp::from_nanos((seconds * 1e9) as i64);
        history.at(stamp).map(|(_, transform)| transform.translation.x)
    }

    #[test]
    fn late_arrivals_find_their_place() {
        let mut history = History::new(sample(1.0, 1.0));
        for seconds in [5.0, 3.0, 2.0, 4.0] {
            assert_eq!(history.push(sample(seconds, seconds), KEEP, 100), Pushed::New);
        }
        for quarter in 4..=20 {
            let seconds = f64::from(quarter) / 4.0;
            assert_eq!(at(&history, seconds), Some(seconds));
        }
        assert_eq!((at(&history, 0.999), at(&history, 5.001)), (None, None));
        assert_eq!(history.mean_period(), Duration::from_secs(1));
    }

    #[test]
    fn the_last_word_on_a_moment_counts() {
        let mut history = History::new(sample(1.0, 1.0));
        history.push(sample(2.0, 2.0), KEEP, 100);
        assert_eq!(history.push(sample(2.0, 2.0), KEEP, 100), Pushed::Same);
        assert_eq!(history.push(sample(2.0, 7.0), KEEP, 100), Pushed::Replaced);
        assert_eq!((at(&history, 2.0), history.len()), (Some(7.0), 2));
    }

    #[test]
    fn both_bounds_hold() {
        let mut history = History::new(sample(0.0, 0.0));
        for i in 1..=1000 {
            history.push(sample(f64::from(i) * 0.1, 0.0), KEEP, 50);
            assert!(history.len() <= 50);
        }
        assert_eq!(history.oldest().stamp, Stamp::from_nanos(95_100_000_000));
        assert_eq!(history.push(sample(95.0, 0.0), KEEP, 50), Pushed::TooOld);
        history.push(sample(200.0, 0.0), KEEP, 50);
        assert_eq!(history.len(), 1);
        assert_eq!(history.push(sample(190.0, 0.0), KEEP, 50), Pushed::New);
        assert_eq!(history.push(sample(189.9, 0.0), KEEP, 50), Pushed::TooOld);
    }

    #[test]
    fn a_publisher_that_starts_over_is_followed() {
        let mut history = History::new(sample(1000.0, 0.0));
        for i in 0..9 {
            assert_eq!(history.push(sample(f64::from(i), 0.0), KEEP, 100), Pushed::TooOld);
            // Said again: no sign of a new beginning.
            assert_eq!(history.push(sample(f64::from(i), 0.0), KEEP, 100), Pushed::TooOld);
        }
        assert!(history.would_lead(Stamp::from_ros(9, 0), KEEP, 100));
        assert_eq!(history.push(sample(9.0, 9.0), KEEP, 100), Pushed::Restarted);
        assert_eq!((history.len(), at(&history, 9.0)), (1, Some(9.0)));
    }

    #[test]
    fn a_straggler_among_good_ones_does_not_start_over() {
        let mut history = History::new(sample(1000.0, 0.0));
        for i in 0..100 {
            assert_eq!(history.push(sample(f64::from(i), 0.0), KEEP, 100), Pushed::TooOld);
            let now = 1000.1 + f64::from(i) * 0.1;
            assert_eq!(history.push(sample(now, 0.0), KEEP, 100), Pushed::New);
        }
    }

    #[test]
    fn shedding_leaves_the_newest() {
        let mut history = History::new(sample(0.0, 0.0));
        for i in 1..20 {
            history.push(sample(f64::from(i) * 0.1, 0.0), KEEP, 100);
        }
        assert_eq!((history.shed(), history.len()), (2, 18));
        while history.len() > 1 {
            history.shed();
        }
        assert_eq!((history.shed(), history.len()), (0, 1));
    }
}
