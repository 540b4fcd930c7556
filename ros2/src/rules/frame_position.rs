//! Positions in frames: how far apart they are, and where they lie after their map moved.

use nalgebra::{Point3, UnitQuaternion};

use crate::tf::Transform;

/// A position in a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct FramePosition {
    /// The frame.
    pub frame: String,
    /// Metres.
    pub position: Point3<f64>,
    /// Its orientation, if that is known.
    pub orientation: Option<UnitQuaternion<f64>>,
}

impl FramePosition {
    /// Metres between two in one frame.
    pub(super) fn distance_m(&self, other: &Self) -> Option<f64> {
        (self.frame == other.frame).then(|| nalgebra::distance(&self.position, &other.position))
    }

    /// Returns the new position of this if what lay at `from` now lies at `to`, and all around it moved as a
    /// rigid body. What lies in another frame stays.
    pub(super) fn carried(&self, from: &Self, to: &Self) -> Self {
        if self.frame != to.frame || from.frame != to.frame {
            return self.clone();
        }
        let moved = from.to(to);
        Self {
            frame: self.frame.clone(),
            position: moved * self.position,
            orientation: self.orientation.map(|orientation| moved.rotation * orientation),
        }
    }

    /// The motion that takes what lies here to where `to` is.
    pub(super) fn to(&self, to: &Self) -> Transform {
        let turn = match (&self.orientation, &to.orientation) {
            (Some(from), Some(to)) => to * from.inverse(),
            _ => UnitQuaternion::identity(),
        };
        let shift = to.position.coords - turn * self.position.coords;
        Transform::from_parts(shift.into(), turn)
    }

    /// Radians between two in one frame, 0 to π; 0 where one does not say how it is turned.
    pub(super) fn turned_rad(&self, other: &Self) -> Option<f64> {
        let turned = match (&self.orientation, &other.orientation) {
            (Some(a), Some(b)) => a.angle_to(b),
            _ => 0.0,
        };
        (self.frame == other.frame).then_some(turned)
    }
}
