//! The place of a sighting: in the fixed frame at the time of the event, in its own frame, and in the nearest
//! keyframe.

use nalgebra::{Point3, UnitQuaternion};
use omir_core::geo::{EARTH_RADIUS_M, GeoPoint};
use omir_core::spatial::SpatialPose;

use super::config::UnlocalisedPolicy;
use super::extract::StatedPose;
use super::frame_position::FramePosition;
use super::localised::Localisation;
use super::pattern::Pattern;
use crate::place::{Observed, Placed, place};
use crate::stamp::Stamp;
use crate::tf::{Buffer, LookupError};

/// Settings that all rules share.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The frame that poses are stored in.
    pub fixed_frame: String,
    /// The frame of the robot.
    pub robot_frame: String,
    /// Frames that memories are tied to.
    pub keyframes: Vec<Pattern>,
    /// Most things a rule knows again.
    pub things: usize,
    /// The robot's knowledge of its position.
    pub localisation: Localisation,
}

/// The place of a sighting, as far as it could be determined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placement {
    /// In the fixed frame, at the time of the event.
    pub fixed: Option<SpatialPose>,
    /// In its own frame, if that is another.
    pub own: Option<SpatialPose>,
    /// In the nearest keyframe: what moves it when the map moves (`urn:omird:ext:rebase`).
    pub tied: Option<SpatialPose>,
    /// The reason, if it is not known in the fixed frame though it should be.
    pub missing: Option<String>,
}

impl Placement {
    /// All poses it has, that in the fixed frame first.
    pub fn poses(&self) -> impl Iterator<Item = &SpatialPose> {
        self.fixed.iter().chain(&self.own).chain(&self.tied)
    }

    /// Takes back where it is in the map, and says why. A place on the Earth is none of the map.
    pub fn withhold(&mut self, why: String, otherwise: UnlocalisedPolicy) {
        let has_geo = |pose: &SpatialPose| pose.geo.is_some();
        let is_kept =
            |pose: &SpatialPose| otherwise == UnlocalisedPolicy::OwnFrame || has_geo(pose);
        // Of what was told in the map itself, nothing but that is left.
        let on_earth = self.fixed.take().filter(has_geo);
        self.tied = None;
        self.own = self.own.take().filter(is_kept).or(on_earth);
        self.missing = Some(format!("the robot does not know where it is: {why}"));
    }

    /// Its position, for comparisons.
    pub fn spot(&self) -> Option<FramePosition> {
        let pose = self.fixed.as_ref().or(self.own.as_ref())?;
        Some(FramePosition {
            frame: pose.frame.clone(),
            position: pose.position,
            orientation: pose.orientation,
        })
    }
}

impl Setup {
    /// Places a pose that held at `at`, and says why it is not in the fixed frame if it is not.
    pub fn place(
        &self,
        stated: &StatedPose,
        geo: Option<GeoPoint>,
        at: Stamp,
        tf: &Buffer,
    ) -> (Placement, Option<LookupError>) {
        let observed = Observed {
            frame: stated.frame.as_deref().unwrap_or_default(),
            child_frame: stated.child_frame.as_deref(),
            stamp: at,
            position: stated.position.coords.into(),
            orientation: stated.orientation.map(|orientation| orientation.coords.into()),
            covariance: stated.covariance.as_deref(),
        };
        let is_keyframe = |name: &str| self.keyframes.iter().any(|pattern| pattern.matches(name));
        let placed = match place(&observed, tf, &self.fixed_frame, is_keyframe) {
            Ok(placed) => placed,
            Err(bad) => {
                let missing = Some(bad.to_string());
                return (Placement { missing, ..Placement::default() }, None);
            }
        };
        let Placed { own, in_fixed, tie } = placed;
        let is_fixed = in_fixed.as_ref().is_ok_and(|fixed| fixed.frame == own.frame);
        let with_geo = |pose: SpatialPose| SpatialPose { geo, ..pose };
        let (fixed, lacks) = match in_fixed {
            Ok(fixed) => (Some(with_geo(fixed)), None),
            Err(error) => (None, Some(error)),
        };
        let placement = Placement {
            fixed,
            // A pose that was stated in a keyframe is in it already.
            tied: tie.filter(|tied| tied.frame != own.frame),
            own: (!is_fixed).then(|| with_geo(own)),
            missing: lacks.as_ref().map(ToString::to_string),
        };
        (placement, lacks)
    }
}

/// The origin of a frame, as a pose.
pub fn origin_of(frame: &str) -> StatedPose {
    StatedPose {
        orientation: Some(UnitQuaternion::identity()),
        frame: Some(frame.to_owned()),
        child_frame: Some(frame.to_owned()),
        ..StatedPose::default()
    }
}

/// A place on the ground as metres from the middle of the Earth, in the frame that REP-105 calls so.
/// Height is left out, in which receivers err most. Between places a metre or a kilometre apart the
/// straight distance is that on the ground.
pub fn ground_spot(geo: GeoPoint) -> FramePosition {
    let position = Point3::from(geo.unit_vector()) * EARTH_RADIUS_M;
    FramePosition { frame: "earth".into(), position, orientation: None }
}

impl StatedPose {
    /// Its position in its own frame, for comparisons. Without a name all are in one.
    pub fn spot(&self) -> FramePosition {
        FramePosition {
            frame: self.frame.clone().unwrap_or_default(),
            position: self.position,
            orientation: self.orientation,
        }
    }
}
