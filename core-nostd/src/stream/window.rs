//! The part of a document that is in memory while it is read.

use alloc::format;
use alloc::vec::Vec;

use super::{Source, StreamError};
use crate::decode::{DecodeError, DecodeErrorKind, Limits};

/// The part of the input that is looked at.
#[derive(Debug)]
pub struct Window<S> {
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

    /// Reads on until at least twice as much is there: a caller that starts over each time a value turns out to be
    /// longer then looks at no byte more than about twice, however few come at once.
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

    /// Returns true if `mark` comes next.
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
