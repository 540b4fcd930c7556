//! The sidecar of a sealed segment, `segments/<number>.par`: what is needed to notice and to mend rot in
//! the segment, which itself stays one plain CBOR item.
//!
//! A segment is cut into blocks of 4 KiB, and 64 of them are a stripe. For each block there is a CRC-32,
//! and for each stripe one parity block: a Reed-Solomon code with a single parity symbol, which is the
//! sum (exclusive or) of the blocks. It mends one block of a stripe whatever was lost of it, and also
//! 4 KiB in a row that lie across two blocks: at each position only one of the two lost its byte, and
//! the checksums tell where the loss begins. A second parity block would cost more writing than the card
//! is to bear; see `docs/life.md`.
//!
//! Layout, all integers big-endian:
//!
//! ```text
//! file = head ‖ witness ‖ crc32 of witness ‖ (parity ‖ crc32) per stripe ‖ head ‖ length of head: u32
//! head = "omirpar2" ‖ segment: u64 ‖ length: u64 ‖ sha256 ‖ length of witness: u32 ‖ crc32 per block
//!        ‖ crc32 of the head so far
//! ```
//!
//! The head is there twice, so one lost sector of the sidecar never makes it useless. The witness is there
//! once: the segment itself states the same facts, and a lost witness is made again from it.
//!
//! Pure: no disk here. Never panics, whatever the bytes are.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::fmt;
use std::ops::Range;

use crate::digest::{self, Digest};

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Blocks of a stripe.
const STRIPE: usize = 64;
const MAGIC: &[u8; 8] = b"omirpar2";
/// Bytes of a head before the checksums of the blocks.
const FIXED: usize = 8 + 8 + 8 + 32 + 4;

/// The contents of a sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// Number of the segment.
    pub segment: u64,
    /// Its digest.
    pub sha256: Digest,
    /// Facts that must stay known if the segment is lost; opaque here. `None` if the sidecar lost them itself.
    pub witness: Option<Vec<u8>>,
    /// Bytes of the witness.
    witness_len: usize,
    len: usize,
    crcs: Vec<u32>,
    /// Of each stripe; nothing where the sidecar itself lost it.
    parity: Vec<Option<Vec<u8>>>,
}

/// The bytes are no sidecar, or both of its heads are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadSidecar;

impl fmt::Display for BadSidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sidecar is unreadable")
    }
}

impl std::error::Error for BadSidecar {}

/// More of a segment is lost than its sidecar can mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooDamaged {
    /// Blocks that do not pass their checksum.
    pub blocks: usize,
}

impl fmt::Display for TooDamaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks are damaged, more than its sidecar restores", self.blocks)
    }
}

impl std::error::Error for TooDamaged {}

/// Bytes of the `.par` file of a segment of so many bytes, with so many of a witness.
pub(crate) fn encoded_len(bytes: u64, witness: u64) -> u64 {
    let block = BLOCK as u64;
    let stripe = block * STRIPE as u64;
    let head = FIXED as u64 + 4 * bytes.div_ceil(block) + 4;
    let (whole, rest) = (bytes / stripe, bytes % stripe);
    let last = if rest == 0 { 0 } else { rest.min(block) + 4 };
    2 * head + 4 + witness + 4 + whole * (block + 4) + last
}

impl Sidecar {
    /// The sidecar of a segment.
    pub fn of(segment: u64, bytes: &[u8], witness: Vec<u8>) -> Self {
        Self {
            segment,
            sha256: digest::digest(bytes),
            witness_len: witness.len(),
            witness: Some(witness),
            len: bytes.len(),
            crcs: bytes.chunks(BLOCK).map(crc32fast::hash).collect(),
            parity: bytes.chunks(BLOCK * STRIPE).map(|stripe| Some(sum(stripe))).collect(),
        }
    }

    /// Returns true if nothing is lost of the file that it was read from.
    pub fn is_as_written(&self, file: &[u8]) -> bool {
        let is_whole = self.witness.is_some() && self.parity.iter().all(Option::is_some);
        is_whole && self.encode() == file
    }

    /// As the bytes of a `.par` file.
    pub fn encode(&self) -> Vec<u8> {
        let head = self.head();
        let mut out = head.clone();
        for part in self.witness.iter().chain(self.parity.iter().flatten()) {
            out.extend_from_slice(part);
            out.extend_from_slice(&crc32fast::hash(part).to_be_bytes());
        }
        out.extend_from_slice(&head);
        out.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes());
        out
    }

    fn head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(FIXED + 4 * self.crcs.len() + 4);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&self.segment.to_be_bytes());
        head.extend_from_slice(&(self.len as u64).to_be_bytes());
        head.extend_from_slice(&self.sha256);
        head.extend_from_slice(&u32::try_from(self.witness_len).unwrap_or(0).to_be_bytes());
        head.extend(self.crcs.iter().flat_map(|crc| crc.to_be_bytes()));
        let crc = crc32fast::hash(&head);
        head.extend_from_slice(&crc.to_be_bytes());
        head
    }

    /// Reads the bytes of a `.par` file, also if a part of it is lost.
    ///
    /// # Errors
    /// If neither head is whole.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadSidecar> {
        let (mut sidecar, head) =
            read_head(bytes).or_else(|| read_last_head(bytes)).ok_or(BadSidecar)?;
        let mut at = head;
        sidecar.witness = part(bytes, &mut at, sidecar.witness_len);
        let mut left = sidecar.len;
        while left > 0 {
            sidecar.parity.push(part(bytes, &mut at, left.min(BLOCK)));
            left -= left.min(BLOCK * STRIPE);
        }
        Ok(sidecar)
    }

    /// Which blocks of a segment do not pass their checksum.
    pub(crate) fn damaged_blocks(&self, bytes: &[u8]) -> Vec<usize> {
        let is_damaged = |block: &usize| {
            let range = self.block(*block);
            bytes.get(range).map(crc32fast::hash) != Some(self.crcs[*block])
        };
        (0..self.crcs.len()).filter(is_damaged).collect()
    }

    fn block(&self, block: usize) -> Range<usize> {
        block * BLOCK..self.len.min((block + 1) * BLOCK)
    }

    /// Puts the bytes of a segment right, also if it was cut short or grew. Returns how many blocks were
    /// mended.
    ///
    /// # Errors
    /// If that is not possible; the bytes are then of no use.
    pub fn mend(&self, bytes: &mut Vec<u8>) -> Result<usize, TooDamaged> {
        let mended = self.mend_stripes(bytes);
        if digest::digest(bytes) == self.sha256 {
            return Ok(mended);
        }
        Err(TooDamaged { blocks: self.damaged_blocks(bytes).len() })
    }

    /// Mends each stripe that can be mended, whatever is lost of the others. Returns how many blocks were
    /// mended; what is still damaged tells its own checksum.
    pub fn mend_stripes(&self, bytes: &mut Vec<u8>) -> usize {
        bytes.resize(self.len, 0);
        let damaged = self.damaged_blocks(bytes);
        let stripes = damaged.chunk_by(|a, b| a / STRIPE == b / STRIPE);
        let mended = stripes.filter_map(|stripe| {
            match *stripe {
                [one] => self.mend_block(bytes, one),
                [first, second] if second == first + 1 => self.mend_across(bytes, first),
                _ => None,
            }
            .map(|()| stripe.len())
        });
        mended.sum()
    }

    /// The parity of a block's stripe added to the sum of what is there: what the stripe lacks.
    fn lacking(&self, bytes: &[u8], block: usize) -> Option<Vec<u8>> {
        let first = block / STRIPE * STRIPE * BLOCK;
        let mut lacking = sum(bytes.get(first..self.len.min(first + STRIPE * BLOCK))?);
        add(&mut lacking, self.parity.get(block / STRIPE)?.as_deref()?);
        Some(lacking)
    }

    fn mend_block(&self, bytes: &mut [u8], block: usize) -> Option<()> {
        let lacking = self.lacking(bytes, block)?;
        add(bytes.get_mut(self.block(block))?, &lacking);
        Some(())
    }

    /// Mends a loss that lies across two blocks: its end is in the second before where its beginning
    /// is in the first.
    fn mend_across(&self, bytes: &mut [u8], first: usize) -> Option<()> {
        let lacking = self.lacking(bytes, first)?;
        let (one, other) = (self.block(first), self.block(first + 1));
        // Each byte of `lacking` belongs to one of them: to the second before the beginning, else to the first.
        let (mut tail, mut head) = (bytes[one.clone()].to_vec(), bytes[other.clone()].to_vec());
        add(&mut tail, &lacking);
        for beginning in 0..=BLOCK {
            if crc32fast::hash(&tail) == self.crcs[first]
                && crc32fast::hash(&head) == self.crcs[first + 1]
            {
                bytes[one].copy_from_slice(&tail);
                bytes[other].copy_from_slice(&head);
                return Some(());
            }
            for block in [&mut tail, &mut head] {
                if let (Some(byte), Some(lacks)) =
                    (block.get_mut(beginning), lacking.get(beginning))
                {
                    *byte ^= lacks;
                }
            }
        }
        None
    }
}

/// The sum of the blocks of a stripe.
fn sum(stripe: &[u8]) -> Vec<u8> {
    let mut sum = vec![0; stripe.len().min(BLOCK)];
    stripe.chunks(BLOCK).for_each(|block| add(&mut sum, block));
    sum
}

fn add(sum: &mut [u8], block: &[u8]) {
    sum.iter_mut().zip(block).for_each(|(sum, byte)| *sum ^= byte);
}

/// Reads `len` bytes and the checksum behind them, and steps over both; `None` if they are damaged.
fn part(bytes: &[u8], at: &mut usize, len: usize) -> Option<Vec<u8>> {
    let start = *at;
    let end = start.saturating_add(len);
    *at = end.saturating_add(4);
    let part = bytes.get(start..end)?;
    (word(bytes, end)? == crc32fast::hash(part)).then(|| part.to_vec())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let long = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_be_bytes(*long))
}

/// Reads the head that the bytes begin with; also tells its length.
fn read_head(bytes: &[u8]) -> Option<(Sidecar, usize)> {
    bytes.starts_with(MAGIC).then_some(())?;
    let segment = long(bytes, 8)?;
    let len = usize::try_from(long(bytes, 16)?).ok()?;
    let sha256 = *bytes.get(24..)?.first_chunk()?;
    let witness_len = usize::try_from(word(bytes, 56)?).ok()?;
    let blocks = len.div_ceil(BLOCK);
    let end = blocks.checked_mul(4)?.checked_add(FIXED)?;
    (word(bytes, end)? == crc32fast::hash(bytes.get(..end)?)).then_some(())?;
    let crcs = (0..blocks).map(|block| word(bytes, FIXED + 4 * block)).collect::<Option<_>>()?;
    let sidecar =
        Sidecar { segment, sha256, witness: None, witness_len, len, crcs, parity: Vec::new() };
    Some((sidecar, end + 4))
}

/// Reads the second head, where the first is damaged.
fn read_last_head(bytes: &[u8]) -> Option<(Sidecar, usize)> {
    let end = bytes.len().checked_sub(4)?;
    let len = usize::try_from(word(bytes, end)?).ok()?;
    read_head(bytes.get(end.checked_sub(len)?..end)?)
}

#[cfg(test)]
mod tests;
