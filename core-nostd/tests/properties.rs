//! Properties of every value, every resource and every string of bytes.
//!
//! Invariant 15 of ARCHITECTURE.md.

mod arbitrary;

use arbitrary::{number, resource, timestamp, value};
use omir_core::decode::Limits;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Bundle, Resource};
use omir_core::number::Number;
use omir_core::validate::{Level, Severity, is_absolute_uri, validate_bundle};
use omir_core::value::{Map, Value, from_value, to_value};
use omir_core::{cbor, json, spatial};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const EVERYTHING: &[u8] = include_bytes!("data/everything.omir");

/// Tighter than equality: every number has the same text.
fn identical(a: &Value, b: &Value) -> bool {
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

/// The value with numbers of more digits than any i128 left out.
fn without_long_numbers(value: Value) -> Value {
    match value {
        Value::Number(number)
            if number.to_string().bytes().filter(u8::is_ascii_digit).count() > 38 =>
        {
            Value::Null
        }
        Value::Array(items) => items.into_iter().map(without_long_numbers).collect(),
        Value::Object(map) => {
            let members = map.into_iter().map(|(key, value)| (key, without_long_numbers(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}

/// Counts the values, containers included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The value with `other` in the place of its `number`th one, counted from the outside.
fn replaced(value: &Value, number: usize, other: &Value) -> Value {
    fn walk(value: &Value, left: &mut usize, other: &Value) -> Value {
        if *left == 0 {
            *left = usize::MAX;
            return other.clone();
        }
        *left -= 1;
        match value {
            Value::Array(items) => items.iter().map(|item| walk(item, left, other)).collect(),
            Value::Object(map) => {
                let members = map.iter().map(|(key, value)| (key, walk(value, left, other)));
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }
    let mut left = number;
    walk(value, &mut left, other)
}

/// `a` with one member of `b`.
fn with_member_of(a: &Value, b: &Value, place: Index) -> Value {
    let (mut a, b) = (a.clone(), b.as_object().expect("a resource"));
    let name = b.keys().nth(place.index(b.len())).expect("a member");
    let member = b.get(name).expect("a member").clone();
    a.as_object_mut().expect("a resource").insert(name, member);
    a
}

fn from_json(bytes: &[u8]) -> Value {
    json::from_slice(bytes, &Limits::default()).expect("our own JSON reads back")
}

fn from_cbor(bytes: &[u8]) -> Value {
    cbor::from_slice(bytes, &Limits::default()).expect("our own CBOR reads back")
}

/// Everything a decoder may be asked about hostile bytes; whatever it accepts must be sound.
fn decode_all(bytes: &[u8]) {
    let limits = Limits { max_items: 10_000, ..Limits::default() };
    if let Ok(value) = json::from_slice(bytes, &limits) {
        assert!(identical(&from_json(json::to_string(&value).as_bytes()), &value));
        assert!(identical(&from_cbor(&cbor::to_vec(&value)), &value));
        validate_all(value);
    }
    let skipped = cbor::skip_item(bytes, &limits);
    if let Ok((value, used)) = cbor::read_item(bytes, &Limits::default()) {
        assert!(used <= bytes.len());
        if let Ok(skipped) = skipped {
            assert_eq!(skipped, used);
        }
        let written = cbor::to_vec(&value);
        assert!(identical(&from_cbor(&written), &value));
        assert!(identical(&from_json(json::to_string(&value).as_bytes()), &value));
        if let Value::Object(map) = &value {
            let entries = cbor::map_entries(&bytes[..used]).expect("a map that was read");
            assert_eq!(entries.len(), map.len());
            for entry in entries {
                let member = from_cbor(&bytes[entry.value_range]);
                assert_eq!(map.get(&entry.key), Some(&member));
            }
        }
        validate_all(value);
    }
    if let Ok(entries) = cbor::map_entries(bytes) {
        entries.for_each(|entry| assert!(entry.value_range.end <= bytes.len()));
    }
}

fn validate_all(value: Value) {
    let faults = validate_bundle(&value, Level::Core);
    let conforms = faults.iter().all(|fault| fault.severity() != Severity::Error);
    let typed = Bundle::from_value(value.clone());
    assert!(typed.is_ok() || !conforms, "{faults:?} {typed:?}");
    if let Ok(bundle) = typed {
        assert!(identical(&bundle.to_value(), &value));
    }
    if let Ok(resource) = Resource::from_value(value.clone()) {
        let _ = spatial::pose_of(&resource);
        assert!(identical(&resource.to_value(), &value));
    }
}

proptest! {
    #[test]
    fn values_survive_both_encodings(value in value()) {
        let text = json::to_string(&value);
        let pretty = json::to_string_pretty(&value);
        let bytes = cbor::to_vec(&value);
        prop_assert!(identical(&from_json(text.as_bytes()), &value));
        prop_assert!(identical(&from_json(pretty.as_bytes()), &value));
        prop_assert!(identical(&from_cbor(&bytes), &value));
        // And across: each encoding of what the other brought is the same bytes again.
        prop_assert_eq!(json::to_string(&from_json(text.as_bytes())), text.clone());
        prop_assert_eq!(cbor::to_vec(&from_json(text.as_bytes())), bytes.clone());
        prop_assert_eq!(cbor::skip_item(&bytes, &Limits::default()), Ok(bytes.len()));
    }

    #[test]
    fn the_order_of_members_does_not_change_the_bytes(value in value()) {
        fn reversed(value: &Value) -> Value {
            match value {
                Value::Array(items) => items.iter().map(reversed).collect(),
                Value::Object(map) => {
                    let mut members: Vec<_> = map.iter().map(|(k, v)| (k, reversed(v))).collect();
                    members.reverse();
                    Value::Object(members.into_iter().collect::<Map>())
                }
                other => other.clone(),
            }
        }
        prop_assert_eq!(cbor::to_vec(&reversed(&value)), cbor::to_vec(&value));
        prop_assert_eq!(reversed(&value), value);
    }

    #[test]
    fn values_pass_through_serde_unchanged(value in value()) {
        prop_assert!(identical(&to_value(&value).unwrap(), &value));
        prop_assert!(identical(&from_value::<Value>(value.clone()).unwrap(), &value));
    }

    #[test]
    fn an_independent_decoder_reads_our_cbor(value in value()) {
        // It has no integers beyond i128.
        let value = without_long_numbers(value);
        let bytes = cbor::to_vec(&value);
        let read: ciborium::Value = ciborium::from_reader(&bytes[..]).unwrap();
        let mut written = Vec::new();
        ciborium::into_writer(&read, &mut written).unwrap();
        prop_assert_eq!(written, bytes);
    }

    #[test]
    fn an_independent_decoder_reads_our_json(value in value()) {
        let text = json::to_string(&value);
        let read: Result<serde_json::Value, _> = serde_json::from_str(&text);
        // It has no place for 1e400, and rounds other numbers: compare what surrounds them.
        if let Ok(read) = read {
            fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
                match (ours, theirs) {
                    (Value::Null, serde_json::Value::Null) => true,
                    (Value::Bool(a), serde_json::Value::Bool(b)) => a == b,
                    (Value::Number(a), serde_json::Value::Number(b)) => match b.as_f64() {
                        Some(b) => (a.as_f64() - b).abs() <= b.abs() * 1e-15,
                        None => false,
                    },
                    (Value::Text(a), serde_json::Value::String(b)) => a == b,
                    (Value::Array(a), serde_json::Value::Array(b)) => {
                        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
                    }
                    (Value::Object(a), serde_json::Value::Object(b)) => {
                        a.len() == b.len()
                            && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
                    }
                    _ => false,
                }
            }
            prop_assert!(same(&value, &read), "{} {}", value, read);
            let again = from_json(serde_json::to_string(&read).unwrap().as_bytes());
            prop_assert!(same(&again, &read));
        }
    }

    #[test]
    fn resources_survive_types_and_encodings(document in resource()) {
        let resource = Resource::from_value(document.clone());
        prop_assert!(resource.is_ok(), "{:?}", resource);
        let resource = resource.unwrap();
        let written = resource.to_value();
        prop_assert!(identical(&written, &document));
        for back in [
            from_json(json::to_string(&written).as_bytes()),
            from_cbor(&cbor::to_vec(&written)),
        ] {
            prop_assert_eq!(&Resource::from_value(back).unwrap(), &resource);
        }
        let _ = spatial::pose_of(&resource);
    }

    /// Equal bytes mean equal memories, and only those.
    #[test]
    fn two_values_have_the_same_bytes_if_they_are_the_same(
        a in value(),
        b in value(),
        place in any::<Index>(),
        other in value(),
        related in any::<bool>(),
    ) {
        let b = if related { replaced(&a, place.index(count(&a)), &other) } else { b };
        prop_assert_eq!(cbor::to_vec(&a) == cbor::to_vec(&b), identical(&a, &b), "{} {}", a, b);
        prop_assert!(a == b || cbor::to_vec(&a) != cbor::to_vec(&b));
    }

    #[test]
    fn models_are_equal_if_their_values_are(
        a in resource(),
        b in resource(),
        place in any::<Index>(),
        related in any::<bool>(),
    ) {
        // A member of one in the other: often no resource any more, else one that differs in it.
        let b = if related { with_member_of(&a, &b, place) } else { b };
        let model = |value: &Value| Resource::from_value(value.clone()).ok();
        let (Some(first), Some(second)) = (model(&a), model(&b)) else { return Ok(()) };
        prop_assert_eq!(first == second, a == b, "{} {}", a, b);
        prop_assert_eq!(
            cbor::to_vec(&first.to_value()) == cbor::to_vec(&second.to_value()),
            identical(&a, &b)
        );
    }

    #[test]
    fn numbers_keep_their_text_and_their_place(a in number(), b in number(), c in number()) {
        for number in [&a, &b, &c] {
            let text = number.to_string();
            let back = Number::parse(&text).unwrap();
            prop_assert_eq!(&back, number);
            prop_assert_eq!(back.to_string(), text);
            // 2^127 is about 1.701e38.
            match number.as_i128() {
                Some(_) => prop_assert!(number.is_integer() && number.as_f64().abs() < 1.702e38),
                None => prop_assert!(!number.is_integer() || number.as_f64().abs() > 1.701e38),
            }
        }
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        let mut ordered = [&a, &b, &c];
        ordered.sort();
        prop_assert!(ordered[0] <= ordered[1] && ordered[1] <= ordered[2] && ordered[0] <= ordered[2]);
        prop_assert!(ordered[0].as_f64() <= ordered[1].as_f64());
        prop_assert_eq!(a < b, a.partial_cmp(&b) == Some(std::cmp::Ordering::Less));
    }

    #[test]
    fn instants_survive_their_text(at in timestamp()) {
        let instant = Instant::from(at);
        prop_assert_eq!(instant.at(), at);
        prop_assert_eq!(Timestamp::parse(instant.as_str()), Ok(at));
        prop_assert_eq!(Timestamp::from_micros(at.as_micros()).as_micros(), at.as_micros());
    }

    #[test]
    fn no_text_causes_a_panic(text in any::<String>(), near in "[0-9TtZz:.+ -]{0,40}") {
        for text in [&text, &near] {
            if let Ok(instant) = Instant::parse(text) {
                prop_assert_eq!(instant.as_str(), text);
            }
            let _ = Number::parse(text);
            let _ = is_absolute_uri(text);
            let _ = text.parse::<omir_core::reference::Ref>();
            let _ = Value::Null.pointer(text);
            decode_all(text.as_bytes());
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in vec(any::<u8>(), 0..300)) {
        decode_all(&bytes);
    }

    #[test]
    fn bytes_like_cbor_cause_no_panic(bytes in vec(
        prop_oneof![Just(0x9f_u8), Just(0xbf), Just(0xff), Just(0x61), Just(0xa1), Just(0xc2), Just(0xc4),
            Just(0x82), Just(0x41), Just(0x7f), Just(0xf9), any::<u8>()], 0..60)) {
        decode_all(&bytes);
    }

    #[test]
    fn a_damaged_document_is_refused_or_sound(
        changes in vec((any::<Index>(), any::<u8>(), 0_u8..4), 1..4),
        as_cbor in any::<bool>(),
    ) {
        let mut bytes = EVERYTHING.to_vec();
        if as_cbor {
            bytes = cbor::to_vec(&from_json(&bytes));
        }
        for (at, byte, change) in changes {
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        decode_all(&bytes);
        // Two values are identical if and only if they are written alike.
        let original = from_json(EVERYTHING);
        let limits = Limits::default();
        let read = if as_cbor {
            cbor::from_slice(&bytes, &limits)
        } else {
            json::from_slice(&bytes, &limits)
        };
        if let Ok(read) = read {
            let is_same = identical(&read, &original);
            prop_assert_eq!(cbor::to_vec(&read) == cbor::to_vec(&original), is_same);
            if let Ok(bundle) = Bundle::from_value(read.clone()) {
                prop_assert_eq!(identical(&bundle.to_value(), &original), is_same);
            }
        }
    }
}
