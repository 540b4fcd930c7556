//! The extension spatial-pose and `omir_msgs/msg/SpatialPose`.

use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value as Json};

use super::Refused;
use super::field::{
    BadField, Codec, alone_of, finite, near as near_value, read as read_value, set,
    write as write_value,
};
use crate::interface::{Element, FieldType};
use crate::message::{FieldPath, Message, Value};

/// The first extension that the field can hold or nearly hold. Where a `null` stands among them already,
/// none can: it would be taken for the place of the pose.
pub(super) fn place(extensions: &[Json]) -> Option<usize> {
    if extensions.iter().any(Json::is_null) {
        return None;
    }
    extensions.iter().position(|extension| near(extension).is_some())
}

/// Returns the share of an extension that the field can hold, if it is a pose.
pub(super) fn near(extension: &Json) -> Option<Json> {
    if extension.get("url")?.as_str()? != SPATIAL_POSE_URL {
        return None;
    }
    let exact = extension.get("valueJson")?;
    let mut pose = Map::new();
    pose.insert("frame", near_value(Codec::Frame, exact.get("frame")?)?);
    pose.insert("position", floats(exact.get("position")?, 3)?);
    let orientation = exact.get("orientation").and_then(|value| floats(value, 4));
    let covariance = exact.get("covariance").and_then(|value| floats(value, 36));
    for (name, value) in [
        ("orientation", orientation.filter(|value| !is_zero(value))),
        ("stamp", exact.get("stamp").and_then(|value| near_value(Codec::Instant, value))),
        ("covariance", covariance.filter(|value| !is_zero(value))),
        ("childFrame", exact.get("childFrame").and_then(|value| near_value(Codec::Frame, value))),
        ("geo", exact.get("geo").and_then(geo)),
    ] {
        if let Some(value) = value {
            pose.insert(name, value);
        }
    }
    Some(extension_of(pose))
}

fn extension_of(pose: Map) -> Json {
    let mut extension = Map::new();
    extension.insert("url", SPATIAL_POSE_URL);
    extension.insert("valueJson", pose);
    Json::Object(extension)
}

fn floats(exact: &Json, len: usize) -> Option<Json> {
    let items = exact.as_array().filter(|items| items.len() == len)?;
    let near: Option<Vec<Json>> = items.iter().map(|item| near_value(Codec::Float, item)).collect();
    near.map(Json::Array)
}

fn is_zero(near: &Json) -> bool {
    near.as_array().is_some_and(|items| items.iter().all(|item| item.as_f64() == Some(0.0)))
}

fn geo(exact: &Json) -> Option<Json> {
    let mut geo = Map::new();
    geo.insert("lat", near_value(Codec::Float, exact.get("lat")?)?);
    geo.insert("lon", near_value(Codec::Float, exact.get("lon")?)?);
    if let Some(alt) = exact.get("alt").and_then(|alt| near_value(Codec::Float, alt)) {
        geo.insert("alt", alt);
    }
    Some(Json::Object(geo))
}

const POSITION: [&str; 3] =
    ["pose.pose.position.x", "pose.pose.position.y", "pose.pose.position.z"];
const ORIENTATION: [&str; 4] = [
    "pose.pose.orientation.x",
    "pose.pose.orientation.y",
    "pose.pose.orientation.z",
    "pose.pose.orientation.w",
];

/// Makes the field say that there is no pose: without a turn, which a new quaternion would claim.
pub(super) fn clear(message: &mut Message) {
    set(message, "pose.pose.pose.orientation.w", 0.0.into());
}

/// Writes what [`near`] gave into the field `pose`.
pub(super) fn write(message: &mut Message, near: &Json) {
    let Some(pose) = near.get("valueJson") else {
        return;
    };
    let numbers = |name: &str| -> Vec<f64> {
        let items = pose.get(name).and_then(Json::as_array).unwrap_or_default();
        items.iter().filter_map(Json::as_f64).collect()
    };
    for (name, field, codec) in [
        ("frame", "pose.header.frame_id", Codec::Frame),
        ("stamp", "pose.header.stamp", Codec::Instant),
        ("childFrame", "pose.child_frame_id", Codec::Frame),
    ] {
        if let Some(value) = pose.get(name) {
            write_value(message, field, codec, value);
        }
    }
    for (names, values) in
        [(&POSITION[..], numbers("position")), (&ORIENTATION[..], numbers("orientation"))]
    {
        for (name, value) in names.iter().zip(values) {
            set(message, &format!("pose.{name}"), value.into());
        }
    }
    let covariance = numbers("covariance");
    if !covariance.is_empty() {
        set(message, "pose.pose.covariance", covariance.into());
    }
    if let Some(near) = pose.get("geo") {
        write_geo(message, "pose.geo", near);
    }
}

fn write_geo(message: &mut Message, path: &str, near: &Json) {
    let ty = path.parse::<FieldPath>().and_then(|path| path.check(message.ty()));
    let Ok(FieldType { element: Element::Message(ty), .. }) = ty else {
        return;
    };
    let mut point = Message::new(&ty);
    for (name, field) in [("lat", "latitude"), ("lon", "longitude")] {
        if let Some(value) = near.get(name).and_then(Json::as_f64) {
            set(&mut point, field, value.into());
        }
    }
    if let Some(alt) = near.get("alt") {
        write_value(&mut point, "altitude", Codec::Float, alt);
    }
    set(message, path, vec![point].into());
}

/// The extension that the field `pose` says; `None` if it says none.
pub(super) fn read(message: &Message) -> Result<Option<Json>, Refused> {
    let place = |path: &str| format!("/pose/{path}");
    let bad = |path: &str, why: BadField| Refused::new(place(path), why);
    let numbers = |names: &[&str]| -> Vec<f64> {
        names.iter().map(|name| message.f64(&format!("pose.{name}")).unwrap_or_default()).collect()
    };
    let list = |path: &str, values: &[f64]| -> Result<Json, Refused> {
        let all: Result<Vec<Json>, BadField> = values.iter().map(|value| finite(*value)).collect();
        all.map(Json::Array).map_err(|why| bad(path, why))
    };
    let value = |path: &str, codec| {
        read_value(message, &format!("pose.{path}"), codec)
            .map_err(|why| bad(&path.replace('.', "/"), why))
    };
    let some = |values: &[f64]| values.iter().any(|value| *value != 0.0);
    let position = numbers(&POSITION);
    let covariance = message.floats("pose.pose.covariance").unwrap_or_default();
    let geo = alone_of(message.list("pose.geo").unwrap_or_default());
    let geo = geo.map_err(|why| bad("geo", why))?.and_then(Value::as_message);

    let mut pose = Map::new();
    let Some(frame) = value("header.frame_id", Codec::Frame)? else {
        if some(&position) || some(covariance) || geo.is_some() {
            let why = "a pose is in a frame: name it, as in map";
            return Err(Refused::new(place("header/frame_id"), why));
        }
        return Ok(None);
    };
    pose.insert("frame", frame);
    pose.insert("position", list("pose/pose/position", &position)?);
    let orientation = numbers(&ORIENTATION);
    if some(&orientation) {
        pose.insert("orientation", list("pose/pose/orientation", &orientation)?);
    }
    if let Some(stamp) = value("header.stamp", Codec::Instant)? {
        pose.insert("stamp", stamp);
    }
    if some(covariance) {
        pose.insert("covariance", list("pose/covariance", covariance)?);
    }
    if let Some(child) = value("child_frame_id", Codec::Frame)? {
        pose.insert("childFrame", child);
    }
    if let Some(point) = geo {
        pose.insert("geo", read_geo(point).map_err(|why| bad("geo", why))?);
    }
    Ok(Some(extension_of(pose)))
}

/// A point as OMIR has it.
pub(super) fn read_geo(point: &Message) -> Result<Json, BadField> {
    let mut geo = Map::new();
    geo.insert("lat", finite(point.f64("latitude").unwrap_or_default())?);
    geo.insert("lon", finite(point.f64("longitude").unwrap_or_default())?);
    if let Some(alt) = read_value(point, "altitude", Codec::Float)? {
        geo.insert("alt", alt);
    }
    Ok(Json::Object(geo))
}
