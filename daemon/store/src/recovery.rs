//! From what lies on the disk to a store that can be used: what happens at every start.
//!
//! 1. Left-over temporary files go, and of a compaction that was cut short either the new segment or
//!    the old ones.
//! 2. Each segment's index block is taken from sled, or rebuilt from the segment, in the order of
//!    their first transactions: a compacted segment has a higher number than what comes after it.
//! 3. Logs that a segment already covers are dropped (the cut came before that step of sealing).
//! 4. The remaining logs are replayed, each up to its torn end.
//! 5. What is damaged is told of by its second copy (`store/log/witness.rs`): what was forgotten stays forgotten, and
//!    what is older than a lost version is not taken for current.
//! 6. The newest log is cut at its torn end and written on, or a new one begun.
//!
//! What needs no order (reading, checksums, decoding, drawing what the index needs) is done ahead on
//! several threads; what is decided, reported, written and put into the catalog goes in order on one,
//! so the same files give the same store.
//!
//! Nothing is deleted that is not provably held elsewhere. What is damaged is set aside under the
//! name `<file>.damaged`, reported, and the rest is served.

mod ahead;
mod compactions;
mod logs;
mod segments;
mod witnesses;

use std::collections::{BTreeSet, HashSet};
use std::io;

use omir_core::instant::Timestamp;

use crate::backup::UNFINISHED;
use crate::digest::{self, Digest};
use crate::disk::{self, Disk};
use crate::index::Index;
use crate::kept_index::cache::Cache;
use crate::log::wal;
use crate::log::witness::{self, Fact};
use crate::log::{Log, Unsealed};
use crate::recorded::mark::Mark;
use crate::recorded::ref_key::KeyPrefix;
use crate::recorded::stamps::Stamps;
use crate::recorded::version::FileId;
use crate::rot::segment_repair;
use crate::segment;
use crate::signing::signature::Seal;
use crate::signing::{device_key, seal_file};
use crate::upkeep::sealer::SealedSegment;

/// Something acknowledged that the disk no longer gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The fault, and what was done.
    pub message: String,
}

/// How far a start has come, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartProgress {
    /// The index of so many of so many segments has been rebuilt.
    Rebuilding {
        /// Segments done.
        done: u64,
        /// Segments in all.
        total: u64,
    },
    /// The start is complete.
    Done,
}

/// Findings of a start.
pub struct Recovered<I> {
    /// The index.
    pub catalog: I,
    /// The log to write on.
    pub log: Log,
    /// Why that log may not be written on, if the disk refuses: a new one must be begun first.
    pub log_refused: Option<io::Error>,
    /// Logs to be sealed, oldest first.
    pub unsealed: Vec<Unsealed>,
    /// Transaction number the current log began with.
    pub log_first: u64,
    /// When that was recorded, as [`Unsealed::began`]; `None` if the log holds nothing yet.
    pub log_began: Option<Timestamp>,
    /// True if the current log holds versions or tombstones.
    pub log_has_changes: bool,
    /// The next transaction.
    pub next_seq: u64,
    /// Starts before this one.
    pub boots: u64,
    /// The last mark of the store.
    pub mark: Mark,
    /// The latest instant anything was recorded at.
    pub latest: Timestamp,
    /// When stamps of a time to come were given out.
    pub stamps: Stamps,
    /// Number of the next segment.
    pub next_segment: u64,
    /// Link of the last segment.
    pub previous: Digest,
    /// All segments, by their first transaction.
    pub segments: Vec<SealedSegment>,
    /// Numbers of segments that others replaced and that are still to be removed.
    pub leftovers: Vec<u64>,
    /// The loss.
    pub damage: Vec<Damage>,
    /// Files that earlier starts set aside and that still lie there.
    pub set_aside: Vec<String>,
    /// How many index blocks had to be rebuilt.
    pub rebuilt: u64,
    /// How many damages were repaired.
    pub repaired: u64,
    /// Numbers of segments that lack a sidecar or a readable signature: an older release wrote no sidecars.
    pub bare: Vec<u64>,
}

struct Recovery<'a, I> {
    disk: &'a dyn Disk,
    threads: usize,
    catalog: I,
    damage: Vec<Damage>,
    last_seq: u64,
    /// The highest log that any segment was sealed from.
    last_log: u64,
    boots: u64,
    mark: Mark,
    latest: i64,
    stamps: Stamps,
    rebuilt: u64,
    repaired: u64,
    /// Half-written segments that could not be removed: to be written again under the same number.
    left_lying: Vec<u64>,
    /// Segments that compacted ones replaced and that could not be removed.
    leftovers: Vec<u64>,
    /// True if the newest log may be written on: not if a later one lies there unread.
    may_resume: bool,
    /// Logs of which nothing is needed: on a card that cannot be written to they stay.
    needless_logs: Vec<u64>,
    /// Statements of second copies on damaged files.
    facts: Vec<Fact>,
    /// Names in bytes that cannot be read, or are not used. First versions have no second copy.
    names: HashSet<KeyPrefix>,
    /// Damaged files that acknowledged versions are lost with. Some of them may be of names that nothing tells.
    lossy: BTreeSet<String>,
    /// Segments that are used and have no readable signature.
    unsigned: Vec<u64>,
}

/// An error of a disk that is full or read-only: what it did not do is done by the next start, and
/// what lies there can be served.
fn bearable(error: io::Error) -> io::Result<io::Error> {
    if disk::is_full(&error) || disk::is_read_only(&error) { Ok(error) } else { Err(error) }
}

/// The outcome on a disk that may be full or read-only.
fn borne(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) => bearable(error).map(|_| false),
    }
}

/// Brings a store up from its files.
///
/// # Errors
/// Only if the disk cannot be read or written at all; damage to single files is reported in
/// [`Recovered::damage`].
pub fn recover<I: Index>(
    disk: &dyn Disk,
    cache: &mut Cache,
    new_log_above: u64,
    progress: &mut dyn FnMut(StartProgress),
) -> io::Result<Recovered<I>> {
    recover_on(disk, cache, new_log_above, progress, ahead::threads())
}

/// The same with so many threads to work ahead, on which nothing depends.
///
/// # Errors
/// As [`recover`].
pub fn recover_on<I: Index>(
    disk: &dyn Disk,
    cache: &mut Cache,
    new_log_above: u64,
    progress: &mut dyn FnMut(StartProgress),
    threads: usize,
) -> io::Result<Recovered<I>> {
    refuse_unfinished(disk)?;
    disk.create_dir(segment::DIR)?;
    disk.create_dir(wal::DIR)?;
    borne(disk.sync_dir("."))?;
    for dir in [segment::DIR, wal::DIR] {
        for name in disk.list(dir)? {
            if name.ends_with(".tmp") {
                borne(disk.remove(&format!("{dir}/{name}")))?;
            }
        }
    }
    let mut logs: Vec<u64> =
        disk.list(wal::DIR)?.iter().filter_map(|name| wal::number_of(name)).collect();
    logs.sort_unstable();

    let mut recovery = Recovery {
        disk,
        threads,
        catalog: I::loading(),
        damage: Vec::new(),
        last_seq: 0,
        last_log: 0,
        boots: 0,
        mark: Mark::default(),
        latest: 0,
        stamps: Stamps::default(),
        rebuilt: 0,
        repaired: 0,
        left_lying: Vec::new(),
        leftovers: Vec::new(),
        may_resume: true,
        needless_logs: Vec::new(),
        facts: Vec::new(),
        names: HashSet::new(),
        lossy: BTreeSet::new(),
        unsigned: Vec::new(),
    };
    remove_left_sidecars(disk)?;
    let loaded = recovery.load_segments(cache, &logs, progress)?;
    let logs = recovery.replay_logs(&logs)?;
    recovery.hear_witnesses()?;
    recovery.catalog.finish_loading(threads);
    let last_seq = recovery.last_seq;

    let mut unsealed: Vec<Unsealed> = Vec::new();
    let mut current = None;
    // Set if the newest log is only too long to be written on; true if it holds changes.
    let mut too_long: Option<bool> = None;
    let newest_number = logs.last().map(|log| log.unsealed.log);
    for log in logs {
        let is_newest = Some(log.unsealed.log) == newest_number;
        let may_resume = is_newest && log.unsealed.is_sound && recovery.may_resume;
        if may_resume && log.unsealed.end < new_log_above {
            current = Some(log);
        } else if log.has_frames || !log.unsealed.is_sound {
            too_long = may_resume.then_some(log.has_changes);
            unsealed.push(log.unsealed);
        } else {
            let number = log.unsealed.log;
            borne(witness::remove(disk, number).and_then(|()| disk.remove(&wal::path(number))))?;
        }
    }
    let mut log_refused = None;
    let (log, log_first, log_began, log_has_changes) = match current {
        Some(log) => {
            let Unsealed { log: number, end, first, began, .. } = log.unsealed;
            let resumed = Log::resume(disk, number, end).or_else(|error| {
                log_refused = Some(bearable(error)?);
                Log::closed(disk, number, end)
            })?;
            (resumed, first, log.has_frames.then_some(began), log.has_changes)
        }
        None => {
            // Never a number that was used before: a segment names the log it was sealed from.
            let used = disk
                .list(wal::DIR)?
                .iter()
                .filter_map(|name| wal::number_of(name.strip_suffix(".damaged").unwrap_or(name)))
                .max();
            let newest = newest_number.max(used).unwrap_or(0);
            let number = newest.max(recovery.last_log) + 1;
            match Log::create(disk, number, last_seq + 1) {
                Ok(log) => (log, last_seq + 1, None, false),
                // No room for a new one: the newest goes on past its bound, so that the store
                // opens and what is stored can be read.
                Err(error) if disk::is_full(&error) && too_long.is_some() => {
                    let log = unsealed.pop().ok_or(error)?;
                    let resumed = Log::resume(disk, log.log, log.end)?;
                    (resumed, log.first, Some(log.began), too_long.unwrap_or(false))
                }
                Err(error) => {
                    log_refused = Some(bearable(error)?);
                    (Log::absent(number - 1), last_seq + 1, None, false)
                }
            }
        }
    };
    // One that is not there has the number of the newest that is, and that is served.
    if log.exists() {
        recovery.catalog.files_mut().add_log(FileId::log(log.number()), log.file());
    }
    let mut bare = recovery.unsigned;
    bare.extend(without_sidecar(disk, &loaded.pieces)?);
    progress(StartProgress::Done);
    Ok(Recovered {
        catalog: recovery.catalog,
        log,
        log_refused,
        unsealed,
        log_first,
        log_began,
        log_has_changes,
        next_seq: last_seq + 1,
        boots: recovery.boots,
        mark: recovery.mark,
        latest: Timestamp::from_micros(recovery.latest),
        stamps: recovery.stamps,
        next_segment: loaded.next,
        previous: loaded.previous,
        segments: loaded.pieces,
        leftovers: recovery.leftovers,
        set_aside: set_aside(disk, &recovery.damage),
        damage: recovery.damage,
        rebuilt: recovery.rebuilt,
        repaired: recovery.repaired,
        bare,
    })
}

/// Lists the files that earlier starts set aside, without those that this one found damaged.
fn set_aside(disk: &dyn Disk, found: &[Damage]) -> Vec<String> {
    let mut files = Vec::new();
    for dir in [segment::DIR, wal::DIR, device_key::DIR] {
        let names = disk.list(dir).unwrap_or_default();
        let damaged = names.iter().filter_map(|name| name.strip_suffix(".damaged"));
        let damaged = damaged.map(|name| format!("{dir}/{name}"));
        files.extend(damaged.filter(|file| found.iter().all(|damage| damage.file != *file)));
    }
    files.iter().map(|file| format!("{file}.damaged")).collect()
}

/// Refuses a folder that was to get memories from a backup and has not got them: who starts there
/// with none would not notice.
fn refuse_unfinished(disk: &dyn Disk) -> io::Result<()> {
    let names = disk.list("")?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(UNFINISHED) && !has(segment::DIR) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "a restore into this folder was cut short ({UNFINISHED} lies in it, and there is no \
                 {}): run `omir restore` once more, or remove {UNFINISHED} to begin with nothing",
                segment::DIR
            ),
        ));
    }
    Ok(())
}

fn unread(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path} cannot be read: {error}"))
}

impl<I: Index> Recovery<'_, I> {
    fn report(&mut self, file: &str, message: String) {
        tracing::error!(file, %message, "damaged");
        self.damage.push(Damage { file: file.to_owned(), message });
    }

    fn set_aside(&mut self, path: &str, message: &str) -> io::Result<()> {
        if borne(self.disk.rename(path, &format!("{path}.damaged")))? {
            self.report(path, format!("{message}; kept as {path}.damaged"));
        } else {
            self.may_resume = false;
            self.report(path, format!("{message}; kept as it is, the disk cannot be written to"));
        }
        Ok(())
    }
}

/// Reads a whole file; the inner error is that of a file the card has lost. Nothing is set aside
/// for a reason that may be gone at the next start: neither an error that does not come again,
/// nor one that is none of the file's, which ends this start.
fn read(disk: &dyn Disk, path: &str) -> io::Result<io::Result<Vec<u8>>> {
    match disk::read_patiently(disk, path) {
        Err(error) if !disk::is_loss(&error) => Err(unread(path, &error)),
        read => Ok(read),
    }
}

/// Reads a segment as [`read`] does; what is not as it was signed, or is lost in part, is repaired by its
/// sidecar if that is possible, which the second value tells.
fn read_segment(
    disk: &dyn Disk,
    number: u64,
    seal: Option<&Seal>,
) -> io::Result<io::Result<(Vec<u8>, bool)>> {
    let read = read(disk, &segment::path(number))?;
    let is_as_signed = match (&read, seal) {
        (Ok(bytes), Some(seal)) => digest::digest(bytes) == seal.contents.sha256,
        _ => false,
    };
    if is_as_signed {
        return Ok(read.map(|bytes| (bytes, false)));
    }
    Ok(match segment_repair::repair(disk, number, seal) {
        Some(repaired) => {
            let is_repaired = read.map_or(true, |bytes| bytes != repaired);
            Ok((repaired, is_repaired))
        }
        None => read.map(|bytes| (bytes, false)),
    })
}

/// Numbers of segments that have no sidecar.
fn without_sidecar(disk: &dyn Disk, pieces: &[SealedSegment]) -> io::Result<Vec<u64>> {
    let names = disk.list(segment::DIR)?;
    let has = |path: String| names.iter().any(|name| path.ends_with(name.as_str()));
    let numbers = pieces.iter().map(|piece| piece.number);
    Ok(numbers.filter(|number| !has(segment::sidecar_path(*number))).collect())
}

/// Removes sidecars whose segments are gone: they may tell of what was forgotten.
fn remove_left_sidecars(disk: &dyn Disk) -> io::Result<()> {
    let names = disk.list(segment::DIR)?;
    for name in &names {
        let Some(stem) = name.strip_suffix(".par") else { continue };
        let has = |ending: &str| names.contains(&format!("{stem}{ending}"));
        if !has(".omirb") && !has(".omirb.damaged") {
            borne(disk.remove(&format!("{}/{name}", segment::DIR)))?;
        }
    }
    Ok(())
}

/// The seal of a segment, if it can be read. It matters only if the segment itself is in doubt.
fn read_seal(disk: &dyn Disk, number: u64) -> io::Result<Option<Seal>> {
    seal_file::find(disk, number).map_err(|error| unread(&segment::signature_path(number), &error))
}

/// Returns true if the sidecar of a segment says that this is its digest.
fn is_vouched_for(disk: &dyn Disk, number: u64, digest: &Digest) -> bool {
    segment_repair::read_sidecar(disk, number).is_some_and(|sidecar| sidecar.sha256 == *digest)
}
