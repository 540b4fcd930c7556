//! The schemas of the document: those of the protocols, and of bodies that are objects of parameters.

use hyper::Method as Verb;
use omir_core::value::{Map, Value};

use super::super::endpoints::endpoints;
use super::exchanges;
use crate::protocols::access;
use crate::protocols::omir::schemas;
use crate::router::field::object_schema;
use crate::router::{About, Method, Payload};

/// The place of schemas in the document.
pub(super) const SCHEMAS: &str = "#/components/schemas/";
pub(super) const JSON: &str = "application/json";
const CBOR: &str = "application/cbor";
/// The schema of a sign of health.
const HEALTH: &str = "Health";

/// Returns all schemas by name.
pub(super) fn all() -> Map {
    let mut all = schemas(SCHEMAS);
    all.insert(HEALTH, sign_of_health());
    for (name, schema) in access::schemas().into_iter().chain(exchanges::schemas()) {
        debug_assert!(all.get(&name).is_none(), "two schemas are called {name}");
        all.insert(name, schema);
    }
    let with_body = endpoints().into_iter().filter(|one| one.verb == Verb::POST);
    for row in with_body.filter_map(|endpoint| endpoint.serves.row()) {
        if !matches!(row.payload, Payload::Message(_)) && is_of_parameters(row.about) {
            all.insert(request_name(row), object_schema(row.about.parameters, true, SCHEMAS));
        }
    }
    all
}

/// Returns true if a body is an object of parameters.
pub(super) fn is_of_parameters(about: &About) -> bool {
    about.payload.is_empty() && !about.parameters.is_empty()
}

/// The name of the schema of a body that is an object of parameters, such as `RecallRequest`.
pub(super) fn request_name(row: &Method) -> String {
    let (first, rest) = row.name.split_at(1);
    let of = if row.protocol == "access" { "Token" } else { "" };
    format!("{}{rest}{of}Request", first.to_ascii_uppercase())
}

/// The state of the daemon, for monitors.
fn sign_of_health() -> Map {
    let reasons = object([
        ("description", "Why it is not ready; for people".into()),
        ("type", "array".into()),
        ("items", object([("type", "string".into())]).into()),
    ]);
    let states = ["live", "ready", "unready"];
    let status = object([("type", "string".into()), ("enum", states.into_iter().collect())]);
    object([
        ("description", "A sign of life".into()),
        ("type", "object".into()),
        ("properties", object([("status", status.into()), ("reasons", reasons.into())]).into()),
        ("required", ["status", "reasons"].into_iter().collect()),
    ])
}

/// Returns the content of an answer about the health of the daemon.
pub(super) fn health() -> Map {
    in_json(reference(HEALTH))
}

/// Returns the content of an answer that is JSON of any members.
pub(super) fn any_json() -> Map {
    in_json(object([("type", "object".into())]))
}

fn in_json(schema: Map) -> Map {
    object([(JSON, schema_of(schema))])
}

/// The same schema in each encoding.
pub(super) fn in_both(schema: Map) -> Map {
    object([(JSON, schema_of(schema.clone())), (CBOR, schema_of(schema))])
}

pub(super) fn schema_of(schema: Map) -> Value {
    object([("schema", schema.into())]).into()
}

/// `*`, or entity tags, which are versions in quotes.
pub(super) fn entity_tags() -> Map {
    pattern("^(?:\\*|\"[0-9]{1,19}\"(?: ?, ?\"[0-9]{1,19}\")*)$")
}

pub(super) fn pattern(form: &str) -> Map {
    object([("type", "string".into()), ("pattern", form.into())])
}

pub(super) fn reference(name: &str) -> Map {
    object([("$ref", format!("{SCHEMAS}{name}").into())])
}

pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().collect()
}
