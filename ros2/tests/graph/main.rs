//! Nodes in a ROS graph over two Zenoh sessions on loopback: what one has, the other finds and uses.
//!
//! Both ends are ours here; `.ci/ros2_client.py` does the same with another implementation.
//!
//! Invariants 21 and 24 of ARCHITECTURE.md.
#![cfg(feature = "node")]

mod actions;
mod nodes;
#[path = "../pair/mod.rs"]
mod pair;
mod refused;
mod services;
mod topics;
mod types;

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use omir_ros2::graph::{
    CallError, Entity, EntityKind, Event, Graph, Node, NodeConfig, NodeError, Qos, Received,
};
use omir_ros2::interface::{MessageType, Registry, TypeName};
use omir_ros2::message::{Message, Value};
use omir_ros2::stamp::Stamp;
use parking_lot::RwLock;
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
        self.node.types().read().message(name).unwrap()
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
