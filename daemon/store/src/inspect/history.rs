//! All files together: one history, in the order of its transactions.

use std::collections::HashMap;
use std::ops::Range;

use omir_core::reference::Ref;

use super::Source;
use super::finding::Finding;
use crate::digest::Digest;
use crate::recorded::mark::Mark;
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::{DeletionOrigin, EndCause, Tombstone};
use crate::recorded::transaction::Touch;
use crate::recorded::version::Stamp;
use crate::signing::signature::Seal;

/// The position of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Position in [`History::files`].
    pub file: usize,
    /// Its bytes.
    pub range: Range<u64>,
}

/// A version that can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Of what.
    pub target: Ref,
    /// When and as which version it was recorded.
    pub stamp: Stamp,
    /// True if the stamp is the written one, and not the most likely one.
    pub is_exact: bool,
    /// Its position.
    pub position: Position,
}

/// The act of one step.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A version was recorded.
    Put(Version),
    /// Something was forgotten, or a compaction dropped what took its place.
    Forget(Tombstone),
    /// Accesses were counted.
    Touch(Touch),
}

/// One step of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The transaction.
    pub seq: u64,
    /// Position in it.
    pub ordinal: u32,
    /// The act.
    pub act: Act,
}

impl Event {
    /// Returns true if it is a version whose stamp is only likely.
    pub(super) fn is_vague(&self) -> bool {
        matches!(&self.act, Act::Put(version) if !version.is_exact)
    }
}

/// A stretch of the history: what one file holds, or what lacks between two.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryInterval {
    /// Position of its file in [`History::files`]; none for a gap.
    pub file: Option<usize>,
    /// First transaction.
    pub first: u64,
    /// Last transaction.
    pub last: u64,
    /// When the last was recorded, as far as is known; microseconds.
    pub last_recorded: i64,
    /// The log it is, or was sealed from; 0 if that is not known.
    pub log: u64,
    /// Starts of the daemon up to its end, as far as is known.
    pub boots: u64,
    /// The last mark of the store in it, if there is one.
    pub mark: Option<Mark>,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// Copies it holds of earlier resources.
    pub copies: Vec<(Ref, Position)>,
    /// True if something of it is lost.
    pub is_lossy: bool,
}

/// A file, in numbers.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// Which.
    pub source: Source,
    /// Its length.
    pub bytes: u64,
    /// First and last transaction in it, if they are known.
    pub transactions: Option<(u64, u64)>,
    /// Versions in it that can be read.
    pub versions: u64,
    /// Tombstones in it.
    pub tombstones: u64,
    /// Segments it replaces.
    pub replaces: Vec<u64>,
    /// True if the daemon can use it as it is.
    pub is_readable: bool,
    /// True if the history needs it; if not, everything in it is held elsewhere.
    pub is_needed: bool,
    pub(super) digest: Digest,
    pub(super) seal: Option<Seal>,
    pub(super) seal_is_unreadable: bool,
    pub(super) is_clean: bool,
}

/// The state of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is the current one.
    Live,
    /// A later version took its place.
    Superseded,
    /// It was forgotten.
    Forgotten {
        /// When; microseconds.
        at: i64,
        /// The version the tombstone took.
        version: u64,
        /// The origin of the deletion.
        by: DeletionOrigin,
    },
}

/// A version and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The version.
    pub version: &'a Version,
    /// Its state.
    pub state: State,
}

/// Everything that can be read of a store.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Its segments and logs, by number.
    pub files: Vec<FileRow>,
    /// Its intervals, in order.
    pub intervals: Vec<HistoryInterval>,
    /// Findings while reading.
    pub findings: Vec<Finding>,
}

impl History {
    /// Every version, in the order they were recorded, and what became of each.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let mut heads: HashMap<RefKey, usize> = HashMap::new();
        for event in self.intervals.iter().flat_map(|interval| &interval.events) {
            match &event.act {
                Act::Put(version) => {
                    if let Some(old) = heads.insert(RefKey::of(&version.target), rows.len()) {
                        rows[old].state = State::Superseded;
                    }
                    rows.push(Row { version, state: State::Live });
                }
                Act::Forget(tombstone) => {
                    let (at, version) = (tombstone.stamp.recorded, tombstone.stamp.version);
                    if let Some(old) = heads.remove(&tombstone.key()) {
                        rows[old].state = match tombstone.ending {
                            EndCause::Forgotten(by) => State::Forgotten { at, version, by },
                            EndCause::Dropped => State::Superseded,
                        };
                    }
                }
                Act::Touch(_) => {}
            }
        }
        rows
    }

    /// The last transaction.
    pub fn last_seq(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.last).max().unwrap_or(0)
    }

    /// The versions, tombstones and access states in all intervals.
    pub fn counts(&self) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        for event in self.intervals.iter().flat_map(|interval| &interval.events) {
            match event.act {
                Act::Put(_) => counts.0 += 1,
                Act::Forget(ref tombstone) => counts.1 += u64::from(tombstone.is_forgotten()),
                Act::Touch(_) => counts.2 += 1,
            }
        }
        counts
    }
}
