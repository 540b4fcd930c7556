//! The one validator: what conforms to OMIR R1, and every reason why a document does not.
//!
//! It looks at dynamic values, driven by static tables that say what the JSON Schemas of the
//! specification say, and covers the document rules CR-1 to CR-8. Files, requests over the
//! network and the typed model all pass through here, so there is one answer to "is this valid".

mod bundle;
mod checker;
mod edges;
mod fault;
mod names;
mod references;
mod schema;
mod suggest;
mod uri;
mod walk;

pub use bundle::{validate_bundle, validate_shape};
pub use checker::{
    Checker, DocumentKind, Entries, Finding, Options, Subject, Summary, check_document,
};
pub use fault::{Fault, FaultCode, Level, Severity};
pub use suggest::closest;
pub use uri::is_absolute_uri;

pub(crate) use schema::{BUNDLE, Field, Range, Shape, Table, closed, may, need, resource};
pub(crate) use walk::{At, Walk};

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use crate::pointer;
use crate::reference::ResourceType;
use crate::value::Value;

/// Checks one resource that stands at `pointer` (`/` for a document of its own) and appends what is
/// wrong with it: not an object (E100), no known type (E101), against its schema (E120), metadata
/// without the release (E301). References are not resolved. At most a thousand faults are listed.
pub fn validate_resource(value: &Value, pointer: &str, out: &mut Vec<Fault>) {
    walk::resource(value, &At::base(pointer), false, out);
}

/// Names of the draft fields (`x-omir-maturity: 0`) a resource of that type may carry. Releases of R1
/// without the drafts refuse them.
pub fn draft_fields(kind: ResourceType) -> impl Iterator<Item = &'static str> {
    schema::resource(kind).fields.iter().filter(|field| field.draft).map(|field| field.name)
}

/// A document that the validator accepted and the typed model did not. The tables and the structs say the same, so
/// this is a bug in one of them, reported as a fault rather than a panic.
pub(crate) fn disagreement(base: &str, error: &dyn fmt::Display) -> Fault {
    Fault::new(
        pointer::displayed(base),
        FaultCode::Schema,
        format!("the resource cannot be read: {error}"),
    )
}

#[cfg(test)]
mod tests;
