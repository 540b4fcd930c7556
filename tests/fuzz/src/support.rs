//! Helpers of several targets: strict equality, the way through both encodings, and bytes as choices.

use omir_core::decode::{DecodeError, Limits};
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};

/// Tighter than equality: every number has the same text.
pub fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b && a.to_string() == b.to_string(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| identical(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Reads a document as the tool does: by its first byte.
pub fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    match bytes.first() {
        Some(0x80..) => cbor::from_slice(bytes, &Limits::default()),
        _ => json::from_slice(bytes, &Limits::default()),
    }
}

/// A value that was accepted comes back unchanged from both encodings, and each encoding of what the
/// other brought is the same bytes again.
pub fn survives_both_encodings(value: &Value) {
    let limits = Limits::default();
    let text = json::to_string(value);
    let bytes = cbor::to_vec(value);
    let of_text = json::from_slice(text.as_bytes(), &limits).expect("our own JSON reads back");
    let of_bytes = cbor::from_slice(&bytes, &limits).expect("our own CBOR reads back");
    assert!(identical(&of_text, value), "{text}");
    assert!(identical(&of_bytes, value), "{text}");
    assert_eq!(cbor::to_vec(&of_text), bytes, "{text}");
    assert_eq!(cbor::to_vec(&of_bytes), bytes, "{text}");
    assert_eq!(json::to_string(&of_text), text);
    assert_eq!(cbor::skip_item(&bytes, &limits), Ok(bytes.len()), "{text}");
    let pretty = json::to_string_pretty(value);
    let of_pretty = json::from_slice(pretty.as_bytes(), &limits).expect("so does indented JSON");
    assert_eq!(json::to_string(&of_pretty), text);
}

/// Counts the values, containers included, keys not.
pub fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Counts the levels of containers.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Checks that `limits` of exactly what the value takes accept it and any less refuse it.
pub fn keeps_its_limits(value: &Value, decode: impl Fn(&Limits) -> Result<Value, DecodeError>) {
    let limits = Limits { max_items: count(value), max_depth: depth(value), ..Limits::default() };
    decode(&limits).expect("within its limits");
    let fewer = Limits { max_items: count(value) - 1, ..limits };
    assert!(decode(&fewer).is_err(), "one value too many was let through");
    if let Some(shallower) = depth(value).checked_sub(1) {
        let shallower = Limits { max_depth: shallower, ..limits };
        assert!(decode(&shallower).is_err(), "one level too many was let through");
    }
}

/// Bytes read as choices; when they run out, every choice is the first.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Over all of these.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns true if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Up to so many bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Eight bytes as a number.
    pub fn word(&mut self) -> u64 {
        self.take(8).iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// A text of up to 255 bytes; what is no UTF-8 becomes a sign that stands for it.
    pub fn text(&mut self) -> String {
        let len = usize::from(self.byte());
        String::from_utf8_lossy(self.take(len)).into_owned()
    }

    /// A number of any kind.
    pub fn number(&mut self) -> Number {
        match self.byte() % 6 {
            0 => Number::from(self.byte()),
            1 => Number::from(self.word() as i64),
            2 => Number::from(i128::from(self.word()) * i128::from(self.word() as i64)),
            3 => Number::from_f64(f64::from_bits(self.word())).unwrap_or(Number::from(0)),
            4 => Number::from_f64((self.word() as i64) as f64 / 1000.0).unwrap_or(Number::from(0)),
            _ => {
                let digits = u128::from(self.word()) * u128::from(self.word());
                let exponent = i64::from(self.word() as i16);
                let text = format!("{}.{}e{exponent}", self.byte(), digits);
                Number::parse(&text).unwrap_or(Number::from(1))
            }
        }
    }

    /// A value at most `depth` containers deep.
    pub fn value(&mut self, depth: usize) -> Value {
        match self.byte() % 8 {
            0 => Value::Null,
            1 => Value::Bool(self.byte() % 2 == 1),
            2 | 3 => Value::Number(self.number()),
            4 | 5 => Value::Text(self.text()),
            6 if depth > 0 => {
                let len = self.byte() % 16;
                (0..len).map(|_| self.value(depth - 1)).collect()
            }
            7 if depth > 0 => {
                let len = self.byte() % 16;
                let mut map = Map::new();
                for _ in 0..len {
                    map.insert(self.text(), self.value(depth - 1));
                }
                Value::Object(map)
            }
            _ => Value::Array(Vec::new()),
        }
    }
}
