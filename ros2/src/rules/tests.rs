//! Each well-known type with real values, and types nobody here has heard of.

use std::time::Duration;

use nalgebra::{Isometry3, Translation3, UnitQuaternion, Vector3};
use omir_core::extension::{CONSOLIDATED_URL, UNPLACED_URL};
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

    fn see(&mut self, seconds: f64, message: &Message) -> Vec<Outcome> {
        let arrival = Arrival {
            topic: self.topic,
            node: Some("/driver"),
            received: at(seconds),
            is_live: true,
        };
        let outcomes = self.rules.observe(&arrival, message, &self.tf);
        for outcome in &outcomes {
            if let Outcome::Keep(kept) = outcome {
                for value in std::iter::once(&kept.resource).chain(&kept.about) {
                    valid(value);
                }
            }
        }
        outcomes
    }

    fn one(&mut self, seconds: f64, message: &Message) -> Outcome {
        let mut outcomes = self.see(seconds, message);
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        outcomes.remove(0)
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
fn kept(outcome: Outcome) -> Kept {
    match outcome {
        Outcome::Keep(kept) => *kept,
        other => panic!("not kept: {other:?}"),
    }
}

#[track_caller]
fn record(outcome: Outcome) -> MemoryRecord {
    match valid(&kept(outcome).resource) {
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

fn is_dropped(outcome: &Outcome, reason: Reason) -> bool {
    *outcome == Outcome::Dropped(reason)
}

#[track_caller]
fn near(pose: &SpatialPose, frame: &str, position: [f64; 3]) {
    assert_eq!(pose.frame, frame);
    let apart = nalgebra::distance(&pose.position, &position.into());
    assert!(apart < 1e-9, "{pose:?} is not at {position:?}");
}

#[test]
fn a_text_is_kept_when_it_changes() {
    let mut bench = Bench::plain("/note");
    let mut message = bench.message("std_msgs/msg/String");
    message.set("data", "the door is open").unwrap();
    let first = record(bench.one(0.0, &message));
    assert_eq!(first.content, "the door is open");
    assert_eq!(first.event_time.unwrap().at(), at(0.0).into());
    let provenance = first.provenance.unwrap();
    assert_eq!(provenance.source.as_deref(), Some("ros2 /note std_msgs/msg/String /driver"));
    assert_eq!(provenance.external_id.as_deref(), Some("ros2:/note@1780000000.000000000"));
    assert_eq!(first.extension, None, "nobody knows where the robot is");
    assert!(is_dropped(&bench.one(1.0, &message), Reason::Unchanged));
    message.set("data", "the door is closed").unwrap();
    assert_eq!(record(bench.one(2.0, &message)).content, "the door is closed");
    message.set("data", "  ").unwrap();
    assert!(is_dropped(&bench.one(3.0, &message), Reason::NoText));
    let counters = bench.counters();
    assert_eq!((counters.received, counters.kept), (4, 2));
    assert_eq!(counters.dropped[&Reason::Unchanged], 1);
}

#[test]
fn what_has_no_place_of_its_own_is_where_the_robot_was() {
    let mut bench = Bench::plain("/note").with_robot();
    let mut message = bench.message("std_msgs/msg/String");
    message.set("data", "bump").unwrap();
    let bump = record(bench.one(7.5, &message));
    let poses = poses(&bump);
    assert_eq!(poses.len(), 1);
    near(&poses[0], "map", [10.0, 7.5, 0.0]);
    assert_eq!(poses[0].child_frame.as_deref(), Some("base_link"));
    let yaw = poses[0].orientation.unwrap().euler_angles().2;
    assert!((yaw - std::f64::consts::FRAC_PI_2).abs() < 1e-9);
}

#[test]
fn an_error_that_repeats_is_one_memory() {
    let mut bench = Bench::plain("/rosout");
    let mut log = bench.message("rcl_interfaces/msg/Log");
    log.set("name", "controller_server").unwrap();
    log.set("msg", "Failed to make progress for 3.2 s").unwrap();
    log.set("level", 20_u8).unwrap();
    assert!(is_dropped(&bench.one(0.0, &log), Reason::Level));
    log.set("level", 40_u8).unwrap();
    log.set("stamp.sec", 1_780_000_000).unwrap();
    let outcome = bench.one(0.1, &log);
    let first = record(outcome);
    assert_eq!(first.content, "controller_server: Failed to make progress for 3.2 s");
    assert_eq!(first.importance.unwrap().as_f64(), 0.7);
    assert_eq!(first.event_time.unwrap().as_str(), "2026-05-28T20:26:40Z", "its own stamp");
    log.set("msg", "Failed to make progress for 14 s").unwrap();
    log.set("stamp.sec", 1_780_000_011).unwrap();
    assert_eq!(bench.one(11.0, &log), Outcome::Merged { count: 2 });
    log.set("msg", "Failed to make progress for 301 s").unwrap();
    log.set("stamp.sec", 1_780_000_301).unwrap();
    let again = kept(bench.one(301.0, &log));
    assert_eq!((again.is_first, again.seen), (false, 2));
    let record = match valid(&again.resource) {
        Resource::MemoryRecord(record) => record,
        other => panic!("{other:?}"),
    };
    assert_eq!(record.id, first.id);
    assert_eq!(record.created_at, first.created_at);
    let url = |e: &&omir_core::model::Extension| e.url == CONSOLIDATED_URL;
    let extension = record.extension.iter().flatten().find(url).unwrap();
    let told = extension.value_json.clone().unwrap();
    assert_eq!(told.get("count").and_then(Json::as_u64), Some(3));
    assert_eq!(told.get("first").and_then(Json::as_str), Some("2026-05-28T20:26:40Z"));
    assert_eq!(told.get("last").and_then(Json::as_str), Some("2026-05-28T20:31:41Z"));
    // Other words are another memory.
    log.set("msg", "Goal was rejected").unwrap();
    assert!(kept(bench.one(302.0, &log)).is_first);
}

#[test]
fn diagnostics_tell_of_what_got_worse_and_what_is_well_again() {
    let mut bench = Bench::plain("/diagnostics");
    let status = |bench: &Bench, name: &str, level: u8, text: &str| {
        let mut status = bench.message("diagnostic_msgs/msg/DiagnosticStatus");
        status.set("name", name).unwrap();
        status.set("level", level).unwrap();
        status.set("message", text).unwrap();
        status
    };
    let array = |bench: &Bench, left: (u8, &str), right: (u8, &str)| {
        let mut array = bench.message("diagnostic_msgs/msg/DiagnosticArray");
        array
            .set(
                "status",
                vec![
                    status(bench, "left_wheel", left.0, left.1),
                    status(bench, "right_wheel", right.0, right.1),
                ],
            )
            .unwrap();
        array
    };
    let fine = array(&bench, (0, "fine"), (0, "fine"));
    let outcomes = bench.see(0.0, &fine);
    assert!(outcomes.iter().all(|outcome| is_dropped(outcome, Reason::Unchanged)), "{outcomes:?}");
    let hot = array(&bench, (2, "82 °C"), (0, "fine"));
    let mut outcomes = bench.see(2.0, &hot);
    assert!(is_dropped(&outcomes[1], Reason::Unchanged));
    let memory = record(outcomes.remove(0));
    assert_eq!(memory.content, "left_wheel: ERROR 82 °C");
    assert_eq!(memory.importance.unwrap().as_f64(), 0.8);
    assert_eq!(
        memory.provenance.unwrap().external_id.as_deref(),
        Some("ros2:/diagnostics@1780000002.000000000#0")
    );
    let hotter = array(&bench, (2, "93 °C"), (0, "fine"));
    assert!(is_dropped(&bench.see(4.0, &hotter)[0], Reason::Unchanged), "the same level");
    let outcome = bench.see(6.0, &fine).remove(0);
    assert_eq!(record(outcome).content, "left_wheel: OK fine");
}

#[test]
fn a_list_without_end_makes_no_memories_without_end() {
    let config = "[[ros2.topic]]\ntopic = '/parts'\neach = 'detections[*]'\n\
        by = '{results[0].hypothesis.class_id}'\ntext = 'a part'\npose = '@none'";
    let mut bench = Bench::new("/parts", config);
    let mut result = bench.message("vision_msgs/msg/ObjectHypothesisWithPose");
    let mut detection = bench.message("vision_msgs/msg/Detection3D");
    let detections: Vec<Message> = (0..rule::MOST_ELEMENTS + 70)
        .map(|n| {
            result.set("hypothesis.class_id", format!("part {n}")).unwrap();
            result.set("hypothesis.score", 0.9).unwrap();
            detection.set("results", vec![result.clone()]).unwrap();
            detection.clone()
        })
        .collect();
    let mut array = bench.message("vision_msgs/msg/Detection3DArray");
    array.set("detections", detections).unwrap();
    let outcomes = bench.see(1.0, &array);
    assert_eq!(outcomes.last(), Some(&Outcome::Beyond(70)));
    let counters = bench.counters();
    assert_eq!((counters.kept, counters.dropped), (1000, [(Reason::TooLong, 70)].into()));
    let ids: std::collections::BTreeSet<String> =
        outcomes.into_iter().take(1000).map(|one| record(one).id.to_string()).collect();
    assert_eq!(ids.len(), 1000);
}

#[test]
fn a_pose_is_kept_in_the_fixed_frame_and_its_own() {
    let mut bench = Bench::plain("/goal").with_robot();
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "base_link").unwrap();
    pose.set("header.stamp.sec", 1_780_000_020).unwrap();
    pose.set("header.stamp.nanosec", 500_000_000_u32).unwrap();
    pose.set("pose.position.x", 2.0).unwrap();
    pose.set("pose.position.y", 1.0).unwrap();
    let memory = record(bench.one(21.0, &pose));
    assert_eq!(memory.content, "/goal: pose at x 2.00, y 1.00 in base_link");
    assert_eq!(memory.event_time.clone().unwrap().as_str(), "2026-05-28T20:27:00.500Z");
    let poses = poses(&memory);
    // base_link is at 20.5 m in odom, which map sees turned by a quarter and shifted by 10.
    near(&poses[0], "map", [10.0 - 1.0, 22.5, 0.0]);
    near(&poses[1], "base_link", [2.0, 1.0, 0.0]);
    assert_eq!(poses[0].stamp.as_ref().unwrap().as_str(), "2026-05-28T20:27:00.500Z");
    // The same place in the world is no news, seen from wherever.
    pose.set("header.stamp.sec", 1_780_000_021).unwrap();
    pose.set("pose.position.x", 1.2).unwrap();
    assert!(is_dropped(&bench.one(21.6, &pose), Reason::Unchanged));
    pose.set("pose.position.x", 2.5).unwrap();
    assert!(kept(bench.one(21.7, &pose)).is_first);
}

#[test]
fn a_turn_is_news_too() {
    let mut bench = Bench::plain("/amcl_pose");
    let mut pose = bench.message("geometry_msgs/msg/PoseWithCovarianceStamped");
    pose.set("header.frame_id", "map").unwrap();
    let mut turned = |bench: &mut Bench, seconds, degrees: f64| {
        let half = degrees.to_radians() / 2.0;
        pose.set("pose.pose.orientation.z", half.sin()).unwrap();
        pose.set("pose.pose.orientation.w", half.cos()).unwrap();
        pose.set("pose.covariance[35]", 0.01).unwrap();
        bench.one(seconds, &pose)
    };
    let memory = record(turned(&mut bench, 0.0, 0.0));
    let pose = poses(&memory).remove(0);
    assert_eq!(pose.covariance.unwrap()[35], 0.01);
    assert!(is_dropped(&turned(&mut bench, 1.0, 29.0), Reason::Unchanged));
    assert!(matches!(turned(&mut bench, 2.0, 31.0), Outcome::Keep(_)));
    assert!(is_dropped(&turned(&mut bench, 3.0, 2.0), Reason::Unchanged), "from what was kept");
}

#[test]
fn odometry_makes_a_trail() {
    let mut bench = Bench::plain("/odom").with_robot();
    let mut odometry = bench.message("nav_msgs/msg/Odometry");
    odometry.set("header.frame_id", "odom").unwrap();
    odometry.set("child_frame_id", "base_link").unwrap();
    odometry.set("twist.twist.linear.x", 1.0).unwrap();
    let mut trail = Vec::new();
    for tick in 0..5000 {
        let seconds = f64::from(tick) / 128.0;
        let stamp = at(seconds).to_ros().unwrap();
        odometry.set("header.stamp.sec", stamp.0).unwrap();
        odometry.set("header.stamp.nanosec", stamp.1).unwrap();
        odometry.set("pose.pose.position.x", seconds).unwrap();
        if let Outcome::Keep(kept) = bench.one(seconds, &odometry) {
            trail.push(kept);
        }
    }
    // At the start, and then each time more than a metre went by, which is after 129/128 s.
    assert_eq!(trail.len(), 39);
    let last = record(Outcome::Keep(trail.pop().unwrap()));
    assert_eq!(last.content, "drove at 1.00 m/s");
    near(&poses(&last)[0], "map", [10.0, 38.296875, 0.0]);
    near(&poses(&last)[1], "odom", [38.296875, 0.0, 0.0]);
    assert_eq!(bench.counters().dropped[&Reason::Unchanged], 4961);
    assert_eq!(bench.counters().waited, 0, "what is not kept needs no transform");
}

#[test]
fn a_fix_is_a_place_on_the_earth() {
    let mut bench = Bench::plain("/fix");
    let mut fix = bench.message("sensor_msgs/msg/NavSatFix");
    fix.set("header.frame_id", "gps").unwrap();
    fix.set("latitude", 48.137).unwrap();
    fix.set("longitude", 11.575).unwrap();
    fix.set("altitude", 520.0).unwrap();
    fix.set("status.status", -1_i8).unwrap();
    assert!(is_dropped(&bench.one(0.0, &fix), Reason::Condition));
    fix.set("status.status", 0_i8).unwrap();
    let memory = record(bench.one(1.0, &fix));
    assert_eq!(memory.content, "at 48.137000, 11.575000, 520.0 m");
    let pose = poses(&memory).remove(0);
    near(&pose, "gps", [0.0; 3]);
    let geo = pose.geo.unwrap();
    assert_eq!((geo.lat(), geo.lon(), geo.alt()), (48.137, 11.575, Some(520.0)));
    // 0.00008° of latitude are 8.9 m, 0.0001° are 11.1 m. Height does not count.
    fix.set("latitude", 48.13708).unwrap();
    fix.set("altitude", 570.0).unwrap();
    assert!(is_dropped(&bench.one(2.0, &fix), Reason::Unchanged));
    fix.set("latitude", 48.1371).unwrap();
    assert!(kept(bench.one(3.0, &fix)).is_first);
    fix.set("latitude", f64::NAN).unwrap();
    assert!(is_dropped(&bench.one(4.0, &fix), Reason::BadPose));
}

#[test]
fn a_fix_is_also_where_the_receiver_is_in_the_map() {
    let mut bench = Bench::plain("/fix").with_robot();
    let mut fix = bench.message("sensor_msgs/msg/NavSatFix");
    fix.set("header.frame_id", "camera").unwrap();
    fix.set("status.status", 0_i8).unwrap();
    fix.set("latitude", 48.0).unwrap();
    let memory = record(bench.one(30.0, &fix));
    let poses = poses(&memory);
    assert_eq!(poses.len(), 1);
    near(&poses[0], "map", [10.0, 30.5, 1.0]);
    assert_eq!(poses[0].geo.unwrap().lat(), 48.0);
}

#[test]
fn a_battery_tells_when_it_runs_low_and_when_it_is_charged() {
    let mut bench = Bench::plain("/battery");
    let mut battery = bench.message("sensor_msgs/msg/BatteryState");
    battery.set("voltage", 11.1_f32).unwrap();
    let mut reads = |seconds, percentage: f32, status: u8| {
        battery.set("percentage", percentage).unwrap();
        battery.set("power_supply_status", status).unwrap();
        bench.one(seconds, &battery)
    };
    let memory = record(reads(00.0, 0.9, 2));
    assert_eq!(memory.content, "battery at 90%, 11.1 V, DISCHARGING");
    assert!(is_dropped(&reads(10.0, 0.21, 2), Reason::Unchanged));
    assert_eq!(record(reads(20.0, 0.19, 2)).content, "battery at 19%, 11.1 V, DISCHARGING");
    assert!(is_dropped(&reads(30.0, 0.21, 2), Reason::Unchanged), "not back yet");
    assert!(is_dropped(&reads(40.0, 0.18, 2), Reason::Unchanged));
    assert!(matches!(reads(50.0, 0.09, 2), Outcome::Keep(_)));
    assert_eq!(record(reads(60.0, 0.09, 1)).content, "battery at 9%, 11.1 V, CHARGING");
    assert!(is_dropped(&reads(70.0, f32::NAN, 1), Reason::Unchanged), "not measured");
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

#[test]
fn what_is_seen_again_nearby_is_the_same_thing() {
    let mut bench = Bench::plain("/detections").with_robot();
    // A cup that stands at (9, 20, 1) in the map; camera is at (10, t + 0.5, 1), x forward along y.
    let cup = |bench: &Bench, t: f64, aside: f64| {
        detection(bench, "Cup", 0.9, [20.0 - t - 0.5, 1.0 + aside, 0.0])
    };
    let first = detections(
        &bench,
        10.0,
        vec![
            cup(&bench, 10.0, 0.0),
            cup(&bench, 10.0, 5.0),
            detection(&bench, "person", 0.3, [1.0; 3]),
            bench.message("vision_msgs/msg/Detection3D"),
        ],
    );
    let mut outcomes = bench.see(10.05, &first);
    assert!(is_dropped(&outcomes.pop().unwrap(), Reason::Condition), "without a result");
    assert!(is_dropped(&outcomes.pop().unwrap(), Reason::Condition), "not sure enough");
    let other = kept(outcomes.pop().unwrap());
    let kept_first = kept(outcomes.pop().unwrap());
    assert_ne!(other.resource.get("id"), kept_first.resource.get("id"));
    let cup_entity = entity(&kept_first.about[0]);
    assert_eq!((cup_entity.id.as_str(), cup_entity.name.as_str()), ("cup", "Cup"));
    let first = record(Outcome::Keep(Box::new(kept_first)));
    assert_eq!(first.content, "saw Cup");
    assert_eq!(first.entity_refs.as_ref().unwrap()[0].target.to_string(), "Entity/cup");
    assert_eq!(first.confidence.as_ref().unwrap().calibrated.as_ref().unwrap().as_f64(), 0.9);
    near(&poses(&first)[0], "map", [9.0, 20.0, 1.0]);
    near(&poses(&first)[1], "camera", [9.5, 1.0, 0.0]);
    // Driving by, at 30 Hz for five seconds.
    let mut merged = 0;
    for tick in 1..150 {
        let t = 10.0 + f64::from(tick) / 30.0;
        let seen = detections(&bench, t, vec![cup(&bench, t, 0.1)]);
        match bench.one(t, &seen) {
            Outcome::Merged { count } => merged = count,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(merged, 150);
    assert_eq!(bench.rules.things(), 2);
    let untold = bench.rules.untold(at(71.0), false);
    assert_eq!(untold.len(), 1);
    assert_eq!(untold[0].seen, 149);
    let stored = Resource::from(first).to_value();
    assert_eq!(
        untold[0].reference,
        format!("MemoryRecord/{}", stored.get("id").unwrap().as_str().unwrap())
    );
    let value = told(&stored, &untold[0]).unwrap();
    let record = match valid(&value) {
        Resource::MemoryRecord(record) => record,
        other => panic!("{other:?}"),
    };
    let last = record.extension.unwrap().pop().unwrap();
    assert_eq!(last.value_json.unwrap().get("count").and_then(Json::as_u64), Some(150));
    assert_eq!(told(&value, &untold[0]), None, "told once");
    // Somewhere else it is another.
    let t = 16.0;
    let moved = detections(&bench, t, vec![cup(&bench, t, 2.5)]);
    assert!(kept(bench.one(t, &moved)).is_first);
}

#[test]
fn an_image_is_seen_from_where_the_robot_is() {
    let mut bench = Bench::plain("/detections").with_robot();
    let mut result = bench.message("vision_msgs/msg/ObjectHypothesisWithPose");
    result.set("hypothesis.class_id", "person").unwrap();
    result.set("hypothesis.score", 0.8).unwrap();
    let mut one = bench.message("vision_msgs/msg/Detection2D");
    one.set("results", vec![result]).unwrap();
    let mut array = bench.message("vision_msgs/msg/Detection2DArray");
    array.set("detections", vec![one]).unwrap();
    let memory = record(bench.one(5.0, &array));
    assert_eq!(memory.content, "saw person");
    near(&poses(&memory)[0], "map", [10.0, 5.0, 0.0]);
    assert_eq!(bench.one(6.0, &array), Outcome::Merged { count: 2 }, "a metre on");
    assert!(kept(bench.one(20.0, &array)).is_first, "another place");
}

#[test]
fn numbers_and_truths() {
    for (ty, value, text) in [
        ("Bool", Value::from(true), "/n: true"),
        ("Int8", Value::from(-3_i8), "/n: -3"),
        ("Int16", Value::from(-3_i8), "/n: -3"),
        ("Int32", Value::from(-3_i8), "/n: -3"),
        ("Int64", Value::from(i64::MIN), "/n: -9223372036854775808"),
        ("UInt8", Value::from(3_u8), "/n: 3"),
        ("UInt16", Value::from(3_u8), "/n: 3"),
        ("UInt32", Value::from(3_u8), "/n: 3"),
        ("UInt64", Value::from(u64::MAX), "/n: 18446744073709551615"),
        ("Byte", Value::from(3_u8), "/n: 3"),
        ("Char", Value::from(65_u8), "/n: 65"),
        ("Float32", Value::from(0.1_f32), "/n: 0.1"),
        ("Float64", Value::from(-2.5), "/n: -2.5"),
    ] {
        let mut bench = Bench::plain("/n");
        let mut message = bench.message(&format!("std_msgs/msg/{ty}"));
        message.set("data", value).unwrap();
        assert_eq!(record(bench.one(0.0, &message)).content, text, "{ty}");
        assert!(is_dropped(&bench.one(100.0, &message), Reason::Unchanged), "{ty}");
    }
}

#[test]
fn every_type_with_defaults_is_bundled_and_fits_them() {
    let mut bench = Bench::plain("/x");
    for ty in known_types() {
        let message = bench.message(ty);
        for outcome in bench.see(0.0, &message) {
            assert!(!is_dropped(&outcome, Reason::WrongType), "{ty}");
        }
    }
    assert_eq!(bench.rules.misfits().count(), 0);
}

#[test]
fn any_type_by_its_fields() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/m*'\ntype = 'my_msgs/msg/Mine'\n\
         text = '{name}: {tags[*]} ({score:.0%})'\nentity = '{name}'\nlabel = 'location'\n\
         pose = 'where'\nframe = 'odom'\nkind = 'learning'\nexperience_type = 'discovery'\n\
         importance = 'score'\nhalf_life_h = 48\nanchored = true\nexpires_s = 3600\n\
         keep.only = [{ field = 'ok', is = true }, { field = 'name', is = ['dock', 'door'] }]",
    )
    .with_robot();
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "dock").unwrap();
    mine.set("score", 1.5_f32).unwrap();
    mine.set("tags", vec!["new".to_owned(), "far".to_owned()]).unwrap();
    mine.set("where.position.x", 3.0).unwrap();
    mine.set("header.frame_id", "nonsense").unwrap();
    assert!(is_dropped(&bench.one(1.0, &mine), Reason::Condition));
    mine.set("ok", true).unwrap();
    let memory = record(bench.one(2.0, &mine));
    assert_eq!(memory.content, "dock: new, far (150%)");
    assert_eq!(memory.importance.unwrap().as_f64(), 1.0, "no more than there is");
    let decay = memory.decay.clone().unwrap();
    assert_eq!((decay.half_life_hours.unwrap().as_f64(), decay.anchored), (48.0, Some(true)));
    assert_eq!(memory.valid_until.unwrap().at(), at(3602.0).into());
    assert_eq!(memory.kind.unwrap().as_str(), "learning");
    assert_eq!(memory.experience_type.unwrap().as_str(), "discovery");
    let extensions = memory.extension.unwrap();
    near(&SpatialPose::from_extension(&extensions[0]).unwrap(), "map", [10.0, 3.0, 0.0]);
    // Of what nothing else is said, there is one in a second.
    mine.set("name", "door").unwrap();
    assert!(is_dropped(&bench.one(2.9, &mine), Reason::TooSoon));
    assert!(kept(bench.one(3.0, &mine)).is_first);
}

#[test]
fn a_list_of_any_type_makes_entities() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/mine'\nas = 'entity'\neach = 'parts[*]'\nentity = '{name}'\n\
         text = 'worn by {wear:.1}, codes {codes[*]:join(/)} of {^name}'\npose = 'at'\n\
         label = 'product'",
    )
    .with_robot();
    let part = |bench: &Bench, name: &str, wear: f64| {
        let mut part = bench.message("my_msgs/msg/Part");
        part.set("name", name).unwrap();
        part.set("wear", wear).unwrap();
        part.set("codes", vec![Value::Int(1), Value::Int(-2)]).unwrap();
        part
    };
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "arm").unwrap();
    mine.set("header.frame_id", "base_link").unwrap();
    let parts = vec![part(&bench, "Gripper", 0.1), part(&bench, "", 0.2)];
    mine.set("parts", parts).unwrap();
    let mut outcomes = bench.see(4.0, &mine);
    assert!(is_dropped(&outcomes[1], Reason::NoName));
    let first = kept(outcomes.remove(0));
    let gripper = entity(&first.resource);
    assert_eq!((gripper.id.as_str(), gripper.name.as_str()), ("gripper", "Gripper"));
    assert_eq!(gripper.summary.as_deref(), Some("worn by 0.1, codes 1/-2 of arm"));
    assert_eq!(gripper.mention_count.unwrap().as_u64(), Some(1));
    near(
        &SpatialPose::from_extension(&gripper.extension.unwrap()[0]).unwrap(),
        "map",
        [10.0, 4.0, 0.0],
    );
    assert_eq!(bench.see(5.0, &mine)[0], Outcome::Merged { count: 2 });
    let again = kept(bench.see(64.0, &mine).remove(0));
    assert_eq!((again.is_first, again.seen), (false, 2));
    let mut stored = entity(&first.resource);
    stored.attributes = Some([("maker".to_owned(), "acme".to_owned())].into());
    let stored = Resource::from(stored).to_value();
    let value = folded(Some(&stored), &again).unwrap();
    let gripper = entity(&value);
    assert_eq!(gripper.mention_count.unwrap().as_u64(), Some(3));
    assert_eq!(gripper.attributes.unwrap()["maker"], "acme", "what others said of it stays");
    assert_eq!(gripper.last_seen_at.unwrap().at(), at(64.0).into());
    assert_eq!(folded(Some(&value), &again), None, "nothing counts twice");
}

#[test]
fn a_message_waits_for_its_transform_and_changes_nothing() {
    let mut bench = Bench::plain("/goal").with_robot();
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "base_link").unwrap();
    let stamp = at(70.4).to_ros().unwrap();
    pose.set("header.stamp.sec", stamp.0).unwrap();
    pose.set("header.stamp.nanosec", stamp.1).unwrap();
    let arrival = Arrival { topic: "/goal", node: None, received: at(70.4), is_live: true };
    let outcomes = bench.rules.observe(&arrival, &pose, &bench.tf);
    let [Outcome::Wait(wait)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(wait.expected >= at(70.4), "{wait:?}");
    assert!(wait.reason.contains("base_link"), "{wait:?}");
    let outcomes = bench.rules.retry(wait, &arrival, &pose, &bench.tf, false);
    assert!(matches!(outcomes[..], [Outcome::Wait(_)]));
    // Without waiting any longer it is kept, and says what it lacks.
    let mut too_late = Bench::plain("/goal").with_robot();
    let Outcome::Wait(other) = too_late.one(70.4, &pose) else { panic!() };
    let outcome = too_late.rules.retry(&other, &arrival, &pose, &too_late.tf, true).remove(0);
    let memory = record(outcome);
    assert_eq!(poses(&memory).len(), 1);
    near(&poses(&memory)[0], "base_link", [0.0; 3]);
    let extensions = memory.extension.unwrap();
    let unplaced = extensions.iter().find(|e| e.url == UNPLACED_URL).unwrap();
    assert!(unplaced.value_string.as_ref().unwrap().contains("is known from"), "{unplaced:?}");
    let counters = too_late.counters();
    assert_eq!(
        (counters.received, counters.waited, counters.unplaced, counters.kept),
        (1, 1, 1, 1)
    );
    // With the transform it is where it was.
    let odom = Isometry3::translation(71.0, 0.0, 0.0);
    bench.tf.insert("odom", "base_link", at(71.0), odom, false).unwrap();
    let outcome = bench.rules.retry(wait, &arrival, &pose, &bench.tf, false).remove(0);
    near(&poses(&record(outcome))[0], "map", [10.0, 70.4, 0.0]);
    assert_eq!(bench.counters().received, 1);
}

#[test]
fn a_pose_without_a_frame_is_compared_too() {
    let mut bench = Bench::plain("/goal");
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    let memory = record(bench.one(0.0, &pose));
    let extension = memory.extension.unwrap().remove(0);
    assert_eq!(extension.value_string.as_deref(), Some("a pose without a frame_id"));
    pose.set("pose.position.y", 0.9).unwrap();
    assert!(is_dropped(&bench.one(1.0, &pose), Reason::Unchanged));
    pose.set("pose.position.y", 1.1).unwrap();
    assert!(kept(bench.one(2.0, &pose)).is_first);
}

#[test]
fn without_a_transform_it_may_be_dropped() {
    let mut bench =
        Bench::new("/goal", "[[ros2.topic]]\ntopic = '/goal'\nwithout_transform = 'drop'");
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "gripper").unwrap();
    assert!(is_dropped(&bench.one(0.0, &pose), Reason::NoTransform));
    pose.set("header.frame_id", "map").unwrap();
    assert!(kept(bench.one(1.0, &pose)).unplaced.is_none(), "the fixed frame needs none");
    pose.set("pose.position.x", f64::INFINITY).unwrap();
    assert!(is_dropped(&bench.one(2.0, &pose), Reason::BadPose));
}

#[test]
fn a_recording_seen_twice_says_the_same() {
    let run = || {
        let mut bench = Bench::plain("/detections").with_robot();
        let mut said = Vec::new();
        for tick in 0..20 {
            let t = 10.0 + f64::from(tick);
            let place = [f64::from(tick % 7), f64::from(tick % 3) * 2.0, 0.0];
            let seen = detections(&bench, t, vec![detection(&bench, "cup", 0.9, place)]);
            said.push(bench.one(t, &seen));
        }
        said
    };
    let said = run();
    assert!(said.iter().filter(|outcome| matches!(outcome, Outcome::Keep(_))).count() > 3);
    assert_eq!(said, run());
}

#[test]
fn two_messages_of_one_moment_are_two_memories() {
    let mut bench = Bench::new("/note", "[[ros2.topic]]\ntopic = '/note'\nkeep.on_change = 'data'");
    let mut message = bench.message("std_msgs/msg/String");
    let mut say = |text: &str| {
        message.set("data", text).unwrap();
        record(bench.one(0.0, &message)).id
    };
    assert_ne!(say("a"), say("b"));
}

#[test]
fn several_rules_look_at_a_topic_each_for_itself() {
    let mut bench = Bench::new(
        "/left/mine",
        "[[ros2.topic]]\ntopic = '/*/mine'\ntext = 'first {name}'\n\
         [[ros2.topic]]\ntopic = '/left/mine'\ntext = 'second {name}'\n\
         [[ros2.topic]]\ntopic = '/left/mine'\ntype = 'std_msgs/msg/String'\nqueue_depth = 3",
    );
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "x").unwrap();
    let outcomes = bench.see(0.0, &mine);
    let [first, second] = <[Outcome; 2]>::try_from(outcomes).unwrap().map(record);
    assert_eq!((first.content.as_str(), second.content.as_str()), ("first x", "second x"));
    assert_ne!(first.id, second.id);
    let name = |ty: &str| ty.parse::<TypeName>().unwrap();
    assert!(bench.rules.wants("/left/mine", &name("std_msgs/msg/String")));
    assert!(!bench.rules.wants("/mine", &name("std_msgs/msg/String")));
    assert_eq!(bench.rules.interest("/mine", &name("std_msgs/msg/String")), Interest::None);
    assert_eq!(bench.rules.queue_depth("/left/mine", &name("std_msgs/msg/String")), Some(3));
    assert_eq!(bench.rules.queue_depth("/left/mine", &name("my_msgs/msg/Mine")), None);
    bench.rules.malformed("/left/mine");
    assert_eq!(bench.counters().malformed, 1);
}

#[test]
fn two_definitions_of_one_name_at_once_are_one_rule() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/mine'\ntext = '{name}'\nby = 'name'\nkeep.at_most_every_s = 60",
    );
    let mut other = Registry::standard();
    let name = "my_msgs/msg/Mine".parse().unwrap();
    other.add_text(&name, "string name\nint32 more").unwrap();
    let mut new = Message::new(&other.message("my_msgs/msg/Mine").unwrap());
    let mut old = bench.message("my_msgs/msg/Mine");
    for message in [&mut new, &mut old] {
        message.set("name", "x").unwrap();
    }
    // Half of the fleet is updated: what limits a rule does not begin anew with each message.
    for n in 0..10 {
        bench.see(f64::from(n), if n % 2 == 0 { &old } else { &new });
    }
    assert_eq!(bench.counters().kept, 1);
    assert_eq!(bench.counters().dropped[&Reason::TooSoon], 9);
}

#[test]
fn types_of_ever_new_names_leave_no_trace_and_take_nothing_from_the_one_in_use() {
    let mut bench = Bench::new(
        "/mine",
        "[[ros2.topic]]\ntopic = '/mine'\ntext = '{name}'\nby = 'name'\nkeep.at_most_every_s = 6000",
    );
    let mut mine = bench.message("my_msgs/msg/Mine");
    mine.set("name", "x").unwrap();
    for n in 0..100 {
        bench.see(f64::from(n), &mine);
        let name = format!("their_msgs/msg/T{n}");
        let fields = if n % 2 == 0 { "string name" } else { "int32 other" };
        let mut registry = Registry::new();
        registry.add_text(&name.parse().unwrap(), fields).unwrap();
        bench.see(f64::from(n), &Message::new(&registry.message(&name).unwrap()));
    }
    let misfits = bench.rules.misfits().count();
    assert!(misfits < 16, "{misfits}");
    assert_eq!(bench.counters().dropped[&Reason::TooSoon], 99, "it is still the same thing");
}

#[test]
fn what_does_not_fit_a_type_is_said_under_its_key() {
    let mut registry = Registry::standard();
    registry.add_text(&"my_msgs/msg/Part".parse().unwrap(), PART).unwrap();
    registry.add_text(&"my_msgs/msg/Mine".parse().unwrap(), MINE).unwrap();
    for (rule, complaint) in [
        ("text = '{nme}'", "text: nme: my_msgs/msg/Mine has no such field"),
        ("", "text: is missing: it says what a my_msgs/msg/Mine means"),
        ("text = 'x'\neach = 'tags[*]'", "each: tags[*] is no message but string"),
        ("text = 'x'\neach = 'name[*]'", "each: name[*]: a string is no list"),
        ("text = 'x'\npose = 'score'", "pose: score is a float32, not a message with a pose"),
        ("text = 'x'\npose = 'header'", "pose: a std_msgs/msg/Header is no message with a pose"),
        ("text = 'x'\ngeo = '.'", "geo: a my_msgs/msg/Mine is no message with latitude"),
        ("text = 'x'\nstamp = 'name'", "stamp: name is a string, not a message of builtin"),
        ("text = 'x'\nimportance.warn = 1", "importance: a my_msgs/msg/Mine has no level"),
        ("text = 'x'\nkeep.levels = 'warn'", "keep.levels: a my_msgs/msg/Mine has no level"),
        (
            "text = 'x'\nkeep.on_change = 'a'",
            "keep.on_change: a: my_msgs/msg/Mine has no such field",
        ),
        ("text = 'x'\nkeep.below = { field = 'b', at = 1 }", "keep.below: b: my_msgs/msg/Mine"),
        ("text = 'x'\nkeep.only = { field = 'c', at_least = 1 }", "keep.only: c: my_msgs/msg/Mine"),
        ("text = 'x'\nas = 'entity'", "entity: is missing: it names the entity"),
    ] {
        let config = format!("[[ros2.topic]]\ntopic = '/m'\ntype = 'my_msgs/msg/Mine'\n{rule}\n");
        let error = Rules::compile(&resolve(&config).unwrap(), &registry).unwrap_err();
        let complaint = format!("ros2.topic[0].{complaint}");
        assert!(error.to_string().starts_with(&complaint), "{rule}: {error}");
    }
    let config = "[[ros2.topic]]\ntopic = '/m'\ntype = 'my_msgs/msg/Part'\ntext = 'x'\npose = 'at'";
    let error = Rules::compile(&resolve(config).unwrap(), &registry).unwrap_err();
    assert!(error.to_string().starts_with("ros2.topic[0].frame: is missing"), "{error}");
    // A type that nobody knows yet may come.
    let config = "[[ros2.topic]]\ntopic = '/m'\ntype = 'their_msgs/msg/New'\ntext = '{x}'";
    assert!(Rules::compile(&resolve(config).unwrap(), &registry).is_ok());
}

#[test]
fn a_type_without_the_fields_is_dropped_and_told() {
    let mut bench = Bench::new("/m", "[[ros2.topic]]\ntopic = '/m'\ntext = '{colour}'");
    let mine = bench.message("my_msgs/msg/Mine");
    assert!(is_dropped(&bench.one(0.0, &mine), Reason::WrongType));
    let misfits: Vec<String> = bench.rules.misfits().map(ToString::to_string).collect();
    assert!(misfits[0].starts_with("ros2.topic[0].text: colour: "), "{misfits:?}");
}

#[test]
fn the_number_of_things_is_bounded() {
    let mut bench = Bench::new(
        "/mine",
        "[ros2]\nthings = 10\n[[ros2.topic]]\ntopic = '/mine'\ntext = '{name}'\nby = '{name}'\n\
         keep.on_change = 'score'",
    );
    let mut mine = bench.message("my_msgs/msg/Mine");
    for n in 0..100 {
        mine.set("name", format!("thing {n}")).unwrap();
        assert!(kept(bench.one(f64::from(n), &mine)).is_first);
    }
    assert_eq!(bench.rules.things(), 10);
    assert!(is_dropped(&bench.one(100.0, &mine), Reason::Unchanged));
}

#[test]
fn a_memory_is_tied_to_the_nearest_keyframe() {
    let mut bench =
        Bench::new("/goal", "[ros2]\nkeyframes = ['kf_*']\n[[ros2.topic]]\ntopic = '/goal'")
            .with_robot();
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "map").unwrap();
    pose.set("pose.position.x", 5.0).unwrap();
    assert_eq!(poses(&record(bench.one(1.0, &pose))).len(), 1, "no keyframe is known yet");
    let quarter = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), std::f64::consts::FRAC_PI_2);
    for (name, x) in [("kf_1", 100.0), ("kf_2", 4.0), ("kf_3", -4.0), ("other", 5.0)] {
        let keyframe = Isometry3::from_parts(Translation3::new(x, 0.0, 0.0), quarter);
        bench.tf.insert("map", name, at(0.0), keyframe, false).unwrap();
    }
    pose.set("pose.position.x", 6.0).unwrap();
    pose.set("pose.position.y", 1.0).unwrap();
    let memory = record(bench.one(2.0, &pose));
    let poses = poses(&memory);
    assert_eq!(poses.len(), 2);
    near(&poses[0], "map", [6.0, 1.0, 0.0]);
    // Seen from (4, 0), turned a quarter to the left: what is 2 m in x lies 2 m to the right.
    near(&poses[1], "kf_2", [1.0, -2.0, 0.0]);
}

#[test]
fn a_thing_stays_the_same_when_the_map_moves() {
    let mut bench = Bench::plain("/detections");
    let cup = |bench: &Bench, t, x| {
        let mut seen = detections(bench, t, vec![detection(bench, "cup", 0.9, [x, 0.0, 0.0])]);
        seen.set("header.frame_id", "map").unwrap();
        seen
    };
    let first = cup(&bench, 10.0, 1.0);
    let kept = kept(bench.one(10.0, &first));
    let mut memory = valid(&kept.resource);
    let target = memory.reference();
    assert!(bench.rules.has_memory(&target));
    let record = omir_core::reference::Ref { id: "other".parse().unwrap(), ..target.clone() };
    assert!(!bench.rules.has_memory(&record));
    let entity = omir_core::reference::Ref {
        kind: omir_core::reference::ResourceType::Entity,
        ..target.clone()
    };
    assert!(!bench.rules.has_memory(&entity));
    // As a rebase leaves it.
    let place = memory.extensions().iter().position(|e| SpatialPose::from_extension(e).is_ok());
    let pose = SpatialPose::from_extension(&memory.extensions()[place.unwrap()]).unwrap();
    let moved = SpatialPose { position: [1.0, 100.0, 0.0].into(), ..pose };
    memory.extensions_mut()[place.unwrap()] = moved.to_extension();
    bench.rules.map_moved(&memory);
    let mut again = cup(&bench, 11.0, 1.0);
    again.set("detections[0].bbox.center.position.y", 100.0).unwrap();
    assert_eq!(bench.one(11.0, &again), Outcome::Merged { count: 2 });
    let third = cup(&bench, 12.0, 1.0);
    assert!(matches!(bench.one(12.0, &third), Outcome::Keep(kept) if kept.is_first));
}
