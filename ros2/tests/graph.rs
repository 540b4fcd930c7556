//! Nodes in a ROS graph over two Zenoh sessions on loopback: what one has, the other finds and uses.
//!
//! Both ends are ours here; `.ci/ros2_client.py` does the same with another implementation.
//!
//! Invariants 21 and 24 of ARCHITECTURE.md.
#![cfg(feature = "node")]

mod pair;

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use omir_ros2::graph::{
    ActionConfig, CallError, DescribeError, Distribution, Ending, Entity, EntityKind, Event, Goal,
    GoalHandler, Graph, Node, NodeConfig, NodeError, Qos, Received, Status,
};
use omir_ros2::interface::{MessageType, Registry, TypeName};
use omir_ros2::message::{Message, Value};
use omir_ros2::stamp::Stamp;
use zenoh::query::{ConsolidationMode, QueryTarget, ReplyKeyExpr};
use zenoh::{Session, Wait};

use pair::sessions;

/// Longer than anything takes; a test that waits so long has failed.
const LONG: Duration = Duration::from_secs(20);
/// For what must not come: as long as one likes to wait in a test.
const SHORT: Duration = Duration::from_millis(300);

/// A node whose events are kept.
struct Ours {
    node: Node,
    events: Arc<Mutex<Vec<Event>>>,
}

fn node_of(session: &Session, config: NodeConfig, types: Registry) -> Ours {
    let events = Arc::new(Mutex::new(Vec::new()));
    let on_event = Arc::new({
        let events = Arc::clone(&events);
        move |event: &Event| events.lock().unwrap().push(event.clone())
    });
    // Each look at the clock is a second later.
    let ticks = Mutex::new(0);
    let clock = Arc::new(move || {
        let mut ticks = ticks.lock().unwrap();
        *ticks += 1;
        Stamp::from_nanos(*ticks * 1_000_000_000)
    });
    let types = Arc::new(RwLock::new(types));
    let node = Node::open(session, config, types, clock, on_event).unwrap();
    Ours { node, events }
}

fn node(session: &Session, name: &str) -> Ours {
    node_of(session, NodeConfig::named(name), Registry::standard())
}

/// The types that come with the crate, and another.
fn with(name: &str, text: &str) -> Registry {
    let mut types = Registry::standard();
    let name: TypeName = name.parse().unwrap();
    types.add_text(&name, text).unwrap();
    types
}

impl Ours {
    fn ty(&self, name: &str) -> Arc<MessageType> {
        self.node.types().read().unwrap().message(name).unwrap()
    }

    fn text(&self, text: &str) -> Message {
        let mut message = Message::new(&self.ty("std_msgs/msg/String"));
        message.set("data", text).unwrap();
        message
    }

    /// Subscribes to texts.
    fn listen(
        &self,
        topic: &str,
        qos: Qos,
    ) -> (omir_ros2::graph::Subscription, Receiver<Received>) {
        let (send, receive) = mpsc::channel();
        let ty = self.ty("std_msgs/msg/String");
        let subscription =
            self.node.subscribe(topic, &ty, qos, move |m| drop(send.send(m))).unwrap();
        (subscription, receive)
    }

    fn sees(&self, name: &str, kind: EntityKind) -> Arc<Entity> {
        let find = |graph: &Graph| graph.at(name, kind).into_iter().next();
        self.node.graph().wait(LONG, find).unwrap_or_else(|| panic!("no {kind} of {name}"))
    }

    /// Until the graph has no such thing any more.
    fn misses(&self, name: &str, kind: EntityKind) {
        let gone = |graph: &Graph| graph.at(name, kind).is_empty().then_some(());
        self.node.graph().wait(LONG, gone).expect("it goes");
    }
}

fn texts(receive: &Receiver<Received>, n: usize) -> Vec<String> {
    (0..n)
        .map(|_| receive.recv_timeout(LONG).unwrap().message.text("data").unwrap().to_owned())
        .collect()
}

#[test]
fn a_message_comes_with_who_published_it_and_when() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let (_subscription, receive) = listener.listen("chatter", Qos::DEFAULT);
    let publisher =
        talker.node.publisher("chatter", &talker.ty("std_msgs/msg/String"), Qos::DEFAULT).unwrap();
    talker.sees("/chatter", EntityKind::Subscription);
    let theirs = listener.sees("/chatter", EntityKind::Publisher);
    assert!(publisher.is_heard());
    publisher.publish(&talker.text("hello")).unwrap();
    publisher.publish(&talker.text("again")).unwrap();
    let first = receive.recv_timeout(LONG).unwrap();
    assert_eq!(first.message.text("data"), Some("hello"));
    assert_eq!((first.sequence, receive.recv_timeout(LONG).unwrap().sequence), (1, 2));
    assert_eq!(first.source.nanos() % 1_000_000_000, 0, "by the clock that was handed in");
    assert_eq!(listener.node.graph().who(first.publisher), Some(theirs));
    let other = Message::new(&talker.ty("std_msgs/msg/Int32"));
    assert!(matches!(publisher.publish(&other), Err(NodeError::Type { .. })));
}

#[test]
fn what_was_published_before_comes_once_and_in_order() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let ty = talker.ty("std_msgs/msg/String");
    let latched = Qos::LATCHED.keep_last(3);
    let early = talker.node.publisher("map", &ty, latched.keep_last(4)).unwrap();
    for text in ["0", "1", "2", "3", "4"] {
        early.publish(&talker.text(text)).unwrap();
    }
    listener.sees("/map", EntityKind::Publisher);
    // Four are kept, and three are wanted.
    let (subscription, receive) = listener.listen("map", latched);
    assert_eq!(texts(&receive, 3), ["2", "3", "4"]);
    assert_eq!(subscription.dropped(), 0);
    talker.sees("/map", EntityKind::Subscription);
    early.publish(&talker.text("5")).unwrap();
    assert_eq!(texts(&receive, 1), ["5"]);
    // A publisher that comes later is asked too, and may have published before it was seen.
    let late = talker.node.publisher("map", &ty, latched).unwrap();
    late.publish(&talker.text("6")).unwrap();
    assert_eq!(texts(&receive, 1), ["6"]);
    assert!(receive.recv_timeout(SHORT).is_err(), "nothing comes twice");
    // One who wants no history gets none.
    let (_volatile, fresh) = listener.listen("map", Qos::DEFAULT);
    assert!(fresh.recv_timeout(SHORT).is_err());
}

#[test]
fn all_that_was_published_before_comes_whatever_the_depth() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let ty = talker.ty("std_msgs/msg/String");
    let numbers: Vec<String> = (10..40).map(|n| n.to_string()).collect();
    let publish = |text: &String| {
        let publisher = talker.node.publisher("rosout", &ty, Qos::LATCHED).unwrap();
        publisher.publish(&talker.text(text)).unwrap();
        publisher
    };
    let _publishers: Vec<_> = numbers.iter().map(publish).collect();
    let all = |graph: &Graph| {
        (graph.at("/rosout", EntityKind::Publisher).len() == numbers.len()).then_some(())
    };
    listener.node.graph().wait(LONG, all).expect("thirty publishers");
    let (begun, begins) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (send, receive) = mpsc::channel();
    let subscription = listener
        .node
        .subscribe("rosout", &ty, Qos::LATCHED.keep_last(2), move |m| {
            let _ = begun.send(());
            let _ = wait.recv();
            let _ = send.send(m);
        })
        .unwrap();
    begins.recv_timeout(LONG).unwrap();
    // All that comes comes while the first one is still looked at: what is asked after the subscription did is
    // answered after it.
    let caches = b
        .get("*/rosout/*/*/@adv/**")
        .accept_replies(ReplyKeyExpr::Any)
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .wait()
        .unwrap();
    assert_eq!(caches.into_iter().count(), numbers.len());
    drop(go);
    let mut heard = texts(&receive, numbers.len());
    heard.sort();
    assert_eq!(heard, numbers);
    assert_eq!(subscription.dropped(), 0);
}

#[test]
fn a_request_that_is_too_large_is_refused_unread_with_the_reason() {
    let (a, b) = sessions();
    let config = NodeConfig { most_request: 1000, ..NodeConfig::named("server") };
    let server = node_of(&a, config, Registry::standard());
    let client = node(&b, "client");
    let ty = server.node.types().read().unwrap().service("omir_msgs/srv/Remember").unwrap();
    let _offered = server
        .node
        .serve("~/remember", &ty, |request| {
            let response = request.response();
            request.answer(&response).unwrap();
        })
        .unwrap();
    client.sees("/server/remember", EntityKind::Server);
    let remember = client.node.client("/server/remember", &ty).unwrap();
    let mut request = remember.request();
    remember.call(&request, LONG).unwrap();
    request.set("json", "x".repeat(2000)).unwrap();
    match remember.call(&request, LONG) {
        Err(CallError::Refused(why)) => assert!(why.contains("at most 1000"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.node.counts().malformed, 1);
}

#[test]
fn a_slow_subscription_drops_the_oldest_and_says_so() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let ty = talker.ty("std_msgs/msg/String");
    let (begun, begins) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (send, receive) = mpsc::channel();
    let subscription = listener
        .node
        .subscribe("chatter", &ty, Qos::DEFAULT.keep_last(2), move |m| {
            let _ = begun.send(());
            let _ = wait.recv();
            let _ = send.send(m);
        })
        .unwrap();
    talker.sees("/chatter", EntityKind::Subscription);
    let publisher = talker.node.publisher("chatter", &ty, Qos::DEFAULT).unwrap();
    publisher.publish(&talker.text("0")).unwrap();
    begins.recv_timeout(LONG).unwrap();
    for text in ["1", "2", "3", "4", "5"] {
        publisher.publish(&talker.text(text)).unwrap();
    }
    let dropped = || (listener.node.counts().dropped == 3).then_some(());
    listener.node.graph().wait(LONG, |_| dropped()).expect("three are dropped");
    assert_eq!(subscription.dropped(), 3);
    for _ in 0..3 {
        go.send(()).unwrap();
    }
    assert_eq!(texts(&receive, 3), ["0", "4", "5"]);
    drop(go);
}

#[test]
fn another_definition_under_the_same_name_is_refused_with_the_reason() {
    let (a, b) = sessions();
    let types = with("std_msgs/msg/String", "string data\nuint32 number");
    let talker = node_of(&a, NodeConfig::named("talker"), types);
    let listener = node(&b, "listener");
    let (_subscription, receive) = listener.listen("chatter", Qos::DEFAULT);
    let changed = talker.ty("std_msgs/msg/String");
    let publisher = talker.node.publisher("chatter", &changed, Qos::DEFAULT).unwrap();
    let told = || listener.events.lock().unwrap().first().map(ToString::to_string);
    let why = listener.node.graph().wait(LONG, |_| told()).expect("it is told");
    assert!(why.contains("the publisher of /talker is refused"), "{why}");
    assert!(why.contains("the definitions of that type differ"), "{why}");
    assert_eq!(listener.node.counts().other_types, 1);
    publisher.publish(&Message::new(&changed)).unwrap();
    assert!(receive.recv_timeout(SHORT).is_err());
    // The other side is told as well, and another type by its name.
    talker.node.graph().wait(LONG, |_| (talker.node.counts().other_types == 1).then_some(()));
    assert_eq!(talker.node.counts().other_types, 1);
    let int = listener.ty("std_msgs/msg/Int32");
    let _int = talker.node.publisher("chatter", &int, Qos::DEFAULT).unwrap();
    let second = || listener.events.lock().unwrap().get(1).map(ToString::to_string);
    let last = listener.node.graph().wait(LONG, |_| second()).expect("once for each publisher");
    assert!(last.contains("its type is std_msgs::msg::dds_::Int32_"), "{last}");
}

#[test]
fn bytes_that_are_no_message_are_refused_counted_and_answered() {
    let (a, b) = sessions();
    let server = node(&a, "server");
    let (_subscription, receive) = server.listen("chatter", Qos::DEFAULT);
    let service = server
        .node
        .types()
        .read()
        .unwrap()
        .service("type_description_interfaces/srv/GetTypeDescription")
        .unwrap();
    let _server = server.node.serve("recall", &service, |_| panic!("never asked")).unwrap();
    let key = |name: &str, ty: String, hash: String| format!("0/{name}/{ty}/{hash}");
    let text = server.ty("std_msgs/msg/String");
    let topic = key("chatter", text.name.dds(), text.hash.to_rihs_string());
    let seen = node(&b, "seen");
    seen.sees("/chatter", EntityKind::Subscription);
    seen.sees("/recall", EntityKind::Server);
    let attachment: Vec<u8> = [[0; 16].as_slice(), &[16], &[0; 16]].concat();
    b.put(&topic, "no attachment").wait().unwrap();
    b.put(&topic, vec![0, 1, 0, 0, 255, 255, 255, 255])
        .attachment(attachment.clone())
        .wait()
        .unwrap();
    b.put(&topic, "").attachment(attachment.clone()).wait().unwrap();
    let malformed =
        |n| server.node.graph().wait(LONG, |_| (server.node.counts().malformed == n).then_some(()));
    malformed(3).expect("three messages are refused");
    assert!(receive.recv_timeout(SHORT).is_err());

    let key = key("recall", service.name.dds(), service.hash.to_rihs_string());
    let ask = |payload: &[u8], attachment: &[u8]| {
        let replies =
            b.get(&key).payload(payload).attachment(attachment).timeout(LONG).wait().unwrap();
        let reply = replies.recv().unwrap();
        let error = reply.into_result().unwrap_err();
        String::from_utf8(error.payload().to_bytes().into_owned()).unwrap()
    };
    let why = ask(&[0, 1, 0, 0, 9], &attachment);
    assert!(why.contains("byte"), "{why}");
    assert!(ask(&[], &[1, 2, 3]).contains("an attachment of 3 bytes"));
    malformed(5).expect("two requests are refused");
    // What is no token is told, and hides nothing.
    let _odd = b.liveliness().declare_token("@ros2_lv/0/x/y").wait().unwrap();
    let token = || (server.node.counts().tokens == 1).then_some(());
    server.node.graph().wait(LONG, |_| token()).expect("it is counted");
}

#[test]
fn a_service_is_found_asked_and_answers() {
    let (a, b) = sessions();
    let (server, client) = (node(&a, "server"), node(&b, "client"));
    let ty = server
        .node
        .types()
        .read()
        .unwrap()
        .service("type_description_interfaces/srv/GetTypeDescription")
        .unwrap();
    let clients = Arc::new(Mutex::new(Vec::new()));
    let offered = server
        .node
        .serve("~/echo", &ty, {
            let clients = Arc::clone(&clients);
            move |request| {
                clients.lock().unwrap().push(request.client());
                let mut response = request.response();
                let text = request.message().text("type_name").unwrap().to_owned();
                response.set("failure_reason", text).unwrap();
                request.answer(&response).unwrap();
            }
        })
        .unwrap();
    assert_eq!(offered.name(), "/server/echo");
    let asked = client.node.client("/server/echo", &ty).unwrap();
    client.sees("/server/echo", EntityKind::Server);
    assert!(asked.is_served(client.node.graph()));
    let mut request = asked.request();
    request.set("type_name", "hello").unwrap();
    let response = asked.call(&request, LONG).unwrap();
    assert_eq!(response.text("failure_reason"), Some("hello"));
    let who = clients.lock().unwrap()[0];
    let who = server.node.graph().wait(LONG, |graph| graph.who(who)).unwrap();
    assert_eq!((who.kind, who.node_name()), (EntityKind::Client, "/client".to_owned()));

    drop(offered);
    client.misses("/server/echo", EntityKind::Server);
    assert!(!asked.is_served(client.node.graph()));
    assert_eq!(asked.call(&request, LONG), Err(CallError::Unanswered));
}

#[test]
fn an_unknown_type_is_asked_of_its_publisher_and_must_have_its_hash() {
    let (a, b) = sessions();
    let mut types = Registry::standard();
    let name: TypeName = "lab_msgs/msg/Probe".parse().unwrap();
    types.add_text(&name, "std_msgs/Header header\nfloat64[<=4] values\nstring<=8 unit").unwrap();
    let talker =
        node_of(&a, NodeConfig { namespace: "/lab".into(), ..NodeConfig::named("probe") }, types);
    let listener = node(&b, "listener");
    let probe = talker.ty("lab_msgs/msg/Probe");
    let publisher = talker.node.publisher("values", &probe, Qos::LATCHED).unwrap();
    listener.sees("/lab/values", EntityKind::Publisher);
    listener.sees("/lab/probe/get_type_description", EntityKind::Server);
    assert!(listener.node.types().read().unwrap().message("lab_msgs/msg/Probe").is_err());
    let ty = listener.node.type_of_topic("/lab/values", LONG).unwrap();
    assert_eq!(ty.hash, probe.hash);
    assert!(
        listener.node.types().read().unwrap().message("lab_msgs/msg/Probe").is_err(),
        "not kept"
    );

    let (send, receive) = mpsc::channel();
    let _subscription = listener
        .node
        .subscribe("/lab/values", &ty, Qos::LATCHED, move |m| drop(send.send(m)))
        .unwrap();
    let mut message = Message::new(&probe);
    message.set("header.frame_id", "lab").unwrap();
    message.set("values", Value::Floats(vec![1.5, 2.5])).unwrap();
    message.set("unit", "mT").unwrap();
    publisher.publish(&message).unwrap();
    let received = receive.recv_timeout(LONG).unwrap().message;
    assert_eq!(received.floats("values"), Some([1.5, 2.5].as_slice()));
    assert_eq!(
        (received.text("unit"), received.text("header.frame_id")),
        (Some("mT"), Some("lab"))
    );

    assert_eq!(
        listener.node.type_of_topic("/nothing", LONG),
        Err(DescribeError::Unpublished("/nothing".into()))
    );
    // A known type with another definition on the wire: the described one is used for the topic.
    let other = with("std_msgs/msg/String", "string data\nuint32 number");
    let changed = node_of(&a, NodeConfig::named("changed"), other);
    let theirs = changed.ty("std_msgs/msg/String");
    let _publisher = changed.node.publisher("odd", &theirs, Qos::DEFAULT).unwrap();
    listener.sees("/odd", EntityKind::Publisher);
    listener.sees("/changed/get_type_description", EntityKind::Server);
    let asked = listener.node.type_of_topic("/odd", LONG).unwrap();
    assert_eq!(asked.hash, theirs.hash);
    assert_ne!(listener.ty("std_msgs/msg/String").hash, theirs.hash);
}

#[test]
fn a_description_that_is_not_of_the_announced_hash_is_refused() {
    let (a, b) = sessions();
    let (liar, listener) = (node(&a, "accomplice"), node(&b, "listener"));
    let ty = liar.node.types().read().unwrap();
    let ty = ty.service("type_description_interfaces/srv/GetTypeDescription").unwrap();
    let _server = liar
        .node
        .serve("/liar/get_type_description", &ty, |request| {
            let mut response = request.response();
            let name = request.message().text("type_name").unwrap().to_owned();
            response.set("successful", true).unwrap();
            response.set("type_description.type_description.type_name", name).unwrap();
            request.answer(&response).unwrap();
        })
        .unwrap();
    let announced = format!("RIHS01_{}", "1".repeat(64));
    let token = format!(
        "@ros2_lv/0/{}/900/901/MP/%/%/liar/%lie/lab_msgs::msg::dds_::Lie_/{announced}/::,10:,:,:,,",
        a.zid()
    );
    let _token = a.liveliness().declare_token(token).wait().unwrap();
    listener.sees("/lie", EntityKind::Publisher);
    listener.sees("/liar/get_type_description", EntityKind::Server);
    match listener.node.type_of_topic("/lie", LONG) {
        Err(DescribeError::Hash { name, announced: said, described }) => {
            assert_eq!((name.as_str(), said), ("lab_msgs/msg/Lie", announced.clone()));
            assert_ne!(described, announced);
        }
        other => panic!("{other:?}"),
    }
    assert!(listener.node.types().read().unwrap().message("lab_msgs/msg/Lie").is_err());
}

/// Copies until it is told that it is done.
struct Copy(Mutex<Receiver<()>>);

impl GoalHandler for Copy {
    fn accept(&self, goal: &Message) -> Result<(), String> {
        match goal.text("path") {
            Some("") | None => Err("no file".into()),
            Some(_) => Ok(()),
        }
    }

    fn execute(&self, goal: &Goal) -> Ending {
        let mut feedback = goal.feedback().unwrap();
        feedback.set("feedback.done", 7_u32).unwrap();
        goal.send_feedback(&feedback).unwrap();
        while !goal.is_canceling() {
            if self.0.lock().unwrap().recv_timeout(Duration::from_millis(20)).is_ok() {
                let mut result = goal.result();
                result.set("files", 12_u32).unwrap();
                return Ending::Succeeded(result);
            }
        }
        Ending::Canceled(goal.result())
    }
}

#[test]
fn an_action_takes_a_goal_tells_how_far_it_is_and_ends() {
    let (a, b) = sessions();
    let copy = || with("lab_msgs/action/Copy", "string path\n---\nuint32 files\n---\nuint32 done");
    let server = node_of(&a, NodeConfig::named("server"), copy());
    let client = node_of(&b, NodeConfig::named("client"), copy());
    let ty = server.node.types().read().unwrap().action("lab_msgs/action/Copy").unwrap();
    let (finish, finished) = mpsc::channel();
    let offered = server
        .node
        .action_server("~/copy", &ty, ActionConfig::default(), Copy(Mutex::new(finished)))
        .unwrap();
    assert_eq!(offered.name(), "/server/copy");

    let part = |part: &str| format!("/server/copy/_action/{part}");
    let cancel = client.node.types().read().unwrap().service("action_msgs/srv/CancelGoal").unwrap();
    let send_goal = client.node.client(&part("send_goal"), &ty.send_goal).unwrap();
    let get_result = client.node.client(&part("get_result"), &ty.get_result).unwrap();
    let cancel_goal = client.node.client(&part("cancel_goal"), &cancel).unwrap();
    let (send, states) = mpsc::channel();
    let status = client.ty("action_msgs/msg/GoalStatusArray");
    let _states = client
        .node
        .subscribe(&part("status"), &status, Qos::LATCHED.keep_last(100), move |m| {
            drop(send.send(m))
        })
        .unwrap();
    let (send, feedback) = mpsc::channel();
    let _feedback = client
        .node
        .subscribe(&part("feedback"), &ty.feedback_message, Qos::DEFAULT, move |m| {
            drop(send.send(m))
        })
        .unwrap();
    for service in ["send_goal", "get_result", "cancel_goal"] {
        client.sees(&part(service), EntityKind::Server);
    }
    server.sees(&part("feedback"), EntityKind::Subscription);

    let goal = |id: u8, path: &str| {
        let mut request = send_goal.request();
        request.set("goal_id.uuid", Value::Bytes(vec![id; 16])).unwrap();
        request.set("goal.path", path).unwrap();
        send_goal.call(&request, LONG).unwrap().bool("accepted").unwrap()
    };
    let result = |id: u8| {
        let mut request = get_result.request();
        request.set("goal_id.uuid", Value::Bytes(vec![id; 16])).unwrap();
        let response = get_result.call(&request, LONG).unwrap();
        (response.i64("status").unwrap(), response.u64("result.files").unwrap())
    };
    assert!(!goal(1, ""), "the handler does not want it");
    assert!(goal(1, "a.mcap"));
    let told = feedback.recv_timeout(LONG).unwrap().message;
    assert_eq!(told.bytes("goal_id.uuid"), Some([1; 16].as_slice()));
    assert_eq!(told.u64("feedback.done"), Some(7));
    assert!(!goal(2, "b.mcap"), "one at once");
    // More ask for the result than may wait: one of them is refused, and none is told of an end too early.
    std::thread::scope(|scope| {
        let (send, answers) = mpsc::channel();
        for _ in 0..=100 {
            let (send, get_result) = (send.clone(), &get_result);
            scope.spawn(move || {
                let mut request = get_result.request();
                request.set("goal_id.uuid", Value::Bytes(vec![1; 16])).unwrap();
                loop {
                    match get_result.call(&request, LONG) {
                        Err(CallError::Refused(why)) if why.contains("wait here") => {}
                        answer => return send.send(answer).unwrap(),
                    }
                }
            });
        }
        match answers.recv_timeout(LONG).unwrap() {
            Err(CallError::Refused(why)) => assert!(why.contains("for this goal"), "{why}"),
            other => panic!("{other:?}"),
        }
        finish.send(()).unwrap();
        for _ in 0..100 {
            let response = answers.recv_timeout(LONG).unwrap().unwrap();
            let end = (response.i64("status"), response.u64("result.files"));
            assert_eq!(end, (Some(Status::Succeeded as i64), Some(12)));
        }
    });
    assert_eq!(result(9), (Status::Unknown as i64, 0));

    assert!(goal(3, "c.mcap"));
    let mut request = cancel_goal.request();
    request.set("goal_info.goal_id.uuid", Value::Bytes(vec![3; 16])).unwrap();
    let canceled = cancel_goal.call(&request, LONG).unwrap();
    assert_eq!(
        (canceled.i64("return_code"), canceled.list("goals_canceling").map(<[_]>::len)),
        (Some(0), Some(1))
    );
    assert_eq!(result(3), (Status::Canceled as i64, 0));

    // The last state that is told has both goals at their ends.
    let ends = |m: &Message| -> Vec<i64> {
        let list = m.list("status_list").unwrap();
        list.iter().map(|s| s.as_message().unwrap().i64("status").unwrap()).collect()
    };
    loop {
        let state = states.recv_timeout(LONG).expect("both ends are told").message;
        if ends(&state).last() == Some(&(Status::Canceled as i64)) {
            break;
        }
    }
    assert!(goal(4, "d.mcap"));
    drop(offered);
    client.misses(&part("send_goal"), EntityKind::Server);
}

#[test]
fn who_leaves_waits_for_no_answer() {
    let (a, b) = sessions();
    let (server, client) = (node(&a, "server"), node(&b, "client"));
    let ty = server.node.types().read().unwrap().service("action_msgs/srv/CancelGoal").unwrap();
    let (keep, kept) = mpsc::channel();
    let _silent = server.node.serve("/silent", &ty, move |request| _ = keep.send(request)).unwrap();
    let asked = client.node.client("/silent", &ty).unwrap();
    client.sees("/silent", EntityKind::Server);
    std::thread::scope(|scope| {
        let called = scope.spawn(|| asked.call(&asked.request(), LONG));
        let _unanswered = kept.recv_timeout(LONG).unwrap();
        client.node.hang_up();
        assert_eq!(called.join().unwrap(), Err(CallError::HungUp));
    });
    assert_eq!(asked.call(&asked.request(), LONG), Err(CallError::HungUp));
}

#[test]
fn dropping_a_node_takes_everything_of_it_out_of_the_graph() {
    let (a, b) = sessions();
    let (gone, seer) = (node(&a, "gone"), node(&b, "seer"));
    let text = gone.ty("std_msgs/msg/String");
    let publisher = gone.node.publisher("out", &text, Qos::LATCHED).unwrap();
    let (_subscription, _receive) = gone.listen("in", Qos::DEFAULT);
    let ty = gone.node.types().read().unwrap().service("action_msgs/srv/CancelGoal").unwrap();
    let client = gone.node.client("ask", &ty).unwrap();
    let server = gone.node.serve("serve", &ty, |_| ()).unwrap();
    seer.sees("/out", EntityKind::Publisher);
    seer.sees("/in", EntityKind::Subscription);
    seer.sees("/ask", EntityKind::Client);
    seer.sees("/serve", EntityKind::Server);
    assert!(seer.node.graph().nodes().contains("/gone"));
    let Ours { node, .. } = gone;
    drop(node);
    let empty = |graph: &Graph| graph.entities().iter().all(|e| e.node == "seer").then_some(());
    seer.node.graph().wait(LONG, empty).expect("nothing of it stays");
    let mut message = Message::new(&text);
    message.set("data", "late").unwrap();
    assert_eq!(publisher.publish(&message), Err(NodeError::Closed));
    drop((client, server));
}

#[test]
fn humble_has_no_hashes_and_describes_nothing() {
    let (a, b) = sessions();
    let humble =
        |name: &str| NodeConfig { distribution: Distribution::Humble, ..NodeConfig::named(name) };
    let talker = node_of(&a, humble("talker"), Registry::standard());
    let listener = node_of(&b, humble("listener"), Registry::standard());
    let (_subscription, receive) = listener.listen("chatter", Qos::DEFAULT);
    let publisher =
        talker.node.publisher("chatter", &talker.ty("std_msgs/msg/String"), Qos::DEFAULT).unwrap();
    talker.sees("/chatter", EntityKind::Subscription);
    let theirs = listener.sees("/chatter", EntityKind::Publisher);
    assert_eq!(theirs.endpoint.as_ref().unwrap().hash, "TypeHashNotSupported");
    publisher.publish(&talker.text("hello")).unwrap();
    assert_eq!(texts(&receive, 1), ["hello"]);
    assert!(listener.node.graph().services().is_empty());
    assert_eq!(
        listener.node.type_of_topic("chatter", LONG).unwrap().name,
        talker.ty("std_msgs/msg/String").name
    );
}

#[test]
fn domains_do_not_see_each_other_and_names_are_remapped() {
    let (a, b) = sessions();
    let config = NodeConfig {
        domain: 7,
        remap: vec!["chatter:=/loud".parse().unwrap(), "__ns:=/r1".parse().unwrap()],
        ..NodeConfig::named("talker")
    };
    let talker = node_of(&a, config, Registry::standard());
    let (same, other) = (
        node_of(&b, NodeConfig { domain: 7, ..NodeConfig::named("same") }, Registry::standard()),
        node(&b, "other"),
    );
    let publisher =
        talker.node.publisher("chatter", &talker.ty("std_msgs/msg/String"), Qos::DEFAULT).unwrap();
    assert_eq!(publisher.topic(), "/loud");
    let seen = same.sees("/loud", EntityKind::Publisher);
    assert_eq!(seen.node_name(), "/r1/talker");
    assert!(other.node.graph().topics().is_empty());
    assert!(!other.node.graph().nodes().contains("/r1/talker"));
}
