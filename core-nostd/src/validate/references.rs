//! Reference integrity (CR-5): what the entries refer to, and whether it is there.
//!
//! An entry may refer to one that comes later, so references wait until all names are known.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::checker::{Finding, Subject};
use super::fault::{Fault, FaultCode};
use super::names::{NONE, NameId, Names};
use super::walk::{At, id_shown};
use crate::reference::{self, Id, ResourceType};
use crate::value::{Map, Value};

/// The form in which a field holds references.
enum Holds {
    /// `{"ref": …}`.
    One,
    /// An array of those.
    Many,
    /// A bare id.
    Id,
}

/// A field that leads to another resource.
struct Field {
    holder: ResourceType,
    name: &'static str,
    holds: Holds,
    /// The type it must lead to.
    wanted: ResourceType,
}

const fn field(
    holder: ResourceType,
    name: &'static str,
    holds: Holds,
    wanted: ResourceType,
) -> Field {
    Field { holder, name, holds, wanted }
}

/// Every field CR-5 names. `interference.competesWith` is not among them.
const FIELDS: &[Field] = {
    use ResourceType::{Entity, Episode, MemoryRecord, Relationship};
    &[
        field(MemoryRecord, "entityRefs", Holds::Many, Entity),
        field(MemoryRecord, "parentId", Holds::Id, MemoryRecord),
        field(Relationship, "from", Holds::One, Entity),
        field(Relationship, "to", Holds::One, Entity),
        field(Relationship, "sourceEpisode", Holds::One, Episode),
        field(Episode, "entityRefs", Holds::Many, Entity),
    ]
};

/// One reference that waits.
struct Reference {
    target: NameId,
    entry: u32,
    /// Name of the entry, or [`NONE`] if it has no id.
    subject: NameId,
    /// Position in the array, or [`NONE`].
    item: u32,
    /// Position in [`FIELDS`].
    field: u8,
}

/// The references of a document.
#[derive(Default)]
pub(super) struct References {
    waiting: Vec<Reference>,
    resolved: usize,
}

impl References {
    /// Notes what a resource refers to. What is not shaped like a reference has been reported against
    /// the schema and is passed over.
    pub(super) fn note(
        &mut self,
        names: &mut Names,
        kind: ResourceType,
        map: &Map,
        entry: usize,
        subject: NameId,
    ) {
        let entry = u32::try_from(entry).unwrap_or(NONE);
        for (number, field) in FIELDS.iter().enumerate() {
            let Some(value) = map.get(field.name).filter(|_| field.holder == kind) else {
                continue;
            };
            let mut add = |target: Option<(ResourceType, &str)>, item: usize| {
                let Some((kind, id)) = target else { return };
                let target = names.intern(kind, id);
                if kind == field.wanted && names.is_declared(target) {
                    self.resolved += 1;
                    return;
                }
                self.waiting.push(Reference {
                    target,
                    entry,
                    subject,
                    item: u32::try_from(item).unwrap_or(NONE),
                    field: number as u8,
                });
            };
            match field.holds {
                Holds::One => add(target_of(value), 0),
                Holds::Many => {
                    let items = value.as_array().unwrap_or_default();
                    items.iter().enumerate().for_each(|(item, value)| add(target_of(value), item));
                }
                // As with a `ref` that is none, its schema has spoken.
                Holds::Id => {
                    let id = value.as_str().filter(|id| Id::check(id).is_ok());
                    add(id.map(|id| (field.wanted, id)), 0);
                }
            }
        }
    }

    /// Reports what does not lead where it must, now that all names are known; returns how many
    /// references do.
    pub(super) fn resolve(self, names: &mut Names, sink: &mut dyn FnMut(Finding)) -> usize {
        let mut resolved = self.resolved;
        for reference in &self.waiting {
            let field = &FIELDS[usize::from(reference.field)];
            let (kind, _) = names.get(reference.target);
            let (code, message) = match (names.is_declared(reference.target), kind == field.wanted)
            {
                (true, true) => {
                    resolved += 1;
                    continue;
                }
                (true, false) => {
                    let (_, id) = names.get(reference.target);
                    let wanted = field.wanted;
                    let message =
                        format!("{kind}/{id} is in this bundle, but {wanted} is expected here");
                    (FaultCode::WrongTarget, message)
                }
                (false, _) => (FaultCode::Dangling, absent(names, reference.target)),
            };
            sink(finding(reference, field, names, code, message));
        }
        resolved
    }
}

/// The resource that `{"ref": "Type/id"}` names.
pub(super) fn target_of(value: &Value) -> Option<(ResourceType, &str)> {
    value.get("ref").and_then(Value::as_str).map(reference::split)?.ok()
}

fn absent(names: &mut Names, target: NameId) -> String {
    let (kind, id) = names.get(target);
    let missing = format!("{kind}/{} is not in this bundle", id_shown(id));
    match names.nearest(kind, target) {
        Some(near) => format!("{missing}; did you mean \"{kind}/{near}\"?"),
        None => format!("{missing}; add it or drop the reference"),
    }
}

fn finding(
    reference: &Reference,
    field: &Field,
    names: &Names,
    code: FaultCode,
    message: String,
) -> Finding {
    let entry = reference.entry as usize;
    let (root, item) = (At::base("/"), reference.item as usize);
    let entries = root.name("entry");
    let at = entries.index(entry);
    let at = at.name(field.name);
    let (kind, id) = names.get(reference.target);
    let fault: Fault = match field.holds {
        Holds::One => at.name("ref").fault(code, message),
        Holds::Many => at.index(item).name("ref").fault(code, message),
        Holds::Id => at.fault(code, message),
    };
    let value = match field.holds {
        Holds::Id => Value::from(id),
        Holds::One | Holds::Many => Value::from(format!("{kind}/{id}")),
    };
    let id = (reference.subject != NONE).then(|| names.get(reference.subject).1.into());
    let subject = Subject { index: entry, resource_type: Some(field.holder.as_str().into()), id };
    Finding { fault, entry: Some(subject), value: Some(value) }
}
