//! Extensions of ours that more than one crate writes and reads. What each of them means stands in
//! `docs/extensions.md`.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::instant::Instant;
use crate::model::{Extension, MemoryRecord};
use crate::value::{Map, Value};

/// Observations that were merged into a record: see [`Consolidated`].
pub const CONSOLIDATED_URL: &str = "urn:omird:ext:consolidated";
/// On a memory that a step of the map moved: its pose in the map before that, and by what; likewise of the
/// steps before it. On the record of a step: where the keyframes came to lie.
pub const REBASE_URL: &str = "urn:omird:ext:rebase";
/// The reason why a record has no place in the fixed frame.
pub const UNPLACED_URL: &str = "urn:omird:ext:unplaced";

/// On a record with an owner, a program or a protocol: it is never consolidated with others. Its value names the owner.
pub const OWNED_URL: &str = "urn:omird:ext:owned";

/// On the record of a task that an agent reported: its body, as the experience contract has it.
pub const EXPERIENCE_URL: &str = "urn:omird:ext:experience";

/// On each record of COMPASS: what that protocol knows of it and OMIR has no member for.
pub const COMPASS_URL: &str = "urn:omird:ext:compass";

/// On each record of Akashik: a unit, a conflict or an entry of the log, as that protocol has it.
pub const AKASHIK_URL: &str = "urn:omird:ext:akashik";

/// The extensions that mark a record as owned: [`OWNED_URL`] for programs of others, and one for each protocol of
/// ours. Two runs of one task look alike and are two experiences.
const OWNERS: [&str; 4] = [OWNED_URL, EXPERIENCE_URL, COMPASS_URL, AKASHIK_URL];

/// Returns true if the record has an owner, so that it is never consolidated with others.
pub fn is_owned(record: &MemoryRecord) -> bool {
    record.extension.iter().flatten().any(|extension| OWNERS.contains(&extension.url.as_str()))
}

/// Most ids that are listed of what became part of a record; the count is exact beyond it.
const MAX_IDS: usize = 8;

/// Evidence for and against, beyond the prior.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// For.
    pub alpha: f64,
    /// Against.
    pub beta: f64,
}

impl Evidence {
    /// Returns true if there is any.
    pub fn is_some(self) -> bool {
        self.alpha > 0.0 || self.beta > 0.0
    }
}

/// The observations that a record stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidated {
    /// Their number, its own included; at least 1.
    pub count: u64,
    /// Time at which the earliest of them happened.
    pub first: Instant,
    /// Time at which the latest of them happened.
    pub last: Instant,
    /// Ids of those that became part of it.
    pub from: Vec<String>,
    /// The evidence of each source.
    pub evidence: BTreeMap<String, Evidence>,
}

impl Consolidated {
    /// Reads it from a record; one that says nothing stands for itself.
    pub fn of(record: &MemoryRecord) -> Self {
        let at = record.event_time.as_ref().unwrap_or(&record.created_at);
        let mut known = Self {
            count: 1,
            first: at.clone(),
            last: at.clone(),
            from: Vec::new(),
            evidence: BTreeMap::new(),
        };
        let mut extensions = record.extension.iter().flatten();
        let said = extensions.find(|extension| extension.url == CONSOLIDATED_URL);
        if let Some(Value::Object(map)) = said.and_then(|said| said.value_json.as_ref()) {
            known.read(map);
        }
        known
    }

    fn read(&mut self, map: &Map) {
        let at = |name: &str| map.get(name).and_then(Value::as_str)?.parse::<Instant>().ok();
        self.count = map.get("count").and_then(Value::as_u64).unwrap_or(1).max(1);
        if let Some(first) = at("first").filter(|first| first.at() < self.first.at()) {
            self.first = first;
        }
        if let Some(last) = at("last").filter(|last| last.at() > self.last.at()) {
            self.last = last;
        }
        let items = |name: &str| map.get(name).and_then(Value::as_array).into_iter().flatten();
        self.from = items("from").filter_map(|id| id.as_str().map(ToString::to_string)).collect();
        let sources = map.get("evidence").and_then(Value::as_object);
        for (source, evidence) in sources.into_iter().flat_map(Map::iter) {
            let mut numbers = evidence.as_array().into_iter().flatten().map(Value::as_f64);
            let mut next = || numbers.next().flatten().unwrap_or(0.0);
            self.note(source, Evidence { alpha: next(), beta: next() });
        }
        // As it was written before: a list of objects.
        for source in items("evidence") {
            let float = |name: &str| source.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let evidence = Evidence { alpha: float("alpha"), beta: float("beta") };
            if let Some(name) = source.get("source").and_then(Value::as_str) {
                self.note(name, evidence);
            }
        }
    }

    fn note(&mut self, source: &str, evidence: Evidence) {
        if evidence.is_some() {
            self.evidence.insert(source.to_string(), evidence);
        }
    }

    /// Lets a record say this, in the place of what it said before.
    pub fn write_to(&self, record: &mut MemoryRecord) {
        let extensions = record.extension.get_or_insert_default();
        extensions.retain(|extension| extension.url != CONSOLIDATED_URL);
        extensions.push(self.to_extension());
    }

    /// As an extension.
    pub fn to_extension(&self) -> Extension {
        let mut map = Map::new();
        map.insert("count", self.count);
        map.insert("first", self.first.as_str());
        map.insert("last", self.last.as_str());
        map.insert("from", self.from.iter().take(MAX_IDS).map(String::as_str).collect::<Value>());
        let mut evidence = Map::new();
        for (source, Evidence { alpha, beta }) in &self.evidence {
            evidence.insert(source.as_str(), Value::from_iter([*alpha, *beta]));
        }
        map.insert("evidence", evidence);
        Extension::json(CONSOLIDATED_URL, map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let created = at("2026-06-01T00:00:00Z");
        let mut record = MemoryRecord::new("m".parse().unwrap(), "a cup", created.clone());
        let alone = Consolidated::of(&record);
        assert_eq!((alone.count, &alone.first, &alone.last), (1, &created, &created));
        let evidence = Evidence { alpha: 2.0, beta: 0.5 };
        let known = Consolidated {
            count: 3,
            first: at("2026-05-01T00:00:00.25Z"),
            last: at("2026-06-02T00:00:00Z"),
            from: ["a", "b"].map(ToString::to_string).into(),
            evidence: [("camera:1".to_string(), evidence)].into(),
        };
        for _ in 0..2 {
            known.write_to(&mut record);
            assert_eq!(Consolidated::of(&record), known);
            assert_eq!(record.extension.as_ref().map(Vec::len), Some(1), "said once");
        }
        // The record's own event time is one of them.
        record.event_time = Some(at("2026-06-03T00:00:00Z"));
        assert_eq!(Consolidated::of(&record).last, at("2026-06-03T00:00:00Z"));
        record.event_time = Some(at("2026-04-01T00:00:00Z"));
        assert_eq!(Consolidated::of(&record).first, at("2026-04-01T00:00:00Z"));
    }

    #[test]
    fn the_list_of_ids_is_bounded_and_the_count_is_not() {
        let mut record =
            MemoryRecord::new("m".parse().unwrap(), "a cup", at("2026-06-01T00:00:00Z"));
        let mut known = Consolidated::of(&record);
        known.from = (0..100).map(|n| n.to_string()).collect();
        known.count = 101;
        known.write_to(&mut record);
        let read = Consolidated::of(&record);
        assert_eq!((read.count, read.from.len()), (101, MAX_IDS));
    }
}
