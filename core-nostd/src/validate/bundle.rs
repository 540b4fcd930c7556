//! Whole documents: the envelope, its entries, and what holds between them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::fault::{Fault, FaultCode, Level, Severity};
use super::schema::BUNDLE;
use super::walk::{self, At, MOST_FAULTS, Walk, shown};
use crate::reference::{self, ResourceType};
use crate::value::{Map, Value};

/// Everything there is to say about a document: envelope, entries, repeated ids, references, metadata.
///
/// The document conforms at `level` if no fault has the severity of an error. A document that is no
/// bundle at all gets that one fault only.
pub fn validate_bundle(value: &Value, level: Level) -> Vec<Fault> {
    let mut out = Vec::new();
    let Some(bundle) = envelope(value, &mut out) else {
        return out;
    };
    let entries = bundle.get("entry").and_then(Value::as_array).unwrap_or_default();
    let root = At::base("/");
    let at_entries = root.name("entry");

    let mut names = Names::new();
    let mut kinds = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let at = at_entries.index(index);
        let kind = walk::resource(entry, &at, &mut out);
        if let (Some(kind), Some(id)) = (kind, entry.get("id").and_then(Value::as_str)) {
            names.declare(kind, id, index, level, &at, &mut out);
        }
        if kind.is_some() && entry.get("meta").is_none() {
            let code = match level {
                Level::Core => FaultCode::MetaAbsent,
                Level::Strict => FaultCode::MetaRequired,
            };
            out.push(at.fault(code, "no \"meta\"; add \"meta\": {\"omirVersion\": \"R1\"}"));
        }
        kinds.push(kind);
    }
    for (index, (entry, kind)) in entries.iter().zip(kinds).enumerate() {
        if let (Some(kind), Some(map)) = (kind, entry.as_object()) {
            names.resolve(kind, map, &at_entries.index(index), &mut out);
        }
    }
    out
}

/// The errors in envelope and entries, each for itself: what must be right before a document can be
/// read at all. Repeated ids and references are not looked at. After some thousand errors the rest of
/// the document is not looked at either.
pub fn validate_shape(value: &Value) -> Vec<Fault> {
    let mut out = Vec::new();
    if let Some(bundle) = envelope(value, &mut out) {
        let root = At::base("/");
        let at_entries = root.name("entry");
        let entries = bundle.get("entry").and_then(Value::as_array).unwrap_or_default();
        for (index, entry) in entries.iter().enumerate() {
            walk::resource(entry, &at_entries.index(index), &mut out);
            if out.len() >= MOST_FAULTS {
                break;
            }
        }
    }
    out.retain(|fault| fault.severity() == Severity::Error);
    out
}

/// Checks the envelope; `None` if the document is no bundle.
fn envelope<'v>(value: &'v Value, out: &mut Vec<Fault>) -> Option<&'v Map> {
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
    Walk::new(FaultCode::Envelope, out).members(map, &BUNDLE, &root);
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

/// How a field holds references.
enum Holds {
    /// `{"ref": …}`.
    One,
    /// An array of those.
    Many,
    /// A bare id.
    Id,
}

/// Every field CR-5 names: the type that has it, what it holds, and the type it must lead to.
/// `interference.competesWith` is not among them.
const REFERENCE_FIELDS: &[(ResourceType, &str, Holds, ResourceType)] = {
    use ResourceType::{Entity, Episode, MemoryRecord, Relationship};
    &[
        (MemoryRecord, "entityRefs", Holds::Many, Entity),
        (MemoryRecord, "parentId", Holds::Id, MemoryRecord),
        (Relationship, "from", Holds::One, Entity),
        (Relationship, "to", Holds::One, Entity),
        (Relationship, "sourceEpisode", Holds::One, Episode),
        (Episode, "entityRefs", Holds::Many, Entity),
    ]
};

/// The resources of a document by name, with the position of the first that bears it.
struct Names<'v>(BTreeMap<(ResourceType, &'v str), usize>);

impl<'v> Names<'v> {
    fn new() -> Self {
        Self(BTreeMap::new())
    }

    fn declare(
        &mut self,
        kind: ResourceType,
        id: &'v str,
        index: usize,
        level: Level,
        at: &At<'_>,
        out: &mut Vec<Fault>,
    ) {
        let first = *self.0.entry((kind, id)).or_insert(index);
        if first != index {
            let message = format!(
                "{kind}/{id} is already the id of /entry/{first}; ids are unique within a type"
            );
            out.push(at.name("id").fault(FaultCode::DuplicateId, message).at_level(level));
        }
    }

    /// Checks every reference of one resource. What is not shaped like a reference has been reported
    /// against the schema and is passed over.
    fn resolve(&self, kind: ResourceType, map: &Map, at: &At<'_>, out: &mut Vec<Fault>) {
        for (holder, field, holds, wanted) in REFERENCE_FIELDS {
            if *holder != kind {
                continue;
            }
            let Some(value) = map.get(field) else {
                continue;
            };
            let at = at.name(field);
            match holds {
                Holds::One => self.reference(value, *wanted, &at, out),
                Holds::Many => {
                    let items = value.as_array().unwrap_or_default();
                    for (index, item) in items.iter().enumerate() {
                        self.reference(item, *wanted, &at.index(index), out);
                    }
                }
                Holds::Id => {
                    if let Some(id) = value.as_str()
                        && !self.0.contains_key(&(*wanted, id))
                    {
                        out.push(at.fault(FaultCode::Dangling, absent(*wanted, id)));
                    }
                }
            }
        }
    }

    fn reference(&self, value: &Value, wanted: ResourceType, at: &At<'_>, out: &mut Vec<Fault>) {
        let text = value.get("ref").and_then(Value::as_str);
        let Some(Ok((kind, id))) = text.map(reference::split) else {
            return;
        };
        let at = at.name("ref");
        if !self.0.contains_key(&(kind, id)) {
            out.push(at.fault(FaultCode::Dangling, absent(kind, id)));
        } else if kind != wanted {
            let message = format!("{kind}/{id} is in this bundle, but {wanted} is expected here");
            out.push(at.fault(FaultCode::WrongTarget, message));
        }
    }
}

fn absent(kind: ResourceType, id: &str) -> String {
    format!("{kind}/{id} is not in this bundle; add it or drop the reference")
}
