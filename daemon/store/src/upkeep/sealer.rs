//! Turns log files into segments, in the background: those that are due together into one.
//!
//! Order of the steps, so that a power cut between any two loses nothing: the segment and its
//! signature are written under temporary names and synced; both are renamed; the folder is synced;
//! readers are pointed at the segment; only then is the log dropped. Whatever was done before a cut
//! is done again at the next start from the log, which is still there.
//!
//! Invariants 3 and 10 of ARCHITECTURE.md.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;

use super::rewrite::{Retention, Rewritten};
use crate::digest::Digest;
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::files::SeqRange;
use crate::index::Index;
use crate::kept_index::block::IndexKind;
use crate::kept_index::cache::Cache;
use crate::kept_index::index_extractor::BlockOf;
use crate::log::Unsealed;
use crate::log::wal;
use crate::log::witness::{self, Fact};
use crate::read::{Handle, ReadError};
use crate::recorded::ref_key::RefKey;
use crate::recorded::transaction::{Transaction, Unreadable};
use crate::recorded::version::FileId;
use crate::rot::sidecar::Sidecar;
use crate::segment::locate::BadSegment;
use crate::segment::{self, Draft, EarlierResource};
use crate::signing::signature::{DeviceKey, Seal};
use crate::sync::RwLock;

/// Why a log could not be sealed. Its memories are safe and served from the log.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The disk refused (for example because it is full): worth another try later.
    Disk(io::Error),
    /// A log is sound no more: bytes of it that were durable cannot be read. What is left of it is
    /// sealed if it is given as unsound.
    Rotten {
        /// Its number.
        log: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// A transaction of a log cannot be understood: no retry mends that. It stays in its log, and so does what comes
    /// after it: a start takes what is older than the newest segment for sealed.
    Transaction {
        /// Number of the log.
        log: u64,
        /// Why.
        fault: Unreadable,
    },
    /// A resource of a log cannot be put into a valid Bundle: as [`SealError::Transaction`].
    Resource {
        /// Number of the log.
        log: u64,
        /// Why.
        fault: BadSegment,
    },
    /// The segment that was built is none: our bug, which no retry mends. Segments come in the order of what they hold,
    /// so nothing later can be sealed before.
    Unsealable(BadSegment),
}

impl SealError {
    /// Returns true if there was no room on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Disk(error) if disk::is_full(error))
    }
}

impl std::fmt::Display for SealError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "the disk refused: {error}"),
            Self::Rotten { log, bytes } => {
                write!(f, "{bytes} bytes of log {log} were durable and cannot be read any more")
            }
            Self::Transaction { log, fault } => {
                write!(f, "a transaction of log {log} is unreadable: {fault}")
            }
            Self::Resource { log, fault } => {
                write!(f, "a resource of log {log} is unreadable: {fault}")
            }
            Self::Unsealable(fault) => write!(f, "what was built is no segment: {fault}"),
        }
    }
}

impl From<io::Error> for SealError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A sealed segment, as a row of the list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSegment {
    /// Its number.
    pub number: u64,
    /// Length of its file.
    pub bytes: u64,
    /// First transaction in it.
    pub first_seq: u64,
    /// Last transaction in it.
    pub last_seq: u64,
    /// When the last was recorded; microseconds.
    pub last_recorded: i64,
    /// True if it replaces others.
    pub is_compacted: bool,
    /// True if it may be compacted: not if it turned out to be damaged.
    pub is_sound: bool,
}

/// Seals logs.
pub struct Sealer<I> {
    /// The disk of the files.
    pub disk: Arc<dyn Disk>,
    /// Readers' index.
    pub catalog: Arc<RwLock<I>>,
    /// The key that signs.
    pub key: DeviceKey,
    /// The kept index.
    pub cache: Cache,
    /// Number of the next segment.
    pub next: u64,
    /// Link of the segment before it.
    pub previous: Digest,
    /// All segments, by their first transaction.
    pub pieces: Vec<SealedSegment>,
    /// Numbers of segments that others replace and that are still to be removed.
    pub leftovers: Vec<u64>,
    /// Starts of the daemon so far.
    pub boots: u64,
    /// Counter of the bytes of the kept index; the disk itself counts those of files.
    pub bytes_written: Arc<AtomicU64>,
}

impl<I: Index> Sealer<I> {
    /// Seals log files, oldest first, into one segment and drops them. Of several all are sound. What
    /// was forgotten, or superseded long ago, is not written again, as far as `lapse` allows.
    ///
    /// Returns whether there was anything to seal; an empty log is dropped without a segment.
    pub fn seal(
        &mut self,
        logs: &[Unsealed],
        now: Timestamp,
        lapse: Retention,
    ) -> Result<bool, SealError> {
        let Some(newest) = logs.last() else { return Ok(false) };
        let began = Instant::now();
        let mut draft = Draft::new(self.next, newest.log, self.boots);
        for log in logs {
            self.gather(log, &mut draft)?;
        }
        if draft.is_empty() {
            self.drop_logs(logs);
            return Ok(false);
        }
        let mut refused = None;
        let draft = draft.build(now, |reference| self.live(reference, &mut refused));
        // A version that cannot be read now may be readable in a minute: none is left out for that.
        if let Some(error) = refused {
            return Err(error.into());
        }
        let merge = match logs.iter().all(|log| log.is_sound) {
            true => match self.tidy(&draft, lapse) {
                Err(fault @ SealError::Disk(_)) => return Err(fault),
                Err(fault) => {
                    tracing::warn!(log = newest.log, %fault, "sealed with all that it held");
                    None
                }
                Ok(merge) => Some(merge),
            },
            // Nothing of it is judged by an index that knows only a part.
            false => None,
        };
        let is_tidy = merge.is_some();
        let mut merged = match merge {
            Some(merge) => {
                // The merge holds all that stays of the draft, and memory is short.
                drop(draft);
                merge.finish(now)
            }
            None => Rewritten { bytes: draft, ..Rewritten::default() },
        };
        let sealed = std::mem::take(&mut merged.bytes);
        let block = segment::index::<I>(&sealed).map_err(SealError::Unsealable)?;
        let contents = segment::contents(&sealed, block.digest).map_err(SealError::Unsealable)?;
        let seal = self.key.sign(self.next, &contents, self.previous, None);

        let facts = match is_tidy {
            true => self.facts_of(&block),
            false => witness::of_block::<I>(&block),
        };
        let file = self.write(self.next, &seal, &sealed, &facts)?;
        let len = sealed.len() as u64;
        drop(sealed);
        let segment_id = FileId::segment(self.next);
        {
            let mut catalog = self.catalog.write();
            let span = SeqRange { first_seq: block.first_seq, last_seq: block.last_seq };
            catalog.files_mut().add_segment(segment_id, file, span);
            catalog.compact(&block.rows, segment_id, &merged.dropped, &merged.tombstones);
        }
        self.keep_block(self.next, len, &block);
        tracing::info!(
            segment = self.next,
            logs = logs.len(),
            versions = block.rows.len(),
            bytes = len,
            superseded = merged.superseded,
            forgotten = merged.forgotten,
            millis = began.elapsed().as_millis() as u64,
            "sealed"
        );
        self.pieces.push(SealedSegment {
            number: self.next,
            bytes: len,
            first_seq: block.first_seq,
            last_seq: block.last_seq,
            last_recorded: block.last_recorded,
            is_compacted: false,
            is_sound: true,
        });
        self.previous = seal.link();
        self.next += 1;
        self.drop_logs(logs);
        Ok(true)
    }

    /// Returns the facts of a new segment that must stay known if it is lost.
    pub(super) fn facts_of(&self, block: &BlockOf<I>) -> Vec<Fact> {
        let catalog = self.catalog.read();
        let is_held = |key: &RefKey| catalog.has_version_before(key, block.first_seq);
        witness::of_new_block::<I>(block, is_held)
    }

    /// Writes a segment: its sidecar, its signature and, last, itself. Durable on return, and open. Nothing is
    /// written that there is no room for.
    pub(super) fn write(
        &self,
        number: u64,
        seal: &Seal,
        bytes: &[u8],
        facts: &[Fact],
    ) -> io::Result<Arc<dyn DiskFile>> {
        let sidecar = Sidecar::of(number, bytes, witness::encode(facts)).encode();
        let seal = seal.to_json();
        let files = [
            (segment::sidecar_path(number), sidecar.as_slice()),
            (segment::signature_path(number), seal.as_bytes()),
            (segment::path(number), bytes),
        ];
        let taken = files.iter().map(|(_, bytes)| disk::room_of(bytes.len() as u64)).sum();
        disk::check_room(&*self.disk, taken)?;
        let written = files
            .iter()
            .try_for_each(|(path, bytes)| disk::replace(&*self.disk, path, bytes))
            .and_then(|()| self.disk.sync_dir(segment::DIR))
            .and_then(|()| self.disk.open(&segment::path(number), Mode::Read));
        if written.is_err() {
            // It may have got its name all the same; nothing stands for anything yet.
            for (path, _) in files.iter().rev() {
                let _ = self.disk.remove(path);
            }
        }
        written
    }

    /// Keeps the index of a segment, where that leaves room for memories.
    pub(super) fn keep_block(&mut self, number: u64, len: u64, block: &BlockOf<I>) {
        if self.cache.is_for(len) && disk::check_room(&*self.disk, len).is_err() {
            tracing::debug!(segment = number, "the disk is full, and the index is not kept");
            return;
        }
        let kept = self.cache.put::<I>(number, len, block, &IndexKind::ALL);
        self.bytes_written.fetch_add(kept, Ordering::Relaxed);
    }

    /// Puts the transactions of a log into a draft.
    fn gather(&self, unsealed: &Unsealed, draft: &mut Draft) -> Result<(), SealError> {
        let &Unsealed { log, end, durable, first, is_sound, .. } = unsealed;
        let mut bytes = match wal::load(&*self.disk, log) {
            // Recovery has said already what is lost.
            Err(error) if !is_sound && disk::is_loss(&error) => {
                disk::read_around(&*self.disk, &wal::path(log))?.0
            }
            // It was deleted, and an empty file stands for it.
            Err(error) if !is_sound && error.kind() == io::ErrorKind::NotFound => {
                return self.disk.mount_generation().map(drop).map_err(SealError::from);
            }
            bytes => bytes?,
        };
        bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        // A start would turn back what single bits of it have rotted; what is read here needs no start.
        wal::mend(&mut bytes, log);
        let durable = usize::try_from(durable).unwrap_or(usize::MAX);
        let contents = match wal::read_known(&bytes, log, durable) {
            Ok(contents) => contents,
            Err(_) if is_sound => return Err(SealError::Rotten { log, bytes: end }),
            // Nothing is left.
            Err(_) => return Ok(()),
        };
        if is_sound {
            let lost: usize = contents.damage.iter().map(|damage| damage.len).sum();
            let lost = lost + durable.saturating_sub(bytes.len());
            if lost > 0 {
                return Err(SealError::Rotten { log, bytes: lost as u64 });
            }
        }
        draft.reserve(contents.frames.iter().map(|frame| frame.payload.len()).sum());
        for frame in &contents.frames {
            let transaction = match Transaction::decode(frame.payload) {
                Ok((transaction, _)) => transaction,
                // The same: the rest of the log is not to wait for it.
                Err(_) if !is_sound => continue,
                Err(fault) => return Err(SealError::Transaction { log, fault }),
            };
            if transaction.seq >= first {
                draft.add(&transaction).map_err(|fault| SealError::Resource { log, fault })?;
            }
        }
        Ok(())
    }

    /// Drops logs that a segment covers. The newest first, whose number the segment bears: while that
    /// is there, all of them are, and could be sealed again.
    fn drop_logs(&self, logs: &[Unsealed]) {
        logs.iter().rev().for_each(|log| self.drop_log(log.log, log.is_sound));
    }

    /// Drops a log that a segment covers; one with damage is set aside instead. Where the disk
    /// refuses, it stays until the next start finds it covered: that is no reason to seal it a
    /// second time.
    fn drop_log(&self, log: u64, is_sound: bool) {
        let path = wal::path(log);
        let dropped = if is_sound {
            self.disk.remove(&path).and_then(|()| witness::remove(&*self.disk, log))
        } else {
            // Its witness stays: it tells what was lost with it.
            match self.disk.rename(&path, &format!("{path}.damaged")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !disk::is_gone(&error) => {
                    wal::stand_in(&*self.disk, log).map(drop)
                }
                renamed => renamed,
            }
        };
        if let Err(error) = dropped.and_then(|()| self.disk.sync_dir(wal::DIR)) {
            tracing::warn!(file = path, %error, "a sealed log could not be dropped yet");
        }
        self.catalog.write().files_mut().drop_file(FileId::log(log));
    }

    /// The live version of a resource, for a copy. What the disk refuses to give is put into `refused`.
    fn live(&self, reference: &Ref, refused: &mut Option<io::Error>) -> EarlierResource {
        let key = RefKey::of(reference);
        let handle = {
            let catalog = self.catalog.read();
            match catalog.live(&key) {
                Some((id, _)) => Handle::of(&*catalog, id),
                None if catalog.may_be_lost(&key) => return EarlierResource::OutOfReach,
                None => return EarlierResource::Gone,
            }
        };
        match handle.resource() {
            Ok(resource) => EarlierResource::Live(Box::new(resource)),
            Err(ReadError::Disk { error, .. }) => {
                *refused = Some(error);
                EarlierResource::OutOfReach
            }
            Err(fault) => {
                tracing::error!(%reference, %fault, "a stored resource cannot be copied");
                EarlierResource::OutOfReach
            }
        }
    }
}
