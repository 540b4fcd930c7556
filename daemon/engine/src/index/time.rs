//! Documents by time, to be found between two instants.
//!
//! Observations arrive almost in order of time, now and then late (another robot's log, a batch
//! from before a reconnect). Entries of 16 bytes sit in one ascending sequence cut into chunks:
//! appending fills the last chunk and leaves full ones behind, a late entry moves at most one
//! chunk's worth of bytes. So there is neither the slack of a tree nor a pause to merge.
//!
//! Invariants: chunks are never empty; entries ascend by (time, document) within and across
//! chunks; no chunk holds more than `CHUNK` entries. Nothing is ever removed: callers skip
//! documents they no longer want.

use super::doc::DocId;
use std::ops::Bound;

/// Seconds since the Unix epoch and nanoseconds within the second, as compared: in that order.
pub(crate) type TimeKey = (i64, u32);

/// Entries in a chunk: 8 KiB, so that making room for a late one costs about 0.1 µs.
const CHUNK: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    seconds: i64,
    nanos: u32,
    doc: DocId,
}

impl Entry {
    fn key(self) -> TimeKey {
        (self.seconds, self.nanos)
    }
}

/// Ordered index of documents by one timestamp.
#[derive(Default)]
pub struct TimeIndex {
    chunks: Vec<Vec<Entry>>,
}

impl TimeIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `doc` at `time`. Any order is fine; order of time is fastest.
    ///
    /// Inserting the same pair again adds a second entry.
    pub fn insert(&mut self, time: TimeKey, doc: DocId) {
        let entry = Entry { seconds: time.0, nanos: time.1, doc };
        let is_before = |chunk: &Vec<Entry>| chunk.last().is_some_and(|last| *last < entry);
        // Nearly always it is the latest, which needs no search.
        let at = match self.chunks.last().is_none_or(is_before) {
            true => self.chunks.len(),
            false => self.chunks.partition_point(is_before),
        };
        if at == self.chunks.len() {
            match self.chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => {
                    reserve_one(chunk);
                    chunk.push(entry);
                }
                _ => self.chunks.push(vec![entry]),
            }
            return;
        }
        let chunk = &mut self.chunks[at];
        let slot = chunk.partition_point(|other| *other < entry);
        if chunk.len() < CHUNK {
            reserve_one(chunk);
            chunk.insert(slot, entry);
            return;
        }
        let mut upper = chunk.split_off(CHUNK / 2);
        if slot <= CHUNK / 2 {
            chunk.insert(slot, entry);
        } else {
            upper.insert(slot - CHUNK / 2, entry);
        }
        self.chunks.insert(at + 1, upper);
    }

    /// Calls `f` with every document whose time lies within the bounds, oldest first and by
    /// ascending document among equal times. Contradictory bounds hold nothing.
    pub fn range(&self, from: Bound<TimeKey>, to: Bound<TimeKey>, mut f: impl FnMut(DocId)) {
        let before = |entry: &Entry| match from {
            Bound::Included(from) => entry.key() < from,
            Bound::Excluded(from) => entry.key() <= from,
            Bound::Unbounded => false,
        };
        let within = |entry: &Entry| match to {
            Bound::Included(to) => entry.key() <= to,
            Bound::Excluded(to) => entry.key() < to,
            Bound::Unbounded => true,
        };
        let first = self.chunks.partition_point(|chunk| chunk.last().is_some_and(before));
        for (index, chunk) in self.chunks.iter().enumerate().skip(first) {
            let skip = if index == first { chunk.partition_point(before) } else { 0 };
            for entry in &chunk[skip..] {
                if !within(entry) {
                    return;
                }
                f(entry.doc);
            }
        }
    }
}

impl TimeIndex {
    /// Every document with its time, in the order of [`TimeIndex::range`] from either end.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (TimeKey, DocId)> + '_ {
        self.chunks.iter().flatten().map(|entry| (entry.key(), entry.doc))
    }
}

/// Makes room for one more entry in a chunk that is not full: doubling, but never beyond full.
fn reserve_one(chunk: &mut Vec<Entry>) {
    if chunk.len() == chunk.capacity() {
        chunk.reserve_exact(chunk.len().max(4).min(CHUNK - chunk.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound() -> impl Strategy<Value = Bound<TimeKey>> {
        let key = (-60i64..60, 0u32..3);
        prop_oneof![
            key.clone().prop_map(Bound::Included),
            key.prop_map(Bound::Excluded),
            Just(Bound::Unbounded)
        ]
    }

    fn filled(times: impl Iterator<Item = TimeKey>) -> (TimeIndex, Vec<(TimeKey, DocId)>) {
        let mut index = TimeIndex::new();
        let mut model: Vec<_> = times.zip(0..).collect();
        for &(time, doc) in &model {
            index.insert(time, doc);
        }
        model.sort_unstable();
        (index, model)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn matches_a_sorted_list(
            times in prop::collection::vec((-50i64..50, 0u32..3), 0..2500),
            in_order: bool,
            bounds in prop::collection::vec((bound(), bound()), 8),
        ) {
            let mut times = times;
            if in_order {
                times.sort_unstable();
            }
            let (index, model) = filled(times.into_iter());
            prop_assert_eq!(index.entries().collect::<Vec<_>>(), model.as_slice());
            let backwards: Vec<_> = model.iter().rev().copied().collect();
            prop_assert_eq!(index.entries().rev().collect::<Vec<_>>(), backwards);
            for (from, to) in bounds {
                use std::ops::RangeBounds;
                let mut got = Vec::new();
                index.range(from, to, |doc| got.push(doc));
                let want: Vec<_> =
                    model.iter().filter(|(time, _)| (from, to).contains(time)).map(|&(_, doc)| doc).collect();
                prop_assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn appending_in_order_wastes_nothing() {
        let (index, _) = filled((0..512_000).map(|second| (second, 0)));
        assert!(index.chunks.iter().all(|chunk| chunk.len() == CHUNK && chunk.capacity() == CHUNK));
    }

    #[test]
    fn extremes_of_time_fit() {
        let (index, _) = filled([(i64::MAX, 999_999_999), (i64::MIN, 0), (0, 5)].into_iter());
        let mut got = Vec::new();
        index.range(
            Bound::Included((i64::MIN, 0)),
            Bound::Excluded((i64::MAX, 999_999_999)),
            |doc| got.push(doc),
        );
        assert_eq!(got, [1, 2]);
    }
}
