//! The index of a segment as it is kept between starts: each kind by itself, under a checksum.
//!
//! Invariant 4 of ARCHITECTURE.md.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::block::{Block, IndexKind, Row};
use super::index_extractor::{BlockOf, IndexExtractor};
use crate::recorded::mark::Mark;
use crate::recorded::tombstone::Tombstone;
use crate::recorded::transaction::Touch;

/// The outline of a block: enough to know the order of the segments before any
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
pub fn encode<D: IndexExtractor>(
    block: &BlockOf<D>,
    kind: IndexKind,
) -> Result<Vec<u8>, postcard::Error> {
    let facts = || block.rows.iter().map(|row| &row.facts);
    let body = match kind {
        IndexKind::Rows => postcard::to_allocvec(&Rows {
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
        IndexKind::Words => postcard::to_allocvec(&block.text),
        IndexKind::Places => postcard::to_allocvec(&facts().map(D::places).collect::<Vec<_>>()),
        IndexKind::Times => postcard::to_allocvec(&facts().map(D::times).collect::<Vec<_>>()),
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
fn unpack<D: IndexExtractor>(bytes: &[u8], kind: IndexKind, digest: &[u8; 32]) -> Option<Vec<u8>> {
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

/// The kept kinds of a segment's block, as far as they are there and sound.
pub struct BlockParts<D: IndexExtractor> {
    digest: [u8; 32],
    rows: Option<OwnedRows<D::Facts>>,
    words: Option<D::Words>,
    places: Option<Vec<D::Places>>,
    times: Option<Vec<D::Times>>,
}

impl<D: IndexExtractor> BlockParts<D> {
    /// Nothing.
    pub fn none() -> Self {
        Self { digest: [0; 32], rows: None, words: None, places: None, times: None }
    }

    /// Reads what is kept of the segment with this digest. `value` gives the bytes of a kind.
    pub fn read(digest: &[u8; 32], value: impl Fn(IndexKind) -> Option<Vec<u8>>) -> Self {
        fn part<D: IndexExtractor, T: DeserializeOwned>(
            bytes: Option<Vec<u8>>,
            kind: IndexKind,
            digest: &[u8; 32],
        ) -> Option<T> {
            postcard::from_bytes(&unpack::<D>(&bytes?, kind, digest)?).ok()
        }
        Self {
            digest: *digest,
            rows: part::<D, _>(value(IndexKind::Rows), IndexKind::Rows, digest),
            words: part::<D, _>(value(IndexKind::Words), IndexKind::Words, digest),
            places: part::<D, _>(value(IndexKind::Places), IndexKind::Places, digest),
            times: part::<D, _>(value(IndexKind::Times), IndexKind::Times, digest),
        }
    }

    /// Kinds that have to be rebuilt.
    pub fn missing(&self) -> Vec<IndexKind> {
        let is_missing = |kind: &IndexKind| match kind {
            IndexKind::Rows => self.rows.is_none(),
            IndexKind::Words => self.words.is_none(),
            IndexKind::Places => self.places.is_none(),
            IndexKind::Times => self.times.is_none(),
        };
        IndexKind::ALL.into_iter().filter(is_missing).collect()
    }

    /// The words, which cost most to rebuild.
    pub(crate) fn into_words(self) -> Option<D::Words> {
        self.words
    }

    /// The block, if every kind is there and they belong together.
    ///
    /// # Errors
    /// Hands back what is there, for the rest to be rebuilt.
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
