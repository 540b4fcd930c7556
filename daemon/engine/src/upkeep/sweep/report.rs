//! Report of a sweep: its acts, or those of a dry run, with their causes.

use omir_core::number::Number;
use omir_core::value::{Map, Value};

use crate::write::command::Cause;

/// Most single things a report lists; its counts go on beyond them.
pub(super) const MAX_ITEMS: usize = 1000;

/// One thing a sweep did.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// To what: `Type/id`.
    pub target: String,
    /// The act and its cause.
    pub cause: Cause,
}

/// Acts of a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SweepReport {
    /// True if it only looked.
    pub dry_run: bool,
    /// Records that time moved to another tier.
    pub moved: u64,
    /// Observations that became part of another record.
    pub merged: u64,
    /// Memories forgotten because they stopped being valid long ago.
    pub expired: u64,
    /// Memories forgotten to make room.
    pub evicted: u64,
    /// The first of them, one by one.
    pub items: Vec<Item>,
    /// Its duration.
    pub took_micros: u64,
}

impl SweepReport {
    /// Returns true if there was nothing to do.
    pub fn is_empty(&self) -> bool {
        self.moved + self.merged + self.expired + self.evicted == 0
    }

    /// Counts one thing.
    pub(super) fn note(&mut self, target: &str, cause: &Cause) {
        match cause.name {
            "sweep" => self.moved += 1,
            "consolidation" => self.merged += 1,
            "expiry" => self.expired += 1,
            _ => self.evicted += 1,
        }
        if self.items.len() < MAX_ITEMS {
            self.items.push(Item { target: target.to_owned(), cause: cause.clone() });
        }
    }

    /// As it goes over the wire.
    pub fn to_value(&self) -> Value {
        let int = |n: u64| Value::Number(Number::from(n));
        let mut map = Map::new();
        map.insert("dryRun", Value::Bool(self.dry_run));
        map.insert("moved", int(self.moved));
        map.insert("merged", int(self.merged));
        map.insert("expired", int(self.expired));
        map.insert("evicted", int(self.evicted));
        map.insert("tookMicros", int(self.took_micros));
        let items = self.items.iter().map(|item| {
            let mut value = item.cause.to_value();
            if let Value::Object(map) = &mut value {
                map.insert("ref", item.target.as_str());
            }
            value
        });
        map.insert("items", Value::Array(items.collect()));
        Value::Object(map)
    }
}
