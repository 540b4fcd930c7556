//! The index of one sealed segment, as sled keeps it.
//!
//! A block holds nothing that is not in its segment: it saves parsing and splitting into words at
//! the next start. It is made by the same function when a segment is sealed and when it is
//! rebuilt, so an index that was lost comes back the same.

use std::fmt;

use omir_core::reference::{Ref, ResourceType};
use serde::{Deserialize, Serialize};

use super::doc::Stamp;
use super::facts::Facts;
use super::key::RefKey;
use super::text::TextBlock;
use crate::store::mark::Mark;
use crate::store::transaction::Touch;

/// Version of this layout; a block of another one is rebuilt.
pub const FORMAT: u32 = 10;

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
    pub fn of(block: &Block) -> Self {
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

/// LZ4 makes at most so many bytes of one.
const MOST_FROM_ONE: usize = 255;

impl Block {
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

    /// Reads a block that was kept; `None` if it is damaged or of another layout. Reserves no more
    /// memory than the bytes can come to, whatever size they state.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (crc, body) = bytes.split_at_checked(4)?;
        if crc != crc32fast::hash(body).to_le_bytes() {
            return None;
        }
        let (size, packed) = lz4_flex::block::uncompressed_size(body).ok()?;
        if size > packed.len().saturating_mul(MOST_FROM_ONE) {
            return None;
        }
        let body = lz4_flex::decompress(packed, size).ok()?;
        let block: Self = postcard::from_bytes(&body).ok()?;
        (block.format == FORMAT && block.is_consistent()).then_some(block)
    }

    /// Whether it holds what the catalog relies on: words for each row, and types there are.
    fn is_consistent(&self) -> bool {
        let types = ResourceType::ALL.len();
        self.rows.len() == self.text.docs()
            && self.rows.iter().all(|row| usize::from(row.facts.class.resource_type) < types)
    }
}

#[cfg(test)]
mod tests {
    use omir_core::model::{Entity, Resource};

    use super::*;
    use crate::index::facts::terms_of;

    fn block() -> Block {
        let kettle: Resource = Entity::new("kettle".parse().unwrap(), "Kettle").into();
        let terms = [terms_of(&kettle)];
        let facts = Facts::of(&kettle);
        let stamp = Stamp { seq: 3, ordinal: 0, version: 1, recorded: 5 };
        Block {
            format: FORMAT,
            digest: [7; 32],
            rows: vec![Row { stamp, facts, offset: 1, len: 2, crc: 3 }],
            text: TextBlock::build(terms.iter()),
            tombstones: Vec::new(),
            touches: Vec::new(),
            log: 1,
            replaces: Vec::new(),
            boots: 2,
            mark: None,
            first_seq: 3,
            last_seq: 4,
            last_recorded: 5,
        }
    }

    #[test]
    fn a_block_survives_and_a_damaged_one_is_refused() {
        let bytes = block().to_bytes().unwrap();
        let read = Block::from_bytes(&bytes).unwrap();
        assert_eq!((read.text, read.last_seq), (block().text, 4));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Block::from_bytes(&damaged).is_none(), "byte {at}");
            assert!(Block::from_bytes(&bytes[..at]).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn words_without_a_row_and_types_there_are_not_are_refused() {
        let mut wordless = block();
        wordless.rows.clear();
        assert!(Block::from_bytes(&wordless.to_bytes().unwrap()).is_none());
        let mut odd = block();
        odd.rows[0].facts.class.resource_type = 4;
        assert!(Block::from_bytes(&odd.to_bytes().unwrap()).is_none());
    }

    #[test]
    fn a_stated_size_reserves_nothing() {
        let mut body = u32::MAX.to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 16]);
        let mut bytes = crc32fast::hash(&body).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        assert!(Block::from_bytes(&bytes).is_none());
    }
}
