//! CBOR documents that do not fit into memory: see [`crate::stream`].
//!
//! Only the headers of the document and of its `entry` are looked at here; everything inside is the
//! business of the reader of whole items.

use alloc::string::String;

use ciborium_ll::Header;

use super::header::Cursor;
use super::{read, tag};
use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits};
use crate::stream::{CHUNK, ENTRY, Event, MemberNames, Source, State, StreamError, Window};
use crate::value::Value;

/// The end of what says no length.
const BREAK: u8 = 0xFF;

/// Reads a CBOR document part by part.
#[derive(Debug)]
pub struct Events<S> {
    window: Window<S>,
    budget: Budget,
    names: MemberNames,
    state: State,
    /// How many members the document says it has.
    members: Option<usize>,
    /// How many items `entry` says it has.
    items: Option<usize>,
}

impl<S: Source> Events<S> {
    /// Reads from the start of `source`.
    pub fn new(source: S, limits: &Limits) -> Self {
        Self::with_chunk(source, limits, CHUNK)
    }

    /// As [`Events::new`], asking for `chunk` bytes at once. The longest value may take twice its size.
    pub fn with_chunk(source: S, limits: &Limits, chunk: usize) -> Self {
        Self {
            window: Window::new(source, limits, chunk),
            budget: Budget::new(limits),
            names: MemberNames::default(),
            state: State::Start,
            members: None,
            items: None,
        }
    }

    /// The next part of the document; `None` behind its end, and after an error.
    ///
    /// # Errors
    /// What [`super::from_slice`] refuses, and what the source says.
    #[expect(
        clippy::should_implement_trait,
        reason = "a result of an option reads better with `?`"
    )]
    pub fn next(&mut self) -> Result<Option<Event>, StreamError<S::Error>> {
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

    /// How many bytes are behind.
    pub fn offset(&self) -> usize {
        self.window.offset()
    }

    fn start(&mut self) -> Result<Option<Event>, StreamError<S::Error>> {
        let (mut header, mut len) = self.header()?;
        if header == Header::Tag(tag::SELF_DESCRIBED) {
            self.window.advance(len);
            (header, len) = self.header()?;
        }
        if let Header::Map(members) = header {
            self.open(len, 1)?;
            self.members = members;
            return self.member(0);
        }
        let document = self.value(0)?;
        self.end()?;
        self.state = State::Done;
        Ok(Some(Event::Document(document)))
    }

    fn member(&mut self, seen: usize) -> Result<Option<Event>, StreamError<S::Error>> {
        if !self.more(self.members, seen)? {
            self.end()?;
            return Ok(None);
        }
        let offset = self.window.offset();
        let name = self.name()?;
        self.names.see(&name, offset, "map")?;
        let inside = |error: StreamError<_>| error.map(|refusal| refusal.inside(&name));
        if name == ENTRY
            && let (Header::Array(items), len) = self.header().map_err(inside)?
        {
            self.open(len, 2).map_err(inside)?;
            self.items = items;
            self.state = State::Items { items: 0, members: seen + 1 };
            return Ok(Some(Event::Entries));
        }
        let value = self.value(1).map_err(inside)?;
        self.state = State::Members(seen + 1);
        Ok(Some(Event::Member(name, value)))
    }

    fn item(
        &mut self,
        items: usize,
        members: usize,
    ) -> Result<Option<Event>, StreamError<S::Error>> {
        let inside =
            |error: StreamError<_>| error.map(|refusal| refusal.inside_index(items).inside(ENTRY));
        if !self.more(self.items, items).map_err(inside)? {
            return self.member(members);
        }
        let item = self.value(2).map_err(inside)?;
        self.state = State::Items { items: items + 1, members };
        Ok(Some(Event::Entry(item)))
    }

    /// Whether a container of `len` elements, `seen` of them behind, holds another; moves over a break.
    fn more(&mut self, len: Option<usize>, seen: usize) -> Result<bool, StreamError<S::Error>> {
        if let Some(len) = len {
            return Ok(seen < len);
        }
        let at_break = self.window.peek()? == Some(BREAK);
        self.window.advance(usize::from(at_break));
        Ok(!at_break)
    }

    /// The next header and how many bytes it takes; it stays where it is.
    fn header(&mut self) -> Result<(Header, usize), StreamError<S::Error>> {
        self.window.parse(|bytes, _| {
            let mut cursor = Cursor::new(bytes);
            let header = cursor.pull()?;
            Ok(((header, cursor.at), 0))
        })
    }

    /// Moves over the header, `len` bytes, of a container that lies `depth` containers deep.
    fn open(&mut self, len: usize, depth: usize) -> Result<(), StreamError<S::Error>> {
        let offset = self.window.offset();
        self.budget.take(offset)?;
        self.budget.check_depth(offset, depth)?;
        self.window.advance(len);
        Ok(())
    }

    fn name(&mut self) -> Result<String, StreamError<S::Error>> {
        self.window.parse(|bytes, _| {
            let mut cursor = Cursor::new(bytes);
            let name = read::key(&mut cursor)?.into_owned();
            Ok((name, cursor.at))
        })
    }

    /// The value at hand, which lies `depth` containers deep.
    fn value(&mut self, depth: usize) -> Result<Value, StreamError<S::Error>> {
        let budget = &mut self.budget;
        self.window.parse(|bytes, _| read::nested_item(bytes, depth, budget))
    }

    /// Behind the document there is nothing.
    fn end(&mut self) -> Result<(), StreamError<S::Error>> {
        match self.window.peek()? {
            None => Ok(()),
            Some(_) => Err(DecodeError::new(
                self.window.offset(),
                DecodeErrorKind::TrailingBytes,
                "more bytes follow the CBOR item; one document is one item",
            )
            .into()),
        }
    }
}
