//! Places and times in messages, by the shape of their types: whatever has `x`, `y` and `z`
//! is a point, `position` and `orientation` are a pose, and so on inwards. So a pose of an unknown type is one too.

use nalgebra::{Point3, UnitQuaternion, Vector3};
use omir_core::geo::GeoPoint;
use omir_core::space::unit_quaternion;

use super::template::stamp_of;
use crate::interface::{Element, FieldType, MessageType, Shape};
use crate::message::{Message, Value};
use crate::stamp::Stamp;
use crate::tf::normalised;

/// Largest depth of a pose inside the message that is taken for one.
const DEEPEST: usize = 6;

/// A pose as a message states it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatedPose {
    /// Metres.
    pub position: Point3<f64>,
    /// The rotation, unless there is none or it is all zeros, as in a message that was not filled in.
    pub orientation: Option<UnitQuaternion<f64>>,
    /// 6×6 row by row, if there is one; it may be all zeros, which says that it is unknown.
    pub covariance: Option<Box<[f64; 36]>>,
    /// The frame of the header nearest to it, if it names one.
    pub frame: Option<String>,
    /// The frame that is posed, if it names one.
    pub child_frame: Option<String>,
}

/// Fields that lead to a pose, the outermost first.
const WITHIN: [&str; 5] = ["pose", "transform", "point", "center", "position"];

/// Returns true if a message of that type states a pose.
pub fn has_pose(ty: &MessageType) -> bool {
    has_pose_at(ty, 0)
}

fn has_pose_at(ty: &MessageType, depth: usize) -> bool {
    let is_number = |name: &str| {
        ty.field(name).is_some_and(|(_, field)| {
            field.ty.shape == Shape::Single
                && matches!(field.ty.element, Element::F32 | Element::F64)
        })
    };
    let inner = |name: &str| match ty.field(name).map(|(_, field)| &field.ty) {
        Some(ty) if ty.shape == Shape::Single => match &ty.element {
            Element::Message(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    };
    let is_point = is_number("x") && is_number("y");
    depth < DEEPEST
        && (is_point && (is_number("z") || is_number("theta"))
            || ["position", "translation"]
                .into_iter()
                .chain(WITHIN)
                .filter_map(inner)
                .any(|inner| has_pose_at(inner, depth + 1)))
}

/// Returns true if a message of that type tells the covariance of a pose, as `geometry_msgs/PoseWithCovariance` does.
pub fn has_covariance(ty: &MessageType) -> bool {
    has_covariance_at(ty, 0)
}

fn has_covariance_at(ty: &MessageType, depth: usize) -> bool {
    let inner = |name: &str| match ty.field(name).map(|(_, field)| &field.ty) {
        Some(ty) if ty.shape == Shape::Single => match &ty.element {
            Element::Message(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    };
    let is_floats = |ty: &FieldType| ty.shape == Shape::Array(36) && ty.element == Element::F64;
    let has_own = ty.field("covariance").is_some_and(|(_, field)| is_floats(&field.ty));
    depth < DEEPEST
        && (has_own
            || WITHIN.into_iter().filter_map(inner).any(|one| has_covariance_at(one, depth + 1)))
}

/// The pose that a message states; `None` if it states none, or with numbers that are not finite.
pub fn pose_of(message: &Message) -> Option<StatedPose> {
    pose_at(message, 0)
}

fn pose_at(message: &Message, depth: usize) -> Option<StatedPose> {
    if depth >= DEEPEST {
        return None;
    }
    let number = |message: &Message, name: &str| message.field(name).and_then(Value::as_f64);
    let inner = |name: &str| message.field(name).and_then(Value::as_message);
    if let (Some(x), Some(y)) = (number(message, "x"), number(message, "y")) {
        let theta = number(message, "theta");
        let position = Point3::new(x, y, number(message, "z").or(theta.map(|_| 0.0))?);
        let turn = theta.map(|yaw| UnitQuaternion::from_axis_angle(&Vector3::z_axis(), yaw));
        let is_finite = position.iter().chain(&theta).all(|number| number.is_finite());
        return is_finite.then(|| StatedPose {
            position,
            orientation: turn,
            ..StatedPose::default()
        });
    }
    let ends = [("position", "orientation"), ("translation", "rotation")];
    let end = ends.into_iter().find_map(|(point, turn)| Some((inner(point)?, inner(turn))));
    let mut stated = match end {
        Some((point, turn)) => {
            let mut stated = pose_at(point, depth + 1)?;
            let quaternion = turn.map(|turn| ["x", "y", "z", "w"].map(|name| number(turn, name)));
            if let Some([Some(x), Some(y), Some(z), Some(w)]) = quaternion {
                stated.orientation = unit_quaternion([x, y, z, w]);
            }
            stated
        }
        None => WITHIN.into_iter().find_map(|name| pose_at(inner(name)?, depth + 1))?,
    };
    if let Some(covariance) = message.field("covariance").and_then(Value::as_floats) {
        stated.covariance = covariance.try_into().ok().map(Box::new);
    }
    let frame = inner("header").and_then(|header| name_at(header, "frame_id"));
    stated.frame = stated.frame.or(frame);
    stated.child_frame = stated.child_frame.or_else(|| name_at(message, "child_frame_id"));
    Some(stated)
}

fn name_at(message: &Message, name: &str) -> Option<String> {
    normalised(message.field(name)?.as_text()?).map(ToOwned::to_owned)
}

/// The frame that the header of a message names.
pub fn frame_of(message: &Message) -> Option<String> {
    name_at(message.field("header")?.as_message()?, "frame_id")
}

/// The frame that a message poses, for a pose that is a field of it: `child_frame_id`.
pub fn child_frame_of(message: &Message) -> Option<String> {
    name_at(message, "child_frame_id")
}

/// The stamp of a message: of its header, or its own `stamp`. `None` if it has none or it is zero,
/// which in ROS means that it was not set.
pub fn own_stamp(message: &Message) -> Option<Stamp> {
    let header = message.field("header").and_then(Value::as_message);
    let holder = header.unwrap_or(message);
    let stamp = stamp_of(holder.field("stamp")?.as_message()?)?;
    (!stamp.is_zero()).then_some(stamp)
}

/// Returns true if a message of that type states a place on the Earth.
pub fn has_geo(ty: &MessageType) -> bool {
    ty.field("latitude").is_some() && ty.field("longitude").is_some()
}

/// The place on the Earth that a message states; `None` if the numbers are none.
pub fn geo_of(message: &Message) -> Option<GeoPoint> {
    let number = |name: &str| message.field(name).and_then(Value::as_f64);
    let altitude = number("altitude").filter(|altitude| altitude.is_finite());
    GeoPoint::new(number("latitude")?, number("longitude")?, altitude).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    fn message(ty: &str, values: &[(&str, f64)]) -> Message {
        let mut message = Message::new(&Registry::standard().message(ty).unwrap());
        for (path, value) in values {
            message.set(path, *value).unwrap_or_else(|error| panic!("{error}"));
        }
        message
    }

    #[test]
    fn poses_of_every_shape() {
        for (ty, prefix) in [
            ("geometry_msgs/msg/Point", ""),
            ("geometry_msgs/msg/Point32", ""),
            ("geometry_msgs/msg/PointStamped", "point."),
            ("geometry_msgs/msg/Pose", "position."),
            ("geometry_msgs/msg/PoseStamped", "pose.position."),
            ("geometry_msgs/msg/PoseWithCovariance", "pose.position."),
            ("geometry_msgs/msg/PoseWithCovarianceStamped", "pose.pose.position."),
            ("geometry_msgs/msg/Transform", "translation."),
            ("geometry_msgs/msg/TransformStamped", "transform.translation."),
            ("nav_msgs/msg/Odometry", "pose.pose.position."),
            ("vision_msgs/msg/BoundingBox3D", "center.position."),
        ] {
            let message = message(
                ty,
                &[
                    (&format!("{prefix}x"), 1.0),
                    (&format!("{prefix}y"), 2.0),
                    (&format!("{prefix}z"), -3.0),
                ],
            );
            assert!(has_pose(message.ty()), "{ty}");
            let stated = pose_of(&message).unwrap();
            assert_eq!(stated.position, Point3::new(1.0, 2.0, -3.0), "{ty}");
        }
        let flat = pose_of(&message("geometry_msgs/msg/Pose2D", &[("x", 1.0), ("theta", 1.5)]));
        let yaw = flat.unwrap().orientation.unwrap().euler_angles().2;
        assert!((yaw - 1.5).abs() < 1e-12);
        for ty in ["std_msgs/msg/String", "sensor_msgs/msg/BatteryState", "std_msgs/msg/Header"] {
            let message = message(ty, &[]);
            assert!(!has_pose(message.ty()) && pose_of(&message).is_none(), "{ty}");
        }
    }

    #[test]
    fn an_odometry_says_all_of_it() {
        let mut odometry = message("nav_msgs/msg/Odometry", &[("pose.pose.orientation.w", 2.0)]);
        odometry.set("header.frame_id", "/odom").unwrap();
        odometry.set("child_frame_id", "base_link").unwrap();
        odometry.set("header.stamp.sec", 7).unwrap();
        let stated = pose_of(&odometry).unwrap();
        assert_eq!(stated.frame.as_deref(), Some("odom"));
        assert_eq!(stated.child_frame.as_deref(), Some("base_link"));
        assert_eq!(stated.orientation, Some(UnitQuaternion::identity()));
        assert_eq!(own_stamp(&odometry), Some(Stamp::from_ros(7, 0)));
        odometry.set("pose.covariance[7]", 0.25).unwrap();
        assert_eq!(pose_of(&odometry).unwrap().covariance.unwrap()[7], 0.25);
    }

    #[test]
    fn what_is_not_filled_in_is_not_stated() {
        let zeros = [("orientation.w", 0.0)];
        let pose = pose_of(&message("geometry_msgs/msg/Pose", &zeros)).unwrap();
        assert_eq!(pose.orientation, None);
        assert_eq!(pose_of(&message("geometry_msgs/msg/Pose", &[("position.y", f64::NAN)])), None);
        assert_eq!(own_stamp(&message("geometry_msgs/msg/PoseStamped", &[])), None);
        assert_eq!(own_stamp(&message("std_msgs/msg/String", &[])), None);
        let fix = [("latitude", f64::NAN), ("longitude", 1.0)];
        assert_eq!(geo_of(&message("sensor_msgs/msg/NavSatFix", &fix)), None);
        let fix = [("latitude", 48.1), ("longitude", 11.6), ("altitude", f64::NAN)];
        let geo = geo_of(&message("sensor_msgs/msg/NavSatFix", &fix)).unwrap();
        assert_eq!((geo.lat(), geo.lon(), geo.alt()), (48.1, 11.6, None));
    }
}
