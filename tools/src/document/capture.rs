//! A terminal's capture of a `dump` at a robot's serial console (docs/serial.md): prompts, a
//! document between two marks, its checksum.

use std::fmt;

use super::Encoding;

const BEGIN: &[u8] = b"-----BEGIN OMIR-----";
const END: &[u8] = b"-----END OMIR-----";
/// In front of the checksum, on the line after the end.
const SUM: &[u8] = b"CRC-32 ";

/// A capture from which no document can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadCapture {
    /// The last dump has no end.
    NoEnd,
    /// The line with the checksum is missing.
    NoChecksum,
    /// The checksum is another one.
    Changed,
}

impl fmt::Display for BadCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEnd => {
                "the last dump in this capture has no end: it was interrupted, or the capture was"
            }
            Self::NoChecksum => {
                "the line with the checksum is missing after the dump: capture it too"
            }
            Self::Changed => {
                "the cable changed the dump (its CRC-32 is another one): dump it again, or let \
                 `omir pull` bring it, which sees to that"
            }
        })
    }
}

impl std::error::Error for BadCapture {}

/// Returns true if a file that begins like this may be a capture: no document does.
pub fn may_be(start: &[u8]) -> bool {
    // White space alone, as far as one looks, may be either.
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace()).unwrap_or(&b'\n');
    let is_blank = start.is_empty();
    Encoding::sniff(start) == Encoding::Json
        && !is_blank
        && first.is_ascii()
        && !b"{[".contains(first)
}

/// The last whole document in a capture; `None` where none was begun.
///
/// # Errors
/// If it is not whole, or not what was sent.
pub fn document(captured: &[u8]) -> Option<Result<Vec<u8>, BadCapture>> {
    let lines = || captured.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    // A mark has a line of its own. What a memory says has not, in lists and documents.
    let last = |mark: &[u8]| lines().enumerate().filter(|(_, line)| *line == mark).last();
    let (begin, _) = last(BEGIN)?;
    let end = last(END).map(|(end, _)| end).filter(|end| *end > begin);
    let Some(end) = end else {
        return Some(Err(BadCapture::NoEnd));
    };
    let inside: Vec<&[u8]> = lines().skip(begin + 1).take(end - begin - 1).collect();
    let told = lines().nth(end + 1).and_then(|line| line.strip_prefix(SUM)).and_then(|sum| {
        let digits = std::str::from_utf8(sum).ok()?;
        u32::from_str_radix(digits, 16).ok()
    });
    let mut sum = crc32fast::Hasher::new();
    inside.iter().for_each(|line| sum.update(line));
    let Some(told) = told else {
        return Some(Err(BadCapture::NoChecksum));
    };
    if told != sum.finalize() {
        return Some(Err(BadCapture::Changed));
    }
    Some(Ok(inside.join(&b'\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is captured, with these ends of lines.
    fn captured(inside: &str, newline: &str) -> Vec<u8> {
        let mut sum = crc32fast::Hasher::new();
        inside.split('\n').for_each(|line| sum.update(line.as_bytes()));
        let sum = sum.finalize();
        format!(
            "r2> dump\n-----BEGIN OMIR-----\n{inside}\n-----END OMIR-----\nCRC-32 {sum:08x}\nr2> "
        )
        .replace('\n', newline)
        .into_bytes()
    }

    #[test]
    fn a_dump_is_found_whatever_stands_around_it() {
        let inside = "{\"entry\":[\n1\n]}";
        for newline in ["\n", "\r\n", "\r\r\n"] {
            let capture = captured(inside, newline);
            assert!(may_be(&capture));
            assert_eq!(document(&capture), Some(Ok(inside.as_bytes().to_vec())), "{newline:?}");
        }
        // A memory that is listed says what it likes.
        let listed = b"\r\nr2> ls\r\n1.00 MemoryRecord/x -----END OMIR-----\r\n1 of 1\r\nr2> ";
        let capture = [&captured(inside, "\r\n")[..], listed].concat();
        assert_eq!(document(&capture), Some(Ok(inside.as_bytes().to_vec())));
        // The last one counts, also behind one that was interrupted.
        let both = [&captured("[0]", "\n")[..], b"dump\n-----BEGIN OMIR-----\n[1,^C\n"].concat();
        let all = [&both[..], &captured(inside, "\r\n")].concat();
        assert_eq!(document(&all), Some(Ok(inside.as_bytes().to_vec())));
        assert!(matches!(document(&both), Some(Err(BadCapture::NoEnd))));
    }

    #[test]
    fn what_was_changed_or_cut_is_refused() {
        let whole = captured("{\"entry\":[\n\"a memory\"\n]}", "\r\n");
        let wrong = String::from_utf8(whole.clone()).unwrap().replace("a memory", "e memory");
        assert!(matches!(document(wrong.as_bytes()), Some(Err(BadCapture::Changed))));
        let end = whole.windows(6).rposition(|part| part == b"CRC-32").unwrap() + 15;
        for cut in 0..end {
            assert!(!matches!(document(&whole[..cut]), Some(Ok(_))), "{cut}");
        }
        assert!(matches!(document(&whole[..end]), Some(Ok(_))));
    }

    #[test]
    fn a_document_is_no_capture() {
        for document in [&b"{}"[..], b" \n[1]", b"", b"\xa1\x61a\x00", b"\xEF\xBB\xBF{}"] {
            assert!(!may_be(document), "{document:?}");
        }
        assert_eq!(document(b"r2> ls\n"), None);
    }
}
