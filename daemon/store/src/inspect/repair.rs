//! Everything that can be read, as a sound folder: sealed, signed, and served as before.
//!
//! Each interval of the history becomes one segment. A segment that is sound and keeps its number
//! is copied byte for byte; all others go through the same [`Draft`] the daemon seals with. Where
//! transactions lack, an empty segment holds their numbers, so that the new folder has no gap.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;

use super::cat::Reader;
use super::finding::{Finding, Verdict};
use super::history::{Act, History, HistoryInterval, Position};
use super::{FileKind, Progress, Store, check};
use crate::digest::Digest;
use crate::disk::{self, Disk, Folder};
use crate::kept_index::index_extractor::Names;
use crate::lock::Lock;
use crate::log::Log;
use crate::log::{wal, witness};
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::{EndCause, Tombstone};
use crate::recorded::version::Stamp;
use crate::rot::segment_repair;
use crate::segment::{self, Draft, EarlierResource};
use crate::signing::device_key::{self, device_key};
use crate::signing::signature::DeviceKey;

/// Why a repair ended early. What it wrote so far is of no use and may be deleted.
#[derive(Debug)]
#[non_exhaustive]
pub enum RepairError {
    /// Only a data folder can be repaired.
    NoFolder,
    /// The new folder cannot be used.
    Target {
        /// Which.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A file of the old folder cannot be read any more.
    Source(io::Error),
    /// The new folder cannot be written.
    Write {
        /// The path.
        path: PathBuf,
        /// The disk's error.
        error: io::Error,
    },
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder => f.write_str("only a whole data folder can be repaired"),
            Self::Target { path, message } => write!(f, "{}: {message}", path.display()),
            Self::Source(error) => write!(f, "the old folder: {error}"),
            Self::Write { path, error } => {
                write!(f, "{}: {error}; what is there is incomplete", path.display())
            }
        }
    }
}

impl std::error::Error for RepairError {}

/// The signer of the new folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The device key of the old folder.
    Kept,
    /// A new key.
    New {
        /// Why not the old one.
        reason: String,
    },
}

/// Memories that a repair brought back.
#[derive(Debug, Clone)]
pub struct Repaired {
    /// Segments written.
    pub segments: u64,
    /// How many of them are copies, byte for byte.
    pub copied: u64,
    /// Versions brought back.
    pub versions: u64,
    /// Tombstones brought back.
    pub tombstones: u64,
    /// Access states brought back.
    pub touches: u64,
    /// Versions whose number or time of recording is only the most likely one.
    pub approximate: Vec<(Ref, u64)>,
    /// The signer.
    pub key: KeyOrigin,
    /// Findings in the old folder.
    pub findings: Vec<Finding>,
}

impl Repaired {
    /// Memories that could not be brought back.
    pub fn lost(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_unrecoverable())
    }

    /// [`Verdict::Sound`] if everything was brought back, else [`Verdict::Lossy`].
    pub fn verdict(&self) -> Verdict {
        if self.lost().next().is_none() { Verdict::Sound } else { Verdict::Lossy }
    }
}

/// Writes everything that can be read of a store into the folder `into`, which must be empty or
/// not exist. The old folder is not changed. `random` makes a key if the old one cannot be read.
///
/// Durable on return: the new folder is synced.
///
/// # Errors
/// See [`RepairError`]. What is lost is no error: see [`Repaired::lost`].
pub fn repair(
    store: &Store,
    into: &Path,
    random: impl FnOnce() -> [u8; 32],
    progress: &mut dyn FnMut(Progress),
) -> Result<Repaired, RepairError> {
    if !store.is_folder {
        return Err(RepairError::NoFolder);
    }
    prepare(store, into)?;
    // Reading and writing are about the same work.
    let mut total = 0;
    let report = check::check(store, &mut |passed| {
        total = passed.total;
        progress(Progress { done: passed.done, total: 2 * passed.total });
    })
    .map_err(RepairError::Source)?;

    let failed = |error| RepairError::Write { path: into.to_owned(), error };
    let _lock = Lock::acquire(into).map_err(|error| RepairError::Target {
        path: into.to_owned(),
        message: error.to_string(),
    })?;
    let (key, origin) = take_key(store, into, random).map_err(failed)?;
    let history = &report.history;
    let mut writer = Writer {
        store,
        history,
        disk: Folder::new(into),
        key,
        now: store.now,
        reader: Reader::new(store, history),
        live: HashMap::new(),
        next_seq: 1,
        boots: 0,
        previous: Digest::default(),
        segments: 0,
        copied: 0,
    };
    let make = |dir: &str| writer.disk.create_dir(dir);
    make(segment::DIR).and_then(|()| make(wal::DIR)).map_err(failed)?;
    let mut written = 0;
    for interval in &history.intervals {
        writer.write(interval).map_err(failed)?;
        written += interval.file.map_or(0, |file| history.files[file].bytes);
        progress(Progress { done: total + written.min(total), total: 2 * total });
    }
    writer.begin_log().map_err(failed)?;
    sync_parents(into).map_err(failed)?;
    progress(Progress { done: 2 * total, total: 2 * total });

    let (versions, tombstones, touches) = history.counts();
    let events = history.intervals.iter().flat_map(|interval| &interval.events);
    let approximate = events.filter_map(|event| match &event.act {
        Act::Put(v) if !v.is_exact => Some((v.target.clone(), v.stamp.version)),
        _ => None,
    });
    Ok(Repaired {
        segments: writer.segments,
        copied: writer.copied,
        versions,
        tombstones,
        touches,
        approximate: approximate.collect(),
        key: origin,
        findings: report.findings.clone(),
    })
}

/// Makes the new folder, and makes sure that it is one of its own.
fn prepare(store: &Store, into: &Path) -> Result<(), RepairError> {
    let refuse = |message: String| RepairError::Target { path: into.to_owned(), message };
    match fs::read_dir(into) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(refuse(
                    "it is not empty; name a folder that does not exist".to_owned(),
                ));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(refuse(error.to_string())),
    }
    // Looked at before it is made: the old folder must not change.
    let old = fs::canonicalize(&store.root).map_err(RepairError::Source)?;
    let mut existing = into;
    while !existing.exists() {
        match existing.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => existing = parent,
            _ => {
                existing = Path::new(".");
                break;
            }
        }
    }
    let existing = fs::canonicalize(existing).map_err(|error| refuse(error.to_string()))?;
    if existing.starts_with(&old) {
        return Err(refuse("it lies in the folder that is to be repaired".to_owned()));
    }
    fs::create_dir_all(into).map_err(|error| refuse(error.to_string()))
}

fn take_key(
    store: &Store,
    into: &Path,
    random: impl FnOnce() -> [u8; 32],
) -> io::Result<(DeviceKey, KeyOrigin)> {
    match device_key::secret_of(&store.root) {
        Ok(secret) => Ok((device_key(into, || secret)?, KeyOrigin::Kept)),
        Err(error) => {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "the old folder has none".to_owned(),
                _ => error.to_string(),
            };
            Ok((device_key(into, random)?, KeyOrigin::New { reason }))
        }
    }
}

/// Makes the names of the folder and of those above it durable.
fn sync_parents(into: &Path) -> io::Result<()> {
    let into = fs::canonicalize(into)?;
    for folder in into.ancestors() {
        // A folder above that may not be opened was not made by us.
        match fs::File::open(folder) {
            Ok(folder) => folder.sync_all()?,
            Err(_) => break,
        }
    }
    Ok(())
}

struct Writer<'a> {
    store: &'a Store,
    history: &'a History,
    disk: Folder,
    key: DeviceKey,
    now: Timestamp,
    reader: Reader<'a>,
    /// Positions of the live versions of everything written so far.
    live: HashMap<RefKey, Position>,
    next_seq: u64,
    boots: u64,
    previous: Digest,
    segments: u64,
    copied: u64,
}

impl Writer<'_> {
    fn write(&mut self, interval: &HistoryInterval) -> io::Result<()> {
        let number = self.segments + 1;
        self.boots = self.boots.max(interval.boots);
        let (sealed, is_copy) = match self.unchanged(interval, number)? {
            Some(bytes) => (bytes, true),
            None => (self.seal(interval, number)?, false),
        };
        for event in &interval.events {
            match &event.act {
                Act::Put(version) => {
                    self.live.insert(RefKey::of(&version.target), version.position.clone());
                }
                Act::Forget(tombstone) => {
                    self.live.remove(&tombstone.key());
                }
                Act::Touch(_) => {}
            }
        }
        // The daemon does the same with it at its first start.
        let block = segment::index::<Names>(&sealed)
            .map_err(|fault| io::Error::other(format!("segment {number}: {fault}")))?;
        let contents = segment::contents(&sealed, block.digest)
            .map_err(|fault| io::Error::other(format!("segment {number}: {fault}")))?;
        let seal = self.key.sign(number, &contents, self.previous, None);
        segment_repair::write_sidecar(
            &self.disk,
            number,
            &sealed,
            &witness::of_block::<Names>(&block),
        )?;
        disk::replace(&self.disk, &segment::signature_path(number), seal.to_json().as_bytes())?;
        disk::replace(&self.disk, &segment::path(number), &sealed)?;
        self.disk.sync_dir(segment::DIR)?;
        self.previous = block.digest;
        self.segments = number;
        self.copied += u64::from(is_copy);
        self.next_seq = block.last_seq + 1;
        Ok(())
    }

    /// The bytes of an interval's file, if they can stay as they are.
    fn unchanged(&self, interval: &HistoryInterval, number: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(row) = interval.file.map(|file| &self.history.files[file]) else {
            return Ok(None);
        };
        let puts = interval.events.iter().filter(|event| matches!(event.act, Act::Put(_)));
        // The segments that a compacted one replaces would be others in the new folder.
        let is_sound = row.is_clean
            && row.replaces.is_empty()
            && row.source.kind == FileKind::Segment(number)
            && interval.first == self.next_seq
            && puts.count() as u64 == row.versions;
        if !is_sound {
            return Ok(None);
        }
        let file = self.store.open_read(&row.source.path)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
        file.read_at(&mut bytes, 0)?;
        // The card may have changed its mind since the first look.
        let is_same = crate::digest::digest(&bytes) == row.digest;
        Ok(is_same.then_some(bytes))
    }

    /// An interval as a new segment.
    fn seal(&mut self, interval: &HistoryInterval, number: u64) -> io::Result<Vec<u8>> {
        // Numbers of transactions that were given out twice, around a file that was set aside.
        let renumbered =
            |seq: u64| seq.saturating_sub(interval.first).saturating_add(self.next_seq);
        let mut draft = Draft::new(number, interval.log, self.boots);
        draft.cover(self.next_seq, interval.last_recorded);
        for event in &interval.events {
            let seq = renumbered(event.seq);
            match &event.act {
                Act::Put(version) => {
                    let resource = self.reader.resource(&version.position)?;
                    draft.put(Stamp { seq, ..version.stamp }, resource);
                }
                Act::Forget(tombstone) => {
                    let stamp = Stamp { seq, ..tombstone.stamp };
                    match (tombstone.name().map(str::parse::<Ref>), tombstone.ending) {
                        (Some(Ok(target)), EndCause::Forgotten(by)) => {
                            draft.forget(stamp, target, by);
                        }
                        (Some(Err(_)), _) => {}
                        _ => draft.write_tombstone(Tombstone { stamp, ..tombstone.clone() }),
                    }
                }
                Act::Touch(touch) => draft.touch(touch.clone()),
            }
        }
        if let Some(mark) = &interval.mark {
            draft.mark(mark);
        }
        draft.cover(renumbered(interval.last), interval.last_recorded);
        let copies: HashMap<&Ref, &Position> =
            interval.copies.iter().map(|(t, p)| (t, p)).collect();
        let (live, reader) = (&self.live, RefCell::new(&mut self.reader));
        let earlier = |target: &Ref| match copies
            .get(target)
            .copied()
            .or_else(|| live.get(&RefKey::of(target)))
        {
            Some(place) => match reader.borrow_mut().resource(place) {
                Ok(resource) => EarlierResource::Live(Box::new(resource)),
                Err(_) => EarlierResource::OutOfReach,
            },
            None => EarlierResource::Gone,
        };
        Ok(draft.build(self.now, earlier))
    }

    /// An empty log behind everything, with a number that no segment was made from.
    fn begin_log(&self) -> io::Result<()> {
        let logs = self.history.files.iter().filter_map(|row| match row.source.kind {
            FileKind::Log(number) => Some(number),
            FileKind::Segment(_) => None,
        });
        let sealed = self.history.intervals.iter().map(|interval| interval.log);
        let last = logs.chain(sealed).max().unwrap_or(0);
        let number = last.checked_add(1).filter(|&number| number <= u64::from(u32::MAX));
        Log::create(&self.disk, number.unwrap_or(1), self.next_seq)?;
        Ok(())
    }
}
