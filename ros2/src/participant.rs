//! The daemon as a ROS 2 node: what it hears becomes memory, and the memory answers.
//!
//! Everything that decides stands elsewhere and knows no network: rules, transforms, records. Here they
//! meet a [`Node`] and a [`Memory`].
//!
//! ```text
//! /tf, /tf_static ──► frames ─┐
//! topics ──► feeds ──► ingest (rules) ──► recorder ──► memory
//! services, action ◄──────────────────────────────────►  memory ──► ~/events
//! ```

mod events;
mod feeds;
mod importing;
mod ingest;
mod recorder;
mod retry_thread;
mod services;
mod status;
mod surveyor;
mod transforms;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::graph::{
    ActionServer, Distribution, Event, Node, NodeConfig, NodeError, Parameter, ParameterServices,
    Qos, Received, Rule, Subscription, UnknownDistribution,
};
use crate::interface::{InterfaceError, Registry};
use crate::memory::Memory;
use crate::records::Records;
use crate::rules::{ConfigError, KeptResource, Ros2, Rules};
use crate::stamp::Stamp;

use self::feeds::Feeds;
use self::ingest::{Ingest, Observed};
use self::recorder::{Inlet, Job, Recorder};
use self::retry_thread::{RetryThread, Waker};
use self::services::Services;

pub use self::events::{Announcer, Notice};
pub use self::surveyor::Surveyor;
pub use self::transforms::Frames;
pub use crate::graph::Clock;

/// Transforms of `/tf` that may wait; as tf2's listener has it.
const TF_DEPTH: u64 = 100;

/// A participant that cannot start.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The rules do not fit the types.
    Config(ConfigError),
    /// No distribution that is spoken.
    Distribution(UnknownDistribution),
    /// A folder of `ros2.interfaces` cannot be read.
    Folder(InterfaceError),
    /// A type of our own is not what it should be.
    Interface(InterfaceError),
    /// The graph cannot be joined.
    Node(NodeError),
    /// The machine gives no thread.
    Thread(std::io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Distribution(why) => why.fmt(f),
            Self::Folder(error) => write!(f, "ros2.interfaces: {error}"),
            Self::Interface(error) => error.fmt(f),
            Self::Node(error) => write!(f, "the ROS graph cannot be joined: {error}"),
            Self::Thread(error) => write!(f, "no thread: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<NodeError> for OpenError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl From<InterfaceError> for OpenError {
    fn from(error: InterfaceError) -> Self {
        Self::Interface(error)
    }
}

/// A running participant. Dropping it leaves the graph and stores what was kept.
///
/// The fields go in this order: first what brings messages, then what stores them.
pub struct Participant {
    feeds: Option<Feeds>,
    retry_thread: Option<RetryThread>,
    subscriptions: Vec<Subscription>,
    _services: Services,
    _parameters: ParameterServices,
    _importing: ActionServer,
    announcer: Announcer,
    context: Arc<Context>,
    node: Arc<Node>,
    recorder: Recorder,
}

/// State shared by the participant's threads.
struct Context {
    ingest: Mutex<Ingest>,
    frames: Arc<Frames>,
    inlet: Mutex<Option<Inlet>>,
    waker: Arc<Waker>,
    clock: Clock,
    queue_depth: usize,
    /// Topics of the graph that the rules know by another name, for they are remapped.
    renamed: BTreeMap<String, String>,
    /// Topics that are not listened to, and why.
    refused: Mutex<BTreeMap<String, String>>,
}

impl Participant {
    /// Joins the graph over `session` and begins to listen and to answer.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        session: &zenoh::Session,
        config: &Ros2,
        memory: Arc<dyn Memory>,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let mut registry = Registry::standard();
        for folder in &config.interfaces {
            registry.add_folder(folder).map_err(OpenError::Folder)?;
        }
        let rules = Rules::compile(config, &registry).map_err(OpenError::Config)?;
        let types = Arc::new(RwLock::new(registry));
        let node = NodeConfig {
            name: config.node_name.clone(),
            // The root, where ROS writes nothing.
            namespace: format!("/{}", config.namespace.trim_start_matches('/')),
            domain: config.domain_id,
            distribution: config
                .distribution
                .parse::<Distribution>()
                .map_err(OpenError::Distribution)?,
            remap: remapping(&config.remap)?,
            // As a message a resource may be there twice: in fields, and as the JSON that has the rest.
            most_request: memory.most_bytes().saturating_mul(2).saturating_add(64 << 10),
        };
        // The node logs and counts its events itself.
        let on_event = Arc::new(|_: &Event| {});
        let node = Arc::new(Node::open(session, node, types, clock.clone(), on_event)?);
        let recorder = Recorder::start(memory.clone()).map_err(OpenError::Thread)?;
        let renamed = renamed(&rules, &node)?;
        let context = Arc::new(Context {
            ingest: Mutex::new(Ingest::new(rules, config.transform_wait)),
            frames: Arc::new(Frames::new(
                &config.fixed_frame,
                config.tf_buffer,
                config.use_sim_time,
            )),
            inlet: Mutex::new(recorder.inlet()),
            waker: Arc::default(),
            clock: clock.clone(),
            queue_depth: config.queue_depth,
            renamed,
            refused: Mutex::default(),
        });
        let mut subscriptions = follow_transforms(&node, &context)?;
        if config.use_sim_time {
            subscriptions.push(follow_clock(&node, &context, memory.clone())?);
        }
        let records = {
            let types = node.types().read();
            Arc::new(Records::new(&types)?)
        };
        let announcer = Announcer::start(&node, records.clone(), clock)?;
        let services = Services::start(&node, &context, &memory, &records, &config.keyframes)?;
        let parameters = node.serve_parameters(parameters(config))?;
        let importing = importing::serve(&node, memory, records)?;
        let retry_thread = RetryThread::start(context.clone()).map_err(OpenError::Thread)?;
        let feeds = Feeds::start(node.clone(), context.clone()).map_err(OpenError::Thread)?;
        tracing::info!(node = node.names().full(), domain = config.domain_id, "in the ROS graph");
        Ok(Self {
            feeds: Some(feeds),
            retry_thread: Some(retry_thread),
            subscriptions,
            _services: services,
            _parameters: parameters,
            _importing: importing,
            announcer,
            context,
            node,
            recorder,
        })
    }

    /// Positions of frames, for recalls.
    pub fn frames(&self) -> Arc<Frames> {
        self.context.frames.clone()
    }

    /// A way to tell the rules that the map moved.
    pub fn surveyor(&self) -> Surveyor {
        Surveyor(Arc::downgrade(&self.context))
    }

    /// A way to announce what was committed: never waits.
    pub fn announcer(&self) -> Announcer {
        self.announcer.clone()
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // A thread that waits for room in the queue must not wait for a disk that takes nothing.
        self.recorder.stop();
        // No message comes after this.
        self.feeds = None;
        self.retry_thread = None;
        self.subscriptions.clear();
        self.context.go_on(true);
        self.context.inlet.lock().take();
    }
}

impl Context {
    fn ingest(&self) -> MutexGuard<'_, Ingest> {
        self.ingest.lock()
    }

    fn inlet(&self) -> Option<Inlet> {
        self.inlet.lock().clone()
    }

    /// Returns the name that rules use for a topic of the graph; `None` if that is no topic to this node: a name that
    /// ROS does not allow, or one for which remapping puts another.
    fn topic_of(&self, node: &Node, name: &str) -> Option<String> {
        if let Some(topic) = self.renamed.get(name) {
            return Some(topic.clone());
        }
        node.names().topic(name).ok().filter(|resolved| resolved == name)
    }

    /// A message came.
    fn observe(&self, topic: &str, node: Option<String>, received: Received) {
        let Received { message, received, is_kept, size, .. } = received;
        let topic_name = topic.to_owned();
        let observed =
            Observed { topic: topic_name, node, received, is_live: !is_kept, message, size };
        let (kept, misfits) = {
            let frames = self.frames.read();
            let mut ingest = self.ingest();
            (ingest.observe(observed, &frames), ingest.new_misfits())
        };
        for misfit in misfits {
            tracing::warn!(topic, "a message does not fit a rule, and is dropped: {misfit}");
        }
        self.keep(kept);
    }

    /// Time went by: what waited for a transform is asked again, and what was seen again is told.
    fn go_on(&self, all: bool) {
        let now = (self.clock)();
        let (kept, untold) = {
            let frames = self.frames.read();
            let mut ingest = self.ingest();
            (ingest.go_on(now, &frames, all), ingest.untold(now, all))
        };
        self.keep(kept);
        if let Some(inlet) = self.inlet() {
            untold.into_iter().for_each(|untold| inlet.put(Job::Tell(untold)));
        }
    }

    fn keep(&self, kept: Vec<KeptResource>) {
        // Without the lock on the ingest: a thread that waits for the disk here does not hold up others.
        if let Some(inlet) = self.inlet().filter(|_| !kept.is_empty()) {
            kept.into_iter().for_each(|kept| inlet.put(Job::Keep(Box::new(kept))));
        }
    }

    fn tell_refused(&self, refused: BTreeMap<String, String>) {
        *self.refused.lock() = refused;
    }
}

/// The topics that rules name in full and that remapping gives another name, by that.
fn renamed(rules: &Rules, node: &Node) -> Result<BTreeMap<String, String>, NodeError> {
    let mut renamed = BTreeMap::new();
    let exact = rules.topics().filter(|rule| rule.topic.is_exact()).map(|rule| rule.topic.as_str());
    for topic in exact.chain(rules.localisers().map(|(topic, _)| topic)) {
        let resolved = node.names().topic(topic)?;
        if resolved != topic {
            renamed.insert(resolved, topic.to_owned());
        }
    }
    Ok(renamed)
}

/// The parameters that rcl gives every node. All else stands in the configuration.
fn parameters(config: &Ros2) -> Vec<Parameter> {
    vec![Parameter {
        name: "use_sim_time".to_owned(),
        value: config.use_sim_time,
        description: "ros2.use_sim_time in the configuration of omird".to_owned(),
    }]
}

fn remapping(rules: &[String]) -> Result<Vec<Rule>, NodeError> {
    rules.iter().map(|rule| rule.parse::<Rule>().map_err(NodeError::from)).collect()
}

/// `/tf` and `/tf_static`; whatever waited for a transform is asked again when one came.
fn follow_transforms(node: &Node, context: &Arc<Context>) -> Result<Vec<Subscription>, OpenError> {
    let ty = {
        let types = node.types().read();
        types.message("tf2_msgs/msg/TFMessage")?
    };
    let listen = |topic: &str, qos: Qos, is_static: bool| {
        let context = context.clone();
        node.subscribe(topic, &ty, qos, move |received: Received| {
            let now = (context.clock)();
            context.frames.take(&received.message, is_static, now);
            if context.ingest().is_waiting() {
                context.waker.wake();
            }
        })
    };
    Ok(vec![
        listen("/tf", Qos::DEFAULT.keep_last(TF_DEPTH), false)?,
        listen(
            "/tf_static",
            Qos { durability: Qos::LATCHED.durability, ..Qos::DEFAULT.keep_last(TF_DEPTH) },
            true,
        )?,
    ])
}

/// `/clock`: the time of a simulation.
fn follow_clock(
    node: &Node,
    context: &Arc<Context>,
    memory: Arc<dyn Memory>,
) -> Result<Subscription, OpenError> {
    let ty = {
        let types = node.types().read();
        types.message("rosgraph_msgs/msg/Clock")?
    };
    let context = context.clone();
    let show = move |received: Received| {
        let Some(now) = received.message.message("clock").and_then(Stamp::from_message) else {
            return;
        };
        memory.show(now);
        context.frames.shown(now);
    };
    // As rclcpp's time source: only the newest counts.
    Ok(node.subscribe("/clock", &ty, Qos::SENSOR_DATA.keep_last(1), show)?)
}
