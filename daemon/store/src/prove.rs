//! Proofs of sealed resources ([`omir_core::proof`]): the entry, its path to the root of its segment, and the seal.
//!
//! The segment is read once and hashed entry by entry. What the card has lost of it is mended in memory, as for any
//! reader; a proof is made of the very bytes that were signed, or not at all.

use std::fmt;
use std::io;
use std::ops::Range;

use omir_core::merkle::Tree;
use omir_core::proof::{Proof, ProofFault};
use omir_core::seal::{Seal, SealFault};

use crate::disk::{self, Disk};
use crate::rot::segment_repair;
use crate::segment::locate::{self, BadSegment};
use crate::signing::seal_file;
use crate::{digest, segment};

/// Why no proof can be made of something that is stored.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProveError {
    /// The disk refused. `NotFound`: the segment was compacted away meanwhile.
    Disk(io::Error),
    /// Nothing can be told from the segment's seal.
    Seal(SealFault),
    /// The seal is of an older release, and signs no root over the entries.
    NoRoot,
    /// The segment is not what was signed, and cannot be mended.
    Damaged,
    /// The segment cannot be taken apart.
    Segment(BadSegment),
    /// No entry of the segment lies there: it holds an older version, in its manifest.
    NotAnEntry,
    /// The proof does not verify.
    Unverified(ProofFault),
}

impl fmt::Display for ProveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Seal(fault) => fault.fmt(f),
            Self::NoRoot => f.write_str(
                "it was sealed by an older release, which signed no root over its entries; \
                 `omir compact --all` has it sealed again",
            ),
            Self::Damaged => {
                f.write_str("it is damaged, and its sidecar does not restore what was signed")
            }
            Self::Segment(fault) => fault.fmt(f),
            Self::NotAnEntry => f.write_str("no entry of it lies there"),
            Self::Unverified(fault) => write!(f, "the proof does not verify: {fault}"),
        }
    }
}

impl std::error::Error for ProveError {}

/// Proves the resource that lies at `place` in segment `number`. What is returned verifies by the key of its seal.
///
/// # Errors
/// See [`ProveError`].
pub fn prove(disk: &dyn Disk, number: u64, place: &Range<u64>) -> Result<Proof, ProveError> {
    let seal =
        seal_file::read(disk, number).map_err(ProveError::Disk)?.map_err(ProveError::Seal)?;
    if seal.contents.root.is_none() {
        return Err(ProveError::NoRoot);
    }
    let bytes = signed_bytes(disk, number, &seal)?;
    let proof = of_bytes(&bytes, seal, place)?;
    let key = proof.seal.public_key;
    proof.verify(&key).map_err(ProveError::Unverified)?;
    Ok(proof)
}

/// The bytes of a segment as they were signed.
fn signed_bytes(disk: &dyn Disk, number: u64, seal: &Seal) -> Result<Vec<u8>, ProveError> {
    let is_signed = |bytes: &Vec<u8>| digest::digest(bytes) == seal.contents.sha256;
    let read = match disk::read(disk, &segment::path(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || !disk::is_loss(&error) => {
            return Err(ProveError::Disk(error));
        }
        read => read.ok().filter(is_signed),
    };
    let bytes = read.or_else(|| segment_repair::mended(disk, number).filter(is_signed));
    bytes.ok_or(ProveError::Damaged)
}

fn of_bytes(bytes: &[u8], seal: Seal, place: &Range<u64>) -> Result<Proof, ProveError> {
    let list = locate::member(bytes, &(0..bytes.len()), "entry").map_err(ProveError::Segment)?;
    let entries = locate::items(bytes, &list).map_err(ProveError::Segment)?;
    let lies_there =
        |entry: &Range<usize>| entry.start as u64 == place.start && entry.end as u64 == place.end;
    let index = entries.iter().position(lies_there).ok_or(ProveError::NotAnEntry)?;
    let entry = bytes[entries[index].clone()].to_vec();
    let mut tree = Tree::with_path_of(index as u64);
    entries.into_iter().for_each(|entry| tree.push(&bytes[entry]));
    let (_, path) = tree.finish();
    Ok(Proof { entry, index: index as u64, path: path.unwrap_or_default(), seal })
}
