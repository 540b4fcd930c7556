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

mod mend;

use std::io;

use crate::disk::{self, Disk, Mode};
use crate::recorded::transaction::MAX_SEQ;

pub(crate) use self::mend::{mend, write_mended};
pub use crate::names::{LOGS as DIR, log_number as number_of, log_path as path};

pub(crate) const FILE_MAGIC: &[u8; 8] = b"OMIRWAL1";
pub(crate) const FRAME_MAGIC: &[u8; 4] = b"OMF1";
/// Bytes before the first frame.
pub const FILE_HEADER: usize = 32;
/// Bytes before a frame's payload.
pub const FRAME_HEADER: usize = 16;

pub(crate) fn frame_crc(number: u64, len: u32, synced: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(&len.to_le_bytes());
    hasher.update(&synced.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// Puts an empty damaged file in the place of a log that is gone, so that all later starts miss it, whatever is
/// sealed in between. Durable on return; returns its path.
pub(crate) fn stand_in(disk: &dyn Disk, number: u64) -> io::Result<String> {
    let stand_in = format!("{}.damaged", path(number));
    // A file that somebody put there may be the log itself.
    if !disk.list(DIR)?.iter().any(|name| stand_in == format!("{DIR}/{name}")) {
        disk.open(&stand_in, Mode::Create)?;
    }
    disk.sync_dir(DIR)?;
    Ok(stand_in)
}

/// A good frame found by [`read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Position of the payload in the file.
    pub at: usize,
    /// The payload, checked against its CRC.
    pub payload: &'a [u8],
}

/// Bytes of a log file that were acknowledged and cannot be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// First of the unreadable bytes.
    pub at: usize,
    /// How many there are, to the next good frame or to the end of what was durable.
    pub len: usize,
}

/// The contents of a log file.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents<'a> {
    /// The number in the header.
    pub number: u64,
    /// The first transaction that was meant for this file.
    pub first_seq: u64,
    /// The good frames, in order.
    pub frames: Vec<Frame<'a>>,
    /// End of the good part; the bytes behind it were never acknowledged.
    pub end: usize,
    /// Acknowledged bytes that are lost.
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
pub(crate) fn read_known(
    bytes: &[u8],
    number: u64,
    durable: usize,
) -> Result<Contents<'_>, BadHeader> {
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

/// Reads the bytes of log file `number` from a disk.
pub(crate) fn load(disk: &dyn Disk, number: u64) -> io::Result<Vec<u8>> {
    disk::read(disk, &path(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;
    use crate::log::Log;

    pub(super) fn log_of(groups: &[&[&[u8]]]) -> (tempfile::TempDir, Vec<u8>) {
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
}
