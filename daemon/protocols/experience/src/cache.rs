//! Answers kept for a minute.
//!
//! | cache status | when | what is done |
//! |---|---|---|
//! | `hit` | no experience of the tenant has changed since | nothing |
//! | `partial` | one has, and none of the candidates | the candidates are taken again, statistics and order made again |
//! | `miss` | nothing is kept, or it is older, or a candidate has changed | everything |

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::reference::Ref;
use omir_core::value::Value;

use crate::ranking::Candidate;

/// Answers that are kept.
const MOST: usize = 256;
/// Bytes of memory that they may take.
const MOST_BYTES: usize = 8 << 20;
/// The time for which candidates are good.
const KEPT: Duration = Duration::from_secs(60);

/// A question: two requests with the same answer have the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) tenant: String,
    pub(crate) query_type: String,
    pub(crate) text: String,
    pub(crate) domain: Option<String>,
    /// Sorted.
    pub(crate) tools: Vec<String>,
    pub(crate) max_hints: usize,
    /// The place, as it was asked for.
    pub(crate) place: Vec<(String, String)>,
}

impl Question {
    fn bytes(&self) -> usize {
        let tools: usize = self.tools.iter().map(|tool| tool.len() + 24).sum();
        let place: usize = self.place.iter().map(|(a, b)| a.len() + b.len() + 48).sum();
        let domain = self.domain.as_ref().map_or(0, String::len);
        self.tenant.len() + self.query_type.len() + self.text.len() + domain + tools + place + 200
    }
}

/// A candidate, and the version of the experience that it was drawn from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VersionedCandidate {
    pub(crate) candidate: Candidate,
    pub(crate) target: Ref,
    /// The version and the transaction that made it.
    pub(crate) version: Option<(u64, u64)>,
    /// Its resource without the body: enough for the store to count an access.
    pub(crate) stub: Vec<u8>,
}

impl VersionedCandidate {
    fn bytes(&self) -> usize {
        let Candidate { task_id, nodes, patterns, .. } = &self.candidate;
        let title = |title: &Option<String>| title.as_ref().map_or(0, String::len);
        let nodes: usize = nodes
            .iter()
            .map(|node| node.node_type.len() + node.reference.len() + title(&node.title) + 112)
            .sum();
        let patterns: usize = patterns.iter().map(|known| known.slug.len() + 40).sum();
        task_id.len() + nodes + patterns + self.stub.len() + 400
    }
}

/// A moment, by the clock of the process and by that of the store: an experience counts until a date, which comes sooner where
/// the operator sets the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) monotonic: Instant,
    /// Microseconds since 1970.
    pub(crate) dated: i64,
}

impl Moment {
    /// Returns true if an answer of `then` is too old now.
    fn is_past(self, then: Self) -> bool {
        let dated = Duration::from_micros(self.dated.abs_diff(then.dated));
        self.monotonic.saturating_duration_since(then.monotonic).max(dated) >= KEPT
    }
}

/// An answer as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct CachedAnswer {
    pub(crate) candidates: Arc<[VersionedCandidate]>,
    pub(crate) hints: Arc<[Value]>,
    /// The state of the tenant's experiences that the hints are of.
    pub(crate) generation: u64,
    /// The moment at which the candidates were found.
    pub(crate) born: Moment,
    /// The tasks that the hints rest on.
    pub(crate) supports: Arc<[usize]>,
}

#[derive(Debug)]
struct Entry {
    kept: CachedAnswer,
    bytes: usize,
    /// The number of its latest use.
    used: u64,
}

/// The answers that are kept.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: HashMap<Question, Entry>,
    bytes: usize,
    uses: u64,
}

impl Cache {
    /// Returns the answer to a question, if it is not too old by `now`.
    pub(crate) fn get(&mut self, question: &Question, now: Moment) -> Option<CachedAnswer> {
        let is_old = |entry: &Entry| now.is_past(entry.kept.born);
        if self.entries.get(question).is_some_and(is_old) {
            self.remove(&question.clone());
        }
        let entry = self.entries.get_mut(question)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(entry.kept.clone())
    }

    /// Keeps an answer. Those that were not asked for longest make room.
    pub(crate) fn put(&mut self, question: Question, kept: CachedAnswer) {
        // Hints are the texts of the candidates once more, at most.
        let candidates: usize = kept.candidates.iter().map(VersionedCandidate::bytes).sum();
        let bytes = question.bytes() + 2 * candidates;
        self.remove(&question);
        if bytes > MOST_BYTES {
            return;
        }
        while self.entries.len() >= MOST || self.bytes + bytes > MOST_BYTES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(question) = oldest.map(|(question, _)| question.clone()) else { break };
            self.remove(&question);
        }
        self.uses += 1;
        self.bytes += bytes;
        self.entries.insert(question, Entry { kept, bytes, used: self.uses });
    }

    fn remove(&mut self, question: &Question) {
        if let Some(entry) = self.entries.remove(question) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &str) -> Question {
        Question {
            tenant: "default".into(),
            query_type: "intent".into(),
            text: text.into(),
            domain: None,
            tools: Vec::new(),
            max_hints: 10,
            place: Vec::new(),
        }
    }

    fn moment() -> Moment {
        Moment { monotonic: Instant::now(), dated: 1_700_000_000_000_000 }
    }

    fn kept(born: Moment, bytes: usize) -> CachedAnswer {
        let candidate = Candidate {
            task_id: "t".repeat(bytes),
            similarity: 1.0,
            retrievability: 1.0,
            domain: None,
            nodes: Vec::new(),
            patterns: Vec::new(),
        };
        let target = "MemoryRecord/a".parse().unwrap();
        let drawn = VersionedCandidate { candidate, target, version: None, stub: Vec::new() };
        let (hints, supports) = (Arc::new([]), Arc::new([]));
        CachedAnswer { candidates: Arc::new([drawn]), hints, generation: 1, born, supports }
    }

    #[test]
    fn an_answer_is_kept_for_a_minute() {
        let (mut cache, now) = (Cache::default(), moment());
        cache.put(question("a"), kept(now, 1));
        let later = |time: Duration| Moment { monotonic: now.monotonic + time, ..now };
        assert!(cache.get(&question("a"), later(Duration::from_secs(59))).is_some());
        for other in [
            Question { tenant: "b".into(), ..question("a") },
            Question { domain: Some("code".into()), ..question("a") },
            Question { tools: vec!["x".into()], ..question("a") },
            Question { max_hints: 9, ..question("a") },
            Question { place: vec![("near".into(), "1,2".into())], ..question("a") },
        ] {
            assert!(cache.get(&other, now).is_none(), "{other:?}");
        }
        assert!(cache.get(&question("a"), later(KEPT)).is_none());
        assert_eq!((cache.entries.len(), cache.bytes), (0, 0));
    }

    #[test]
    fn an_answer_is_not_kept_when_the_clock_is_set() {
        let (mut cache, now) = (Cache::default(), moment());
        for set in [now.dated + 60_000_000, now.dated - 60_000_000, i64::MAX, i64::MIN] {
            cache.put(question("a"), kept(now, 1));
            assert!(cache.get(&question("a"), Moment { dated: set, ..now }).is_none(), "{set}");
        }
    }

    #[test]
    fn it_has_bounds_and_the_least_used_goes_first() {
        let (mut cache, now) = (Cache::default(), moment());
        for at in 0..MOST {
            cache.put(question(&at.to_string()), kept(now, 1));
        }
        assert!(cache.get(&question("0"), now).is_some());
        cache.put(question("new"), kept(now, 1));
        assert!(cache.get(&question("0"), now).is_some());
        assert!(cache.get(&question("1"), now).is_none());
        assert_eq!(cache.entries.len(), MOST);
        for at in 0..10 {
            cache.put(question(&at.to_string()), kept(now, MOST_BYTES / 8));
            assert!(cache.bytes <= MOST_BYTES);
        }
        cache.put(question("huge"), kept(now, MOST_BYTES));
        assert!(cache.get(&question("huge"), now).is_none());
        let bytes: usize = cache.entries.values().map(|entry| entry.bytes).sum();
        assert_eq!(cache.bytes, bytes);
    }
}
