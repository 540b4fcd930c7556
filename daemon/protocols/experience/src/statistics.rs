//! The statistics of nodes and patterns: a table in memory, rebuilt at each start.
//!
//! Each experience leaves a row that says what it used and how that ended, so that an update or a forgotten experience takes
//! its part back. Nothing of it is on the card. The table has a bound in bytes ([`Table::new`]). Where it is reached the
//! experiences that were stored first stop counting; they stay stored and are found as before. What counts follows from the
//! transactions alone and not from the order in which rows are put, so a restart counts the same.
//!
//! The listener that fills the table runs on the thread that gives the writer's answers. So a change costs by what the
//! experience used, and never by what the table holds.

use std::collections::{BTreeMap, HashMap, HashSet};
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

    /// Returns what it used with success.
    pub(crate) fn succeeded(&self) -> impl Iterator<Item = &Key> {
        self.uses.iter().filter(|used| used.halves == 2).map(|used| &used.thing)
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
    /// No use ended later.
    last: Option<Timestamp>,
    /// The uses that ended at `last`. Without any the latest is not known: [`Table::latest`] looks for it.
    at_last: u64,
}

impl Count {
    fn add(&mut self, used: &Use, finished: Timestamp) {
        self.uses += 1;
        self.halves += u64::from(used.halves);
        self.timed += u64::from(used.took.is_some());
        self.millis += u64::from(used.took.unwrap_or(0));
        self.note_end(finished);
    }

    fn note_end(&mut self, finished: Timestamp) {
        match self.last {
            Some(last) if finished < last => {}
            Some(last) if finished == last => self.at_last += 1,
            _ => (self.last, self.at_last) = (Some(finished), 1),
        }
    }

    fn take_back(&mut self, used: &Use, finished: Timestamp) {
        self.uses = self.uses.saturating_sub(1);
        self.halves = self.halves.saturating_sub(u64::from(used.halves));
        self.timed = self.timed.saturating_sub(u64::from(used.took.is_some()));
        self.millis = self.millis.saturating_sub(u64::from(used.took.unwrap_or(0)));
        if self.last == Some(finished) {
            self.at_last = self.at_last.saturating_sub(1);
        }
    }
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
}

/// The experiences of one tenant: at least one.
#[derive(Debug, Default)]
struct Rows {
    /// The change of the table that changed these last.
    generation: u64,
    rows: HashMap<Key, Row>,
    things: HashMap<Key, Count>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    tenants: HashMap<Arc<str>, Rows>,
    /// All experiences, in the order in which they were stored. One transaction may store several.
    order: BTreeMap<(u64, Key), Arc<str>>,
    /// The latest of those that had to make room. What was stored before does not count either.
    evicted: Option<(u64, Key)>,
    /// Changes so far.
    changes: u64,
    /// The latest change that left a tenant without experiences that count, or found it so.
    emptied: u64,
    bytes: usize,
    most: usize,
}

/// Memory of one thing with its place in the table.
const THING: usize = 2 * (size_of::<Key>() + size_of::<Count>());

impl Table {
    /// Returns an empty table of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (tenants, order) = (HashMap::new(), BTreeMap::new());
        Self { tenants, order, evicted: None, changes: 0, emptied: 0, bytes: 0, most }
    }

    /// Puts an experience in the place of an older version of it. One that is as new stays.
    pub(crate) fn put(&mut self, tenant: &str, key: Key, row: Row) {
        if self.seq(tenant, &key).is_some_and(|seq| seq >= row.seq) {
            return;
        }
        let place = (row.seq, key);
        if self.evicted.is_some_and(|evicted| place <= evicted) {
            // It does not count, but an answer may rest on it.
            return self.remove(tenant, &key, row.seq);
        }
        let known = self.tenants.get_key_value(tenant);
        let name = known.map_or_else(|| Arc::from(tenant), |(name, _)| name.clone());
        let rows = self.tenants.entry(name.clone()).or_default();
        self.changes += 1;
        rows.generation = self.changes;
        self.bytes += row.bytes();
        for used in &row.uses {
            let count = rows.things.entry(used.thing).or_insert_with(|| {
                self.bytes += THING;
                Count::default()
            });
            count.add(used, row.finished);
        }
        // The new version counts already, so that taking the old one back leaves the latest use known.
        if let Some(old) = rows.rows.insert(key, row) {
            self.order.remove(&(old.seq, key));
            self.take_back(tenant, &old);
        }
        self.order.insert(place, name);
        while self.bytes > self.most && self.order.len() > 1 {
            let Some((first, tenant)) = self.order.pop_first() else { break };
            self.evicted = Some(first);
            self.drop_row(&tenant, &first.1);
        }
    }

    /// Removes an experience that the transaction `seq` took away, unless a later one has stored it again. One that does not
    /// count is a change too: an answer may rest on it.
    pub(crate) fn remove(&mut self, tenant: &str, key: &Key, seq: u64) {
        match self.seq(tenant, key) {
            Some(known) if known > seq => {}
            Some(known) => {
                self.order.remove(&(known, *key));
                self.drop_row(tenant, key);
            }
            None => {
                self.changes += 1;
                let rows = self.tenants.get_mut(tenant);
                *rows.map_or(&mut self.emptied, |rows| &mut rows.generation) = self.changes;
            }
        }
    }

    fn drop_row(&mut self, tenant: &str, key: &Key) {
        let Some(rows) = self.tenants.get_mut(tenant) else { return };
        let Some(row) = rows.rows.remove(key) else { return };
        self.changes += 1;
        rows.generation = self.changes;
        let is_empty = rows.rows.is_empty();
        self.take_back(tenant, &row);
        if is_empty {
            // Anybody may write under the name of any tenant: names that are left would pile up.
            self.tenants.remove(tenant);
            self.emptied = self.changes;
        }
    }

    /// Takes back what a row, which is in the table no more, has added.
    fn take_back(&mut self, tenant: &str, row: &Row) {
        self.bytes = self.bytes.saturating_sub(row.bytes());
        let Some(Rows { things, .. }) = self.tenants.get_mut(tenant) else { return };
        for used in &row.uses {
            let Some(count) = things.get_mut(&used.thing) else { continue };
            count.take_back(used, row.finished);
            if count.uses == 0 {
                things.remove(&used.thing);
                self.bytes = self.bytes.saturating_sub(THING);
            }
        }
    }

    /// Returns what is known of a thing, but for the time of its latest use.
    pub(crate) fn usage(&self, tenant: &str, thing: &Key) -> Usage {
        let count = self.tenants.get(tenant).and_then(|rows| rows.things.get(thing));
        let Some(count) = count else { return Usage::default() };
        Usage {
            uses: count.uses,
            successes: count.halves as f64 / 2.0,
            mean_ms: (count.timed > 0).then(|| (count.millis + count.timed / 2) / count.timed),
        }
    }

    /// Returns the times at which the latest uses of these things ended. For the few that are shown: where the latest use
    /// was taken back, all rows of the tenant are looked at, once for all of the things.
    pub(crate) fn latest(&mut self, tenant: &str, shown: &[Key]) -> Vec<Option<Timestamp>> {
        let Some(Rows { rows, things, .. }) = self.tenants.get_mut(tenant) else {
            return vec![None; shown.len()];
        };
        let is_unknown = |thing: &&Key| things.get(*thing).is_some_and(|count| count.at_last == 0);
        let unknown: HashSet<Key> = shown.iter().filter(is_unknown).copied().collect();
        if !unknown.is_empty() {
            for thing in &unknown {
                if let Some(count) = things.get_mut(thing) {
                    count.last = None;
                }
            }
            for row in rows.values() {
                for used in row.uses.iter().filter(|used| unknown.contains(&used.thing)) {
                    if let Some(count) = things.get_mut(&used.thing) {
                        count.note_end(row.finished);
                    }
                }
            }
        }
        shown.iter().map(|thing| things.get(thing).and_then(|count| count.last)).collect()
    }

    /// Returns a number that changes with each experience of the tenant that comes, changes or goes.
    pub(crate) fn generation(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).map_or(self.emptied, |rows| rows.generation)
    }

    /// Returns the transaction that stored an experience, if it is counted.
    pub(crate) fn seq(&self, tenant: &str, key: &Key) -> Option<u64> {
        Some(self.tenants.get(tenant)?.rows.get(key)?.seq)
    }

    /// Returns true if some experience had to make room for others.
    pub(crate) fn is_cut(&self) -> bool {
        self.evicted.is_some()
    }

    /// Returns the experience of this number. Looks at each one of the tenant.
    pub(crate) fn by_id(&self, tenant: &str, experience_id: u64) -> Option<Key> {
        let rows = &self.tenants.get(tenant)?.rows;
        let is_it = |row: &&Row| row.experience_id == experience_id;
        rows.iter().find(|(_, row)| is_it(row)).map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests;
