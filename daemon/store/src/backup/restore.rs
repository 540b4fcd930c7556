//! A backup becomes a data folder again.
//!
//! Everything is verified first. The segments are copied into `segments.restoring` and synced; then
//! that folder gets its name, so that a restore that was cut short leaves nothing a daemon would take
//! for its memory; nor does one start there with none. The secret key is not in a backup: the daemon makes itself one at its first start,
//! and the chain of signatures goes on with it. Whose keys signed so far is noted in
//! [`device_key::FORMER`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use super::folder::{look_at_all, names};
use super::info::{INFO, Info};
use super::judge::{Judgement, judge};
use super::pins::Pins;
use super::stored_segment::StoredSegment;
use super::{Fault, Progress};
use crate::digest::digest;
use crate::disk::{self, Disk, Mode};
use crate::log::wal;
use crate::segment;
use crate::signing::device_key;

/// The folder of the segments until all of them are there.
pub(crate) const UNFINISHED: &str = "segments.restoring";

/// Why nothing was restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// There is no backup.
    NotABackup(String),
    /// The backup does not verify.
    Unsound(Vec<Fault>),
    /// The new folder holds something.
    NotFresh {
        /// Its name.
        name: String,
    },
    /// The backup cannot be read.
    Source(io::Error),
    /// The new folder cannot be written.
    Target(io::Error),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotABackup(message) => f.write_str(message),
            Self::Unsound(faults) => {
                f.write_str("the backup does not verify:")?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::NotFresh { name } => {
                write!(
                    f,
                    "{name} lies in it; restore into a folder that is empty or does not exist"
                )
            }
            Self::Source(error) => write!(f, "the backup cannot be read: {error}"),
            Self::Target(error) => write!(f, "the new folder cannot be written: {error}"),
        }
    }
}

impl std::error::Error for RestoreError {}

/// A backup that was looked at as a whole.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Its segments by number.
    pub held: BTreeMap<u64, StoredSegment>,
    /// The judgement on all of them.
    pub judgement: Judgement,
    /// Whose signatures count.
    pub pins: Pins,
    /// Everything that is wrong; nothing, if it can be restored.
    pub faults: Vec<Fault>,
}

/// Verifies a backup: digests, signatures, their chain, and that it reaches as far as it says.
///
/// # Errors
/// If it cannot be read. What does not verify is no error.
pub fn verify(from: &dyn Disk, progress: &mut dyn FnMut(Progress)) -> io::Result<Verified> {
    let (pins, info) = (Pins::read(from)?, Info::read(from)?);
    let held = look_at_all(from, progress)?;
    let judgement = judge(held.values(), &pins);
    let mut faults = judgement.faults();
    faults.extend(lacking(info.as_ref(), judgement.last_seq));
    Ok(Verified { held, judgement, pins, faults })
}

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last transaction in them.
    pub last_seq: u64,
    /// Faults of what does not verify and was brought as it is, or is missing.
    pub faults: Vec<Fault>,
}

/// Writes a backup into the empty data folder `into`; the backup is not changed. Keys that lie in
/// `into` already stay. With `force` what does not verify is brought as it is.
///
/// Durable on return.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore(
    from: &dyn Disk,
    into: &dyn Disk,
    force: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored, RestoreError> {
    refuse_others(from)?;
    // Verified once, and copied only as verified: two passes over all bytes.
    let mut first = |p: Progress| progress(Progress { done: p.done, total: 2 * p.total });
    let Verified { held, judgement, pins, faults } =
        verify(from, &mut first).map_err(RestoreError::Source)?;
    if !faults.is_empty() && !force {
        return Err(RestoreError::Unsound(faults));
    }
    let unsound = judgement.unsound.iter().map(|(number, _)| *number);
    let wanted: Vec<u64> = judgement.order.iter().copied().chain(unsound).collect();
    refuse_used(into)?;
    let bytes = copy(from, into, &held, &wanted, progress)?;
    (|| {
        hand_over_keys(into, &pins)?;
        into.rename(UNFINISHED, segment::DIR)?;
        into.sync_dir(".")
    })()
    .map_err(RestoreError::Target)?;
    let (segments, last_seq) = (wanted.len() as u64, judgement.last_seq);
    Ok(Restored { segments, bytes, last_seq, faults })
}

fn refuse_others(from: &dyn Disk) -> Result<(), RestoreError> {
    let found = from.list("").map_err(RestoreError::Source)?;
    let has = |name: &str| found.iter().any(|found| found == name);
    if has(wal::DIR) {
        let message = "it is a data folder and no backup; `omir store repair` copies those";
        return Err(RestoreError::NotABackup(message.to_owned()));
    }
    if !has(segment::DIR) {
        let message = format!("no backup: it has neither segments/ nor {INFO}");
        return Err(RestoreError::NotABackup(message));
    }
    Ok(())
}

/// Segments that the last run had brought and that are gone. No signature tells of the end of a chain.
fn lacking(info: Option<&Info>, last_seq: u64) -> Option<Fault> {
    let info = info.filter(|info| info.last_seq > last_seq)?;
    let message = format!(
        "the backup reached to transaction {}, and what is sound in it reaches to {last_seq}",
        info.last_seq
    );
    Some(Fault { file: INFO.to_owned(), message })
}

fn refuse_used(into: &dyn Disk) -> Result<(), RestoreError> {
    let found = names(into, "").map_err(RestoreError::Target)?;
    match found
        .into_iter()
        .find(|name| ![device_key::DIR, UNFINISHED, "lock"].contains(&name.as_str()))
    {
        Some(name) => Err(RestoreError::NotFresh { name }),
        None => Ok(()),
    }
}

fn copy(
    from: &dyn Disk,
    into: &dyn Disk,
    held: &BTreeMap<u64, StoredSegment>,
    wanted: &[u64],
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, RestoreError> {
    let target = RestoreError::Target;
    for name in names(into, UNFINISHED).map_err(target)? {
        into.remove(&format!("{UNFINISHED}/{name}")).map_err(target)?;
    }
    into.create_dir(UNFINISHED).map_err(target)?;
    let total: u64 = wanted.iter().filter_map(|n| held.get(n)).map(|held| held.bytes).sum();
    let mut done = 0;
    for &number in wanted {
        let path = segment::path(number);
        let bytes = match (disk::read(from, &path), held.get(&number)) {
            (Ok(bytes), _) => bytes,
            // Named as a fault already; what else there is comes without it.
            (Err(_), Some(StoredSegment { state: Err(_), .. })) => continue,
            (Err(error), _) => return Err(RestoreError::Source(error)),
        };
        if let Some(StoredSegment { seal: Some(seal), state: Ok(_), .. }) = held.get(&number)
            && seal.contents.sha256 != digest(&bytes)
        {
            let error = io::Error::other(format!("{path} changed while it was copied"));
            return Err(RestoreError::Source(error));
        }
        let signature =
            match (disk::read(from, &segment::signature_path(number)), held.get(&number)) {
                (Ok(text), _) => Some(text),
                (Err(error), _) if error.kind() == io::ErrorKind::NotFound => None,
                // So it is with a signature.
                (Err(_), Some(StoredSegment { seal: None, .. })) => None,
                (Err(error), _) => return Err(RestoreError::Source(error)),
            };
        if let Some(text) = signature {
            write(into, &segment::signature_path(number), &text).map_err(target)?;
        }
        write(into, &path, &bytes).map_err(target)?;
        done += bytes.len() as u64;
        progress(Progress { done: total + done, total: 2 * total });
    }
    into.sync_dir(UNFINISHED).map_err(target)?;
    Ok(done)
}

/// Writes the file that is to be at `path`, a path within the folder of the segments.
fn write(into: &dyn Disk, path: &str, bytes: &[u8]) -> io::Result<()> {
    let path = path.replacen(segment::DIR, UNFINISHED, 1);
    let file = into.open(&path, Mode::Create)?;
    file.write_at(bytes, 0)?;
    file.sync()
}

/// Notes who signed so far, beside the keys the device may have already.
fn hand_over_keys(into: &dyn Disk, pins: &Pins) -> io::Result<()> {
    let mut own = Pins::read(into)?;
    let current = own.current.clone();
    own.former.extend(pins.all().filter(|key| Some(*key) != current.as_ref()).cloned());
    own.write(into)
}
