//! `[ros2]` and its `[[ros2.topic]]` rules: from what was written to what is resolved.
//!
//! What can be checked without the types of the messages is checked here, all of it at once, every
//! complaint under its key. A rule that names its type is checked against that by
//! [`Rules::compile`](super::Rules::compile), any other as soon as a message shows it.

mod keeping;
mod localised;
mod spec;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use omir_core::value::Map;
use serde::Deserialize;

use self::words::{base_name, count, frame_name, namespace, not_empty, remapping, topic_pattern};
use super::pattern::Pattern;
use super::written::{Complaints, ConfigError, Table, Unit, one_of};
use crate::interface::TypeName;

pub use self::keeping::{Condition, Keep, Merging, SeverityField, SeverityRule};
pub use self::localised::{CovarianceBound, FreshnessBound, Localised, UnlocalisedPolicy};
pub use self::spec::{
    Amount, PoseFrom, ResourceKind, Spec, StampFrom, ValueSource, WithoutTransform,
};

/// The distributions of ROS 2 that `ros2.distribution` may name.
pub const DISTRIBUTIONS: &[&str] = &["humble", "jazzy", "kilted", "lyrical", "rolling"];
/// Deepest queue of a topic.
const MAX_DEPTH: u64 = 10_000;
const YEAR_S: f64 = 31_536_000.0;

/// `[ros2]` as it was written.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct Ros2Section(Map);

/// `[ros2]`, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Ros2 {
    /// True if the daemon is a node at all; without the section it is none.
    pub enabled: bool,
    /// ROS_DOMAIN_ID, 0 to 232.
    pub domain_id: u32,
    /// Namespace of the node: empty, or `/robot1`.
    pub namespace: String,
    /// Name of the node.
    pub node_name: String,
    /// Remapping rules, each `from:=to`.
    pub remap: Vec<String>,
    /// One of [`DISTRIBUTIONS`].
    pub distribution: String,
    /// Folders with more message definitions: `<package>/msg/<Name>.msg`.
    pub interfaces: Vec<PathBuf>,
    /// The frame that poses are stored in.
    pub fixed_frame: String,
    /// The frame of the robot: where it is when a message has no place of its own.
    pub robot_frame: String,
    /// Frames that memories are tied to, so that they move with the map.
    pub keyframes: Vec<Pattern>,
    /// Time for which transforms are kept.
    pub tf_buffer: Duration,
    /// Time that a message waits for its transform.
    pub transform_wait: Duration,
    /// True if the time comes from `/clock`; needs `clock.source = "simulated"`.
    pub use_sim_time: bool,
    /// Messages of a topic that may wait in any case.
    pub queue_depth: usize,
    /// Most things a rule remembers having seen.
    pub things: usize,
    /// The scopes of the callers of its services, where they are stated. The daemon says which there are.
    pub scopes: Option<Vec<String>>,
    /// The rules for topics.
    pub topics: Vec<TopicRule>,
}

/// One `[[ros2.topic]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicRule {
    /// Its place, for complaints: `ros2.topic[3]`.
    pub key: String,
    /// Its name: the topic, unless it says otherwise. Part of the ids of its memories.
    pub name: String,
    /// The topics it is for.
    pub topic: Pattern,
    /// The type of their messages; any if absent.
    pub type_name: Option<TypeName>,
    /// Messages that may wait; the node's own number if it does not say.
    pub queue_depth: Option<usize>,
    /// The rest.
    pub spec: Spec,
}

impl Default for Ros2 {
    fn default() -> Self {
        Self {
            enabled: true,
            domain_id: 0,
            namespace: String::new(),
            node_name: "omird".into(),
            remap: Vec::new(),
            distribution: "jazzy".into(),
            interfaces: Vec::new(),
            fixed_frame: "map".into(),
            robot_frame: "base_link".into(),
            keyframes: Vec::new(),
            tf_buffer: Duration::from_secs(10),
            transform_wait: Duration::from_millis(500),
            use_sim_time: false,
            queue_depth: 10,
            things: 1000,
            scopes: None,
            topics: Vec::new(),
        }
    }
}

impl Ros2Section {
    /// Checks all of it and fills in what it leaves out.
    ///
    /// # Errors
    /// Everything that is wrong, each with its key.
    pub fn resolve(&self) -> Result<Ros2, ConfigError> {
        self.resolve_in(None)
    }

    /// The same where the environment's `ROS_DOMAIN_ID` counts, unless the section has a `domain_id`. A
    /// section that is there means a node, unless it says `enabled = false`.
    ///
    /// # Errors
    /// As [`Ros2Section::resolve`].
    pub fn resolve_in(&self, environment: Option<&str>) -> Result<Ros2, ConfigError> {
        let complaints = Complaints::default();
        let table = Table::new("ros2", &self.0, &complaints);
        let default = Ros2::default();
        let ros2 = Ros2 {
            enabled: table.flag("enabled").unwrap_or(true),
            domain_id: table
                .integer("domain_id", 0..=232)
                .and_then(|id| u32::try_from(id).ok())
                .or_else(|| domain_of(environment?, &complaints))
                .unwrap_or(default.domain_id),
            namespace: table.parsed("namespace", namespace).unwrap_or(default.namespace),
            node_name: table.parsed("node_name", base_name).unwrap_or(default.node_name),
            remap: table.all_parsed("remap", remapping).unwrap_or(default.remap),
            distribution: table
                .parsed("distribution", |word| {
                    let words: Vec<_> = DISTRIBUTIONS.iter().map(|name| (*name, *name)).collect();
                    one_of(word, &words).map(str::to_owned)
                })
                .unwrap_or(default.distribution),
            interfaces: table
                .all_parsed("interfaces", |path| not_empty(path).map(PathBuf::from))
                .unwrap_or(default.interfaces),
            fixed_frame: table.parsed("fixed_frame", frame_name).unwrap_or(default.fixed_frame),
            robot_frame: table.parsed("robot_frame", frame_name).unwrap_or(default.robot_frame),
            keyframes: table
                .all_parsed("keyframes", |frame| frame_name(frame).map(Pattern::new))
                .unwrap_or(default.keyframes),
            tf_buffer: table.seconds("tf_buffer_s", 0.1..=3600.0).unwrap_or(default.tf_buffer),
            transform_wait: table
                .time("transform_wait_ms", Unit::Millis, 0.0..=5000.0)
                .map_or(default.transform_wait, |millis| Duration::from_secs_f64(millis / 1e3)),
            use_sim_time: table.flag("use_sim_time").unwrap_or(default.use_sim_time),
            queue_depth: count(&table, "queue_depth", MAX_DEPTH).unwrap_or(default.queue_depth),
            things: count(&table, "things", 1_000_000).unwrap_or(default.things),
            scopes: table.all_parsed("scopes", |scope| not_empty(scope).map(str::to_owned)),
            topics: table.tables("topic").iter().filter_map(TopicRule::read).collect(),
        };
        table.done();
        complaints.or(Ros2 { topics: with_names_of_their_own(ros2.topics), ..ros2 })
    }
}

/// The domain that the environment names.
fn domain_of(environment: &str, complaints: &Complaints) -> Option<u32> {
    let domain = environment.trim().parse::<u32>().ok().filter(|id| *id <= 232);
    if domain.is_none() {
        let message = format!("{environment:?} in the environment is no number from 0 to 232");
        complaints.add("ROS_DOMAIN_ID", message);
    }
    domain
}

/// Names are part of ids, so two rules with one name would make one memory of two.
fn with_names_of_their_own(mut topics: Vec<TopicRule>) -> Vec<TopicRule> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for rule in &mut topics {
        let count = known.entry(rule.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            rule.name = format!("{}#{count}", rule.name);
        }
    }
    topics
}

impl TopicRule {
    fn read(table: &Table<'_>) -> Option<Self> {
        let topic = table.parsed("topic", topic_pattern);
        if table.value("topic").is_none() {
            table.complain("topic", "is missing; it says which topic the rule is for");
        }
        let name = table.parsed("name", |name| not_empty(name).map(str::to_owned));
        let type_name = table.parsed("type", str::parse::<TypeName>);
        let queue_depth = count(table, "queue_depth", MAX_DEPTH);
        let spec = Spec::read(table);
        table.done();
        let topic = topic?;
        Some(Self {
            key: table.path().to_owned(),
            name: name.unwrap_or_else(|| topic.as_str().to_owned()),
            topic,
            type_name,
            queue_depth,
            spec,
        })
    }
}
