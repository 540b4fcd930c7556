//! The spatial pose extension: where a memory lies, inside an ordinary OMIR extension.
//!
//! ```json
//! { "frame": "map", "position": [x, y, z], "orientation": [qx, qy, qz, qw],
//!   "stamp": "2026-01-01T00:00:00Z", "covariance": [36 numbers], "childFrame": "base_link",
//!   "geo": { "lat": 0.0, "lon": 0.0, "alt": 0.0 } }
//! ```
//!
//! Units and axes follow ROS REP-103 and REP-105: metres, radians, right-handed, x forward. Frame and
//! position are required. The schemas say nothing about an extension's content, so the rules are here;
//! faults carry the code E400 and point into the extension.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use nalgebra::{Point3, UnitQuaternion};

use crate::geo::GeoPoint;
use crate::instant::Instant;
use crate::model::{Extension, Resource};
use crate::space::unit_quaternion;
use crate::validate::{At, Fault, FaultCode, Range, Shape, Table, Walk, closed, may, need};
use crate::value::{Map, Value};

pub use crate::space::SPATIAL_POSE_URL;

/// Elements of a 6×6 covariance, row by row: x, y, z, and rotation about each.
const COVARIANCE_LEN: usize = 36;

pub(crate) static POSE: Table = closed(
    "SpatialPose",
    "Where a memory lies: a pose in a named frame, right-handed, x forward (REP-103, REP-105)",
    &[
        need("frame", Shape::SomeText, "The frame of the coordinates, such as map"),
        need("position", Shape::Floats(3), "x, y, z in metres"),
        may("orientation", Shape::Floats(4), "Quaternion x, y, z, w from childFrame to frame"),
        may("stamp", Shape::Instant, "When the pose held"),
        may(
            "covariance",
            Shape::Floats(COVARIANCE_LEN),
            "6 by 6, row by row: x, y, z in metres, then rotation about x, y, z in radians",
        ),
        may("childFrame", Shape::SomeText, "The frame that is posed, such as base_link"),
        may("geo", Shape::Object(&GEO), "The same place on the Earth"),
    ],
);

static GEO: Table = closed(
    "GeoPoint",
    "A place on the Earth, WGS 84",
    &[
        need("lat", Shape::Number(Range::Between(-90, 90)), "Degrees north of the equator"),
        need("lon", Shape::Number(Range::Between(-180, 180)), "Degrees east of Greenwich"),
        may("alt", Shape::Float, "Metres above the ellipsoid"),
    ],
);

/// A pose in a named frame. Every number is finite.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialPose {
    /// The frame the coordinates are in, such as `map`; not empty.
    pub frame: String,
    /// Metres.
    pub position: Point3<f64>,
    /// Rotation from `child_frame` to `frame`.
    pub orientation: Option<UnitQuaternion<f64>>,
    /// Time at which the pose held.
    pub stamp: Option<Instant>,
    /// 6×6, row by row.
    pub covariance: Option<Box<[f64; COVARIANCE_LEN]>>,
    /// The frame that is posed, such as `base_link`.
    pub child_frame: Option<String>,
    /// The same place on the Earth.
    pub geo: Option<GeoPoint>,
}

impl SpatialPose {
    /// A position in a frame and nothing else.
    pub fn new(frame: impl Into<String>, position: Point3<f64>) -> Self {
        Self {
            frame: frame.into(),
            position,
            orientation: None,
            stamp: None,
            covariance: None,
            child_frame: None,
            geo: None,
        }
    }

    /// Reads the extension; the quaternion is normalised. Faults point into the extension, as in
    /// `/valueJson/position/2`.
    pub fn from_extension(extension: &Extension) -> Result<Self, Vec<Fault>> {
        Self::read(extension, &At::base("/"))
    }

    fn read(extension: &Extension, at: &At<'_>) -> Result<Self, Vec<Fault>> {
        if extension.url != SPATIAL_POSE_URL {
            let message = alloc::format!("not the extension {SPATIAL_POSE_URL}");
            return Err(alloc::vec![at.name("url").fault(FaultCode::Pose, message)]);
        }
        let Some(value) = &extension.value_json else {
            let message = "\"valueJson\" is missing; the pose goes there";
            return Err(alloc::vec![at.fault(FaultCode::Pose, message)]);
        };
        let at = at.name("valueJson");
        let Some(map) = value.as_object() else {
            let message = alloc::format!("a pose is an object, not {}", value.kind_name());
            return Err(alloc::vec![at.fault(FaultCode::Pose, message)]);
        };
        let mut faults = Vec::new();
        Walk::new(FaultCode::Pose, &mut faults).members(map, &POSE, &at);
        let orientation = floats::<4>(map.get("orientation")).map(unit_quaternion);
        if let Some(None) = orientation {
            let message = "a quaternion of length zero is no rotation; leave the field out";
            faults.push(at.name("orientation").fault(FaultCode::Pose, message));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let text = |name| map.get(name).and_then(Value::as_str);
        let [x, y, z] = floats(map.get("position")).unwrap_or_default();
        Ok(Self {
            frame: text("frame").unwrap_or_default().to_string(),
            position: Point3::new(x, y, z),
            orientation: orientation.flatten(),
            stamp: text("stamp").and_then(|text| Instant::parse(text).ok()),
            covariance: floats(map.get("covariance")).map(Box::new),
            child_frame: text("childFrame").map(ToString::to_string),
            geo: map.get("geo").and_then(geo_point),
        })
    }

    /// The content of `valueJson`.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("frame", self.frame.as_str());
        map.insert("position", self.position.iter().copied().collect::<Value>());
        if let Some(orientation) = &self.orientation {
            // nalgebra keeps the scalar part last, as ROS does.
            map.insert("orientation", orientation.coords.iter().copied().collect::<Value>());
        }
        if let Some(stamp) = &self.stamp {
            map.insert("stamp", stamp.as_str());
        }
        if let Some(covariance) = &self.covariance {
            map.insert("covariance", covariance.iter().copied().collect::<Value>());
        }
        if let Some(child_frame) = &self.child_frame {
            map.insert("childFrame", child_frame.as_str());
        }
        if let Some(geo) = &self.geo {
            let mut members = Map::new();
            members.insert("lat", geo.lat());
            members.insert("lon", geo.lon());
            if let Some(alt) = geo.alt() {
                members.insert("alt", alt);
            }
            map.insert("geo", members);
        }
        Value::Object(map)
    }

    /// The extension that carries this pose.
    pub fn to_extension(&self) -> Extension {
        Extension::json(SPATIAL_POSE_URL, self.to_value())
    }
}

/// The pose of a resource: `None` without the extension, faults (pointing into the resource, as in
/// `/extension/0/valueJson/frame`) if it is there and no pose. Of several the first counts.
pub fn pose_of(resource: &Resource) -> Option<Result<SpatialPose, Vec<Fault>>> {
    let (index, extension) = resource
        .extensions()
        .iter()
        .enumerate()
        .find(|(_, extension)| extension.url == SPATIAL_POSE_URL)?;
    let at = At::base("/extension");
    Some(SpatialPose::read(extension, &at.index(index)))
}

/// Exactly `N` finite numbers.
fn floats<const N: usize>(value: Option<&Value>) -> Option<[f64; N]> {
    let items: [Value; N] = value?.as_array()?.to_vec().try_into().ok()?;
    let numbers = items.map(|item| item.as_f64().filter(|number| number.is_finite()));
    numbers.iter().all(Option::is_some).then(|| numbers.map(Option::unwrap_or_default))
}

fn geo_point(value: &Value) -> Option<GeoPoint> {
    let number = |name| value.get(name).and_then(Value::as_f64);
    GeoPoint::new(number("lat")?, number("lon")?, number("alt")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Limits;
    use crate::json;

    fn extension(text: &str) -> Extension {
        Extension::json(
            SPATIAL_POSE_URL,
            json::from_slice(text.as_bytes(), &Limits::default()).unwrap(),
        )
    }

    fn fault_pointers(text: &str) -> Vec<String> {
        let faults = SpatialPose::from_extension(&extension(text)).unwrap_err();
        assert!(faults.iter().all(|fault| fault.code == FaultCode::Pose));
        faults.into_iter().map(|fault| fault.pointer).collect()
    }

    #[test]
    fn every_field_survives() {
        let covariance = (0..36).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"{{"frame":"map","position":[1,2.5,-3e0],"orientation":[0,0,0,2],
            "stamp":"2026-01-01T00:00:00+01:00","covariance":[{covariance}],"childFrame":"base_link",
            "geo":{{"lat":-90,"lon":180,"alt":-12.5}}}}"#
        );
        let pose = SpatialPose::from_extension(&extension(&text)).unwrap();
        assert_eq!(pose.position, Point3::new(1.0, 2.5, -3.0));
        assert_eq!(pose.orientation, Some(UnitQuaternion::identity()));
        assert_eq!(pose.stamp.as_ref().unwrap().as_str(), "2026-01-01T00:00:00+01:00");
        assert_eq!(pose.covariance.as_ref().unwrap()[35], 35.0);
        assert_eq!(pose.geo.unwrap().alt(), Some(-12.5));
        let again = SpatialPose::from_extension(&pose.to_extension()).unwrap();
        assert_eq!(again, pose);
        assert_eq!(again.to_value(), pose.to_value());
    }

    #[test]
    fn orientation_is_x_y_z_w() {
        let turned = extension(r#"{"frame":"m","position":[0,0,0],"orientation":[0,0,3,3]}"#);
        let pose = SpatialPose::from_extension(&turned).unwrap();
        let forward = pose.orientation.unwrap() * Point3::new(1.0, 0.0, 0.0);
        assert!((forward - Point3::new(0.0, 1.0, 0.0)).norm() < 1e-12, "{forward}");
    }

    #[test]
    fn faults_point_at_the_field() {
        for (text, pointer) in [
            ("[]", "/valueJson"),
            ("{}", "/valueJson"),
            (r#"{"frame":"map"}"#, "/valueJson"),
            (r#"{"frame":"","position":[0,0,0]}"#, "/valueJson/frame"),
            (r#"{"frame":1,"position":[0,0,0]}"#, "/valueJson/frame"),
            (r#"{"frame":"m","position":[0,0]}"#, "/valueJson/position"),
            (r#"{"frame":"m","position":[0,0,0,0]}"#, "/valueJson/position"),
            (r#"{"frame":"m","position":[0,0,1e400]}"#, "/valueJson/position/2"),
            (r#"{"frame":"m","position":[0,null,0]}"#, "/valueJson/position/1"),
            (
                r#"{"frame":"m","position":[0,0,0],"orientation":[0,0,0,0]}"#,
                "/valueJson/orientation",
            ),
            (
                r#"{"frame":"m","position":[0,0,0],"orientation":[0,0,1e-10,0]}"#,
                "/valueJson/orientation",
            ),
            (r#"{"frame":"m","position":[0,0,0],"orientation":[0,0,1]}"#, "/valueJson/orientation"),
            (r#"{"frame":"m","position":[0,0,0],"covariance":[1]}"#, "/valueJson/covariance"),
            (r#"{"frame":"m","position":[0,0,0],"stamp":"now"}"#, "/valueJson/stamp"),
            (r#"{"frame":"m","position":[0,0,0],"childFrame":null}"#, "/valueJson/childFrame"),
            (r#"{"frame":"m","position":[0,0,0],"geo":{"lat":1}}"#, "/valueJson/geo"),
            (
                r#"{"frame":"m","position":[0,0,0],"geo":{"lat":90.0000001,"lon":0}}"#,
                "/valueJson/geo/lat",
            ),
            (
                r#"{"frame":"m","position":[0,0,0],"geo":{"lat":0,"lon":-180.5}}"#,
                "/valueJson/geo/lon",
            ),
            (
                r#"{"frame":"m","position":[0,0,0],"geo":{"lat":0,"lon":0,"alt":1e999}}"#,
                "/valueJson/geo/alt",
            ),
            (r#"{"frame":"m","position":[0,0,0],"child_frame":"b"}"#, "/valueJson"),
        ] {
            assert!(fault_pointers(text).contains(&pointer.to_string()), "{text}");
        }
        let typo = extension(r#"{"frame":"m","position":[0,0,0],"child_frame":"b"}"#);
        let fault = SpatialPose::from_extension(&typo).unwrap_err().remove(0);
        assert!(fault.message.contains("childFrame"), "{fault}");
        assert!(SpatialPose::from_extension(&Extension::new(SPATIAL_POSE_URL)).is_err());
        assert!(SpatialPose::from_extension(&Extension::new("urn:x")).is_err());
    }

    #[test]
    fn poses_of_resources_are_found() {
        let id = "k".parse().unwrap();
        let mut entity: Resource = crate::model::Entity::new(id, "Kitchen").into();
        assert!(pose_of(&entity).is_none());
        entity.extensions_mut().push(Extension::new("urn:x:y"));
        let pose = SpatialPose::new("map", Point3::origin());
        entity.extensions_mut().push(pose.to_extension());
        assert_eq!(pose_of(&entity), Some(Ok(pose)));
        entity.extensions_mut()[1].value_json = Some(Value::Null);
        let faults = pose_of(&entity).unwrap().unwrap_err();
        assert_eq!(faults[0].pointer, "/extension/1/valueJson");
    }
}
