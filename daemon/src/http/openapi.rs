//! `/openapi.json`: the OpenAPI document (3.1), made of the table of paths and of the tables of methods.
//!
//! | file | holds |
//! |---|---|
//! | `schemas` | the schemas of what is sent and answered |
//! | `answers`, `statuses` | answers by status, and the refusals that an endpoint may give |
//! | `exchanges` | protocols of one message and one answer each |

mod answers;
mod exchanges;
mod schemas;
mod statuses;

use hyper::Method as Verb;
use omir_core::json;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value};

use self::schemas::{
    SCHEMAS, entity_tags, in_both, is_of_parameters, object, pattern, reference, request_name,
};
use super::endpoints::{Endpoint, Serves, endpoints};
use crate::protocols::access::REVOKE;
use crate::protocols::akashik;
use crate::router::{About, Field, Method, Payload, Shape};

/// The form of `Last-Event-ID`.
const EVENT_ID: &str = "^[0-9]{1,19}(?:\\.[0-9]{1,19})?$";
/// The types of resources.
const TYPES: [&str; 4] = ["MemoryRecord", "Entity", "Relationship", "Episode"];

/// Returns the document as text.
pub(super) fn document() -> String {
    json::to_string(&Value::Object(openapi()))
}

fn openapi() -> Map {
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let verb = endpoint.verb.as_str().to_ascii_lowercase();
        if !paths.contains_key(&endpoint.path) {
            paths.insert(endpoint.path.as_str(), Map::new());
        }
        if let Some(path) = paths.get_mut(&endpoint.path).and_then(Value::as_object_mut) {
            path.insert(verb, operation(&endpoint));
        }
    }
    let security: Value = [object([("bearer", Value::Array(Vec::new()))])].into_iter().collect();
    object([
        ("openapi", "3.1.0".into()),
        ("info", info().into()),
        ("servers", [object([("url", "/".into())])].into_iter().collect()),
        ("security", security),
        ("tags", tags()),
        ("paths", paths.into()),
        (
            "components",
            object([
                ("schemas", schemas::all().into()),
                ("responses", answers::refusals().into()),
                ("securitySchemes", object([("bearer", bearer().into())]).into()),
            ])
            .into(),
        ),
    ])
}

fn info() -> Map {
    object([
        ("title", "omird".into()),
        ("summary", "A memory daemon for robots".into()),
        (
            "description",
            "The operations of docs/keys.md over HTTP. Bodies and answers are JSON, or CBOR with the same members."
                .into(),
        ),
        ("version", env!("CARGO_PKG_VERSION").into()),
        (
            "license",
            object([
                ("name", env!("CARGO_PKG_LICENSE").into()),
                ("identifier", env!("CARGO_PKG_LICENSE").into()),
            ])
            .into(),
        ),
    ])
}

fn bearer() -> Map {
    object([
        ("type", "http".into()),
        ("scheme", "bearer".into()),
        (
            "description",
            "A token of `omir token add`, or a JWT. The socket in the data folder needs none."
                .into(),
        ),
    ])
}

fn tags() -> Value {
    let tag =
        |name: &str, about: &str| object([("name", name.into()), ("description", about.into())]);
    [
        tag("memory", "What is remembered"),
        tag("store", "The store"),
        tag("access", "Who may do what"),
        tag("daemon", "The daemon"),
    ]
    .into_iter()
    .chain(exchanges::tags().map(|(name, about)| tag(name, about)))
    .collect()
}

/// One verb on a path.
fn operation(endpoint: &Endpoint) -> Map {
    let Endpoint { verb, serves, .. } = endpoint;
    if let Serves::Exchange(row) = serves {
        return exchanges::operation(endpoint, row);
    }
    let row = serves.row();
    let about = row.map_or(About::NOTHING, |row| row.about);
    let mut map = Map::new();
    map.insert("operationId", name(*serves, verb));
    map.insert("tags", [tag(*serves)].into_iter().collect::<Value>());
    map.insert("summary", summary(*serves, about));
    if let Some(row) = row {
        let scope = row.scope;
        map.insert("description", format!("Needs the scope `{scope}`."));
    }
    if serves.is_open() {
        map.insert("security", Value::Array(Vec::new()));
    }
    let has_body = verb != Verb::GET && verb != Verb::DELETE;
    let mut parameters = path_parameters(*serves);
    // Beside resources they stand in the query; else in the body, where there is one, or in the path.
    if parameters.is_empty() && (!has_body || !about.payload.is_empty()) {
        parameters.extend(about.parameters.iter().map(query_parameter));
    }
    parameters.extend(headers(*serves));
    if !parameters.is_empty() {
        map.insert("parameters", parameters.into_iter().collect::<Value>());
    }
    if has_body
        && let Some(row) = row
        && let Some(body) = body(row)
    {
        map.insert("requestBody", body);
    }
    let mut responses = answers::of(*serves, has_body);
    if matches!(serves, Serves::Notifications | Serves::NotificationSocket) {
        // A protocol refuses in its own form, also where it streams.
        for (status, refused) in exchanges::responses(&akashik::EVENTS) {
            if status != "200" {
                responses.insert(status, refused);
            }
        }
    }
    map.insert("responses", responses);
    map
}

/// The name of a function in a generated client: that of the operation, and for its GET `…ByQuery`.
fn name(serves: Serves, verb: &Verb) -> String {
    match serves {
        Serves::Operation(operation) if verb == Verb::GET => format!("{operation}ByQuery"),
        Serves::Operation(operation) => operation.to_string(),
        Serves::Read => "getMemory".to_owned(),
        Serves::Store => "putMemory".to_owned(),
        Serves::Forget => "deleteMemory".to_owned(),
        Serves::Events => "events".to_owned(),
        Serves::Notifications => "akashikEvents".to_owned(),
        Serves::NotificationSocket => "akashikSocket".to_owned(),
        Serves::Clock if verb == Verb::POST => "postClock".to_owned(),
        Serves::Clock => "putClock".to_owned(),
        Serves::Tokens => "listTokens".to_owned(),
        Serves::AddToken => "addToken".to_owned(),
        Serves::RevokeToken => "revokeToken".to_owned(),
        Serves::Exchange(row) => row.name.to_owned(),
        Serves::Live => "isLive".to_owned(),
        Serves::Ready => "isReady".to_owned(),
        Serves::Metrics => "metrics".to_owned(),
        Serves::Document => "openapi".to_owned(),
    }
}

fn tag(serves: Serves) -> &'static str {
    match serves {
        Serves::Operation(
            Operation::Compact | Operation::Sweep | Operation::Backup | Operation::Prove,
        ) => "store",
        Serves::Operation(Operation::Status) => "daemon",
        Serves::Operation(_) | Serves::Read | Serves::Store | Serves::Forget | Serves::Events => {
            "memory"
        }
        Serves::Tokens | Serves::AddToken | Serves::RevokeToken => "access",
        Serves::Exchange(row) => row.protocol,
        Serves::Notifications | Serves::NotificationSocket => akashik::EVENTS.protocol,
        Serves::Clock | Serves::Live | Serves::Ready | Serves::Metrics | Serves::Document => {
            "daemon"
        }
    }
}

fn summary(serves: Serves, about: &'static About) -> &'static str {
    match serves {
        Serves::Live => "Says that the daemon lives.",
        Serves::Ready => "Says whether the daemon can store and find memories now.",
        Serves::Metrics => "Gives counts and measures, for Prometheus.",
        Serves::Document => "Gives this document.",
        Serves::NotificationSocket => {
            "Notifications over a WebSocket: each message is one, as JSON."
        }
        _ => about.summary,
    }
}

fn path_parameters(serves: Serves) -> Vec<Map> {
    let parameter = |name: &str, about: &str, schema: Map| {
        object([
            ("name", name.into()),
            ("in", "path".into()),
            ("required", true.into()),
            ("description", about.into()),
            ("schema", schema.into()),
        ])
    };
    match serves {
        Serves::Read | Serves::Store | Serves::Forget => {
            let types = Shape::OneOf(&TYPES).schema(SCHEMAS);
            vec![
                parameter("type", "The type of the resource.", types),
                parameter("id", "Its id.", reference("Id")),
            ]
        }
        Serves::RevokeToken => {
            let of_path = |one: &Field| parameter(one.name, one.about, one.shape.schema(SCHEMAS));
            REVOKE.about.parameters.iter().map(of_path).collect()
        }
        _ => Vec::new(),
    }
}

fn query_parameter(parameter: &Field) -> Map {
    object([
        ("name", parameter.name.into()),
        ("in", "query".into()),
        ("required", parameter.is_required.into()),
        ("description", parameter.about.into()),
        ("schema", parameter.shape.text_schema(SCHEMAS).into()),
    ])
}

fn headers(serves: Serves) -> Vec<Map> {
    let header = |name: &str, about: &str, schema: Map| {
        object([
            ("name", name.into()),
            ("in", "header".into()),
            ("required", false.into()),
            ("description", about.into()),
            ("schema", schema.into()),
        ])
    };
    let matches = |about| header("If-Match", about, entity_tags());
    let none_match = |about| header("If-None-Match", about, entity_tags());
    match serves {
        Serves::Read => vec![
            none_match("The version that is known: 304 if it is that still."),
            matches("The version that is expected, else 412."),
        ],
        Serves::Store => vec![
            matches("Stores only if this is the version, else 412."),
            none_match("`*`: stores only if nothing is stored under the name, else 412."),
        ],
        Serves::Forget => vec![matches("Forgets only if this is the version, else 412.")],
        Serves::Events => vec![header(
            "Last-Event-ID",
            "The id of the last event that was heard: the stream goes on behind it.",
            pattern(EVENT_ID),
        )],
        _ => Vec::new(),
    }
}

/// The body of a request: resources, or the parameters by name.
fn body(row: &'static Method) -> Option<Map> {
    let about = row.about;
    let (schema, is_required) = if !about.payload.is_empty() {
        // The step of a rebase that is taken back needs no keyframes.
        (reference(about.payload), about.parameters.iter().all(|one| one.name != "undo"))
    } else if is_of_parameters(about) {
        let is_required = about.parameters.iter().any(|parameter| parameter.is_required);
        (reference(&request_name(row)), is_required)
    } else {
        return None;
    };
    let description = match row.payload {
        Payload::Resources => "What is stored.",
        Payload::Parameters | Payload::None | Payload::Message(_) => {
            "The parameters by name. They may stand in the query as well, which wins."
        }
    };
    Some(object([
        ("description", description.into()),
        ("required", is_required.into()),
        ("content", in_both(schema).into()),
    ]))
}

#[cfg(test)]
mod tests;
