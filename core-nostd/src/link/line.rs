//! Frames as bytes on the line, and back, byte by byte.
//!
//! ```text
//! 0x00   escape(COBS(head[7] payload[0..=PAYLOAD] CRC-32[4]))   0x00
//! ```
//!
//! COBS (Cheshire & Baker, "Consistent overhead byte stuffing", *IEEE/ACM ToN* 7, 1999) leaves 0x00 free to
//! mean "here a frame begins or ends": after any damage the next frame is found again. The escape after
//! it keeps XON and XOFF out of what is sent, so that a device which takes them for flow control
//! neither stops for them nor swallows them.

use super::frame::{Frame, HEAD};
use crate::crc::{Crc32, RESIDUE};

/// Before and after each frame.
pub const DELIMITER: u8 = 0;
/// The byte that continues a transmission, for devices with flow control in the line.
pub const XON: u8 = 0x11;
/// The byte that stops one.
pub const XOFF: u8 = 0x13;
const ESCAPE: u8 = 0x7d;
const FLIP: u8 = 0x20;

const CHECKSUM: usize = 4;
/// The longest run of bytes under one code byte of COBS.
const LONGEST_RUN: usize = 254;

/// Most bytes a frame with this much payload takes on the line, were every one of them escaped.
pub const fn most_bytes(payload: usize) -> usize {
    let frame = HEAD + payload + CHECKSUM;
    2 + 2 * (frame + frame / LONGEST_RUN + 1)
}

/// Writes `head` and `payload` as a frame.
pub(super) fn encode(head: &[u8; HEAD], payload: [&[u8]; 2], sink: &mut impl FnMut(u8)) {
    let mut crc = Crc32::new();
    for part in [&head[..], payload[0], payload[1]] {
        part.iter().for_each(|&byte| crc.push(byte));
    }
    let crc = crc.finish().to_le_bytes();
    let bytes = || head.iter().chain(payload[0]).chain(payload[1]).chain(&crc).copied();

    let mut escaped = |byte: u8| {
        if matches!(byte, XON | XOFF | ESCAPE) {
            sink(ESCAPE);
            sink(byte ^ FLIP);
        } else {
            sink(byte);
        }
    };
    escaped(DELIMITER);
    let mut rest = bytes();
    loop {
        // A run goes to the next zero, which its code byte stands for, or to the longest there is.
        let run = rest.clone().take(LONGEST_RUN).take_while(|&byte| byte != 0).count();
        escaped(run as u8 + 1);
        rest.by_ref().take(run).for_each(&mut escaped);
        if run < LONGEST_RUN {
            if rest.next().is_none() {
                break;
            }
        } else if rest.clone().next().is_none() {
            break;
        }
    }
    escaped(DELIMITER);
}

/// Bytes between two delimiters that are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// More payload than there is room for.
    TooLong,
    /// A code byte of COBS that points beyond the end, or a zero that came of an escape.
    Stuffing,
    /// Its CRC is another one.
    Checksum,
    /// The checksum is right, and what it covers is no frame we know: its kind, length or values.
    Content,
}

/// Finds frames of up to `PAYLOAD` bytes of payload in a stream of bytes.
#[derive(Debug)]
pub struct Deframer<const PAYLOAD: usize> {
    head: [u8; HEAD],
    payload: [u8; PAYLOAD],
    state: State,
}

/// Position within a frame.
#[derive(Debug)]
struct State {
    /// Bytes of the frame so far, its checksum included.
    len: usize,
    crc: Crc32,
    /// After an escape.
    escaped: bool,
    /// Bytes that are left of the run of COBS.
    run: u8,
    /// A zero follows, unless the frame ends here.
    zero: bool,
    /// Nothing came since the delimiter.
    empty: bool,
    fault: Option<Fault>,
}

impl State {
    const NEW: State = State {
        len: 0,
        crc: Crc32::new(),
        escaped: false,
        run: 0,
        zero: false,
        empty: true,
        fault: None,
    };
}

impl<const PAYLOAD: usize> Default for Deframer<PAYLOAD> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PAYLOAD: usize> Deframer<PAYLOAD> {
    /// Before the first byte.
    pub const fn new() -> Self {
        Deframer { head: [0; HEAD], payload: [0; PAYLOAD], state: State::NEW }
    }

    /// Takes the next byte of the line; gives a frame, or why it is none, when one ends.
    pub fn push(&mut self, byte: u8) -> Option<Result<Frame<'_>, Fault>> {
        match byte {
            XON | XOFF => None,
            DELIMITER => self.end(),
            ESCAPE if !self.state.escaped => {
                self.state.escaped = true;
                self.state.empty = false;
                None
            }
            _ => {
                let byte = if self.state.escaped { byte ^ FLIP } else { byte };
                self.state.escaped = false;
                self.state.empty = false;
                if self.state.fault.is_none() {
                    self.unstuff(byte);
                }
                None
            }
        }
    }

    fn unstuff(&mut self, byte: u8) {
        if byte == 0 {
            self.state.fault = Some(Fault::Stuffing);
        } else if self.state.run > 0 {
            self.state.run -= 1;
            self.store(byte);
        } else {
            if self.state.zero {
                self.store(0);
            }
            self.state.run = byte - 1;
            self.state.zero = usize::from(byte) <= LONGEST_RUN;
        }
    }

    fn store(&mut self, byte: u8) {
        let at = self.state.len;
        if let Some(place) = self.head.get_mut(at) {
            *place = byte;
        } else if let Some(place) = self.payload.get_mut(at - HEAD) {
            *place = byte;
        } else if at >= HEAD + PAYLOAD + CHECKSUM {
            self.state.fault = Some(Fault::TooLong);
            return;
        }
        // Bytes beyond the payload can only be the checksum, and the residue covers those.
        self.state.len += 1;
        self.state.crc.push(byte);
    }

    fn end(&mut self) -> Option<Result<Frame<'_>, Fault>> {
        let state = core::mem::replace(&mut self.state, State::NEW);
        if state.empty {
            return None;
        }
        if let Some(fault) = state.fault {
            return Some(Err(fault));
        }
        if state.run > 0 || state.escaped {
            return Some(Err(Fault::Stuffing));
        }
        if state.len < HEAD + CHECKSUM || state.crc.finish() != RESIDUE {
            return Some(Err(Fault::Checksum));
        }
        let payload = &self.payload[..state.len - HEAD - CHECKSUM];
        Some(Frame::parse(&self.head, payload).ok_or(Fault::Content))
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Body;
    use super::*;
    use proptest::prelude::*;

    fn written(frame: &Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.encode(&mut |byte| bytes.push(byte));
        bytes
    }

    /// Result of `bytes`: for each frame its bytes again, for each that is none, why.
    fn read<const PAYLOAD: usize>(bytes: &[u8]) -> Vec<Result<Vec<u8>, Fault>> {
        let mut deframer = Deframer::<PAYLOAD>::new();
        let mut all = Vec::new();
        for &byte in bytes {
            if let Some(result) = deframer.push(byte) {
                all.push(result.map(|frame| written(&frame)));
            }
        }
        all
    }

    fn data(bytes: &[u8]) -> Frame<'_> {
        Frame {
            from_responder: false,
            session: 0x0403_0201,
            seq: 0,
            body: Body::Data { last: true, bytes },
        }
    }

    #[test]
    fn a_frame_by_hand() {
        let frame = Frame { from_responder: false, session: 0x1100_0201, seq: 0, body: Body::Ping };
        // Head 06 01 02 00 11 00 00, CRC-32 over it; each zero is the code byte of the next run.
        let crc = crc32fast::hash(&[6, 1, 2, 0, 0x11, 0, 0]).to_le_bytes();
        assert!(crc.iter().all(|byte| ![0, 0x11, 0x13, 0x7d].contains(byte)));
        let mut expected = vec![0, 4, 6, 1, 2, 2, 0x7d, 0x31, 1, 5];
        expected.extend(crc);
        expected.push(0);
        assert_eq!(written(&frame), expected);
    }

    #[test]
    fn runs_of_254_need_no_zero_after_them() {
        let mut full = 0;
        for n in 230..=260 {
            let bytes = vec![1; n];
            let line = written(&data(&bytes));
            assert_eq!(read::<300>(&line), [Ok(line.clone())], "{n} bytes");
            // One that closes a full run with a code byte of its own means the same (its zero is dropped).
            let stuffed = &line[1..line.len() - 1];
            let last_run = stuffed.len().checked_sub(255).map(|at| stuffed[at]);
            if last_run == Some(0xff) && !line.contains(&ESCAPE) {
                let mut longer = line.clone();
                longer.insert(line.len() - 1, 1);
                assert_eq!(read::<300>(&longer), [Ok(line)], "{n} bytes");
                full += 1;
            }
        }
        assert!(full > 0);
    }

    #[test]
    fn what_is_no_frame_says_why() {
        let line = written(&data(&[7; 100]));
        assert_eq!(read::<100>(&line), [Err(Fault::TooLong)]);
        assert_eq!(read::<101>(&line), [Ok(line.clone())]);
        assert_eq!(read::<101>(&[0, 9, 1, 0]), [Err(Fault::Stuffing)]);
        assert_eq!(read::<101>(&[0, 9, 1, ESCAPE, 0]), [Err(Fault::Stuffing)]);
        assert_eq!(read::<101>(&[0, 3, 1, 1, 0]), [Err(Fault::Checksum)]);
        assert_eq!(read::<101>(&[0, 0, 0]), []);
        let mut flipped = line.clone();
        flipped[12] ^= 1;
        assert_eq!(read::<101>(&flipped), [Err(Fault::Checksum)]);
        // An unknown kind, with a checksum that is right.
        let mut bytes = Vec::new();
        encode(&[0x3f, 1, 0, 0, 0, 0, 0], [&[], &[]], &mut |byte| bytes.push(byte));
        assert_eq!(read::<101>(&bytes), [Err(Fault::Content)]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_whatever_came_before(
            before: Vec<u8>,
            bytes in prop::collection::vec(prop_oneof![Just(0), Just(ESCAPE), Just(XON), any::<u8>()], 0..600),
        ) {
            let line = written(&data(&bytes));
            prop_assert!(line.len() <= most_bytes(bytes.len() + 1));
            prop_assert!(line[1..line.len() - 1].iter().all(|b| ![0, XON, XOFF].contains(b)));
            // The reference implementation of COBS agrees.
            let mut unescaped = Vec::new();
            let mut rest = line[1..line.len() - 1].iter();
            while let Some(&byte) = rest.next() {
                unescaped.push(if byte == ESCAPE { rest.next().unwrap() ^ FLIP } else { byte });
            }
            let mut theirs = unescaped.clone();
            let decoded = cobs::decode_in_place(&mut theirs).unwrap();
            theirs.truncate(decoded);
            prop_assert_eq!(&theirs[8..theirs.len() - 4], &bytes[..]);
            let mut again = vec![0; cobs::max_encoding_length(theirs.len())];
            let encoded = cobs::encode(&theirs, &mut again);
            prop_assert_eq!(&again[..encoded], &unescaped[..]);

            // Whatever stood on the line, and with flow control in between.
            let mut all = before;
            for &byte in &line {
                all.extend([byte, XOFF, XON]);
            }
            prop_assert_eq!(read::<601>(&all).pop(), Some(Ok(line)));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            read::<64>(&bytes);
        }
    }
}
