//! Memories of a drive: one Episode, and a MemoryRecord for each pose that is kept.
//!
//! Ids, times and texts follow from the file and the options alone. Importing the same file again
//! gives the same resources, bit by bit, and the daemon finds nothing new in them.

use omir_core::profile::ROBOTICS;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value};

use super::{Pose, as_seconds, distance};
use crate::instant::Instant;
use crate::output::object;

/// Our own extension that names the Episode a record belongs to.
pub const EPISODE: &str = "urn:omird:ext:episode";

/// Contents of the resources beyond the poses.
#[derive(Debug, Clone)]
pub struct Drive<'a> {
    /// Name of the drive: the Episode's id, and the beginning of the records'.
    pub name: &'a str,
    /// `tum`, `kitti` or `euroc`.
    pub format: &'a str,
    /// The file's name, without its folder.
    pub source: &'a str,
    /// Frame of the positions.
    pub frame: &'a str,
    /// Importance of each record.
    pub importance: Option<f64>,
    /// Half-life of each record.
    pub half_life: Option<f64>,
}

/// The resources of a drive, the Episode first. `moments` are the poses' times, `kept` the positions
/// of those that become records.
#[must_use]
pub fn resources(
    drive: &Drive<'_>,
    poses: &[Pose],
    moments: &[Instant],
    kept: &[usize],
) -> Vec<Value> {
    let along = lengths(poses);
    let mut resources = Vec::with_capacity(kept.len() + 1);
    resources.extend(episode(drive, poses, moments, &along));
    for &index in kept {
        if let (Some(pose), Some(&moment), Some(&metres)) =
            (poses.get(index), moments.get(index), along.get(index))
        {
            resources.push(record(drive, index, poses.len(), pose, moment, metres));
        }
    }
    resources
}

/// The producer, with the version of the tool that began to make resources as they are here. It changes
/// when they do: a newer tool must not change what is stored.
const SOURCE: &str = "omir/0.1.0";

/// Release, producer, maturity of the type (spec: Design Principles §4), and the profile for robots:
/// every resource of a drive says when it happened and where.
fn meta(maturity: u8) -> Value {
    object([
        ("omirVersion", "R1".into()),
        ("profile", Value::Array(vec![ROBOTICS.into()])),
        ("source", SOURCE.into()),
        ("maturity", u64::from(maturity).into()),
    ])
}

/// Metres along the drive at each pose.
fn lengths(poses: &[Pose]) -> Vec<f64> {
    let mut total = 0.0;
    let mut last = poses.first().map(|pose| pose.position);
    poses
        .iter()
        .map(|pose| {
            total += last.map_or(0.0, |last| distance(last, pose.position));
            last = Some(pose.position);
            total
        })
        .collect()
}

/// The Episode tells of the whole file, whatever poses are kept of it.
fn episode(drive: &Drive<'_>, poses: &[Pose], moments: &[Instant], along: &[f64]) -> Option<Value> {
    let (first, last) = (poses.first()?, poses.last()?);
    let start = moments.first()?.to_string();
    let length = along.last().copied().unwrap_or_default();
    let duration = as_seconds(last.time - first.time);
    let (mut low, mut high) = (first.position, first.position);
    for pose in poses {
        for axis in 0..3 {
            low[axis] = low[axis].min(pose.position[axis]);
            high[axis] = high[axis].max(pose.position[axis]);
        }
    }
    let content = format!(
        "Drive {}: {} poses over {length:.1} m in {duration:.1} s, within x {:.1} to {:.1}, \
         y {:.1} to {:.1}, z {:.1} to {:.1} m of {}.",
        drive.name,
        poses.len(),
        low[0],
        high[0],
        low[1],
        high[1],
        low[2],
        high[2],
        drive.frame,
    );
    let corner = |c: [f64; 3]| format!("{:.3},{:.3},{:.3}", c[0], c[1], c[2]);
    let metadata = object([
        ("format", drive.format.into()),
        ("file", drive.source.into()),
        ("frame", drive.frame.into()),
        ("poses", poses.len().to_string().into()),
        ("lengthMetres", format!("{length:.3}").into()),
        ("durationSeconds", format!("{duration:.3}").into()),
        ("boundsMin", corner(low).into()),
        ("boundsMax", corner(high).into()),
    ]);
    Some(object([
        ("resourceType", "Episode".into()),
        ("id", drive.name.into()),
        ("meta", meta(3)),
        ("name", drive.name.into()),
        ("content", content.into()),
        ("source", "observation".into()),
        ("eventTime", start.as_str().into()),
        ("createdAt", start.into()),
        ("metadata", metadata),
    ]))
}

fn record(
    drive: &Drive<'_>,
    index: usize,
    count: usize,
    pose: &Pose,
    moment: Instant,
    metres: f64,
) -> Value {
    let name = drive.name;
    let moment = moment.to_string();
    let numbers = |values: &[f64]| values.iter().copied().collect::<Value>();
    let mut members: Map = [
        ("resourceType", Value::from("MemoryRecord")),
        ("id", format!("{name}-{index:06}").into()),
        ("meta", meta(4)),
        (
            "content",
            format!("{name}: pose {index} of {count}, {metres:.1} m along the drive").into(),
        ),
        ("kind", "memory".into()),
        ("experienceType", "observation".into()),
        ("createdAt", moment.as_str().into()),
        ("eventTime", moment.as_str().into()),
    ]
    .into_iter()
    .collect();
    if let Some(importance) = drive.importance {
        members.insert("importance", importance);
    }
    if let Some(hours) = drive.half_life {
        members.insert("decay", object([("halfLifeHours", hours.into())]));
    }
    members.insert(
        "provenance",
        object([
            ("source", drive.source.into()),
            ("sourceType", "observation".into()),
            ("externalId", format!("{}:{name}#{index}", drive.format).into()),
        ]),
    );
    let spatial_pose = object([
        ("frame", drive.frame.into()),
        ("position", numbers(&pose.position)),
        ("orientation", numbers(&pose.orientation)),
        ("stamp", moment.into()),
        ("childFrame", "base_link".into()),
    ]);
    members.insert(
        "extension",
        Value::Array(vec![
            object([("url", SPATIAL_POSE_URL.into()), ("valueJson", spatial_pose)]),
            object([("url", EPISODE.into()), ("valueString", format!("Episode/{name}").into())]),
        ]),
    );
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::json;

    fn drive() -> Vec<Value> {
        let text = "0 0 0 0 0 0 0 1\n1.5 3 4 0 0 0 0 1\n2 3 4 1 0 0 0 1\n";
        let poses = super::super::tum::parse(text).unwrap();
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let moments = super::super::moments(&poses, Some(start), None).unwrap();
        let drive = Drive {
            name: "lab",
            format: "tum",
            source: "lab.txt",
            frame: "map",
            importance: Some(0.5),
            half_life: None,
        };
        resources(&drive, &poses, &moments, &[0, 1])
    }

    #[test]
    fn the_episode_sums_up_the_whole_file() {
        let episode = &drive()[0];
        assert_eq!(
            episode.get("content").and_then(Value::as_str),
            Some(
                "Drive lab: 3 poses over 6.0 m in 2.0 s, within x 0.0 to 3.0, y 0.0 to 4.0, \
                 z 0.0 to 1.0 m of map."
            )
        );
        assert_eq!(
            episode.pointer("/metadata/lengthMetres").and_then(Value::as_str),
            Some("6.000")
        );
    }

    #[test]
    fn a_drive_conforms_strictly() {
        use omir_core::profile::builtin;
        use omir_core::validate::{Level, Options, check_document};
        let bundle = crate::document::bundle(drive());
        let (profiles, required) = (builtin(), [ROBOTICS.to_owned()]);
        let level = Level::Strict;
        let options = Options { level, plain_r1: true, profiles: &profiles, required: &required };
        let (findings, _) = check_document(&bundle, options);
        // Forgetting is left to the daemon unless a half-life is given: advice, no fault.
        let advice: Vec<&str> = findings.iter().map(|f| f.fault.code.as_str()).collect();
        assert_eq!(advice, ["W403"; 2]);
    }

    #[test]
    fn records_are_what_they_were_last_time() {
        let text = json::to_string(&drive()[2]);
        assert_eq!(
            text,
            r#"{"resourceType":"MemoryRecord","id":"lab-000001","#.to_owned()
                + r#""meta":{"omirVersion":"R1","profile":["#
                + r#""https://omir.io/spec/R1/profile/omir-robotics"],"#
                + r#""source":"omir/0.1.0","maturity":4},"#
                + r#""content":"lab: pose 1 of 3, 5.0 m along the drive","kind":"memory","#
                + r#""experienceType":"observation","createdAt":"2026-01-01T00:00:01.500Z","#
                + r#""eventTime":"2026-01-01T00:00:01.500Z","importance":0.5,"#
                + r#""provenance":{"source":"lab.txt","sourceType":"observation","externalId":"tum:lab#1"},"#
                + r#""extension":[{"url":"https://omir.io/spec/R1/extension/spatial-pose","#
                + r#""valueJson":{"frame":"map","position":[3.0,4.0,0.0],"orientation":[0.0,0.0,0.0,1.0],"#
                + r#""stamp":"2026-01-01T00:00:01.500Z","childFrame":"base_link"}},"#
                + r#"{"url":"urn:omird:ext:episode","valueString":"Episode/lab"}]}"#
        );
    }
}
