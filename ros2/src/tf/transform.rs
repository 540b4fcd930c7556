//! One rigid transform: read with suspicion, interpolated, and applied to a covariance.

use std::fmt;

use nalgebra::{Translation3, Vector3};
use omir_core::space::{Isometry3, unit_quaternion};

/// The transform *of* a child *in* its parent: `p_parent = transform * p_child`.
pub type Transform = Isometry3;

/// Largest deviation of the squared length of a rotation's quaternion from 1; tf2 refuses the same.
const NORM_TOLERANCE: f64 = 0.01;

/// Translations beyond this are refused: a double holds no millimetre there, so the number is a mistake.
/// It also keeps every sum along a path finite.
pub(crate) const FARTHEST_M: f64 = 1e12;

/// Numbers that are no transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadTransform {
    /// A component is NaN or infinite.
    NotFinite,
    /// The quaternion is not of unit length, within half a percent; all zeros is the usual case.
    NotUnit,
    /// A translation of more than 1e12 m along an axis.
    TooFar,
}

impl fmt::Display for BadTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFinite => "a number of it is not finite",
            Self::NotUnit => "its quaternion is not of unit length, so it is no rotation",
            Self::TooFar => "its translation is beyond 1e12 m",
        })
    }
}

impl std::error::Error for BadTransform {}

/// From the fields of `geometry_msgs/Transform`: metres, and a quaternion x, y, z, w. The quaternion is
/// scaled to unit length if it nearly has it (as tf2, `|norm² − 1| < 0.01`).
pub fn transform([x, y, z]: [f64; 3], rotation: [f64; 4]) -> Result<Transform, BadTransform> {
    if ![x, y, z].iter().chain(&rotation).all(|c| c.is_finite()) {
        return Err(BadTransform::NotFinite);
    }
    let norm_squared = rotation.iter().map(|c| c * c).sum::<f64>();
    if (norm_squared - 1.0).abs() >= NORM_TOLERANCE {
        return Err(BadTransform::NotUnit);
    }
    if [x, y, z].iter().any(|c| c.abs() > FARTHEST_M) {
        return Err(BadTransform::TooFar);
    }
    let rotation = unit_quaternion(rotation).ok_or(BadTransform::NotUnit)?;
    Ok(Transform::from_parts(Translation3::new(x, y, z), rotation))
}

/// The same, checked again: an [`Isometry3`] may have been built from anything.
pub(super) fn checked(transform: &Transform) -> Result<Transform, BadTransform> {
    let (t, q) = (&transform.translation, &transform.rotation);
    self::transform([t.x, t.y, t.z], [q.i, q.j, q.k, q.w])
}

/// Between `older` (`ratio` 0) and `newer` (`ratio` 1): the translation linearly, the rotation along the
/// shorter great arc (slerp: Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985).
pub fn interpolate(older: &Transform, newer: &Transform, ratio: f64) -> Transform {
    let (from, to) = (older.translation.vector, newer.translation.vector);
    let translation = from + (to - from) * ratio;
    let rotation = older
        .rotation
        .try_slerp(&newer.rotation, ratio, f64::EPSILON)
        // Only when they are the same to within rounding.
        .unwrap_or(older.rotation);
    Transform::from_parts(translation.into(), rotation)
}

/// Metres between the origins and degrees of rotation (0 to 180) between two transforms.
pub fn difference(a: &Transform, b: &Transform) -> (f64, f64) {
    let apart: Vector3<f64> = a.translation.vector - b.translation.vector;
    (apart.norm(), a.rotation.angle_to(&b.rotation).to_degrees())
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_1_SQRT_2, PI};

    use nalgebra::UnitQuaternion;
    use proptest::prelude::*;

    use omir_core::space::rotate_covariance;

    use super::*;

    #[test]
    fn what_is_no_transform_is_told() {
        let unit = [0.0, 0.0, 0.0, 1.0];
        assert_eq!(transform([0.0; 3], [0.0; 4]), Err(BadTransform::NotUnit));
        assert_eq!(transform([0.0; 3], [f64::MAX; 4]), Err(BadTransform::NotUnit));
        assert_eq!(transform([0.0; 3], [0.0, 0.0, 0.0, 1.1]), Err(BadTransform::NotUnit));
        assert_eq!(transform([0.0; 3], [f64::NAN, 0.0, 0.0, 1.0]), Err(BadTransform::NotFinite));
        assert_eq!(transform([0.0, f64::INFINITY, 0.0], unit), Err(BadTransform::NotFinite));
        assert_eq!(transform([0.0, 0.0, -2e12], unit), Err(BadTransform::TooFar));
        let nearly = transform([1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.001]).unwrap();
        assert_eq!(nearly, Transform::translation(1.0, 2.0, 3.0));
        let unchecked =
            nalgebra::Unit::new_unchecked(nalgebra::Quaternion::new(0.0, 0.0, 0.0, 0.0));
        let built = Transform::from_parts(Translation3::identity(), unchecked);
        assert_eq!(checked(&built), Err(BadTransform::NotUnit));
    }

    #[test]
    fn halfway_by_hand() {
        let older = Transform::identity();
        let quarter = [0.0, 0.0, FRAC_1_SQRT_2, FRAC_1_SQRT_2];
        let newer = transform([2.0, 4.0, -6.0], quarter).unwrap();
        let half = interpolate(&older, &newer, 0.5);
        assert_eq!(half.translation.vector, Vector3::new(1.0, 2.0, -3.0));
        let eighth = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), PI / 4.0);
        assert!(half.rotation.angle_to(&eighth) < 1e-12);
        // −q is the same rotation as q: no detour.
        let negated = transform([2.0, 4.0, -6.0], quarter.map(|c| -c)).unwrap();
        assert!(interpolate(&older, &negated, 0.5).rotation.angle_to(&eighth) < 1e-12);
        assert_eq!(interpolate(&newer, &newer, 0.3), newer);
    }

    #[test]
    fn covariance_of_a_quarter_turn_swaps_x_and_y() {
        let mut covariance = [0.0; 36];
        for (axis, variance) in [1.0, 4.0, 9.0, 0.1, 0.2, 0.3].into_iter().enumerate() {
            covariance[axis * 7] = variance;
        }
        covariance[1] = 0.5; // x with y
        covariance[6] = 0.5;
        covariance[4] = 0.25; // x with rotation about y
        covariance[24] = 0.25;
        let quarter = transform([7.0, 8.0, 9.0], [0.0, 0.0, FRAC_1_SQRT_2, FRAC_1_SQRT_2]).unwrap();
        let rotated = rotate_covariance(&covariance, &quarter.rotation);
        // x becomes y, y becomes −x.
        let expected = [
            (0, 4.0),
            (7, 1.0),
            (14, 9.0),
            (21, 0.2),
            (28, 0.1),
            (35, 0.3),
            (1, -0.5),
            (6, -0.5),
            (9, -0.25),
            (19, -0.25),
        ];
        for (i, &number) in rotated.iter().enumerate() {
            let wanted = expected.iter().find(|(at, _)| *at == i).map_or(0.0, |(_, n)| *n);
            assert!((number - wanted).abs() < 1e-12, "element {i}: {number}, not {wanted}");
        }
    }

    proptest! {
        #[test]
        fn a_turn_and_back_leaves_a_covariance(
            q in prop::array::uniform4(-1.0..1.0f64),
            covariance in prop::collection::vec(-5.0..5.0f64, 36),
        ) {
            let Some(rotation) = unit_quaternion(q) else { return Ok(()) };
            let turn = Transform::from_parts(Translation3::identity(), rotation);
            let covariance: [f64; 36] = covariance.try_into().unwrap();
            let there = rotate_covariance(&covariance, &turn.rotation);
            let back = rotate_covariance(&there, &turn.rotation.inverse());
            for (a, b) in covariance.iter().zip(&back) {
                prop_assert!((a - b).abs() < 1e-12);
            }
            let trace = |c: &[f64; 36]| c[0] + c[7] + c[14];
            prop_assert!((trace(&covariance) - trace(&there)).abs() < 1e-12);
        }
    }
}
