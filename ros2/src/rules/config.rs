//! `[ros2]` and its `[[ros2.topic]]` rules: from what was written to what is resolved.
//!
//! What can be checked without the types of the messages is checked here, all of it at once, every
//! complaint under its key. A rule that names its type is checked against that by
//! [`Rules::compile`](super::Rules::compile), any other as soon as a message shows it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::ResourceType;
use omir_core::value::{Map, Value};
use serde::Deserialize;

use super::keep::{Merge, Threshold};
use super::levels::Level;
use super::pattern::Pattern;
use super::template::{FieldRef, Template};
use super::written::{Complaints, ConfigError, Table, one_of};
use crate::interface::TypeName;
use crate::tf::normalised;

/// The distributions of ROS 2 that `ros2.distribution` may name.
pub const DISTRIBUTIONS: &[&str] = &["humble", "jazzy", "kilted"];
/// Deepest queue of a topic.
const MAX_DEPTH: u64 = 10_000;
/// Most thresholds of one rule.
const MAX_THRESHOLDS: usize = 32;
const YEAR_S: f64 = 31_536_000.0;

/// `[ros2]` as it was written.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct Ros2Section(Map);

/// `[ros2]`, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Ros2 {
    /// Whether the daemon is a node at all; without the section it is none.
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
    /// How long transforms are kept.
    pub tf_buffer: Duration,
    /// How long a message waits for its transform.
    pub transform_wait: Duration,
    /// Whether the time comes from `/clock`; needs `clock.source = "simulated"`.
    pub use_sim_time: bool,
    /// Messages of a topic that may wait; the oldest is dropped.
    pub queue_depth: usize,
    /// Most things a rule remembers having seen.
    pub things: usize,
    /// What becomes of which topics.
    pub topics: Vec<TopicRule>,
}

/// One `[[ros2.topic]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicRule {
    /// Where it stands, for complaints: `ros2.topic[3]`.
    pub key: String,
    /// What it is called: the topic, unless it says otherwise. Part of the ids of its memories.
    pub name: String,
    /// Which topics it is for.
    pub topic: Pattern,
    /// Which type their messages have; any, if it does not say.
    pub type_name: Option<TypeName>,
    /// Messages that may wait; the node's own number if it does not say.
    pub queue_depth: Option<usize>,
    /// The rest.
    pub spec: Spec,
}

/// What becomes of a message, as far as it is said; the type's own defaults say the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// What is made.
    pub make: Option<Make>,
    /// The list each element of which is looked at.
    pub each: Option<FieldRef>,
    /// What the thing is called.
    pub by: Option<Template>,
    /// The content of the memory.
    pub text: Option<Template>,
    /// The entity it is about.
    pub entity: Option<Template>,
    /// The labels of that.
    pub labels: Option<Vec<Label>>,
    /// Lifecycle class.
    pub kind: Option<Kind>,
    /// Nature of the experience.
    pub experience_type: Option<ExperienceType>,
    /// In [0, 1].
    pub importance: Option<Amount>,
    /// In [0, 1].
    pub confidence: Option<Amount>,
    /// Hours.
    pub half_life_h: Option<Amount>,
    /// Whether it resists forgetting.
    pub anchored: Option<bool>,
    /// How long after the event it is valid.
    pub expires: Option<Duration>,
    /// Where it was.
    pub pose: Option<PoseFrom>,
    /// The frame of that pose.
    pub frame: Option<Template>,
    /// A position on the Earth.
    pub geo: Option<Whence>,
    /// When it happened.
    pub stamp: Option<StampFrom>,
    /// What becomes of it when its place in the fixed frame is not to be had.
    pub without_transform: Option<WithoutTransform>,
    /// What is kept.
    pub keep: Option<Keep>,
    /// When it is the same thing.
    pub merge: Option<Merging>,
}

/// What is made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// A MemoryRecord.
    Record,
    /// An Entity, kept up to date.
    Entity,
}

impl Make {
    /// The type of the resource.
    pub const fn resource_type(self) -> ResourceType {
        match self {
            Self::Record => ResourceType::MemoryRecord,
            Self::Entity => ResourceType::Entity,
        }
    }
}

/// A number, or where it is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// This one.
    Always(f64),
    /// The one in a field.
    Field(FieldRef),
    /// By the level of a log or diagnostic message.
    ByLevel(Vec<(Level, f64)>),
}

/// A field, or the message itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Whence {
    /// The message, or the element.
    Itself,
    /// A field of it.
    Field(FieldRef),
}

/// Where the place of a memory comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum PoseFrom {
    /// Where the robot is.
    Robot,
    /// It has no place.
    Nowhere,
    /// A pose, a point or a transform in the message.
    Message(Whence),
}

/// When something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum StampFrom {
    /// When the message came.
    Received,
    /// What a field says.
    Field(FieldRef),
}

/// What becomes of a memory without a place in the fixed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutTransform {
    /// It is kept, and says why it has none.
    Keep,
    /// It is dropped, and counted.
    Drop,
}

/// Which messages are kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keep {
    /// Only those of these levels.
    pub levels: Option<Vec<Level>>,
    /// Only those that all of these hold for.
    pub only: Vec<Condition>,
    /// A change of one of these.
    pub on_change: Vec<FieldRef>,
    /// Before the first message, those are taken to be zero.
    pub assume_zero: bool,
    /// Movement by more, metres.
    pub beyond_m: Option<f64>,
    /// Turning by more, degrees.
    pub beyond_deg: Option<f64>,
    /// Movement is measured in the frame of the message, not in the fixed one.
    pub in_own_frame: bool,
    /// Readings that go beyond a limit.
    pub thresholds: Vec<(FieldRef, Threshold)>,
    /// At most so often, of one name.
    pub at_most_every: Option<Duration>,
    /// At most so many new ones in an hour, of all names.
    pub at_most_per_hour: Option<u64>,
}

/// A condition on a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The field.
    pub field: FieldRef,
    /// Not less than this.
    pub at_least: Option<f64>,
    /// Not more than this.
    pub at_most: Option<f64>,
    /// One of these, if any is named.
    pub is: Vec<Value>,
}

/// Whether the same thing seen again is the same memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Merging {
    /// It is another.
    Never,
    /// It is the same.
    When(Merge),
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
            tf_buffer: table
                .number("tf_buffer_s", 0.1..=3600.0)
                .map_or(default.tf_buffer, Duration::from_secs_f64),
            transform_wait: table
                .integer("transform_wait_ms", 0..=5000)
                .map_or(default.transform_wait, Duration::from_millis),
            use_sim_time: table.flag("use_sim_time").unwrap_or(default.use_sim_time),
            queue_depth: count(&table, "queue_depth", MAX_DEPTH).unwrap_or(default.queue_depth),
            things: count(&table, "things", 1_000_000).unwrap_or(default.things),
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

impl Spec {
    /// Reads what a table says of it. [`Table::done`] is left to the caller.
    pub fn read(table: &Table<'_>) -> Self {
        Self {
            make: table.word("as", &[("record", Make::Record), ("entity", Make::Entity)]),
            each: table.parsed("each", list),
            by: table.parsed("by", |text| {
                // A name without braces would be one name for everything, so it is a field.
                if text.contains('{') {
                    text.parse::<Template>().map_err(|error| error.to_string())
                } else {
                    field(text).map(Template::of_field)
                }
            }),
            text: table.parsed("text", str::parse),
            entity: table.parsed("entity", str::parse),
            labels: table.all_parsed("label", |word| word_of(word, Label::ALL, Label::as_str)),
            kind: table.parsed("kind", |word| word_of(word, Kind::ALL, Kind::as_str)),
            experience_type: table.parsed("experience_type", |word| {
                word_of(word, ExperienceType::ALL, ExperienceType::as_str)
            }),
            importance: amount(table, "importance", 0.0, 1.0),
            confidence: amount(table, "confidence", 0.0, 1.0),
            half_life_h: amount(table, "half_life_h", 0.001, 1_000_000.0),
            anchored: table.flag("anchored"),
            expires: table.number("expires_s", 1.0..=100.0 * YEAR_S).map(Duration::from_secs_f64),
            pose: table.parsed("pose", |text| match text {
                "@robot" => Ok(PoseFrom::Robot),
                "@none" => Ok(PoseFrom::Nowhere),
                _ => whence(text).map(PoseFrom::Message),
            }),
            frame: table.parsed("frame", str::parse),
            geo: table.parsed("geo", whence),
            stamp: table.parsed("stamp", |text| match text {
                "@received" => Ok(StampFrom::Received),
                _ => field(text).map(StampFrom::Field),
            }),
            without_transform: table.word(
                "without_transform",
                &[("keep", WithoutTransform::Keep), ("drop", WithoutTransform::Drop)],
            ),
            keep: table.table("keep").map(Keep::read),
            merge: match table.value("merge") {
                Some(Value::Bool(false)) => Some(Merging::Never),
                _ => table.table("merge").map(merging),
            },
        }
    }

    /// This, and what it does not say from `default`. `keep` and `merge` are each taken whole.
    pub fn or(self, default: Self) -> Self {
        Self {
            make: self.make.or(default.make),
            each: self.each.or(default.each),
            by: self.by.or(default.by),
            text: self.text.or(default.text),
            entity: self.entity.or(default.entity),
            labels: self.labels.or(default.labels),
            kind: self.kind.or(default.kind),
            experience_type: self.experience_type.or(default.experience_type),
            importance: self.importance.or(default.importance),
            confidence: self.confidence.or(default.confidence),
            half_life_h: self.half_life_h.or(default.half_life_h),
            anchored: self.anchored.or(default.anchored),
            expires: self.expires.or(default.expires),
            pose: self.pose.or(default.pose),
            frame: self.frame.or(default.frame),
            geo: self.geo.or(default.geo),
            stamp: self.stamp.or(default.stamp),
            without_transform: self.without_transform.or(default.without_transform),
            keep: self.keep.or(default.keep),
            merge: self.merge.or(default.merge),
        }
    }
}

impl Keep {
    fn read(table: Table<'_>) -> Self {
        let levels = table.all_parsed("levels", |word| one_of(word, Level::WORDS));
        let only = table.tables("only").into_iter().filter_map(condition).collect();
        let mut thresholds = Vec::new();
        for (name, is_above) in [("above", true), ("below", false)] {
            let limits = table.tables(name).into_iter();
            thresholds.extend(limits.filter_map(|limit| threshold(limit, is_above)));
        }
        if thresholds.len() > MAX_THRESHOLDS {
            table.complain("above", format_args!("more than {MAX_THRESHOLDS} with those below"));
        }
        let keep = Self {
            levels,
            only,
            on_change: table.all_parsed("on_change", field).unwrap_or_default(),
            assume_zero: table.flag("assume_zero").unwrap_or_default(),
            beyond_m: table.number("beyond_m", 0.0..=1e9),
            beyond_deg: table.number("beyond_deg", 0.0..=180.0),
            in_own_frame: table.flag("in_own_frame").unwrap_or_default(),
            thresholds,
            at_most_every: table
                .number("at_most_every_s", 0.0..=YEAR_S)
                .map(Duration::from_secs_f64),
            at_most_per_hour: table.integer("at_most_per_hour", 1..=1_000_000_000),
        };
        table.done();
        keep
    }
}

fn condition(table: Table<'_>) -> Option<Condition> {
    let field = the_field(&table);
    let at_least = table.number("at_least", f64::MIN..=f64::MAX);
    let at_most = table.number("at_most", f64::MIN..=f64::MAX);
    let is = match table.value("is") {
        None => Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    if at_least.is_none() && at_most.is_none() && is.is_empty() {
        table.complain("at_least", "a condition needs at_least, at_most or is");
    }
    table.done();
    Some(Condition { field: field?, at_least, at_most, is })
}

fn threshold(table: Table<'_>, is_above: bool) -> Option<(FieldRef, Threshold)> {
    let field = the_field(&table);
    let at = table.number("at", f64::MIN..=f64::MAX);
    if table.value("at").is_none() {
        table.complain("at", "is missing; it is the limit");
    }
    let back_at = table.number("back_at", f64::MIN..=f64::MAX).or(at);
    table.done();
    let (field, at, back_at) = (field?, at?, back_at?);
    if if is_above { back_at > at } else { back_at < at } {
        let side = if is_above { "above" } else { "below" };
        table.complain("back_at", format_args!("{back_at} is {side} the limit of {at} itself"));
    }
    Some((field, Threshold { is_above, at, back_at }))
}

fn the_field(table: &Table<'_>) -> Option<FieldRef> {
    if table.value("field").is_none() {
        table.complain("field", "is missing; it is the path of a field, such as percentage");
    }
    table.parsed("field", field)
}

fn merging(table: Table<'_>) -> Merging {
    let seconds = |name, default: u64| {
        table
            .number(name, 0.0..=YEAR_S)
            .map_or(Duration::from_secs(default), Duration::from_secs_f64)
    };
    let merge = Merge {
        within_m: table.number("within_m", 0.0..=1e6),
        within: seconds("within_s", 3600),
        update_every: seconds("update_every_s", 60),
    };
    table.done();
    Merging::When(merge)
}

/// A number, the path of one, or a table by level.
fn amount(table: &Table<'_>, name: &'static str, least: f64, most: f64) -> Option<Amount> {
    match table.value(name)? {
        Value::Text(_) => table.parsed(name, field).map(Amount::Field),
        Value::Object(_) => {
            let levels = table.table(name)?;
            let mut amounts = Vec::new();
            for (word, value) in levels.entries() {
                match (one_of(word, Level::WORDS), value.as_f64()) {
                    (Err(error), _) => levels.complain(word, error),
                    (Ok(level), Some(number)) if (least..=most).contains(&number) => {
                        amounts.push((level, number));
                    }
                    _ => levels.complain(
                        word,
                        format_args!("{value} is no number between {least} and {most}"),
                    ),
                }
            }
            Some(Amount::ByLevel(amounts))
        }
        _ => table.number(name, least..=most).map(Amount::Always),
    }
}

fn count(table: &Table<'_>, name: &'static str, most: u64) -> Option<usize> {
    table.integer(name, 1..=most).and_then(|number| usize::try_from(number).ok())
}

fn word_of<T: Copy>(word: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, String> {
    let words: Vec<_> = all.iter().map(|one| (name(*one), *one)).collect();
    one_of(word, &words)
}

fn field(text: &str) -> Result<FieldRef, String> {
    text.parse().map_err(|error: crate::message::PathError| error.to_string())
}

fn list(text: &str) -> Result<FieldRef, String> {
    let field = field(text)?;
    if !text.ends_with("[*]") || text.matches("[*]").count() != 1 || field.is_of_whole() {
        return Err(format!("{text:?} is no list; write it as in detections[*]"));
    }
    Ok(field)
}

fn whence(text: &str) -> Result<Whence, String> {
    if text == "." { Ok(Whence::Itself) } else { field(text).map(Whence::Field) }
}

fn not_empty(text: &str) -> Result<&str, String> {
    if text.is_empty() { Err("is empty; leave the key out".into()) } else { Ok(text) }
}

fn topic_pattern(text: &str) -> Result<Pattern, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '*');
    if !text.starts_with(['/', '*']) || text.len() < 2 && text != "*" || !text.chars().all(good) {
        return Err(format!(
            "{text:?} is no topic; it begins with / and has letters, digits, _ and *"
        ));
    }
    let pattern = Pattern::new(text);
    if pattern.is_exact() {
        for part in text[1..].split('/') {
            base_name(part).map_err(|why| format!("{text:?} is no topic: {why}"))?;
        }
    }
    Ok(pattern)
}

fn frame_name(text: &str) -> Result<String, String> {
    normalised(text)
        .filter(|name| !name.contains(char::is_whitespace))
        .map(ToOwned::to_owned)
        .ok_or_else(|| format!("{text:?} is no frame, such as map"))
}

/// A name as nodes have it (ROS 2 design, "Topic and Service name mapping").
fn base_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(good)
    {
        return Err(format!("{text:?} is not letters, digits and _, beginning with no digit"));
    }
    Ok(text.to_owned())
}

fn namespace(text: &str) -> Result<String, String> {
    let name = text.trim_start_matches('/');
    if name.is_empty() {
        return Ok(String::new());
    }
    let parts: Result<Vec<String>, String> = name.split('/').map(base_name).collect();
    Ok(format!("/{}", parts?.join("/")))
}

fn remapping(text: &str) -> Result<String, String> {
    match text.split_once(":=") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no remapping, such as /odom:=/robot/odom")),
    }
}

#[cfg(test)]
mod tests;
