//! The vectors of one model: rows in blocks, so that a new row moves no other one.

use std::cell::Cell;
use std::collections::BinaryHeap;
use std::sync::LazyLock;
use std::thread;

use omird_embedding::{Bits, ModelName, Probe, Vector};

use parking_lot::Mutex;

use crate::index::doc::DocId;

/// Rows of a block, in memory and in a file.
pub(crate) const BLOCK_ROWS: usize = 1024;
/// Numbers from which rows have their signs apart, to be looked at first.
const BITS_FROM: usize = 256;
/// Rows from which the signs are looked at first: fewer are compared as fast as they are.
const MANY_ROWS: usize = 1 << 14;
/// Rows whose numbers are compared where signs are looked at first.
const BEST_BY_SIGNS: usize = 1024;
/// Bytes of numbers from which a scan is shared among threads: it takes some milliseconds, and a thread a twentieth of one.
const MUCH: usize = 16 << 20;
/// Most threads of a scan.
const MOST_THREADS: usize = 4;

/// Threads of a scan on this machine.
static THREADS: LazyLock<usize> = LazyLock::new(|| {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS))
});
thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the scans that this thread begins on it from now on: for work whose use of the processor is counted by thread.
pub fn keep_scans_on_this_thread() {
    IS_ALONE.set(true);
}

/// Held while a scan is shared. Where several questions are asked at once, the other cores have work of their own.
static SHARED_SCAN: Mutex<()> = Mutex::new(());

#[derive(Debug, Default)]
struct Block {
    docs: Vec<DocId>,
    scales: Vec<f32>,
    values: Vec<i8>,
    /// Empty for short vectors.
    bits: Vec<u64>,
}

/// The vectors of one model.
#[derive(Debug)]
pub(crate) struct VectorSpace {
    model: ModelName,
    /// True if clients state the vectors, false if they are made here.
    is_given: bool,
    blocks: Vec<Block>,
    rows: usize,
}

/// A version and the cosine of its vector with that of a question.
pub(crate) type Similar = (DocId, f32);

impl VectorSpace {
    /// A space without rows.
    pub(crate) fn new(model: ModelName, is_given: bool) -> Self {
        Self { model, is_given, blocks: Vec::new(), rows: 0 }
    }

    pub(crate) fn model(&self) -> &ModelName {
        &self.model
    }

    pub(crate) fn is_given(&self) -> bool {
        self.is_given
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the rows in memory.
    pub(crate) fn memory(&self) -> usize {
        let of = |block: &Block| {
            block.docs.capacity() * size_of::<DocId>()
                + block.scales.capacity() * size_of::<f32>()
                + block.values.capacity()
                + block.bits.capacity() * size_of::<u64>()
        };
        self.blocks.iter().map(of).sum()
    }

    fn bit_words(&self) -> usize {
        if self.model.dims >= BITS_FROM { Bits::words(self.model.dims) } else { 0 }
    }

    /// Adds a row; one of another size is left out.
    pub(crate) fn push(&mut self, doc: DocId, vector: &Vector) {
        let dims = self.model.dims;
        if vector.values.len() != dims {
            return;
        }
        let words = self.bit_words();
        if self.rows.is_multiple_of(BLOCK_ROWS) {
            // All its memory at once, so that it is no larger than it must be.
            self.blocks.push(Block {
                docs: Vec::with_capacity(BLOCK_ROWS),
                scales: Vec::with_capacity(BLOCK_ROWS),
                values: Vec::with_capacity(BLOCK_ROWS * dims),
                bits: Vec::with_capacity(BLOCK_ROWS * words),
            });
        }
        let Some(block) = self.blocks.last_mut() else { return };
        block.docs.push(doc);
        block.scales.push(vector.scale);
        block.values.extend_from_slice(&vector.values);
        if words > 0 {
            let at = block.bits.len();
            block.bits.resize(at + words, 0);
            Bits::write(&vector.values, &mut block.bits[at..]);
        }
        self.rows += 1;
    }

    /// The version, scale and numbers of each row from one on.
    pub(crate) fn rows_from(&self, first: usize) -> impl Iterator<Item = (DocId, f32, &[i8])> {
        let dims = self.model.dims;
        let blocks = self.blocks.iter().skip(first / BLOCK_ROWS);
        let all = blocks.flat_map(move |block| {
            let values = block.values.chunks_exact(dims);
            block
                .docs
                .iter()
                .zip(&block.scales)
                .zip(values)
                .map(|((doc, scale), v)| (*doc, *scale, v))
        });
        all.skip(first % BLOCK_ROWS)
    }

    /// The same without the rows that `keeps` does not name. The others stay in order.
    pub(crate) fn keeping(&self, keeps: impl Fn(DocId) -> bool) -> Self {
        let mut kept = Self::new(self.model.clone(), self.is_given);
        for (doc, scale, values) in self.rows_from(0).filter(|(doc, ..)| keeps(*doc)) {
            kept.push(doc, &Vector { scale, values: values.into() });
        }
        kept
    }

    /// Returns true if [`VectorSpace::similar`] can look at signs first: of long vectors in a large space.
    pub(crate) fn has_signs(&self) -> bool {
        self.bit_words() > 0 && self.rows > MANY_ROWS
    }

    /// Adds to `found` the versions whose vectors have at least the cosine `floor` with `vector`, in no order. Of those that are left out,
    /// `passes` says so; where something narrows, `within` holds all that can match, ascending.
    ///
    /// All rows are compared. With `signs_first`, of long vectors in a large space only the [`BEST_BY_SIGNS`] that are most
    /// alike by their signs: that takes less than half the time, and may leave some out.
    pub(crate) fn similar(
        &self,
        vector: &Vector,
        floor: f32,
        within: Option<&[DocId]>,
        signs_first: bool,
        passes: &mut dyn FnMut(DocId) -> bool,
        found: &mut Vec<Similar>,
    ) {
        let dims = self.model.dims;
        if vector.values.len() != dims {
            return;
        }
        let probe = Probe::of(vector);
        if signs_first && self.has_signs() {
            for (block, row) in self.alike(vector, within, passes) {
                let Some(block) = self.blocks.get(block) else { continue };
                let values = &block.values[row * dims..(row + 1) * dims];
                let cosine = probe.cosine(values, block.scales[row]);
                if cosine >= floor {
                    found.push((block.docs[row], cosine));
                }
            }
            return;
        }
        let Some(within) = within else {
            let before = found.len();
            let is_shared = self.rows * dims >= MUCH && !IS_ALONE.get();
            match is_shared.then(|| SHARED_SCAN.try_lock()).flatten() {
                Some(_turn) => scan_shared(&self.blocks, &probe, floor, *THREADS, found),
                None => scan(&self.blocks, &probe, floor, found),
            }
            let mut at = 0;
            found.retain(|(doc, _)| {
                at += 1;
                at <= before || passes(*doc)
            });
            return;
        };
        for block in &self.blocks {
            let values = block.values.chunks_exact(dims);
            for ((doc, scale), values) in block.docs.iter().zip(&block.scales).zip(values) {
                // A short list that narrows is searched first; a comparison of numbers is cheaper than a filter.
                if within.binary_search(doc).is_err() {
                    continue;
                }
                let cosine = probe.cosine(values, *scale);
                if cosine >= floor && passes(*doc) {
                    found.push((*doc, cosine));
                }
            }
        }
    }

    /// The rows whose signs differ least from those of `vector`, as block and row.
    fn alike(
        &self,
        vector: &Vector,
        within: Option<&[DocId]>,
        passes: &mut dyn FnMut(DocId) -> bool,
    ) -> Vec<(usize, usize)> {
        let words = self.bit_words();
        let mut signs = vec![0; words];
        Bits::write(&vector.values, &mut signs);
        let mut best: BinaryHeap<(u32, usize, usize)> =
            BinaryHeap::with_capacity(BEST_BY_SIGNS + 1);
        for (number, block) in self.blocks.iter().enumerate() {
            for (row, (doc, bits)) in
                block.docs.iter().zip(block.bits.chunks_exact(words)).enumerate()
            {
                let distance = Bits::distance(&signs, bits);
                let is_full = best.len() >= BEST_BY_SIGNS;
                if is_full && best.peek().is_some_and(|(worst, ..)| distance >= *worst) {
                    continue;
                }
                if within.is_none_or(|docs| docs.binary_search(doc).is_ok()) && passes(*doc) {
                    best.push((distance, number, row));
                    if best.len() > BEST_BY_SIGNS {
                        best.pop();
                    }
                }
            }
        }
        best.into_iter().map(|(_, block, row)| (block, row)).collect()
    }
}

/// Adds the rows of some blocks that have at least the cosine `floor` with a vector, in order.
fn scan(blocks: &[Block], probe: &Probe, floor: f32, found: &mut Vec<Similar>) {
    let mut cosines = Vec::with_capacity(BLOCK_ROWS);
    for block in blocks {
        probe.cosines(&block.values, &block.scales, &mut cosines);
        let similar = block.docs.iter().zip(&cosines).filter(|(_, cosine)| **cosine >= floor);
        found.extend(similar.map(|(doc, cosine)| (*doc, *cosine)));
    }
}

/// The same on so many threads.
fn scan_shared(
    blocks: &[Block],
    probe: &Probe,
    floor: f32,
    threads: usize,
    found: &mut Vec<Similar>,
) {
    let (own, rest) = blocks.split_at(blocks.len() / threads.max(1));
    if threads <= 1 {
        return scan(blocks, probe, floor, found);
    }
    thread::scope(|scope| {
        let of_rest = || {
            let mut found = Vec::new();
            scan_shared(rest, probe, floor, threads - 1, &mut found);
            found
        };
        let helper = thread::Builder::new().name("omird-scan".into()).spawn_scoped(scope, of_rest);
        scan(own, probe, floor, found);
        match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(others)) => found.extend(others),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // No thread is to be had.
            Err(_) => scan(rest, probe, floor, found),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -1 and 1, the same in each run.
    fn vectors(count: usize, dims: usize) -> Vec<Vector> {
        let mut state = 7_u64;
        let mut number = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count)
            .map(|_| Vector::of(&(0..dims).map(|_| number()).collect::<Vec<_>>()).unwrap())
            .collect()
    }

    fn space(vectors: &[Vector]) -> VectorSpace {
        let dims = vectors[0].values.len();
        let mut space = VectorSpace::new(ModelName { name: "m".into(), dims, hash: [0; 32] }, true);
        (0..).zip(vectors).for_each(|(doc, vector)| space.push(doc, vector));
        space
    }

    #[test]
    fn a_scan_finds_what_a_comparison_of_each_finds() {
        let all = vectors(3000, 64);
        let space = space(&all);
        let question = &all[17];
        for (floor, within) in
            [(0.2, None), (-1.0, Some((0..3000).step_by(7).collect::<Vec<DocId>>()))]
        {
            let mut found = Vec::new();
            let odd = &mut |doc| doc % 2 == 1;
            space.similar(question, floor, within.as_deref(), false, odd, &mut found);
            found.sort_by_key(|(doc, _)| *doc);
            let expected: Vec<Similar> = (0..)
                .zip(&all)
                .filter(|(doc, _)| within.as_ref().is_none_or(|within| within.contains(doc)))
                .map(|(doc, vector)| (doc, question.cosine(vector)))
                .filter(|(doc, cosine)| doc % 2 == 1 && *cosine >= floor)
                .collect();
            assert!(!expected.is_empty());
            assert_eq!(found.len(), expected.len());
            for (a, b) in found.iter().zip(&expected) {
                assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-6, "{a:?} {b:?}");
            }
        }
        let mut found = Vec::new();
        space.similar(&vectors(1, 32)[0], -1.0, None, false, &mut |_| true, &mut found);
        assert_eq!(found, []);
    }

    #[test]
    fn a_scan_on_several_threads_finds_the_same_in_the_same_order() {
        let all = vectors(5 * BLOCK_ROWS + 100, 16);
        let (space, probe) = (space(&all), Probe::of(&all[17]));
        let mut alone = Vec::new();
        scan(&space.blocks, &probe, 0.2, &mut alone);
        assert!(alone.len() > 1000, "{}", alone.len());
        for threads in 0..9 {
            let mut found = Vec::new();
            scan_shared(&space.blocks, &probe, 0.2, threads, &mut found);
            assert_eq!(found, alone, "{threads}");
        }
    }

    #[test]
    fn a_row_of_64_takes_72_bytes_and_rows_can_go() {
        let all = vectors(2 * BLOCK_ROWS, 64);
        let mut space = space(&all);
        assert_eq!(space.memory(), 2 * BLOCK_ROWS * 72);
        space = space.keeping(|doc| doc % 4 == 0);
        assert_eq!((space.rows(), space.memory()), (BLOCK_ROWS / 2, BLOCK_ROWS * 72));
        for (row, (doc, scale, values)) in space.rows_from(0).enumerate() {
            let vector = &all[4 * row];
            assert_eq!((doc, scale, values), (4 * row as DocId, vector.scale, &*vector.values));
        }
        let third = space.rows_from(3).next().unwrap();
        assert_eq!(third.0, 12);
        // Of another size.
        space.push(1, &vectors(1, 63)[0]);
        assert_eq!(space.rows(), BLOCK_ROWS / 2);
    }

    #[test]
    fn signs_first_find_nearly_all_of_the_best() {
        let mut all = vectors(MANY_ROWS + 100, 256);
        let question = all[5].clone();
        // Some that are similar: the question, with every n-th number of another.
        for (at, n) in [(100, 2), (5000, 3), (9000, 4), (16000, 5)] {
            let mut values = question.values.clone();
            let other = all[at].values.clone();
            values.iter_mut().zip(&*other).step_by(n).for_each(|(value, other)| *value = *other);
            all[at] = Vector::of_integers(values).unwrap();
        }
        let space = space(&all);
        assert!(space.has_signs());
        let similar = |within, signs_first| {
            let mut found = Vec::new();
            space.similar(&question, 0.3, within, signs_first, &mut |_| true, &mut found);
            found
        };
        let exact = similar(None, false);
        let mut found = similar(None, true);
        assert!(found.iter().all(|one| exact.contains(one)));
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        let docs: Vec<DocId> = found.iter().map(|(doc, _)| *doc).collect();
        assert_eq!(docs[..5], [5, 16000, 9000, 5000, 100]);
        assert_eq!(similar(Some(&[]), true), []);
    }
}
