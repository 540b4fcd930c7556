//! What an import has made and not handed out yet.
//!
//! A thing that is seen again is the same memory, so its resource changes while a recording is read.
//! Resources are held until there are many; those that changed longest ago go first. Each says when it
//! was updated last, in the time of the recording: one that changes after it was handed out is newer
//! by that, and the daemon takes it; importing again changes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use omir_core::instant::Instant;
use omir_core::value::{Map, Value};

use crate::rules::{Kept, Untold, folded, told};
use crate::stamp::Stamp;

/// Resources that are held back at most; they take some kilobytes each.
const MOST: usize = 16_384;
/// Resources in one request.
const BATCH: usize = 256;
/// Names of what was handed out that are known; beyond it some may be handed out again.
const MOST_NAMES: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Made {
    held: HashMap<String, Held>,
    /// References in the order in which they go.
    order: BTreeMap<u64, String>,
    turn: u64,
    gone: HashSet<String>,
    again: u64,
    untold: u64,
}

#[derive(Debug)]
struct Held {
    resource: Value,
    updated: Stamp,
    turn: u64,
}

impl Made {
    pub(super) fn keep(&mut self, mut kept: Kept, at: Stamp) {
        for entity in std::mem::take(&mut kept.about) {
            // A bare name must not take the place of what is known of it.
            let Some(name) = reference(&entity) else { continue };
            if !self.held.contains_key(&name) && !self.gone.contains(&name) {
                self.put(name, entity, at);
            }
        }
        let Some(name) = reference(&kept.resource) else { return };
        let held = self.held.get(&name).map(|held| &held.resource);
        if let Some(resource) = folded(held, &kept) {
            self.put(name, resource, at);
        }
    }

    pub(super) fn tell(&mut self, untold: &Untold) {
        let Some(held) = self.held.get(&untold.reference) else {
            self.untold += untold.seen;
            return;
        };
        if let Some(resource) = told(&held.resource, untold) {
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
        self.held.insert(name, Held { resource, updated, turn });
    }

    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= MOST
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
            let Some(Held { resource, updated, .. }) = self.held.remove(&name) else { continue };
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

fn reference(resource: &Value) -> Option<String> {
    let text = |name| resource.get(name).and_then(Value::as_str);
    Some(format!("{}/{}", text("resourceType")?, text("id")?))
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
