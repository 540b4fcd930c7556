//! Whole documents: the envelope, and its entries each for itself.

use alloc::format;
use alloc::vec::Vec;

use super::checker::{Options, check_document};
use super::fault::{Fault, FaultCode, Level, Severity};
use super::schema::BUNDLE;
use super::walk::{self, At, MOST_FAULTS, Walk, shown};
use crate::reference::ResourceType;
use crate::value::{Map, Value};

/// The faults of a document: envelope, entries, repeated ids, references, metadata. Profiles are not
/// looked at; see [`check_document`] for those.
///
/// The document conforms at `level` if no fault has the severity of an error. A document that is no
/// bundle at all gets that one fault only.
pub fn validate_bundle(value: &Value, level: Level) -> Vec<Fault> {
    let (findings, _) = check_document(value, Options { level, ..Options::default() });
    findings.into_iter().map(|finding| finding.fault).collect()
}

/// The errors in envelope and entries, each for itself: what must be right before a document can be
/// read at all. Repeated ids and references are not looked at. After some thousand errors the rest of
/// the document is not looked at either.
pub fn validate_shape(value: &Value) -> Vec<Fault> {
    let mut out = Vec::new();
    if let Some(bundle) = envelope(value, false, &mut out) {
        let root = At::base("/");
        let at_entries = root.name("entry");
        let entries = bundle.get("entry").and_then(Value::as_array).unwrap_or_default();
        for (index, entry) in entries.iter().enumerate() {
            walk::resource(entry, &at_entries.index(index), false, &mut out);
            if out.len() >= MOST_FAULTS {
                break;
            }
        }
    }
    out.retain(|fault| fault.severity() == Severity::Error);
    out
}

/// Checks the envelope; `None` if the document is no bundle.
pub(super) fn envelope<'v>(
    value: &'v Value,
    plain_r1: bool,
    out: &mut Vec<Fault>,
) -> Option<&'v Map> {
    let root = At::base("/");
    let Some(map) = value.as_object() else {
        let message = format!("a Bundle is expected, not {}", value.kind_name());
        out.push(root.fault(FaultCode::NotABundle, message));
        return None;
    };
    let kind = map.get("resourceType");
    if kind.and_then(Value::as_str) != Some("Bundle") {
        out.push(not_a_bundle(kind, &root));
        return None;
    }
    match map.get("omirVersion") {
        Some(version) if version.as_str() == Some("R1") => {}
        Some(version) => {
            let message = format!("omirVersion is {}, only \"R1\" is understood", shown(version));
            out.push(root.name("omirVersion").fault(FaultCode::BundleVersion, message));
        }
        None => {
            let message = "\"omirVersion\" is missing; add \"omirVersion\": \"R1\"";
            out.push(root.fault(FaultCode::BundleVersion, message));
        }
    }
    Walk::new(FaultCode::Envelope, out).plain(plain_r1).members(map, &BUNDLE, &root);
    Some(map)
}

fn not_a_bundle(kind: Option<&Value>, root: &At<'_>) -> Fault {
    let known = |kind: &Value| kind.as_str()?.parse::<ResourceType>().ok();
    match kind {
        None => root.fault(
            FaultCode::NotABundle,
            "\"resourceType\" is missing; a document says \"resourceType\": \"Bundle\"",
        ),
        Some(kind) => {
            let mut message = format!("resourceType is {}, expected \"Bundle\"", shown(kind));
            if known(kind).is_some() {
                message.push_str("; put the resource into the \"entry\" of a Bundle");
            }
            root.name("resourceType").fault(FaultCode::NotABundle, message)
        }
    }
}
