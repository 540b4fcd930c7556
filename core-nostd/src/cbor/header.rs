//! A cursor over CBOR headers: `ciborium-ll` knows the layout, this knows where it stands.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ciborium_ll::{Decoder, Error, Header, simple};

use crate::decode::{DecodeError, DecodeErrorKind};

/// Bytes being read, and how far.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// All bytes, read and unread.
    pub(super) fn whole(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn truncated(&self) -> DecodeError {
        DecodeError::new(
            self.bytes.len(),
            DecodeErrorKind::Truncated,
            "the bytes end inside a CBOR item; the rest is missing",
        )
    }

    /// The next header; the cursor moves behind it.
    #[inline]
    pub(super) fn pull(&mut self) -> Result<Header, DecodeError> {
        match usual(&self.bytes[self.at..]) {
            Some((header, len)) => {
                self.at += len;
                Ok(header)
            }
            None => self.pull_any(),
        }
    }

    fn pull_any(&mut self) -> Result<Header, DecodeError> {
        let start = self.at;
        let mut decoder = Decoder::from(&self.bytes[start..]);
        let header = match decoder.pull() {
            Ok(header) => header,
            Err(Error::Io(_)) => return Err(self.truncated()),
            Err(Error::Syntax(_)) => return Err(malformed(start, self.bytes[start])),
        };
        self.at += decoder.offset();
        // RFC 8949 §3.3: a simple value below 32 in two bytes is not well-formed.
        if let Header::Simple(number) = header
            && self.at - start == 2
            && number < 32
        {
            return Err(malformed(start, self.bytes[start]));
        }
        Ok(header)
    }

    /// Whether a break is next; if so the cursor moves behind it.
    pub(super) fn at_break(&mut self) -> bool {
        let found = self.bytes.get(self.at) == Some(&0xFF);
        self.at += usize::from(found);
        found
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        if len > self.remaining() {
            return Err(self.truncated());
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }

    /// The text whose header announced `len`; each segment must be UTF-8 by itself.
    pub(super) fn text(&mut self, len: Option<usize>) -> Result<Cow<'a, str>, DecodeError> {
        if let Some(len) = len {
            return self.segment_text(len).map(Cow::Borrowed);
        }
        let mut text = String::new();
        while !self.at_break() {
            let start = self.at;
            match self.pull()? {
                Header::Text(Some(len)) => text.push_str(self.segment_text(len)?),
                _ => return Err(wrong_segment(start, "text")),
            }
        }
        Ok(Cow::Owned(text))
    }

    fn segment_text(&mut self, len: usize) -> Result<&'a str, DecodeError> {
        let start = self.at;
        core::str::from_utf8(self.take(len)?).map_err(|error| {
            DecodeError::new(
                start + error.valid_up_to(),
                DecodeErrorKind::Syntax,
                "text that is not UTF-8; encode it as UTF-8",
            )
        })
    }

    /// The byte string whose header announced `len`.
    pub(super) fn byte_string(&mut self, len: Option<usize>) -> Result<Cow<'a, [u8]>, DecodeError> {
        if let Some(len) = len {
            return self.take(len).map(Cow::Borrowed);
        }
        let mut bytes = Vec::new();
        while !self.at_break() {
            let start = self.at;
            match self.pull()? {
                Header::Bytes(Some(len)) => bytes.extend_from_slice(self.take(len)?),
                _ => return Err(wrong_segment(start, "byte string")),
            }
        }
        Ok(Cow::Owned(bytes))
    }

    /// Moves over a string of the given length without looking at its contents.
    pub(super) fn skip_string(
        &mut self,
        len: Option<usize>,
        text: bool,
    ) -> Result<(), DecodeError> {
        if let Some(len) = len {
            return self.take(len).map(drop);
        }
        while !self.at_break() {
            let start = self.at;
            match (self.pull()?, text) {
                (Header::Text(Some(len)), true) | (Header::Bytes(Some(len)), false) => {
                    self.take(len)?;
                }
                (_, true) => return Err(wrong_segment(start, "text")),
                (_, false) => return Err(wrong_segment(start, "byte string")),
            }
        }
        Ok(())
    }
}

/// The header that `bytes` begin with and how long it is, if it is one of those that nearly all are:
/// a definite length below 2³², an integer below that, a truth value, null, or a float of 64 bits. A
/// quarter of the time to make an index anew went into reading them the general way.
#[inline]
fn usual(bytes: &[u8]) -> Option<(Header, usize)> {
    let (&first, rest) = bytes.split_first()?;
    let (number, len) = match first & 0x1F {
        number @ 0..=23 => (u32::from(number), 1),
        24 => (u32::from(*rest.first()?), 2),
        25 => (u32::from(u16::from_be_bytes(*rest.first_chunk()?)), 3),
        26 => (u32::from_be_bytes(*rest.first_chunk()?), 5),
        27 if first == 0xFB => {
            return Some((Header::Float(f64::from_be_bytes(*rest.first_chunk()?)), 9));
        }
        _ => return None,
    };
    let size = usize::try_from(number).ok();
    let header = match first >> 5 {
        0 => Header::Positive(number.into()),
        1 => Header::Negative(number.into()),
        2 => Header::Bytes(Some(size?)),
        3 => Header::Text(Some(size?)),
        4 => Header::Array(Some(size?)),
        5 => Header::Map(Some(size?)),
        6 => Header::Tag(number.into()),
        _ if len == 1 => Header::Simple(first & 0x1F),
        _ => return None,
    };
    Some((header, len))
}

fn malformed(offset: usize, byte: u8) -> DecodeError {
    DecodeError::new(
        offset,
        DecodeErrorKind::Syntax,
        format!("the byte {byte:#04x} does not begin a well-formed CBOR item"),
    )
}

fn wrong_segment(offset: usize, kind: &str) -> DecodeError {
    DecodeError::new(
        offset,
        DecodeErrorKind::Syntax,
        format!("a {kind} of indefinite length may hold only {kind} segments of definite length"),
    )
}

/// A break where an item should be.
pub(super) fn stray_break(offset: usize) -> DecodeError {
    DecodeError::new(offset, DecodeErrorKind::Syntax, "a break outside an indefinite-length item")
}

/// The refusal of an item that is no JSON value.
pub(super) fn unsupported(offset: usize, header: Header) -> DecodeError {
    let message = match header {
        Header::Bytes(_) => "a byte string; OMIR holds text, so encode bytes as base64".to_string(),
        Header::Tag(tag) => {
            format!("the tag {tag}; only bignums and decimal fractions are understood")
        }
        Header::Float(_) => "NaN or an infinity; JSON has only finite numbers".to_string(),
        Header::Simple(simple::UNDEFINED) => {
            "undefined; use null or leave the member out".to_string()
        }
        Header::Simple(number) => {
            format!("the simple value {number}; only false, true and null are understood")
        }
        _ => "an item with no JSON form".to_string(),
    };
    DecodeError::new(offset, DecodeErrorKind::Unsupported, message)
}

/// The refusal of an object key that is not text.
pub(super) fn not_a_key(offset: usize) -> DecodeError {
    DecodeError::new(
        offset,
        DecodeErrorKind::Unsupported,
        "a map key that is not text; object keys must be text strings",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_usual_headers_are_what_they_are_read_to_the_general_way(
            first: u8,
            rest in prop::collection::vec(any::<u8>(), 0..10),
        ) {
            let bytes: Vec<u8> = [first].into_iter().chain(rest).collect();
            if let Some((header, len)) = usual(&bytes) {
                let mut cursor = Cursor::new(&bytes);
                // As text: NaN is no equal of itself.
                let general = cursor.pull_any().map(|header| format!("{header:?}"));
                prop_assert_eq!(general.ok(), Some(format!("{header:?}")));
                prop_assert_eq!(cursor.at, len);
            } else {
                let info = first & 0x1F;
                prop_assert!(first >= 0xE0 || info >= 27 || bytes.len() < 6);
            }
        }
    }
}
