//! The statistics of nodes and patterns: a table in memory, rebuilt at each start.
//!
//! Each experience leaves a row that says what it used and how that ended, so that an update or a forgotten experience takes
//! its part back. Nothing of it is on the card. The table has a bound in bytes ([`Table::new`]). Where it is reached the
//! experiences that came in first stop counting; they stay stored and are found as before.

use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::sync::Arc;

use omir_core::instant::Timestamp;

use crate::experience::Experience;
use crate::ids::{Key, key};

/// A thing that is counted: a node or a pattern.
pub(crate) fn node_key(node_type: &str, reference: &str) -> Key {
    key(&["n", node_type, reference])
}

/// As [`node_key`], of a pattern.
pub(crate) fn pattern_key(slug: &str) -> Key {
    key(&["p", slug])
}

/// One use of a thing.
#[derive(Debug, Clone, PartialEq)]
struct Use {
    thing: Key,
    /// Half successes: 2, 1 or 0.
    halves: u8,
    /// Milliseconds, where they are stated.
    took: Option<u32>,
}

/// An experience, as far as it counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The number in its `experience_id`.
    pub(crate) experience_id: u64,
    /// The transaction that stored it: a later one replaces it.
    pub(crate) seq: u64,
    finished: Timestamp,
    uses: Vec<Use>,
}

impl Row {
    /// Draws from an experience what counts.
    pub(crate) fn of(
        experience: &Experience<'_>,
        experience_id: &str,
        patterns: &[impl AsRef<str>],
        seq: u64,
    ) -> Self {
        let short = |millis: u64| u32::try_from(millis).unwrap_or(u32::MAX);
        let nodes = experience.nodes.iter().map(|node| Use {
            thing: node_key(node.node_type, node.reference),
            halves: match node.outcome {
                "success" => 2,
                "partial" => 1,
                _ => 0,
            },
            took: node.latency_ms.map(short),
        });
        let patterns = patterns.iter().map(|slug| Use {
            thing: pattern_key(slug.as_ref()),
            halves: if experience.success { 2 } else { 0 },
            took: experience.duration_ms.map(short),
        });
        let uses = nodes.chain(patterns).collect();
        let experience_id = parse_id(experience_id).unwrap_or(u64::MAX);
        Self { experience_id, seq, finished: experience.finished, uses }
    }

    /// Returns the same, as this transaction has stored it.
    pub(crate) fn stored(self, seq: u64) -> Self {
        Self { seq, ..self }
    }

    /// The memory that it takes, with its place in the tables.
    fn bytes(&self) -> usize {
        2 * size_of::<Self>() + size_of::<Use>() * self.uses.len() + 64
    }
}

/// Returns the number in `exp_` and 12 hex digits.
pub(crate) fn parse_id(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("exp_")?;
    let is_hex = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 12 || !is_hex {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// The uses of one thing by all experiences of a tenant.
#[derive(Debug, Clone, PartialEq, Default)]
struct Count {
    uses: u64,
    halves: u64,
    timed: u64,
    millis: u64,
    last: Option<Timestamp>,
}

/// The statistics of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    /// Uses by all experiences of the tenant.
    pub(crate) uses: u64,
    /// Successes, of which a partial one is half of one.
    pub(crate) successes: f64,
    /// The mean time, where uses state one.
    pub(crate) mean_ms: Option<u64>,
    /// The time at which the latest of them ended.
    pub(crate) last: Option<Timestamp>,
}

/// The experiences of one tenant.
#[derive(Debug, Default)]
struct Rows {
    /// Changes with each experience that comes, changes or goes.
    generation: u64,
    rows: HashMap<Key, (u64, Row)>,
    things: HashMap<Key, Count>,
}

impl Rows {
    fn seq(&self, key: &Key) -> Option<u64> {
        self.rows.get(key).map(|(_, row)| row.seq)
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    tenants: HashMap<Arc<str>, Rows>,
    /// All experiences, in the order in which they came.
    order: BTreeMap<u64, (Arc<str>, Key)>,
    next: u64,
    bytes: usize,
    most: usize,
}

/// Memory of one thing with its place in the table.
const THING: usize = 2 * (size_of::<Key>() + size_of::<Count>());

impl Table {
    /// Returns an empty table of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (tenants, order) = (HashMap::new(), BTreeMap::new());
        Self { tenants, order, next: 0, bytes: 0, most }
    }

    /// Puts an experience in the place of an older version of it. One that is as new stays.
    pub(crate) fn put(&mut self, tenant: &str, key: Key, row: Row) {
        let known = self.tenants.get_key_value(tenant);
        if known.is_some_and(|(_, rows)| rows.seq(&key).is_some_and(|seq| seq >= row.seq)) {
            return;
        }
        let name = known.map_or_else(|| Arc::from(tenant), |(name, _)| name.clone());
        let rows = self.tenants.entry(name.clone()).or_default();
        rows.generation += 1;
        self.bytes += row.bytes();
        for used in &row.uses {
            let count = rows.things.entry(used.thing).or_insert_with(|| {
                self.bytes += THING;
                Count::default()
            });
            count.uses += 1;
            count.halves += u64::from(used.halves);
            count.timed += u64::from(used.took.is_some());
            count.millis += u64::from(used.took.unwrap_or(0));
            count.last = count.last.max(Some(row.finished));
        }
        // The new version counts already, so that taking the old one back finds the latest use mostly unchanged.
        let order = self.next;
        self.next += 1;
        if let Some((old_order, old)) = rows.rows.insert(key, (order, row)) {
            self.order.remove(&old_order);
            self.take_back(tenant, &old);
        }
        self.order.insert(order, (name, key));
        while self.bytes > self.most && self.order.len() > 1 {
            let Some((_, (tenant, key))) = self.order.pop_first() else { break };
            self.drop_row(&tenant, &key);
        }
    }

    /// Removes an experience. One that does not count any more is a change too: an answer may rest on it.
    pub(crate) fn remove(&mut self, tenant: &str, key: &Key) {
        if let Some(order) = self.drop_row(tenant, key) {
            self.order.remove(&order);
        } else if let Some(rows) = self.tenants.get_mut(tenant) {
            rows.generation += 1;
        }
    }

    fn drop_row(&mut self, tenant: &str, key: &Key) -> Option<u64> {
        let rows = self.tenants.get_mut(tenant)?;
        let (order, row) = rows.rows.remove(key)?;
        rows.generation += 1;
        self.take_back(tenant, &row);
        Some(order)
    }

    /// Takes back what a row, which is in the table no more, has added.
    fn take_back(&mut self, tenant: &str, row: &Row) {
        self.bytes = self.bytes.saturating_sub(row.bytes());
        let Some(Rows { rows, things, .. }) = self.tenants.get_mut(tenant) else { return };
        for used in &row.uses {
            let Some(count) = things.get_mut(&used.thing) else { continue };
            count.uses = count.uses.saturating_sub(1);
            count.halves = count.halves.saturating_sub(u64::from(used.halves));
            count.timed = count.timed.saturating_sub(u64::from(used.took.is_some()));
            count.millis = count.millis.saturating_sub(u64::from(used.took.unwrap_or(0)));
            if count.uses == 0 {
                things.remove(&used.thing);
                self.bytes = self.bytes.saturating_sub(THING);
            } else if count.last == Some(row.finished) {
                // Rare: what is taken back is mostly old, and what is replaced is there in its new version.
                let is_of_it = |row: &&Row| row.uses.iter().any(|of| of.thing == used.thing);
                let left = rows.values().map(|(_, row)| row).filter(is_of_it);
                count.last = left.map(|row| row.finished).max();
            }
        }
    }

    /// Returns what is known of a thing.
    pub(crate) fn usage(&self, tenant: &str, thing: &Key) -> Usage {
        let count = self.tenants.get(tenant).and_then(|rows| rows.things.get(thing));
        let Some(count) = count else { return Usage::default() };
        Usage {
            uses: count.uses,
            successes: count.halves as f64 / 2.0,
            mean_ms: (count.timed > 0).then(|| (count.millis + count.timed / 2) / count.timed),
            last: count.last,
        }
    }

    /// Returns a number that changes with each experience of the tenant that comes, changes or goes.
    pub(crate) fn generation(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).map_or(0, |rows| rows.generation)
    }

    /// Returns the transaction that stored an experience, if it is counted.
    pub(crate) fn seq(&self, tenant: &str, key: &Key) -> Option<u64> {
        self.tenants.get(tenant)?.seq(key)
    }

    /// Returns the experience of this number. Looks at each one of the tenant.
    pub(crate) fn by_id(&self, tenant: &str, experience_id: u64) -> Option<Key> {
        let rows = &self.tenants.get(tenant)?.rows;
        let is_it = |row: &&(u64, Row)| row.1.experience_id == experience_id;
        rows.iter().find(|(_, row)| is_it(row)).map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests;
