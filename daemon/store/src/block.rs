//! The index of one sealed segment, and how each kind of it is kept.
//!
//! A block holds nothing that is not in its segment: it saves parsing and splitting into words at
//! the next start. It is made by the same function when a segment is sealed and when it is
//! rebuilt, so an index that was lost comes back the same. Invariant 4 of ARCHITECTURE.md.

use std::fmt;

use omir_core::reference::Ref;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::index::{BlockOf, Draw};
use super::key::RefKey;
use super::mark::Mark;
use super::transaction::Touch;
use super::version::Stamp;

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
#[derive(Debug, Clone)]
pub struct Block<F, W> {
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

/// A kind of derived data. Each is kept apart, so that it can be rebuilt alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Which versions there are, where they lie, and what filters and ranks them.
    Rows,
    /// Their words.
    Words,
    /// Where they were.
    Places,
    /// When they were.
    Times,
}

impl Kind {
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "rows",
            Self::Words => "words",
            Self::Places => "places",
            Self::Times => "times",
        })
    }
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

/// LZ4 makes at most so many bytes of one.
const MOST_FROM_ONE: usize = 255;

/// Rows as they are kept, with what else a start needs of the segment.
#[derive(Serialize, Deserialize)]
struct Rows<R, T, M, N> {
    rows: R,
    tombstones: T,
    touches: M,
    log: u64,
    replaces: N,
    boots: u64,
    mark: Option<Mark>,
    first_seq: u64,
    last_seq: u64,
    last_recorded: i64,
}

type OwnedRows<F> = Rows<Vec<Row<F>>, Vec<Tombstone>, Vec<Touch>, Vec<u64>>;

/// One kind of a block as it is kept: `crc:u32 tag:u8 format:u32 digest size:u32 lz4(postcard)`, little-endian, the CRC-32
/// over all that follows it. With the tag, none is taken for another that came to lie in its place.
///
/// # Errors
/// If postcard refuses, which it has no reason to.
pub fn encode<D: Draw>(block: &BlockOf<D>, kind: Kind) -> Result<Vec<u8>, postcard::Error> {
    let facts = || block.rows.iter().map(|row| &row.facts);
    let body = match kind {
        Kind::Rows => postcard::to_allocvec(&Rows {
            rows: &block.rows,
            tombstones: &block.tombstones,
            touches: &block.touches,
            log: block.log,
            replaces: &block.replaces,
            boots: block.boots,
            mark: block.mark.clone(),
            first_seq: block.first_seq,
            last_seq: block.last_seq,
            last_recorded: block.last_recorded,
        }),
        Kind::Words => postcard::to_allocvec(&block.text),
        Kind::Places => postcard::to_allocvec(&facts().map(D::places).collect::<Vec<_>>()),
        Kind::Times => postcard::to_allocvec(&facts().map(D::times).collect::<Vec<_>>()),
    }?;
    let mut bytes = vec![0; 4];
    bytes.push(kind.tag());
    bytes.extend_from_slice(&D::format(kind).to_le_bytes());
    bytes.extend_from_slice(&block.digest);
    bytes.extend_from_slice(&lz4_flex::compress_prepend_size(&body));
    let crc = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// Unpacks one kind of a block; `None` if it is damaged, of another format or of another segment. Reserves no more
/// memory than the bytes can come to, whatever size they state.
fn unpack<D: Draw>(bytes: &[u8], kind: Kind, digest: &[u8; 32]) -> Option<Vec<u8>> {
    let (crc, rest) = bytes.split_first_chunk::<4>()?;
    if *crc != crc32fast::hash(rest).to_le_bytes() {
        return None;
    }
    let (tag, rest) = rest.split_first()?;
    let (format, rest) = rest.split_first_chunk::<4>()?;
    let (of, body) = rest.split_first_chunk::<32>()?;
    if *tag != kind.tag() || *format != D::format(kind).to_le_bytes() || of != digest {
        return None;
    }
    let (size, packed) = lz4_flex::block::uncompressed_size(body).ok()?;
    if size > packed.len().saturating_mul(MOST_FROM_ONE) {
        return None;
    }
    lz4_flex::decompress(packed, size).ok()
}

/// What is kept of a segment's block: each kind, if it is there and sound.
pub struct Parts<D: Draw> {
    digest: [u8; 32],
    rows: Option<OwnedRows<D::Facts>>,
    words: Option<D::Words>,
    places: Option<Vec<D::Places>>,
    times: Option<Vec<D::Times>>,
}

impl<D: Draw> Parts<D> {
    /// Nothing.
    pub fn none() -> Self {
        Self { digest: [0; 32], rows: None, words: None, places: None, times: None }
    }

    /// Reads what is kept of the segment with this digest. `value` gives the bytes of a kind.
    pub fn read(digest: &[u8; 32], value: impl Fn(Kind) -> Option<Vec<u8>>) -> Self {
        fn part<D: Draw, T: DeserializeOwned>(
            bytes: Option<Vec<u8>>,
            kind: Kind,
            digest: &[u8; 32],
        ) -> Option<T> {
            postcard::from_bytes(&unpack::<D>(&bytes?, kind, digest)?).ok()
        }
        Self {
            digest: *digest,
            rows: part::<D, _>(value(Kind::Rows), Kind::Rows, digest),
            words: part::<D, _>(value(Kind::Words), Kind::Words, digest),
            places: part::<D, _>(value(Kind::Places), Kind::Places, digest),
            times: part::<D, _>(value(Kind::Times), Kind::Times, digest),
        }
    }

    /// Kinds that have to be made anew.
    pub fn missing(&self) -> Vec<Kind> {
        let is_missing = |kind: &Kind| match kind {
            Kind::Rows => self.rows.is_none(),
            Kind::Words => self.words.is_none(),
            Kind::Places => self.places.is_none(),
            Kind::Times => self.times.is_none(),
        };
        Kind::ALL.into_iter().filter(is_missing).collect()
    }

    /// The words, which cost most to make anew.
    pub fn into_words(self) -> Option<D::Words> {
        self.words
    }

    /// The block, if every kind is there and they belong together.
    ///
    /// # Errors
    /// Hands back what is there, for the rest to be made anew.
    pub fn into_block(self) -> Result<BlockOf<D>, Box<Self>> {
        if self.missing().is_empty() {
            self.join().ok_or_else(|| Box::new(Self::none()))
        } else {
            Err(Box::new(self))
        }
    }

    fn join(self) -> Option<BlockOf<D>> {
        let (kept, text) = (self.rows?, self.words?);
        let (places, times) = (self.places?, self.times?);
        let Rows { mut rows, tombstones, touches, log, replaces, boots, mark, .. } = kept;
        if rows.len() != places.len() || rows.len() != times.len() {
            return None;
        }
        for ((row, places), times) in rows.iter_mut().zip(places).zip(times) {
            D::join(&mut row.facts, places, times);
        }
        if !D::is_consistent(&rows, &text) {
            return None;
        }
        Some(Block {
            digest: self.digest,
            rows,
            text,
            tombstones,
            touches,
            log,
            replaces,
            boots,
            mark,
            first_seq: kept.first_seq,
            last_seq: kept.last_seq,
            last_recorded: kept.last_recorded,
        })
    }
}
