//! Positions of the parts of encoded documents, by the bytes of the whole: a segment is taken apart without
//! becoming a value.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use omir_core::cbor;

/// Why the bytes of a segment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSegment {
    /// Byte where it was noticed.
    pub offset: usize,
    /// The fault.
    pub message: String,
}

impl fmt::Display for BadSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.message)
    }
}

pub(crate) fn bad(offset: usize, message: impl Into<String>) -> BadSegment {
    BadSegment { offset, message: message.into() }
}

/// A member of a map, by where it lies.
pub(crate) struct Member<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The bytes of the name, header included.
    pub key: Range<usize>,
    /// The bytes of the value.
    pub value: Range<usize>,
}

/// The members of the map that lies at `of`.
pub(crate) fn members<'a>(
    bytes: &'a [u8],
    of: &Range<usize>,
) -> Result<Vec<Member<'a>>, BadSegment> {
    let entries = cbor::map_entries(&bytes[of.clone()])
        .map_err(|error| bad(of.start + error.offset, error.to_string()))?;
    let from = |range: Range<usize>| of.start + range.start..of.start + range.end;
    let member = |entry: cbor::MapEntry<'a>| Member {
        name: entry.key,
        key: from(entry.key_range),
        value: from(entry.value_range),
    };
    Ok(entries.map(member).collect())
}

/// Finds the value of one member of the map at `of`.
pub(crate) fn member(
    bytes: &[u8],
    of: &Range<usize>,
    name: &str,
) -> Result<Range<usize>, BadSegment> {
    let member = members(bytes, of)?.into_iter().find(|member| member.name == name);
    member.map(|member| member.value).ok_or_else(|| bad(of.start, format!("no `{name}` here")))
}

/// Finds the items of the list at `of`.
pub(crate) fn items(bytes: &[u8], of: &Range<usize>) -> Result<Vec<Range<usize>>, BadSegment> {
    let items = cbor::array_items(&bytes[of.clone()])
        .map_err(|error| bad(of.start + error.offset, error.to_string()))?;
    Ok(items.into_iter().map(|item| of.start + item.start..of.start + item.end).collect())
}
