//! The encodings as they were first written. A change here is a change of format: it needs a new file
//! beside the old one, and the old one must stay readable.

use omir_core::decode::Limits;
use omir_core::model::Bundle;
use omir_core::validate::{Level, Severity, validate_bundle};
use omir_core::value::Value;
use omir_core::{cbor, json};

const EVERYTHING: &str = include_str!("data/everything.omir");
const COMPACT: &str = include_str!("data/everything.compact.omir");
const BINARY: &[u8] = include_bytes!("data/everything.omirb");

fn read(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

#[test]
fn json_reads_and_writes_the_golden_file() {
    let document = read(EVERYTHING);
    assert_eq!(json::to_string(&document), COMPACT.trim_end());
    assert_eq!(read(COMPACT), document);
    assert_eq!(read(&json::to_string_pretty(&document)), document);
}

#[test]
fn cbor_reads_and_writes_the_golden_file() {
    let document = read(EVERYTHING);
    assert_eq!(cbor::from_slice(BINARY, &Limits::default()).as_ref(), Ok(&document));
    assert_eq!(cbor::to_vec(&document), BINARY);
    let entries: Vec<_> = cbor::map_entries(BINARY).unwrap().collect();
    assert_eq!(entries.len(), document.as_object().unwrap().len());
    for entry in entries {
        let member = cbor::from_slice(&BINARY[entry.value_range], &Limits::default()).unwrap();
        assert_eq!(document.get(&entry.key), Some(&member));
    }
}

#[test]
fn the_golden_documents_conform_and_are_kept_by_the_types() {
    for text in [EVERYTHING, include_str!("data/kitchen.omir"), include_str!("data/minimal.omir")] {
        let document = read(text);
        let faults = validate_bundle(&document, Level::Core);
        assert!(faults.iter().all(|fault| fault.severity() != Severity::Error), "{faults:?}");
        let bundle = Bundle::from_value(document.clone()).unwrap();
        assert_eq!(bundle.to_value(), document);
    }
}

/// Prints new golden files; run it by name after a deliberate change of format.
#[test]
#[ignore = "writes files"]
fn write_golden_files() {
    let document = read(EVERYTHING);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    std::fs::write(format!("{folder}/everything.compact.omir"), json::to_string(&document) + "\n")
        .unwrap();
    std::fs::write(format!("{folder}/everything.omirb"), cbor::to_vec(&document)).unwrap();
}
