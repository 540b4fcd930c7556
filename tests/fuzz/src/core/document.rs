//! Whole documents: the validator at both levels beside the typed model.

use std::collections::BTreeSet;

use omir_core::model::{Bundle, Resource};
use omir_core::profile;
use omir_core::validate::{
    Checker, DocumentKind, Entries, Fault, Finding, Level, Options, Severity, Summary,
    check_document, validate_bundle, validate_resource, validate_shape,
};
use omir_core::value::{Map, Value};
use omir_core::{cbor, json, spatial};

use crate::support::{decode, identical};

/// Reads a document in either encoding, validates it every way and compares the answers.
pub fn run(bytes: &[u8]) {
    let Ok(value) = decode(bytes) else { return };
    bundle(&value);
    in_parts(&value);
    resource(&value);
    for entry in value.get("entry").and_then(Value::as_array).unwrap_or_default().iter().take(64) {
        resource(entry);
    }
}

fn bundle(value: &Value) {
    let core = validate_bundle(value, Level::Core);
    let strict = validate_bundle(value, Level::Strict);
    let shape = validate_shape(value);
    for fault in core.iter().chain(&strict).chain(&shape) {
        is_sound(fault, value);
    }
    // The strict level only asks for more, and of the same things.
    let places = |faults: &[Fault]| -> Vec<String> {
        faults.iter().map(|fault| fault.pointer.clone()).collect()
    };
    assert_eq!(places(&core), places(&strict));
    for (core, strict) in core.iter().zip(&strict) {
        assert!(core.severity() <= strict.severity());
        assert_eq!(core.code.as_str()[1..], strict.code.as_str()[1..]);
    }
    let errors = errors(&core);
    assert!(shape.len() >= 1000 || shape.iter().all(|fault| errors.contains(&key(fault))));
    // The typed model takes what has the right shape, and nothing else.
    match Bundle::from_value(value.clone()) {
        Ok(bundle) => {
            assert!(shape.is_empty(), "{shape:?}");
            assert!(identical(&bundle.to_value(), value));
            let again = Bundle::from_value(bundle.to_value()).expect("what was read");
            assert_eq!(again, bundle);
        }
        Err(faults) => assert!(!shape.is_empty() && !errors.is_empty(), "{faults:?}"),
    }
    // Nothing depends on the encoding or on the order of members.
    if let Ok(sorted) = cbor::from_slice(&cbor::to_vec(value), &Default::default()) {
        assert_eq!(self::errors(&validate_bundle(&sorted, Level::Core)), errors);
    }
}

/// A document that is handed over entry by entry is judged as it is in one piece, profiles included.
fn in_parts(value: &Value) {
    let profiles = profile::builtin();
    let required = [profile::ROBOTICS.to_owned()];
    let options = Options { profiles: &profiles, required: &required, ..Options::default() };
    let (whole, summary) = check_document(value, options);
    let Some(map) = value.as_object() else { return };
    let mut envelope: Map = map.clone();
    let entry = envelope.remove("entry");
    let mut parts = Vec::new();
    let mut checker = Checker::new(options);
    let entries = match &entry {
        None => Entries::Absent,
        Some(Value::Array(items)) => {
            items.iter().for_each(|item| checker.entry(item, &mut |one| parts.push(one)));
            Entries::Array
        }
        Some(other) => Entries::Other(other),
    };
    let outcome = checker.finish(&envelope, entries, &mut |one| parts.push(one));
    match outcome {
        DocumentKind::Bundle(counted) => {
            assert_eq!(sorted(&parts), sorted(&whole));
            is_counted(&counted, value);
            assert_eq!(Some(counted), summary);
        }
        DocumentKind::NotABundle(finding) => {
            assert_eq!((vec![finding], None), (whole.clone(), summary))
        }
    }
    for finding in &whole {
        is_sound(&finding.fault, value);
        let there = value.pointer(&finding.fault.pointer);
        let scalar =
            there.filter(|there| there.as_object().is_none() && there.as_array().is_none());
        assert_eq!(finding.value.as_ref(), scalar, "{}", finding.fault);
    }
}

fn is_counted(summary: &Summary, document: &Value) {
    let entries = document.get("entry").and_then(Value::as_array).unwrap_or_default();
    assert_eq!(summary.entries, entries.len());
    assert!(summary.by_type.iter().sum::<usize>() <= summary.entries);
    assert!(summary.with_meta <= summary.by_type.iter().sum());
}

fn sorted(findings: &[Finding]) -> Vec<String> {
    let mut shown: Vec<String> = findings.iter().map(|finding| format!("{finding:?}")).collect();
    shown.sort();
    shown
}

fn resource(value: &Value) {
    let mut faults = Vec::new();
    validate_resource(value, "/", &mut faults);
    faults.iter().for_each(|fault| is_sound(fault, value));
    match Resource::from_value(value.clone()) {
        Ok(resource) => {
            assert_eq!(errors(&faults), BTreeSet::new());
            assert!(identical(&resource.to_value(), value));
            let bytes = json::to_string(value).into_bytes();
            let again = decode(&bytes).expect("our own JSON");
            assert_eq!(Resource::from_value(again).as_ref(), Ok(&resource));
            if let Some(Err(faults)) = spatial::pose_of(&resource) {
                assert!(!faults.is_empty());
                faults.iter().for_each(|fault| is_sound(fault, value));
            }
        }
        Err(refusal) => {
            assert!(!errors(&faults).is_empty(), "{refusal:?}");
        }
    }
}

/// A fault says something, and points at something that is there.
fn is_sound(fault: &Fault, value: &Value) {
    assert!(!fault.message.is_empty());
    assert!(value.pointer(&fault.pointer).is_some(), "{fault} in {value}");
}

fn key(fault: &Fault) -> (String, String) {
    (fault.code.to_string(), fault.pointer.clone())
}

fn errors(faults: &[Fault]) -> BTreeSet<(String, String)> {
    faults.iter().filter(|fault| fault.severity() == Severity::Error).map(key).collect()
}
