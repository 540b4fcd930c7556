//! The index of one sealed segment, as sled keeps it.
//!
//! A block holds nothing that is not in its segment: it saves parsing and splitting into words at
//! the next start. It is made by the same function when a segment is sealed and when it is
//! rebuilt, so an index that was lost comes back the same.

use serde::{Deserialize, Serialize};

use super::doc::Stamp;
use super::facts::Facts;
use super::text::TextBlock;
use crate::store::transaction::Touch;

/// Version of this layout; a block of another one is rebuilt.
pub const FORMAT: u32 = 4;

/// One version in a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// When and as what it was recorded.
    pub stamp: Stamp,
    /// What the index knows of it.
    pub facts: Facts,
    /// First byte in the segment.
    pub offset: u32,
    /// How many bytes.
    pub len: u32,
    /// CRC-32 of the bytes.
    pub crc: u32,
}

/// Something forgotten within the span of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// `Type/id`.
    pub target: String,
    /// When and as which version.
    pub stamp: Stamp,
}

/// The index of one segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Block {
    /// [`FORMAT`].
    pub format: u32,
    /// SHA-256 of the segment file it belongs to.
    pub digest: [u8; 32],
    /// Its versions, in the order of their stamps.
    pub rows: Vec<Row>,
    /// Their words.
    pub text: TextBlock,
    /// What was forgotten, in order.
    pub tombstones: Vec<Tombstone>,
    /// Access states at the time of sealing.
    pub touches: Vec<Touch>,
    /// The log file the segment was sealed from.
    pub log: u64,
    /// Starts of the daemon so far.
    pub boots: u64,
    /// First transaction in the segment.
    pub first_seq: u64,
    /// Last transaction in the segment.
    pub last_seq: u64,
    /// When the last of them was recorded; microseconds.
    pub last_recorded: i64,
}
