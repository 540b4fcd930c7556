//! A backup folder that takes in what is new and lets go of what it no longer needs.
//!
//! Order of the steps, so that a cut between any two leaves a backup: the keys are pinned before the
//! first segment; each segment is written under a temporary name, checked against its signature,
//! synced and renamed, oldest first, so that what is there is always the beginning of what is to come;
//! only when all are durable and the chain holds, what they replace is removed; `backup.json` is last.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use omir_core::instant::Timestamp;
use sha2::{Digest as _, Sha256};

use super::info::{INFO, Info};
use super::judge::{Judgement, judge};
use super::offer::{Offer, Offered};
use super::pins::Pins;
use super::stored_segment::StoredSegment;
use super::{Fault, Progress};
use crate::digest::hex;
use crate::disk::{self, Disk, Mode};
use crate::files::SeqRange;
use crate::log::wal;
use crate::segment;
use crate::signing::device_key;
use crate::signing::signature::Seal;

/// Bytes asked for at once: little enough that a slow radio answers in time.
const PIECE: u64 = 256 << 10;

/// Why a folder cannot take a backup.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The folder cannot be read or written.
    Disk(io::Error),
    /// The folder is something else.
    NotABackup(String),
    /// The robot signs, or signed, with a key that this backup does not know.
    ForeignKey {
        /// The keys in question, in hex.
        keys: Vec<String>,
    },
    /// A segment on the robot tells of transactions that another one here tells of, and is no
    /// compaction of it.
    OtherHistory {
        /// Its number.
        segment: u64,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "the folder cannot be used: {error}"),
            Self::NotABackup(message) => f.write_str(message),
            Self::ForeignKey { keys } => write!(
                f,
                "signed by the key {}, which this backup does not know: it is another robot's, or \
                 this robot has got a new key (a new card, a restore). Take another folder, or \
                 accept the key with --new-key",
                keys.join(" and ")
            ),
            Self::OtherHistory { segment } => write!(
                f,
                "segment {segment} on the robot does not follow from what is signed in this backup: \
                 the robot has begun another history (a new card, an older state restored). Keep \
                 this backup and take another folder"
            ),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// Why a segment could not be taken in. Nothing of it is in the backup.
#[derive(Debug)]
pub enum TakeError<E> {
    /// Its bytes did not come.
    Fetch(E),
    /// It ends before its length.
    Short {
        /// Bytes that came.
        came: u64,
        /// Bytes that were offered.
        offered: u64,
    },
    /// The folder cannot be written.
    Disk(io::Error),
}

impl<E> From<io::Error> for TakeError<E> {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// Outcome of fetching a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchOutcome {
    /// It is what was signed, and durably there.
    Sound,
    /// It is damaged on the robot itself; it is kept as it came if nothing better is there.
    Damaged(String),
}

/// Outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupOutcome {
    /// Segments that make the backup.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last transaction in them.
    pub last_seq: u64,
    /// Segments removed because others cover them.
    pub removed: Vec<u64>,
    /// Segments that the robot does not have any more and nothing covers: they are kept.
    pub kept: Vec<u64>,
    /// Files that do not verify.
    pub faults: Vec<Fault>,
}

/// A backup folder.
pub struct Folder {
    disk: Arc<dyn Disk>,
    pins: Pins,
    info: Option<Info>,
    held: BTreeMap<u64, StoredSegment>,
}

impl Folder {
    /// Opens a backup, or an empty folder to become one, and looks at everything in it. Left-overs
    /// of a run that was cut short are removed.
    ///
    /// # Errors
    /// If the folder is something else or cannot be used. A damaged segment is no error.
    pub fn open(
        disk: Arc<dyn Disk>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BackupError> {
        refuse_others(&*disk)?;
        disk.create_dir(segment::DIR)?;
        disk.sync_dir(".")?;
        let names = disk.list(segment::DIR)?;
        for name in &names {
            let is_orphan = name
                .strip_suffix(".sig")
                .is_some_and(|stem| !names.contains(&format!("{stem}.omirb")));
            if name.ends_with(".tmp") || is_orphan {
                disk.remove(&format!("{}/{name}", segment::DIR))?;
            }
        }
        let (pins, info) = (Pins::read(&*disk)?, Info::read(&*disk)?);
        let held = look_at_all(&*disk, progress)?;
        Ok(Self { disk, pins, info, held })
    }

    /// Contents of `backup.json`, if there is one.
    pub fn info(&self) -> Option<&Info> {
        self.info.as_ref()
    }

    /// Makes sure that the offer is by a key this backup knows; the first one is pinned, a new one
    /// only if `accept_new`.
    ///
    /// # Errors
    /// [`BackupError::ForeignKey`].
    pub fn trust(&mut self, offer: &Offer, accept_new: bool) -> Result<(), BackupError> {
        let signers = offer.segments.iter().filter_map(Offered::seal);
        let signers = signers.filter(Seal::is_authentic).map(|seal| hex(&seal.public_key));
        let mut offered: BTreeSet<String> = signers.collect();
        offered.insert(offer.public_key.clone());
        let strange: Vec<String> =
            offered.iter().filter(|key| !self.pins.accepts(key)).cloned().collect();
        if !self.pins.is_empty() && !strange.is_empty() && !accept_new {
            return Err(BackupError::ForeignKey { keys: strange });
        }
        let pins = self.pins.with(&offer.public_key, offered);
        if pins != self.pins {
            pins.write(&*self.disk)?;
            self.pins = pins;
        }
        if self.info.is_none() {
            let (robot, program) = (offer.robot.clone(), offer.program.clone());
            let info = Info { robot, program, finished: None, last_seq: 0 };
            info.write(&*self.disk)?;
            self.info = Some(info);
        }
        Ok(())
    }

    /// Segments of the offer that are missing here, or not as they were signed; oldest first.
    ///
    /// # Errors
    /// [`BackupError::OtherHistory`]: what is signed is never overwritten.
    pub fn lacking<'o>(&self, offer: &'o Offer) -> Result<Vec<&'o Offered>, BackupError> {
        let is_trusted = |seal: &Seal| self.pins.accepts(&hex(&seal.public_key));
        let sound: BTreeMap<u64, (SeqRange, &Seal)> = self
            .held
            .values()
            .filter_map(|held| Some((held.segment, (held.span()?, held.seal.as_ref()?))))
            .filter(|(_, (_, seal))| is_trusted(seal))
            .collect();
        let mut lacking = Vec::new();
        for offered in &offer.segments {
            let seal = offered.seal();
            let agrees = match (sound.get(&offered.segment), &seal) {
                (Some((_, here)), Some(there)) => {
                    (here.contents.sha256, here.contents.bytes)
                        == (there.contents.sha256, there.contents.bytes)
                }
                (Some(_), None) => true,
                (None, _) => {
                    lacking.push(offered);
                    seal.is_none_or(|there| {
                        let span =
                            SeqRange { first_seq: offered.first_seq, last_seq: offered.last_seq };
                        sound.values().all(|here| follows((span, &there), *here))
                    })
                }
            };
            if !agrees {
                return Err(BackupError::OtherHistory { segment: offered.segment });
            }
        }
        Ok(lacking)
    }

    /// Takes in a segment. `fetch` gives `length` bytes from `offset` on, or fewer at the end.
    ///
    /// # Errors
    /// See [`TakeError`]. What is damaged on the robot is no error.
    pub fn take<E>(
        &mut self,
        offered: &Offered,
        fetch: &mut dyn FnMut(u64, u64) -> Result<Vec<u8>, E>,
    ) -> Result<FetchOutcome, TakeError<E>> {
        let (path, number) = (segment::path(offered.segment), offered.segment);
        let temporary = format!("{path}.tmp");
        let file = self.disk.open(&temporary, Mode::Create)?;
        let (mut hash, mut at) = (Sha256::new(), 0);
        while at < offered.bytes {
            let piece = fetch(at, PIECE.min(offered.bytes - at)).map_err(TakeError::Fetch)?;
            if piece.is_empty() {
                return Err(TakeError::Short { came: at, offered: offered.bytes });
            }
            hash.update(&piece);
            file.write_at(&piece, at)?;
            at += piece.len() as u64;
        }
        file.sync()?;
        let is_signed = offered.seal().is_some_and(|seal| {
            seal.segment == number
                && seal.contents.bytes == at
                && seal.contents.sha256[..] == hash.finalize()[..]
                && seal.is_authentic()
        });
        if !is_signed && self.held.contains_key(&number) {
            // Neither is what was signed: nothing says that this one is better.
            self.disk.remove(&temporary)?;
            return Ok(FetchOutcome::Damaged("it is damaged here and on the robot".to_owned()));
        }
        if let Some(signature) = &offered.signature {
            disk::replace(&*self.disk, &segment::signature_path(number), signature.as_bytes())?;
            // Durable before the segment has its name: a segment alone would be a fault.
            self.disk.sync_dir(segment::DIR)?;
        }
        self.disk.rename(&temporary, &path)?;
        self.disk.sync_dir(segment::DIR)?;
        let held = StoredSegment::look(&*self.disk, number)?;
        let taken = match &held.state {
            Ok(_) => FetchOutcome::Sound,
            Err(fault) => FetchOutcome::Damaged(fault.to_string()),
        };
        self.held.insert(number, held);
        Ok(taken)
    }

    /// Ends a run: removes what others cover, if everything verifies, and says so in `backup.json`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn finish(&mut self, offer: &Offer, now: Timestamp) -> Result<BackupOutcome, BackupError> {
        let on_robot: BTreeSet<u64> = offer.segments.iter().map(|o| o.segment).collect();
        let judgement = judge(self.held.values(), &self.pins);
        let mut removed = Vec::new();
        // Only a chain without a gap up to the newest transaction proves that the rest is not needed.
        if judgement.breaks.is_empty() && judgement.last_seq >= offer.last_seq() {
            let unsound = judgement.unsound.iter().map(|(number, _)| *number);
            let candidates = judgement.covered.iter().copied().chain(unsound);
            removed = candidates.filter(|number| !on_robot.contains(number)).collect();
            removed.sort_unstable();
            self.remove(&removed)?;
        }
        let judgement = judge(self.held.values(), &self.pins);
        let kept = judgement.order.iter().copied().filter(|n| !on_robot.contains(n)).collect();
        let outcome = self.outcome(&judgement, removed, kept);
        let info = Info {
            robot: offer.robot.clone(),
            program: offer.program.clone(),
            finished: Some(now),
            last_seq: outcome.last_seq.max(offer.last_seq()),
        };
        info.write(&*self.disk)?;
        self.info = Some(info);
        Ok(outcome)
    }

    fn outcome(&self, judgement: &Judgement, removed: Vec<u64>, kept: Vec<u64>) -> BackupOutcome {
        let bytes = |number: &u64| self.held.get(number).map_or(0, |held| held.bytes);
        BackupOutcome {
            segments: judgement.order.len() as u64,
            bytes: judgement.order.iter().map(bytes).sum(),
            last_seq: judgement.last_seq,
            removed,
            kept,
            faults: judgement.faults(),
        }
    }

    /// Removes segments, each before its signature: a signature alone means nothing, but a segment
    /// alone would be a fault.
    fn remove(&mut self, numbers: &[u64]) -> io::Result<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        for &number in numbers {
            self.disk.remove(&segment::path(number))?;
        }
        self.disk.sync_dir(segment::DIR)?;
        for &number in numbers {
            match self.disk.remove(&segment::signature_path(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => self.held.remove(&number),
            };
        }
        self.disk.sync_dir(segment::DIR)
    }
}

/// Returns true if a new segment can be of the history that `old` is of: it tells of other transactions, or
/// `old` is in the run that it stands for. No history has two segments that overlap otherwise.
fn follows((span, seal): (SeqRange, &Seal), (old, old_seal): (SeqRange, &Seal)) -> bool {
    if span.last_seq < old.first_seq || old.last_seq < span.first_seq {
        return true;
    }
    let covers = span.first_seq <= old.first_seq && old.last_seq <= span.last_seq;
    let begins_alike = span.first_seq != old.first_seq || seal.previous == old_seal.previous;
    let ends_alike = span.last_seq != old.last_seq || seal.link() == old_seal.link();
    seal.last.is_some() && covers && begins_alike && ends_alike
}

/// Refuses a folder that is something else than a backup or empty.
fn refuse_others(disk: &dyn Disk) -> Result<(), BackupError> {
    let names = names(disk, "")?;
    let is_data = names.iter().any(|name| name == wal::DIR)
        || self::names(disk, device_key::DIR)?.iter().any(|name| name == "device.key");
    if is_data {
        let message = "it is the data folder of a daemon; a backup needs a folder of its own";
        return Err(BackupError::NotABackup(message.to_owned()));
    }
    let temporary = format!("{INFO}.tmp");
    let ours = [segment::DIR, device_key::DIR, "lock", INFO, temporary.as_str()];
    match names.iter().find(|name| !ours.contains(&name.as_str())) {
        Some(other) if !names.iter().any(|name| name == segment::DIR) => {
            let message = format!("it is no backup and not empty: {other} lies in it");
            Err(BackupError::NotABackup(message))
        }
        _ => Ok(()),
    }
}

/// Names in a folder; none if it is not there.
pub(super) fn names(disk: &dyn Disk, dir: &str) -> io::Result<Vec<String>> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}

/// Looks at every segment in a folder.
pub(super) fn look_at_all(
    disk: &dyn Disk,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<BTreeMap<u64, StoredSegment>> {
    let names = names(disk, segment::DIR)?;
    let numbers: Vec<u64> = names.iter().filter_map(|name| segment::number_of(name)).collect();
    let mut sizes = Vec::with_capacity(numbers.len());
    for number in &numbers {
        sizes.push(disk.open(&segment::path(*number), Mode::Read)?.len()?);
    }
    let (mut done, total) = (0, sizes.iter().sum());
    let mut held = BTreeMap::new();
    for (number, size) in numbers.into_iter().zip(sizes) {
        held.insert(number, StoredSegment::look(disk, number)?);
        done += size;
        progress(Progress { done, total });
    }
    Ok(held)
}
