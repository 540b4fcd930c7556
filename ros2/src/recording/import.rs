//! A recording to memories: the rules of the daemon, applied to messages in the order of their log times.
//!
//! Transforms run ahead of all else: a message is looked at when the recording is a little further than
//! its log time, so that `/tf` that was recorded after it has its say, as a live node would wait for it.
//! What is made is held back for a while, because the same thing is likely to be seen again; so most
//! memories are handed out once, as they are in the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use omir_core::value::Value as Json;

use super::bounds::{MOST_AHEAD, weight};
use super::losses::Loss;
use super::recorded_resources::RecordedResources;
use super::source::{Recorded, Recording};
use super::types::{Types, UnreadableType};
use super::{Channel, Input, RecordingError, unpack};
use crate::interface::Registry;
use crate::message::{DecodeError, Message};
use crate::rules::{Arrival, Counters, Decision, Pattern, Ros2, Rules};
use crate::stamp::Stamp;
use crate::tf::{Buffer, feed, normalised};

/// Time after a message in which transforms are looked for, if the configuration does not wait longer.
const LOOK_AHEAD: Duration = Duration::from_secs(2);
/// Pieces of a file that static transforms are looked for in before anything else.
const STATIC_PIECES: usize = 16;
/// Interval in which repeated sightings are written, in the time of the recording.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// Malformed messages of a topic that are told one by one.
const FAULTS: usize = 10;

/// A message that is none of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Time at which it was recorded.
    pub log_time: Stamp,
    /// The fault, and its place.
    pub why: String,
}

/// Outcome of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicReport {
    /// The full name.
    pub topic: String,
    /// The type, as the file names it.
    pub type_name: String,
    /// Messages that were read.
    pub messages: u64,
    /// True if a rule is for it, or it has the transforms.
    pub is_used: bool,
    /// The reason, if its messages cannot be read at all.
    pub unusable: Option<String>,
    /// Outcome of the rules.
    pub counters: Counters,
    /// The first few messages that were none of their type.
    pub malformed: Vec<Malformed>,
}

/// Outcome of a recording so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Every topic, by its name.
    pub topics: Vec<TopicReport>,
    /// Parts of the files that could not be used.
    pub losses: Vec<Loss>,
    /// Transforms that were refused: the first of each kind, and how many.
    pub transforms_refused: BTreeMap<String, u64>,
    /// Messages that were recorded in such disorder that they were looked at too late.
    pub disordered: u64,
    /// Resources that were handed out again, because they changed after they were.
    pub again: u64,
    /// Sights of things whose memories were handed out before, which these do not tell of.
    pub untold: u64,
    /// Rules that do not fit the type of a topic.
    pub misfits: Vec<String>,
}

/// An import under way.
pub struct Import {
    recording: Recording,
    rules: Rules,
    tf: Buffer,
    topics: TfTopics,
    look_ahead: Duration,
    /// Messages that wait for transforms behind them.
    ahead: VecDeque<Recorded>,
    ahead_bytes: usize,
    made: RecordedResources,
    told_at: Option<Stamp>,
    malformed: BTreeMap<String, Vec<Malformed>>,
    /// By kind: the first reason, and how many.
    refused: BTreeMap<&'static str, (String, u64)>,
    is_at_end: bool,
}

/// The topics with the transforms, after remapping.
#[derive(Clone, Debug)]
struct TfTopics {
    moving: String,
    fixed: String,
}

impl TfTopics {
    fn new(ros2: &Ros2) -> Self {
        let remapped = |topic: &str| {
            let rules = ros2.remap.iter().filter_map(|rule| rule.split_once(":="));
            let to = rules.filter(|(from, _)| *from == topic).map(|(_, to)| to.to_owned()).next();
            to.unwrap_or_else(|| topic.to_owned())
        };
        Self { moving: remapped("/tf"), fixed: remapped("/tf_static") }
    }

    fn has(&self, channel: &Channel) -> bool {
        channel.topic == self.moving || channel.topic == self.fixed
    }
}

/// An import that cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// A file is of no use.
    File(RecordingError),
    /// The rules are wrong.
    Rules(String),
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Rules(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ImportError {}

impl Import {
    /// Prepares to read files as one recording. `topics` narrows the rules to topics of these names;
    /// none of them leaves all.
    ///
    /// # Errors
    /// A file that is of no use, or rules that do not fit the types they name.
    pub fn new(files: Vec<Input>, ros2: &Ros2, topics: Vec<Pattern>) -> Result<Self, ImportError> {
        let mut registry = Registry::standard();
        for folder in &ros2.interfaces {
            registry.add_folder(folder).map_err(|why| ImportError::Rules(why.to_string()))?;
        }
        let rules = Rules::compile(ros2, &registry);
        let rules = rules.map_err(|why| ImportError::Rules(why.to_string()))?;
        let tf_topics = TfTopics::new(ros2);
        let wants = {
            // Which topics are wanted does not change, so what it is asked of may be a copy.
            let localisers = &rules;
            let rules: Vec<_> = rules.topics().cloned().collect();
            let localisers: Vec<_> = {
                let topics = localisers.localisers();
                topics.map(|(topic, ty)| (topic.to_owned(), ty.clone())).collect()
            };
            let tf_topics = tf_topics.clone();
            move |channel: &Channel| {
                let Ok(ty) = &channel.ty else { return false };
                let is_asked_for =
                    topics.is_empty() || topics.iter().any(|topic| topic.matches(&channel.topic));
                let has_rule = rules.iter().any(|rule| {
                    rule.type_name.as_ref().is_none_or(|name| *name == ty.name)
                        && rule.topic.matches(&channel.topic)
                });
                let tells_where = localisers
                    .iter()
                    .any(|(topic, name)| *topic == channel.topic && *name == ty.name);
                tf_topics.has(channel) || tells_where || is_asked_for && has_rule
            }
        };
        let types = Types::new(registry);
        let recording =
            Recording::open(files, &types, &(Rc::new(wants) as _)).map_err(ImportError::File)?;
        let look_ahead = LOOK_AHEAD.max(ros2.transform_wait);
        let mut import = Self {
            recording,
            rules,
            // The transforms of the time looked ahead are there as well.
            tf: Buffer::new(ros2.tf_buffer.saturating_add(look_ahead)),
            topics: tf_topics,
            look_ahead,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            made: RecordedResources::default(),
            told_at: None,
            malformed: BTreeMap::new(),
            refused: BTreeMap::new(),
            is_at_end: false,
        };
        import.find_static();
        Ok(import)
    }

    /// Static transforms hold from the beginning on, though they may be recorded later. Of each frame
    /// the first word counts; a later one takes its place when its time has come.
    fn find_static(&mut self) {
        let topic = self.topics.fixed.clone();
        let found = self.recording.ahead(STATIC_PIECES, |channel| channel.topic == topic);
        let mut known = BTreeSet::new();
        for recorded in found {
            let Ok(message) = decoded(&recorded) else { continue };
            let children = || message.list("transforms").into_iter().flatten();
            let child = |value: &crate::message::Value| {
                normalised(value.as_message()?.text("child_frame_id")?).map(str::to_owned)
            };
            if children().filter_map(child).any(|child| known.contains(&child)) {
                continue;
            }
            known.extend(children().filter_map(child));
            // A refusal is reported when the time of the message has come.
            _ = feed(&mut self.tf, &message, true);
        }
    }

    /// Reads on until there is a batch, or but no more than so many messages, so that the
    /// caller can show how far it is.
    pub fn advance(&mut self, messages: usize) -> Advance {
        for _ in 0..messages {
            if self.is_at_end || self.made.is_full() {
                break;
            }
            match self.recording.next_message() {
                Some(recorded) => self.take(recorded),
                None => self.end(),
            }
        }
        if !self.is_at_end && !self.made.is_full() {
            return Advance::Reading;
        }
        self.made.batch(self.is_at_end).map_or(Advance::Done, Advance::Batch)
    }

    fn end(&mut self) {
        while let Some(next) = self.ahead.pop_front() {
            self.observe(&next);
        }
        self.tell(None);
        self.is_at_end = true;
    }

    fn take(&mut self, recorded: Recorded) {
        let now = recorded.log_time;
        let is_transforms = self.topics.has(&recorded.channel);
        if is_transforms {
            self.take_transforms(&recorded);
        }
        if !is_transforms || self.is_wanted(&recorded.channel) {
            self.wait(recorded);
        }
        let is_due = |next: &Recorded, look_ahead| next.log_time.saturating_add(look_ahead) <= now;
        while let Some(next) = self.ahead.front()
            && (is_due(next, self.look_ahead) || self.ahead_bytes > MOST_AHEAD)
        {
            let Some(next) = self.ahead.pop_front() else { break };
            self.ahead_bytes -= weight(&next.data);
            self.observe(&next);
        }
        match self.told_at {
            Some(told) if told.saturating_add(TELL_EVERY) > now => {}
            Some(_) => self.tell(Some(now)),
            None => self.told_at = Some(now),
        }
    }

    fn wait(&mut self, recorded: Recorded) {
        self.ahead_bytes += weight(&recorded.data);
        self.ahead.push_back(recorded);
    }

    /// Returns true if a rule looks at the messages of a channel.
    fn is_wanted(&self, channel: &Channel) -> bool {
        channel.ty.as_ref().is_ok_and(|ty| self.rules.wants(&channel.topic, &ty.name))
    }

    fn take_transforms(&mut self, recorded: &Recorded) {
        let message = match decoded(recorded) {
            Ok(message) => message,
            // If a rule looks at it, it is told when its turn comes.
            Err(_) if self.is_wanted(&recorded.channel) => return,
            Err(why) => return self.malformed(recorded, why.to_string()),
        };
        for why in feed(&mut self.tf, &message, recorded.channel.topic == self.topics.fixed) {
            let refused = self.refused.entry(why.kind());
            refused.or_insert_with(|| (why.to_string(), 0)).1 += 1;
        }
    }

    fn observe(&mut self, recorded: &Recorded) {
        let topic = recorded.channel.topic.as_str();
        let message = match decoded(recorded) {
            Ok(message) => message,
            Err(why) => return self.malformed(recorded, why.to_string()),
        };
        let arrival = Arrival { topic, node: None, received: recorded.log_time, is_live: false };
        let mut decisions = VecDeque::from(self.rules.observe(&arrival, &message, &self.tf));
        while let Some(decision) = decisions.pop_front() {
            match decision {
                Decision::Keep(kept) => self.made.keep(*kept, recorded.log_time),
                Decision::Wait(wait) => {
                    let last = self.rules.retry(&wait, &arrival, &message, &self.tf, true);
                    // Asked for the last time, a rule waits no more.
                    let decided = last.into_iter().filter(|one| !matches!(one, Decision::Wait(_)));
                    decisions.extend(decided);
                }
                Decision::Merged { .. } | Decision::Dropped(_) | Decision::Beyond(_) => {}
            }
        }
    }

    fn malformed(&mut self, recorded: &Recorded, why: String) {
        let topic = recorded.channel.topic.as_str();
        self.rules.malformed(topic);
        let told = self.malformed.entry(topic.to_owned()).or_default();
        if told.len() < FAULTS {
            told.push(Malformed { log_time: recorded.log_time, why });
        }
    }

    /// Writes into the memories how often their things were seen; `None` at the end.
    fn tell(&mut self, now: Option<Stamp>) {
        let at = now.or(self.told_at).unwrap_or(Stamp::MAX);
        for untold in self.rules.untold(at, now.is_none()) {
            self.made.tell(&untold);
        }
        self.told_at = Some(at);
    }

    /// Bytes of all files that hold messages.
    pub fn size(&self) -> u64 {
        self.recording.size()
    }

    /// Returns the number of these that were read.
    pub fn position(&self) -> u64 {
        self.recording.position()
    }

    /// The decision so far.
    pub fn report(&self) -> Report {
        let mut topics: BTreeMap<&str, TopicReport> = BTreeMap::new();
        for (channel, messages, is_used) in self.recording.channels() {
            let report = topics.entry(&channel.topic).or_default();
            report.topic.clone_from(&channel.topic);
            report.type_name.clone_from(&channel.type_name);
            report.messages += messages;
            report.is_used |= is_used;
            report.unusable =
                channel.ty.as_ref().err().map(ToString::to_string).or(report.unusable.take());
        }
        for (topic, counters) in self.rules.counters() {
            if let Some(report) = topics.get_mut(topic) {
                report.counters = counters.clone();
            }
        }
        for (topic, malformed) in &self.malformed {
            if let Some(report) = topics.get_mut(topic.as_str()) {
                report.malformed.clone_from(malformed);
            }
        }
        Report {
            topics: topics.into_values().collect(),
            losses: self.recording.losses(),
            transforms_refused: self.refused.values().cloned().collect(),
            disordered: self.recording.disordered(),
            again: self.made.again(),
            untold: self.made.untold(),
            misfits: self.rules.misfits().map(ToString::to_string).collect(),
        }
    }
}

/// A step of an import.
#[derive(Clone, Debug, PartialEq)]
pub enum Advance {
    /// There is more to read.
    Reading,
    /// Resources to be remembered in one request.
    Batch(Vec<Json>),
    /// That was all.
    Done,
}

fn decoded(recorded: &Recorded) -> Result<Message, BadMessage> {
    let ty = recorded.channel.ty.as_ref().map_err(|why| BadMessage::Type(why.clone()))?;
    let unpacked = unpack::message(&recorded.data).map_err(BadMessage::Packed)?;
    let data = unpacked.as_deref().unwrap_or(&recorded.data);
    Message::decode(ty, data).map_err(BadMessage::Cdr)
}

/// A recorded message that cannot be read.
enum BadMessage {
    Type(UnreadableType),
    Packed(unpack::PackError),
    Cdr(DecodeError),
}

impl fmt::Display for BadMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(why) => why.fmt(f),
            Self::Packed(why) => why.fmt(f),
            Self::Cdr(why) => why.fmt(f),
        }
    }
}
