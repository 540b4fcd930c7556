//! Things that rules recognise are recognised after the map has moved, whoever moved it.
//!
//! Invariant 23 of ARCHITECTURE.md.

use std::sync::{Arc, Mutex};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::space::Center;
use omir_core::value::Value as Json;
use omir_ros2::graph::{Node, NodeConfig, Publisher, Qos};
use omir_ros2::interface::Registry;
use omir_ros2::message::{Message, Value};
use omir_ros2::rules::Ros2;
use omir_ros2::stamp::Stamp;
use omird::config;
use omird::engine::{Effect, Encoding, Event, Query};
use omird::protocols::Protocols;
use omird::protocols::omir::parse_rebase;
use omird::ros2;
use omird_tests::cut_disk::CutDisk;
use omird_tests::process::{self, eventually, free_endpoint};
use omird_tests::session::{DAWN, Session, TestClock};
use parking_lot::RwLock;

const RULES: &str = r#"
[ros2]
keyframes = ["kf_*"]

[[ros2.topic]]
topic = "/seen"
type = "geometry_msgs/msg/PoseStamped"
text = "a cup"
merge = { within_m = 0.5, within_s = 3600, update_every_s = 60 }
"#;

fn rules() -> Ros2 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("omird.toml");
    std::fs::write(&path, RULES).expect("it is written");
    let section = config::read(&path).expect("it is valid").0.ros2.expect("it is there");
    section.resolve().expect("it fits")
}

/// A robot whose camera sees a cup.
struct Robot {
    node: Node,
    seen: Publisher,
    at: i64,
}

impl Robot {
    fn message(&self, ty: &str) -> Message {
        let types = self.node.types().read();
        Message::new(&types.message(ty).expect("it is known"))
    }

    fn sees(&mut self, y: f64) {
        self.at += 1;
        let mut cup = self.message("geometry_msgs/msg/PoseStamped");
        cup.set("header.frame_id", "map").expect("a field");
        cup.set("header.stamp.sec", self.at).expect("a field");
        cup.set("pose.position.y", y).expect("a field");
        cup.set("pose.orientation.w", 1.0).expect("a field");
        self.seen.publish(&cup).expect("it is sent");
    }

    /// Says where the keyframe is; as long as the publisher lives, also to who comes later.
    fn keyframe(&self) -> Publisher {
        let mut transform = self.message("geometry_msgs/msg/TransformStamped");
        transform.set("header.frame_id", "map").expect("a field");
        transform.set("child_frame_id", "kf_1").expect("a field");
        transform.set("transform.rotation.w", 1.0).expect("a field");
        let mut message = self.message("tf2_msgs/msg/TFMessage");
        let all = Value::List(vec![Value::Message(transform)]);
        message.set("transforms", all).expect("a field");
        let qos = Qos { durability: Qos::LATCHED.durability, ..Qos::DEFAULT.keep_last(1) };
        let publisher =
            self.node.publisher("/tf_static", message.ty(), qos).expect("it is announced");
        publisher.publish(&message).expect("it is sent");
        publisher
    }
}

/// Outcome of the sightings: how many messages, and how many of them a thing of their own.
fn counted(session: &Session) -> Option<[u64; 2]> {
    let status = session.status("r");
    let seen = status.get("ros2")?.get("topics")?.get("/seen")?.clone();
    let count = |name| seen.get(name).and_then(Json::as_u64);
    Some([count("received")?, count("kept")?])
}

/// A step that moves one memory, or the undoing of one; the reference of its record.
fn made(session: &Session, undo: Option<&str>, payload: Option<&Json>) -> String {
    let parameters = undo.map(|step| ("undo".to_owned(), step.to_owned()));
    let change =
        parse_rebase(session, parameters.into_iter().collect(), payload).expect("it is valid");
    match session.execute(change).expect("it moves").effect {
        Effect::Rebased { record: Some(record), moved: 1, .. } => record.target.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_thing_is_known_again_where_the_map_has_moved_it() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let session = Session::open(&disk, &clock).expect("it opens");
    let endpoint = free_endpoint();
    let ours = process::session("peer", &[&endpoint], &[]);
    let theirs = process::session("peer", &[], &[&endpoint]);

    let types = Arc::new(RwLock::new(Registry::standard()));
    let now = Arc::new(|| Stamp::from_nanos(DAWN * 1000));
    let node = Node::open(&theirs, NodeConfig::named("robot"), types, now, Arc::new(|_: &_| {}));
    let node = node.expect("it joins");
    let ty = node.types().read().message("geometry_msgs/msg/PoseStamped");
    let seen = node.publisher("/seen", &ty.expect("it is known"), Qos::DEFAULT);
    let mut robot = Robot { seen: seen.expect("it is announced"), node, at: DAWN / 1_000_000 };
    let _tf_static = robot.keyframe();
    let memory = ros2::Node::start(&session, &Protocols::over(&session, "r1"), &ours, &rules());
    let memory = memory.expect("it joins");
    // After the node, so that what is heard here was told to it.
    let _listening = {
        let events = events.clone();
        session.events().listen(move |event| {
            events.lock().expect("no panic").push(event.clone());
        })
    };

    // Something at a known place in the map tells when the keyframe is known.
    let post = r#"{"resourceType":"MemoryRecord","id":"post","content":"a post","extension":[{
        "url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{"frame":"map","position":[5,5,0]}}]}"#;
    let change = session.prepare(post.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("it is stored");
    let near_post = Query {
        frame: Some("kf_1".to_owned()),
        near: Some(Center::Space { x: 5.0, y: 5.0, z: 0.0 }),
        radius: Some(0.5),
        ..Query::default()
    };
    eventually("the keyframe is known", || {
        !session.recall(&near_post).expect("a recall").hits.is_empty()
    });
    let records = || {
        let recall = session.recall(&Query { touch: false, ..Query::default() }).expect("a recall");
        let hits = recall.hits.into_iter().map(|hit| hit.resource);
        hits.filter(|cbor| cbor.windows(5).any(|window| window == b"a cup")).collect::<Vec<_>>()
    };
    eventually("the robot is heard", || robot.seen.is_heard());
    robot.sees(1.0);
    eventually("the cup is remembered", || !records().is_empty());

    let moves = r#"{"keyframes":{"kf_1":{"position":[0,100,0]}}}"#;
    let moves = json::from_slice(moves.as_bytes(), &Limits::default()).expect("it is JSON");
    let step = made(&session, None, Some(&moves));
    for (done, y) in [(1, 101.0), (2, 1.0)] {
        if done == 2 {
            made(&session, Some(&step), None);
        }
        eventually("the rules are told", || {
            let events = events.lock().expect("no panic");
            let causes = events.iter().filter_map(|event| event.cause.as_ref());
            causes.filter(|cause| cause.name == "rebase").count() == done
        });
        robot.sees(y);
        let received = done as u64 + 1;
        eventually("it is seen", || counted(&session).is_some_and(|now| now[0] == received));
        assert_eq!(counted(&session), Some([received, 1]), "it is the same cup");
        assert_eq!(records().len(), 1);
    }
    memory.stop();
}
