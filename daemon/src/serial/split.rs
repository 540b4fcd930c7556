//! Text and frames on one line: which byte is whose (docs/serial-protocol.md, section 1).

use omir_core::link::{DELIMITER, MOST_PAYLOAD, most_bytes};

/// A frame that was begun is over when nothing came for so long, microseconds.
const QUIET: u64 = 200_000;

/// A 0x00 that follows a CR of the text so soon belongs to it, microseconds: what is ended by CR NUL (RFC 854, and what
/// passes servers for terminals) begins no frame. A hello that is taken for that is said again.
const AT_ONCE: u64 = 20_000;
const CR: u8 = 0x0d;

/// The receiver of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// The person at the console.
    Text,
    /// The link.
    Frame,
}

/// Position in the stream, while no session is open.
#[derive(Debug, Default)]
pub struct Splitter {
    /// Bytes of the frame that was begun, and when the last of them came.
    frame: Option<(usize, u64)>,
    /// The time of the last byte, if that was a CR and text.
    cr: Option<u64>,
}

impl Splitter {
    /// The owner of the next byte.
    pub fn take(&mut self, byte: u8, now: u64) -> For {
        let begun = self.frame.filter(|(_, last)| now.saturating_sub(*last) < QUIET);
        let cr = self.cr.take().filter(|at| now.saturating_sub(*at) < AT_ONCE);
        self.frame = match (begun, byte) {
            (None, DELIMITER) if cr.is_some() => {
                self.frame = None;
                return For::Text;
            }
            (None, DELIMITER) => Some((0, now)),
            (None, _) => {
                self.frame = None;
                self.cr = (byte == CR).then_some(now);
                return For::Text;
            }
            (Some((0, _)), DELIMITER) => Some((0, now)),
            (Some(_), DELIMITER) => None,
            (Some((bytes, _)), _) if bytes >= most_bytes(MOST_PAYLOAD) => None,
            (Some((bytes, _)), _) => Some((bytes + 1, now)),
        };
        For::Frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[(u8, u64)]) -> String {
        let mut splitter = Splitter::default();
        let is_text = |&&(byte, at): &&(u8, u64)| splitter.take(byte, at) == For::Text;
        bytes.iter().filter(is_text).map(|(byte, _)| char::from(*byte)).collect()
    }

    fn at_once(bytes: &[u8]) -> String {
        text(&bytes.iter().map(|byte| (*byte, 5)).collect::<Vec<_>>())
    }

    #[test]
    fn text_lies_outside_of_pairs_of_zeros() {
        assert_eq!(at_once(b"ls\r"), "ls\r");
        assert_eq!(at_once(b"l\0frame\0s\0\0two\0\r"), "ls\r");
        assert_eq!(at_once(b"\0\0\0frame\0ls"), "ls");
        // CR NUL ends a line; a program that comes later begins a frame.
        assert_eq!(at_once(b"ls\r\0dump\r\0"), "ls\r\0dump\r\0");
        assert_eq!(text(&[(b'\r', 5), (0, 30_000), (b'x', 30_000), (0, 30_000)]), "\r");
        // The zero that ended a frame was lost: its silence ends it.
        let late: Vec<(u8, u64)> = b"ls\r".iter().map(|byte| (*byte, 300_000)).collect();
        let lost: Vec<(u8, u64)> = b"\0frame".iter().map(|byte| (*byte, 5)).collect();
        assert_eq!(text(&[lost.clone(), late].concat()), "ls\r");
        // Or its length.
        let long = vec![(b'x', 5); 3_000];
        assert!(text(&[lost, long].concat()).len() > 500);
    }
}
