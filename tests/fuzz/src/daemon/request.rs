//! The resources that a client wants remembered.

use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::validate::validate_resource;
use omir_core::value::Value;
use omird::engine::testing::IngestContext;
use omird::engine::{Code, Encoding, Error, Prepared, RequestLimits, decode};

use crate::support::{depth, identical};

/// Small, so that they are met.
fn limits() -> RequestLimits {
    RequestLimits {
        max_payload_bytes: 1 << 14,
        max_depth: 32,
        max_values: 2000,
        max_resources: 20,
        max_resource_bytes: 1 << 12,
        ..RequestLimits::default()
    }
}

/// Takes a payload in; what was accepted is valid and can be sent back.
pub fn run(bytes: &[u8]) {
    let encoding = Encoding::sniff(bytes);
    let limits = limits();
    let value = match decode(bytes, encoding, &limits, Code::InvalidResource) {
        Ok(value) => value,
        Err(error) => return is_refusal(&error),
    };
    assert!(bytes.len() <= limits.max_payload_bytes && depth(&value) <= limits.max_depth);
    let key: Ref = "Entity/kitchen".parse().expect("a reference");
    for key in [None, Some(&key)] {
        let plain = take(value.clone(), key, false);
        let merged = take(value.clone(), key, true);
        match (&plain, &merged) {
            // Nothing comes twice, so a merge has nothing to choose; it only completes less.
            (Ok(plain), Ok(merged)) => {
                assert_eq!(plain.len(), merged.len());
                for (plain, merged) in plain.iter().zip(merged) {
                    let is_same = plain.resource == merged.resource;
                    assert!(is_same || (plain.stamped && !merged.stamped));
                }
                accepted(plain, key, false);
                accepted(merged, key, true);
            }
            (Err(error), Ok(merged)) => {
                is_refusal(error);
                let mut names: Vec<_> = resources(merged).map(Resource::reference).collect();
                names.sort();
                assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
                accepted(merged, key, true);
            }
            (Err(error), Err(_)) => is_refusal(error),
            (Ok(_), Err(error)) => panic!("only a merge refuses: {error:?}"),
        }
    }
}

fn take(value: Value, key: Option<&Ref>, merging: bool) -> Result<Vec<Prepared>, Error> {
    let new_id = || "00000000-0000-4000-8000-000000000001".to_owned();
    let now = Timestamp::from_unix(1_780_000_000, 0);
    IngestContext { limits: &limits(), now, uncertainty: None, new_id: &new_id, key, merging }
        .take(value)
}

fn resources(prepared: &[Prepared]) -> impl Iterator<Item = &Resource> {
    prepared.iter().map(|one| &one.resource)
}

fn is_refusal(error: &Error) {
    assert!(matches!(error.code, Code::InvalidResource | Code::TooLarge), "{error:?}");
    assert!(!error.message.is_empty());
}

fn accepted(prepared: &[Prepared], key: Option<&Ref>, merging: bool) {
    assert!((1..=limits().max_resources).contains(&prepared.len()));
    for one in prepared {
        let value = one.resource.to_value();
        let mut faults = Vec::new();
        validate_resource(&value, "/", &mut faults);
        assert!(faults.is_empty(), "{faults:?}");
        assert!(key.is_none_or(|key| *key == one.resource.reference()));
        // A client can send back the resource that it got, and that is no change.
        for encoding in [Encoding::Json, Encoding::Cbor] {
            let bytes = encoding.encode(&value);
            let wide = RequestLimits::default();
            let read = decode(&bytes, Encoding::sniff(&bytes), &wide, Code::InvalidResource);
            let again =
                take(read.expect("our own encoding"), None, merging).expect("what was accepted");
            assert!(identical(&again[0].resource.to_value(), &value), "{value}");
            assert_eq!(again[0].facts, one.facts);
            assert_eq!(again[0].terms, one.terms);
            assert!(!again[0].stamped);
        }
    }
}
