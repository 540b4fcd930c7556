//! Reading a sealed segment, or a log that waits, through for rot, on the thread that alone writes and removes segments.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::io;

use super::sealer::{SealedSegment, Sealer};
use crate::digest::{self, Digest};
use crate::disk::{self, Mode};
use crate::files::SeqRange;
use crate::index::Index;
use crate::log::Unsealed;
use crate::log::wal;
use crate::recorded::version::FileId;
use crate::rot::segment_repair::{self, Scrubbed};
use crate::signing::seal_file;
use crate::{log, segment};

impl<I: Index> Sealer<I> {
    /// Reads a segment, its sidecar and its signature, and repairs what can be repaired of them. `None` if there is no such
    /// segment any more.
    ///
    /// # Errors
    /// Whatever the disk says, other than that bytes are lost.
    pub fn scrub(&mut self, number: u64) -> io::Result<Option<Scrubbed>> {
        let Some(at) = self.pieces.iter().position(|piece| piece.number == number) else {
            return Ok(None);
        };
        let scrubbed = segment_repair::scrub(&*self.disk, number)?;
        if scrubbed == Scrubbed::Lost {
            // With the card away nothing can be read, and nothing is lost.
            self.disk.mount_generation()?;
        }
        self.pieces[at].is_sound = scrubbed != Scrubbed::Lost;
        if let Scrubbed::Segment(bytes) = &scrubbed {
            let piece = &mut self.pieces[at];
            piece.bytes = bytes.len() as u64;
            let span = SeqRange { first_seq: piece.first_seq, last_seq: piece.last_seq };
            let file = self.disk.open(&segment::path(number), Mode::Read)?;
            let mut catalog = self.catalog.write();
            // Readers that hold the old file read it through their mender.
            catalog.files_mut().add_segment(FileId::segment(number), file, span);
        }
        if scrubbed != Scrubbed::Lost && seal_file::find(&*self.disk, number)?.is_none() {
            self.sign_again(at)?;
        }
        Ok(Some(scrubbed))
    }

    /// Reads a log through that waits to be sealed, and turns back single bits that have rotted. Tells how many; `None`
    /// if more is lost of it, which sealing finds as well.
    ///
    /// # Errors
    /// Whatever the disk says, other than that bytes are lost.
    pub fn scrub_log(&self, log: &Unsealed) -> io::Result<Option<usize>> {
        let mut bytes = match wal::load(&*self.disk, log.log) {
            Err(error) if disk::is_loss(&error) => {
                // With the card away nothing can be read, and nothing is lost.
                return self.disk.mount_generation().map(|_| None);
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

    /// Writes a log that waits to be sealed again if somebody deleted it, and tells whether it did. `None` if it is
    /// deleted and nobody holds it open any more: it is lost, and an empty damaged file stands for it.
    ///
    /// # Errors
    /// Whatever the disk says; it is to be tried again.
    pub fn keep_log(&self, log: &Unsealed) -> io::Result<Option<bool>> {
        self.disk.mount_generation()?;
        let id = FileId::log(log.log);
        let file = self.catalog.read().files().file(id);
        let Some(file) = file else { return Ok(Some(false)) };
        match file.has_name() {
            Ok(true) => return Ok(Some(false)),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && !disk::is_gone(&error) => {
                wal::stand_in(&*self.disk, log.log)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let is_new = log::write_again(&*self.disk, log.log, &*file, log.end)?;
        let file = self.disk.open(&wal::path(log.log), Mode::Read)?;
        self.catalog.write().files_mut().add_log(id, file);
        Ok(Some(is_new))
    }

    /// Signs a segment whose signature is lost, if its sidecar vouches for its bytes and its neighbours say where in the
    /// chain it stands.
    fn sign_again(&self, at: usize) -> io::Result<()> {
        let SealedSegment { number, is_compacted, .. } = self.pieces[at];
        let path = segment::signature_path(number);
        let bytes = disk::read(&*self.disk, &segment::path(number))?;
        let digest = digest::digest(&bytes);
        let vouched = segment_repair::read_sidecar(&*self.disk, number);
        if vouched.is_none_or(|sidecar| sidecar.sha256 != digest) {
            return Ok(());
        }
        let Ok(contents) = segment::contents(&bytes, digest) else { return Ok(()) };
        let before = match at.checked_sub(1) {
            None => Some(Digest::default()),
            Some(before) => {
                seal_file::find(&*self.disk, self.pieces[before].number)?.map(|seal| seal.link())
            }
        };
        let link = match self.pieces.get(at + 1) {
            _ if !is_compacted => None,
            Some(after) => seal_file::find(&*self.disk, after.number)?.map(|seal| seal.previous),
            None => Some(self.previous),
        };
        let (Some(before), true) = (before, link.is_some() == is_compacted) else {
            tracing::warn!(
                file = path,
                "is lost, and so are those beside it: it is not rebuilt yet"
            );
            return Ok(());
        };
        let seal = self.key.sign(number, &contents, before, link);
        disk::replace(&*self.disk, &path, seal.to_json().as_bytes())?;
        self.disk.sync_dir(segment::DIR)?;
        tracing::warn!(file = path, "was lost and is rebuilt");
        Ok(())
    }
}
