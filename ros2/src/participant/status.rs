//! Counters of ROS, for `status`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use omir_core::instant::Instant;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::Participant;
use crate::graph::{EntityKind, Refused};
use crate::rules::Counters;

fn count(number: u64) -> Value {
    Value::Number(Number::from(number))
}

/// Counters of a topic, refusals included.
fn of_topic(counters: &Counters, refused: Option<&Refused>) -> Map {
    let malformed = refused.map_or(0, |refused| refused.malformed);
    let counters = Counters {
        received: counters.received + malformed,
        malformed: counters.malformed + malformed,
        ..counters.clone()
    };
    let mut map = match counters.to_value() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    if let Some(refused) = refused {
        add_refused(&mut map, refused);
    }
    map
}

fn add_refused(map: &mut Map, refused: &Refused) {
    map.insert("droppedByDepth", count(refused.dropped));
    map.insert("otherTypes", count(refused.other_types));
    if let Some((at, why)) = &refused.last {
        let mut last = Map::new();
        last.insert("at", Instant::from(*at).as_str());
        last.insert("why", why.as_str());
        map.insert("lastRefused", last);
    }
}

impl Participant {
    /// The node, what came of each topic and service, and what was refused.
    pub fn status(&self) -> Value {
        let mut refused = self.node.refused();
        let mut topics = Map::new();
        let misfits: Vec<String>;
        {
            let heard = self.heard_as_the_rules_call_it(&mut refused);
            let ingest = self.context.ingest();
            for (topic, counters) in ingest.rules.counters() {
                topics.insert(topic, of_topic(counters, heard.get(topic)));
            }
            misfits = ingest.rules.misfits().map(ToString::to_string).collect();
            drop(ingest);
            for (topic, refused) in &heard {
                if !topics.contains_key(topic) {
                    topics.insert(topic.as_str(), of_topic(&Counters::default(), Some(refused)));
                }
            }
        }
        let mut others = Map::new();
        for ((kind, name), refused) in &refused {
            let mut map = Map::new();
            map.insert("is", kind.to_string());
            map.insert("malformed", count(refused.malformed));
            add_refused(&mut map, refused);
            others.insert(name.as_str(), map);
        }
        let mut not_heard = Map::new();
        {
            let known = self.context.refused.lock();
            for (topic, why) in known.iter() {
                not_heard.insert(topic.as_str(), why.as_str());
            }
        }
        let counts = self.node.counts();
        let mut status = Map::new();
        status.insert("node", self.node.names().full());
        status.insert("topics", topics);
        status.insert("misfits", misfits);
        status.insert("notListenedTo", not_heard);
        status.insert("refusedElsewhere", others);
        status.insert("stored", count(self.recorder.counts.stored.load(Ordering::Relaxed)));
        status.insert("notStored", count(self.recorder.counts.refused.load(Ordering::Relaxed)));
        let told_before = self.recorder.counts.told_before.load(Ordering::Relaxed);
        status.insert("toldBefore", count(told_before));
        status.insert("otherTypes", count(counts.other_types));
        status.insert("malformed", count(counts.malformed));
        status.insert("badTokens", count(counts.tokens));
        status.insert("droppedByDepth", count(counts.dropped));
        status.insert("transformsRefused", count(self.context.frames.refused()));
        status.insert("eventsNotPublished", count(self.announcer.dropped()));
        Value::Object(status)
    }

    /// Takes out what belongs to topics that rules are for, under the names that the rules have.
    fn heard_as_the_rules_call_it(
        &self,
        refused: &mut BTreeMap<(EntityKind, String), Refused>,
    ) -> BTreeMap<String, Refused> {
        let mut heard = BTreeMap::new();
        let ingest = self.context.ingest();
        refused.retain(|(kind, name), refused| {
            let topic = self.context.topic_of(&self.node, name);
            let topic = topic.filter(|topic| ingest.rules.topics().any(|r| r.topic.matches(topic)));
            match topic {
                Some(topic) if *kind == EntityKind::Subscription => {
                    heard.insert(topic, std::mem::take(refused));
                    false
                }
                _ => true,
            }
        });
        heard
    }
}
