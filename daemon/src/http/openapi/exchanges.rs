//! Protocols of one message and one answer each in the document: made of their descriptions.

use hyper::Method as Verb;
use omir_core::value::{Map, Value};

use super::super::endpoints::Endpoint;
use super::answers::{self, Answered};
use super::query_parameter;
use super::schemas::{JSON, SCHEMAS, object, reference, schema_of};
use super::statuses::ALL;
use crate::protocols::Protocols;
use crate::router::{Description, Field, Method, Payload, Scope};

/// Returns their schemas by name.
pub(super) fn schemas() -> impl Iterator<Item = (String, Value)> {
    Protocols::DESCRIPTIONS.iter().flat_map(|known| (known.schemas)(SCHEMAS))
}

/// Returns their tags: one for each protocol.
pub(super) fn tags() -> impl Iterator<Item = (&'static str, &'static str)> {
    Protocols::DESCRIPTIONS.iter().map(|known| (known.protocol.name, known.about))
}

/// Returns one verb on a path.
pub(super) fn operation(endpoint: &Endpoint, row: &'static Method) -> Map {
    let about = row.about;
    let mut map = Map::new();
    map.insert("operationId", name(row));
    map.insert("tags", [row.protocol].into_iter().collect::<Value>());
    map.insert("summary", about.summary);
    if row.scope == Scope::OPEN {
        map.insert("security", Value::Array(Vec::new()));
    } else {
        map.insert("description", format!("Needs the scope `{}`.", row.scope));
    }
    let parameters: Vec<Map> =
        about.parameters.iter().map(|known| parameter(known, &endpoint.path)).collect();
    if !parameters.is_empty() {
        map.insert("parameters", parameters.into_iter().collect::<Value>());
    }
    if matches!(row.payload, Payload::Message(_)) && endpoint.verb != Verb::GET {
        let content = object([(JSON, schema_of(reference(about.payload)))]);
        let body = object([("required", true.into()), ("content", content.into())]);
        map.insert("requestBody", body);
    }
    map.insert("responses", responses(row));
    map
}

/// Returns the name of a function in a generated client, such as `experienceRecord`.
fn name(row: &Method) -> String {
    let mut name = row.protocol.to_owned();
    for word in row.name.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// A parameter, which the path names in braces, or else the query.
fn parameter(known: &Field, path: &str) -> Map {
    if !path.contains(&format!("{{{}}}", known.name)) {
        return query_parameter(known);
    }
    object([
        ("name", known.name.into()),
        ("in", "path".into()),
        ("required", true.into()),
        ("description", known.about.into()),
        ("schema", known.shape.schema(SCHEMAS).into()),
    ])
}

/// Returns the answers of a row by status: those of its protocol, and those before it.
pub(super) fn responses(row: &'static Method) -> Map {
    let description = |known: &&&Description| known.protocol.name == row.protocol;
    let known = Protocols::DESCRIPTIONS.iter().find(description);
    let of_protocol = known.map_or(&[][..], |known| (known.answers)(row));
    let mut map = Map::new();
    for &(status, schema) in of_protocol {
        let about = ALL.iter().find(|known| known.number == status);
        let mut answer = Answered::new(about.map_or("Done.", |known| known.about));
        if !schema.is_empty() {
            answer = answer.content(object([(JSON, schema_of(reference(schema)))]));
        }
        map.insert(status.to_string(), Map::from(answer));
    }
    // Those that a protocol need not know of: of the connection, or in its own form of an error.
    let has_body = matches!(row.payload, Payload::Message(_));
    for known in ALL.iter().filter(|known| may_give(row, has_body, known.number)) {
        let number = known.number.to_string();
        if map.contains_key(&number) {
            continue;
        }
        let answer = if OF_CONNECTION.contains(&known.number) {
            answers::response(known.name)
        } else {
            Map::from(Answered::new(known.about))
        };
        map.insert(number, answer);
    }
    map
}

/// Refusals before a request comes to its protocol: the path is too long, the host is another.
const OF_CONNECTION: [u16; 2] = [414, 421];

/// Returns true if the transport refuses requests of this row so.
fn may_give(row: &Method, has_body: bool, status: u16) -> bool {
    match status {
        400 | 403 | 413 | 414 | 421 | 500 | 503 => true,
        401 | 429 => row.scope != Scope::OPEN,
        408 | 415 => has_body,
        _ => false,
    }
}
