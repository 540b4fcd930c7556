//! From files to one history.
//!
//! Files become intervals. An interval knows which transactions it covers, so what lacks between two
//! intervals is a gap, and a segment whose manifest is lost belongs where its number and the gap say.
//! What several files hold (a log and the segment made from it) counts once.
//!
//! | module | the question it answers |
//! |---|---|
//! | `reading` | what is in each file by itself? |
//! | `slots` | which transactions does each file stand for? |
//! | `order` | what comes after what, and where does something lack? |
//! | `witnesses` | what do second copies tell that the files do not? |
//! | `verdicts` | what of it is needed, and which faults lost something? |

mod order;
mod reading;
mod slots;
mod verdicts;
mod witnesses;

use std::collections::HashSet;
use std::io;

use self::reading::scan_file;
use super::estimate::{estimate_dates, estimate_versions};
use super::finding::Finding;
use super::history::{History, HistoryInterval};
use super::scan::Scan;
use super::{FileKind, Progress, Source, Store};
use crate::disk;

/// Reads a store. With `deep` segments are validated as Bundles as well.
pub(super) fn read(
    store: &Store,
    deep: bool,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<History> {
    let size = |source: &Source| {
        let file = store.disk.open(&source.path, disk::Mode::Read);
        file.and_then(|file| file.len()).unwrap_or(0)
    };
    let sizes: Vec<u64> = store.sources.iter().map(size).collect();
    let mut passed = Progress { done: 0, total: sizes.iter().sum() };
    progress(passed);
    let mut scans = Vec::with_capacity(store.sources.len());
    for (source, size) in store.sources.iter().zip(sizes) {
        scans.push(scan_file(store, source, deep)?);
        passed.done += size;
        progress(passed);
    }
    let mut assembly = Assembly::new(scans, store);
    assembly.assemble();
    if store.is_folder {
        assembly.hear_witnesses(store);
    }
    estimate_versions(store, &assembly.scans, &mut assembly.intervals);
    Ok(assembly.finish())
}

/// A file's place in the history.
struct Slot {
    first: u64,
    /// One less than `first` if the file holds no transaction.
    last: u64,
    scan: usize,
}

struct Assembly {
    scans: Vec<Scan>,
    is_whole_store: bool,
    now: i64,
    intervals: Vec<HistoryInterval>,
    findings: Vec<Finding>,
    /// Logs without transactions, ready to be written on.
    empty: HashSet<usize>,
    /// Files of which only their content can tell whether it is held elsewhere.
    doubtful: HashSet<usize>,
}

impl Assembly {
    fn new(scans: Vec<Scan>, store: &Store) -> Self {
        Self {
            scans,
            is_whole_store: store.is_folder,
            now: store.now.as_micros(),
            intervals: Vec::new(),
            findings: Vec::new(),
            empty: HashSet::new(),
            doubtful: HashSet::new(),
        }
    }

    fn assemble(&mut self) {
        let mut slots = self.segment_slots();
        slots.extend(self.log_slots(&slots));
        // Transaction numbers of a file that was set aside may have been given out again since.
        let mut detached = Vec::new();
        for (index, scan) in self.scans.iter().enumerate() {
            if let (true, Some((first, last))) = (scan.source.is_set_aside, scan.span) {
                let is_free = slots.iter().all(|slot| slot.last < first || last < slot.first);
                match is_free {
                    true => slots.push(Slot { first, last, scan: index }),
                    false => detached.push((index, first, last)),
                }
            }
        }
        slots.sort_by_key(|slot| (slot.first, slot.last, slot.scan));
        self.lay_out(&slots);
        for (index, first, last) in detached {
            self.attach(index, first, last);
        }
        self.note_missing_segments();
        estimate_dates(&mut self.intervals, &self.scans, self.now);
    }

    fn segment_number(&self, index: usize) -> Option<u64> {
        match self.scans[index].source.kind {
            FileKind::Segment(number) => Some(number),
            FileKind::Log(_) => None,
        }
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
