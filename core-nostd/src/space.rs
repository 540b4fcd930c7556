//! Distance, boxes and orientation in one frame.
//!
//! Units and axes follow ROS REP-103 and REP-105 (docs/extensions.md): metres, radians, right-handed, x
//! forward, y left, z up; a frame is named (`map`, `odom`, `base_link`) and this module does not
//! know the names. Comparing positions of two frames without a transform between them is the
//! caller's mistake to avoid.
//!
//! Recall by radius or box promises what a scan over everything would return, no more and no less
//! (docs/keys.md, "Recall"). So the arithmetic is the plain textbook sequence, written out in the
//! documentation: a scan in any other language computes the same number, to the last bit.

use nalgebra::{Matrix6, Point3, Quaternion, UnitQuaternion};

/// A rigid transform between two frames: a rotation, then a translation in metres.
///
/// As in REP-103 and REP-105: right-handed, and the transform *of* `childFrame` *in* `frame` takes
/// coordinates in `childFrame` to coordinates in `frame`: `p_frame = isometry * p_child`. The
/// inverse takes them back; `a_b * b_c` is `a_c`. A pose's `position` and `orientation` are its
/// translation and rotation.
pub type Isometry3 = nalgebra::Isometry3<f64>;

/// Canonical URL of the extension that says where a memory lies.
pub const SPATIAL_POSE_URL: &str = "https://omir.io/spec/R1/extension/spatial-pose";

/// A quaternion shorter than this has no direction to speak of: see [`unit_quaternion`].
pub const MIN_QUATERNION_NORM: f64 = 1e-9;

/// Euclidean distance in metres: `sqrt(dx*dx + dy*dy + dz*dz)`, summed from left to right, each
/// operation rounded once and never fused.
///
/// Not scaled: beyond about 1e154 m the squares overflow to infinity.
pub fn distance(a: &Point3<f64>, b: &Point3<f64>) -> f64 {
    let (dx, dy, dz) = (a.x - b.x, a.y - b.y, a.z - b.z);
    libm::sqrt(dx * dx + dy * dy + dz * dz)
}

/// Distance in the plane z = 0, in metres, between two (x, y): `sqrt(dx*dx + dy*dy)`, otherwise as
/// [`distance`].
pub fn plane_distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (a.0 - b.0, a.1 - b.1);
    libm::sqrt(dx * dx + dy * dy)
}

/// The centre of a spatial query, in metres: `near=x,y[,z]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Center {
    /// Two coordinates: distance is measured in the plane, at any height.
    Plane {
        /// Forward, in metres.
        x: f64,
        /// Left, in metres.
        y: f64,
    },
    /// Three coordinates: distance is measured in space.
    Space {
        /// Forward, in metres.
        x: f64,
        /// Left, in metres.
        y: f64,
        /// Up, in metres.
        z: f64,
    },
}

impl Center {
    /// The centre with these coordinates, x, y and perhaps z; `None` if there are fewer or more, or one is not finite.
    pub const fn from_coordinates(coordinates: &[f64]) -> Option<Center> {
        match *coordinates {
            [x, y] if x.is_finite() && y.is_finite() => Some(Center::Plane { x, y }),
            [x, y, z] if x.is_finite() && y.is_finite() && z.is_finite() => {
                Some(Center::Space { x, y, z })
            }
            _ => None,
        }
    }

    /// The place itself as x, y and z. One in the plane lies at the height 0.
    pub const fn position(self) -> [f64; 3] {
        match self {
            Center::Plane { x, y } => [x, y, 0.0],
            Center::Space { x, y, z } => [x, y, z],
        }
    }

    /// Distance in metres from here to `point`, in the plane ([`plane_distance`]) or in space
    /// ([`distance`]).
    pub fn distance_to(&self, point: &Point3<f64>) -> f64 {
        match *self {
            Center::Plane { x, y } => plane_distance((x, y), (point.x, point.y)),
            Center::Space { x, y, z } => distance(&Point3::new(x, y, z), point),
        }
    }
}

/// The radius of a spatial query; `None` if so many metres are none: negative, or not finite.
pub const fn radius(metres: f64) -> Option<f64> {
    if metres >= 0.0 && metres.is_finite() { Some(metres) } else { None }
}

/// An axis-aligned box, in metres: `box=x0,y0,z0,x1,y1,z1`. Its boundary belongs to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aabb {
    /// The corner with the least coordinate on every axis.
    pub min: Point3<f64>,
    /// The corner with the greatest coordinate on every axis.
    pub max: Point3<f64>,
}

impl Aabb {
    /// The box of six coordinates, x0, y0, z0 and x1, y1, z1; `None` if there are fewer or more.
    pub fn from_coordinates(coordinates: &[f64]) -> Option<Aabb> {
        let &[x0, y0, z0, x1, y1, z1] = coordinates else { return None };
        Some(Aabb::new([x0, y0, z0].into(), [x1, y1, z1].into()))
    }

    /// The box spanned by two opposite corners, in either order and on each axis separately.
    ///
    /// An infinite coordinate leaves that side open. A NaN coordinate makes a box that contains
    /// nothing.
    pub fn new(a: Point3<f64>, b: Point3<f64>) -> Aabb {
        // Not f64::min: that would drop a NaN and answer with a box that no caller asked for.
        let sort = |a: f64, b: f64| if b < a { (b, a) } else { (a, b) };
        let (x, y, z) = (sort(a.x, b.x), sort(a.y, b.y), sort(a.z, b.z));
        Aabb { min: Point3::new(x.0, y.0, z.0), max: Point3::new(x.1, y.1, z.1) }
    }

    /// Returns true if the point lies inside or on the boundary. False for a NaN coordinate.
    pub fn contains(&self, point: &Point3<f64>) -> bool {
        self.min.x <= point.x
            && point.x <= self.max.x
            && self.min.y <= point.y
            && point.y <= self.max.y
            && self.min.z <= point.z
            && point.z <= self.max.z
    }
}

/// A covariance of a pose (row by row: x, y, z, rotation about each fixed axis), told along the axes of
/// another frame: each 3×3 block `C` becomes `R C Rᵀ`, with `R` the rotation from its frame to the other.
/// The rotation is taken as exact, as `tf2_geometry_msgs` does.
pub fn rotate_covariance(covariance: &[f64; 36], rotation: &UnitQuaternion<f64>) -> [f64; 36] {
    let rotation = rotation.to_rotation_matrix().into_inner();
    let mut both = Matrix6::zeros();
    both.fixed_view_mut::<3, 3>(0, 0).copy_from(&rotation);
    both.fixed_view_mut::<3, 3>(3, 3).copy_from(&rotation);
    let rotated = both * Matrix6::from_row_slice(covariance) * both.transpose();
    core::array::from_fn(|i| rotated[(i / 6, i % 6)])
}

/// The rotation that `[x, y, z, w]` stands for (ROS order, REP-103), scaled to unit length.
///
/// `None` if a component is not finite or the norm is below [`MIN_QUATERNION_NORM`]: no rotation.
/// Components of any finite size are accepted: they are scaled by a power of two before squaring,
/// which is exact and keeps the squares from overflowing. The sign is kept, though `q` and `−q` are
/// the same rotation. What is already of unit length, to within rounding, is returned unchanged, so
/// reading a pose, writing it and reading it again changes no bit.
pub fn unit_quaternion([x, y, z, w]: [f64; 4]) -> Option<UnitQuaternion<f64>> {
    let raw = Quaternion::new(w, x, y, z);
    if !raw.coords.iter().all(|c| c.is_finite()) {
        return None;
    }
    let largest = raw.coords.iter().fold(0.0, |m: f64, c| m.max(c.abs()));
    let (_, exponent) = libm::frexp(largest);
    // The largest component now lies in [1/2, 1) (or all are zero), the norm below 2.
    let scaled = raw.coords.map(|c| libm::scalbn(c, -exponent));
    let norm = libm::sqrt(
        scaled.x * scaled.x + scaled.y * scaled.y + scaled.z * scaled.z + scaled.w * scaled.w,
    );
    let true_norm = libm::scalbn(norm, exponent);
    if true_norm < MIN_QUATERNION_NORM {
        return None;
    }
    // Dividing by the norm leaves an error of at most a few units in the last place.
    if (true_norm - 1.0).abs() <= 4.0 * f64::EPSILON {
        return Some(UnitQuaternion::new_unchecked(raw));
    }
    Some(UnitQuaternion::new_unchecked(Quaternion::from_vector(scaled.map(|c| c / norm))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(x: f64, y: f64, z: f64) -> Point3<f64> {
        Point3::new(x, y, z)
    }

    #[test]
    fn a_place_has_as_many_coordinates_as_it_needs() {
        let of = Center::from_coordinates;
        assert_eq!(of(&[1.0, 2.0]), Some(Center::Plane { x: 1.0, y: 2.0 }));
        assert_eq!(of(&[1.0, 2.0, 3.0]), Some(Center::Space { x: 1.0, y: 2.0, z: 3.0 }));
        assert_eq!((of(&[]), of(&[1.0]), of(&[1.0; 4])), (None, None, None));
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!((of(&[1.0, wrong]), of(&[1.0, 2.0, wrong])), (None, None));
            assert_eq!(radius(wrong), None);
        }
        assert_eq!((radius(0.0), radius(2.5), radius(-1e-9)), (Some(0.0), Some(2.5), None));
        let height = |coordinates: &[f64]| of(coordinates).map(Center::position);
        assert_eq!(height(&[1.0, 2.0]), Some([1.0, 2.0, 0.0]));
        assert_eq!(height(&[1.0, 2.0, 3.0]), Some([1.0, 2.0, 3.0]));
        let within = Aabb::from_coordinates(&[4.0, 1.0, 0.0, -1.0, 2.0, 9.0]).unwrap();
        assert_eq!((within.min, within.max), ([-1.0, 1.0, 0.0].into(), [4.0, 2.0, 9.0].into()));
        assert_eq!(
            (Aabb::from_coordinates(&[0.0; 5]), Aabb::from_coordinates(&[0.0; 7])),
            (None, None)
        );
    }

    #[test]
    fn distance_by_hand() {
        assert_eq!(distance(&p(1.0, 2.0, 3.0), &p(3.0, 5.0, 9.0)), 7.0); // 4 + 9 + 36 = 49
        assert_eq!(distance(&p(0.0, 0.0, 0.0), &p(3.0, -4.0, 0.0)), 5.0); // 9 + 16 = 25
        assert_eq!(plane_distance((1.0, 1.0), (6.0, 13.0)), 13.0); // 25 + 144 = 169
        assert_eq!(distance(&p(1e200, 0.0, 0.0), &p(0.0, 0.0, 0.0)), f64::INFINITY);
    }

    #[test]
    fn center_in_plane_ignores_height() {
        let far_up = p(3.0, 4.0, 12.0);
        assert_eq!(Center::Plane { x: 0.0, y: 0.0 }.distance_to(&far_up), 5.0);
        assert_eq!(Center::Space { x: 0.0, y: 0.0, z: 0.0 }.distance_to(&far_up), 13.0); // 25 + 144
    }

    #[test]
    fn boxes_include_their_boundary() {
        let b = Aabb::new(p(1.0, -2.0, 5.0), p(-1.0, 2.0, 3.0));
        assert_eq!((b.min, b.max), (p(-1.0, -2.0, 3.0), p(1.0, 2.0, 5.0)));
        assert!(b.contains(&b.min) && b.contains(&b.max) && b.contains(&p(0.0, 0.0, 4.0)));
        assert!(!b.contains(&p(1.0_f64.next_up(), 0.0, 4.0)));
        assert!(!b.contains(&p(0.0, -(2.0_f64.next_up()), 4.0)));
        assert!(!b.contains(&p(0.0, 0.0, 3.0_f64.next_down())));
        assert!(!b.contains(&p(0.0, f64::NAN, 4.0)));
    }

    #[test]
    fn a_nan_corner_makes_an_empty_box() {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
            let b = Aabb::new(p(a, 0.0, 0.0), p(b, 9.0, 9.0));
            assert!(!b.contains(&p(1.0, 1.0, 1.0)));
        }
        let open = Aabb::new(p(0.0, 0.0, f64::NEG_INFINITY), p(9.0, 9.0, f64::INFINITY));
        assert!(open.contains(&p(1.0, 1.0, -1e300)));
    }

    #[test]
    fn quaternion_by_hand() {
        let q = unit_quaternion([0.0, 0.0, 3.0, 4.0]).unwrap(); // norm 5
        assert_eq!((q.i, q.j, q.k, q.w), (0.0, 0.0, 0.6, 0.8));
        let turn = unit_quaternion([0.0, 0.0, 1.0, 1.0]).unwrap(); // 90° about z: x forward → y left
        assert!((turn * p(1.0, 0.0, 0.0) - p(0.0, 1.0, 0.0)).norm() < 1e-15);
        let same = unit_quaternion([0.0, 0.0, -3.0, -4.0]).unwrap(); // sign kept
        assert_eq!((same.k, same.w), (-0.6, -0.8));
    }

    #[test]
    fn quaternions_of_extreme_size() {
        let expected = unit_quaternion([1.0, 1.0, 1.0, 1.0]).unwrap();
        assert_eq!(expected.w, 0.5);
        assert_eq!(unit_quaternion([f64::MAX; 4]).unwrap().w, 0.5);
        assert_eq!(unit_quaternion([1e-9; 4]).unwrap().w, 0.5); // norm 2e-9
        assert_eq!(unit_quaternion([f64::MAX, 0.0, 0.0, 5e-324]).unwrap().i, 1.0);
        assert_eq!(unit_quaternion([0.0, 0.0, 0.0, 1e-9]).unwrap().w, 1.0); // the border counts
    }

    #[test]
    fn no_rotation_no_quaternion() {
        for bad in [[0.0; 4], [1e-10; 4], [1e-200; 4], [5e-324; 4], [-0.0; 4]] {
            assert_eq!(unit_quaternion(bad), None, "{bad:?}");
        }
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(unit_quaternion([0.0, bad, 0.0, 1.0]), None);
        }
    }

    fn coordinate() -> impl Strategy<Value = f64> {
        prop_oneof![-1e3..1e3f64, -1e-3..1e-3f64]
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_plain(
            (ax, ay, az) in (coordinate(), coordinate(), coordinate()),
            (bx, by, bz) in (coordinate(), coordinate(), coordinate()),
        ) {
            let (a, b) = (p(ax, ay, az), p(bx, by, bz));
            let d = distance(&a, &b);
            prop_assert_eq!(d, distance(&b, &a));
            prop_assert!(d >= plane_distance((ax, ay), (bx, by)));
            prop_assert!(Aabb::new(a, b).contains(&a) && Aabb::new(a, b).contains(&b));
            prop_assert_eq!(Aabb::new(a, b), Aabb::new(b, a));
        }

        #[test]
        fn normalising_twice_changes_no_bit(q in prop::array::uniform4(-2.0..2.0f64), e in -20..1000i32) {
            let scaled = q.map(|c| libm::scalbn(c, e));
            if let Some(once) = unit_quaternion(scaled) {
                prop_assert!((once.as_ref().norm() - 1.0).abs() < 1e-15);
                let again = unit_quaternion([once.i, once.j, once.k, once.w]).unwrap();
                prop_assert_eq!(once.coords.map(f64::to_bits), again.coords.map(f64::to_bits));
                // Size makes no difference to the direction.
                let plain = unit_quaternion(q).unwrap();
                prop_assert!((once.coords - plain.coords).norm() < 2e-15);
            }
        }
    }
}
