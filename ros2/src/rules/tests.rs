//! Each well-known type with real values, and unknown types.

mod configured;
mod localised;
mod pace;
mod things;
mod types;
mod waiting;

use std::time::Duration;

use nalgebra::{Isometry3, Translation3, UnitQuaternion, Vector3};
use omir_core::extension::{CONSOLIDATED_URL, UNPLACED_URL};
use omir_core::instant::Instant;
use omir_core::model::{Entity, MemoryRecord, Resource};
use omir_core::spatial::SpatialPose;
use omir_core::value::Value as Json;
use serde::Deserialize;

use super::*;
use crate::message::Value;

/// Rules, a registry and transforms to try messages on.
struct Bench {
    registry: Registry,
    rules: Rules,
    tf: Buffer,
    topic: &'static str,
}

fn at(seconds: f64) -> Stamp {
    Stamp::from_nanos((seconds * 1e9) as i64 + 1_780_000_000_000_000_000)
}

fn resolve(text: &str) -> Result<Ros2, ConfigError> {
    #[derive(Deserialize)]
    struct File {
        ros2: Ros2Section,
    }
    toml::from_str::<File>(text).unwrap().ros2.resolve()
}

const MINE: &str = "std_msgs/Header header\nstring name\ngeometry_msgs/Pose where\nfloat32 score\n\
                    string[] tags\nmy_msgs/Part[] parts\nbool ok\n";

const PART: &str = "string name\nfloat64 wear\ngeometry_msgs/Point at\nint32[] codes\n";

impl Bench {
    fn new(topic: &'static str, config: &str) -> Self {
        let mut registry = Registry::standard();
        registry.add_text(&"my_msgs/msg/Part".parse().unwrap(), PART).unwrap();
        registry.add_text(&"my_msgs/msg/Mine".parse().unwrap(), MINE).unwrap();
        let ros2 = resolve(config).unwrap_or_else(|error| panic!("{error}"));
        let rules = Rules::compile(&ros2, &registry).unwrap_or_else(|error| panic!("{error}"));
        Self { registry, rules, tf: Buffer::new(Duration::from_secs(600)), topic }
    }

    /// A rule with nothing but its topic.
    fn plain(topic: &'static str) -> Self {
        Self::new(topic, &format!("[[ros2.topic]]\ntopic = '{topic}'"))
    }

    fn message(&self, ty: &str) -> Message {
        Message::new(&self.registry.message(ty).unwrap())
    }

    /// `map` to `odom` by 10 m in x and a quarter turn, `odom` to `base_link` by 1 m/s in x, for 70
    /// seconds.
    fn with_robot(mut self) -> Self {
        let quarter =
            UnitQuaternion::from_axis_angle(&Vector3::z_axis(), std::f64::consts::FRAC_PI_2);
        let map = Isometry3::from_parts(Translation3::new(10.0, 0.0, 0.0), quarter);
        self.tf.insert("map", "odom", at(0.0), map, true).unwrap();
        for tick in 0..=70 {
            let odom = Isometry3::translation(f64::from(tick), 0.0, 0.0);
            self.tf.insert("odom", "base_link", at(f64::from(tick)), odom, false).unwrap();
        }
        let camera = Isometry3::translation(0.5, 0.0, 1.0);
        self.tf.insert("base_link", "camera", at(0.0), camera, true).unwrap();
        self
    }

    fn see(&mut self, seconds: f64, message: &Message) -> Vec<Decision> {
        let arrival = Arrival {
            topic: self.topic,
            node: Some("/driver"),
            received: at(seconds),
            is_live: true,
        };
        let decisions = self.rules.observe(&arrival, message, &self.tf);
        for decision in &decisions {
            if let Decision::Keep(kept) = decision {
                for value in std::iter::once(&kept.resource).chain(&kept.about) {
                    valid(value);
                }
            }
        }
        decisions
    }

    fn one(&mut self, seconds: f64, message: &Message) -> Decision {
        let mut decisions = self.see(seconds, message);
        assert_eq!(decisions.len(), 1, "{decisions:?}");
        decisions.remove(0)
    }

    fn counters(&self) -> Counters {
        self.rules.counters().find(|(topic, _)| *topic == self.topic).unwrap().1.clone()
    }
}

/// Conforms to OMIR R1, and its poses are poses.
fn valid(value: &Json) -> Resource {
    let resource = Resource::from_value(value.clone()).unwrap_or_else(|faults| {
        panic!("{value}\n{}", faults.iter().map(|f| f.to_string()).collect::<String>())
    });
    if let Some(Err(faults)) = omir_core::spatial::pose_of(&resource) {
        panic!("{value}\n{faults:?}");
    }
    assert_eq!(resource.to_value(), *value);
    resource
}

#[track_caller]
fn kept(decision: Decision) -> KeptResource {
    match decision {
        Decision::Keep(kept) => *kept,
        other => panic!("not kept: {other:?}"),
    }
}

#[track_caller]
fn record(decision: Decision) -> MemoryRecord {
    match valid(&kept(decision).resource) {
        Resource::MemoryRecord(record) => *record,
        other => panic!("no record: {other:?}"),
    }
}

#[track_caller]
fn entity(value: &Json) -> Entity {
    match valid(value) {
        Resource::Entity(entity) => *entity,
        other => panic!("no entity: {other:?}"),
    }
}

fn poses(record: &MemoryRecord) -> Vec<SpatialPose> {
    let extensions = record.extension.iter().flatten();
    extensions.filter_map(|e| SpatialPose::from_extension(e).ok()).collect()
}

fn is_dropped(decision: &Decision, reason: Reason) -> bool {
    *decision == Decision::Dropped(reason)
}

#[track_caller]
fn near(pose: &SpatialPose, frame: &str, position: [f64; 3]) {
    assert_eq!(pose.frame, frame);
    let apart = nalgebra::distance(&pose.position, &position.into());
    assert!(apart < 1e-9, "{pose:?} is not at {position:?}");
}

/// A detection of a class with a score, at a place in the frame `camera`.
fn detection(bench: &Bench, class: &str, score: f64, position: [f64; 3]) -> Message {
    let mut result = bench.message("vision_msgs/msg/ObjectHypothesisWithPose");
    result.set("hypothesis.class_id", class).unwrap();
    result.set("hypothesis.score", score).unwrap();
    let mut detection = bench.message("vision_msgs/msg/Detection3D");
    detection.set("results", vec![result]).unwrap();
    for (axis, value) in ["x", "y", "z"].into_iter().zip(position) {
        detection.set(&format!("bbox.center.position.{axis}"), value).unwrap();
    }
    detection
}

fn detections(bench: &Bench, seconds: f64, detections: Vec<Message>) -> Message {
    let mut array = bench.message("vision_msgs/msg/Detection3DArray");
    let stamp = at(seconds).to_ros().unwrap();
    array.set("header.frame_id", "camera").unwrap();
    array.set("header.stamp.sec", stamp.0).unwrap();
    array.set("header.stamp.nanosec", stamp.1).unwrap();
    array.set("detections", detections).unwrap();
    array
}
