//! The write-ahead log: what is acknowledged and not yet sealed.
//!
//! ```text
//! file    = header frame*
//! header  = "OMIRWAL1" number:u64 first_seq:u64 crc:u32 0:u32          32 bytes
//! frame   = "OMF1" len:u32 synced:u32 crc:u32 payload[len]             16 bytes + payload
//! payload = CBOR sequence (RFC 8742), see `transaction`
//! ```
//!
//! Integers are little-endian. A frame is one transaction, all of it or none. Its `crc` (CRC-32,
//! IEEE) covers the file's number, `len`, `synced` and the payload, so that a frame of another
//! file is never taken for one of this.
//!
//! `synced` is how much of the file was known to be durable when the frame was written. It tells
//! two kinds of damage apart after a power cut. Where a frame is bad and no later good frame was
//! written after it had been synced, it is the torn end of a write that nobody was told about: the
//! log ends there. Where a later frame says that the bad one *had* been durable, the flash card
//! lost an acknowledged record: it is reported, and reading goes on behind it.

use std::io;
use std::sync::Arc;

use super::transaction::{MAX_SEQ, Transaction};
use super::witness::{self, Fact};
use crate::disk::{self, Disk, DiskFile, Mode};

/// The folder of the log files.
pub const DIR: &str = "wal";
const FILE_MAGIC: &[u8; 8] = b"OMIRWAL1";
const FRAME_MAGIC: &[u8; 4] = b"OMF1";
/// Bytes before the first frame.
pub const FILE_HEADER: usize = 32;
/// Bytes before a frame's payload.
pub const FRAME_HEADER: usize = 16;

/// Where the log file with this number lies.
pub fn path(number: u64) -> String {
    format!("{DIR}/{number:010}.wal")
}

/// The number in a log file's name.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".wal")?;
    let number: u64 = (digits.len() == 10).then(|| digits.parse().ok()).flatten()?;
    // The catalog numbers files with 32 bits; a name beyond that is none of ours.
    (number < u64::from(u32::MAX)).then_some(number)
}

fn frame_crc(number: u64, len: u32, synced: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(&len.to_le_bytes());
    hasher.update(&synced.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// The log file being written.
///
/// Frames are collected with [`Log::stage`], written together with [`Log::write`] and made durable
/// with [`Log::sync`]: that is the group commit.
pub struct Log {
    number: u64,
    file: Arc<dyn DiskFile>,
    /// Whether there is a file at all.
    exists: bool,
    /// Bytes written; all of it good frames.
    written: u64,
    /// Bytes known to be durable.
    synced: u64,
    staged: Vec<u8>,
    /// The second copy of the facts in it.
    witness: witness::Writer,
}

impl Log {
    /// Starts log file `number`, whose first transaction will be `first_seq`. Durable on return.
    pub fn create(disk: &dyn Disk, number: u64, first_seq: u64) -> io::Result<Self> {
        let mut header = Vec::with_capacity(FILE_HEADER);
        header.extend_from_slice(FILE_MAGIC);
        header.extend_from_slice(&number.to_le_bytes());
        header.extend_from_slice(&first_seq.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        header.resize(FILE_HEADER, 0);
        let path = path(number);
        let file = disk.open(&path, Mode::Create)?;
        let made =
            file.write_at(&header, 0).and_then(|()| file.sync()).and_then(|()| disk.sync_dir(DIR));
        if let Err(error) = made {
            let _ = disk.remove(&path);
            return Err(error);
        }
        let witness = witness::Writer::create(disk, number);
        Ok(Self::with(number, file, true, FILE_HEADER as u64, witness))
    }

    fn with(
        number: u64,
        file: Arc<dyn DiskFile>,
        exists: bool,
        len: u64,
        witness: witness::Writer,
    ) -> Self {
        Self { number, file, exists, written: len, synced: len, staged: Vec::new(), witness }
    }

    /// Goes on with a log file that was recovered up to `end`: cuts what lies behind it.
    pub fn resume(disk: &dyn Disk, number: u64, end: u64) -> io::Result<Self> {
        let file = disk.open(&path(number), Mode::Write)?;
        if file.len()? != end {
            file.truncate(end)?;
        }
        // The cut must be durable before anything new is written over the torn end, or the old
        // bytes could come back behind the new ones after the next power cut.
        file.sync()?;
        disk.sync_dir(DIR)?;
        Ok(Self::with(number, file, true, end, witness::Writer::resume(disk, number)))
    }

    /// A log that was recovered up to `end` on a disk that cannot be written to: a new one must be
    /// begun before anything is stored.
    pub fn closed(disk: &dyn Disk, number: u64, end: u64) -> io::Result<Self> {
        let file = disk.open(&path(number), Mode::Read)?;
        Ok(Self::with(number, file, true, end, witness::Writer::absent(number)))
    }

    /// No log at all, on a disk that cannot be written to; the next one has the number after this.
    pub fn absent(number: u64) -> Self {
        let witness = witness::Writer::absent(number);
        Self::with(number, Arc::new(NoFile), false, FILE_HEADER as u64, witness)
    }

    /// Whether there is a file of this log.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// This file's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A handle for readers.
    pub fn file(&self) -> Arc<dyn DiskFile> {
        self.file.clone()
    }

    /// Bytes written so far, with what is staged.
    pub fn len(&self) -> u64 {
        self.written + self.staged.len() as u64
    }

    /// Whether the file holds no frame yet.
    pub fn is_empty(&self) -> bool {
        self.len() == FILE_HEADER as u64
    }

    /// Adds the facts of the frame that is staged next, or was staged last.
    pub fn attest(&mut self, facts: impl IntoIterator<Item = Fact>) {
        self.witness.stage(facts);
    }

    /// Says in the witness that the log ends here, with transaction `last_seq`: whatever cannot be read of it
    /// later has rotted. Call it once all is synced.
    pub fn close(&mut self, last_seq: u64) {
        if self.exists {
            let last_seq = if self.is_dirty() { 0 } else { last_seq };
            self.witness.close(self.synced, last_seq);
        }
    }

    /// Adds a frame to the group; returns where its payload will lie in the file.
    pub fn stage(&mut self, payload: &[u8]) -> u64 {
        let len = u32::try_from(payload.len()).expect("a request is far smaller than 4 GiB");
        let synced = u32::try_from(self.synced).expect("a log file is sealed long before 4 GiB");
        let crc = frame_crc(self.number, len, synced, payload);
        self.staged.extend_from_slice(FRAME_MAGIC);
        self.staged.extend_from_slice(&len.to_le_bytes());
        self.staged.extend_from_slice(&synced.to_le_bytes());
        self.staged.extend_from_slice(&crc.to_le_bytes());
        let at = self.len();
        self.staged.extend_from_slice(payload);
        at
    }

    /// Writes the group. On error nothing of it is in the file, or the file is unusable.
    pub fn write(&mut self) -> Result<usize, LogError> {
        let len = self.staged.len();
        let result = self.file.write_at(&self.staged, self.written);
        self.staged.clear();
        self.witness.settle(result.is_ok());
        match result {
            Ok(()) => {
                self.written += len as u64;
                Ok(len)
            }
            Err(error) => match self.file.truncate(self.written) {
                Ok(()) => Err(LogError::Refused(error)),
                Err(_) => Err(LogError::Broken(error)),
            },
        }
    }

    /// Makes everything written durable.
    pub fn sync(&mut self) -> Result<(), LogError> {
        match self.file.sync() {
            Ok(()) => {
                self.synced = self.written;
                self.witness.tell(self.synced);
                Ok(())
            }
            Err(error) => {
                // After a failed sync the kernel may have dropped the pages: what was written since
                // the last good sync is neither there nor gone. Cut it off and never write here again.
                // What was cut off is no part of the log: a later sync that succeeds must not call it durable.
                self.written = self.synced;
                self.witness.drop_pending();
                let _ = self.file.truncate(self.synced);
                let _ = self.file.sync();
                Err(LogError::Broken(error))
            }
        }
    }

    /// Bytes of the group that waits to be written.
    pub fn staged(&self) -> u64 {
        self.staged.len() as u64
    }

    /// Drops the group.
    pub fn discard(&mut self) {
        self.staged.clear();
        self.witness.settle(false);
    }

    /// How much of the file is known to be durable.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Whether something was written and not synced.
    pub fn is_dirty(&self) -> bool {
        self.synced != self.written
    }
}

/// The file of a log that could not be made.
struct NoFile;

impl DiskFile for NoFile {
    fn len(&self) -> io::Result<u64> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Why a group could not be logged.
#[derive(Debug)]
pub enum LogError {
    /// Nothing of the group is in the file; the next group may be tried.
    Refused(io::Error),
    /// The file is in doubt behind its last synced byte; a new file must be started.
    Broken(io::Error),
}

/// A good frame found by [`read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where the payload lies in the file.
    pub at: usize,
    /// The payload, checked against its CRC.
    pub payload: &'a [u8],
}

/// Bytes of a log file that were acknowledged and cannot be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where the unreadable bytes begin.
    pub at: usize,
    /// How many there are, to the next good frame or to the end of what was durable.
    pub len: usize,
}

/// What a log file holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents<'a> {
    /// The number in the header.
    pub number: u64,
    /// The first transaction that was meant for this file.
    pub first_seq: u64,
    /// The good frames, in order.
    pub frames: Vec<Frame<'a>>,
    /// Where the good part ends; what lies behind was never acknowledged.
    pub end: usize,
    /// What was acknowledged and is lost.
    pub damage: Vec<Damage>,
}

/// A log file whose header is unreadable. If it holds frames they are still found by [`read`] with
/// the number of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHeader;

fn header(bytes: &[u8]) -> Result<(u64, u64), BadHeader> {
    let head = bytes.get(..FILE_HEADER).ok_or(BadHeader)?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let crc = u32::from_le_bytes(head[24..28].try_into().expect("four bytes"));
    if &head[..8] != FILE_MAGIC || crc != crc32fast::hash(&head[..24]) {
        return Err(BadHeader);
    }
    let (number, first_seq) = (word(8), word(16));
    if first_seq > MAX_SEQ { Err(BadHeader) } else { Ok((number, first_seq)) }
}

/// The number a log file says it has; `None` if its header is unreadable.
pub fn stored_number(bytes: &[u8]) -> Option<u64> {
    header(bytes).ok().map(|(number, _)| number)
}

/// The good frame at `at`, with its claim of what was durable, if there is one.
fn frame_at(bytes: &[u8], number: u64, at: usize) -> Option<(Frame<'_>, u32)> {
    let head = bytes.get(at..at.checked_add(FRAME_HEADER)?)?;
    if &head[..4] != FRAME_MAGIC {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let (len, synced, crc) = (word(4), word(8), word(12));
    let start = at + FRAME_HEADER;
    let payload = bytes.get(start..start.checked_add(len as usize)?)?;
    (frame_crc(number, len, synced, payload) == crc)
        .then_some((Frame { at: start, payload }, synced))
}

/// Reads log file `number`.
///
/// A file too short for its header was torn while it was made and holds nothing. Never panics,
/// whatever the bytes are.
///
/// # Errors
/// If neither the header nor any frame can be read, or it is the header of another log.
pub fn read(bytes: &[u8], number: u64) -> Result<Contents<'_>, BadHeader> {
    read_known(bytes, number, 0)
}

/// The same where the first `durable` bytes are known to have been durable, the header among them:
/// all that is unreadable in them is damage, and ends nothing.
///
/// # Errors
/// As [`read`].
pub fn read_known(bytes: &[u8], number: u64, durable: usize) -> Result<Contents<'_>, BadHeader> {
    let header = header(bytes);
    if header.is_err() && bytes.len() <= FILE_HEADER {
        return Err(BadHeader);
    }
    let (number, first_seq) = match header {
        Ok((stored, _)) if stored != number => return Err(BadHeader),
        Ok(header) => header,
        Err(BadHeader) => (number, 0),
    };
    let mut frames = Vec::new();
    let mut durable = durable;
    let mut gaps: Vec<Damage> = Vec::new();
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        if let Some((frame, synced)) = frame_at(bytes, number, at) {
            durable = durable.max(synced as usize);
            at = frame.at + frame.payload.len();
            frames.push(frame);
            continue;
        }
        // Look for the next good frame: only a later frame can tell whether this was durable.
        let next = (at + 1..bytes.len())
            .find(|&candidate| frame_at(bytes, number, candidate).is_some())
            .unwrap_or(bytes.len());
        gaps.push(Damage { at, len: next - at });
        at = next;
    }
    // The first gap that was not durable ends the log.
    let torn = gaps.iter().find(|gap| gap.at >= durable).map(|gap| gap.at);
    let end = torn.unwrap_or(bytes.len());
    // A payload may be empty: what counts is where the frame begins.
    frames.retain(|frame| frame.at - FRAME_HEADER < end);
    let damage: Vec<Damage> = gaps.into_iter().filter(|gap| gap.at < end).collect();
    if header_is_lost(&header, &frames) {
        return Err(BadHeader);
    }
    Ok(Contents { number, first_seq, frames, end, damage })
}

fn header_is_lost(header: &Result<(u64, u64), BadHeader>, frames: &[Frame<'_>]) -> bool {
    header.is_err() && frames.is_empty()
}

/// One bit that rot had turned, and that was turned back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mended {
    /// The byte it lies in.
    pub at: usize,
    /// That byte as it was written.
    pub byte: u8,
}

/// Turns back single bits that rot has turned in log file `number`: in its header, and in each frame that
/// does not pass its checksum. CRC-32 tells which bit it was, for frames of less than 512 MiB.
///
/// A torn write is not taken for rot: of that a part lacks, and the odds that what is left looks like a frame
/// with one wrong bit are about one in 100,000 for a frame of 4 KiB; even then it would have to hold the next
/// transaction.
pub fn mend(bytes: &mut [u8], number: u64) -> Vec<Mended> {
    let mut mended = Vec::new();
    if let Some(head) = bytes.get(..FILE_HEADER)
        && header(head).is_err()
    {
        let mut head = head.to_vec();
        let is_ours = |head: &[u8]| header(head).is_ok_and(|(stored, _)| stored == number);
        // The last four bytes are zero, and covered by nothing.
        if let Some(bit) = (0..(FILE_HEADER - 4) * 8).find(|bit| {
            head[bit / 8] ^= 1 << (bit % 8);
            let is_good = is_ours(&head);
            head[bit / 8] ^= 1 << (bit % 8);
            is_good
        }) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            mended.push(Mended { at: bit / 8, byte: bytes[bit / 8] });
        }
    }
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        if let Some((frame, _)) = frame_at(bytes, number, at) {
            at = frame.at + frame.payload.len();
        } else if let Some(bit) = wrong_bit(&bytes[at..], number) {
            let byte = at + bit / 8;
            bytes[byte] ^= 1 << (bit % 8);
            mended.push(Mended { at: byte, byte: bytes[byte] });
        } else {
            let next = (at + 1..bytes.len())
                .find(|&candidate| frame_at(bytes, number, candidate).is_some());
            at = next.unwrap_or(bytes.len());
        }
    }
    mended
}

/// Writes bits that were turned back to the file of log `number`. Durable on return.
///
/// # Errors
/// Whatever the disk says.
pub fn write_mended(disk: &dyn Disk, number: u64, mended: &[Mended]) -> io::Result<()> {
    let file = disk.open(&path(number), Mode::Write)?;
    mended.iter().try_for_each(|bit| file.write_at(&[bit.byte], bit.at as u64))?;
    file.sync()
}

/// The one bit that must be turned for a good frame to begin here, if there is one. Both its checksum and its
/// transaction must say so.
fn wrong_bit(bytes: &[u8], number: u64) -> Option<usize> {
    let mut head: [u8; FRAME_HEADER] = *bytes.first_chunk()?;
    let mut found = None;
    // In the header: each bit is tried.
    for bit in 0..FRAME_HEADER * 8 {
        head[bit / 8] ^= 1 << (bit % 8);
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (len, synced, crc) = (word(4), word(8), word(12));
        let payload = bytes.get(FRAME_HEADER..FRAME_HEADER.saturating_add(len as usize));
        if &head[..4] == FRAME_MAGIC
            && payload.is_some_and(|payload| frame_crc(number, len, synced, payload) == crc)
        {
            found = Some(bit);
            break;
        }
        head[bit / 8] ^= 1 << (bit % 8);
    }
    // In the payload: CRC-32 is linear, so what it is off by depends on the bit alone.
    if found.is_none() && &head[..4] == FRAME_MAGIC {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (len, synced, crc) = (word(4), word(8), word(12));
        let payload = bytes.get(FRAME_HEADER..FRAME_HEADER.checked_add(len as usize)?)?;
        let off = frame_crc(number, len, synced, payload) ^ crc;
        found = crc_bit(off, payload.len()).map(|bit| FRAME_HEADER * 8 + bit);
    }
    let bit = found?;
    let mut frame = bytes.to_vec();
    frame[bit / 8] ^= 1 << (bit % 8);
    let (frame, _) = frame_at(&frame, number, 0)?;
    Transaction::decode(frame.payload).is_ok().then_some(bit)
}

/// The bit of the last `len` bytes under a CRC-32 that changes it by `off` when it is turned.
fn crc_bit(off: u32, len: usize) -> Option<usize> {
    /// The polynomial of IEEE 802.3, with its bits in reverse.
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
    // The highest bit of the last byte is one step from the end.
    let mut crc = step(1);
    for back in 0..len.min(512 << 20) * 8 {
        if crc == off {
            let (byte, bit) = (len - 1 - back / 8, 7 - back % 8);
            return Some(byte * 8 + bit);
        }
        crc = step(crc);
    }
    None
}

/// Reads the bytes of log file `number` from a disk.
pub fn load(disk: &dyn Disk, number: u64) -> io::Result<Vec<u8>> {
    disk::read(disk, &path(number))
}

#[cfg(test)]
mod tests {
    use super::super::transaction::Op;
    use super::*;
    use crate::disk::Folder;

    fn log_of(groups: &[&[&[u8]]]) -> (tempfile::TempDir, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        disk.create_dir(DIR).unwrap();
        let mut log = Log::create(&disk, 7, 100).unwrap();
        for group in groups {
            for payload in *group {
                log.stage(payload);
            }
            log.write().unwrap();
            log.sync().unwrap();
        }
        let bytes = load(&disk, 7).unwrap();
        (dir, bytes)
    }

    fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
        read(bytes, 7).unwrap().frames.iter().map(|f| f.payload.to_vec()).collect()
    }

    #[test]
    fn what_was_written_is_read_back() {
        let (_dir, bytes) = log_of(&[&[b"one", b"two"], &[b"three"]]);
        let contents = read(&bytes, 7).unwrap();
        assert_eq!((contents.number, contents.first_seq), (7, 100));
        assert_eq!(contents.end, bytes.len());
        assert!(contents.damage.is_empty());
        assert_eq!(payloads(&bytes), [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
    }

    #[test]
    fn a_cut_at_any_byte_keeps_the_whole_frames_before_it() {
        let (_dir, bytes) = log_of(&[&[b"one"], &[b"two"], &[b"three"]]);
        let ends: Vec<usize> =
            read(&bytes, 7).unwrap().frames.iter().map(|f| f.at + f.payload.len()).collect();
        for cut in FILE_HEADER..bytes.len() {
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            let contents = read(&bytes[..cut], 7).unwrap();
            assert_eq!(contents.frames.len(), whole, "cut at {cut}");
            assert!(contents.damage.is_empty(), "a torn end is no damage");
        }
    }

    #[test]
    fn a_bad_frame_that_had_been_durable_is_damage_and_reading_goes_on() {
        let (_dir, mut bytes) = log_of(&[&[b"one"], &[b"two"], &[b"three"]]);
        let second = read(&bytes, 7).unwrap().frames[1].at;
        bytes[second] ^= 0x40;
        let contents = read(&bytes, 7).unwrap();
        assert_eq!(payloads(&bytes), [b"one".to_vec(), b"three".to_vec()]);
        assert_eq!(contents.damage, [Damage { at: second - FRAME_HEADER, len: FRAME_HEADER + 3 }]);
    }

    #[test]
    fn a_group_torn_in_its_first_frame_is_dropped_with_its_later_frames() {
        // Both frames of the last group were unsynced; the card kept only the second one.
        let (_dir, mut bytes) = log_of(&[&[b"one"], &[b"two", b"three"]]);
        let second = read(&bytes, 7).unwrap().frames[1].at;
        bytes[second] ^= 1;
        let contents = read(&bytes, 7).unwrap();
        assert_eq!(payloads(&bytes), [b"one".to_vec()]);
        assert!(contents.damage.is_empty());
    }

    #[test]
    fn an_empty_frame_before_a_torn_end_is_read() {
        let (_dir, mut bytes) = log_of(&[&[b"one", b""]]);
        bytes.extend_from_slice(b"torn");
        assert_eq!(payloads(&bytes), [b"one".to_vec(), Vec::new()]);
    }

    #[test]
    fn a_name_beyond_the_numbers_of_files_is_none_of_ours() {
        assert_eq!(number_of("0000000007.wal"), Some(7));
        assert_eq!(number_of("9999999999.wal"), None);
        assert_eq!(number_of("4294967295.wal"), None);
    }

    #[test]
    fn a_frame_of_another_file_is_not_taken_for_ours() {
        let (_dir, bytes) = log_of(&[&[b"one"]]);
        assert_eq!(read(&bytes, 8), Err(BadHeader));
        let mut renamed = bytes.clone();
        renamed[..FILE_HEADER].fill(0);
        assert_eq!(read(&renamed, 8), Err(BadHeader));
        assert_eq!(payloads(&renamed), [b"one".to_vec()], "a lost header alone loses nothing");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = read(&bytes, 7);
        }

        #[test]
        fn a_flipped_bit_never_yields_a_changed_payload(
            at in 0usize..200, bit in 0u8..8,
        ) {
            let (_dir, mut bytes) = log_of(&[&[b"alpha", b"beta"], &[b"gamma"], &[b"delta"]]);
            let good = payloads(&bytes);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if let Ok(contents) = read(&bytes, 7) {
                for frame in contents.frames {
                    proptest::prop_assert!(good.iter().any(|p| p == frame.payload));
                }
            }
        }
    }

    #[test]
    fn any_single_bit_of_rot_is_turned_back() {
        let transaction = |seq| {
            let at = omir_core::instant::Timestamp::from_unix(0, 0);
            let mut payload = Vec::new();
            Transaction { seq, at, ops: vec![Op::Boot { count: seq }] }.encode(&mut payload);
            payload
        };
        let [one, two] = [transaction(100), transaction(101)];
        let (_dir, bytes) = log_of(&[&[&one], &[&two]]);
        for bit in (0..bytes.len() * 8).filter(|bit| !(28 * 8..32 * 8).contains(bit)) {
            let mut rotten = bytes.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            let mended = mend(&mut rotten, 7);
            assert_eq!(mended, [Mended { at: bit / 8, byte: bytes[bit / 8] }], "bit {bit}");
            assert_eq!(rotten, bytes, "bit {bit}");
        }
        // Two bits of one frame, or a torn end, are not mended into something else.
        let mut rotten = bytes.clone();
        rotten[60] ^= 1;
        rotten[62] ^= 1;
        let before = rotten.clone();
        assert_eq!(mend(&mut rotten, 7), []);
        assert_eq!(rotten, before);
        for end in 0..bytes.len() {
            let mut torn = bytes[..end].to_vec();
            assert_eq!(mend(&mut torn, 7), [], "{end}");
        }
    }
}
