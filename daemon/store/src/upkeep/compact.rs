//! Compaction: one new segment in the place of a run of old ones, without what was superseded long
//! ago and without anything that was forgotten.
//!
//! | module | the question it answers |
//! |---|---|
//! | `rewrite` | what does the new segment hold, and what is dropped? |
//! | `survey` | does a segment still tell of what was forgotten? |
//!
//! Which run is worth it, and when, is decided elsewhere (`engine/upkeep/policy.rs`). Here it is done, so
//! that a power cut between any two steps loses nothing and brings nothing back:
//!
//! 1. The new segment takes the next free number. It is built in memory and indexed, which reads
//!    back what was built.
//! 2. Signature and segment are written under temporary names, synced and renamed, the segment
//!    last; the folder is synced. **From here on the new segment stands for the old ones**: a start
//!    that finds both removes the old ones, by the list in the new one's manifest.
//! 3. Readers are pointed at it under one short lock. Those that still hold an old file read on.
//! 4. The old files are removed and the folder is synced. Until that has succeeded nothing else is
//!    compacted, so that the list of one manifest is always enough.
//!
//! A segment is only replaced if it is, to the byte, what was signed: what is damaged stays for a
//! person to look at.
//!
//! Invariants 3 and 10 of ARCHITECTURE.md.

mod survey;

use std::fmt;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use omir_core::instant::Timestamp;

pub use self::survey::ForgottenTraces;
use super::rewrite::{Retention, Rewrite};
use super::sealer::{SealError, SealedSegment, Sealer};
use crate::digest::{self, Digest};
use crate::files::SeqRange;
use crate::index::Index;
use crate::log::wal;
use crate::recorded::version::FileId;
use crate::rot::segment_repair;
use crate::segment::locate::BadSegment;
use crate::signing::seal_file;
use crate::signing::signature::{self, Seal};
use crate::{disk, segment};

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Bytes of the segments that are gone.
    pub bytes_before: u64,
    /// Bytes of those in their place.
    pub bytes_after: u64,
    /// Versions dropped because later ones took their place long ago.
    pub superseded: u64,
    /// Versions dropped because they were forgotten.
    pub forgotten: u64,
}

impl Compacted {
    /// Adds what another compaction did.
    pub fn add(&mut self, other: &Self) {
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.superseded += other.superseded;
        self.forgotten += other.forgotten;
    }
}

/// Why a run was not compacted. Nothing is lost: the old segments are still there and served.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompactError {
    /// The disk refused: worth another try later.
    Disk(io::Error),
    /// One of the segments is not what was signed, or the new one would not be sound.
    Segment {
        /// Number of the segment.
        number: u64,
        /// The fault.
        message: String,
    },
}

impl CompactError {
    /// Returns true if there was no room on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Disk(error) if disk::is_full(error))
    }
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "the disk refused: {error}"),
            Self::Segment { number, message } => write!(f, "segment {number}: {message}"),
        }
    }
}

impl From<io::Error> for CompactError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl<I: Index> Sealer<I> {
    /// Merges a draft that holds all of its logs into the segment of them: without forgotten versions, and
    /// without those superseded long ago.
    pub(super) fn tidy(&self, draft: &[u8], lapse: Retention) -> Result<Rewrite<'_, I>, SealError> {
        let layout = segment::layout(draft).map_err(SealError::Unsealable)?;
        let span = (layout.manifest.first_seq, layout.manifest.last_seq);
        let is_oldest = self.pieces.is_empty();
        let mut merge = Rewrite::of_logs(&self.catalog, self.next, span, is_oldest, lapse)
            .keeping_tombstones(self.has_set_aside()?);
        let taken = merge.take(self.next, draft, layout);
        if let Some(error) = merge.refused() {
            return Err(error.into());
        }
        taken.map_err(SealError::Unsealable)?;
        Ok(merge)
    }

    /// Returns true if a damaged file is set aside.
    fn has_set_aside(&self) -> io::Result<bool> {
        for folder in [wal::DIR, segment::DIR] {
            if self.disk.list(folder)?.iter().any(|name| name.ends_with(".damaged")) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists, for each segment, the traces of forgotten memories in it, names among them. Reads all segments;
    /// one that cannot be read is passed over.
    pub fn tells_of_forgotten(&self) -> Vec<ForgottenTraces> {
        let of = |piece: &SealedSegment| {
            let (bytes, _) = self.read_sound(piece.number).ok()?;
            survey::tells_of_forgotten(&self.catalog, &bytes).ok()
        };
        self.pieces.iter().map(|piece| of(piece).unwrap_or_default()).collect()
    }

    /// Puts one segment in the place of the segments at `run` of [`Sealer::pieces`]. What was
    /// superseded within `history` before `now` is kept.
    ///
    /// # Errors
    /// See [`CompactError`]. A damaged segment is marked, and is not to be tried again.
    pub fn compact(
        &mut self,
        run: Range<usize>,
        now: Timestamp,
        history: Duration,
    ) -> Result<Compacted, CompactError> {
        self.remove_leftovers()?;
        let compacted = self.try_compact(run, now, history);
        if let Err(CompactError::Segment { number, .. }) = &compacted
            && let Some(piece) = self.pieces.iter_mut().find(|piece| piece.number == *number)
        {
            piece.is_sound = false;
        }
        compacted
    }

    fn try_compact(
        &mut self,
        run: Range<usize>,
        now: Timestamp,
        history: Duration,
    ) -> Result<Compacted, CompactError> {
        let sources = self.pieces.get(run.clone()).unwrap_or_default().to_vec();
        let (Some(first), Some(last)) = (sources.first(), sources.last()) else {
            return Ok(Compacted::default());
        };
        let began = Instant::now();
        let history = i64::try_from(history.as_micros()).unwrap_or(i64::MAX);
        let horizon = now.as_micros().saturating_sub(history);
        let number = self.next;
        let span = (first.first_seq, last.last_seq);
        let mut merge = Rewrite::new(&self.catalog, number, span, run.start == 0, horizon)
            .keeping_tombstones(self.has_set_aside()?);
        let mut links: Option<(Digest, Digest)> = None;
        let mut bytes_before = 0;
        for source in &sources {
            let (bytes, seal) = self.read_sound(source.number)?;
            bytes_before += bytes.len() as u64;
            let from = links.map_or(seal.previous, |(from, _)| from);
            links = Some((from, seal.link()));
            let layout = segment::layout(&bytes).map_err(|fault| at(source.number, &fault))?;
            let taken = merge.take(source.number, &bytes, layout);
            if let Some(error) = merge.refused() {
                return Err(error.into());
            }
            taken.map_err(|fault| at(source.number, &fault))?;
        }
        let mut merged = merge.finish(now);
        let block = segment::index::<I>(&merged.bytes).map_err(|fault| at(first.number, &fault))?;
        let (previous, link) = links.unwrap_or_default();
        let len = merged.bytes.len() as u64;
        let contents = segment::contents(&merged.bytes, block.digest)
            .map_err(|fault| at(first.number, &fault))?;
        let seal = self.key.sign(number, &contents, previous, Some(link));

        if merged.purged_names {
            // The words go before the segments that tell of them: a start after a cut knows of no others.
            self.cache.clear()?;
        }
        let facts = self.facts_of(&block);
        let file = self.write(number, &seal, &merged.bytes, &facts)?;
        merged.bytes = Vec::new();
        self.next += 1;
        let piece = SealedSegment {
            number,
            bytes: len,
            first_seq: span.0,
            last_seq: span.1,
            last_recorded: last.last_recorded,
            is_compacted: true,
            is_sound: true,
        };
        self.pieces.splice(run, [piece]);
        let old: Vec<u64> = sources.iter().map(|source| source.number).collect();
        self.leftovers.extend(&old);
        {
            let mut catalog = self.catalog.write();
            let span = SeqRange { first_seq: span.0, last_seq: span.1 };
            catalog.files_mut().add_segment(FileId::segment(number), file, span);
            catalog.compact(
                &block.rows,
                FileId::segment(number),
                &merged.dropped,
                &merged.tombstones,
            );
            old.iter().for_each(|&old| catalog.files_mut().drop_file(FileId::segment(old)));
        }
        self.keep_block(number, len, &block);
        self.cache.remove(&old);
        if let Err(error) = self.remove_leftovers() {
            tracing::warn!(%error, "compacted segments could not be removed yet");
        }
        let compacted = Compacted {
            bytes_before,
            bytes_after: len,
            superseded: merged.superseded,
            forgotten: merged.forgotten,
        };
        tracing::info!(
            segment = number,
            replaces = old.len(),
            bytes_before,
            bytes = len,
            superseded = merged.superseded,
            forgotten = merged.forgotten,
            millis = began.elapsed().as_millis() as u64,
            "compacted"
        );
        Ok(compacted)
    }

    /// Rebuilds what was thrown away of the kept index, as long as `goes_on` says so; the next start does the rest.
    pub fn refill_index(&mut self, goes_on: &dyn Fn() -> bool) {
        if !self.cache.is_lacking() {
            return;
        }
        for SealedSegment { number, bytes: len, .. } in self.pieces.clone() {
            if !self.cache.is_for(len) || self.cache.holds(number) {
                continue;
            }
            if !goes_on() {
                return;
            }
            // One that is damaged is told of by whoever reads it for itself.
            let read = self.read_sound(number).ok();
            let block = read.and_then(|(bytes, _)| segment::index::<I>(&bytes).ok());
            if let Some(block) = block {
                self.keep_block(number, len, &block);
            }
        }
        self.cache.is_complete();
    }

    /// The bytes of a segment and its seal, if they belong together.
    fn read_sound(&self, number: u64) -> Result<(Vec<u8>, Seal), CompactError> {
        let unsound = |message: String| CompactError::Segment { number, message };
        // The segment first: where the card is away, nothing is there and nothing is damaged.
        let bytes = disk::read(&*self.disk, &segment::path(number))?;
        let seal =
            seal_file::read(&*self.disk, number)?.map_err(|fault| unsound(fault.to_string()))?;
        if seal.contents.sha256 == digest::digest(&bytes) {
            return Ok((bytes, seal));
        }
        // Nothing need be written back: this is about to be replaced.
        let mended = segment_repair::mended(&*self.disk, number)
            .filter(|mended| seal.contents.sha256 == digest::digest(mended));
        let mended =
            mended.ok_or_else(|| unsound(signature::SealFault::DigestDiffers.to_string()))?;
        Ok((mended, seal))
    }

    /// Removes what a compaction replaced. Durable on return.
    fn remove_leftovers(&mut self) -> io::Result<()> {
        if self.leftovers.is_empty() {
            return Ok(());
        }
        for &number in &self.leftovers {
            let paths = [segment::path, segment::signature_path, segment::sidecar_path];
            for path in paths.map(|of| of(number)) {
                match self.disk.remove(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        self.disk.sync_dir(segment::DIR)?;
        self.leftovers.clear();
        Ok(())
    }
}

fn at(number: u64, fault: &BadSegment) -> CompactError {
    CompactError::Segment { number, message: fault.to_string() }
}
