//! Finding where items lie without decoding them.
//!
//! Splicing one field into a stored document, or cutting a sequence of documents apart, needs byte
//! ranges, not values.

use alloc::borrow::Cow;
use alloc::vec::{self, Vec};
use core::cmp::Ordering;
use core::ops::Range;

use ciborium_ll::Header;

use super::header::{Cursor, stray_break};
use super::{read, tag};
use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits, check_length};

/// Returns the number of bytes of the first item. Does not allocate unless it fails.
///
/// The item is checked to be well-formed and within `limits` (a map's keys count as values here). What
/// it holds is not looked at: tags, byte strings and text that is not UTF-8 are stepped over.
pub fn skip_item(bytes: &[u8], limits: &Limits) -> Result<usize, DecodeError> {
    check_length(bytes, limits)?;
    let mut cursor = Cursor::new(bytes);
    skip(&mut cursor, &mut Budget::new(limits), 0).map_err(DecodeError::finished)?;
    Ok(cursor.at)
}

/// One member of a map, by where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry<'a> {
    /// The key; borrowed unless it came in segments.
    pub key: Cow<'a, str>,
    /// The bytes of the key, header included.
    pub key_range: Range<usize>,
    /// The bytes of the value.
    pub value_range: Range<usize>,
}

/// The members of the one map `bytes` holds, in their order, without decoding the values.
///
/// A self-described tag in front is accepted, bytes after the map are not. Values are well-formed but
/// otherwise unchecked, and repeated keys are all listed.
pub fn map_entries(bytes: &[u8]) -> Result<vec::IntoIter<MapEntry<'_>>, DecodeError> {
    entries(bytes).map(Vec::into_iter).map_err(DecodeError::finished)
}

/// The header of a document's one item and where it is, behind a self-described tag if there is one.
fn outer_header(cursor: &mut Cursor<'_>) -> Result<(usize, Header), DecodeError> {
    let start = cursor.at;
    let header = cursor.pull()?;
    if header == Header::Tag(tag::SELF_DESCRIBED) {
        return Ok((cursor.at, cursor.pull()?));
    }
    Ok((start, header))
}

fn end_of_document(cursor: &Cursor<'_>) -> Result<(), DecodeError> {
    if cursor.remaining() == 0 {
        return Ok(());
    }
    Err(DecodeError::new(
        cursor.at,
        DecodeErrorKind::TrailingBytes,
        "more bytes follow; one document is one item",
    ))
}

fn entries(bytes: &[u8]) -> Result<Vec<MapEntry<'_>>, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let mut budget = Budget::new(&Limits::default());
    let (start, header) = outer_header(&mut cursor)?;
    let Header::Map(len) = header else {
        return Err(DecodeError::new(
            start,
            DecodeErrorKind::Unsupported,
            "not a map; an object is expected here",
        ));
    };
    // A header may state any number; more than a few dozen are rare.
    let mut entries = Vec::with_capacity(len.unwrap_or(0).min(32));
    while more(&mut cursor, len, entries.len()) {
        let key_start = cursor.at;
        let key = read::key(&mut cursor)?;
        let value_start = cursor.at;
        skip(&mut cursor, &mut budget, 1).map_err(|error| error.inside(&key))?;
        entries.push(MapEntry {
            key,
            key_range: key_start..value_start,
            value_range: value_start..cursor.at,
        });
    }
    end_of_document(&cursor)?;
    Ok(entries)
}

/// Position of one member of a map, or where it would have to be put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSlot {
    /// Number of members of the map.
    pub members: usize,
    /// Start of the members.
    pub start: usize,
    /// The bytes of the member, key and value; empty where it would have to be put in.
    pub member: Range<usize>,
    /// The bytes of its value, if it is there.
    pub value: Option<Range<usize>>,
}

/// Finds a member of the map `bytes` begin with, looking no further than where it must be.
///
/// For maps in the deterministic order of [`to_vec`](super::to_vec) (RFC 8949 §4.2.1), such as stored
/// resources: of any other map a member may be missed.
pub fn map_slot(bytes: &[u8], name: &str) -> Result<MapSlot, DecodeError> {
    slot(bytes, name).map_err(DecodeError::finished)
}

fn slot(bytes: &[u8], name: &str) -> Result<MapSlot, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let mut budget = Budget::new(&Limits::default());
    let Header::Map(Some(members)) = cursor.pull()? else {
        return Err(DecodeError::new(
            0,
            DecodeErrorKind::Unsupported,
            "not a map of definite length",
        ));
    };
    let start = cursor.at;
    for _ in 0..members {
        let at = cursor.at;
        let key = read::key(&mut cursor)?;
        let value = cursor.at;
        match (key.len(), &*key).cmp(&(name.len(), name)) {
            Ordering::Less => skip(&mut cursor, &mut budget, 1)?,
            Ordering::Equal => {
                skip(&mut cursor, &mut budget, 1)?;
                let end = cursor.at;
                return Ok(MapSlot { members, start, member: at..end, value: Some(value..end) });
            }
            Ordering::Greater => {
                return Ok(MapSlot { members, start, member: at..at, value: None });
            }
        }
    }
    Ok(MapSlot { members, start, member: cursor.at..cursor.at, value: None })
}

/// Positions of the items of the one array that `bytes` holds, in their order, without decoding them.
///
/// The same is accepted and checked as by [`map_entries`].
pub fn array_items(bytes: &[u8]) -> Result<Vec<Range<usize>>, DecodeError> {
    items(bytes).map_err(DecodeError::finished)
}

/// Returns the number of items that the array at the front of `bytes` states (`None`: as many as there are up to a
/// break), and how many bytes its header takes.
///
/// For cutting apart an array that is damaged further on, item by item.
pub fn read_array_header(bytes: &[u8]) -> Result<(Option<usize>, usize), DecodeError> {
    let mut cursor = Cursor::new(bytes);
    match cursor.pull().map_err(DecodeError::finished)? {
        Header::Array(len) => Ok((len, cursor.at)),
        _ => Err(DecodeError::new(
            0,
            DecodeErrorKind::Unsupported,
            "not an array; a list is expected here",
        )
        .finished()),
    }
}

fn items(bytes: &[u8]) -> Result<Vec<Range<usize>>, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let mut budget = Budget::new(&Limits::default());
    let (start, header) = outer_header(&mut cursor)?;
    let Header::Array(len) = header else {
        return Err(DecodeError::new(
            start,
            DecodeErrorKind::Unsupported,
            "not an array; a list is expected here",
        ));
    };
    let mut items = Vec::new();
    while more(&mut cursor, len, items.len()) {
        let item = cursor.at;
        skip(&mut cursor, &mut budget, 1)?;
        items.push(item..cursor.at);
    }
    end_of_document(&cursor)?;
    Ok(items)
}

/// Position of key number `wanted` of a map whose first key is at `start`; everything before it has
/// been read once already.
pub(super) fn nth_key_offset(
    bytes: &[u8],
    start: usize,
    wanted: usize,
) -> Result<usize, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    cursor.at = start;
    let mut budget = Budget::new(&Limits { max_depth: usize::MAX, ..Limits::default() });
    for _ in 0..2 * wanted {
        skip(&mut cursor, &mut budget, 0)?;
    }
    Ok(cursor.at)
}

fn skip(cursor: &mut Cursor<'_>, budget: &mut Budget, depth: usize) -> Result<(), DecodeError> {
    let start = cursor.at;
    budget.take(start)?;
    match cursor.pull()? {
        Header::Text(len) => cursor.skip_string(len, true),
        Header::Bytes(len) => cursor.skip_string(len, false),
        Header::Array(len) => {
            budget.check_depth(start, depth + 1)?;
            let mut seen = 0;
            while more(cursor, len, seen) {
                skip(cursor, budget, depth + 1)?;
                seen += 1;
            }
            Ok(())
        }
        Header::Map(len) => {
            budget.check_depth(start, depth + 1)?;
            let mut seen = 0;
            while more(cursor, len, seen) {
                skip(cursor, budget, depth + 1)?;
                skip(cursor, budget, depth + 1)?;
                seen += 1;
            }
            Ok(())
        }
        // A tag nests like a container: `c1c1c1…` must not exhaust the stack.
        Header::Tag(_) => {
            budget.check_depth(start, depth + 1)?;
            skip(cursor, budget, depth + 1)
        }
        Header::Break => Err(stray_break(start)),
        Header::Positive(_) | Header::Negative(_) | Header::Float(_) | Header::Simple(_) => Ok(()),
    }
}

fn more(cursor: &mut Cursor<'_>, len: Option<usize>, seen: usize) -> bool {
    match len {
        Some(len) => seen < len,
        None => !cursor.at_break(),
    }
}
