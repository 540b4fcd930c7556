//! JSON documents that do not fit into memory: see [`crate::stream`].
//!
//! Only the braces, brackets, colons and commas of the outermost two levels are looked at here;
//! `serde_json` finds where a value ends and the reader of whole documents looks into it.

use alloc::string::String;

use serde::de::Deserialize;
use serde_json::value::RawValue;

use super::{Reader, byte_order_mark, check_depth, not_utf8, syntax_error};
use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits};
use crate::stream::{self, ENTRY, Source, StreamError, Tokens, Window};
use crate::value::Value;

/// Bytes before the end of the window in which a fault may be the end itself: `1.` and `-` are faulty numbers to
/// `serde_json`, not numbers cut off.
const NEAR: usize = 4;

/// Reads a JSON document part by part.
pub type Events<S> = stream::Events<JsonTokens<S>>;

/// The braces, brackets, colons and commas of a JSON document.
#[derive(Debug)]
pub struct JsonTokens<S> {
    window: Window<S>,
    budget: Budget,
}

impl<S: Source> Tokens for JsonTokens<S> {
    type Source = S;

    const OBJECT: &'static str = "object";

    fn new(window: Window<S>, budget: Budget) -> Self {
        Self { window, budget }
    }

    fn offset(&self) -> usize {
        self.window.offset()
    }

    fn opens_document(&mut self) -> Result<bool, StreamError<S::Error>> {
        if self.window.starts_with(super::BYTE_ORDER_MARK)? {
            return Err(byte_order_mark().into());
        }
        if self.next_byte()? != Some(b'{') {
            return Ok(false);
        }
        self.open(1)?;
        Ok(true)
    }

    fn name(&mut self, seen: usize) -> Result<Option<(String, usize)>, StreamError<S::Error>> {
        let mut next = self.next_byte()?;
        if next == Some(b'}') {
            self.window.advance(1);
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
        let name = self.window.parse(|bytes, ended| {
            let (raw, used) = front(bytes, ended, 0, &Budget::new(&Limits::default()))?;
            let reader =
                Reader { base: bytes.as_ptr() as usize, budget: Budget::new(&Limits::default()) };
            Ok((reader.string(raw.get())?, used))
        })?;
        Ok(Some((name, offset)))
    }

    fn separator(&mut self) -> Result<(), StreamError<S::Error>> {
        match self.next_byte()? {
            Some(b':') => self.window.advance(1),
            Some(_) => return Err(self.fault("expected `:`")),
            None => return Err(self.cut_off("EOF while parsing an object")),
        }
        self.next_byte()?;
        Ok(())
    }

    fn opens_entries(&mut self) -> Result<bool, StreamError<S::Error>> {
        if self.next_byte()? != Some(b'[') {
            return Ok(false);
        }
        self.open(2)?;
        Ok(true)
    }

    fn has_item(&mut self, seen: usize) -> Result<bool, StreamError<S::Error>> {
        let next = self.next_byte()?;
        if next == Some(b']') {
            self.window.advance(1);
            return Ok(false);
        }
        if seen > 0 {
            self.behind_comma(next, b']', "expected `,` or `]`")
                .map_err(|error| error.map(|refusal| refusal.inside(ENTRY)))?;
        }
        Ok(true)
    }

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

    fn end(&mut self) -> Result<(), StreamError<S::Error>> {
        match self.next_byte()? {
            None => Ok(()),
            Some(_) => Err(super::trailing(self.window.offset()).into()),
        }
    }
}

impl<S: Source> JsonTokens<S> {
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
        Ok(())
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

/// Returns the text of the value at the front of `bytes`, and the number of bytes it takes.
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
        // A value that nests too deep is refused before all of it is there.
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
