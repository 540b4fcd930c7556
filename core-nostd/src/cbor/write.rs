//! Encoding values: the deterministic form of RFC 8949 §4.2.1.

use alloc::vec::Vec;

use ciborium_ll::{Header, simple};
use num_bigint::{BigInt, Sign};

use super::tag;
use crate::cbor_head::Head;
use crate::number::{Form, Number};
use crate::value::{Map, Value};

/// The deterministic encoding of `value`.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

/// Appends the deterministic encoding of `value`: shortest integers and floats, definite lengths, map
/// keys in the bytewise order of their encodings.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => header(out, Header::Simple(simple::NULL)),
        Value::Bool(false) => header(out, Header::Simple(simple::FALSE)),
        Value::Bool(true) => header(out, Header::Simple(simple::TRUE)),
        Value::Number(number) => write_number(out, number),
        Value::Text(text) => write_text(out, text),
        Value::Array(items) => {
            header(out, Header::Array(Some(items.len())));
            items.iter().for_each(|item| write(item, out));
        }
        Value::Object(map) => write_map(out, map),
    }
}

/// Appends the header of a map of `len` members, whose keys and values the caller appends in the
/// bytewise order of the encoded keys: for documents that are put together from encoded parts.
pub fn write_map_header(len: usize, out: &mut Vec<u8>) {
    header(out, Header::Map(Some(len)));
}

/// Appends the header of an array of `len` items, which the caller appends.
pub fn write_array_header(len: usize, out: &mut Vec<u8>) {
    header(out, Header::Array(Some(len)));
}

fn write_map(out: &mut Vec<u8>, map: &Map) {
    header(out, Header::Map(Some(map.len())));
    let mut members: Vec<(&str, &Value)> = map.iter().collect();
    // A longer text has a larger header, so the encodings compare by length, then by bytes.
    members.sort_unstable_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    for (key, value) in members {
        write_text(out, key);
        write(value, out);
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    header(out, Header::Text(Some(text.len())));
    out.extend_from_slice(text.as_bytes());
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    match number.form() {
        Form::Int(int) => write_integer(out, int),
        Form::Big(big) => write_bignum(out, big),
        Form::Float(float) => header(out, Header::Float(float)),
        Form::Decimal(digits, exponent) => {
            header(out, Header::Tag(tag::DECIMAL_FRACTION));
            header(out, Header::Array(Some(2)));
            write_integer(out, exponent.into());
            match i128::try_from(digits) {
                Ok(int) => write_integer(out, int),
                Err(_) => write_bignum(out, digits),
            }
        }
    }
}

fn write_integer(out: &mut Vec<u8>, int: i128) {
    if let Ok(int) = u64::try_from(int) {
        header(out, Header::Positive(int));
    } else if let Ok(int) = u64::try_from(-1 - int) {
        header(out, Header::Negative(int));
    } else {
        write_bignum(out, &int.into());
    }
}

/// For integers beyond 64 bits only: others have a shorter form.
fn write_bignum(out: &mut Vec<u8>, big: &BigInt) {
    let (tag, bytes) = match big.sign() {
        Sign::Minus => (tag::NEGATIVE_BIGNUM, (-big - 1_u8).to_bytes_be().1),
        _ => (tag::POSITIVE_BIGNUM, big.to_bytes_be().1),
    };
    header(out, Header::Tag(tag));
    header(out, Header::Bytes(Some(bytes.len())));
    out.extend_from_slice(&bytes);
}

fn header(out: &mut Vec<u8>, header: Header) {
    out.extend_from_slice(Head::new(header).as_bytes());
}
