//! Spatial poses: what was read and written once is not changed by reading it again.

use omir_core::model::Extension;
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::value::Value;

use crate::support::{Choices, decode, identical};

/// Reads the content of a pose extension, as a document or made of choices.
pub fn run(bytes: &[u8]) {
    let value = match bytes.split_first() {
        Some((0, choices)) => made_of(&mut Choices::new(choices)),
        _ => match decode(bytes) {
            Ok(value) => value,
            Err(_) => return,
        },
    };
    let read = |value: &Value| {
        SpatialPose::from_extension(&Extension::json(SPATIAL_POSE_URL, value.clone()))
    };
    let pose = match read(&value) {
        Ok(pose) => pose,
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                let inner = fault.pointer.strip_prefix("/valueJson").expect("inside the content");
                assert!(value.pointer(inner).is_some(), "{fault} in {value}");
            }
            return;
        }
    };
    let numbers = pose.position.iter().chain(pose.covariance.iter().flat_map(|c| c.iter()));
    assert!(numbers.copied().all(f64::is_finite) && !pose.frame.is_empty());
    if let Some(rotation) = &pose.orientation {
        assert!((rotation.norm() - 1.0).abs() < 1e-9, "{rotation}");
    }
    if let Some(geo) = &pose.geo {
        assert!(geo.lat().abs() <= 90.0 && geo.lon().abs() <= 180.0);
    }
    // A client can send back the pose that it was given, and that is no change.
    let written = pose.to_value();
    let again = read(&written).expect("what we write is a pose");
    assert_eq!(again, pose);
    assert!(identical(&again.to_value(), &written), "{written}");
}

fn made_of(choices: &mut Choices<'_>) -> Value {
    let mut pose = omir_core::value::Map::new();
    let mut list =
        |len: usize| -> Value { (0..len).map(|_| Value::Number(choices.number())).collect() };
    pose.insert("frame", "map");
    pose.insert("position", list(3));
    pose.insert("orientation", list(4));
    if let Value::Array(covariance) = list(36) {
        pose.insert("covariance", Value::Array(covariance));
    }
    Value::Object(pose)
}
