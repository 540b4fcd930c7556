//! Which topics are subscribed to, and with which type: what the rules name, and what the graph offers.
//!
//! A topic that a rule names with a type that is known is subscribed to at once, so that `ros2 topic info`
//! shows who listens. Everything else waits for a publisher: its token tells type, hash and quality of
//! service, and a type that is not known is asked of its node.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Context;
use crate::graph::{Durability, Entity, EntityKind, Node, Qos, Received, Subscription};
use crate::interface::{MessageType, TypeName};

/// How often the graph is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long a node has to describe a type.
const DESCRIBE: Duration = Duration::from_secs(2);
/// The pause before a type that could not be had is asked for again.
const AGAIN: Duration = Duration::from_secs(30);
/// Most topics that are subscribed to.
const MOST: usize = 1000;

/// A topic with one type: there may be two under one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Feed {
    topic: String,
    dds_type: String,
    hash: String,
}

/// What there is of a feed.
enum State {
    /// It is listened to.
    Heard { is_latched: bool, _subscription: Subscription },
    /// Its type could not be had.
    Refused { at: Instant },
}

/// All that is subscribed to by the rules. Dropping it ends that.
pub(super) struct Feeds {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Feeds {
    /// Starts to look at the graph.
    pub(super) fn start(node: Arc<Node>, context: Arc<Context>) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let looker = Looker { node, context, feeds: HashMap::new() };
        let thread = {
            let stop = stop.clone();
            std::thread::Builder::new()
                .name("omird-ros2-graph".into())
                .spawn(move || looker.run(&stop))?
        };
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that follows the ROS graph panicked");
        }
    }
}

struct Looker {
    node: Arc<Node>,
    context: Arc<Context>,
    feeds: HashMap<Feed, State>,
}

impl Looker {
    fn run(mut self, (stop, bell): &(Mutex<bool>, Condvar)) {
        self.hear_what_is_named();
        loop {
            self.look();
            self.context.go_on(false);
            let guard = stop.lock().unwrap_or_else(PoisonError::into_inner);
            let pause = bell.wait_timeout_while(guard, LOOK, |stop| !*stop);
            if *pause.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
        }
    }

    /// Topics that rules name in full, with a type that is known.
    fn hear_what_is_named(&mut self) {
        let named: Vec<(String, TypeName)> = {
            let intake = self.context.intake();
            let rules = intake.rules.topics();
            rules
                .filter(|rule| rule.topic.is_exact())
                .filter_map(|rule| Some((rule.topic.as_str().to_owned(), rule.type_name.clone()?)))
                .collect()
        };
        for (topic, name) in named {
            let types = self.node.types().read().unwrap_or_else(PoisonError::into_inner);
            let Ok(ty) = types.message(&name.to_string()) else { continue };
            drop(types);
            let feed = Feed { topic, dds_type: name.dds(), hash: self.hash(&ty) };
            self.hear(feed, &ty, Qos::DEFAULT);
        }
    }

    /// What others publish and a rule wants.
    fn look(&mut self) {
        for (topic, entities) in self.node.graph().topics() {
            for entity in entities.iter().filter(|entity| entity.kind == EntityKind::Publisher) {
                self.consider(&topic, entity);
            }
        }
    }

    fn consider(&mut self, topic: &str, publisher: &Entity) {
        let Some(endpoint) = &publisher.endpoint else { return };
        let Ok(name) = endpoint.dds_type.parse::<TypeName>() else { return };
        let feed = Feed {
            topic: topic.to_owned(),
            dds_type: endpoint.dds_type.clone(),
            hash: endpoint.hash.clone(),
        };
        let is_latched = endpoint.qos.durability == Durability::TransientLocal;
        match self.feeds.get(&feed) {
            // One who keeps its last messages came after others that do not.
            Some(State::Heard { is_latched: false, .. }) if is_latched => {}
            Some(State::Heard { .. }) => return,
            Some(State::Refused { at }) if at.elapsed() < AGAIN => return,
            Some(State::Refused { .. }) => {}
            None if self.feeds.len() >= MOST => return,
            None => {}
        }
        // What we publish ourselves is no news to us.
        if self.node.names().full() == publisher.node_name()
            || !self.context.intake().rules.wants(topic, &name)
        {
            return;
        }
        match self.type_of(&feed, &name, publisher) {
            Ok(ty) => self.hear(feed, &ty, endpoint.qos),
            Err(why) => {
                tracing::warn!(
                    topic,
                    node = publisher.node_name(),
                    "not listened to: {} with the hash {}: {why}",
                    endpoint.dds_type,
                    endpoint.hash
                );
                self.context.note_refused(topic, &why);
                self.feeds.insert(feed, State::Refused { at: Instant::now() });
            }
        }
    }

    fn type_of(
        &self,
        feed: &Feed,
        name: &TypeName,
        publisher: &Entity,
    ) -> Result<Arc<MessageType>, String> {
        let known = {
            let types = self.node.types().read().unwrap_or_else(PoisonError::into_inner);
            types.message(&name.to_string())
        };
        match known {
            Ok(ty) if self.hash(&ty) == feed.hash => Ok(ty),
            _ => {
                self.node.type_of_publisher(publisher, DESCRIBE).map_err(|error| error.to_string())
            }
        }
    }

    fn hear(&mut self, feed: Feed, ty: &Arc<MessageType>, offered: Qos) {
        let depth = {
            let intake = self.context.intake();
            intake.rules.queue_depth(&feed.topic, &ty.name)
        };
        let depth = depth.unwrap_or(self.context.queue_depth) as u64;
        let is_latched = offered.is_latched();
        let qos = Qos {
            depth,
            ..Qos {
                reliability: offered.reliability,
                durability: offered.durability,
                ..Qos::DEFAULT
            }
        };
        // The one before goes first: it would hear everything a second time.
        self.feeds.remove(&feed);
        let (context, node) = (self.context.clone(), self.node.graph().clone());
        let topic = feed.topic.clone();
        let each = move |received: Received| {
            let who = node.who(received.publisher).map(|entity| entity.node_name());
            context.observe(&topic, who.as_deref(), &received);
        };
        match self.node.subscribe(&feed.topic, ty, qos, each) {
            Ok(subscription) => {
                tracing::info!(topic = feed.topic, ty = %ty.name, "listening");
                let heard = State::Heard { is_latched, _subscription: subscription };
                self.feeds.insert(feed, heard);
            }
            Err(error) => {
                self.context.note_refused(&feed.topic, &error.to_string());
                tracing::warn!(%error, topic = feed.topic, "not listened to");
                self.feeds.insert(feed, State::Refused { at: Instant::now() });
            }
        }
    }

    fn hash(&self, ty: &MessageType) -> String {
        self.node.distribution().hash(&ty.hash.to_rihs_string()).to_owned()
    }
}
