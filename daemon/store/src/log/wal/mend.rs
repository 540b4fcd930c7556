//! Turns back single bits of a log that rot has turned.

use std::io;

use super::{FILE_HEADER, FRAME_HEADER, FRAME_MAGIC, frame_at, frame_crc, header, path};
use crate::disk::{Disk, Mode};
use crate::recorded::transaction::Transaction;

/// One bit that rot had turned, and that was turned back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mended {
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
pub(crate) fn mend(bytes: &mut [u8], number: u64) -> Vec<Mended> {
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
pub(crate) fn write_mended(disk: &dyn Disk, number: u64, mended: &[Mended]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::super::tests::log_of;
    use super::*;
    use crate::recorded::transaction::Op;

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
