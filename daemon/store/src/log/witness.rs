//! Witnesses: a second copy of the facts that decide answers, kept in another file than the first.
//!
//! A lost version is noticed by its checksum, but not what it was a version *of*. Without that, the version
//! before it would be served as current, and what a lost tombstone ended would be live again. So for each
//! version above the first, and for each tombstone, a witness keeps the name (as a hash), the version and the
//! place in history: some twelve bytes. First versions need none: nothing older can stand in for them.
//!
//! A log has its witness beside it, `wal/<number>.facts`:
//!
//! ```text
//! file    = header record*
//! header  = "OMIRFCT1" number:u64 crc:u32 0:u32                crc over the 16 bytes before it
//! record  = len:u32 crc:u32 payload[len]                       crc over number:u64 len:u32 payload
//! payload = postcard of [`Record`]
//! ```
//!
//! Integers are little-endian. A record is written once the frames it tells of are durable, and is not synced
//! itself: a power cut may take it, and rot may take it, but not both that and the frames. So a frame that a
//! record covers and that cannot be read was acknowledged and rotted, and no torn write explains it.
//!
//! A segment's witness lies in its sidecar, as [`encode`] gives it.
//!
//! Facts can be applied again and again: whoever knows of something newer under the name passes over them.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::wal;
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::kept_index::block::Row;
use crate::kept_index::index_extractor::{BlockOf, IndexExtractor};
use crate::recorded::ref_key::{KeyPrefix, RefKey};
use crate::recorded::tombstone::{DeletionOrigin, EndCause};
use crate::recorded::version::Stamp;

const MAGIC: &[u8; 8] = b"OMIRFCT1";
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 8;

/// The kind of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FactKind {
    /// A version above the first.
    Version,
    /// Someone had it forgotten.
    Forgotten,
    /// A rule let go of it.
    LetGo,
}

/// One fact: what came to be under a name, as which version, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// The name.
    pub key: KeyPrefix,
    /// Version and place in history.
    pub stamp: Stamp,
    /// Its kind.
    pub kind: FactKind,
}

impl Fact {
    /// The fact that a version was stored; `None` for a first one.
    pub fn version(key: &RefKey, stamp: Stamp) -> Option<Self> {
        (stamp.version > 1).then(|| Self { key: key.prefix(), stamp, kind: FactKind::Version })
    }

    /// The fact that something was forgotten.
    pub fn tombstone(key: &RefKey, stamp: Stamp, by: DeletionOrigin) -> Self {
        let kind = match by {
            DeletionOrigin::User => FactKind::Forgotten,
            DeletionOrigin::Rule | DeletionOrigin::Merging(_) => FactKind::LetGo,
        };
        Self { key: key.prefix(), stamp, kind }
    }

    /// Its place in history.
    pub fn order(&self) -> (u64, u32) {
        (self.stamp.seq, self.stamp.ordinal)
    }

    /// The origin of the deletion, if it is a tombstone. The record that a rule made it a part of is not kept.
    pub fn by(&self) -> Option<DeletionOrigin> {
        match self.kind {
            FactKind::Version => None,
            FactKind::Forgotten => Some(DeletionOrigin::User),
            FactKind::LetGo => Some(DeletionOrigin::Rule),
        }
    }
}

/// Returns all facts of a segment's index block.
pub(crate) fn of_block<D: IndexExtractor>(block: &BlockOf<D>) -> Vec<Fact> {
    facts_of::<D>(block, |_| true)
}

/// Returns the facts of a segment that is being written. It leaves out what a rule let go of if no version from before
/// the segment is `held`: without the tombstone nothing comes back. That is most of them, because a sighting that
/// becomes part of another mostly lies in the same log.
pub(crate) fn of_new_block<D: IndexExtractor>(
    block: &BlockOf<D>,
    held: impl Fn(&RefKey) -> bool,
) -> Vec<Fact> {
    facts_of::<D>(block, held)
}

fn facts_of<D: IndexExtractor>(
    block: &BlockOf<D>,
    may_return: impl Fn(&RefKey) -> bool,
) -> Vec<Fact> {
    let version = |row: &Row<D::Facts>| Fact::version(&D::key(&row.facts), row.stamp);
    let versions = block.rows.iter().filter_map(version);
    let tombstones = block.tombstones.iter().filter_map(|tombstone| match tombstone.ending {
        EndCause::Forgotten(by) => {
            let key = tombstone.key();
            let is_needed = by == DeletionOrigin::User || may_return(&key);
            is_needed.then(|| Fact::tombstone(&key, tombstone.stamp, by))
        }
        EndCause::Dropped => None,
    });
    let mut facts: Vec<Fact> = versions.chain(tombstones).collect();
    facts.sort_by_key(Fact::order);
    facts
}

/// A fact as it is written: its numbers are differences to the fact before it.
#[derive(Serialize, Deserialize)]
struct Item(u64, u32, i64, u64, FactKind, KeyPrefix);

fn items(facts: &[Fact]) -> Vec<Item> {
    let (mut seq, mut recorded) = (0u64, 0i64);
    facts
        .iter()
        .map(|fact| {
            let stamp = fact.stamp;
            let (ahead, later) =
                (stamp.seq.wrapping_sub(seq), stamp.recorded.wrapping_sub(recorded));
            (seq, recorded) = (stamp.seq, stamp.recorded);
            Item(ahead, stamp.ordinal, later, stamp.version, fact.kind, fact.key)
        })
        .collect()
}

fn facts(items: Vec<Item>) -> Vec<Fact> {
    let (mut seq, mut recorded) = (0u64, 0i64);
    items
        .into_iter()
        .map(|Item(ahead, ordinal, later, version, kind, key)| {
            (seq, recorded) = (seq.wrapping_add(ahead), recorded.wrapping_add(later));
            Fact { key, stamp: Stamp { seq, ordinal, version, recorded }, kind }
        })
        .collect()
}

/// Facts as bytes, in the order given.
pub fn encode(list: &[Fact]) -> Vec<u8> {
    postcard::to_allocvec(&items(list)).unwrap_or_default()
}

/// Reads what [`encode`] wrote; `None` if it is damaged. The caller checks a checksum first.
pub fn decode(bytes: &[u8]) -> Option<Vec<Fact>> {
    postcard::from_bytes(bytes).ok().map(facts)
}

/// A record of a witness: the facts of one sync of a log.
#[derive(Serialize, Deserialize)]
struct Record {
    /// So much of the log was durable.
    end: u64,
    /// The last transaction in that; 0 if the record does not say.
    last_seq: u64,
    items: Vec<Item>,
}

/// Returns the path of a log's witness.
pub(crate) fn path(log: u64) -> String {
    format!("{}/{log:010}.facts", wal::DIR)
}

/// Returns the number of the log that a file name says it is the witness of.
pub fn number_of(name: &str) -> Option<u64> {
    wal::number_of(&format!("{}.wal", name.strip_suffix(".facts")?))
}

fn header(log: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(FILE_HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&log.to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
    header.resize(FILE_HEADER, 0);
    header
}

fn record_crc(log: u64, len: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&log.to_le_bytes());
    hasher.update(&len.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

fn record(log: u64, end: u64, last_seq: u64, list: &[Fact], out: &mut Vec<u8>) {
    let record = Record { end, last_seq, items: items(list) };
    let payload = postcard::to_allocvec(&record).unwrap_or_default();
    let len = u32::try_from(payload.len()).expect("facts of one group are far smaller than 4 GiB");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&record_crc(log, len, &payload).to_le_bytes());
    out.extend_from_slice(&payload);
}

/// The statements of a log's witness.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WitnessContents {
    /// So much of the log is known to have been durable.
    pub end: u64,
    /// The last transaction known to have been durable.
    pub last_seq: u64,
    /// The facts, oldest first.
    pub facts: Vec<Fact>,
    /// True if the file is there, and all of it could be read.
    pub is_whole: bool,
    /// End of its good part.
    pub len: u64,
}

/// Reads the bytes of the witness of a log. Damaged records are passed over. Never panics, whatever the bytes
/// are.
pub fn read(bytes: &[u8], log: u64) -> WitnessContents {
    let mut found = WitnessContents { len: FILE_HEADER as u64, ..WitnessContents::default() };
    found.is_whole = bytes.get(..FILE_HEADER) == Some(&header(log)[..]);
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        match record_at(bytes, log, at) {
            Some((record, next)) => {
                found.end = found.end.max(record.end);
                found.last_seq = found.last_seq.max(record.last_seq);
                found.facts.extend(facts(record.items));
                at = next;
                found.len = at as u64;
            }
            None => {
                found.is_whole = false;
                at += 1;
            }
        }
    }
    let newest = found.facts.iter().map(|fact| fact.stamp.seq).max();
    found.last_seq = found.last_seq.max(newest.unwrap_or(0));
    found
}

fn record_at(bytes: &[u8], log: u64, at: usize) -> Option<(Record, usize)> {
    let head = bytes.get(at..at.checked_add(RECORD_HEADER)?)?;
    let (len, crc) = head.split_at(4);
    let len = u32::from_le_bytes(len.try_into().ok()?);
    let start = at + RECORD_HEADER;
    let end = start.checked_add(len as usize)?;
    let payload = bytes.get(start..end)?;
    if crc != record_crc(log, len, payload).to_le_bytes() {
        return None;
    }
    Some((postcard::from_bytes(payload).ok()?, end))
}

/// Reads the witness of a log from a disk; one that is not there or cannot be read says nothing.
pub(crate) fn load(disk: &dyn Disk, log: u64) -> WitnessContents {
    match disk::read(disk, &path(log)) {
        Ok(bytes) => read(&bytes, log),
        Err(_) => match disk::read_around(disk, &path(log)) {
            Ok((bytes, _)) => WitnessContents { is_whole: false, ..read(&bytes, log) },
            Err(_) => WitnessContents::default(),
        },
    }
}

/// Rewrites the witness of a log, synced and under its name; durable after a sync of the folder.
///
/// # Errors
/// If the disk refuses. The old one is then still there.
pub(crate) fn replace(disk: &dyn Disk, log: u64, list: &[Fact]) -> io::Result<()> {
    let mut bytes = header(log);
    if !list.is_empty() {
        record(log, 0, 0, list, &mut bytes);
    }
    disk::replace(disk, &path(log), &bytes)
}

/// Removes the witness of a log that nobody needs any more.
pub(crate) fn remove(disk: &dyn Disk, log: u64) -> io::Result<()> {
    match disk.remove(&path(log)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The witness of the log that is being written.
pub(crate) struct Writer {
    log: u64,
    /// `None` where the disk refused: the next start rebuilds it from the log.
    file: Option<Arc<dyn DiskFile>>,
    len: u64,
    /// Facts of frames that are staged.
    staged: Vec<Fact>,
    /// Facts of frames that are written and not yet durable.
    pending: Vec<Fact>,
}

impl Writer {
    /// Begins the witness of a new log.
    pub(crate) fn create(disk: &dyn Disk, log: u64) -> Self {
        let made = disk.open(&path(log), Mode::Create).and_then(|file| {
            file.write_at(&header(log), 0)?;
            Ok(file)
        });
        Self::with(log, made.ok(), FILE_HEADER as u64)
    }

    /// Goes on with one whose good part ends at `len`; with none if it cannot be written to.
    pub(crate) fn resume(disk: &dyn Disk, log: u64) -> Self {
        let found = load(disk, log);
        if !found.is_whole {
            return Self::with(log, None, 0);
        }
        Self::with(log, disk.open(&path(log), Mode::Write).ok(), found.len)
    }

    /// None at all.
    pub(crate) fn absent(log: u64) -> Self {
        Self::with(log, None, 0)
    }

    fn with(log: u64, file: Option<Arc<dyn DiskFile>>, len: u64) -> Self {
        Self { log, file, len, staged: Vec::new(), pending: Vec::new() }
    }

    /// Adds the facts of a frame that is staged.
    pub(crate) fn stage(&mut self, facts: impl IntoIterator<Item = Fact>) {
        self.staged.extend(facts);
    }

    /// Notes that the staged frames are in the file, or that none of them is.
    pub(crate) fn finish_group(&mut self, are_written: bool) {
        if are_written {
            self.pending.append(&mut self.staged);
        }
        self.staged.clear();
    }

    /// Forgets the facts of frames that a failed sync has left in doubt.
    pub(crate) fn drop_pending(&mut self) {
        self.pending.clear();
    }

    /// Writes what is known of the frames up to `end`, which are durable.
    pub(crate) fn tell(&mut self, end: u64) {
        if !self.pending.is_empty() {
            let facts = std::mem::take(&mut self.pending);
            self.append(end, 0, &facts);
        }
    }

    /// Says that the log ends at `end`, durable, with transaction `last_seq`; durable on return, as far as the
    /// disk is willing.
    pub(crate) fn close(&mut self, end: u64, last_seq: u64) {
        let facts = std::mem::take(&mut self.pending);
        self.append(end, last_seq, &facts);
        if let Some(file) = &self.file
            && let Err(error) = file.sync()
        {
            tracing::debug!(%error, log = self.log, "the log's witness could not be synced");
        }
    }

    fn append(&mut self, end: u64, last_seq: u64, facts: &[Fact]) {
        let Some(file) = &self.file else { return };
        let mut bytes = Vec::new();
        record(self.log, end, last_seq, facts, &mut bytes);
        match file.write_at(&bytes, self.len) {
            Ok(()) => self.len += bytes.len() as u64,
            Err(error) => {
                // The log has all of it; the next start writes this file again.
                tracing::debug!(%error, log = self.log, "the log's witness could not be written");
                self.file = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;

    fn stamp(seq: u64, version: u64) -> Stamp {
        Stamp { seq, ordinal: 3, version, recorded: 1_780_000_000_000_000 + seq.cast_signed() }
    }

    fn sample() -> Vec<Fact> {
        let key = RefKey::of_text("Entity/door");
        vec![
            Fact::version(&key, stamp(7, 2)).unwrap(),
            Fact::tombstone(&key, stamp(9, 3), DeletionOrigin::User),
            Fact::tombstone(&RefKey::of_text("Entity/cup"), stamp(9, 2), DeletionOrigin::Rule),
        ]
    }

    #[test]
    fn facts_survive_their_bytes_and_are_small() {
        let facts = sample();
        let bytes = encode(&facts);
        assert_eq!(decode(&bytes), Some(facts));
        assert!(bytes.len() < 60, "{}", bytes.len());
        assert_eq!(Fact::version(&RefKey::of_text("Entity/door"), stamp(1, 1)), None);
    }

    #[test]
    fn a_log_s_witness_is_read_back_and_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        disk.create_dir(wal::DIR).unwrap();
        let facts = sample();
        let mut writer = Writer::create(&disk, 4);
        writer.stage([facts[0]]);
        writer.finish_group(true);
        writer.tell(100);
        // Not written, so nothing is known of it.
        writer.stage([facts[2]]);
        writer.finish_group(false);
        writer.tell(100);
        let mut writer = Writer::resume(&disk, 4);
        writer.stage([facts[1]]);
        writer.finish_group(true);
        writer.close(200, 12);
        let found = load(&disk, 4);
        assert_eq!((found.end, found.last_seq, found.is_whole), (200, 12, true));
        assert_eq!(found.facts, facts[..2]);
        assert!(load(&disk, 5) == WitnessContents::default());
    }

    #[test]
    fn what_is_damaged_takes_only_its_own_record_along() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        disk.create_dir(wal::DIR).unwrap();
        let mut writer = Writer::create(&disk, 4);
        for (fact, end) in sample().into_iter().zip([100, 200, 300]) {
            writer.stage([fact]);
            writer.finish_group(true);
            writer.tell(end);
        }
        let bytes = disk::read(&disk, &path(4)).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut rotten = bytes.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            let found = read(&rotten, 4);
            assert!(!found.is_whole, "bit {bit}");
            assert!(found.facts.len() >= 2, "bit {bit}: {found:?}");
            assert!(found.facts.iter().all(|fact| sample().contains(fact)));
        }
        for end in 0..bytes.len() {
            let _ = read(&bytes[..end], 4);
        }
        assert!(read(&bytes, 5).facts.is_empty(), "of another log");
    }
}
