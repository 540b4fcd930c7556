//! Decoding items to values.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ciborium_ll::{Header, simple};

use super::header::{Cursor, not_a_key, stray_break, unsupported};
use super::scan::nth_key_offset;
use super::tag;
use crate::decode::{Budget, DecodeError, DecodeErrorKind, Limits, check_length};
use crate::number::{Number, NumberError};
use crate::value::{Value, duplicate_key, map_of};

/// Containers reserve room for at most this many elements before having seen them.
const TRUSTED_LENGTH: usize = 64;

/// Reads exactly one item.
///
/// Accepts every well-formed item that denotes a JSON value: definite and indefinite lengths, all
/// float widths, bignums, decimal fractions, and the self-described tag in front. Refuses byte strings,
/// other tags and simple values, NaN and infinities, keys that are not text or that repeat, text that
/// is not UTF-8, bytes after the item, and what exceeds `limits`.
pub fn from_slice(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    let (value, used) = read_item(bytes, limits)?;
    if used < bytes.len() {
        let left = bytes.len() - used;
        return Err(DecodeError::new(
            used,
            DecodeErrorKind::TrailingBytes,
            format!("{left} bytes follow the CBOR item; one document is one item"),
        )
        .finished());
    }
    Ok(value)
}

/// Reads one item off the front of a CBOR sequence; also returns how many bytes it took.
pub fn read_item(bytes: &[u8], limits: &Limits) -> Result<(Value, usize), DecodeError> {
    check_length(bytes, limits)?;
    let mut reader = Reader { cursor: Cursor::new(bytes), budget: Budget::new(limits) };
    let value = reader.document().map_err(DecodeError::finished)?;
    Ok((value, reader.cursor.at))
}

/// The item at the front of `bytes`, which lies `depth` containers deep in a document, and how many
/// bytes it takes.
pub(super) fn nested_item(
    bytes: &[u8],
    depth: usize,
    budget: &mut Budget,
) -> Result<(Value, usize), DecodeError> {
    let mut reader = Reader { cursor: Cursor::new(bytes), budget: budget.clone() };
    let value = reader.next(depth)?;
    *budget = reader.budget;
    Ok((value, reader.cursor.at))
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    budget: Budget,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, DecodeError> {
        let mut start = self.cursor.at;
        let mut header = self.cursor.pull()?;
        if header == Header::Tag(tag::SELF_DESCRIBED) {
            start = self.cursor.at;
            header = self.cursor.pull()?;
        }
        self.value(header, start, 0)
    }

    fn next(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let start = self.cursor.at;
        let header = self.cursor.pull()?;
        self.value(header, start, depth)
    }

    fn value(&mut self, header: Header, start: usize, depth: usize) -> Result<Value, DecodeError> {
        self.budget.take(start)?;
        match header {
            Header::Positive(int) => Ok(int.into()),
            Header::Negative(int) => Ok((-1 - i128::from(int)).into()),
            Header::Float(float) => {
                Number::from_f64(float).map(Value::Number).ok_or_else(|| unsupported(start, header))
            }
            Header::Simple(simple::FALSE) => Ok(Value::Bool(false)),
            Header::Simple(simple::TRUE) => Ok(Value::Bool(true)),
            Header::Simple(simple::NULL) => Ok(Value::Null),
            Header::Text(len) => self.cursor.text(len).map(|text| Value::Text(text.into_owned())),
            Header::Array(len) => {
                self.budget.check_depth(start, depth + 1)?;
                self.array(len, depth + 1)
            }
            Header::Map(len) => {
                self.budget.check_depth(start, depth + 1)?;
                self.map(len, depth + 1)
            }
            Header::Tag(tag::POSITIVE_BIGNUM | tag::NEGATIVE_BIGNUM) => {
                self.bignum(header, start).map(Value::Number)
            }
            Header::Tag(tag::DECIMAL_FRACTION) => self.decimal_fraction(start).map(Value::Number),
            Header::Break => Err(stray_break(start)),
            Header::Bytes(_) | Header::Simple(_) | Header::Tag(_) => {
                Err(unsupported(start, header))
            }
        }
    }

    fn array(&mut self, len: Option<usize>, depth: usize) -> Result<Value, DecodeError> {
        let mut items = Vec::with_capacity(len.unwrap_or(0).min(TRUSTED_LENGTH));
        while self.more(len, items.len()) {
            let item = self.next(depth).map_err(|error| error.inside_index(items.len()))?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, len: Option<usize>, depth: usize) -> Result<Value, DecodeError> {
        let start = self.cursor.at;
        let mut members: Vec<(String, Value)> =
            Vec::with_capacity(len.unwrap_or(0).min(TRUSTED_LENGTH));
        while self.more(len, members.len()) {
            let key = key(&mut self.cursor)?.into_owned();
            let value = self.next(depth).map_err(|error| error.inside(&key))?;
            members.push((key, value));
        }
        match duplicate_key(members.len(), |at| &members[at].0) {
            Some(at) => {
                let offset = nth_key_offset(self.cursor.whole(), start, at)?;
                Err(DecodeError::new(
                    offset,
                    DecodeErrorKind::DuplicateKey,
                    format!("the key {:?} occurs twice in one map; keep one", members[at].0),
                ))
            }
            None => Ok(Value::Object(map_of(members))),
        }
    }

    /// Returns true if a container of `len` elements, `seen` of them read, holds another.
    fn more(&mut self, len: Option<usize>, seen: usize) -> bool {
        match len {
            Some(len) => seen < len,
            None => !self.cursor.at_break(),
        }
    }

    /// The content of a bignum whose tag is `header`.
    fn bignum(&mut self, header: Header, tag_at: usize) -> Result<Number, DecodeError> {
        let start = self.cursor.at;
        let Header::Bytes(len) = self.cursor.pull()? else {
            return Err(DecodeError::new(
                start,
                DecodeErrorKind::Syntax,
                "a bignum must hold a byte string",
            ));
        };
        let bytes = self.cursor.byte_string(len)?;
        let negative = header == Header::Tag(tag::NEGATIVE_BIGNUM);
        Number::from_bignum(&bytes, negative).map_err(|error| refused(tag_at, error))
    }

    /// The content of tag 4: `[exponent, mantissa]`, both integers.
    fn decimal_fraction(&mut self, tag_at: usize) -> Result<Number, DecodeError> {
        let shape = |offset| {
            DecodeError::new(
                offset,
                DecodeErrorKind::Syntax,
                "a decimal fraction must hold an array of two integers, exponent and mantissa",
            )
        };
        let start = self.cursor.at;
        let indefinite = match self.cursor.pull()? {
            Header::Array(Some(2)) => false,
            Header::Array(None) => true,
            _ => return Err(shape(start)),
        };
        let exponent_at = self.cursor.at;
        let exponent = match self.cursor.pull()? {
            Header::Positive(int) => i64::try_from(int).unwrap_or(i64::MAX),
            Header::Negative(int) => i64::try_from(-1 - i128::from(int)).unwrap_or(i64::MIN),
            _ => return Err(shape(exponent_at)),
        };
        let mantissa_at = self.cursor.at;
        let mantissa = match self.cursor.pull()? {
            Header::Positive(int) => int.into(),
            Header::Negative(int) => (-1 - i128::from(int)).into(),
            header @ Header::Tag(tag::POSITIVE_BIGNUM | tag::NEGATIVE_BIGNUM) => {
                self.bignum(header, mantissa_at)?
            }
            _ => return Err(shape(mantissa_at)),
        };
        if indefinite && !self.cursor.at_break() {
            return Err(shape(self.cursor.at));
        }
        Number::from_decimal(&mantissa, exponent).map_err(|error| refused(tag_at, error))
    }
}

/// The next map key.
pub(super) fn key<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, DecodeError> {
    let start = cursor.at;
    match cursor.pull()? {
        Header::Text(len) => cursor.text(len),
        Header::Break => Err(stray_break(start)),
        _ => Err(not_a_key(start)),
    }
}

fn refused(offset: usize, error: NumberError) -> DecodeError {
    let kind = match error {
        NumberError::TooLong => DecodeErrorKind::TooLarge,
        _ => DecodeErrorKind::Syntax,
    };
    DecodeError::new(offset, kind, error.to_string())
}
