//! CBOR, beside `ciborium` as an independent reader, and the scans that find items without reading
//! them beside the reader that does.

use omir_core::cbor;
use omir_core::decode::{DecodeErrorKind, Limits};
use omir_core::value::{Map, Value};

use crate::support::{identical, keeps_its_limits, survives_both_encodings};

/// The first byte of a bignum's tag, positive and negative.
const BIGNUM: [u8; 2] = [0xc2, 0xc3];

/// Reads `bytes` every way there is and compares.
pub fn run(bytes: &[u8]) {
    let limits = Limits::default();
    let item = cbor::read_item(bytes, &limits);
    let whole = cbor::from_slice(bytes, &limits);
    let skipped = cbor::skip_item(bytes, &limits);
    match &item {
        Ok((value, used)) => {
            assert!((1..=bytes.len()).contains(used));
            match &whole {
                Ok(whole) => assert!(identical(whole, value) && *used == bytes.len()),
                Err(error) => {
                    let expected = (DecodeErrorKind::TrailingBytes, *used);
                    assert_eq!((error.kind, error.offset), expected);
                }
            }
            match &skipped {
                Ok(skipped) => assert_eq!(skipped, used),
                // To a scan a tag is one level more.
                Err(error) => assert_eq!(error.kind, DecodeErrorKind::Depth, "{error}"),
            }
            accepted(&bytes[..*used], value);
        }
        Err(error) => {
            assert_eq!(whole.as_ref().err(), Some(error));
            assert!(error.offset <= bytes.len(), "{error}");
            assert!(error.pointer.starts_with('/') && !error.message.is_empty(), "{error:?}");
            if let Ok(foreign) = ciborium::from_reader::<ciborium::Value, _>(bytes) {
                refused_alone(error.kind, &foreign);
            }
        }
    }
    scans(bytes);
}

/// Checks of the one item in `bytes` that was read as `value`.
fn accepted(bytes: &[u8], value: &Value) {
    survives_both_encodings(value);
    keeps_its_limits(value, |limits| cbor::from_slice(bytes, limits));
    match ciborium::from_reader::<ciborium::Value, _>(bytes) {
        Ok(foreign) => assert!(same(value, &foreign), "{value} {foreign:?}"),
        // It knows no integers beyond i128.
        Err(error) => {
            assert!(bytes.iter().any(|byte| BIGNUM.contains(byte)), "{value}: {error}");
        }
    }
    match value {
        Value::Object(map) => {
            let Ok(entries) = cbor::map_entries(bytes) else { return deeper(bytes) };
            let mut members = Map::new();
            for entry in entries {
                assert_eq!(entry.key_range.end, entry.value_range.start);
                let member = cbor::from_slice(&bytes[entry.value_range], &Limits::default());
                let repeated = members.insert(entry.key, member.expect("read as a part before"));
                assert!(repeated.is_none());
            }
            assert!(identical(&Value::Object(members), value));
            slots(map);
        }
        Value::Array(items) => {
            let Ok(ranges) = cbor::array_items(bytes) else { return deeper(bytes) };
            let read = |range| cbor::from_slice(&bytes[range], &Limits::default());
            let parts: Result<Vec<Value>, _> = ranges.into_iter().map(read).collect();
            assert_eq!(parts.as_deref(), Ok(items.as_slice()));
        }
        _ => assert!(cbor::map_entries(bytes).is_err() && cbor::array_items(bytes).is_err()),
    }
}

/// A scan that failed on what was read must have failed for its depth.
fn deeper(bytes: &[u8]) {
    let error = cbor::skip_item(bytes, &Limits::default()).expect_err("the scans agree");
    assert_eq!(error.kind, DecodeErrorKind::Depth);
}

/// In a deterministic map each member is found where it is, and an absent one where it belongs.
fn slots(map: &Map) {
    let bytes = cbor::to_vec(&Value::Object(map.clone()));
    for (name, member) in map.iter().take(32) {
        let slot = cbor::map_slot(&bytes, name).expect("our own map");
        let value = slot.value.expect("the member is there");
        let read = cbor::from_slice(&bytes[value.clone()], &Limits::default());
        assert_eq!(
            (read.as_ref(), slot.member.end, slot.members),
            (Ok(member), value.end, map.len())
        );
        let absent = format!("{name}~");
        if !map.contains_key(&absent) {
            let slot = cbor::map_slot(&bytes, &absent).expect("our own map");
            assert_eq!((slot.value, slot.member.len()), (None, 0));
            let mut spliced = Vec::new();
            cbor::write_map_header(map.len() + 1, &mut spliced);
            spliced.extend_from_slice(&bytes[slot.start..slot.member.start]);
            cbor::write(&Value::from(absent.as_str()), &mut spliced);
            cbor::write(&Value::Null, &mut spliced);
            spliced.extend_from_slice(&bytes[slot.member.end..]);
            let mut longer = map.clone();
            longer.insert(absent, Value::Null);
            assert_eq!(spliced, cbor::to_vec(&Value::Object(longer)));
        }
    }
}

/// A scan's results lie inside the bytes and in order.
fn scans(bytes: &[u8]) {
    if let Ok(entries) = cbor::map_entries(bytes) {
        let mut end = 0;
        for entry in entries {
            assert!(end <= entry.key_range.start && entry.key_range.end == entry.value_range.start);
            end = entry.value_range.end;
            let value = &bytes[entry.value_range];
            assert_eq!(cbor::skip_item(value, &Limits::default()), Ok(value.len()));
        }
        assert!(end <= bytes.len());
    }
    if let Ok(items) = cbor::array_items(bytes) {
        let mut end = 0;
        for item in &items {
            assert!(end <= item.start && item.end <= bytes.len());
            end = item.end;
        }
        // Behind a self-described tag the header is not the first.
        if let Ok((Some(len), _)) = cbor::read_array_header(bytes) {
            assert_eq!(len, items.len());
        }
    }
    if let Ok(slot) = cbor::map_slot(bytes, "id") {
        assert!(slot.start <= slot.member.start && slot.member.end <= bytes.len());
    }
}

/// Equality with what `ciborium` makes of the same bytes.
fn same(ours: &Value, theirs: &ciborium::Value) -> bool {
    match (ours, theirs) {
        // The mark at the front has no meaning.
        (ours, ciborium::Value::Tag(55_799, inner)) => same(ours, inner),
        (Value::Null, ciborium::Value::Null) => true,
        (Value::Bool(a), ciborium::Value::Bool(b)) => a == b,
        (Value::Number(a), ciborium::Value::Integer(b)) => a.as_i128() == Some(i128::from(*b)),
        (Value::Number(a), ciborium::Value::Float(b)) => a == b,
        // Bignums with leading zeros and decimal fractions: by value, roughly.
        (Value::Number(_), ciborium::Value::Tag(2..=4, _)) => true,
        (Value::Text(a), ciborium::Value::Text(b)) => a == b,
        (Value::Array(a), ciborium::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), ciborium::Value::Map(b)) => {
            a.len() == b.len()
                && b.iter().all(|(key, b)| {
                    let name = key.as_text();
                    name.and_then(|name| a.get(name)).is_some_and(|a| same(a, b))
                })
        }
        _ => false,
    }
}

/// Checks that a document which only `ciborium` accepts holds something OMIR has no place for.
fn refused_alone(kind: DecodeErrorKind, foreign: &ciborium::Value) {
    let excused = match kind {
        DecodeErrorKind::Unsupported => has_no_place(foreign),
        DecodeErrorKind::DuplicateKey | DecodeErrorKind::TooLarge | DecodeErrorKind::Depth => true,
        // It reads tags without asking what is in them, and simple values in two bytes.
        DecodeErrorKind::Syntax => true,
        _ => false,
    };
    assert!(excused, "only our reader refuses ({kind:?}): {foreign:?}");
}

fn has_no_place(value: &ciborium::Value) -> bool {
    match value {
        ciborium::Value::Bytes(_) | ciborium::Value::Tag(..) => true,
        ciborium::Value::Float(float) => !float.is_finite(),
        ciborium::Value::Array(items) => items.iter().any(has_no_place),
        ciborium::Value::Map(members) => {
            members.iter().any(|(key, value)| !key.is_text() || has_no_place(value))
        }
        // Undefined is read as null.
        ciborium::Value::Null => true,
        _ => false,
    }
}
