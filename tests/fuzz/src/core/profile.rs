//! Profile documents, and what they say of resources.

use omir_core::profile::Profile;
use omir_core::validate::Severity;
use omir_core::value::Value;

use crate::support::decode;

/// Resources that profiles are tried on.
const RESOURCES: &[u8] = include_bytes!("../../../../core-nostd/tests/data/everything.omir");

/// Reads a profile; what it finds in a resource points at something that is there.
pub fn run(bytes: &[u8]) {
    let Ok(document) = decode(bytes) else { return };
    let profile = match Profile::from_value(&document) {
        Ok(profile) => profile,
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                assert!(document.pointer(&fault.pointer).is_some(), "{fault} in {document}");
            }
            return;
        }
    };
    assert_eq!(document.get("url").and_then(Value::as_str), Some(profile.url.as_str()));
    let bundle = decode(RESOURCES).expect("the golden document");
    for resource in bundle.get("entry").and_then(Value::as_array).unwrap_or_default() {
        let mut faults = Vec::new();
        profile.check(resource, "/", &mut faults);
        for fault in &faults {
            assert!(resource.pointer(&fault.pointer).is_some(), "{fault} in {resource}");
            assert!(!fault.message.is_empty());
        }
        if profile.is_met_by(resource) {
            assert!(faults.iter().all(|fault| fault.severity() < Severity::Error));
        }
    }
}
