//! The index of one sealed segment, as sled keeps it.
//!
//! A block holds nothing that is not in its segment: it saves parsing and splitting into words at
//! the next start. It is made by the same function when a segment is sealed and when it is
//! rebuilt, so an index that was lost comes back the same.

use std::fmt;

use omir_core::reference::Ref;
use serde::{Deserialize, Serialize};

use super::index::{BlockOf, Draw};
use super::key::RefKey;
use super::mark::Mark;
use super::transaction::Touch;
use super::version::Stamp;

/// Version of this layout; a block of another one is rebuilt.
pub const FORMAT: u32 = 10;

/// One version in a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row<F> {
    /// When and as what it was recorded.
    pub stamp: Stamp,
    /// What the index knows of it.
    pub facts: F,
    /// First byte in the segment.
    pub offset: u32,
    /// How many bytes.
    pub len: u32,
    /// CRC-32 of the bytes.
    pub crc: u32,
}

/// What a tombstone names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// `Type/id`.
    Name(String),
    /// All that is left of the name after a compaction.
    Key(RefKey),
}

/// Who forgot, and so how long what was forgotten may stay on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Someone, who asked for it or said until when it is valid: it is purged within a bounded time.
    Someone,
    /// A rule that let go of it: it is dead, and dropped when that is worth it.
    Rule,
    /// A rule that made it a part of the record with this key: it is dead, until someone has that
    /// record forgotten, and this with it.
    Merging(RefKey),
}

impl By {
    /// A name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Someone => "someone",
            Self::Rule => "rule",
            Self::Merging(_) => "merging",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Someone => "someone",
            Self::Rule => "a rule",
            Self::Merging(_) => "a rule that made it a part of another record",
        })
    }
}

/// Why a version ended without another in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It was forgotten.
    Forgotten(By),
    /// A later one took its place, and that was dropped by a compaction.
    Dropped,
}

/// The end of a version within the span of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Of what.
    pub target: Target,
    /// When and as which version.
    pub stamp: Stamp,
    /// Why.
    pub ending: Ending,
}

impl Tombstone {
    /// The tombstone of something that was just forgotten.
    pub fn of(target: &Ref, stamp: Stamp, by: By) -> Self {
        Self { target: Target::Name(target.to_string()), stamp, ending: Ending::Forgotten(by) }
    }

    /// The key of what it ends.
    pub fn key(&self) -> RefKey {
        match &self.target {
            Target::Name(name) => RefKey::of_text(name),
            Target::Key(key) => *key,
        }
    }

    /// `Type/id`, if it is not only a hash any more.
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            Target::Name(name) => Some(name),
            Target::Key(_) => None,
        }
    }

    /// Whether it tells that something was forgotten.
    pub fn is_grave(&self) -> bool {
        matches!(self.ending, Ending::Forgotten(_))
    }
}

/// The index of one segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Block<F, W> {
    /// [`FORMAT`].
    pub format: u32,
    /// SHA-256 of the segment file it belongs to.
    pub digest: [u8; 32],
    /// Its versions, in the order of their stamps.
    pub rows: Vec<Row<F>>,
    /// Their words.
    pub text: W,
    /// What was forgotten, in order.
    pub tombstones: Vec<Tombstone>,
    /// Access states at the time of sealing.
    pub touches: Vec<Touch>,
    /// The log file the segment was sealed from; the newest, for one that replaces others.
    pub log: u64,
    /// Segments it replaces.
    pub replaces: Vec<u64>,
    /// Starts of the daemon so far.
    pub boots: u64,
    /// Where the store stood at the end of the segment.
    pub mark: Option<Mark>,
    /// First transaction in the segment.
    pub first_seq: u64,
    /// Last transaction in the segment.
    pub last_seq: u64,
    /// When the last of them was recorded; microseconds.
    pub last_recorded: i64,
}

/// What a block says of its segment as a whole: enough to know the order of the segments before any
/// block is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// SHA-256 of the segment file it belongs to.
    pub digest: [u8; 32],
    /// First transaction in the segment.
    pub first_seq: u64,
    /// Segments it replaces.
    pub replaces: Vec<u64>,
}

impl Outline {
    /// That of a block.
    pub fn of<F, W>(block: &Block<F, W>) -> Self {
        let Block { digest, first_seq, .. } = *block;
        Self { digest, first_seq, replaces: block.replaces.clone() }
    }

    /// As it is kept: `crc:u32 postcard`, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = postcard::to_allocvec(self).unwrap_or_default();
        let mut bytes = crc32fast::hash(&body).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Reads what was kept; `None` if it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (crc, body) = bytes.split_at_checked(4)?;
        let is_whole = crc == crc32fast::hash(body).to_le_bytes();
        is_whole.then(|| postcard::from_bytes(body).ok()).flatten()
    }
}

impl<F: Serialize, W: Serialize> Block<F, W> {
    /// The block as it is kept: `crc:u32 size:u32 lz4(postcard)`, little-endian, the CRC-32 over all
    /// that follows it.
    ///
    /// # Errors
    /// If postcard refuses, which it has no reason to.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        let body = lz4_flex::compress_prepend_size(&postcard::to_allocvec(self)?);
        let mut bytes = crc32fast::hash(&body).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }
}

/// LZ4 makes at most so many bytes of one.
const MOST_FROM_ONE: usize = 255;

/// Reads a block that was kept; `None` if it is damaged or of another layout. Reserves no more
/// memory than the bytes can come to, whatever size they state.
pub fn from_bytes<D: Draw>(bytes: &[u8]) -> Option<BlockOf<D>> {
    let (crc, body) = bytes.split_at_checked(4)?;
    if crc != crc32fast::hash(body).to_le_bytes() {
        return None;
    }
    let (size, packed) = lz4_flex::block::uncompressed_size(body).ok()?;
    if size > packed.len().saturating_mul(MOST_FROM_ONE) {
        return None;
    }
    let body = lz4_flex::decompress(packed, size).ok()?;
    let block: BlockOf<D> = postcard::from_bytes(&body).ok()?;
    let is_sound = block.format == FORMAT && D::is_consistent(&block.rows, &block.text);
    is_sound.then_some(block)
}
