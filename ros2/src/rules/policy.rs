//! The settings that decide which sightings become memories.

use std::time::Duration;

/// The settings of one rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// A change of the watched fields is kept.
    pub on_change: bool,
    /// Movement by more than this is kept, metres.
    pub beyond_m: Option<f64>,
    /// Turning by more than this is kept, radians.
    pub beyond_rad: Option<f64>,
    /// Readings that cross these are kept; at most 32.
    pub thresholds: Vec<Threshold>,
    /// Of one name, nothing is kept sooner than this after the last, but what got worse.
    pub at_most_every: Option<Duration>,
    /// The same thing seen again is the same memory.
    pub merge: Option<Merge>,
    /// Of all names together, no more new memories than this in an hour.
    pub at_most_per_hour: Option<u64>,
}

impl Policy {
    /// Returns true if anything is said that keeps less than everything.
    pub fn is_limited(&self) -> bool {
        let is_slowed = self.at_most_every.is_some() || self.at_most_per_hour.is_some();
        self.is_triggered() || is_slowed || self.merge.is_some()
    }

    /// Returns true if something must happen to a thing for it to be kept.
    pub(super) fn is_triggered(&self) -> bool {
        let moves = self.beyond_m.is_some() || self.beyond_rad.is_some();
        self.on_change || moves || !self.thresholds.is_empty()
    }
}

/// A limit with a gap between going beyond it and being back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// True if beyond it is above; else below.
    pub is_above: bool,
    /// Beyond this is kept, once ...
    pub at: f64,
    /// ... until it was back on the other side of this.
    pub back_at: f64,
}

impl Threshold {
    /// Returns true if a reading goes beyond it.
    pub(super) fn is_beyond(&self, reading: f64) -> bool {
        if self.is_above { reading > self.at } else { reading < self.at }
    }

    /// Returns true if a reading is back.
    pub(super) fn is_back(&self, reading: f64) -> bool {
        if self.is_above { reading <= self.back_at } else { reading >= self.back_at }
    }
}

/// The rule by which a sighting is of a known thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Merge {
    /// At most so far from where it was seen last, metres; `None`: wherever it is.
    pub within_m: Option<f64>,
    /// At most so long after it was seen last.
    pub within: Duration,
    /// Its memory is written again at most this often.
    pub update_every: Duration,
}
