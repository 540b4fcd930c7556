//! A pose that a message tells, as the poses that a memory carries: in the fixed frame at the time of
//! the event, in the frame it came in, and tied to the keyframe nearby.
//!
//! The fixed frame (`map`, or `odom` without one) makes memories comparable; their own frame keeps
//! what was measured. When mapping closes a loop, keyframes move in the map, and what was remembered
//! near them has to move with them. So a memory may also hold its pose in its keyframe, which no loop
//! closure changes: the daemon's `rebase` works out from it where it is in the map by then.
//! Everything here is a pure function of the pose and of the transforms known.
//!
//! Invariant 22 of ARCHITECTURE.md.

use std::fmt;

use nalgebra::{Point3, UnitQuaternion};
use omir_core::instant::Instant;
use omir_core::model::Extension;
use omir_core::space::{distance, rotate_covariance, unit_quaternion};
use omir_core::spatial::SpatialPose;

use crate::stamp::Stamp;
use crate::tf::transform::{FARTHEST_M, Transform};
use crate::tf::{Buffer, LONGEST_NAME, LookupError, normalised};

/// A pose as a message tells it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'m> {
    /// The frame of the numbers: `header.frame_id`.
    pub frame: &'m str,
    /// The frame that is posed, such as `base_link`, if it has a name.
    pub child_frame: Option<&'m str>,
    /// Time at which it held.
    pub stamp: Stamp,
    /// x, y, z in metres.
    pub position: [f64; 3],
    /// x, y, z, w. All zeros is what an unset field holds, and means that there is none.
    pub orientation: Option<[f64; 4]>,
    /// 6 × 6, row by row, as in `geometry_msgs/PoseWithCovariance`. Where it is not known (all zeros, a
    /// negative variance, or not finite) it is left out.
    pub covariance: Option<&'m [f64; 36]>,
}

/// Numbers that are no pose at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadPose {
    /// Its frame has no name.
    NoFrame,
    /// A frame has a name longer than 255 bytes, which transforms have not either.
    NameTooLong,
    /// A coordinate or a component of the quaternion is not finite.
    NotFinite,
    /// Beyond 1e12 m along an axis.
    TooFar,
}

impl BadPose {
    /// One word for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoFrame | Self::NameTooLong => "frame-name",
            Self::NotFinite | Self::TooFar => "no-pose",
        }
    }
}

impl fmt::Display for BadPose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFrame => "a pose without a frame_id",
            Self::NameTooLong => "a pose whose frame has a name longer than 255 bytes",
            Self::NotFinite => "a number of the pose is not finite",
            Self::TooFar => "the position is beyond 1e12 m",
        })
    }
}

impl std::error::Error for BadPose {}

/// The place of something, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// In the frame it was told in.
    pub own: SpatialPose,
    /// In the fixed frame at the time of the event, or why not; [`LookupError::expected`] says whether
    /// it is worth to ask again.
    pub in_fixed: Result<SpatialPose, LookupError>,
    /// In the nearest keyframe, if there is one.
    pub tie: Option<SpatialPose>,
}

impl Placed {
    /// The extensions for a memory, the fixed frame first. A pose told in the fixed frame is there once.
    pub fn extensions(&self) -> Vec<Extension> {
        let in_fixed = self.in_fixed.as_ref().ok();
        let own =
            Some(&self.own).filter(|own| in_fixed.is_none_or(|fixed| fixed.frame != own.frame));
        let tie = self.tie.as_ref().filter(|tie| tie.frame != self.own.frame);
        in_fixed.into_iter().chain(own).chain(tie).map(SpatialPose::to_extension).collect()
    }
}

/// Places a pose in the `fixed` frame and ties it to the nearest frame for which `is_keyframe` holds.
pub fn place(
    observed: &Observed<'_>,
    tf: &Buffer,
    fixed: &str,
    is_keyframe: impl Fn(&str) -> bool,
) -> Result<Placed, BadPose> {
    let own = own_pose(observed)?;
    let fixed = normalised(fixed).ok_or(BadPose::NoFrame)?;
    let in_fixed = if own.frame == fixed {
        Ok(own.clone())
    } else {
        tf.lookup(fixed, &own.frame, observed.stamp).map(|transform| moved(&own, fixed, &transform))
    };
    let tie = in_fixed.as_ref().ok().and_then(|pose| tie(pose, observed.stamp, tf, is_keyframe));
    Ok(Placed { own, in_fixed, tie })
}

/// The same pose told in another frame: `transform` takes coordinates of its frame to those of `frame`.
/// A covariance that cannot be told in finite numbers is left out.
pub fn moved(pose: &SpatialPose, frame: &str, transform: &Transform) -> SpatialPose {
    let rotated =
        pose.covariance.as_ref().map(|known| rotate_covariance(known, &transform.rotation));
    SpatialPose {
        frame: frame.to_owned(),
        position: transform * pose.position,
        orientation: pose.orientation.map(|orientation| tidy(transform.rotation * orientation)),
        covariance: rotated.filter(|known| known.iter().all(|n| n.is_finite())).map(Box::new),
        ..pose.clone()
    }
}

fn own_pose(observed: &Observed<'_>) -> Result<SpatialPose, BadPose> {
    let frame = normalised(observed.frame).ok_or(BadPose::NoFrame)?;
    if frame.len().max(observed.child_frame.map_or(0, str::len)) > LONGEST_NAME {
        return Err(BadPose::NameTooLong);
    }
    let orientation = observed.orientation.unwrap_or_default();
    if !observed.position.iter().chain(&orientation).all(|number| number.is_finite()) {
        return Err(BadPose::NotFinite);
    }
    if observed.position.iter().any(|metres| metres.abs() > FARTHEST_M) {
        return Err(BadPose::TooFar);
    }
    Ok(SpatialPose {
        orientation: unit_quaternion(orientation),
        stamp: Some(Instant::from(observed.stamp)),
        covariance: observed.covariance.copied().and_then(known_covariance),
        child_frame: observed.child_frame.and_then(normalised).map(ToOwned::to_owned),
        ..SpatialPose::new(frame, Point3::from(observed.position))
    })
}

fn known_covariance(covariance: [f64; 36]) -> Option<Box<[f64; 36]>> {
    let known = covariance.iter().all(|number| number.is_finite())
        && covariance.iter().any(|number| *number != 0.0)
        && (0..6).all(|axis| covariance[axis * 7] >= 0.0);
    known.then(|| Box::new(covariance))
}

/// Of unit length to the last bit that reading it again would keep.
fn tidy(rotation: UnitQuaternion<f64>) -> UnitQuaternion<f64> {
    unit_quaternion([rotation.i, rotation.j, rotation.k, rotation.w]).unwrap_or(rotation)
}

/// The nearest keyframe at the time of the event; of equally near ones the one named first. Keyframes
/// rest until a loop closes and then lie elsewhere at once: what was said of one last holds until then, and in
/// between it was nowhere.
///
/// What the pose in the fixed frame says already is not said again, for it would be stored twice: the
/// stamp, and the covariance where an orientation shows how it has turned.
fn tie(
    pose: &SpatialPose,
    at: Stamp,
    tf: &Buffer,
    is_keyframe: impl Fn(&str) -> bool,
) -> Option<SpatialPose> {
    let (_, keyframe, transform) = tf
        .frames()
        .filter(|frame| frame.name != pose.frame && is_keyframe(frame.name))
        .filter_map(|frame| Some((frame.name, tf.resting(&pose.frame, frame.name, at).ok()?)))
        .map(|(name, transform)| {
            (distance(&transform.translation.vector.into(), &pose.position), name, transform)
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let tie = moved(pose, keyframe, &transform.inverse());
    let covariance = tie.covariance.filter(|_| pose.orientation.is_none());
    Some(SpatialPose { stamp: None, covariance, ..tie })
}

#[cfg(test)]
mod tests {
    use nalgebra::Isometry3;
    use omir_core::model::{Entity, Resource};
    use omir_core::spatial::{SPATIAL_POSE_URL, pose_of};
    use proptest::prelude::*;

    use super::*;
    use crate::tf::transform::{difference, transform};

    fn at(seconds: f64) -> Stamp {
        Stamp::from_nanos((seconds * 1e9) as i64)
    }

    fn observed(frame: &str) -> Observed<'_> {
        Observed {
            frame,
            child_frame: Some("cup"),
            stamp: at(1.5),
            position: [1.0, 2.0, 3.0],
            orientation: Some([0.0, 0.0, 0.0, 1.0]),
            covariance: None,
        }
    }

    /// map → camera turned left by 90° and moving along x; keyframes at x = 0, 10, 20.
    fn tf() -> Buffer {
        let mut tf = Buffer::default();
        let left = [0.0, 0.0, 0.5_f64.sqrt(), 0.5_f64.sqrt()];
        for seconds in [1.0, 2.0] {
            let pose = transform([seconds * 10.0, 0.0, 0.0], left).unwrap();
            tf.insert("map", "camera", at(seconds), pose, false).unwrap();
        }
        for (i, x) in [0.0, 10.0, 20.0].into_iter().enumerate() {
            let pose = transform([x, 1.0, 0.0], left).unwrap();
            tf.insert("map", &format!("kf_{i}"), at(0.5), pose, i == 0).unwrap();
        }
        tf
    }

    fn is_keyframe(name: &str) -> bool {
        name.starts_with("kf_")
    }

    fn near(pose: &SpatialPose, x: f64, y: f64, z: f64) -> bool {
        distance(&pose.position, &Point3::new(x, y, z)) < 1e-12
    }

    #[test]
    fn in_the_fixed_frame_and_in_its_own() {
        let mut covariance = [0.0; 36];
        covariance[0] = 4.0;
        let seen = Observed { covariance: Some(&covariance), ..observed("/camera") };
        let placed = place(&seen, &tf(), "map", is_keyframe).unwrap();
        let fixed = placed.in_fixed.as_ref().unwrap();
        assert!(near(fixed, 13.0, 1.0, 3.0), "{fixed:?}");
        assert_eq!((fixed.frame.as_str(), fixed.child_frame.as_deref()), ("map", Some("cup")));
        assert_eq!(fixed.stamp.as_ref().unwrap().as_str(), "1970-01-01T00:00:01.500Z");
        assert!((fixed.covariance.as_ref().unwrap()[7] - 4.0).abs() < 1e-12);
        assert!((fixed.orientation.unwrap().angle().to_degrees() - 90.0).abs() < 1e-12);
        assert_eq!(
            (placed.own.frame.as_str(), placed.own.position),
            ("camera", [1.0, 2.0, 3.0].into())
        );

        let extensions = placed.extensions();
        let urls: Vec<_> = extensions.iter().map(|extension| extension.url.as_str()).collect();
        assert_eq!(urls, [SPATIAL_POSE_URL; 3]);
        let mut cup: Resource = Entity::new("cup".parse().unwrap(), "Cup").into();
        cup.extensions_mut().extend(extensions);
        assert_eq!(pose_of(&cup).unwrap().as_ref(), Ok(fixed));
    }

    #[test]
    fn told_in_the_fixed_frame_it_is_there_once() {
        let placed = place(&observed("map"), &Buffer::default(), "/map", is_keyframe).unwrap();
        assert_eq!(placed.in_fixed.as_ref(), Ok(&placed.own));
        assert_eq!((placed.extensions().len(), placed.tie.as_ref()), (1, None));
    }

    #[test]
    fn without_a_transform_its_own_frame_is_left() {
        let late = Observed { stamp: at(2.5), ..observed("camera") };
        let placed = place(&late, &tf(), "map", is_keyframe).unwrap();
        let reason = placed.in_fixed.as_ref().unwrap_err();
        assert_eq!(reason.expected(), Some(at(3.0)));
        assert_eq!(placed.tie, None);
        assert_eq!(placed.extensions(), [placed.own.to_extension()]);
    }

    #[test]
    fn what_is_no_pose_is_told() {
        let (tf, no) = (Buffer::default(), |_: &str| false);
        let far = Observed { position: [0.0, 2e12, 0.0], ..observed("map") };
        assert_eq!(place(&far, &tf, "map", no), Err(BadPose::TooFar));
        let nan = Observed { position: [0.0, f64::NAN, 0.0], ..observed("map") };
        assert_eq!(place(&nan, &tf, "map", no), Err(BadPose::NotFinite));
        let turned =
            Observed { orientation: Some([f64::INFINITY, 0.0, 0.0, 1.0]), ..observed("map") };
        assert_eq!(place(&turned, &tf, "map", no), Err(BadPose::NotFinite));
        assert_eq!(place(&observed("/"), &tf, "map", no), Err(BadPose::NoFrame));
        let long = "x".repeat(LONGEST_NAME + 1);
        assert_eq!(place(&observed(&long), &tf, "map", no), Err(BadPose::NameTooLong));
        let child = Observed { child_frame: Some(&long), ..observed("map") };
        assert_eq!(place(&child, &tf, "map", no), Err(BadPose::NameTooLong));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut negative = [0.0; 36];
        negative[0] = -1.0;
        let mut wild = [1.0; 36];
        wild[35] = f64::NAN;
        for covariance in [[0.0; 36], negative, wild] {
            let seen = Observed {
                covariance: Some(&covariance),
                orientation: Some([0.0; 4]),
                ..observed("map")
            };
            let own = place(&seen, &Buffer::default(), "map", |_| false).unwrap().own;
            assert_eq!((own.covariance, own.orientation), (None, None));
        }
    }

    #[test]
    fn tied_to_the_nearest_keyframe() {
        let placed = place(&observed("camera"), &tf(), "map", is_keyframe).unwrap();
        let tie = placed.tie.as_ref().unwrap();
        assert_eq!((tie.frame.as_str(), tie.child_frame.as_deref()), ("kf_1", Some("cup")));
        // (13, 1, 3) in the map, seen from (10, 1, 0) with x to the left.
        assert!(distance(&tie.position, &Point3::new(0.0, -3.0, 3.0)) < 1e-12);
        assert_eq!(placed.extensions()[2], tie.to_extension());
        assert_eq!(tie.stamp, None);
        let only_first = place(&observed("camera"), &tf(), "map", |name| name == "kf_0").unwrap();
        assert_eq!(only_first.tie.unwrap().frame, "kf_0");
    }

    #[test]
    fn a_keyframe_does_not_glide_to_where_a_loop_closure_puts_it() {
        let mut tf = Buffer::default();
        for (seconds, x) in [(1.0, 0.0), (2.0, 2.0)] {
            let keyframe = Transform::translation(x, 0.0, 0.0);
            tf.insert("odom", "kf_7", at(seconds), keyframe, false).unwrap();
        }
        for seconds in [0.0, 1.9] {
            let odom = Transform::translation(10.0, 0.0, 0.0);
            tf.insert("map", "odom", at(seconds), odom, false).unwrap();
        }
        let tied = |seconds| {
            let seen = Observed { stamp: at(seconds), ..observed("map") };
            place(&seen, &tf, "map", is_keyframe).unwrap().tie.map(|tie| tie.position.x)
        };
        // At (1, 2, 3) in the map. Before the keyframe was known it is tied to nothing.
        assert_eq!([0.5, 1.5, 2.5].map(tied), [None, Some(-9.0), Some(-11.0)]);
    }

    #[test]
    fn a_point_takes_its_covariance_along_to_the_keyframe() {
        let mut covariance = [0.0; 36];
        covariance[0] = 4.0;
        let pose = Observed { covariance: Some(&covariance), ..observed("map") };
        let tied =
            |seen: &Observed<'_>| place(seen, &tf(), "map", is_keyframe).unwrap().tie.unwrap();
        assert_eq!(tied(&pose).covariance, None);
        let point = tied(&Observed { orientation: None, ..pose });
        assert!((point.covariance.unwrap()[7] - 4.0).abs() < 1e-12);
    }

    fn any_transform() -> impl Strategy<Value = Transform> {
        (prop::array::uniform3(-1e3..1e3f64), prop::array::uniform4(-1.0..1.0f64)).prop_filter_map(
            "a quaternion without direction",
            |(position, quaternion)| {
                let rotation = unit_quaternion(quaternion)?;
                Some(Isometry3::from_parts(position.into(), rotation))
            },
        )
    }

    proptest! {
        #[test]
        fn a_pose_moves_with_its_keyframe_and_back(
            pose in any_transform(),
            before in any_transform(),
            after in any_transform(),
        ) {
            let rotation = pose.rotation.coords;
            let seen = Observed {
                position: pose.translation.vector.into(),
                orientation: Some(rotation.into()),
                ..observed("map")
            };
            let mut tf = Buffer::default();
            tf.insert("map", "kf_7", Stamp::ZERO, before, true).unwrap();
            let tie = place(&seen, &tf, "map", is_keyframe).unwrap().tie.unwrap();
            // As it is stored.
            prop_assert_eq!(SpatialPose::from_extension(&tie.to_extension()), Ok(tie.clone()));
            let in_map = |keyframe: &Transform| {
                let pose = moved(&tie, "map", keyframe);
                Isometry3::from_parts(pose.position.into(), pose.orientation.unwrap())
            };
            let (metres, degrees) = difference(&in_map(&after), &(after * before.inverse() * pose));
            prop_assert!(metres < 1e-9 && degrees < 1e-6, "{metres} m, {degrees}°");
            let (metres, degrees) = difference(&in_map(&before), &pose);
            prop_assert!(metres < 1e-9 && degrees < 1e-6, "{metres} m, {degrees}°");
        }

        #[test]
        fn extensions_are_read_back_as_they_were(pose in any_transform(), keyframe in any_transform()) {
            let pose = SpatialPose {
                orientation: Some(pose.rotation),
                ..SpatialPose::new("map", pose.translation.vector.into())
            };
            let moved = moved(&pose, "odom", &keyframe);
            prop_assert_eq!(SpatialPose::from_extension(&moved.to_extension()), Ok(moved));
        }
    }
}
