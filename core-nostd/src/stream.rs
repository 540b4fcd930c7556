//! Documents of any size, one entry at a time.
//!
//! A Bundle is a small envelope around a list that may be larger than memory. [`crate::json::Events`]
//! and [`crate::cbor::Events`] read such a document from a [`Source`] and hold no more than one value
//! of it at a time, and the names of its outermost members. They accept and refuse what `from_slice` of their encoding does; a fault is told with its
//! offset and JSON Pointer in the whole document. Of several faults, theirs is the first one in the
//! document, whatever its kind.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::decode::{DecodeError, DecodeErrorKind, Limits};
use crate::value::Value;

/// The member whose items come one by one.
pub(crate) const ENTRY: &str = "entry";

/// How many bytes are asked for at once, unless a small machine wants less.
pub const CHUNK: usize = 64 * 1024;

/// A source of bytes.
pub trait Source {
    /// Why no more can be had.
    type Error;

    /// Puts bytes into the front of `buffer`, which is not empty, and says how many; 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error>;
}

impl Source for &[u8] {
    type Error = core::convert::Infallible;

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
        let (taken, left) = self.split_at(self.len().min(buffer.len()));
        buffer[..taken.len()].copy_from_slice(taken);
        *self = left;
        Ok(taken.len())
    }
}

/// The next part of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A member of the object the document is.
    Member(String, Value),
    /// The member `entry` is an array; its items follow, and then perhaps other members.
    Entries,
    /// The next item of `entry`.
    Entry(Value),
    /// The document is no object, but this.
    Document(Value),
}

/// Why a document could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError<E> {
    /// The bytes could not be had.
    Source(E),
    /// The bytes are refused.
    Decode(DecodeError),
}

impl<E> From<DecodeError> for StreamError<E> {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl<E> StreamError<E> {
    /// The same error, with what is done to a refusal.
    pub(crate) fn map(self, change: impl FnOnce(DecodeError) -> DecodeError) -> Self {
        match self {
            Self::Source(error) => Self::Source(error),
            Self::Decode(error) => Self::Decode(change(error)),
        }
    }
}

impl<E: fmt::Display> fmt::Display for StreamError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => error.fmt(f),
            Self::Decode(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for StreamError<E> {}

/// Tokens that may come next.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing has been read.
    Start,
    /// A member of the document or its end, with so many members behind.
    Members(usize),
    /// An item of `entry` or its end, with so many items behind and members before it.
    Items {
        /// Items behind.
        items: usize,
        /// Members behind, `entry` included.
        members: usize,
    },
    /// Nothing: the document ended or was refused.
    Done,
}

/// The names of the document's own members.
#[derive(Debug, Default)]
pub(crate) struct MemberNames(BTreeSet<String>);

impl MemberNames {
    /// Refuses the name at `offset` if it was seen before; `container` is what holds it.
    pub(crate) fn see(
        &mut self,
        name: &str,
        offset: usize,
        container: &str,
    ) -> Result<(), DecodeError> {
        if self.0.insert(name.into()) {
            return Ok(());
        }
        Err(DecodeError::new(
            offset,
            DecodeErrorKind::DuplicateKey,
            format!("the key {name:?} occurs twice in one {container}; keep one"),
        ))
    }
}

/// The part of the input that is looked at.
#[derive(Debug)]
pub(crate) struct Window<S> {
    source: S,
    /// Bytes that were read and are not done with lie at `at..filled`.
    bytes: Vec<u8>,
    at: usize,
    filled: usize,
    /// Bytes of the document before `at`.
    offset: usize,
    chunk: usize,
    max_bytes: usize,
    ended: bool,
}

impl<S: Source> Window<S> {
    pub(crate) fn new(source: S, limits: &Limits, chunk: usize) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            at: 0,
            filled: 0,
            offset: 0,
            chunk: chunk.max(1),
            max_bytes: limits.max_bytes,
            ended: false,
        }
    }

    /// Bytes of the document before what is looked at.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the bytes from the current place on.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..self.filled]
    }

    /// Moves over `len` bytes of what is there.
    pub(crate) fn advance(&mut self, len: usize) {
        let len = len.min(self.filled - self.at);
        self.at += len;
        self.offset = self.offset.saturating_add(len);
    }

    /// Reads on until at least twice as much is there: who starts over each time a value turns out to
    /// be longer then looks at no byte more than about twice, however few come at once.
    pub(crate) fn grow(&mut self) -> Result<(), StreamError<S::Error>> {
        self.bytes.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        let wanted = self.chunk.max(self.filled.saturating_mul(2));
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        while self.filled < wanted && !self.ended {
            let room = &mut self.bytes[self.filled..wanted];
            let read = self.source.read(room).map_err(StreamError::Source)?.min(room.len());
            self.ended = read == 0;
            self.filled += read;
        }
        if self.offset.saturating_add(self.filled) > self.max_bytes {
            return Err(DecodeError::new(
                self.max_bytes,
                DecodeErrorKind::TooLarge,
                format!("more than {} bytes; send less at a time", self.max_bytes),
            )
            .into());
        }
        Ok(())
    }

    /// The next byte; `None` at the end.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, StreamError<S::Error>> {
        if self.rest().is_empty() && !self.ended {
            self.grow()?;
        }
        Ok(self.rest().first().copied())
    }

    /// Whether what comes next begins with `mark`.
    pub(crate) fn starts_with(&mut self, mark: &[u8]) -> Result<bool, StreamError<S::Error>> {
        while self.rest().len() < mark.len() && !self.ended {
            self.grow()?;
        }
        Ok(self.rest().starts_with(mark))
    }

    /// Returns what `parse` finds at the front, and moves behind it. It is given what is there and whether that
    /// is all, and asks for more by saying [`DecodeErrorKind::Truncated`].
    pub(crate) fn parse<T>(
        &mut self,
        mut parse: impl FnMut(&[u8], bool) -> Result<(T, usize), DecodeError>,
    ) -> Result<T, StreamError<S::Error>> {
        loop {
            match parse(self.rest(), self.ended) {
                Ok((found, used)) => {
                    self.advance(used);
                    return Ok(found);
                }
                Err(error) if error.kind == DecodeErrorKind::Truncated && !self.ended => {
                    self.grow()?;
                }
                Err(mut error) => {
                    error.offset = error.offset.saturating_add(self.offset);
                    return Err(error.into());
                }
            }
        }
    }
}
