//! The encodings of a document that is read part by part.

use alloc::string::String;

use super::{Fault, Source, Window};
use crate::decode::Budget;
use crate::value::Value;

/// The tokens of an encoding, as far as the envelope of a document has them.
pub trait Tokens {
    /// The source of the bytes.
    type Source: Source;

    /// The word for an object in messages.
    const OBJECT: &'static str;

    /// Reads tokens from the front of `window`.
    fn new(window: Window<Self::Source>, budget: Budget) -> Self;

    /// Returns the number of bytes that were read and taken apart.
    fn offset(&self) -> usize;

    /// Moves over the opening of an object; false if the document is something else.
    fn opens_document(&mut self) -> Result<bool, Fault<Self>>;

    /// Moves over the next name of the document, or over its end: `None`. Returns the name's offset too. `seen` members
    /// are behind.
    fn name(&mut self, seen: usize) -> Result<Option<(String, usize)>, Fault<Self>>;

    /// Moves over what stands between a name and its value.
    fn separator(&mut self) -> Result<(), Fault<Self>>;

    /// Moves over the opening of an array; false if the value of `entry` is something else.
    fn opens_entries(&mut self) -> Result<bool, Fault<Self>>;

    /// Returns true if the array has another item, and moves to it; else moves over its end. `seen` items are behind.
    fn has_item(&mut self, seen: usize) -> Result<bool, Fault<Self>>;

    /// Reads the value at hand, which lies `depth` containers deep.
    fn value(&mut self, depth: usize) -> Result<Value, Fault<Self>>;

    /// Refuses everything behind the document.
    fn end(&mut self) -> Result<(), Fault<Self>>;
}
