//! The encodings as they were first written. A change here is a change of format: it needs a new file
//! beside the old one, and the old one must stay readable.
//!
//! `data/` holds each document three times: as people write it (`.omir`), as we write it
//! (`.compact.omir`), and in CBOR (`.omirb`). `.ci/golden_check.py` reads the CBOR once more with
//! `cbor2`. The tables of single inputs say what is accepted beyond that, and what is refused and where.

use num_bigint::{BigInt, Sign};
use omir_core::decode::{DecodeError, Limits};
use omir_core::model::Bundle;
use omir_core::number::Number;
use omir_core::validate::{Level, Severity, validate_bundle};
use omir_core::value::Value;
use omir_core::{cbor, json};

/// A document: as it was written, as we write it, and in CBOR.
struct Golden {
    name: &'static str,
    text: &'static str,
    compact: &'static str,
    binary: &'static [u8],
}

macro_rules! golden {
    ($name:literal) => {
        Golden {
            name: $name,
            text: include_str!(concat!("data/", $name, ".omir")),
            compact: include_str!(concat!("data/", $name, ".compact.omir")),
            binary: include_bytes!(concat!("data/", $name, ".omirb")),
        }
    };
}

/// Every field; then every kind of number, text and container; then numbers no machine has.
const GOLDEN: [Golden; 3] = [golden!("everything"), golden!("exotic"), golden!("long-numbers")];

fn read(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

/// The lines of a table, without remarks.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The hexadecimal words a line begins with, and the rest of it.
fn hex(line: &str) -> (Vec<u8>, &str) {
    let mut bytes = Vec::new();
    let mut rest = line;
    loop {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let digits = word.len().is_multiple_of(2) && word.bytes().all(|b| b.is_ascii_hexdigit());
        // A run of spaces ends the bytes.
        if word.is_empty() || !digits {
            return (bytes, rest.trim_start());
        }
        bytes.extend(
            (0..word.len()).step_by(2).map(|at| {
                u8::from_str_radix(&word[at..at + 2], 16).expect("two hexadecimal digits")
            }),
        );
        rest = after;
    }
}

#[test]
fn json_reads_and_writes_the_golden_files() {
    for golden in &GOLDEN {
        let document = read(golden.text);
        assert_eq!(json::to_string(&document), golden.compact.trim_end(), "{}", golden.name);
        assert_eq!(json::to_string(&read(golden.compact)), golden.compact.trim_end());
        let pretty = json::to_string_pretty(&document);
        assert_eq!(json::to_string(&read(&pretty)), golden.compact.trim_end());
    }
}

#[test]
fn cbor_reads_and_writes_the_golden_files() {
    for golden in &GOLDEN {
        let document = read(golden.text);
        let decoded = cbor::from_slice(golden.binary, &Limits::default()).unwrap();
        assert_eq!(decoded, document, "{}", golden.name);
        assert_eq!(cbor::to_vec(&document), golden.binary, "{}", golden.name);
        // The order of members is not kept, every number's text is.
        assert_eq!(cbor::to_vec(&read(&json::to_string(&decoded))), golden.binary);
        let entries: Vec<_> = cbor::map_entries(golden.binary).unwrap().collect();
        assert_eq!(entries.len(), document.as_object().unwrap().len());
        for entry in entries {
            let bytes = &golden.binary[entry.value_range];
            let member = cbor::from_slice(bytes, &Limits::default()).unwrap();
            assert_eq!(document.get(&entry.key), Some(&member));
        }
    }
}

#[test]
fn an_independent_decoder_reads_the_golden_files() {
    // It has no integers beyond i128, so not the last.
    for golden in &GOLDEN[..2] {
        let foreign: ciborium::Value = ciborium::from_reader(golden.binary).unwrap();
        is_same(&read(golden.text), &foreign, "");
        let mut written = Vec::new();
        ciborium::into_writer(&foreign, &mut written).unwrap();
        assert_eq!(written, golden.binary, "{}", golden.name);
    }
}

#[track_caller]
fn is_same(ours: &Value, theirs: &ciborium::Value, at: &str) {
    match (ours, theirs) {
        (Value::Null, ciborium::Value::Null) => {}
        (Value::Bool(a), ciborium::Value::Bool(b)) => assert_eq!(a, b, "{at}"),
        (Value::Text(a), ciborium::Value::Text(b)) => assert_eq!(a, b, "{at}"),
        (Value::Number(number), theirs) => {
            let text = number.to_string();
            match theirs {
                ciborium::Value::Float(float) => assert_eq!(text, format!("{float:?}"), "{at}"),
                ciborium::Value::Tag(4, parts) => {
                    let [exponent, mantissa] = parts.as_array().unwrap().as_slice() else {
                        panic!("{at}: {theirs:?}");
                    };
                    let decimal = format!("{}e{}", integer(mantissa), integer(exponent));
                    assert_eq!(Ok(number), Number::parse(&decimal).as_ref(), "{at}");
                }
                integral => assert_eq!(text, integer(integral).to_string(), "{at}"),
            }
        }
        (Value::Array(a), ciborium::Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).enumerate().for_each(|(n, (a, b))| is_same(a, b, &format!("{at}/{n}")));
        }
        (Value::Object(a), ciborium::Value::Map(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            for (key, b) in b {
                let key = key.as_text().expect("keys are text");
                is_same(a.get(key).expect("the member"), b, &format!("{at}/{key}"));
            }
        }
        (ours, theirs) => panic!("{at}: {ours} {theirs:?}"),
    }
}

fn integer(value: &ciborium::Value) -> BigInt {
    match value {
        ciborium::Value::Integer(int) => i128::from(*int).into(),
        ciborium::Value::Tag(2, bytes) => {
            BigInt::from_bytes_be(Sign::Plus, bytes.as_bytes().unwrap())
        }
        ciborium::Value::Tag(3, bytes) => {
            -BigInt::from_bytes_be(Sign::Plus, bytes.as_bytes().unwrap()) - 1
        }
        other => panic!("{other:?} is no integer"),
    }
}

#[test]
fn the_golden_documents_conform_and_are_kept_by_the_types() {
    let kitchen = include_str!("data/kitchen.omir");
    let minimal = include_str!("data/minimal.omir");
    for text in GOLDEN.iter().map(|golden| golden.text).chain([kitchen, minimal]) {
        let document = read(text);
        let faults = validate_bundle(&document, Level::Core);
        assert!(faults.iter().all(|fault| fault.severity() != Severity::Error), "{faults:?}");
        let bundle = Bundle::from_value(document.clone()).unwrap();
        assert_eq!(bundle.to_value(), document);
        // Equal numbers can be written differently; the text says that they are not.
        assert_eq!(cbor::to_vec(&bundle.to_value()), cbor::to_vec(&document));
    }
}

#[test]
fn cbor_that_others_write_is_read() {
    let mut count = 0;
    for row in rows(include_str!("data/cbor-accepted.txt")) {
        let (bytes, text) = hex(row);
        let value = cbor::from_slice(&bytes, &Limits::default())
            .unwrap_or_else(|error| panic!("{row}: {error}"));
        assert_eq!(value.to_string(), text, "{row}");
        assert_eq!(cbor::skip_item(&bytes, &Limits::default()), Ok(bytes.len()), "{row}");
        count += 1;
    }
    assert!(count > 30, "{count} rows");
}

#[test]
fn cbor_without_a_json_form_is_refused_where_it_stands() {
    let mut count = 0;
    for row in rows(include_str!("data/cbor-refused.txt")) {
        let (bytes, expected) = hex(row);
        let error = cbor::from_slice(&bytes, &Limits::default()).expect_err(row);
        let found = format!("{:?} {} {}", error.kind, error.offset, error.pointer);
        assert_eq!(found, expected.split_whitespace().collect::<Vec<_>>().join(" "), "{row}");
        says_something(&error);
        count += 1;
    }
    assert!(count > 60, "{count} rows");
}

#[test]
fn what_is_no_json_is_refused_where_it_stands() {
    let mut count = 0;
    for row in rows(include_str!("data/json-refused.txt")) {
        let end = row.rfind('"').expect("a string") + 1;
        let Value::Text(text) = read(&row[..end]) else { panic!("{row}") };
        let error = json::from_slice(text.as_bytes(), &Limits::default()).expect_err(row);
        let found = format!("{:?} {}", error.kind, error.offset);
        assert_eq!(found, row[end..].split_whitespace().collect::<Vec<_>>().join(" "), "{row}");
        says_something(&error);
        count += 1;
    }
    assert!(count > 30, "{count} rows");
    for (bytes, offset) in [(&b"\"\xff\""[..], 1), (b"[\"\xed\xa0\x80\"]", 2), (b"\xff\xfe", 0)] {
        let error = json::from_slice(bytes, &Limits::default()).unwrap_err();
        assert_eq!(error.offset, offset, "{error}");
    }
}

fn says_something(error: &DecodeError) {
    assert!(error.message.len() > 10, "{error}");
}

/// Writes new golden files; run it by name after a deliberate change of format.
#[test]
#[ignore = "writes files"]
fn write_golden_files() {
    for name in ["everything", "exotic", "long-numbers"] {
        let path =
            |ending: &str| format!("{}/tests/data/{name}.{ending}", env!("CARGO_MANIFEST_DIR"));
        let document = read(&std::fs::read_to_string(path("omir")).unwrap());
        std::fs::write(path("compact.omir"), json::to_string(&document) + "\n").unwrap();
        std::fs::write(path("omirb"), cbor::to_vec(&document)).unwrap();
    }
}
