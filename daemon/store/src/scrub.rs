//! Reading a sealed segment, or a log that waits, through for rot, on the thread that alone writes and removes segments.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::io;
use std::sync::PoisonError;

use super::compact::Piece;
use super::healing::{self, Healed};
use super::recovery::Unsealed;
use super::sealer::{Sealer, segment_file};
use super::segment;
use super::signature::{self, Digest, Seal};
use super::wal;
use crate::disk::{self, Mode};
use crate::files::Span;
use crate::index::Index;

impl<I: Index> Sealer<I> {
    /// Reads a segment, its sidecar and its signature, and mends what can be mended of them. `None` if there is no such
    /// segment any more.
    ///
    /// # Errors
    /// Whatever the disk says, other than that bytes are lost.
    pub fn scrub(&mut self, number: u64) -> io::Result<Option<Healed>> {
        let Some(at) = self.pieces.iter().position(|piece| piece.number == number) else {
            return Ok(None);
        };
        let healed = healing::scrub(&*self.disk, number)?;
        if healed == Healed::Lost {
            // Where the card is away nothing can be read, and nothing is lost.
            self.disk.mounting()?;
        }
        self.pieces[at].is_sound = healed != Healed::Lost;
        if let Healed::Segment(bytes) = &healed {
            let piece = &mut self.pieces[at];
            piece.bytes = bytes.len() as u64;
            let span = Span { first_seq: piece.first_seq, last_seq: piece.last_seq };
            let file = self.disk.open(&segment::path(number), Mode::Read)?;
            let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
            // Readers that hold the old file read it through their mender.
            catalog.files_mut().add_segment(segment_file(number), file, span);
        }
        if healed != Healed::Lost && self.seal_of(number)?.is_none() {
            self.sign_anew(at)?;
        }
        Ok(Some(healed))
    }

    /// Reads a log through that waits to be sealed, and turns back single bits that have rotted. Tells how many; `None`
    /// if more is lost of it, which sealing finds as well.
    ///
    /// # Errors
    /// Whatever the disk says, other than that bytes are lost.
    pub fn scrub_log(&self, log: &Unsealed) -> io::Result<Option<usize>> {
        let mut bytes = match wal::load(&*self.disk, log.log) {
            Err(error) if disk::is_loss(&error) => {
                // Where the card is away nothing can be read, and nothing is lost.
                return self.disk.mounting().map(|_| None);
            }
            bytes => bytes?,
        };
        bytes.truncate(usize::try_from(log.end).unwrap_or(usize::MAX));
        let mended = wal::mend(&mut bytes, log.log);
        if !mended.is_empty() {
            wal::write_mended(&*self.disk, log.log, &mended)?;
            tracing::warn!(log = log.log, bits = mended.len(), "rotten bits were turned back");
        }
        let durable = usize::try_from(log.durable).unwrap_or(usize::MAX);
        let contents = wal::read_known(&bytes, log.log, durable);
        let is_whole = contents.is_ok_and(|contents| contents.damage.is_empty());
        Ok((is_whole && bytes.len() >= durable).then_some(mended.len()))
    }

    /// The seal of a segment, if it can be read and is authentic.
    fn seal_of(&self, number: u64) -> io::Result<Option<Seal>> {
        match disk::read(&*self.disk, &segment::signature_path(number)) {
            Ok(text) => Ok(Seal::from_json(&text).ok().filter(Seal::is_authentic)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.mounting()?;
                Ok(None)
            }
            Err(error) if disk::is_loss(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Signs a segment whose signature is lost, if its sidecar vouches for its bytes and its neighbours say where in the
    /// chain it stands.
    fn sign_anew(&self, at: usize) -> io::Result<()> {
        let Piece { number, is_compacted, .. } = self.pieces[at];
        let path = segment::signature_path(number);
        let bytes = disk::read(&*self.disk, &segment::path(number))?;
        let digest = signature::digest(&bytes);
        let vouched = healing::read_sidecar(&*self.disk, number);
        if vouched.is_none_or(|sidecar| sidecar.sha256 != digest) {
            return Ok(());
        }
        let Ok(contents) = segment::contents(&bytes, digest) else { return Ok(()) };
        let before = match at.checked_sub(1) {
            None => Some(Digest::default()),
            Some(before) => self.seal_of(self.pieces[before].number)?.map(|seal| seal.link()),
        };
        let link = match self.pieces.get(at + 1) {
            _ if !is_compacted => None,
            Some(after) => self.seal_of(after.number)?.map(|seal| seal.previous),
            None => Some(self.previous),
        };
        let (Some(before), true) = (before, link.is_some() == is_compacted) else {
            tracing::warn!(
                file = path,
                "is lost, and so are those beside it: it is not made anew yet"
            );
            return Ok(());
        };
        let seal = self.key.sign(number, &contents, before, link);
        disk::replace(&*self.disk, &path, seal.to_json().as_bytes())?;
        self.disk.sync_dir(segment::DIR)?;
        tracing::warn!(file = path, "was lost and is made anew");
        Ok(())
    }
}
