//! The request of `rebase`: keyframes with their new poses in the map, or the step to take back.

use nalgebra::{Isometry3, Translation3, UnitQuaternion};
use omir_core::model::Extension;
use omir_core::pointer;
use omir_core::space::unit_quaternion;
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::value::Value;

use super::{Named, Parameters, reference};
use crate::about;
use omird_engine::{Change, Code, Engine, Error, Rebase, RebaseStep};

/// Most keyframes that move in one step.
const MAX_KEYFRAMES: usize = 10_000;

/// Farther along an axis, in metres, is no place: as with poses and transforms that come by ROS.
const FARTHEST_M: f64 = 1e12;

/// `rebase`: a payload with the keyframes, or `undo`; and `dryRun`.
///
/// # Errors
/// `INVALID_QUERY`.
pub fn parse(
    engine: &Engine,
    parameters: Parameters,
    payload: Option<&Value>,
) -> Result<Change, Error> {
    let mut named = Named::of(&about::REBASE, parameters);
    let undo = named.take("undo").map(|text| reference("undo", &text)).transpose()?;
    let dry_run = named.flag("dryRun")?;
    named.finish("the keyframes go into the payload")?;
    let step = match (undo, payload) {
        (Some(undo), None) => RebaseStep::Back(undo),
        (None, Some(payload)) => {
            RebaseStep::Forward(read(payload, &engine.settings().fixed_frame)?)
        }
        (Some(_), Some(_)) => {
            return Err(Error::query("undo", "goes without keyframes in a payload"));
        }
        (None, None) => {
            let message = "there is no payload: send the frame and the keyframes with their new \
                           poses, or name the step to `undo`";
            return Err(Error::new(Code::InvalidQuery, message));
        }
    };
    engine.prepare_rebase(step, dry_run)
}

/// Reads `{"frame":"map","keyframes":{"kf_1":{"position":[x,y,z],"orientation":[x,y,z,w]}}}`, with a
/// `reason` if the caller gives one. An `orientation` that lacks is none, a `frame` that lacks is `fixed_frame`.
///
/// # Errors
/// `INVALID_QUERY` at the member that is wrong.
fn read(value: &Value, fixed_frame: &str) -> Result<Rebase, Error> {
    let wrong = |path: String, message: String| Error::at(Code::InvalidQuery, path, message);
    let expected = "expected {\"frame\":\"map\",\"keyframes\":{\"kf_1\":{\"position\":[x,y,z],\
                    \"orientation\":[x,y,z,w]}}}";
    let map = value.as_object().ok_or_else(|| wrong(String::new(), expected.to_owned()))?;
    for (name, _) in map.iter() {
        if !["frame", "keyframes", "reason"].contains(&name) {
            return Err(wrong(format!("/{name}"), format!("unknown; {expected}")));
        }
    }
    let text = |name: &str| match map.get(name) {
        None => Ok(None),
        Some(Value::Text(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(wrong(format!("/{name}"), "expected a text".to_owned())),
    };
    let frame = text("frame")?.unwrap_or_else(|| fixed_frame.to_owned());
    let named = map.get("keyframes").and_then(Value::as_object);
    let named = named.ok_or_else(|| wrong("/keyframes".to_owned(), expected.to_owned()))?;
    if named.is_empty() || named.len() > MAX_KEYFRAMES {
        let message = format!("{} keyframes; expected 1 to {MAX_KEYFRAMES}", named.len());
        return Err(wrong("/keyframes".to_owned(), message));
    }
    let mut keyframes = Vec::with_capacity(named.len());
    for (name, pose) in named.iter() {
        if name == frame {
            let message = format!("{name:?} is the map itself, which moves nowhere in it");
            return Err(wrong("/keyframes".to_owned(), message));
        }
        // Read by the rules of any other pose, so that there is one idea of a valid one.
        let mut whole = pose.as_object().cloned().unwrap_or_default();
        whole.insert("frame", frame.as_str());
        let pose = SpatialPose::from_extension(&Extension::json(SPATIAL_POSE_URL, whole));
        let pose = pose.map_err(|faults| {
            let (path, message) = faults.into_iter().next().map_or_else(
                || (String::new(), String::new()),
                |fault| (fault.pointer, fault.message),
            );
            let path = path.trim_start_matches("/valueJson");
            wrong(pointer::join("/keyframes", name) + path, message)
        })?;
        if pose.position.iter().any(|metres| metres.abs() > FARTHEST_M) {
            let path = pointer::join("/keyframes", name) + "/position";
            return Err(wrong(path, format!("it is beyond {FARTHEST_M:e} m")));
        }
        keyframes.push((name.to_owned(), isometry(&pose)));
    }
    Ok(Rebase { frame, keyframes, reason: text("reason")? })
}

fn isometry(pose: &SpatialPose) -> Isometry3<f64> {
    let rotation = pose.orientation.unwrap_or_else(UnitQuaternion::identity);
    let [x, y, z, w] = rotation.coords.into();
    // Of exactly unit length, or each step would scale what it moves a little.
    let rotation = unit_quaternion([x, y, z, w]).unwrap_or(rotation);
    Isometry3::from_parts(Translation3::from(pose.position.coords), rotation)
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;

    use super::*;

    fn request(text: &str) -> Result<Rebase, Error> {
        read(&json::from_slice(text.as_bytes(), &Limits::default()).unwrap(), "map")
    }

    #[test]
    fn a_request_is_read_and_complaints_point_at_the_member() {
        let whole = request(
            r#"{"frame":"map","reason":"loop","keyframes":{
                "kf_1":{"position":[1,2,3],"orientation":[0,0,0,2]},"kf_2":{"position":[0,0,0]}}}"#,
        )
        .unwrap();
        assert_eq!(whole.keyframes[0], ("kf_1".to_owned(), Isometry3::translation(1.0, 2.0, 3.0)));
        assert_eq!(whole.keyframes[1], ("kf_2".to_owned(), Isometry3::identity()));
        for (text, path) in [
            ("[]", ""),
            ("{}", "/keyframes"),
            (r#"{"keyframes":{}}"#, "/keyframes"),
            (r#"{"keyframes":{"map":{"position":[0,0,0]}}}"#, "/keyframes"),
            (r#"{"keyframes":{"a/b":{"position":[0,0]}}}"#, "/keyframes/a~1b/position"),
            (r#"{"keyframes":{"k":7}}"#, "/keyframes/k"),
            (r#"{"keyframes":{"k":{"position":[0,-1.1e12,0]}}}"#, "/keyframes/k/position"),
            (
                r#"{"keyframes":{"k":{"position":[0,0,0],"orientation":[0,0,0,0]}}}"#,
                "/keyframes/k/orientation",
            ),
            (r#"{"frame":7,"keyframes":{"k":{"position":[0,0,0]}}}"#, "/frame"),
            (r#"{"keyframe":{}}"#, "/keyframe"),
        ] {
            let error = request(text).unwrap_err();
            assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, path), "{text}");
        }
    }
}
