//! Topics to memory: what of all the messages is worth remembering, by rules and without code.
//!
//! A rule names a topic; what it does not say, the type of the message says (`defaults.toml`). A message
//! and the transforms go in, decisions come out, and nothing here has a clock, a network or a store:
//! what was observed before is the only state, and it is bounded. See [`Rules::observe`].

mod bind;
mod builtin;
mod config;
mod decision;
mod extract;
mod fold;
mod frame_position;
mod levels;
mod localised;
mod look;
mod pattern;
mod placing;
mod policy;
mod resource;
mod rule;
mod sighting;
mod sighting_tracker;
mod template;
mod things;
mod written;

use std::collections::BTreeMap;

pub use builtin::{DEFAULTS, types as known_types};
pub use config::{DISTRIBUTIONS, Ros2, Ros2Section, TopicRule};
pub use decision::{
    Counters, Decision, KeptResource, Reason, UnreportedSightings, Wait, reference,
};
pub use fold::{folded, with_unreported};
pub use pattern::Pattern;
pub use written::{Complaint, ConfigError};

use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::spatial::SpatialPose;

use self::config::CovarianceBound;
use self::extract::has_covariance;
use self::frame_position::FramePosition;
use self::localised::Localisation;
use self::placing::Setup;
use self::rule::Rule;
use self::written::Complaints;
use crate::interface::{Registry, TypeName};
use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// Most topics that are counted each for itself; beyond it they are counted under `*`.
const MAX_COUNTED: usize = 1000;

/// A message's way here.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The full name of the topic.
    pub topic: &'a str,
    /// The full name of the node that published it, as far as that is known.
    pub node: Option<&'a str>,
    /// Time at which it came, or was recorded.
    pub received: Stamp,
    /// True if it was published just then. What was recorded, or kept by its publisher, may have come before.
    pub is_live: bool,
}

/// The rules for a topic with one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest<'a> {
    /// A rule is for it.
    Wanted,
    /// A rule names the topic, and this type.
    OtherType(&'a TypeName),
    /// No rule knows the topic; or only by a pattern and with another type, which is a choice.
    None,
}

/// All rules, and what they have seen.
#[derive(Debug)]
pub struct Rules {
    setup: Setup,
    rules: Vec<Rule>,
    counters: BTreeMap<String, Counters>,
}

impl Rules {
    /// The rules of a configuration, those that name a type checked against it.
    ///
    /// # Errors
    /// Everything that does not fit, each under its key. A type that the registry does not know is no
    /// error: its publisher may describe it.
    pub fn compile(ros2: &Ros2, registry: &Registry) -> Result<Self, ConfigError> {
        let setup = Setup {
            fixed_frame: ros2.fixed_frame.clone(),
            robot_frame: ros2.robot_frame.clone(),
            keyframes: ros2.keyframes.clone(),
            things: ros2.things,
            localisation: Localisation::new(certain(ros2)),
        };
        let complaints = Complaints::default();
        check_certain(ros2, registry, &complaints);
        let mut rules: Vec<Rule> = ros2.topics.iter().cloned().map(Rule::new).collect();
        for rule in &mut rules {
            let Some(name) = &rule.written.type_name else { continue };
            let Ok(ty) = registry.message(&name.to_string()) else { continue };
            if let Err(error) = rule.bind(&ty, &setup) {
                complaints.extend(error);
            }
        }
        complaints.or(Self { setup, rules, counters: BTreeMap::new() })
    }

    /// The rules as they were written: what to subscribe to.
    pub fn topics(&self) -> impl Iterator<Item = &TopicRule> {
        self.rules.iter().map(|rule| &rule.written)
    }

    /// The topics that tell how well the robot knows where it is, and their types: to subscribe to as well.
    pub fn localisers(&self) -> impl Iterator<Item = (&str, &TypeName)> {
        self.setup.localisation.topics()
    }

    /// Returns true if any rule is for that topic with messages of that type, or asks for what it tells.
    pub fn wants(&self, topic: &str, ty: &TypeName) -> bool {
        self.rules.iter().any(|rule| is_for(rule, topic, ty))
            || self.localisers().any(|one| one == (topic, ty))
    }

    /// The same, and which type a rule names instead.
    pub fn interest(&self, topic: &str, ty: &TypeName) -> Interest<'_> {
        if self.wants(topic, ty) {
            return Interest::Wanted;
        }
        let named = self.rules.iter().map(|rule| &rule.written);
        let named = named.filter(|rule| rule.topic.is_exact() && rule.topic.matches(topic));
        let localisers = self.localisers().filter(|(name, _)| *name == topic).map(|(_, ty)| ty);
        let mut wanted = named.filter_map(|rule| rule.type_name.as_ref()).chain(localisers);
        wanted.next().map_or(Interest::None, Interest::OtherType)
    }

    /// Messages of that topic that may wait, by the rules for it; `None` if none says.
    pub fn queue_depth(&self, topic: &str, ty: &TypeName) -> Option<usize> {
        let rules = self.rules.iter().filter(|rule| is_for(rule, topic, ty));
        rules.filter_map(|rule| rule.written.queue_depth).max()
    }

    /// Applies the rules to a message: every rule for its topic and type looks at it. A rule that must wait
    /// for a transform says so in place of anything else, and is asked again by [`Rules::retry`].
    pub fn observe(
        &mut self,
        arrival: &Arrival<'_>,
        message: &Message,
        tf: &Buffer,
    ) -> Vec<Decision> {
        let Self { setup, rules, counters } = self;
        let counters = counters_of(counters, arrival.topic);
        counters.received += 1;
        setup.localisation.hear(arrival.topic, message, arrival.received);
        let mut decisions = Vec::new();
        for (index, rule) in rules.iter_mut().enumerate() {
            if !is_for(rule, arrival.topic, &message.ty().name) {
                continue;
            }
            for mut decision in rule.observe(arrival, message, tf, setup, true) {
                if let Decision::Wait(wait) = &mut decision {
                    wait.rule = index;
                    counters.waited += 1;
                }
                counters.count(&decision);
                decisions.push(decision);
            }
        }
        decisions
    }

    /// Asks a rule again that had to wait. With `last` it no longer does: what has no place in the
    /// fixed frame is kept without one, or dropped if the rule says so.
    pub fn retry(
        &mut self,
        waited: &Wait,
        arrival: &Arrival<'_>,
        message: &Message,
        tf: &Buffer,
        last: bool,
    ) -> Vec<Decision> {
        let Self { setup, rules, counters } = self;
        let Some(rule) = rules.get_mut(waited.rule) else { return Vec::new() };
        let counters = counters_of(counters, arrival.topic);
        let mut decisions = rule.observe(arrival, message, tf, setup, !last);
        for decision in &mut decisions {
            if let Decision::Wait(wait) = decision {
                wait.rule = waited.rule;
            }
            counters.count(decision);
        }
        decisions
    }

    /// Notes that a message of a topic was none of its type.
    pub fn malformed(&mut self, topic: &str) {
        let counters = counters_of(&mut self.counters, topic);
        counters.received += 1;
        counters.malformed += 1;
    }

    /// Things that were seen again, where their memory does not tell of it and may be written again by
    /// now; to be asked every few seconds, and with `all` before the end. Store [`with_unreported`].
    pub fn untold(&mut self, now: Stamp, all: bool) -> Vec<UnreportedSightings> {
        self.rules.iter_mut().flat_map(|rule| rule.untold(now, all)).collect()
    }

    /// Returns true if a rule knows a thing that has this memory.
    pub fn has_memory(&self, memory: &Ref) -> bool {
        self.rules.iter().any(|rule| rule.has_memory(memory.kind, memory.id.as_str()))
    }

    /// Takes note that the map moved and this memory with it, and lies in the fixed frame where it says by
    /// now. What is known of its thing moves along, so that it is the same thing when it is seen there.
    pub fn map_moved(&mut self, memory: &Resource) {
        let Ref { kind, id } = memory.reference();
        let poses = memory.extensions().iter().filter_map(|e| SpatialPose::from_extension(e).ok());
        let Some(pose) = poses.into_iter().find(|pose| pose.frame == self.setup.fixed_frame) else {
            return;
        };
        let SpatialPose { frame, position, orientation, .. } = pose;
        let to = FramePosition { frame, position, orientation };
        self.rules.iter_mut().for_each(|rule| rule.map_moved(kind, id.as_str(), &to));
    }

    /// Outcome of each topic so far.
    pub fn counters(&self) -> impl Iterator<Item = (&str, &Counters)> {
        self.counters.iter().map(|(topic, counters)| (topic.as_str(), counters))
    }

    /// Number of things that all rules recognise.
    pub fn things(&self) -> usize {
        self.rules.iter().map(Rule::things).sum()
    }

    /// Returns the misfits of each rule and type: their messages are dropped as [`Reason::WrongType`].
    pub fn misfits(&self) -> impl Iterator<Item = &ConfigError> {
        self.rules.iter().flat_map(Rule::misfits)
    }
}

/// Demands of rules on covariances.
fn certain(ros2: &Ros2) -> impl Iterator<Item = &CovarianceBound> {
    let asked = ros2.topics.iter().filter_map(|rule| rule.spec.localised.as_ref());
    asked.filter_map(|localised| localised.certain.as_ref())
}

/// Complains about types that tell no covariance, and about a topic with two.
fn check_certain(ros2: &Ros2, registry: &Registry, complaints: &Complaints) {
    for (index, asked) in certain(ros2).enumerate() {
        let CovarianceBound { key, topic, type_name, .. } = asked;
        let mut before = certain(ros2).take(index).filter(|one| one.topic == *topic);
        if let Some(other) = before.find(|one| one.type_name != *type_name) {
            complaints.add(
                format!("{key}.type"),
                format_args!(
                    "{topic} has messages of {type_name} here, and of {} in {}",
                    other.type_name, other.key
                ),
            );
        }
        let ty = registry.message(&type_name.to_string());
        if ty.is_ok_and(|ty| !has_covariance(&ty)) {
            complaints.add(
                format!("{key}.type"),
                format_args!("a {type_name} tells no covariance of a pose"),
            );
        }
    }
}

fn is_for(rule: &Rule, topic: &str, ty: &TypeName) -> bool {
    rule.written.type_name.as_ref().is_none_or(|name| name == ty)
        && rule.written.topic.matches(topic)
}

fn counters_of<'a>(counters: &'a mut BTreeMap<String, Counters>, topic: &str) -> &'a mut Counters {
    let has_room = counters.len() < MAX_COUNTED || counters.contains_key(topic);
    counters.entry(if has_room { topic } else { "*" }.to_owned()).or_default()
}

#[cfg(test)]
mod tests;
