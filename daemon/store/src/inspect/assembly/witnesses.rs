//! Facts that only second copies hold: lost tombstones end what they ended, and a lost
//! newest version is named.

use std::collections::HashMap;

use super::Assembly;
use crate::inspect::Store;
use crate::inspect::finding::{Finding, Kind};
use crate::inspect::history::{Act, Event};
use crate::log::wal;
use crate::log::witness::{self, Fact};
use crate::recorded::ref_key::{KeyPrefix, RefKey};
use crate::recorded::tombstone::{EndCause, Target, Tombstone};

/// Facts about a name in the files themselves.
struct KnownName {
    name: Target,
    order: (u64, u32),
    /// The newest version that can be read.
    version: Option<u64>,
}

impl Assembly {
    /// Takes in what the witnesses of logs say, where nothing as new can be read.
    pub(super) fn hear_witnesses(&mut self, store: &Store) {
        let mut facts: HashMap<KeyPrefix, (Fact, String)> = HashMap::new();
        for name in store.names(wal::DIR).unwrap_or_default() {
            let Some(number) = witness::number_of(&name) else { continue };
            for fact in witness::load(&*store.disk, number).facts {
                let told = facts.get(&fact.key);
                if told.is_none_or(|(told, _)| told.order() < fact.order()) {
                    facts.insert(fact.key, (fact, witness::path(number)));
                }
            }
        }
        let known = self.known();
        let mut told: Vec<(Fact, String)> = facts.into_values().collect();
        told.sort_by_key(|(fact, _)| fact.order());
        for (fact, file) in told {
            match known.get(&fact.key) {
                Some(known) if known.order < fact.order() => self.take(&fact, &file, known),
                // Of a name of which nothing can be read there is nothing to bring back.
                _ => {}
            }
        }
    }

    fn known(&self) -> HashMap<KeyPrefix, KnownName> {
        let mut known: HashMap<KeyPrefix, KnownName> = HashMap::new();
        for event in self.intervals.iter().flat_map(|interval| &interval.events) {
            let (key, name, version) = match &event.act {
                Act::Put(version) => {
                    let name = Target::Name(version.target.to_string());
                    (RefKey::of(&version.target), name, Some(version.stamp.version))
                }
                Act::Forget(tombstone) => (tombstone.key(), tombstone.target.clone(), None),
                Act::Touch(_) => continue,
            };
            let order = (event.seq, event.ordinal);
            let held = known.entry(key.prefix()).or_insert(KnownName { name, order, version });
            if held.order <= order {
                (held.order, held.version) = (order, version);
            }
        }
        known
    }

    fn take(&mut self, fact: &Fact, file: &str, known: &KnownName) {
        let seq = fact.stamp.seq;
        match fact.by() {
            Some(by) => {
                // An interval takes what lies within it; what comes after all of them goes to the last.
                let at = self.intervals.iter().rposition(|interval| interval.first <= seq);
                let Some(interval) = at.and_then(|at| self.intervals.get_mut(at)) else { return };
                let seq = seq.clamp(interval.first, interval.last.max(interval.first));
                let (target, ending) = (known.name.clone(), EndCause::Forgotten(by));
                let tombstone = Tombstone { target, stamp: fact.stamp, ending };
                let act = Act::Forget(tombstone);
                interval.events.push(Event { seq, ordinal: fact.stamp.ordinal, act });
                interval.events.sort_by_key(|event| (event.seq, event.ordinal));
            }
            None => {
                let missing = fact.stamp.version;
                let message = match known.version {
                    Some(readable) => format!(
                        "version {missing} of a memory is lost; version {readable} is the newest that can be read, \
                         and the daemon withholds it"
                    ),
                    None => format!("version {missing} of a memory is lost"),
                };
                let mut finding = Finding::new(Kind::VersionLost, file, message);
                if let Target::Name(name) = &known.name {
                    finding.names.push(name.clone());
                }
                finding.transactions = Some((seq, seq));
                self.findings.push(finding);
            }
        }
    }
}
