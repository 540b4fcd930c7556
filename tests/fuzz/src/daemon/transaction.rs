//! The payload of a log frame, beside `ciborium` as an independent reader of the sequence.

use ciborium::Value as Foreign;
use omird::store::{Op, Transaction};

/// Reads a payload; what was accepted is written back the same and says what `ciborium` says.
pub fn run(bytes: &[u8]) {
    let (transaction, places) = match Transaction::decode(bytes) {
        Ok(read) => read,
        Err(error) => {
            assert!(error.offset <= bytes.len() && !error.message.is_empty(), "{error}");
            return;
        }
    };
    assert_eq!(places.len(), transaction.ops.len());
    for (op, place) in transaction.ops.iter().zip(&places) {
        match (op, place) {
            (Op::Put { resource, .. }, Some(at)) => assert!(bytes[*at..].starts_with(resource)),
            (Op::Put { .. }, None) | (_, Some(_)) => panic!("{op:?} at {place:?}"),
            (_, None) => {}
        }
    }
    if let Some(foreign) = sequence(bytes) {
        compare(&transaction, &foreign);
    }
    let mut written = Vec::new();
    transaction.encode(&mut written);
    let (again, _) = Transaction::decode(&written).expect("what we write reads back");
    assert_eq!(again, transaction);
    let mut twice = Vec::new();
    again.encode(&mut twice);
    assert_eq!(twice, written);
}

/// The items of a CBOR sequence (RFC 8742), if `ciborium` can read them all.
fn sequence(mut bytes: &[u8]) -> Option<Vec<Foreign>> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        items.push(ciborium::from_reader(&mut bytes).ok()?);
    }
    Some(items)
}

fn compare(ours: &Transaction, foreign: &[Foreign]) {
    is_number(&foreign[0], "seq", ours.seq.into());
    is_number(&foreign[0], "at", ours.at.as_micros().into());
    let mut rest = foreign[1..].iter();
    let mut ops = ours.ops.iter();
    while let Some(step) = rest.next() {
        // Several of a kind in a list, or one.
        let items = match step_name(step) {
            "forget" => list(step, "refs"),
            "touch" => list(step, "states"),
            _ => None,
        };
        for item in 0..items.map_or(1, Vec::len) {
            let of = |name: &str, at: usize, expected: i128| match items {
                Some(items) => is_integer(items[item].as_array().and_then(|i| i.get(at)), expected),
                None => is_number(step, name, expected),
            };
            match ops.next().expect("an op") {
                Op::Put { version, .. } => {
                    rest.next().expect("a resource");
                    is_number(step, "version", (*version).into());
                }
                Op::Forget { version, .. } => of("version", 1, (*version).into()),
                Op::Touch(touch) if items.is_some() || list(step, "state").is_none() => {
                    of("lastAccess", 1, touch.last_access.into());
                }
                Op::Boot { count } => is_number(step, "count", (*count).into()),
                // A member that lacks or is of another kind counts as zero.
                Op::Touch(_) | Op::Mark(_) => {}
            }
        }
    }
    assert!(ops.next().is_none(), "an op without a step");
}

fn step_name(step: &Foreign) -> &str {
    member(step, "op").and_then(Foreign::as_text).unwrap_or_default()
}

fn list<'f>(step: &'f Foreign, name: &str) -> Option<&'f Vec<Foreign>> {
    member(step, name).and_then(Foreign::as_array)
}

fn member<'f>(map: &'f Foreign, name: &str) -> Option<&'f Foreign> {
    let members = map.as_map().expect("a map");
    members.iter().find(|(key, _)| key.as_text() == Some(name)).map(|(_, value)| value)
}

/// Checks that the member of that name, in whatever way it is written, comes to `expected`.
fn is_number(map: &Foreign, name: &str, expected: i128) {
    is_integer(member(map, name), expected);
}

fn is_integer(found: Option<&Foreign>, expected: i128) {
    match found {
        Some(Foreign::Integer(int)) => assert_eq!(i128::from(*int), expected),
        // To us a float stands for its shortest text, which beyond 2^53 is another integer.
        Some(Foreign::Float(float)) => assert_eq!(*float, expected as f64),
        // Bignums with leading zeros and decimal fractions: not worth a second reader.
        Some(Foreign::Tag(2..=4, _)) => {}
        other => panic!("{other:?} instead of {expected}"),
    }
}
