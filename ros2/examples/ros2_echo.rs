//! A ROS 2 node for other implementations to talk to: it repeats, answers and counts.
//!
//! ```text
//! ros2_echo tcp/127.0.0.1:7447 [DOMAIN]
//! ```
//!
//! It listens there, prints `ready`, and runs until its standard input ends. Events are printed as
//! they come.
//!
//! - what is published on `/ping` (`std_msgs/String`) is published on the latched topic `/pong`
//! - the service `/echo/set` (`std_srvs/SetBool`) answers with what it was given
//! - the action `/echo/count` (`lab_msgs/Count`, defined below) counts up and ends

use std::error::Error;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use omir_ros2::graph::{
    ActionConfig, Ending, Event, Goal, GoalHandler, Node, NodeConfig, Qos, Received, Request,
};
use omir_ros2::interface::{Registry, TypeName};
use omir_ros2::message::{Message, PathError};
use omir_ros2::stamp::Stamp;
use parking_lot::RwLock;
use zenoh::Wait;

const COUNT: &str = "uint32 until\n---\nuint32 counted\n---\nuint32 at";

struct Count;

impl GoalHandler for Count {
    fn accepts(&self, goal: &Message) -> bool {
        goal.u64("until").is_some_and(|until| until > 0)
    }

    fn execute(&self, goal: &Goal) -> Ending {
        count(goal).unwrap_or_else(|error| {
            eprintln!("not counted: {error}");
            Ending::Aborted(goal.result())
        })
    }
}

fn count(goal: &Goal) -> Result<Ending, Box<dyn Error>> {
    let until = goal.message().u64("until").unwrap_or_default();
    let mut result = goal.result();
    for at in 1..=until {
        if goal.is_canceling() {
            return Ok(Ending::Canceled(result));
        }
        let mut feedback = goal.feedback()?;
        feedback.set("feedback.at", at)?;
        goal.send_feedback(&feedback)?;
        result.set("counted", at)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Ending::Succeeded(result))
}

fn set(request: &Request) -> Result<Message, PathError> {
    let mut response = request.response();
    let data = request.message().bool("data").unwrap_or_default();
    response.set("success", data)?;
    response.set("message", format!("set to {data}"))?;
    Ok(response)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().ok_or("usage: ros2_echo ENDPOINT [DOMAIN]")?;
    let domain = arguments.next().map_or(Ok(0), |domain| domain.parse())?;

    let mut zenoh = zenoh::Config::default();
    for (key, value) in [
        ("mode", r#""peer""#),
        ("scouting/multicast/enabled", "false"),
        ("listen/endpoints", &format!("[{endpoint:?}]")),
    ] {
        zenoh.insert_json5(key, value).map_err(|error| error.to_string())?;
    }
    let session = zenoh::open(zenoh).wait().map_err(|error| error.to_string())?;

    let mut types = Registry::standard();
    let count: TypeName = "lab_msgs/action/Count".parse()?;
    types.add_text(&count, COUNT)?;
    let (text, set_bool, count) = (
        types.message("std_msgs/msg/String")?,
        types.service("std_srvs/srv/SetBool")?,
        types.action("lab_msgs/action/Count")?,
    );
    let clock = Arc::new(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Stamp::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
    });
    let config = NodeConfig { domain, ..NodeConfig::named("echo") };
    let told = Arc::new(|event: &Event| println!("event: {event}"));
    let node = Node::open(&session, config, Arc::new(RwLock::new(types)), clock, told)?;

    let pong = node.publisher("pong", &text, Qos::LATCHED.keep_last(3))?;
    let latched = Qos::LATCHED.keep_last(3);
    let _ping = node.subscribe("ping", &text, latched, move |ping: Received| {
        if let Err(error) = pong.publish(&ping.message) {
            eprintln!("not repeated: {error}");
        }
    })?;
    let _set = node.serve("~/set", &set_bool, |request| match set(&request) {
        Ok(response) => drop(request.answer(&response)),
        Err(error) => eprintln!("not answered: {error}"),
    })?;
    let _count = node.action_server("~/count", &count, ActionConfig::default(), Count)?;

    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
