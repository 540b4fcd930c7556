//! JSON documents that do not fit into memory: see [`crate::stream`].
//!
//! Only the braces, brackets, colons and commas of the outermost two levels are looked at here;
//! `serde_json` finds where a value ends and the reader of whole documents looks into it.

use alloc::string::String;

use serde::de::Deserialize;
use serde_json::value::RawValue;

use super::{Reader, byte_order_mark, check_depth, not_utf8, syntax_error};
use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits};
use crate::stream::{CHUNK, ENTRY, Event, MemberNames, Source, State, StreamError, Window};
use crate::value::Value;

/// How far from the end of what is there a fault may be told that is only the end: `1.` and `-` are
/// faulty numbers to `serde_json`, not numbers cut off.
const NEAR: usize = 4;

/// Reads a JSON document part by part.
#[derive(Debug)]
pub struct Events<S> {
    window: Window<S>,
    budget: Budget,
    names: MemberNames,
    state: State,
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
        let found = self.step();
        if !matches!(found, Ok(Some(_))) {
            self.state = State::Done;
        }
        found.map_err(|error| error.map(DecodeError::finished))
    }

    /// How many bytes are behind.
    pub fn offset(&self) -> usize {
        self.window.offset()
    }

    fn step(&mut self) -> Result<Option<Event>, StreamError<S::Error>> {
        match self.state {
            State::Start => self.start(),
            State::Members(seen) => self.member(seen),
            State::Items { items, members } => self.item(items, members),
            State::Done => Ok(None),
        }
    }

    fn start(&mut self) -> Result<Option<Event>, StreamError<S::Error>> {
        if self.window.starts_with(super::BYTE_ORDER_MARK)? {
            return Err(byte_order_mark().into());
        }
        if self.next_byte()? == Some(b'{') {
            self.open(1)?;
            return self.member(0);
        }
        let document = self.value(0)?;
        self.end()?;
        self.state = State::Done;
        Ok(Some(Event::Document(document)))
    }

    fn member(&mut self, seen: usize) -> Result<Option<Event>, StreamError<S::Error>> {
        let mut next = self.next_byte()?;
        if next == Some(b'}') {
            self.window.advance(1);
            self.end()?;
            return Ok(None);
        }
        if seen > 0 {
            next = self.behind_comma(next, b'}', "expected `,` or `}`")?;
        }
        match next {
            Some(b'"') => {}
            Some(_) => return Err(self.fault("key must be a string")),
            None => return Err(self.cut_off("EOF while parsing an object")),
        }
        let offset = self.window.offset();
        let name = self.name()?;
        self.names.see(&name, offset, "object")?;
        match self.next_byte()? {
            Some(b':') => self.window.advance(1),
            Some(_) => return Err(self.fault("expected `:`")),
            None => return Err(self.cut_off("EOF while parsing an object")),
        }
        if self.next_byte()? == Some(b'[') && name == ENTRY {
            self.open(2).map_err(|error| error.map(|refusal| refusal.inside(ENTRY)))?;
            self.state = State::Items { items: 0, members: seen + 1 };
            return Ok(Some(Event::Entries));
        }
        let value = self.value(1).map_err(|error| error.map(|refusal| refusal.inside(&name)))?;
        self.state = State::Members(seen + 1);
        Ok(Some(Event::Member(name, value)))
    }

    fn item(
        &mut self,
        items: usize,
        members: usize,
    ) -> Result<Option<Event>, StreamError<S::Error>> {
        let inside = |refusal: DecodeError| refusal.inside(ENTRY);
        let next = self.next_byte()?;
        if next == Some(b']') {
            self.window.advance(1);
            return self.member(members);
        }
        if items > 0 {
            self.behind_comma(next, b']', "expected `,` or `]`")
                .map_err(|error| error.map(inside))?;
        }
        let item = self
            .value(2)
            .map_err(|error| error.map(|refusal| inside(refusal.inside_index(items))))?;
        self.state = State::Items { items: items + 1, members };
        Ok(Some(Event::Entry(item)))
    }

    /// Moves over the comma that must be `next`, and says what follows it.
    fn behind_comma(
        &mut self,
        next: Option<u8>,
        close: u8,
        expected: &str,
    ) -> Result<Option<u8>, StreamError<S::Error>> {
        match next {
            Some(b',') => self.window.advance(1),
            Some(_) => return Err(self.fault(expected)),
            None => return Err(self.cut_off("EOF: the document is not closed")),
        }
        let next = self.next_byte()?;
        if next == Some(close) { Err(self.fault("trailing comma")) } else { Ok(next) }
    }

    /// Moves over white space (RFC 8259 §2) and says what follows it.
    fn next_byte(&mut self) -> Result<Option<u8>, StreamError<S::Error>> {
        loop {
            let rest = self.window.rest();
            let space = rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
            self.window.advance(space);
            match self.window.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => {}
                other => return Ok(other),
            }
        }
    }

    /// Moves over the bracket of a container that lies `depth` containers deep.
    fn open(&mut self, depth: usize) -> Result<(), StreamError<S::Error>> {
        let offset = self.window.offset();
        self.budget.check_depth(offset, depth)?;
        self.budget.take(offset)?;
        self.window.advance(1);
        self.state = State::Members(0);
        Ok(())
    }

    fn name(&mut self) -> Result<String, StreamError<S::Error>> {
        self.window.parse(|bytes, ended| {
            let (raw, used) = front(bytes, ended, 0, &Budget::new(&Limits::default()))?;
            let reader =
                Reader { base: bytes.as_ptr() as usize, budget: Budget::new(&Limits::default()) };
            Ok((reader.string(raw.get())?, used))
        })
    }

    /// The value at hand, which lies `depth` containers deep.
    fn value(&mut self, depth: usize) -> Result<Value, StreamError<S::Error>> {
        let budget = &mut self.budget;
        self.window.parse(|bytes, ended| {
            let (raw, used) = front(bytes, ended, depth, budget)?;
            let base = bytes.as_ptr() as usize;
            let mut reader = Reader { base, budget: budget.clone() };
            let value = reader.value(raw.get())?;
            *budget = reader.budget;
            Ok((value, used))
        })
    }

    /// Behind the document there is only white space.
    fn end(&mut self) -> Result<(), StreamError<S::Error>> {
        match self.next_byte()? {
            None => Ok(()),
            Some(_) => Err(super::trailing(self.window.offset()).into()),
        }
    }

    fn fault(&self, message: &str) -> StreamError<S::Error> {
        let rest = self.window.rest();
        if let Some(byte) = rest.first()
            && !byte.is_ascii()
            && let Err(error) = core::str::from_utf8(&rest[..rest.len().min(4)])
            && (error.valid_up_to(), error.error_len().is_some()) == (0, true)
        {
            return not_utf8(self.window.offset()).into();
        }
        DecodeError::new(self.window.offset(), DecodeErrorKind::Syntax, message).into()
    }

    fn cut_off(&self, message: &str) -> StreamError<S::Error> {
        DecodeError::new(self.window.offset(), DecodeErrorKind::Truncated, message).into()
    }
}

/// The text of the value at the front of `bytes`, and how many bytes it takes.
///
/// `Truncated` if more bytes are needed to tell; `ended` says that there are none.
fn front<'a>(
    bytes: &'a [u8],
    ended: bool,
    depth: usize,
    budget: &Budget,
) -> Result<(&'a RawValue, usize), DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let error = match <&RawValue>::deserialize(&mut deserializer) {
        Ok(raw) => {
            let used = raw.get().as_ptr() as usize - bytes.as_ptr() as usize + raw.get().len();
            let closes_itself = matches!(raw.get().as_bytes().last(), Some(b'"' | b']' | b'}'));
            if used == bytes.len() && !ended && !closes_itself {
                // The number may go on.
                return Err(DecodeError::new(used, DecodeErrorKind::Truncated, ""));
            }
            check_depth(&bytes[..used], depth, budget)?;
            return Ok((raw, used));
        }
        Err(error) => syntax_error(bytes, 0, &error),
    };
    let cut_off = error.kind == DecodeErrorKind::Truncated;
    if !ended && (cut_off || error.offset + NEAR >= bytes.len()) {
        // What nests too deep is refused before all of it is there.
        check_depth(bytes, depth, budget)?;
        return Err(DecodeError { kind: DecodeErrorKind::Truncated, ..error });
    }
    // `serde_json` tells of text that is not UTF-8 only at the end of the value.
    match core::str::from_utf8(bytes).map_err(|error| error.valid_up_to()) {
        Err(valid) if cut_off || valid <= error.offset => Err(not_utf8(valid)),
        _ => {
            check_depth(&bytes[..error.offset], depth, budget)?;
            Err(error)
        }
    }
}
