//! Documents of any size, one entry at a time.
//!
//! A Bundle is a small envelope around a list that may be larger than memory. [`crate::json::Events`]
//! and [`crate::cbor::Events`] read such a document from a [`Source`] and hold no more than one value
//! of it at a time, and the names of its outermost members. They accept and refuse what `from_slice` of
//! their encoding does. An error names its offset and JSON Pointer in the whole document. Of several
//! faults it is the first one in the document, whatever its kind.

mod tokens;
mod window;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits};
use crate::value::Value;
pub(crate) use tokens::Tokens;
pub(crate) use window::Window;

/// The member whose items come one by one.
pub(crate) const ENTRY: &str = "entry";

/// Bytes that are asked for at once, unless a small machine wants less.
pub const CHUNK: usize = 64 * 1024;

/// A source of bytes.
pub trait Source {
    /// The failure of a read.
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

/// A document that could not be read to its end.
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

/// Reads a document part by part: [`crate::json::Events`] and [`crate::cbor::Events`].
#[derive(Debug)]
pub struct Events<T> {
    tokens: T,
    names: BTreeSet<String>,
    state: State,
}

/// The error of a reader with these tokens.
type Fault<T> = StreamError<<<T as Tokens>::Source as Source>::Error>;

impl<T: Tokens> Events<T> {
    /// Reads from the start of `source`.
    pub fn new(source: T::Source, limits: &Limits) -> Self {
        Self::with_chunk(source, limits, CHUNK)
    }

    /// As [`Events::new`], asking for `chunk` bytes at once. The longest value may take twice its size.
    pub fn with_chunk(source: T::Source, limits: &Limits, chunk: usize) -> Self {
        let window = Window::new(source, limits, chunk);
        let tokens = T::new(window, Budget::new(limits));
        Self { tokens, names: BTreeSet::new(), state: State::Start }
    }

    /// Returns the next part of the document; `None` behind its end, and after an error.
    ///
    /// # Errors
    /// The document is refused, as by `from_slice` of its encoding, or the source failed.
    #[expect(
        clippy::should_implement_trait,
        reason = "a result of an option reads better with `?`"
    )]
    pub fn next(&mut self) -> Result<Option<Event>, Fault<T>> {
        let found = match self.state {
            State::Start => self.start(),
            State::Members(seen) => self.member(seen),
            State::Items { items, members } => self.item(items, members),
            State::Done => Ok(None),
        };
        if !matches!(found, Ok(Some(_))) {
            self.state = State::Done;
        }
        found.map_err(|error| error.map(DecodeError::finished))
    }

    /// Returns the number of bytes that were read and taken apart.
    pub fn offset(&self) -> usize {
        self.tokens.offset()
    }

    fn start(&mut self) -> Result<Option<Event>, Fault<T>> {
        if self.tokens.opens_document()? {
            return self.member(0);
        }
        let document = self.tokens.value(0)?;
        self.tokens.end()?;
        self.state = State::Done;
        Ok(Some(Event::Document(document)))
    }

    fn member(&mut self, seen: usize) -> Result<Option<Event>, Fault<T>> {
        let Some((name, offset)) = self.tokens.name(seen)? else {
            self.tokens.end()?;
            return Ok(None);
        };
        if !self.names.insert(name.clone()) {
            let container = T::OBJECT;
            let message = format!("the key {name:?} occurs twice in one {container}; keep one");
            return Err(DecodeError::new(offset, DecodeErrorKind::DuplicateKey, message).into());
        }
        self.tokens.separator()?;
        let inside = |error: Fault<T>| error.map(|refusal| refusal.inside(&name));
        if name == ENTRY && self.tokens.opens_entries().map_err(inside)? {
            self.state = State::Items { items: 0, members: seen + 1 };
            return Ok(Some(Event::Entries));
        }
        let value = self.tokens.value(1).map_err(inside)?;
        self.state = State::Members(seen + 1);
        Ok(Some(Event::Member(name, value)))
    }

    fn item(&mut self, items: usize, members: usize) -> Result<Option<Event>, Fault<T>> {
        if !self.tokens.has_item(items)? {
            return self.member(members);
        }
        let item = self
            .tokens
            .value(2)
            .map_err(|error| error.map(|refusal| refusal.inside_index(items).inside(ENTRY)))?;
        self.state = State::Items { items: items + 1, members };
        Ok(Some(Event::Entry(item)))
    }
}

/// The tokens that may come next.
#[derive(Debug)]
enum State {
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
