//! Active memories of the tasks and agents that were lately written to, least worth first: a store above its capacity finds
//! in it what to put aside, and need not read all of them. It is a hint. Each memory is read again before it is put aside,
//! and a restart begins with nothing.

use std::collections::{BTreeSet, HashMap, HashSet};

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use parking_lot::Mutex;

use crate::state::Memory;
use crate::words::MemoryType;

/// Memories that are kept in mind before all are let go of: about 15 MB.
const MOST_KEPT: usize = 100_000;

/// The worth of a memory: relevance, then time, then id. What is worth least comes first.
type Worth = (u64, i64, String);

/// A memory, as far as eviction goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EvictionEntry {
    id: String,
    /// None of a critical memory, which is never put aside.
    worth: Option<Worth>,
    kind: MemoryType,
    is_active: bool,
}

impl EvictionEntry {
    pub(crate) fn of(memory: &Memory) -> Self {
        let at = Timestamp::parse(&memory.timestamp).map_or(0, |at| at.as_micros());
        // Of numbers that are not negative the bits are in the order of the numbers.
        let relevance = memory.relevance_score.max(0.0).to_bits();
        let id = memory.memory_id.clone();
        Self {
            worth: (!memory.is_critical).then(|| (relevance, at, id.clone())),
            id,
            kind: memory.memory_type,
            is_active: !memory.archived,
        }
    }
}

/// The active memories of one kind under one handle, in order of eviction.
#[derive(Debug)]
struct EvictionOrder {
    kind: MemoryType,
    /// All of the store are in it.
    is_whole: bool,
    by_id: HashMap<String, Option<Worth>>,
    worst: BTreeSet<Worth>,
    /// Those that stopped counting while the others were read.
    gone: HashSet<String>,
}

impl EvictionOrder {
    fn take_out(&mut self, id: &str) {
        if let Some(Some(worth)) = self.by_id.remove(id) {
            self.worst.remove(&worth);
        }
        if !self.is_whole {
            self.gone.insert(id.to_owned());
        }
    }

    fn put(&mut self, entry: &EvictionEntry) {
        self.take_out(&entry.id);
        if entry.is_active && entry.kind == self.kind {
            self.gone.remove(&entry.id);
            self.worst.extend(entry.worth.clone());
            self.by_id.insert(entry.id.clone(), entry.worth.clone());
        }
    }
}

/// The active memories of tasks and agents, by handle.
#[derive(Debug, Default)]
pub(crate) struct ActiveMemories(Mutex<HashMap<Ref, EvictionOrder>>);

impl ActiveMemories {
    fn with<T>(&self, f: impl FnOnce(&mut HashMap<Ref, EvictionOrder>) -> T) -> T {
        f(&mut self.0.lock())
    }

    /// Returns those to put aside so that one more fits into the capacity, at most so many. `None` if the memories under this
    /// handle must be read first.
    pub(crate) fn excess(&self, handle: &Ref, capacity: usize, most: usize) -> Option<Vec<String>> {
        self.with(|orders| {
            let order = orders.get(handle).filter(|order| order.is_whole)?;
            let over = (order.by_id.len() + 1).saturating_sub(capacity);
            let worst = order.worst.iter().take(over.min(most));
            Some(worst.map(|(_, _, id)| id.clone()).collect())
        })
    }

    /// Begins an order. What changes from now on is noted in it, so that no change is missed while the rest is read.
    pub(crate) fn begin(&self, handle: &Ref, kind: MemoryType) {
        self.with(|orders| {
            let kept: usize = orders.values().map(|order| order.by_id.len()).sum();
            if kept > MOST_KEPT {
                orders.clear();
            }
            orders.entry(handle.clone()).or_insert_with(|| EvictionOrder {
                kind,
                is_whole: false,
                by_id: HashMap::new(),
                worst: BTreeSet::new(),
                gone: HashSet::new(),
            });
        });
    }

    /// Adds what was read. The order is whole then.
    pub(crate) fn complete(&self, handle: &Ref, read: impl IntoIterator<Item = EvictionEntry>) {
        self.with(|orders| {
            let Some(order) = orders.get_mut(handle) else { return };
            for entry in read {
                let is_newer =
                    order.gone.contains(&entry.id) || order.by_id.contains_key(&entry.id);
                if !is_newer {
                    order.put(&entry);
                }
            }
            order.is_whole = true;
            order.gone.clear();
        });
    }

    /// Notes a memory that was written, under one of its handles.
    pub(crate) fn note(&self, handle: &Ref, entry: &EvictionEntry) {
        self.with(|orders| {
            if let Some(order) = orders.get_mut(handle) {
                order.put(entry);
            }
        });
    }

    /// Notes that a memory is not there any more.
    pub(crate) fn remove(&self, handle: &Ref, id: &str) {
        self.with(|orders| {
            if let Some(order) = orders.get_mut(handle) {
                order.take_out(id);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, relevance: f64, at: i64, is_critical: bool) -> EvictionEntry {
        EvictionEntry {
            id: id.to_owned(),
            worth: (!is_critical).then(|| (relevance.to_bits(), at, id.to_owned())),
            kind: MemoryType::Episodic,
            is_active: true,
        }
    }

    #[test]
    fn the_least_worth_goes_first_and_critical_ones_stay() {
        let handle: Ref = "Entity/ct.t".parse().unwrap();
        let active_memories = ActiveMemories::default();
        assert_eq!(active_memories.excess(&handle, 2, 9), None, "nobody has read them");
        active_memories.begin(&handle, MemoryType::Episodic);
        assert_eq!(active_memories.excess(&handle, 2, 9), None);
        // While the others are read, one is written, one changes and one goes.
        active_memories.note(&handle, &entry("new", 0.9, 4, false));
        active_memories.note(&handle, &entry("raised", 0.8, 1, false));
        active_memories.remove(&handle, "gone");
        let read = [
            entry("gone", 0.0, 0, false),
            entry("raised", 0.1, 1, false),
            entry("old", 0.5, 1, false),
            entry("critical", 0.0, 0, true),
        ];
        active_memories.complete(&handle, read);
        let excess = |capacity| active_memories.excess(&handle, capacity, 9).unwrap();
        assert_eq!(excess(5), Vec::<String>::new());
        assert_eq!(excess(3), ["old", "raised"]);
        assert_eq!(excess(0), ["old", "raised", "new"], "there are no more to put aside");
        assert_eq!(active_memories.excess(&handle, 0, 1).unwrap(), ["old"]);
        active_memories
            .note(&handle, &EvictionEntry { is_active: false, ..entry("old", 0.5, 1, false) });
        active_memories.note(
            &handle,
            &EvictionEntry { kind: MemoryType::Semantic, ..entry("new", 0.9, 4, false) },
        );
        assert_eq!(excess(2), ["raised"], "of the two that are left and one more");
    }
}
