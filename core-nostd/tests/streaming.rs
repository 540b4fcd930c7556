//! A document read part by part is the document read at once: the same values, the same refusals.

mod arbitrary;

use std::convert::Infallible;

use arbitrary::{number, resource, value};
use omir_core::decode::{DecodeError, DecodeErrorKind, Limits};
use omir_core::stream::{Event, Source, StreamError};
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Gives at most `step` bytes at once.
struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Source for Trickle<'_> {
    type Error = Infallible;

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let len = self.step.min(buffer.len());
        self.bytes.read(&mut buffer[..len])
    }
}

/// Puts a document back together from its parts.
fn assemble(
    mut next: impl FnMut() -> Result<Option<Event>, StreamError<Infallible>>,
) -> Result<Value, DecodeError> {
    let mut members: Vec<(String, Value)> = Vec::new();
    let mut document = None;
    loop {
        match next() {
            Ok(Some(Event::Member(name, value))) => members.push((name, value)),
            Ok(Some(Event::Entries)) => members.push(("entry".into(), Value::Array(Vec::new()))),
            Ok(Some(Event::Entry(item))) => {
                let (_, entry) = members.last_mut().expect("`Entries` comes before");
                entry.as_array_mut().expect("an array").push(item);
            }
            Ok(Some(Event::Document(value))) => document = Some(value),
            Ok(None) => break,
            Err(StreamError::Decode(error)) => {
                assert!(matches!(next(), Ok(None)), "nothing comes behind an error");
                return Err(error);
            }
            Err(StreamError::Source(never)) => match never {},
        }
    }
    Ok(document.unwrap_or_else(|| Value::Object(members.into_iter().collect::<Map>())))
}

fn json_parts(bytes: &[u8], limits: &Limits, chunk: usize) -> Result<Value, DecodeError> {
    let mut events = json::Events::with_chunk(Trickle { bytes, step: chunk }, limits, chunk);
    assemble(|| events.next())
}

fn cbor_parts(bytes: &[u8], limits: &Limits, chunk: usize) -> Result<Value, DecodeError> {
    let mut events = cbor::Events::with_chunk(Trickle { bytes, step: chunk }, limits, chunk);
    assemble(|| events.next())
}

/// Returns true if both read the same, members in the same order.
fn agree(parts: &Result<Value, DecodeError>, whole: &Result<Value, DecodeError>) -> bool {
    match (parts, whole) {
        (Ok(parts), Ok(whole)) => json::to_string(parts) == json::to_string(whole),
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

fn check_json(bytes: &[u8], limits: &Limits) {
    let whole = json::from_slice(bytes, limits);
    for chunk in [1, 7, 64 * 1024] {
        let parts = json_parts(bytes, limits, chunk);
        assert!(agree(&parts, &whole), "{chunk}: {parts:?} {whole:?}");
        if let Err(error) = parts {
            assert!(error.offset <= bytes.len(), "{error:?}");
        }
    }
}

fn check_cbor(bytes: &[u8], limits: &Limits) {
    let whole = cbor::from_slice(bytes, limits);
    for chunk in [1, 7, 64 * 1024] {
        let parts = cbor_parts(bytes, limits, chunk);
        assert!(agree(&parts, &whole), "{chunk}: {parts:?} {whole:?}");
        if let Err(error) = parts {
            assert!(error.offset <= bytes.len(), "{error:?}");
        }
    }
}

/// Documents as they are, as they should not be, and values that are none.
fn document() -> BoxedStrategy<Value> {
    let envelope = vec(("[a-c]{1,3}|entry|omirVersion", value()), 0..4);
    let entries = vec(prop_oneof![resource(), value()], 0..5);
    let bundle = (envelope, entries, any::<Index>()).prop_map(|(mut members, entries, at)| {
        let at = at.index(members.len() + 1);
        members.insert(at, ("entry".to_owned(), Value::Array(entries)));
        Value::Object(members.into_iter().collect())
    });
    prop_oneof![4 => bundle, 1 => value(), 1 => number().prop_map(Value::from)].boxed()
}

type Change = (Index, u8, u8);

fn damaged(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for (at, byte, change) in changes {
        let at = at.index(bytes.len() + 1);
        match change {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, *byte),
            // Structure in the wrong place finds more than noise does.
            2 => bytes.insert(at, b"{}[],:\"\\ 0-.e\n"[usize::from(*byte) % 14]),
            _ if at < bytes.len() && *change == 3 => bytes[at] ^= 1 << (byte % 8),
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.push(*byte),
        }
    }
    bytes
}

/// The same value in bytes nobody has to write: lengths left open, numbers in their widest form.
fn loose_cbor(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(0x9f);
            items.iter().for_each(|item| loose_cbor(item, out));
            out.push(0xff);
        }
        Value::Object(map) => {
            out.push(0xbf);
            for (key, member) in map {
                loose_cbor(&key.into(), out);
                loose_cbor(member, out);
            }
            out.push(0xff);
        }
        Value::Text(text) => {
            out.push(0x7f);
            for c in text.chars() {
                cbor::write(&c.to_string().into(), out);
            }
            out.push(0xff);
        }
        other => cbor::write(other, out),
    }
}

proptest! {
    // Each case is read six times over and more.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn parts_make_the_document(value in document(), pretty in any::<bool>()) {
        let text = if pretty { json::to_string_pretty(&value) } else { json::to_string(&value) };
        check_json(text.as_bytes(), &Limits::default());
        check_cbor(&cbor::to_vec(&value), &Limits::default());
        let mut loose = vec![0xd9, 0xd9, 0xf7];
        loose_cbor(&value, &mut loose);
        prop_assert!(cbor::from_slice(&loose, &Limits::default()).is_ok());
        check_cbor(&loose, &Limits::default());
        check_cbor(&loose[3..], &Limits::default());
    }

    #[test]
    fn damage_is_refused_alike(
        value in document(),
        changes in vec((any::<Index>(), any::<u8>(), 0_u8..5), 1..4),
    ) {
        let limits = Limits::default();
        check_json(&damaged(json::to_string(&value).into_bytes(), &changes), &limits);
        check_json(&damaged(json::to_string_pretty(&value).into_bytes(), &changes), &limits);
        check_cbor(&damaged(cbor::to_vec(&value), &changes), &limits);
        let mut loose = Vec::new();
        loose_cbor(&value, &mut loose);
        check_cbor(&damaged(loose, &changes), &limits);
    }

    #[test]
    fn limits_hold_for_the_whole(
        value in document(),
        max_items in 1_usize..60,
        max_depth in 1_usize..5,
        max_bytes in 1_usize..2000,
    ) {
        let limits = Limits { max_items, max_depth, max_bytes };
        check_json(json::to_string(&value).as_bytes(), &limits);
        check_cbor(&cbor::to_vec(&value), &limits);
    }

    #[test]
    fn noise_is_refused_alike(bytes in vec(any::<u8>(), 0..60), text in "[\\[\\]{}:,\"a0.e\\\\ -]{0,30}") {
        check_json(&bytes, &Limits::default());
        check_json(text.as_bytes(), &Limits::default());
        check_cbor(&bytes, &Limits::default());
    }
}

#[test]
fn a_fault_is_placed_in_the_whole_document() {
    let refused = |text: &str| {
        let at_once = json_parts(text.as_bytes(), &Limits::default(), 64 * 1024).unwrap_err();
        for chunk in [1, 3] {
            let error = json_parts(text.as_bytes(), &Limits::default(), chunk).unwrap_err();
            assert_eq!(error, at_once);
        }
        assert!(json::from_slice(text.as_bytes(), &Limits::default()).is_err());
        (at_once.kind, at_once.offset, at_once.pointer)
    };
    use DecodeErrorKind::{Depth, DuplicateKey, Syntax, TrailingBytes, Truncated};
    let place = |pointer: &str| pointer.to_owned();
    assert_eq!(refused("{\"a\":1,\"entry\":[1],\"a\":2}"), (DuplicateKey, 19, place("/")));
    let twice = "{\"entry\":[{},{\"b\":[0,{\"x\":1,\"x\":2}]}]}";
    assert_eq!(refused(twice), (DuplicateKey, 28, place("/entry/1/b/1")));
    assert_eq!(refused("{\"entry\":[1 2]}"), (Syntax, 12, place("/entry")));
    assert_eq!(refused("{\"entry\":[1,]}"), (Syntax, 12, place("/entry")));
    assert_eq!(refused("{\"entry\":[1],}"), (Syntax, 13, place("/")));
    assert_eq!(refused("{\"entry\":[1],x:1}"), (Syntax, 13, place("/")));
    assert_eq!(refused("{\"entry\" [1]}"), (Syntax, 9, place("/")));
    assert_eq!(refused("{\"entry\":[]} x"), (TrailingBytes, 13, place("/")));
    assert_eq!(refused("{\"entry\":[1, "), (Truncated, 13, place("/entry/1")));
    assert_eq!(refused("{\"entry\":[\"\\ud800\"]}").2, "/entry/0");
    let deep = format!("{{\"entry\":[0,{}]}}", "[".repeat(1_000_000));
    assert_eq!(refused(&deep), (Depth, 12 + 126, place("/entry/1")));
    let bom = json_parts(b"\xEF\xBB\xBF{}", &Limits::default(), 1).unwrap_err();
    assert!(bom.message.contains("byte order mark"), "{bom}");
    let latin =
        json_parts(b"{\"entry\":[{\"a\":\"caf\xe9\"},1]}", &Limits::default(), 1).unwrap_err();
    assert_eq!((latin.offset, latin.pointer.as_str()), (19, "/entry/0"));
    assert!(latin.message.contains("UTF-8"), "{latin}");
}

#[test]
fn a_fault_in_cbor_is_placed_in_the_whole_document() {
    let bytes = |parts: &[&[u8]]| parts.concat();
    let entry = b"\x65entry";
    let limits = Limits::default();
    // {"entry": [0, {"a": h'00'}]}
    let text = bytes(&[b"\xa1", entry, b"\x82\x00\xa1\x61a\x41\x00"]);
    let same = |bytes: &[u8]| {
        let whole = cbor::from_slice(bytes, &limits).unwrap_err();
        for chunk in [1, 64] {
            let parts = cbor_parts(bytes, &limits, chunk).unwrap_err();
            assert_eq!((parts.kind, parts.offset), (whole.kind, whole.offset));
            assert_eq!(parts.pointer, whole.pointer);
        }
        (whole.kind, whole.offset, whole.pointer)
    };
    use DecodeErrorKind::{DuplicateKey, TrailingBytes, Truncated, Unsupported};
    assert_eq!(same(&text), (Unsupported, 12, "/entry/1/a".to_owned()));
    let twice = bytes(&[b"\xa2", entry, b"\x80", entry, b"\x80"]);
    assert_eq!(same(&twice), (DuplicateKey, 8, "/".to_owned()));
    assert_eq!(same(&bytes(&[b"\xa1", entry, b"\x80\x00"])), (TrailingBytes, 8, "/".to_owned()));
    assert_eq!(same(&bytes(&[b"\xa1", entry, b"\x9a\xff\xff\xff\xff\x00"])).0, Truncated);
    assert_eq!(same(&bytes(&[b"\xa1\x01", entry])).0, Unsupported);
    assert_eq!(same(&bytes(&[b"\xbf", entry, b"\x9f\xf9\x7e\x00\xff\xff"])).2, "/entry/0");
}
