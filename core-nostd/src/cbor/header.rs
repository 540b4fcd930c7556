//! A cursor over CBOR headers: [`crate::cbor_head`] reads one, this knows where it stands.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ciborium_ll::{Header, simple};

use crate::cbor_head::{self, HeadError};
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
        match cbor_head::read(&self.bytes[self.at..]) {
            Ok((header, len)) => {
                self.at += len;
                Ok(header)
            }
            Err(HeadError::Truncated) => Err(self.truncated()),
            Err(HeadError::Malformed) => Err(malformed(self.at, self.bytes[self.at])),
        }
    }

    /// Returns true if a break is next; if so the cursor moves behind it.
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
