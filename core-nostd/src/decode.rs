//! The parts that both decoders share: the limits they keep and the errors they give.
//!
//! Bytes from a disk or a network are hostile until proven otherwise. A decoder refuses with the
//! byte offset, never panics, and never reserves memory because a header says so.

mod budget;

use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::pointer;
pub(crate) use budget::Budget;

/// Nesting beyond this is refused whatever [`Limits::max_depth`] says: values are walked and dropped
/// recursively, and the stack of an ordinary thread must bear it.
pub const DEPTH_CEILING: usize = 512;

/// Bounds of the input that a decoder accepts. The default suits files: bounded in depth only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole input.
    pub max_bytes: usize,
    /// Containers inside one another, at most [`DEPTH_CEILING`].
    pub max_depth: usize,
    /// Values in total, containers included, object keys not.
    pub max_items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: usize::MAX, max_depth: 128, max_items: usize::MAX }
    }
}

/// The kind of a refusal, as far as a caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes do not follow the grammar.
    Syntax,
    /// The input ends inside a value; more bytes might complete it.
    Truncated,
    /// A complete value is followed by something else.
    TrailingBytes,
    /// An object names a member twice.
    DuplicateKey,
    /// Nested deeper than [`Limits::max_depth`].
    Depth,
    /// More bytes, values or digits than allowed.
    TooLarge,
    /// Well-formed, but nothing OMIR can hold: byte strings, tags, NaN, keys that are not text.
    Unsupported,
}

/// An input that was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Bytes before the fault.
    pub offset: usize,
    /// JSON Pointer to the value being read, `/` for the document itself. A grammar fault in JSON is
    /// found before the structure is known and points at the document.
    pub pointer: String,
    /// The kind of fault.
    pub kind: DecodeErrorKind,
    /// The finding and its remedy, for a person.
    pub message: String,
}

impl DecodeError {
    pub(crate) fn new(offset: usize, kind: DecodeErrorKind, message: impl Into<String>) -> Self {
        Self { offset, pointer: String::new(), kind, message: message.into() }
    }

    /// The same error seen from the container that holds the value under `token`.
    pub(crate) fn inside(mut self, token: &str) -> Self {
        let mut pointer = String::new();
        pointer::push(&mut pointer, token);
        pointer.push_str(&self.pointer);
        self.pointer = pointer;
        self
    }

    /// The same error seen from the array that holds the value at `index`.
    pub(crate) fn inside_index(self, index: usize) -> Self {
        self.inside(&format!("{index}"))
    }

    /// To be called once, at the outermost level.
    pub(crate) fn finished(mut self) -> Self {
        if self.pointer.is_empty() {
            self.pointer.push('/');
        }
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if self.pointer.len() > 1 {
            write!(f, " ({})", self.pointer)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl core::error::Error for DecodeError {}

/// Refuses an input longer than the limits allow, before any byte of it is looked at.
pub(crate) fn check_length(bytes: &[u8], limits: &Limits) -> Result<(), DecodeError> {
    if bytes.len() > limits.max_bytes {
        return Err(DecodeError::new(
            limits.max_bytes,
            DecodeErrorKind::TooLarge,
            format!(
                "{} bytes, at most {} are accepted; send less at a time",
                bytes.len(),
                limits.max_bytes
            ),
        ));
    }
    Ok(())
}
