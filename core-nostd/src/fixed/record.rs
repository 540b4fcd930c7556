//! A memory record whose size is known when the program is built.

use heapless::Vec;
use nalgebra::{Point3, UnitQuaternion};

use super::{Dating, Frame, Id, Moment, Reference, Text};
use crate::confidence::Beta;
use crate::forgetting::{self, HalfLife};
use crate::geo::GeoPoint;
use crate::space::Isometry3;
use crate::tier::{Tier, TierInputs};
use crate::vocabulary::{ExperienceType, Kind};

/// Importance of a record that states none, as in the daemon.
const NEUTRAL: f64 = 0.5;

/// A number in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Unit(f64);

impl Unit {
    /// `None` outside of [0, 1], and for NaN.
    pub const fn new(number: f64) -> Option<Self> {
        if number >= 0.0 && number <= 1.0 { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The belief in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Confidence {
    /// Evidence for and against: `alpha` and `beta`, both or neither.
    pub posterior: Option<Beta>,
    /// The estimate to act on.
    pub calibrated: Option<Unit>,
}

/// Forgetting state. What is absent counts as [`forgetting::Decay::default`] has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decay {
    /// Time to retrievability 1/2.
    pub half_life: Option<HalfLife>,
    /// Last use of the memory; since `createdAt` if never.
    pub last_access: Option<Moment>,
    /// Number of uses.
    pub access_count: Option<u32>,
    /// True if it resists decay, and outlives the ring's other records.
    pub anchored: Option<bool>,
}

impl Decay {
    /// The state that the functions of [`forgetting`] work with.
    pub fn state(&self) -> forgetting::Decay {
        forgetting::Decay {
            half_life: self.half_life.unwrap_or_default(),
            access_count: self.access_count.unwrap_or_default(),
            anchored: self.anchored.unwrap_or_default(),
        }
    }
}

/// The place of a memory: the spatial-pose extension without its covariance. `N` is the room for the
/// names of frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Pose<const N: usize> {
    /// The frame the coordinates are in, such as `map`.
    pub frame: Frame<N>,
    /// Metres.
    pub position: Point3<f64>,
    /// Rotation from `child_frame` to `frame`.
    pub orientation: Option<UnitQuaternion<f64>>,
    /// Time at which the pose held.
    pub stamp: Option<Moment>,
    /// The frame that is posed, such as `base_link`.
    pub child_frame: Option<Frame<N>>,
    /// The same place on the Earth.
    pub geo: Option<GeoPoint>,
}

impl<const N: usize> Pose<N> {
    /// A position and nothing else.
    pub fn new(frame: Frame<N>, position: Point3<f64>) -> Self {
        Self { frame, position, orientation: None, stamp: None, child_frame: None, geo: None }
    }

    /// The pose of `child_frame` in `frame` that `isometry` stands for.
    pub fn of(frame: Frame<N>, child_frame: Frame<N>, isometry: &Isometry3) -> Self {
        Self {
            orientation: Some(isometry.rotation),
            child_frame: Some(child_frame),
            ..Self::new(frame, isometry.translation.vector.into())
        }
    }
}

/// A memory record: ids and names of frames of at most `ID` bytes, `TEXT` bytes of content, and `REFS`
/// references to entities.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<const ID: usize, const TEXT: usize, const REFS: usize> {
    /// Unique among records.
    pub id: Id<ID>,
    /// The content.
    pub content: Text<TEXT>,
    /// Lifecycle class; `memory` if absent.
    pub kind: Option<Kind>,
    /// Finer nature of the experience.
    pub experience_type: Option<ExperienceType>,
    /// Place in the memory hierarchy; `working` if absent.
    pub tier: Option<Tier>,
    /// Time at which it was recorded.
    pub created_at: Moment,
    /// Time of the event that is described.
    pub event_time: Option<Moment>,
    /// Its importance.
    pub importance: Option<Unit>,
    /// Belief.
    pub confidence: Option<Confidence>,
    /// Forgetting state.
    pub decay: Option<Decay>,
    /// Entities mentioned.
    pub entity_refs: Vec<Reference<ID>, REFS>,
    /// Superseded after this moment.
    pub valid_until: Option<Moment>,
    /// Counts the changes; from 1, so that an absent one and 1 mean the same.
    pub version: Option<core::num::NonZeroU32>,
    /// Its place.
    pub pose: Option<Pose<ID>>,
}

impl<const ID: usize, const TEXT: usize, const REFS: usize> Record<ID, TEXT, REFS> {
    /// A record with nothing but what every record must have.
    pub fn new(id: Id<ID>, content: Text<TEXT>, created_at: Moment) -> Self {
        Self {
            id,
            content,
            kind: None,
            experience_type: None,
            tier: None,
            created_at,
            event_time: None,
            importance: None,
            confidence: None,
            decay: None,
            entity_refs: Vec::new(),
            valid_until: None,
            version: None,
            pose: None,
        }
    }

    /// Returns true if it is anchored.
    pub fn anchored(&self) -> bool {
        self.decay.is_some_and(|decay| decay.anchored == Some(true))
    }

    /// Hours from the last access, or from `created_at`, to `now`; `None` where they cannot be told.
    pub fn elapsed_hours(&self, now: Moment, dating: &impl Dating) -> Option<f64> {
        let last = self.decay.and_then(|decay| decay.last_access).unwrap_or(self.created_at);
        now.hours_since(last, dating)
    }

    /// [`forgetting::Decay::retrievability`] of this record.
    pub fn retrievability(&self, now: Moment, dating: &impl Dating) -> Option<f64> {
        let hours = self.elapsed_hours(now, dating)?;
        Some(self.decay.unwrap_or_default().state().retrievability(hours))
    }

    /// The forgetting state after an access at `now`: [`forgetting::Decay::accessed`]. If it is unknown how long ago
    /// the last one was, the access counts and the half-life stays.
    pub fn accessed(&self, now: Moment, dating: &impl Dating) -> Decay {
        let before = self.decay.unwrap_or_default();
        let after = before.state().accessed(self.elapsed_hours(now, dating).unwrap_or_default());
        Decay {
            half_life: Some(after.half_life),
            last_access: Some(now),
            access_count: Some(after.access_count),
            anchored: before.anchored,
        }
    }

    /// Input of the rule of [`crate::tier`]; `None` if the time since cannot be told.
    pub fn tier_inputs(&self, now: Moment, dating: &impl Dating) -> Option<TierInputs> {
        let decay = self.decay.unwrap_or_default().state();
        Some(TierInputs {
            age_hours: now.hours_since(self.created_at, dating)?,
            importance: self.importance.map_or(NEUTRAL, Unit::get),
            access_count: decay.access_count,
            retrievability: self.retrievability(now, dating)?,
            anchored: decay.anchored,
        })
    }
}
