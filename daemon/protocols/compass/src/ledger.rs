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

/// A memory, as far as capacities go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    id: String,
    /// None of a critical memory, which is never put aside.
    worth: Option<Worth>,
    kind: MemoryType,
    is_active: bool,
}

impl Entry {
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

/// The memories of one kind under one handle.
#[derive(Debug)]
struct Account {
    kind: MemoryType,
    /// All of the store are in it.
    is_whole: bool,
    by_id: HashMap<String, Option<Worth>>,
    worst: BTreeSet<Worth>,
    /// Those that stopped counting while the others were read.
    gone: HashSet<String>,
}

impl Account {
    fn take_out(&mut self, id: &str) {
        if let Some(Some(worth)) = self.by_id.remove(id) {
            self.worst.remove(&worth);
        }
        if !self.is_whole {
            self.gone.insert(id.to_owned());
        }
    }

    fn put(&mut self, entry: &Entry) {
        self.take_out(&entry.id);
        if entry.is_active && entry.kind == self.kind {
            self.gone.remove(&entry.id);
            self.worst.extend(entry.worth.clone());
            self.by_id.insert(entry.id.clone(), entry.worth.clone());
        }
    }
}

/// The accounts, by handle.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<HashMap<Ref, Account>>);

impl Ledger {
    fn with<T>(&self, f: impl FnOnce(&mut HashMap<Ref, Account>) -> T) -> T {
        f(&mut self.0.lock())
    }

    /// Returns those to put aside so that one more fits into the capacity, at most so many. `None` if the memories under this
    /// handle must be read first.
    pub(crate) fn excess(&self, handle: &Ref, capacity: usize, most: usize) -> Option<Vec<String>> {
        self.with(|accounts| {
            let account = accounts.get(handle).filter(|account| account.is_whole)?;
            let over = (account.by_id.len() + 1).saturating_sub(capacity);
            let worst = account.worst.iter().take(over.min(most));
            Some(worst.map(|(_, _, id)| id.clone()).collect())
        })
    }

    /// Begins an account. What changes from now on is noted in it, so that no change is missed while the rest is read.
    pub(crate) fn begin(&self, handle: &Ref, kind: MemoryType) {
        self.with(|accounts| {
            let kept: usize = accounts.values().map(|account| account.by_id.len()).sum();
            if kept > MOST_KEPT {
                accounts.clear();
            }
            accounts.entry(handle.clone()).or_insert_with(|| Account {
                kind,
                is_whole: false,
                by_id: HashMap::new(),
                worst: BTreeSet::new(),
                gone: HashSet::new(),
            });
        });
    }

    /// Adds what was read. The account is whole then.
    pub(crate) fn complete(&self, handle: &Ref, read: impl IntoIterator<Item = Entry>) {
        self.with(|accounts| {
            let Some(account) = accounts.get_mut(handle) else { return };
            for entry in read {
                let is_newer =
                    account.gone.contains(&entry.id) || account.by_id.contains_key(&entry.id);
                if !is_newer {
                    account.put(&entry);
                }
            }
            account.is_whole = true;
            account.gone.clear();
        });
    }

    /// Notes a memory that was written, under one of its handles.
    pub(crate) fn note(&self, handle: &Ref, entry: &Entry) {
        self.with(|accounts| {
            if let Some(account) = accounts.get_mut(handle) {
                account.put(entry);
            }
        });
    }

    /// Notes that a memory is not there any more.
    pub(crate) fn remove(&self, handle: &Ref, id: &str) {
        self.with(|accounts| {
            if let Some(account) = accounts.get_mut(handle) {
                account.take_out(id);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, relevance: f64, at: i64, is_critical: bool) -> Entry {
        Entry {
            id: id.to_owned(),
            worth: (!is_critical).then(|| (relevance.to_bits(), at, id.to_owned())),
            kind: MemoryType::Episodic,
            is_active: true,
        }
    }

    #[test]
    fn the_least_worth_goes_first_and_critical_ones_stay() {
        let handle: Ref = "Entity/ct.t".parse().unwrap();
        let ledger = Ledger::default();
        assert_eq!(ledger.excess(&handle, 2, 9), None, "nobody has read them");
        ledger.begin(&handle, MemoryType::Episodic);
        assert_eq!(ledger.excess(&handle, 2, 9), None);
        // While the others are read, one is written, one changes and one goes.
        ledger.note(&handle, &entry("new", 0.9, 4, false));
        ledger.note(&handle, &entry("raised", 0.8, 1, false));
        ledger.remove(&handle, "gone");
        let read = [
            entry("gone", 0.0, 0, false),
            entry("raised", 0.1, 1, false),
            entry("old", 0.5, 1, false),
            entry("critical", 0.0, 0, true),
        ];
        ledger.complete(&handle, read);
        let excess = |capacity| ledger.excess(&handle, capacity, 9).unwrap();
        assert_eq!(excess(5), Vec::<String>::new());
        assert_eq!(excess(3), ["old", "raised"]);
        assert_eq!(excess(0), ["old", "raised", "new"], "there are no more to put aside");
        assert_eq!(ledger.excess(&handle, 0, 1).unwrap(), ["old"]);
        ledger.note(&handle, &Entry { is_active: false, ..entry("old", 0.5, 1, false) });
        ledger.note(&handle, &Entry { kind: MemoryType::Semantic, ..entry("new", 0.9, 4, false) });
        assert_eq!(excess(2), ["raised"], "of the two that are left and one more");
    }
}
