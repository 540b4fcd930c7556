//! JSON text to values and back.
//!
//! `serde_json` knows the grammar; it would round numbers and let duplicate keys through, so each
//! value is first taken as the raw slice of text it occupies and then looked into. That gives exact
//! numbers, and byte offsets from where the slices lie. Text is scanned once per level of nesting.

mod events;
mod places;
mod write;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

pub use events::Events;
pub use places::Places;
#[cfg(feature = "jcs")]
pub(crate) use write::write_text;
pub use write::{to_string, to_string_pretty, write_pretty};

use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits, check_length};
use crate::number::{Number, NumberError};
use crate::value::{Value, duplicate_key, map_of};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads one JSON document (RFC 8259).
///
/// Refuses what that grammar refuses, and also: a byte order mark, text that is not UTF-8, lone
/// surrogates, a key given twice in one object, anything after the document, and what exceeds
/// `limits`. For a fault in the grammar the offset may be one byte off.
pub fn from_slice(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    check_length(bytes, limits)?;
    read(bytes, limits).map_err(DecodeError::finished)
}

fn read(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        return Err(byte_order_mark());
    }
    let text = core::str::from_utf8(bytes).map_err(|error| not_utf8(error.valid_up_to()))?;

    check_depth(bytes, 0, &Budget::new(limits))?;

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let raw =
        <&RawValue>::deserialize(&mut deserializer).map_err(|e| syntax_error(bytes, 0, &e))?;
    if let Err(error) = deserializer.end() {
        return Err(trailing(syntax_error(bytes, 0, &error).offset));
    }
    let mut reader = Reader { base: text.as_ptr() as usize, budget: Budget::new(limits) };
    reader.value(raw.get())
}

fn byte_order_mark() -> DecodeError {
    DecodeError::new(
        0,
        DecodeErrorKind::Syntax,
        "starts with a byte order mark; save the file as UTF-8 without BOM",
    )
}

fn not_utf8(offset: usize) -> DecodeError {
    let message = "not UTF-8; JSON text must be encoded as UTF-8";
    DecodeError::new(offset, DecodeErrorKind::Syntax, message)
}

fn trailing(offset: usize) -> DecodeError {
    let message = "more text after the document; one file holds one document";
    DecodeError::new(offset, DecodeErrorKind::TrailingBytes, message)
}

/// Refuses what nests too deep before anything descends into it: since every level is scanned again,
/// depth multiplies the cost of a document. `depth` containers lie around `bytes`.
fn check_depth(bytes: &[u8], mut depth: usize, budget: &Budget) -> Result<(), DecodeError> {
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                budget.check_depth(offset, depth)?;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

struct Reader {
    /// Address of the document's first byte; slices of it tell their offset by their own.
    base: usize,
    budget: Budget,
}

impl Reader {
    fn offset(&self, slice: &str) -> usize {
        slice.as_ptr() as usize - self.base
    }

    fn value(&mut self, text: &str) -> Result<Value, DecodeError> {
        let offset = self.offset(text);
        self.budget.take(offset)?;
        match text.as_bytes().first() {
            Some(b'n') => Ok(Value::Null),
            Some(b't') => Ok(Value::Bool(true)),
            Some(b'f') => Ok(Value::Bool(false)),
            Some(b'"') => self.string(text).map(Value::Text),
            Some(b'[') => self.array(text),
            Some(b'{') => self.object(text),
            _ => Number::parse(text).map(Value::Number).map_err(|error| {
                let kind = match error {
                    NumberError::TooLong => DecodeErrorKind::TooLarge,
                    _ => DecodeErrorKind::Syntax,
                };
                DecodeError::new(offset, kind, error.to_string())
            }),
        }
    }

    fn string(&self, text: &str) -> Result<String, DecodeError> {
        // Without escapes the text between the quotes is the string; the scan that delimited it has
        // already refused control characters.
        if let Some(plain) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'))
            && !plain.contains('\\')
        {
            return Ok(plain.to_string());
        }
        serde_json::from_str(text)
            .map_err(|error| syntax_error(text.as_bytes(), self.offset(text), &error))
    }

    fn array(&mut self, text: &str) -> Result<Value, DecodeError> {
        let items: Vec<&RawValue> = self.parse(text)?;
        let items = items.into_iter().enumerate();
        items
            .map(|(index, item)| self.value(item.get()).map_err(|e| e.inside_index(index)))
            .collect::<Result<_, _>>()
            .map(Value::Array)
    }

    fn object(&mut self, text: &str) -> Result<Value, DecodeError> {
        let RawMembers(raw) = self.parse(text)?;
        let mut members = Vec::with_capacity(raw.len());
        for (key, value) in &raw {
            let key = self.string(key.get())?;
            let value = self.value(value.get()).map_err(|error| error.inside(&key))?;
            members.push((key, value));
        }
        match duplicate_key(members.len(), |at| &members[at].0) {
            Some(at) => Err(DecodeError::new(
                self.offset(raw[at].0.get()),
                DecodeErrorKind::DuplicateKey,
                format!("the key {:?} occurs twice in one object; keep one", members[at].0),
            )),
            None => Ok(Value::Object(map_of(members))),
        }
    }

    fn parse<'a, T: Deserialize<'a>>(&self, text: &'a str) -> Result<T, DecodeError> {
        serde_json::from_str(text)
            .map_err(|error| syntax_error(text.as_bytes(), self.offset(text), &error))
    }
}

/// The members of an object as they stand in the text, repeated keys included.
struct RawMembers<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor).map(Self)
    }
}

/// `serde_json` counts lines and columns within the slice it was given; we want bytes from the start.
fn syntax_error(text: &[u8], base: usize, error: &serde_json::Error) -> DecodeError {
    let lines = error.line().saturating_sub(1);
    let split = text.split_inclusive(|byte| *byte == b'\n');
    let line_start: usize = split.take(lines).map(<[u8]>::len).sum();
    let (kind, offset) = match error.classify() {
        Category::Eof => (DecodeErrorKind::Truncated, text.len()),
        _ => (
            DecodeErrorKind::Syntax,
            (line_start + error.column().saturating_sub(1)).min(text.len()),
        ),
    };
    let message = error.to_string();
    // The position is ours to tell, in bytes.
    let message = message.split(" at line ").next().unwrap_or_default();
    DecodeError::new(base + offset, kind, message)
}

#[cfg(test)]
mod tests;
