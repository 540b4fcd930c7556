//! JSON text, beside `serde_json` as an independent reader.

use omir_core::decode::{DecodeErrorKind, Limits};
use omir_core::json;
use omir_core::value::{Value, from_value, to_value};

use crate::support::{depth, identical, keeps_its_limits, survives_both_encodings};

/// Nesting that `serde_json` refuses of its own.
const FOREIGN_DEPTH: usize = 127;

/// Reads `bytes` both ways and compares; what was accepted keeps its value and its limits.
pub fn run(bytes: &[u8]) {
    let ours = json::from_slice(bytes, &Limits::default());
    let theirs = serde_json::from_slice::<serde_json::Value>(bytes);
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => assert!(same(ours, theirs), "{ours} {theirs}"),
        (Ok(ours), Err(error)) => assert!(
            depth(ours) > FOREIGN_DEPTH || has_huge_number(ours),
            "only the other reader refuses: {error}"
        ),
        (Err(error), Ok(_)) => assert!(
            matches!(
                error.kind,
                DecodeErrorKind::DuplicateKey | DecodeErrorKind::Depth | DecodeErrorKind::TooLarge
            ),
            "only our reader refuses: {error}"
        ),
        (Err(_), Err(_)) => {}
    }
    match ours {
        Ok(value) => {
            survives_both_encodings(&value);
            keeps_its_limits(&value, |limits| json::from_slice(bytes, limits));
            assert!(identical(&to_value(&value).expect("a value is a value"), &value));
            assert!(identical(&from_value(value.clone()).expect("a value is a value"), &value));
        }
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            assert!(error.pointer.starts_with('/') && !error.message.is_empty(), "{error:?}");
        }
    }
}

/// Returns true if a number is beyond what a float can hold, which `serde_json` refuses.
fn has_huge_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_infinite(),
        Value::Array(items) => items.iter().any(has_huge_number),
        Value::Object(map) => map.values().any(has_huge_number),
        _ => false,
    }
}

/// Equality as far as `serde_json` can tell: it rounds, and not always to the nearest.
fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
    match (ours, theirs) {
        (Value::Null, serde_json::Value::Null) => true,
        (Value::Bool(a), serde_json::Value::Bool(b)) => a == b,
        (Value::Number(a), serde_json::Value::Number(b)) => match (b.as_i128(), b.as_f64()) {
            (Some(b), _) => a.as_i128() == Some(b),
            (None, Some(b)) => (a.as_f64() - b).abs() <= b.abs() * 1e-15 + f64::from_bits(1),
            (None, None) => false,
        },
        (Value::Text(a), serde_json::Value::String(b)) => a == b,
        (Value::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => false,
    }
}
