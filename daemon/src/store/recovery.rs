//! From what lies on the disk to a store that can be used: what happens at every start.
//!
//! 1. Left-over temporary files go, and of a compaction that was cut short either the new segment or
//!    the old ones.
//! 2. Each segment's index block is taken from sled, or made anew from the segment, in the order of
//!    their first transactions: a compacted segment has a higher number than what comes after it.
//! 3. Logs that a segment already covers are dropped (the cut came before that step of sealing).
//! 4. The remaining logs are replayed, each up to its torn end.
//! 5. The newest log is cut there and written on, or a new one begun.
//!
//! Nothing is deleted that is not provably held elsewhere. What is damaged is set aside under the
//! name `<file>.damaged`, reported, and the rest is served.

use std::collections::{BTreeMap, HashMap};
use std::io;

use omir_core::instant::Timestamp;

use super::backup::UNFINISHED;
use super::cache::Cache;
use super::compact::Piece;
use super::manifest::Manifest;
use super::sealer::{log_file, segment_file};
use super::segment;
use super::signature::{self, Digest, Seal};
use super::transaction::{Mark, Op, Transaction};
use super::wal::{self, Log};
use crate::disk::{self, Disk, Mode};
use crate::index::block::{Block, Outline};
use crate::index::catalog::{Catalog, Span};
use crate::index::doc::{Location, Stamp};
use crate::index::facts::{Facts, terms_of};
use crate::index::key::RefKey;

/// How often a file is read before it counts as lost.
const READ_ATTEMPTS: usize = 3;

/// Something acknowledged that the disk no longer gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// What is wrong with it and what was done.
    pub message: String,
}

/// A log that is not sealed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsealed {
    /// Its number.
    pub log: u64,
    /// Where its good part ends.
    pub end: u64,
    /// Its first transaction that no segment covers.
    pub first: u64,
    /// Whether all of it that was acknowledged can be read. What is left of another is sealed, and
    /// the file itself is kept for a person to look at.
    pub is_sound: bool,
}

/// How far a start has come, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The index of so many of so many segments has been made anew.
    Rebuilding {
        /// Segments done.
        done: u64,
        /// Segments in all.
        total: u64,
    },
    /// The start is complete.
    Done,
}

/// What a start found.
pub struct Recovered {
    /// The index.
    pub catalog: Catalog,
    /// The log to write on.
    pub log: Log,
    /// Why that log may not be written on, if the disk refuses: a new one must be begun first.
    pub log_refused: Option<io::Error>,
    /// Logs to be sealed, oldest first.
    pub unsealed: Vec<Unsealed>,
    /// Transaction number the current log began with.
    pub log_first: u64,
    /// Whether the current log holds versions or tombstones.
    pub log_has_changes: bool,
    /// The next transaction.
    pub next_seq: u64,
    /// Starts before this one.
    pub boots: u64,
    /// Where the store stood when it was last marked.
    pub mark: Mark,
    /// The latest instant anything was recorded at.
    pub latest: Timestamp,
    /// Number of the next segment.
    pub next_segment: u64,
    /// Link of the last segment.
    pub previous: Digest,
    /// All segments, by their first transaction.
    pub segments: Vec<Piece>,
    /// Numbers of segments that others replaced and that are still to be removed.
    pub leftovers: Vec<u64>,
    /// What was lost.
    pub damage: Vec<Damage>,
    /// How many index blocks had to be made anew.
    pub rebuilt: u64,
}

struct Recovery<'a> {
    disk: &'a dyn Disk,
    cache: &'a mut Cache,
    catalog: Catalog,
    damage: Vec<Damage>,
    last_seq: u64,
    /// The highest log that any segment was sealed from.
    last_log: u64,
    boots: u64,
    mark: Mark,
    latest: i64,
    rebuilt: u64,
    /// Half-written segments that could not be removed: to be written anew under the same number.
    left_lying: Vec<u64>,
    /// Segments that compacted ones replaced and that could not be removed.
    leftovers: Vec<u64>,
    /// Whether the newest log may be written on: not if a later one lies there unread.
    may_resume: bool,
}

/// An error of a disk that is full or read-only: what it did not do is done by the next start, and
/// what lies there can be served.
fn bearable(error: io::Error) -> io::Result<io::Error> {
    if disk::is_full(&error) || disk::is_read_only(&error) { Ok(error) } else { Err(error) }
}

/// Whether something was done, on a disk that may be full or read-only.
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
pub fn recover(
    disk: &dyn Disk,
    cache: &mut Cache,
    new_log_above: u64,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<Recovered> {
    refuse_unfinished(disk)?;
    disk.create_dir(segment::DIR)?;
    disk.create_dir(wal::DIR)?;
    borne(disk.sync_dir("."))?;
    for name in disk.list(segment::DIR)? {
        if name.ends_with(".tmp") {
            borne(disk.remove(&format!("{}/{name}", segment::DIR)))?;
        }
    }
    let mut logs: Vec<u64> =
        disk.list(wal::DIR)?.iter().filter_map(|name| wal::number_of(name)).collect();
    logs.sort_unstable();

    let mut recovery = Recovery {
        disk,
        cache,
        catalog: Catalog::new(),
        damage: Vec::new(),
        last_seq: 0,
        last_log: 0,
        boots: 0,
        mark: Mark::default(),
        latest: 0,
        rebuilt: 0,
        left_lying: Vec::new(),
        leftovers: Vec::new(),
        may_resume: true,
    };
    let (next_segment, previous, segments) = recovery.load_segments(&logs, progress)?;
    let logs = recovery.replay_logs(&logs)?;
    recovery.catalog.finish_loading();
    let last_seq = recovery.last_seq;

    let mut unsealed: Vec<Unsealed> = Vec::new();
    let mut current = None;
    // Whether the newest log is only too long to be written on, and then if it holds changes.
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
            borne(disk.remove(&wal::path(log.unsealed.log)))?;
        }
    }
    let mut log_refused = None;
    let (log, log_first, log_has_changes) = match current {
        Some(log) => {
            let Unsealed { log: number, end, first, .. } = log.unsealed;
            let resumed = Log::resume(disk, number, end).or_else(|error| {
                log_refused = Some(bearable(error)?);
                Log::closed(disk, number, end)
            })?;
            (resumed, first, log.has_changes)
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
                Ok(log) => (log, last_seq + 1, false),
                // No room for a new one: the newest goes on past its bound, so that the store
                // opens and what is stored can be read.
                Err(error) if disk::is_full(&error) && too_long.is_some() => {
                    let log = unsealed.pop().ok_or(error)?;
                    let resumed = Log::resume(disk, log.log, log.end)?;
                    (resumed, log.first, too_long.unwrap_or(false))
                }
                Err(error) => {
                    log_refused = Some(bearable(error)?);
                    (Log::absent(number - 1), last_seq + 1, false)
                }
            }
        }
    };
    // One that is not there has the number of the newest that is, and that is served.
    if log.exists() {
        recovery.catalog.add_log(log_file(log.number()), log.file());
    }
    progress(Progress::Done);
    Ok(Recovered {
        catalog: recovery.catalog,
        log,
        log_refused,
        unsealed,
        log_first,
        log_has_changes,
        next_seq: last_seq + 1,
        boots: recovery.boots,
        mark: recovery.mark,
        latest: Timestamp::from_micros(recovery.latest),
        next_segment,
        previous,
        segments,
        leftovers: recovery.leftovers,
        damage: recovery.damage,
        rebuilt: recovery.rebuilt,
    })
}

struct ReplayedLog {
    unsealed: Unsealed,
    has_frames: bool,
    has_changes: bool,
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

/// How many numbers a log may have given out of which nothing can be read.
const RESERVED: u64 = 1 << 24;

fn unread(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path} cannot be read: {error}"))
}

impl Recovery<'_> {
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

    /// Reads a whole file; the inner error is that of a file the card has lost. Nothing is set aside
    /// for a reason that may be gone at the next start: neither an error that does not come again,
    /// nor one that is none of the file's, which ends this start.
    fn read(&self, path: &str) -> io::Result<io::Result<Vec<u8>>> {
        let mut read = disk::read(self.disk, path);
        for _ in 1..READ_ATTEMPTS {
            if read.is_err() {
                read = disk::read(self.disk, path);
            }
        }
        match read {
            Err(error) if !disk::is_loss(&error) => Err(unread(path, &error)),
            read => Ok(read),
        }
    }

    /// Loads all segments, by their first transaction. Returns the number of the next one, the link
    /// of the last, and what is there.
    fn load_segments(
        &mut self,
        logs: &[u64],
        progress: &mut dyn FnMut(Progress),
    ) -> io::Result<(u64, Digest, Vec<Piece>)> {
        let outlines = self.outline_segments()?;
        let mut numbers: Vec<u64> = outlines.keys().copied().collect();
        numbers.sort_by_key(|number| (outlines[number].first_seq, *number));
        let total = numbers.len() as u64;
        let mut previous = Digest::default();
        let mut pieces: Vec<Piece> = Vec::new();
        for (done, number) in numbers.into_iter().enumerate() {
            let path = segment::path(number);
            let seal = self.seal(number)?;
            let before = self.rebuilt;
            let Some(block) = self.block(number, seal.as_ref(), logs)? else { continue };
            if self.rebuilt > before {
                progress(Progress::Rebuilding { done: done as u64 + 1, total });
            }
            if block.first_seq <= self.last_seq {
                let message = "its transactions are in other segments as well; it is not used";
                self.report(&path, message.to_owned());
                continue;
            }
            if seal.as_ref().is_some_and(|seal| seal.previous != previous) {
                tracing::warn!(
                    segment = number,
                    "not signed as the successor of the one before it"
                );
            }
            previous = seal.map_or(block.digest, |seal| seal.link());
            if let Err(message) = self.catalog.load(&block, segment_file(number)) {
                // The block passed its checksum, so this is our own bug; the segment still decides.
                return Err(io::Error::other(format!("{path}: {message}")));
            }
            let file = self.disk.open(&path, Mode::Read)?;
            pieces.push(Piece {
                number,
                bytes: file.len()?,
                first_seq: block.first_seq,
                last_seq: block.last_seq,
                last_recorded: block.last_recorded,
                is_compacted: !block.replaces.is_empty(),
                is_sound: true,
            });
            let span = Span { first_seq: block.first_seq, last_seq: block.last_seq };
            self.catalog.add_segment(segment_file(number), file, span);
            self.last_seq = self.last_seq.max(block.last_seq);
            self.last_log = self.last_log.max(block.log);
            self.boots = self.boots.max(block.boots);
            if let Some(mark) = &block.mark {
                self.mark.follow(mark);
            }
            self.latest = self.latest.max(block.last_recorded);
        }
        self.cache.retain(|number| pieces.iter().any(|piece| piece.number == number));
        // Listed again: what was set aside keeps its number, what was half sealed gives it back.
        let names = self.disk.list(segment::DIR)?;
        let highest = names
            .iter()
            .filter_map(|name| segment::number_of(name.strip_suffix(".damaged").unwrap_or(name)))
            .filter(|number| !self.left_lying.contains(number))
            .max();
        Ok((highest.map_or(1, |number| number + 1), previous, pieces))
    }

    /// The seal of a segment, if it can be read. It matters only if the segment itself is in doubt.
    fn seal(&self, number: u64) -> io::Result<Option<Seal>> {
        let path = segment::signature_path(number);
        let text = match disk::read(self.disk, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(text) => Ok(text),
            Err(_) => self.read(&path)?,
        };
        Ok(text.ok().and_then(|text| Seal::from_json(&text).ok()))
    }

    /// Which segments there are, where each begins and what it replaces; after that, of a compaction
    /// that was cut short, either the new segment is there or the old ones.
    fn outline_segments(&mut self) -> io::Result<BTreeMap<u64, Outline>> {
        let names = self.disk.list(segment::DIR)?;
        let mut numbers: Vec<u64> =
            names.iter().filter_map(|name| segment::number_of(name)).collect();
        numbers.sort_unstable();
        let mut outlines: BTreeMap<u64, Outline> = BTreeMap::new();
        let mut last_seq = 0;
        for number in numbers {
            let kept = self.seal(number)?.and_then(|seal| self.cache.outline(number, &seal.sha256));
            // What cannot be read says so when its turn comes, where its number says.
            let nothing =
                || Outline { digest: Digest::default(), first_seq: last_seq, replaces: Vec::new() };
            let outline = match kept {
                None => self.read_outline(number)?,
                kept => kept,
            };
            let outline = outline.unwrap_or_else(nothing);
            last_seq = outline.first_seq;
            outlines.insert(number, outline);
        }
        // The newest first: what it replaces may have replaced others.
        let compacted: Vec<u64> = outlines
            .iter()
            .rev()
            .filter(|(_, outline)| !outline.replaces.is_empty())
            .map(|(number, _)| *number)
            .collect();
        for number in compacted {
            self.finish_compaction(number, &mut outlines, &names)?;
        }
        Ok(outlines)
    }

    /// `None` if the segment is lost or damaged.
    fn read_outline(&self, number: u64) -> io::Result<Option<Outline>> {
        let Ok(bytes) = self.read(&segment::path(number))? else { return Ok(None) };
        let layout = segment::layout(&bytes).ok().filter(|layout| layout.is_manifest_whole);
        Ok(layout.map(|layout| {
            let Manifest { first_seq, replaces, .. } = layout.manifest;
            Outline { digest: signature::digest(&bytes), first_seq, replaces }
        }))
    }

    /// Where a segment and what it replaces are both there, the cut came between: the new one counts
    /// if it is whole.
    fn finish_compaction(
        &mut self,
        number: u64,
        outlines: &mut BTreeMap<u64, Outline>,
        names: &[String],
    ) -> io::Result<()> {
        let Some(outline) = outlines.get(&number) else { return Ok(()) };
        let replaced = outline.replaces.clone();
        let is_listed = |path: &String| {
            path.rsplit('/').next().is_some_and(|name| names.iter().any(|known| known == name))
        };
        let files = |number: &u64| [segment::path(*number), segment::signature_path(*number)];
        if !replaced.iter().flat_map(files).any(|path| is_listed(&path)) {
            return Ok(());
        }
        let path = segment::path(number);
        let digest = self.read(&path)?.map(|bytes| signature::digest(&bytes)).ok();
        let seal = self.seal(number)?;
        let is_whole = seal.is_some_and(|seal| seal.last.is_some() && Some(seal.sha256) == digest);
        let present: Vec<u64> =
            replaced.iter().copied().filter(|old| outlines.contains_key(old)).collect();
        if is_whole || present.is_empty() {
            for old in &replaced {
                for path in files(old).into_iter().filter(is_listed) {
                    if !borne(self.disk.remove(&path))? && !self.leftovers.contains(old) {
                        self.leftovers.push(*old);
                    }
                }
            }
            present.iter().for_each(|old| drop(outlines.remove(old)));
        } else if present.len() == replaced.len() {
            if !borne(self.disk.remove(&path))? {
                self.left_lying.push(number);
            }
            outlines.remove(&number);
        } else {
            // It was whole when the first of them went, and it was damaged since.
            for old in present {
                let message = "a compacted segment took its place, which is damaged now";
                self.set_aside(&segment::path(old), message)?;
                outlines.remove(&old);
            }
        }
        borne(self.disk.sync_dir(segment::DIR)).map(drop)
    }

    /// The index block of one segment, or `None` if the segment is not to be used.
    fn block(
        &mut self,
        number: u64,
        seal: Option<&Seal>,
        logs: &[u64],
    ) -> io::Result<Option<Block>> {
        let path = segment::path(number);
        let open = self.disk.open(&path, Mode::Read);
        let len = open.and_then(|file| file.len()).map_err(|error| unread(&path, &error))?;
        if let Some(seal) = seal
            && seal.bytes == len
            && let Some(block) = self.cache.get(number, &seal.sha256)
            && (!logs.contains(&block.log) || !block.replaces.is_empty())
        {
            return Ok(Some(block));
        }
        let bytes = match self.read(&path)? {
            Ok(bytes) => bytes,
            Err(error) => {
                self.set_aside(&path, &format!("the segment cannot be read ({error})"))?;
                return Ok(None);
            }
        };
        let indexed = segment::index_what_is_whole(&bytes);
        let whole = seal.is_some_and(|seal| seal.sha256 == signature::digest(&bytes));
        match indexed {
            // A log it stands for could not be dropped when it was sealed; sealing it again would
            // bring back what a compaction dropped.
            Ok((block, lost))
                if whole || !logs.contains(&block.log) || !block.replaces.is_empty() =>
            {
                if let Some(first) = lost.first() {
                    let count = lost.len();
                    let message = format!("damaged memories: {count}, the first at {first}");
                    self.report(&path, message + "; the others are served");
                } else if !whole {
                    let message = if seal.is_some() {
                        "its bytes are not the ones that were signed; it is readable and served"
                    } else {
                        "it has no readable signature; it is readable and served"
                    };
                    self.report(&path, message.to_owned());
                }
                self.cache.put(number, len, &block);
                self.rebuilt += u64::from(self.cache.is_for(len));
                Ok(Some(block))
            }
            Ok(_) => {
                // Sealing was cut short. The log is still there and will be sealed again.
                if !borne(self.disk.remove(&path))? {
                    self.left_lying.push(number);
                }
                Ok(None)
            }
            Err(fault) => {
                self.set_aside(&path, &format!("the segment is unreadable ({fault})"))?;
                Ok(None)
            }
        }
    }

    fn replay_logs(&mut self, numbers: &[u64]) -> io::Result<Vec<ReplayedLog>> {
        let mut contents = Vec::new();
        let mut unreadable: HashMap<u64, u64> = HashMap::new();
        for &number in numbers {
            let path = wal::path(number);
            let bytes = match self.read(&path)? {
                Ok(bytes) => bytes,
                Err(error) => match disk::read_around(self.disk, &path) {
                    Ok((bytes, holes)) => {
                        let lost = holes.iter().map(|hole| hole.len() as u64).sum();
                        self.report(
                            &path,
                            format!("{lost} of its {} bytes cannot be read ({error})", bytes.len()),
                        );
                        unreadable.insert(number, lost);
                        bytes
                    }
                    Err(_) => {
                        self.set_aside(&path, &format!("the log cannot be read ({error})"))?;
                        continue;
                    }
                },
            };
            let first_seq = wal::read(&bytes, number).map(|c| c.first_seq).ok();
            contents.push((number, bytes, first_seq));
        }
        let mut replayed = Vec::new();
        for (index, (number, bytes, first_seq)) in contents.iter().enumerate() {
            // A log that was abandoned after a failed sync may hold frames nobody was told about;
            // the next log says where it took over.
            let next = contents[index + 1..]
                .iter()
                .find_map(|(_, _, first)| first.filter(|&first| first > 0));
            let mut log = self.replay(*number, bytes, next.unwrap_or(u64::MAX))?;
            if let Some(lost) = unreadable.get(number) {
                // What is written behind a hole, or over it, may not come back, and the numbers of
                // what is in it are taken: the card may give it back another day.
                if let Some(log) = &mut log {
                    log.unsealed.is_sound = false;
                    log.unsealed.end = bytes.len() as u64;
                }
                if next.is_none() {
                    self.last_seq += lost / wal::FRAME_HEADER as u64 + 1;
                }
            }
            replayed.extend(log);
            // It also says that all before it had been durable, so no torn end explains a gap.
            if let (Some(own), Some(next)) = (*first_seq, next)
                && next > own
                && self.last_seq + 1 < next
            {
                let (from, to) = (self.last_seq + 1, next - 1);
                self.last_seq = to;
                self.report(
                    &wal::path(*number),
                    format!("transactions {from} to {to} were acknowledged and are lost"),
                );
            }
        }
        if numbers.last() != contents.last().map(|(number, ..)| number) {
            self.last_seq += RESERVED;
        }
        Ok(replayed)
    }

    fn replay(&mut self, number: u64, bytes: &[u8], limit: u64) -> io::Result<Option<ReplayedLog>> {
        let path = wal::path(number);
        let Ok(contents) = wal::read(bytes, number) else {
            if bytes.len() <= wal::FILE_HEADER {
                // Torn while it was made; nothing was ever acknowledged from it.
                borne(self.disk.remove(&path))?;
            } else {
                self.set_aside(&path, "the log's header and frames are unreadable")?;
            }
            return Ok(None);
        };
        let mut log = ReplayedLog {
            unsealed: Unsealed {
                log: number,
                end: contents.end as u64,
                first: 0,
                is_sound: contents.damage.is_empty(),
            },
            has_frames: false,
            has_changes: false,
        };
        if contents.first_seq > self.last_seq + 1 {
            // The log remembers that there was more before it: a file is gone. Its numbers are not
            // given out again, or a copy that turns up later would contradict what is here.
            let (from, to) = (self.last_seq + 1, contents.first_seq - 1);
            self.report(&path, format!("transactions {from} to {to} came before it and are lost"));
            self.last_seq = to;
        }
        for lost in &contents.damage {
            self.report(
                &path,
                format!("{} bytes from byte {} were acknowledged and are lost", lost.len, lost.at),
            );
        }
        self.catalog.add_log(log_file(number), self.disk.open(&path, Mode::Read)?);
        let covered = self.last_seq;
        let mut end = wal::FILE_HEADER as u64;
        for frame in &contents.frames {
            let (transaction, places) = match Transaction::decode(frame.payload) {
                Ok(decoded) => decoded,
                Err(fault) => {
                    self.report(&path, format!("a transaction is unreadable ({fault})"));
                    log.unsealed.is_sound = false;
                    continue;
                }
            };
            if transaction.seq >= limit {
                break;
            }
            end = (frame.at + frame.payload.len()) as u64;
            if transaction.seq <= covered {
                continue;
            }
            if !log.has_frames {
                log.unsealed.first = transaction.seq;
            }
            log.has_frames = true;
            log.has_changes |= self.apply(number, frame, &transaction, &places);
        }
        if log.unsealed.is_sound {
            log.unsealed.end = end.min(contents.end as u64);
        }
        if contents.frames.is_empty() && contents.end == wal::FILE_HEADER {
            log.unsealed.end = wal::FILE_HEADER as u64;
        }
        if !log.has_frames {
            log.unsealed.first = self.last_seq + 1;
            if end > wal::FILE_HEADER as u64 {
                // Everything in it is sealed: the cut came before the log was dropped.
                self.catalog.drop_file(log_file(number));
                borne(self.disk.remove(&path).and_then(|()| self.disk.sync_dir(wal::DIR)))?;
                return Ok(None);
            }
        }
        Ok(Some(log))
    }

    /// Applies a transaction; returns whether it held a version or a tombstone.
    fn apply(
        &mut self,
        log: u64,
        frame: &wal::Frame<'_>,
        transaction: &Transaction,
        places: &[Option<usize>],
    ) -> bool {
        let recorded = transaction.at.as_micros();
        let mut has_changes = false;
        for (ordinal, (op, place)) in transaction.ops.iter().zip(places).enumerate() {
            let stamp = |version| Stamp {
                seq: transaction.seq,
                ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                version,
                recorded,
            };
            match op {
                Op::Put { version, resource } => {
                    has_changes = true;
                    let offset = frame.at + place.unwrap_or(0);
                    let location = Location {
                        file: log_file(log),
                        offset: u32::try_from(offset).unwrap_or(u32::MAX),
                        len: u32::try_from(resource.len()).unwrap_or(u32::MAX),
                        crc: crc32fast::hash(resource),
                    };
                    match segment::decode(resource) {
                        Ok(resource) => {
                            let (facts, terms) = (Facts::of(&resource), terms_of(&resource));
                            // Words of superseded versions are settled by `finish_loading`.
                            self.catalog.put(&facts, &terms, None, stamp(*version), location);
                        }
                        Err(fault) => {
                            self.report(&wal::path(log), format!("byte {offset}: {fault}"));
                        }
                    }
                }
                Op::Forget { target, version } => {
                    has_changes = true;
                    self.catalog.forget(&RefKey::of(target), None, stamp(*version));
                }
                Op::Touch(touch) => self.catalog.replay_touch(touch),
                Op::Boot { count } => self.boots = self.boots.max(*count),
                Op::Mark(mark) => self.mark.follow(mark),
            }
        }
        self.last_seq = transaction.seq;
        self.latest = self.latest.max(recorded);
        has_changes
    }
}
