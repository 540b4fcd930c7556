//! Memories that an import has made and not handed out yet.
//!
//! A thing that is seen again is the same memory, so its resource changes while a recording is read.
//! Resources are held until there are many; those that changed longest ago go first. Each says when it
//! was updated last, in the time of the recording: one that changes after it was handed out is newer
//! by that, and the daemon takes it; importing again changes nothing. An Entity of which no more is known
//! than its name is older than anything else that is said of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use omir_core::instant::Instant;
use omir_core::value::{Map, Value};

use crate::rules::{KeptResource, UnreportedSightings, folded, reference, with_unreported};
use crate::stamp::Stamp;

/// Resources that are held back at most; they take some kilobytes each.
const MOST: usize = 16_384;
/// Bytes of these, roughly.
const MOST_BYTES: usize = 64 << 20;
/// Resources in one request.
const BATCH: usize = 256;
/// Names of what was handed out that are known; beyond it some may be handed out again.
const MOST_NAMES: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct RecordedResources {
    held: HashMap<String, HeldResource>,
    bytes: usize,
    /// References in the order in which they go.
    order: BTreeMap<u64, String>,
    turn: u64,
    gone: HashSet<String>,
    again: u64,
    untold: u64,
}

#[derive(Debug)]
struct HeldResource {
    resource: Value,
    updated: Stamp,
    turn: u64,
    weight: usize,
}

impl RecordedResources {
    pub(super) fn keep(&mut self, mut kept: KeptResource, at: Stamp) {
        for entity in std::mem::take(&mut kept.about) {
            // A bare name must not take the place of what is known of it.
            let Some(name) = reference(&entity) else { continue };
            if !self.held.contains_key(&name) && !self.gone.contains(&name) {
                self.put(name, entity, Stamp::ZERO);
            }
        }
        let Some(name) = reference(&kept.resource) else { return };
        let held = self.held.get(&name).map(|held| &held.resource);
        if let Some(resource) = folded(held, &kept) {
            self.put(name, resource, at);
        }
    }

    pub(super) fn tell(&mut self, untold: &UnreportedSightings) {
        let Some(held) = self.held.get(&untold.reference) else {
            self.untold += untold.seen;
            return;
        };
        if let Some(resource) = with_unreported(&held.resource, untold) {
            self.put(untold.reference.clone(), resource, untold.last.max(held.updated));
        }
    }

    fn put(&mut self, name: String, resource: Value, updated: Stamp) {
        self.turn += 1;
        let turn = match self.held.get(&name) {
            // Others may refer to an Entity, so it never goes later than it would.
            Some(held) if name.starts_with("Entity/") => held.turn,
            Some(held) => {
                self.order.remove(&held.turn);
                self.turn
            }
            None => self.turn,
        };
        self.order.insert(turn, name.clone());
        let weight = weight(&resource);
        self.bytes += weight;
        if let Some(before) =
            self.held.insert(name, HeldResource { resource, updated, turn, weight })
        {
            self.bytes -= before.weight;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// The next resources to go, if there are too many or it is the `end`.
    pub(super) fn batch(&mut self, end: bool) -> Option<Vec<Value>> {
        if !end && !self.is_full() {
            return None;
        }
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some((_, name)) = self.order.pop_first()
        {
            let Some(HeldResource { resource, updated, weight, .. }) = self.held.remove(&name)
            else {
                continue;
            };
            self.bytes -= weight;
            batch.push(dated(resource, updated));
            if self.gone.contains(&name) {
                self.again += 1;
            } else if self.gone.len() < MOST_NAMES {
                self.gone.insert(name);
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    pub(super) fn again(&self) -> u64 {
        self.again
    }

    pub(super) fn untold(&self) -> u64 {
        self.untold
    }
}

/// Size of a value in memory, roughly.
fn weight(value: &Value) -> usize {
    const EACH: usize = 64;
    EACH + match value {
        Value::Text(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + weight(value)).sum()
        }
        _ => 0,
    }
}

/// The resource with the time of its last change.
fn dated(resource: Value, updated: Stamp) -> Value {
    let Value::Object(mut members) = resource else { return resource };
    let mut meta = match members.get("meta") {
        Some(Value::Object(meta)) => meta.clone(),
        _ => Map::new(),
    };
    meta.insert("omirVersion", "R1");
    meta.insert("lastUpdated", Instant::from(updated).as_str());
    members.insert("meta", meta);
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;

    use super::*;

    fn value(text: &str) -> Value {
        json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn a_name_alone_is_older_than_all_else_that_is_known() {
        let cup = r#""resourceType":"Entity","id":"cup","name":"cup""#;
        let record = r#"{"resourceType":"MemoryRecord","id":"m","content":"a cup",
            "createdAt":"2026-05-30T11:00:00Z"}"#;
        let kept = |resource: &str, about: Vec<Value>| {
            let resource = value(resource);
            KeptResource { resource, about, seen: 1, is_first: true, unplaced: None, heard: None }
        };
        let updated = |batch: Vec<Value>, id: &str| {
            let found = batch.into_iter().find(|one| one.get("id") == Some(&id.into())).unwrap();
            found.pointer("/meta/lastUpdated").unwrap().as_str().unwrap().to_owned()
        };
        let at = Stamp::from_ros(1_780_000_000, 0);
        let said = Instant::from(at).as_str().to_owned();
        let mut made = RecordedResources::default();
        made.keep(kept(record, vec![value(&format!("{{{cup}}}"))]), at);
        let batch = made.batch(true).unwrap();
        assert_eq!(updated(batch.clone(), "cup"), "1970-01-01T00:00:00Z");
        assert_eq!(updated(batch, "m"), said);
        // A resource that a rule makes later takes the place of the name.
        let seen = format!(r#"{{{cup},"summary":"blue","lastSeenAt":"2026-05-30T11:00:00Z"}}"#);
        made.keep(kept(&seen, Vec::new()), at);
        assert_eq!(updated(made.batch(true).unwrap(), "cup"), said);
    }
}
