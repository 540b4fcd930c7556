//! The daemon's node as others meet it, with a memory of our own: what it hears, what it refuses and says so,
//! and that it always ends.
#![cfg(feature = "node")]

mod pair;

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use omir_core::code::Code;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value as Json};
use omir_ros2::graph::{EntityKind, Node, NodeConfig, Publisher, Qos};
use omir_ros2::interface::{Registry, TypeName};
use omir_ros2::memory::{Memory, Refusal, Stored};
use omir_ros2::message::{Message, Value};
use omir_ros2::participant::Participant;
use omir_ros2::rules::{Ros2Section, reference};
use omir_ros2::stamp::Stamp;
use parking_lot::RwLock;
use zenoh::{Session, Wait};

use pair::sessions;

/// Longer than anything takes; a test that waits so long has failed.
const LONG: Duration = Duration::from_secs(60);

/// A memory that keeps what it gets, or is full.
#[derive(Default)]
struct Shelf {
    stored: Mutex<Vec<Json>>,
    is_full: bool,
}

fn refusal(code: Code) -> Refusal {
    Refusal { code, message: String::new(), path: String::new() }
}

impl Memory for Shelf {
    fn remember(&self, resources: Vec<Json>, _: Option<&str>) -> Result<Json, Refusal> {
        if self.is_full {
            return Err(refusal(Code::StorageFull));
        }
        self.stored.lock().unwrap().extend(resources);
        Ok(Json::Null)
    }

    fn get(&self, name: &str) -> Result<Stored, Refusal> {
        let stored = self.stored.lock().unwrap();
        let last = stored.iter().rfind(|one| reference(one).as_deref() == Some(name));
        Ok(last.map_or(Stored::Nothing, |one| Stored::Whole(one.clone())))
    }

    fn ask(&self, _: Operation, parameters: &Map) -> Result<Json, Refusal> {
        Err(Refusal { message: format!("{parameters:?}"), ..refusal(Code::InvalidQuery) })
    }

    fn import(
        &self,
        _: &Path,
        _: bool,
        _: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Json, Refusal> {
        Err(refusal(Code::Internal))
    }

    fn show(&self, _: Stamp) {}
}

impl Shelf {
    fn contents(&self) -> Vec<String> {
        let stored = self.stored.lock().unwrap();
        let contents = stored.iter().filter_map(|one| one.get("content")?.as_str());
        contents.map(ToOwned::to_owned).collect()
    }
}

/// The daemon's node, another node, and the memory.
struct Scene {
    ours: Option<Participant>,
    theirs: Node,
    other: Session,
    shelf: Arc<Shelf>,
    _session: Session,
}

impl Scene {
    fn new(config: &str, shelf: Shelf) -> Self {
        Self::with(config, shelf, |_| ())
    }

    /// A graph with others that did something before the daemon came.
    fn with(config: &str, shelf: Shelf, before: impl FnOnce(&Node)) -> Self {
        let (session, other) = sessions();
        let section: Ros2Section = toml::from_str(config).unwrap();
        let ros2 = section.resolve().unwrap_or_else(|error| panic!("{error}"));
        let shelf = Arc::new(shelf);
        let theirs = node(&other, "other", Registry::standard());
        before(&theirs);
        let ours = Participant::open(&session, &ros2, shelf.clone(), Arc::new(now)).unwrap();
        Self { ours: Some(ours), theirs, other, shelf, _session: session }
    }

    fn publisher(&self, topic: &str, ty: &str) -> Publisher {
        publisher(&self.theirs, topic, ty)
    }

    /// Number of times that something was remembered.
    fn times(&self, text: &str) -> usize {
        self.shelf.contents().iter().filter(|content| *content == text).count()
    }

    /// Says `text` again and again until it is heard.
    fn say(&self, publisher: &Publisher, text: &str) {
        let mut message = Message::new(publisher.ty());
        message.set("data", text).unwrap();
        self.until("it is remembered", |scene| {
            publisher.publish(&message).unwrap();
            scene.shelf.contents().iter().any(|content| content == text)
        });
    }

    fn status(&self, pointer: &str) -> Option<Json> {
        self.ours.as_ref().unwrap().status().pointer(pointer).cloned()
    }

    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + LONG;
        while !holds(self) {
            assert!(Instant::now() < end, "{what}: {:?}", self.ours.as_ref().unwrap().status());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn count(&self, pointer: &str) -> u64 {
        self.status(pointer).and_then(|count| count.as_u64()).unwrap_or_default()
    }
}

fn now() -> Stamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Stamp::from_nanos(since.as_nanos() as i64)
}

fn node(session: &Session, name: &str, types: Registry) -> Node {
    let types = Arc::new(RwLock::new(types));
    Node::open(session, NodeConfig::named(name), types, Arc::new(now), Arc::new(|_| ())).unwrap()
}

fn publisher(node: &Node, topic: &str, ty: &str) -> Publisher {
    let ty = node.types().read().message(ty).unwrap();
    node.publisher(topic, &ty, Qos::DEFAULT).unwrap()
}

fn send(publisher: &Publisher, text: &str) {
    let mut message = Message::new(publisher.ty());
    message.set("data", text).unwrap();
    publisher.publish(&message).unwrap();
}

#[test]
fn what_is_refused_is_told_under_its_name_with_the_reason() {
    let scene =
        Scene::new("[[topic]]\ntopic = '/chat'\ntype = 'std_msgs/String'", Shelf::default());
    let chat = scene.publisher("/chat", "std_msgs/msg/String");
    scene.say(&chat, "hello");
    let hash = chat.ty().hash.to_rihs_string();
    let key = format!("0/chat/std_msgs::msg::dds_::String_/{hash}");
    scene.other.put(key, vec![0, 1, 0, 0, 9, 0, 0, 0]).wait().unwrap();
    scene.until("it is counted", |scene| scene.count("/topics/~1chat/malformed") == 1);
    let why = scene.status("/topics/~1chat/lastRefused/why").unwrap();
    assert!(why.as_str().unwrap().contains("a text of 9 bytes"), "{why}");
    // Somebody else uses the name with another type.
    let other = scene.publisher("/chat", "std_msgs/msg/Int32");
    scene.until("that is counted", |scene| scene.count("/topics/~1chat/otherTypes") == 1);
    let why = scene.status("/topics/~1chat/lastRefused/why").unwrap();
    assert!(why.as_str().unwrap().contains("std_msgs::msg::dds_::Int32_"), "{why}");
    let told = |scene: &Scene| scene.status("/notListenedTo/~1chat");
    scene.until("it is said", |scene| told(scene).is_some());
    let why = told(&scene).unwrap();
    assert!(why.as_str().unwrap().contains("the rule is for std_msgs/msg/String"), "{why}");
    // It goes again, and with it that there is somebody who is not listened to.
    drop(other);
    scene.until("it is no longer said", |scene| told(scene).is_none());
}

#[test]
fn a_topic_that_is_remapped_is_heard_under_its_new_name_alone() {
    let config =
        "remap = ['/chat:=/robot1/chat']\n[[topic]]\ntopic = '/chat'\nkeep.at_most_every_s = 0";
    let scene = Scene::new(config, Shelf::default());
    let renamed = scene.publisher("/robot1/chat", "std_msgs/msg/String");
    scene.say(&renamed, "for us");
    let own = scene.publisher("/chat", "std_msgs/msg/String");
    let mut message = Message::new(own.ty());
    message.set("data", "not for us").unwrap();
    own.publish(&message).unwrap();
    scene.say(&renamed, "and this");
    own.publish(&message).unwrap();
    scene.say(&renamed, "and that");
    assert!(!scene.shelf.contents().contains(&"not for us".to_owned()));
}

#[test]
fn a_type_that_changed_under_its_name_is_asked_for_and_heard() {
    let scene = Scene::new("[[topic]]\ntopic = '/note'\ntext = '{data}'", Shelf::default());
    let name: TypeName = "lab_msgs/msg/Note".parse().unwrap();
    for (text, said) in [("string data", "first"), ("string data\nint32 more", "second")] {
        // Each with a node of its own: of two that have one name it is chance which one is asked.
        let mut types = Registry::standard();
        types.add_text(&name, text).unwrap();
        let theirs = node(&scene.other, said, types);
        scene.say(&publisher(&theirs, "/note", "lab_msgs/msg/Note"), said);
    }
}

#[test]
fn a_node_that_describes_nothing_holds_up_nobody() {
    let scene = Scene::new("[[topic]]\ntopic = '*'\ntext = '{data}'", Shelf::default());
    // Tokens of nodes that are not there to answer; by name before the one that is.
    let tokens: Vec<_> = (0..40)
        .map(|n| {
            let token = format!(
                "@ros2_lv/0/a/0/{n}/MP/%/%/silent{n}/%a{n}/lab_msgs::msg::dds_::Odd_/RIHS01_{n:064x}/::,1:,:,:,,"
            );
            scene.other.liveliness().declare_token(token).wait().unwrap()
        })
        .collect();
    let chat = scene.publisher("/zz", "std_msgs/msg/String");
    scene.say(&chat, "hello");
    drop(tokens);
}

#[test]
fn a_question_that_nobody_answers_holds_up_nobody() {
    let scene = Scene::new("[[topic]]\ntopic = '*'\ntext = '{data}'", Shelf::default());
    // Nodes that take every question and keep it: two seconds each.
    let asked = Arc::new(Mutex::new(Vec::new()));
    let _silent = scene
        .other
        .declare_queryable("0/silent$*/get_type_description/**")
        .complete(true)
        .callback({
            let asked = asked.clone();
            move |query| asked.lock().unwrap().push(query)
        })
        .wait()
        .unwrap();
    let _tokens: Vec<_> = (0..60)
        .map(|n| {
            let token = format!(
                "@ros2_lv/0/a/0/{n}/MP/%/%/silent{n}/%a{n}/lab_msgs::msg::dds_::Odd_/RIHS01_{n:064x}/::,1:,:,:,,"
            );
            scene.other.liveliness().declare_token(token).wait().unwrap()
        })
        .collect();
    scene.until("somebody is asked", |_| !asked.lock().unwrap().is_empty());
    scene.say(&scene.publisher("/zz", "std_msgs/msg/String"), "hello");
    assert!(asked.lock().unwrap().len() < 60);
}

#[test]
fn who_can_tell_the_type_is_asked_though_another_publisher_cannot() {
    let scene = Scene::new("[[topic]]\ntopic = '/note'\ntext = '{data}'", Shelf::default());
    let mut types = Registry::standard();
    types.add_text(&"lab_msgs/msg/Note".parse().unwrap(), "string data").unwrap();
    let hash = types.message("lab_msgs/msg/Note").unwrap().hash.to_rihs_string();
    let token = format!(
        "@ros2_lv/0/a/0/1/MP/%/%/silent/%note/lab_msgs::msg::dds_::Note_/{hash}/::,1:,:,:,,"
    );
    let _token = scene.other.liveliness().declare_token(token).wait().unwrap();
    let told = |scene: &Scene| scene.status("/notListenedTo/~1note").is_some();
    scene.until("one cannot tell", told);
    let theirs = node(&scene.other, "teller", types);
    scene.say(&publisher(&theirs, "/note", "lab_msgs/msg/Note"), "hello");
}

#[test]
fn what_a_latched_topic_kept_is_heard_once_though_it_was_listened_to_before() {
    let config = "[[topic]]\ntopic = '/chat'\ntype = 'std_msgs/String'\nkeep.at_most_every_s = 0";
    let mut kept = None;
    let latched = |node: &Node| {
        let ty = node.types().read().message("std_msgs/msg/String").unwrap();
        let publisher = node.publisher("/chat", &ty, Qos::LATCHED.keep_last(10)).unwrap();
        send(&publisher, "kept before");
        publisher
    };
    // A rule that names the type listens before it is known how anybody publishes.
    let scene = Scene::with(config, Shelf::default(), |node| kept = Some(latched(node)));
    let kept = kept.unwrap();
    scene.until("it is played back", |scene| scene.times("kept before") == 1);
    send(&kept, "live");
    let plain = scene.publisher("/chat", "std_msgs/msg/String");
    scene.say(&plain, "plain");
    scene.until("it is heard", |scene| scene.times("live") == 1);
    // A second publisher that keeps its messages comes while both are heard already.
    let other = node(&scene.other, "second", Registry::standard());
    let second = latched(&other);
    scene.until("that one is played back too", |scene| scene.times("kept before") == 2);
    send(&second, "the end");
    scene.until("it is heard", |scene| scene.times("the end") == 1);
    assert_eq!((scene.times("kept before"), scene.times("live")), (2, 1));
}

#[test]
fn what_was_heard_is_not_heard_again_when_its_topic_turns_out_to_be_latched() {
    let config = "[[topic]]\ntopic = '/chat'\nkeep.at_most_every_s = 0";
    let scene = Scene::new(config, Shelf::default());
    let plain = scene.publisher("/chat", "std_msgs/msg/String");
    scene.say(&plain, "plain");
    // It keeps its messages; so long as the daemon has not seen its token, it hears them all the same.
    let ty = plain.ty().clone();
    for n in 0..5 {
        let other = node(&scene.other, &format!("keeper{n}"), Registry::standard());
        let keeper = other.publisher("/chat", &ty, Qos::LATCHED.keep_last(10)).unwrap();
        let text = format!("of keeper {n}");
        send(&keeper, &text);
        scene.until("it is heard", |scene| scene.times(&text) >= 1);
        send(&plain, &format!("after keeper {n}"));
        scene.until("nothing is lost", |s| s.times(&format!("after keeper {n}")) == 1);
        assert_eq!(scene.times(&text), 1);
    }
}

#[test]
fn no_message_is_lost_while_its_topic_turns_out_to_be_latched() {
    let config = "[[topic]]\ntopic = '/chat'\nkeep.at_most_every_s = 0";
    for round in 0..3 {
        let scene = Scene::new(config, Shelf::default());
        let plain = scene.publisher("/chat", "std_msgs/msg/String");
        scene.say(&plain, "plain");
        let mut sent = 0;
        let mut speak = || {
            sent += 1;
            send(&plain, &format!("number {sent}"));
            std::thread::sleep(Duration::from_millis(1));
        };
        (0..50).for_each(|_| speak());
        let other = node(&scene.other, "keeper", Registry::standard());
        let keeper = other.publisher("/chat", plain.ty(), Qos::LATCHED.keep_last(10)).unwrap();
        send(&keeper, "kept");
        // The daemon looks at the graph twice a second: it changes its subscription meanwhile.
        let end = Instant::now() + Duration::from_millis(1500);
        while Instant::now() < end {
            speak();
        }
        scene.until("the last is heard", |scene| scene.times(&format!("number {sent}")) >= 1);
        let wrong: Vec<_> = (1..=sent)
            .map(|n| (n, scene.times(&format!("number {n}"))))
            .filter(|(_, times)| *times != 1)
            .collect();
        assert!(wrong.is_empty(), "round {round}: {wrong:?}: {:?}", scene.status(""));
        assert_eq!(scene.times("kept"), 1);
    }
}

#[test]
fn a_topic_that_has_another_type_by_now_is_not_listened_to_as_before() {
    let scene = Scene::new("[[topic]]\ntopic = '/note'\ntext = '{data}'", Shelf::default());
    let listened = |scene: &Scene| -> Vec<String> {
        let subscriptions = scene.theirs.graph().at("/note", EntityKind::Subscription);
        subscriptions.iter().map(|s| s.endpoint.as_ref().unwrap().dds_type.clone()).collect()
    };
    let text = scene.publisher("/note", "std_msgs/msg/String");
    scene.say(&text, "a text");
    drop(text);
    // A publisher that comes back is heard from the first message on.
    scene.until("it is gone", |s| s.theirs.graph().at("/note", EntityKind::Publisher).is_empty());
    assert_eq!(listened(&scene), ["std_msgs::msg::dds_::String_"]);
    let number = scene.publisher("/note", "std_msgs/msg/Int32");
    scene.until("only the new one is", |scene| listened(scene) == ["std_msgs::msg::dds_::Int32_"]);
    drop(number);
}

#[test]
fn hundreds_of_topics_that_nobody_can_read_leave_room_for_one_that_can_be() {
    let scene = Scene::new("[[topic]]\ntopic = '*'\ntext = '{data}'", Shelf::default());
    let token = |n: usize| {
        format!(
            "@ros2_lv/0/a/0/{n}/MP/%/%/silent/%a{n}/lab_msgs::msg::dds_::Odd_/RIHS01_{n:064x}/::,1:,:,:,,"
        )
    };
    let declare = |n| scene.other.liveliness().declare_token(token(n)).wait().unwrap();
    let tokens: Vec<_> = (0..300).map(declare).collect();
    let refused = |scene: &Scene| {
        let all = scene.status("/notListenedTo").unwrap();
        all.as_object().unwrap().iter().count()
    };
    scene.until("there are too many", |scene| refused(scene) >= 200);
    let chat = scene.publisher("/zz", "std_msgs/msg/String");
    scene.say(&chat, "hello");
    drop(tokens);
    scene.until("they are forgotten", |scene| refused(scene) == 0);
}

#[test]
fn it_ends_though_the_memory_takes_nothing_and_all_queues_are_full() {
    let config = "[[topic]]\ntopic = '/chat'\nkeep.at_most_every_s = 0\nqueue_depth = 10000";
    let mut scene = Scene::new(config, Shelf { is_full: true, ..Shelf::default() });
    let chat = scene.publisher("/chat", "std_msgs/msg/String");
    let mut n = 0;
    // More than the queue of memories and that of the topic take.
    while scene.count("/topics/~1chat/kept") < 1500 {
        let before = scene.count("/topics/~1chat/kept");
        for _ in 0..500 {
            n += 1;
            let mut message = Message::new(chat.ty());
            message.set("data", format!("message {n}")).unwrap();
            chat.publish(&message).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
        if before > 1024 && scene.count("/topics/~1chat/kept") == before {
            break;
        }
    }
    let ours = scene.ours.take();
    let (tell, ended) = mpsc::channel();
    std::thread::spawn(move || {
        drop(ours);
        tell.send(()).unwrap();
    });
    ended.recv_timeout(LONG).expect("it ends");
}

#[test]
fn a_simulation_that_begins_again_takes_its_transforms_with_it() {
    let scene = Scene::new("use_sim_time = true", Shelf::default());
    let clock = scene.publisher("/clock", "rosgraph_msgs/msg/Clock");
    let tf = scene.publisher("/tf", "tf2_msgs/msg/TFMessage");
    let show = |sec: i64| {
        let mut message = Message::new(clock.ty());
        message.set("clock.sec", sec).unwrap();
        clock.publish(&message).unwrap();
    };
    let is_known = |scene: &Scene| {
        let frames = scene.ours.as_ref().unwrap().frames();
        frames.fixed("base_link", Stamp::from_ros(100, 0)).unwrap().is_some()
    };
    let mut one = {
        let types = scene.theirs.types().read();
        Message::new(&types.message("geometry_msgs/msg/TransformStamped").unwrap())
    };
    one.set("header.frame_id", "map").unwrap();
    one.set("header.stamp.sec", 100).unwrap();
    one.set("child_frame_id", "base_link").unwrap();
    let mut moving = Message::new(tf.ty());
    moving.set("transforms", vec![one]).unwrap();
    scene.until("the robot is somewhere", |scene| {
        show(100);
        tf.publish(&moving).unwrap();
        is_known(scene)
    });
    // By less than what the daemon's own clock waits for. /clock may not have been heard before.
    scene.until("that was in another run", |scene| {
        show(100);
        show(98);
        !is_known(scene)
    });
}

#[test]
fn parameters_are_answered_and_a_rebase_is_of_the_fixed_frame() {
    let scene = Scene::new("fixed_frame = 'odom'\nkeyframes = ['kf_*']", Shelf::default());
    let ask = |service: &str, ty: &str, fill: &dyn Fn(&mut Message)| {
        let ty = scene.theirs.types().read().service(ty).unwrap();
        let client = scene.theirs.client(service, &ty).unwrap();
        let mut request = client.request();
        fill(&mut request);
        let there = |graph: &omir_ros2::graph::Graph| client.is_served(graph).then_some(());
        scene.theirs.graph().wait(LONG, there).expect("it is served");
        client.call(&request, LONG).unwrap()
    };
    let listed = ask("/omird/list_parameters", "rcl_interfaces/srv/ListParameters", &|_| ());
    let names = listed.list("result.names").unwrap();
    assert_eq!(names, [Value::Text("use_sim_time".into())]);
    let tf = scene.publisher("/tf_static", "tf2_msgs/msg/TFMessage");
    let transform = {
        let types = scene.theirs.types().read();
        let mut one = Message::new(&types.message("geometry_msgs/msg/TransformStamped").unwrap());
        one.set("header.frame_id", "odom").unwrap();
        one.set("child_frame_id", "kf_1").unwrap();
        one.set("transform.rotation.w", 1.0).unwrap();
        one
    };
    let mut message = Message::new(tf.ty());
    message.set("transforms", Value::List(vec![Value::Message(transform)])).unwrap();
    let rebase = |frame: &str| {
        let frame = frame.to_owned();
        let response = ask("/omird/rebase", "omir_msgs/srv/Rebase", &|request| {
            request.set("frame", frame.clone()).unwrap();
        });
        response.text("status.message").unwrap().to_owned()
    };
    scene.until("the keyframe is known", |_| {
        tf.publish(&message).unwrap();
        rebase("").contains("kf_1")
    });
    assert!(rebase("").contains("odom"), "{}", rebase(""));
    assert!(rebase("map").contains("name them with their poses"), "{}", rebase("map"));
}

/// Detections of a box at x on the map, now.
fn a_box(publisher: &Publisher, theirs: &Node, x: f64) -> Message {
    let types = theirs.types().read();
    let new = |ty: &str| Message::new(&types.message(ty).unwrap());
    let mut result = new("vision_msgs/msg/ObjectHypothesisWithPose");
    result.set("hypothesis.class_id", "box").unwrap();
    result.set("hypothesis.score", 0.9).unwrap();
    let mut detection = new("vision_msgs/msg/Detection3D");
    detection.set("results", vec![result]).unwrap();
    detection.set("bbox.center.position.x", x).unwrap();
    let mut seen = Message::new(publisher.ty());
    let (sec, nanosec) = now().to_ros().unwrap();
    seen.set("header.stamp.sec", sec).unwrap();
    seen.set("header.stamp.nanosec", nanosec).unwrap();
    seen.set("header.frame_id", "map").unwrap();
    seen.set("detections", vec![detection]).unwrap();
    seen
}

#[test]
fn a_box_that_moved_and_left_is_stored_where_it_was_seen_last() {
    let config = "[[topic]]\ntopic = '/seen'\ntype = 'vision_msgs/msg/Detection3DArray'\n\
                  queue_depth = 100\nmerge = { within_m = 1.0, update_every_s = 2 }";
    let scene = Scene::new(config, Shelf::default());
    let seen = scene.publisher("/seen", "vision_msgs/msg/Detection3DArray");
    scene.until("it is seen", |scene| {
        seen.publish(&a_box(&seen, &scene.theirs, 0.0)).unwrap();
        scene.times("saw box") == 1
    });
    for step in 1..=10 {
        let one = a_box(&seen, &scene.theirs, 0.18 * f64::from(step));
        seen.publish(&one).unwrap();
    }
    // Nothing comes any more, and its memory is written again all the same.
    scene.until("it is told of", |scene| scene.times("saw box") == 2);
    let stored = scene.shelf.stored.lock().unwrap();
    let last = stored.iter().rfind(|one| one.get("content").is_some()).unwrap();
    let x = last.pointer("/extension/0/valueJson/position/0").and_then(Json::as_f64).unwrap();
    assert!((x - 1.8).abs() < 1e-9, "{last}");
    assert_eq!(last.pointer("/extension/0/valueJson/stamp"), last.get("eventTime"), "{last}");
}

#[test]
fn nothing_is_placed_while_the_robot_does_not_know_where_it_is() {
    let config = "[[topic]]\ntopic = '/goal'\ntype = 'geometry_msgs/msg/PoseStamped'\ntext = 'at {header.frame_id}'\n\
                  keep.at_most_every_s = 0\nlocalised = { topic = '/amcl_pose', within_m = 0.5, otherwise = 'drop' }";
    let scene = Scene::new(config, Shelf::default());
    let goal = scene.publisher("/goal", "geometry_msgs/msg/PoseStamped");
    let amcl = scene.publisher("/amcl_pose", "geometry_msgs/msg/PoseWithCovarianceStamped");
    let stored = |scene: &Scene| scene.times("at map") as u64;
    let dropped = |scene: &Scene| scene.count("/topics/~1goal/dropped/not-localised");
    let see = || {
        let mut pose = Message::new(goal.ty());
        pose.set("header.frame_id", "map").unwrap();
        goal.publish(&pose).unwrap();
    };
    let localise = |metres: f64| {
        let mut pose = Message::new(amcl.ty());
        let mut covariance = vec![0.0; 36];
        covariance[7] = metres * metres;
        pose.set("pose.covariance", covariance).unwrap();
        let before = scene.count("/topics/~1amcl_pose/received");
        scene.until("the localiser is heard", |scene| {
            amcl.publish(&pose).unwrap();
            scene.count("/topics/~1amcl_pose/received") > before
        });
    };
    let seen = |what: &str, holds: &dyn Fn(&Scene) -> bool| {
        scene.until(what, |scene| {
            see();
            holds(scene)
        });
    };
    seen("nobody has said where the robot is", &|scene| dropped(scene) > 0);
    assert_eq!(stored(&scene), 0);
    localise(0.1);
    seen("it knows", &|scene| stored(scene) > 0);
    localise(3.0);
    // Messages that were sent before the doubt are through when this one is dropped.
    let before = dropped(&scene);
    seen("it is lost", &|scene| dropped(scene) > before);
    let while_lost = stored(&scene);
    seen("it is still", &|scene| dropped(scene) > before + 3);
    assert_eq!(stored(&scene), while_lost);
    localise(0.1);
    seen("it knows again", &|scene| stored(scene) > while_lost);
}
