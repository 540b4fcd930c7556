//! The index of one sealed segment, and how each kind of it is kept.
//!
//! A block holds nothing that is not in its segment: it saves parsing and splitting into words at
//! the next start. It is made by the same function when a segment is sealed and when it is
//! rebuilt, so an index that was lost comes back the same.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::recorded::mark::Mark;
use crate::recorded::tombstone::Tombstone;
use crate::recorded::transaction::Touch;
use crate::recorded::version::Stamp;

/// One version in a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row<F> {
    /// When and as what it was recorded.
    pub stamp: Stamp,
    /// Facts that the index extracts from it.
    pub facts: F,
    /// First byte in the segment.
    pub offset: u32,
    /// How many bytes.
    pub len: u32,
    /// CRC-32 of the bytes.
    pub crc: u32,
}

/// The index of one segment.
#[derive(Debug, Clone)]
pub struct Block<F, W> {
    /// SHA-256 of the segment file it belongs to.
    pub digest: [u8; 32],
    /// Its versions, in the order of their stamps.
    pub rows: Vec<Row<F>>,
    /// Their words.
    pub text: W,
    /// Its tombstones, in order.
    pub tombstones: Vec<Tombstone>,
    /// Access states at the time of sealing.
    pub touches: Vec<Touch>,
    /// The log file the segment was sealed from; the newest, for one that replaces others.
    pub log: u64,
    /// Segments it replaces.
    pub replaces: Vec<u64>,
    /// Starts of the daemon so far.
    pub boots: u64,
    /// The last mark of the store in the segment.
    pub mark: Option<Mark>,
    /// First transaction in the segment.
    pub first_seq: u64,
    /// Last transaction in the segment.
    pub last_seq: u64,
    /// When the last of them was recorded; microseconds.
    pub last_recorded: i64,
}

/// A kind of derived data. Each is kept apart, so that it can be rebuilt alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// Which versions there are, where they lie, and what filters and ranks them.
    Rows,
    /// Their words.
    Words,
    /// Their places.
    Places,
    /// When they were.
    Times,
}

impl IndexKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Rows, Self::Words, Self::Places, Self::Times];

    /// The first byte of its keys.
    pub fn tag(self) -> u8 {
        match self {
            Self::Rows => b'r',
            Self::Words => b'w',
            Self::Places => b'p',
            Self::Times => b't',
        }
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "rows",
            Self::Words => "words",
            Self::Places => "places",
            Self::Times => "times",
        })
    }
}
