//! What ROS brought so far, for `status`.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::Participant;

fn count(number: u64) -> Value {
    Value::Number(Number::from(number))
}

impl Participant {
    /// The node, what came of each topic, and what was refused.
    pub fn status(&self) -> Value {
        let mut topics = Map::new();
        {
            let intake = self.context.intake();
            for (topic, counters) in intake.rules.counters() {
                topics.insert(topic, counters.to_value());
            }
        }
        let mut refused = Map::new();
        {
            let known = self.context.refused.lock().unwrap_or_else(PoisonError::into_inner);
            for (topic, why) in known.iter() {
                refused.insert(topic.as_str(), why.as_str());
            }
        }
        let counts = self.node.counts();
        let mut status = Map::new();
        status.insert("node", self.node.names().full());
        status.insert("topics", topics);
        status.insert("notListenedTo", refused);
        status.insert("stored", count(self.recorder.counts.stored.load(Ordering::Relaxed)));
        status.insert("notStored", count(self.recorder.counts.refused.load(Ordering::Relaxed)));
        status.insert("otherTypes", count(counts.other_types));
        status.insert("malformed", count(counts.malformed));
        status.insert("droppedByDepth", count(counts.dropped));
        status.insert("transformsRefused", count(self.context.frames.refused()));
        status.insert("eventsNotPublished", count(self.announcer.dropped()));
        Value::Object(status)
    }
}
