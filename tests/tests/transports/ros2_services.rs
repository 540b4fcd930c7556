//! Services and the action of the memory, asked by another node over the network: the engine, its node and the
//! client are real.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use omir_core::operation::Operation;
use omir_ros2::graph::{Node, NodeConfig, Qos};
use omir_ros2::interface::Registry;
use omir_ros2::message::{Message, Value};
use omir_ros2::records::type_name;
use omir_ros2::rules::Ros2;
use omir_ros2::stamp::Stamp;
use omird::protocols::Protocols;
use omird::ros2;
use omird_tests::cut_disk::CutDisk;
use omird_tests::process::{self, eventually, free_endpoint};
use omird_tests::session::{DAWN, Session, TestClock};
use parking_lot::RwLock;

const LONG: Duration = Duration::from_secs(30);

/// A memory in the graph, and another node that asks it.
struct Scene {
    client: Node,
    memory: ros2::Node,
    _engine: Session,
    _sessions: [zenoh::Session; 2],
}

impl Scene {
    fn new() -> Self {
        let engine = Session::open(&CutDisk::new(), &TestClock::new()).expect("it opens");
        let endpoint = free_endpoint();
        let ours = process::session("peer", &[&endpoint], &[]);
        let theirs = process::session("peer", &[], &[&endpoint]);
        let memory =
            ros2::Node::start(&engine, &Protocols::over(&engine, "r1"), &ours, &Ros2::default())
                .expect("it joins");
        let types = Arc::new(RwLock::new(Registry::standard()));
        let now = Arc::new(|| Stamp::from_nanos(DAWN * 1000));
        let config = NodeConfig::named("client");
        let client = Node::open(&theirs, config, types, now, Arc::new(|_: &_| {}));
        let client = client.expect("it joins");
        Self { client, memory, _engine: engine, _sessions: [ours, theirs] }
    }

    fn message(&self, ty: &str) -> Message {
        Message::new(&self.client.types().read().message(ty).expect("known"))
    }

    /// Code and path of the status of a response.
    fn asked(&self, operation: Operation, changes: &[(&str, Value)]) -> (String, String) {
        let types = self.client.types().read();
        let ty = types.service(&type_name(operation)).expect("it is known");
        drop(types);
        let name = format!("/omird/{}", operation.as_str());
        let client = self.client.client(&name, &ty).expect("it is announced");
        eventually("the service is there", || client.is_served(self.client.graph()));
        let mut request = client.request();
        for (path, value) in changes {
            request.set(path, value.clone()).expect("a field");
        }
        let response = client.call(&request, LONG).expect("an answer");
        let text = |path: &str| response.text(path).unwrap_or_default().to_owned();
        (text("status.code"), text("status.path"))
    }
}

#[test]
fn a_refusal_names_the_field_that_was_wrong() {
    let scene = Scene::new();
    let record = |changes: &[(&str, Value)]| {
        let mut record = scene.message("omir_msgs/msg/MemoryRecord");
        record.set("content", "the door is open").expect("a field");
        for (path, value) in changes {
            record.set(path, value.clone()).expect("a field");
        }
        Value::Message(record)
    };
    let entity = Value::Message(scene.message("omir_msgs/msg/Entity"));
    let good = record(&[]);
    let refused = |changes: &[(&str, Value)], place: &str| {
        let told = scene.asked(Operation::Remember, changes);
        assert_eq!(told, ("INVALID_RESOURCE".to_owned(), place.to_owned()));
    };
    let wrong = record(&[("importance", vec![2.0].into())]);
    let list = |items: &[&Value]| Value::List(items.iter().map(|item| (*item).clone()).collect());
    refused(&[("records", list(&[&good, &wrong]))], "/records/1/importance");
    let wrong = record(&[("experience_type", "dream".into())]);
    refused(&[("records", list(&[&wrong]))], "/records/0/experience_type");
    refused(&[("records", list(&[&good])), ("entities", list(&[&entity]))], "/entities/0");
    let nobody = record(&[("entities", vec![Value::Text("Entity/nobody".into())].into())]);
    refused(&[("records", list(&[&good, &nobody]))], "/records/1/entities/0");
    let wrong: Value = r#"[{"resourceType":"Entity","id":"e"}]"#.into();
    refused(&[("records", list(&[&good])), ("json", wrong)], "/json/0");

    let refused = |operation, changes: &[(&str, Value)], place: &str| {
        let (_, path) = scene.asked(operation, changes);
        assert_eq!(path, place);
    };
    let too_much = [("filter.min_importance", vec![7.0].into())];
    refused(Operation::Recall, &too_much, "/filter/min_importance");
    let nothing = [("refs", vec![Value::Text("nonsense".into())].into())];
    refused(Operation::Forget, &nothing, "/refs");
    scene.memory.stop();
}

#[test]
fn an_import_tells_how_far_it_is() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("doors.omir");
    let doors: Vec<String> = (0..900)
        .map(|n| {
            format!(
                r#"{{"resourceType":"Entity","id":"door{n}","name":"the door number {n} of this house"}}"#
            )
        })
        .collect();
    let bundle =
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{}]}}"#, doors.join(","));
    std::fs::write(&file, &bundle).expect("it is written");

    let types = scene.client.types().read();
    let ty = types.action("omir_msgs/action/Import").expect("it is known");
    let states = types.message("action_msgs/msg/GoalStatusArray").expect("it is known");
    drop(types);
    let part = |part: &str| format!("/omird/import/_action/{part}");
    let send_goal = scene.client.client(&part("send_goal"), &ty.send_goal).expect("announced");
    let get_result = scene.client.client(&part("get_result"), &ty.get_result).expect("announced");
    let (tell, told) = mpsc::channel();
    let _feedback = scene
        .client
        .subscribe(&part("feedback"), &ty.feedback_message, Qos::DEFAULT, move |heard| {
            _ = tell.send(heard.message);
        })
        .expect("announced");
    let (tell, status) = mpsc::channel();
    let _status = scene
        .client
        .subscribe(&part("status"), &states, Qos::LATCHED.keep_last(50), move |heard| {
            _ = tell.send(heard.message);
        })
        .expect("announced");
    eventually("the action is there", || get_result.is_served(scene.client.graph()));
    // The other side has to know of the subscription as well, as with every client of an action.
    std::thread::sleep(Duration::from_millis(500));

    let mut goal = send_goal.request();
    goal.set("goal_id.uuid", Value::Bytes(vec![7; 16])).expect("a field");
    goal.set("goal.path", file.to_str().expect("text")).expect("a field");
    let accepted = send_goal.call(&goal, LONG).expect("an answer").bool("accepted");
    assert_eq!(accepted, Some(true));
    let mut request = get_result.request();
    request.set("goal_id.uuid", Value::Bytes(vec![7; 16])).expect("a field");
    let result = get_result.call(&request, LONG).expect("an answer");
    assert_eq!(result.bool("result.status.ok"), Some(true));
    assert_eq!(result.u64("result.stored"), Some(900));

    let number = |message: &Message, field: &str| message.u64(&format!("feedback.{field}"));
    let size = bundle.len() as u64;
    let first = told.recv_timeout(LONG).expect("feedback at once");
    assert_eq!(first.bytes("goal_id.uuid"), Some([7; 16].as_slice()));
    assert_eq!(
        (number(&first, "bytes_done"), number(&first, "bytes_total")),
        (Some(0), Some(size))
    );
    let mut last = first;
    while number(&last, "stored") == Some(0) {
        last = told.recv_timeout(LONG).expect("feedback to the end");
    }
    assert_eq!((number(&last, "bytes_done"), number(&last, "stored")), (Some(size), Some(900)));
    let ends = |message: &Message| {
        let list = message.list("status_list").unwrap_or_default();
        list.iter().any(|one| one.as_message().and_then(|one| one.i64("status")) == Some(4))
    };
    while !ends(&status.recv_timeout(LONG).expect("its end is told")) {}
    scene.memory.stop();
}
