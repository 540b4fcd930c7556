//! Putting what was published before ("transient local") and what comes now into one order.
//!
//! A subscription that comes late asks the publishers' caches while new messages already arrive,
//! and may be answered twice. rmw_zenoh leaves this to Zenoh's advanced subscriber; here the
//! sequence number in the attachment, which each publisher counts up, decides.

use std::collections::{BTreeMap, HashMap};

use super::token::Gid;

/// Publishers that are remembered; with more, an old message may be delivered again.
const PUBLISHERS: usize = 4096;
/// Messages held back at most while caches are asked.
const HELD: usize = 1024;
/// Bytes of these.
const HELD_BYTES: usize = 16 << 20;

/// The order of one subscription's messages.
pub(crate) struct Latched<T> {
    /// Questions to caches without an end yet.
    asking: usize,
    /// By publisher and sequence number.
    held: BTreeMap<(Gid, i64), (Mark, T)>,
    bytes: usize,
    last: HashMap<Gid, Mark>,
}

/// The position of a message among those of a publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) sequence: i64,
    pub(crate) source_time: i64,
}

impl Mark {
    /// Returns true if a message was delivered already, or is older than one that was. A publisher whose
    /// session has a fixed id counts from 1 again after a restart, with the same gid: then the
    /// time of sending is later although the number is not.
    fn is_behind(self, last: Self) -> bool {
        self.sequence <= last.sequence && self.source_time <= last.source_time
    }
}

impl<T> Latched<T> {
    pub(crate) fn new() -> Self {
        Self { asking: 0, held: BTreeMap::new(), bytes: 0, last: HashMap::new() }
    }

    /// A cache is being asked: hold messages back until [`Self::answered`].
    pub(crate) fn asked(&mut self) {
        self.asking += 1;
    }

    /// A cache has said all it has. Returns what can be delivered, in order.
    pub(crate) fn answered(&mut self) -> Vec<T> {
        self.asking = self.asking.saturating_sub(1);
        if self.asking == 0 { self.flush() } else { Vec::new() }
    }

    /// Returns true if messages are held back now.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking > 0
    }

    /// A message of so many bytes, of a cache or a new one. Returns what can be delivered, in order.
    pub(crate) fn offer(&mut self, gid: Gid, mark: Mark, item: T, bytes: usize) -> Vec<T> {
        if self.last.get(&gid).is_some_and(|last| mark.is_behind(*last)) {
            return Vec::new();
        }
        if self.asking == 0 {
            self.delivered(gid, mark);
            return vec![item];
        }
        self.held.entry((gid, mark.sequence)).or_insert_with(|| {
            self.bytes = self.bytes.saturating_add(bytes);
            (mark, item)
        });
        let is_full = self.held.len() > HELD || self.bytes > HELD_BYTES;
        if is_full { self.flush() } else { Vec::new() }
    }

    fn flush(&mut self) -> Vec<T> {
        let held = std::mem::take(&mut self.held);
        self.bytes = 0;
        held.into_iter()
            .map(|((gid, _), (mark, item))| {
                self.delivered(gid, mark);
                item
            })
            .collect()
    }

    fn delivered(&mut self, gid: Gid, mark: Mark) {
        if self.last.len() >= PUBLISHERS && !self.last.contains_key(&gid) {
            self.last.clear();
        }
        self.last.insert(gid, mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Gid = Gid([1; 16]);
    const B: Gid = Gid([2; 16]);

    /// The message of this number, sent at that second.
    fn nth(sequence: i64) -> Mark {
        Mark { sequence, source_time: 100 + sequence }
    }

    #[test]
    fn without_a_question_messages_pass_and_none_passes_twice() {
        let mut latched = Latched::new();
        assert_eq!(latched.offer(A, nth(1), "a1", 1), ["a1"]);
        assert!(latched.offer(A, nth(1), "a1", 1).is_empty());
        assert_eq!(latched.offer(B, nth(1), "b1", 1), ["b1"]);
        // A gap is a loss; it holds nothing up.
        assert_eq!(latched.offer(A, nth(5), "a5", 1), ["a5"]);
    }

    #[test]
    fn what_comes_while_caches_are_asked_waits_for_what_was_before_it() {
        let mut latched = Latched::new();
        latched.asked();
        latched.asked();
        assert!(latched.offer(A, nth(3), "a3", 1).is_empty());
        assert!(latched.offer(A, nth(1), "a1", 1).is_empty());
        assert!(latched.answered().is_empty());
        assert!(latched.offer(A, nth(2), "a2", 1).is_empty());
        assert!(latched.offer(A, nth(1), "a1 again", 1).is_empty());
        assert_eq!(latched.answered(), ["a1", "a2", "a3"]);
        assert!(latched.offer(A, nth(2), "a2", 1).is_empty());
        assert_eq!(latched.offer(A, nth(4), "a4", 1), ["a4"]);
    }

    #[test]
    fn a_publisher_that_counts_from_one_again_is_heard() {
        let mut latched = Latched::new();
        assert_eq!(latched.offer(A, nth(7), "before", 1), ["before"]);
        let restarted = Mark { sequence: 1, source_time: 200 };
        assert_eq!(latched.offer(A, restarted, "after", 1), ["after"]);
        assert!(latched.offer(A, restarted, "after", 1).is_empty());
    }

    #[test]
    fn what_is_held_and_what_is_remembered_has_an_end() {
        let mut latched = Latched::new();
        latched.asked();
        let out: usize = (0..=HELD as i64).map(|i| latched.offer(A, nth(i), i, 1).len()).sum();
        assert_eq!(out, HELD + 1);
        let all = HELD as i64 + 1;
        assert!(latched.offer(A, nth(all), all, HELD_BYTES).is_empty());
        assert_eq!(latched.offer(A, nth(all + 1), all + 1, 1).len(), 2);
        latched.answered();
        for i in 0..2 * PUBLISHERS as u128 {
            latched.offer(Gid(i.to_le_bytes()), nth(1), 0, 1);
        }
        assert!(latched.last.len() <= PUBLISHERS);
    }
}
