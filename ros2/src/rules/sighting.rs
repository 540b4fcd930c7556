//! Sightings of things, and the verdicts on them.

use std::time::Duration;

use super::frame_position::FramePosition;
use super::things::{Key, Touch};
use crate::stamp::Stamp;

/// Time that runs backwards by more than this is a simulation or a recording that begins again: all
/// that was seen is forgotten. Less than this is disorder.
pub(super) const NEW_START: Duration = Duration::from_secs(10);

/// A message may be on its way for so long: a model that thinks, or a network that was away. What is
/// stamped earlier has a clock that is wrong.
const ON_ITS_WAY: Duration = Duration::from_secs(600);

/// Returns true if a clock was wrong where a message of `event`, published just then and `received` by ours, is
/// behind what is `told` of: that is ahead of us, or the message is older than one can be. Else it is late.
pub(super) fn is_a_clock_wrong(event: Stamp, received: Stamp, told: Stamp) -> bool {
    told > received.saturating_add(NEW_START) || event.saturating_add(ON_ITS_WAY) < received
}

/// A look at a thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// Name of the thing.
    pub key: Key,
    /// Time at which the message came.
    pub received: Stamp,
    /// True if it was published just then.
    pub is_live: bool,
    /// Time at which it happened.
    pub event: Stamp,
    /// Its position, for movement.
    pub moved: Option<FramePosition>,
    /// Its position, for deciding whether it is the same thing.
    pub place: Option<FramePosition>,
    /// Digest of the watched fields, if any is watched.
    pub watched: Option<Key>,
    /// Digest of the same before anything was seen, if that is to be assumed.
    pub assumed: Option<Key>,
    /// One for each threshold; `None` or NaN says nothing.
    pub readings: Vec<Option<f64>>,
    /// Its badness, more is worse; `None` or NaN says nothing.
    pub badness: Option<f64>,
}

/// The memory made of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// A memory of its own.
    New,
    /// The memory of a known thing is written again.
    Again(Touch),
    /// A known thing was seen again, and that is only counted for now.
    Counted(Touch),
    /// Nothing changed or moved enough, or no threshold was crossed.
    Unchanged(Option<Touch>),
    /// Too soon after the last of that name.
    TooSoon(Option<Touch>),
    /// There were enough new ones in this hour.
    TooMany(Option<Touch>),
}

/// Knowledge of a thing's memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memo {
    /// The id of the resource.
    pub id: String,
    /// The message it came from first.
    pub origin: String,
    /// Time at which that message came.
    pub created: Stamp,
}
