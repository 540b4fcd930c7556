//! `/openapi.json`: the OpenAPI document (3.1), made of the table of paths and of the tables of methods.

mod exchanges;
mod statuses;

use hyper::Method as Verb;
use omir_core::json;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value};

use self::statuses::{Answered, Status};
use super::endpoints::{Endpoint, Serves, endpoints};
use crate::protocols::access::{self, REVOKE};
use crate::protocols::omir::schemas;
use crate::router::{About, Kind, Method, Parameter, Payload};

/// The place of schemas in the document.
const SCHEMAS: &str = "#/components/schemas/";
const JSON: &str = "application/json";
const CBOR: &str = "application/cbor";
/// The form of `Last-Event-ID`.
const EVENT_ID: &str = "^[0-9]{1,19}(?:\\.[0-9]{1,19})?$";
/// The types of resources.
const TYPES: [&str; 4] = ["MemoryRecord", "Entity", "Relationship", "Episode"];
/// The schema of a sign of health.
const HEALTH: &str = "Health";

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
    let mut all_schemas = schemas(SCHEMAS);
    for (name, schema) in access::schemas().into_iter().chain(exchanges::schemas()) {
        all_schemas.insert(name, schema);
    }
    let with_body = endpoints().into_iter().filter(|one| one.verb == Verb::POST);
    for row in with_body.filter_map(|endpoint| endpoint.serves.row()) {
        if !matches!(row.payload, Payload::Message(_)) && is_of_parameters(row.about) {
            all_schemas.insert(request_name(row), members(row.about));
        }
    }
    all_schemas.insert(HEALTH, health());
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
                ("schemas", all_schemas.into()),
                ("responses", statuses::responses().into()),
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
    map.insert("responses", responses(*serves, has_body));
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
        Serves::Operation(Operation::Compact | Operation::Sweep | Operation::Backup) => "store",
        Serves::Operation(Operation::Status) => "daemon",
        Serves::Operation(_) | Serves::Read | Serves::Store | Serves::Forget | Serves::Events => {
            "memory"
        }
        Serves::Tokens | Serves::AddToken | Serves::RevokeToken => "access",
        Serves::Exchange(row) => row.protocol,
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
            let types = as_value(Kind::OneOf(&TYPES));
            vec![
                parameter("type", "The type of the resource.", types),
                parameter("id", "Its id.", reference("Id")),
            ]
        }
        Serves::RevokeToken => {
            let of_path = |one: &Parameter| parameter(one.name, one.about, as_value(one.kind));
            REVOKE.about.parameters.iter().map(of_path).collect()
        }
        _ => Vec::new(),
    }
}

fn query_parameter(parameter: &Parameter) -> Map {
    object([
        ("name", parameter.name.into()),
        ("in", "query".into()),
        ("required", parameter.is_required.into()),
        ("description", parameter.about.into()),
        ("schema", as_text(parameter.kind).into()),
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
    let matches = |about| header("If-Match", about, tags_or_any());
    let none_match = |about| header("If-None-Match", about, tags_or_any());
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

/// `*`, or entity tags, which are versions in quotes.
fn tags_or_any() -> Map {
    pattern("^(?:\\*|\"[0-9]{1,19}\"(?: ?, ?\"[0-9]{1,19}\")*)$")
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

/// Returns true if a body is an object of parameters.
fn is_of_parameters(about: &About) -> bool {
    about.payload.is_empty() && !about.parameters.is_empty()
}

/// The name of the schema of a body that is an object of parameters, such as `RecallRequest`.
fn request_name(row: &Method) -> String {
    let (first, rest) = row.name.split_at(1);
    let of = if row.protocol == "access" { "Token" } else { "" };
    format!("{}{rest}{of}Request", first.to_ascii_uppercase())
}

/// An object of the parameters of a method.
fn members(about: &'static About) -> Map {
    let property = |parameter: &Parameter| {
        let mut schema = as_value(parameter.kind);
        schema.insert("description", parameter.about);
        (parameter.name, schema)
    };
    let required = about.parameters.iter().filter(|parameter| parameter.is_required);
    let required: Value = required.map(|parameter| parameter.name).collect();
    let mut schema = object([
        ("type", "object".into()),
        ("properties", about.parameters.iter().map(property).collect::<Map>().into()),
        ("additionalProperties", false.into()),
    ]);
    if required.as_array().is_some_and(|names| !names.is_empty()) {
        schema.insert("required", required);
    }
    schema
}

/// The schema of a parameter in a query, where it is text.
fn as_text(kind: Kind) -> Map {
    let joined = |one: &str| pattern(&format!("^{one}(?:,{one})*$"));
    match kind {
        Kind::ListOf(words) => joined(&format!("(?:{})", words.join("|"))),
        Kind::List(form) => joined(form.trim_start_matches('^').trim_end_matches('$')),
        Kind::Numbers { least, most } => {
            let number = "-?[0-9]{1,9}(?:\\.[0-9]{1,9})?";
            let more = match (least.saturating_sub(1), most.saturating_sub(1)) {
                (least, most) if least == most => format!("{{{least}}}"),
                (least, most) => format!("{{{least},{most}}}"),
            };
            pattern(&format!("^{number}(?:,{number}){more}$"))
        }
        kind => as_value(kind),
    }
}

/// The schema of a parameter in a body.
fn as_value(kind: Kind) -> Map {
    let list = |items: Map| {
        object([("type", "array".into()), ("items", items.into()), ("minItems", 1.into())])
    };
    match kind {
        Kind::Text => object([("type", "string".into())]),
        Kind::Pattern(form) => pattern(form),
        Kind::Instant => reference("Instant"),
        Kind::Number { least, most } => {
            let mut schema = object([("type", "number".into())]);
            if least == f64::MIN_POSITIVE {
                schema.insert("exclusiveMinimum", 0);
            } else if least > f64::MIN {
                schema.insert("minimum", least);
            }
            if most < f64::MAX {
                schema.insert("maximum", most);
            }
            schema
        }
        Kind::Integer { least, most } => {
            let mut schema = object([("type", "integer".into()), ("minimum", least.into())]);
            schema.insert("maximum", most);
            schema
        }
        Kind::Flag => object([("type", "boolean".into())]),
        Kind::OneOf(words) => {
            object([("type", "string".into()), ("enum", words.iter().copied().collect())])
        }
        Kind::ListOf(words) => list(as_value(Kind::OneOf(words))),
        Kind::List(form) => list(pattern(form)),
        Kind::Numbers { least, most } => {
            let mut schema = list(object([("type", "number".into())]));
            schema.insert("minItems", least as u64);
            schema.insert("maxItems", most as u64);
            schema
        }
    }
}

/// The answers by status.
fn responses(serves: Serves, has_body: bool) -> Map {
    let mut map = Map::new();
    for (status, answer) in answers(serves) {
        map.insert(status, answer);
    }
    for status in statuses::refusals(serves, has_body) {
        let Status { number, name, .. } = status;
        map.insert(
            number.to_string(),
            object([("$ref", format!("#/components/responses/{name}").into())]),
        );
    }
    map
}

/// What is answered where nothing is refused.
fn answers(serves: Serves) -> Vec<(&'static str, Map)> {
    let about = serves.row().map_or(About::NOTHING, |row| row.about);
    let told = |text: &str| Answered::new(text).content(in_both(reference(about.response)));
    let text = |media: &str, about: &str| {
        Answered::new(about).content(object([(
            media,
            object([("schema", object([("type", "string".into())]).into())]).into(),
        )]))
    };
    let health =
        |about: &str| Answered::new(about).content(object([(JSON, schema_of(reference(HEALTH)))]));
    let etag = "The version of the resource, in quotes.";
    match serves {
        Serves::Operation(Operation::Backup) => {
            let bytes = object([("type", "string".into()), ("format", "binary".into())]);
            let mut content = in_both(reference(about.response));
            content.insert("application/octet-stream", schema_of(bytes));
            vec![("200", Answered::new("The list, or bytes of a segment.").content(content).into())]
        }
        Serves::Operation(Operation::Export) => {
            let left_out =
                "Names what the card did not give back, as JSON; missing if all is there.";
            vec![("200", told("The Bundle.").header("Omir-Left-Out", left_out).into())]
        }
        Serves::Operation(_) | Serves::Clock | Serves::Tokens | Serves::RevokeToken => {
            vec![("200", told("Done.").into())]
        }
        Serves::AddToken => {
            let place = "The list of the tokens.";
            vec![("201", told("Added.").header("Location", place).into())]
        }
        Serves::Read => vec![
            ("200", told("The resource.").header("ETag", etag).into()),
            (
                "304",
                Answered::new("The version is the one that is known.").header("ETag", etag).into(),
            ),
        ],
        Serves::Store => vec![
            ("200", told("Updated, or the same already.").header("ETag", etag).into()),
            ("201", told("Stored for the first time.").header("ETag", etag).into()),
        ],
        Serves::Forget => vec![("200", told("Forgotten, if it was there.").into())],
        Serves::Events => {
            let about = "Server-sent events: the name of an event is its kind, its data an `Event` as JSON.";
            vec![("200", text("text/event-stream", about).into())]
        }
        Serves::Exchange(_) => Vec::new(),
        Serves::Live => vec![("200", health("It lives.").into())],
        Serves::Ready => vec![
            ("200", health("It is ready.").into()),
            ("503", health("It is not, for these reasons.").into()),
        ],
        Serves::Metrics => {
            let media = "application/openmetrics-text";
            vec![("200", text(media, "OpenMetrics text, version 1.0.0.").into())]
        }
        Serves::Document => {
            let any = object([("type", "object".into())]);
            let content = object([(JSON, schema_of(any))]);
            vec![("200", Answered::new("This document.").content(content).into())]
        }
    }
}

/// The state of the daemon, for who watches it.
fn health() -> Map {
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

/// The same schema in each encoding.
fn in_both(schema: Map) -> Map {
    object([(JSON, schema_of(schema.clone())), (CBOR, schema_of(schema))])
}

fn schema_of(schema: Map) -> Value {
    object([("schema", schema.into())]).into()
}

fn pattern(form: &str) -> Map {
    object([("type", "string".into()), ("pattern", form.into())])
}

fn reference(name: &str) -> Map {
    object([("$ref", format!("{SCHEMAS}{name}").into())])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().collect()
}

#[cfg(test)]
mod tests;
