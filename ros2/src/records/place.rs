//! A place in a request: places in resources and parameters, which the memory knows by the names of
//! OMIR and `docs/keys.md`, as the fields of the message that brought them.

use omir_core::json;
use omir_core::operation::Operation;
use omir_core::pointer;
use omir_core::value::Value as Json;

use super::Records;
use super::field::{Codec, Row, read};
use super::manifest::is_manifest;
use super::resource::{limits, rest_of};
use super::tables::{FILTER, TABLES, Table};
use crate::message::{Message, Value};

/// Fields of a `Remember` request, in the order in which they are stored. Each has the table of its type.
pub(super) const BROUGHT: [&str; 4] = ["records", "entities", "relationships", "episodes"];

/// Parameters under another name than their field.
const RENAMED: [(&str, &str); 3] = [("ref", "refs"), ("touch", "untouched"), ("dryRun", "dry_run")];

impl Records {
    /// The JSON Pointer into the request, by the names of its fields, of what a refusal by the memory points at.
    pub fn place(&self, operation: Operation, request: &Message, path: &str) -> String {
        let tokens: Vec<String> = pointer::tokens(path).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let Some((first, rest)) = tokens.split_first() else { return String::new() };
        match operation {
            Operation::Remember => match first.parse() {
                Ok(index) => brought(request, index, rest),
                Err(_) => joined("", &tokens),
            },
            Operation::Recall | Operation::Export => {
                let filter = request.message("filter");
                let found = filter.and_then(|filter| in_filter(filter, first, rest));
                found.map_or_else(|| parameter(request, &tokens), |found| format!("/filter{found}"))
            }
            Operation::Rebase if *first == "keyframes" => keyframe(request, rest),
            _ => parameter(request, &tokens),
        }
    }
}

/// A place in the resource of this index, of all that a `Remember` brings.
fn brought(request: &Message, mut index: usize, rest: &[&str]) -> String {
    for (field, table) in BROUGHT.into_iter().zip(&TABLES) {
        let all = request.list(field).unwrap_or_default();
        match all.get(index).and_then(Value::as_message) {
            Some(message) => {
                let place = pointer::join_index(&format!("/{field}"), index);
                return place + &in_resource(message, table, rest);
            }
            None => index = index.saturating_sub(all.len()),
        }
    }
    let text = request.text("json").unwrap_or_default();
    let place = match json::from_slice(text.as_bytes(), &limits()) {
        Ok(Json::Array(_)) => pointer::join_index("/json", index),
        Ok(Json::Object(map)) if map.contains_key("entry") => {
            let entries = map.get("entry").and_then(Json::as_array).unwrap_or_default();
            let mut brought = entries.iter().enumerate().filter(|(_, entry)| !is_manifest(entry));
            let at = brought.nth(index).map_or(index, |(at, _)| at);
            pointer::join_index("/json/entry", at)
        }
        _ => "/json".to_owned(),
    };
    joined(&place, rest)
}

/// A place in a resource: the field that holds it, or a place in the field `json`.
fn in_resource(message: &Message, table: &Table, tokens: &[&str]) -> String {
    let over = rest_of(message).unwrap_or_default();
    let in_json = tokens.split_first().and_then(|(first, rest)| {
        rest.iter().try_fold(over.get(first)?, |value, name| match value {
            Json::Array(items) => items.get(name.parse::<usize>().ok()?),
            other => other.get(name),
        })
    });
    if let (true, ["extension", index, rest @ ..]) = (table.pose, tokens) {
        let items = over.get("extension").and_then(Json::as_array).unwrap_or_default();
        let of_field = items.iter().position(Json::is_null).unwrap_or(items.len());
        if index.parse() == Ok(of_field) {
            return in_pose(rest);
        }
    }
    match field_of(message, table.rows, tokens) {
        Some((field, is_said)) if is_said || in_json.is_none() => field,
        _ => joined("/json", tokens),
    }
}

/// The field of a value and the rest of the way in it, and whether it says anything.
fn field_of(message: &Message, rows: &[Row], tokens: &[&str]) -> Option<(String, bool)> {
    let within = rows.iter().find(|row| tokens.starts_with(row.json));
    if let Some(row) = within {
        let mut rest: Vec<String> =
            tokens.iter().skip(row.json.len()).map(|token| (*token).to_owned()).collect();
        match row.codec {
            // A field has the bare text of a reference.
            Codec::Ref | Codec::Refs => rest.retain(|token| token != "ref"),
            Codec::Pairs => {
                let pairs = message.list(row.field).unwrap_or_default().iter();
                let mut keys =
                    pairs.map(|pair| pair.as_message().and_then(|pair| pair.text("key")));
                let key = rest.first().map(String::as_str);
                if let Some(at) = keys.position(|one| one.is_some() && one == key) {
                    rest = vec![at.to_string(), "value".to_owned()];
                }
            }
            _ => {}
        }
        let is_said = !matches!(read(message, row.field, row.codec), Ok(None));
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        return Some((joined(&slashed(row.field), &rest), is_said));
    }
    // The whole of what has several fields, as in `decay`.
    let above = rows.iter().find(|row| row.json.starts_with(tokens))?;
    let steps = above.field.split('.').take(tokens.len());
    Some((steps.fold(String::new(), |at, name| pointer::join(&at, name)), true))
}

/// A place in the extension that the field `pose` stands for.
fn in_pose(tokens: &[&str]) -> String {
    let ["valueJson", member, rest @ ..] = tokens else { return "/pose".to_owned() };
    let axis = |names: &'static [&'static str]| {
        rest.first().and_then(|at| names.get(at.parse::<usize>().ok()?)).copied()
    };
    let (field, last) = match *member {
        "frame" => ("/pose/header/frame_id", None),
        "stamp" => ("/pose/header/stamp", None),
        "childFrame" => ("/pose/child_frame_id", None),
        "position" => ("/pose/pose/pose/position", axis(&["x", "y", "z"])),
        "orientation" => ("/pose/pose/pose/orientation", axis(&["x", "y", "z", "w"])),
        "covariance" => ("/pose/pose/covariance", rest.first().copied()),
        "geo" => {
            let name = rest.first().map(|name| match *name {
                "lat" => "latitude",
                "lon" => "longitude",
                _ => "altitude",
            });
            ("/pose/geo/0", name)
        }
        _ => ("/pose", None),
    };
    last.map_or_else(|| field.to_owned(), |last| pointer::join(field, last))
}

/// A parameter of a recall in the `Filter` of the request; `None` if it has none of that name.
fn in_filter(filter: &Message, name: &str, rest: &[&str]) -> Option<String> {
    let said = |time: &str| {
        let part = |part: &str| filter.i64(&format!("{time}.{part}")).unwrap_or_default() != 0;
        part("sec") || part("nanosec")
    };
    let field = match name {
        "near" => "near/0",
        "geo" => "geo/0",
        "box" => "box",
        "_time" if said("after") => "after",
        "_time" if said("before") => "before",
        _ => match FILTER.iter().find(|row| row.json == [name]) {
            Some(row) => row.field,
            None if rest_of(filter).is_ok_and(|over| over.contains_key(name)) => {
                return Some(joined(&pointer::join("/json", name), rest));
            }
            None => return None,
        },
    };
    Some(joined(&format!("/{field}"), rest))
}

/// A keyframe of a `Rebase`, by its name.
fn keyframe(request: &Message, rest: &[&str]) -> String {
    let names = request.list("keyframes").unwrap_or_default().iter();
    let mut names = names.map(|name| match name {
        Value::Text(name) => Some(name.as_str()),
        _ => None,
    });
    let Some((name, pose)) = rest.split_first() else { return "/keyframes".to_owned() };
    match (names.position(|one| one == Some(*name)), pose) {
        (None, _) => "/keyframes".to_owned(),
        (Some(at), []) => pointer::join_index("/keyframes", at),
        (Some(at), pose) => joined(&pointer::join_index("/poses", at), pose),
    }
}

/// Any other parameter: a field of its name, or nearly.
fn parameter(request: &Message, tokens: &[&str]) -> String {
    let Some((first, rest)) = tokens.split_first() else { return String::new() };
    let has = |name: &str| request.ty().fields.iter().any(|field| field.name == name);
    let renamed = RENAMED.iter().find(|(name, _)| name == first).map(|(_, field)| *field);
    let field = if has(first) { first } else { renamed.filter(|name| has(name)).unwrap_or(first) };
    joined(&pointer::join("", field), rest)
}

fn slashed(field: &str) -> String {
    field.split('.').fold(String::new(), |at, name| pointer::join(&at, name))
}

fn joined(base: &str, tokens: &[&str]) -> String {
    tokens.iter().fold(base.to_owned(), |at, token| pointer::join(&at, token))
}

/// A place in a resource that a message does not give: by the names of its fields. Places in `pose` and `json`
/// are so already.
pub(super) fn in_message(message: &Message, resource_type: usize, path: &str) -> String {
    let tokens: Vec<String> = pointer::tokens(path).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    match (tokens.first(), TABLES.get(resource_type)) {
        (None | Some(&("pose" | "json")), _) | (_, None) => path.to_owned(),
        (Some(_), Some(table)) => in_resource(message, table, &tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    fn records() -> (Registry, Records) {
        let registry = Registry::standard();
        let records = Records::new(&registry).unwrap();
        (registry, records)
    }

    fn new(registry: &Registry, name: &str) -> Message {
        Message::new(&registry.message(name).unwrap())
    }

    #[test]
    fn a_place_in_a_resource_is_the_field_that_brought_it() {
        let (registry, records) = records();
        let mut record = new(&registry, "omir_msgs/msg/MemoryRecord");
        record.set("importance", vec![2.0]).unwrap();
        record.set("decay.half_life_hours", vec![-1.0]).unwrap();
        record.set("entities", vec![Value::Text("Entity/x".into())]).unwrap();
        record.set("pose.header.frame_id", "map").unwrap();
        record.set("json", r#"{"tags": ["a", 7], "extension": [{"url": "urn:x"}]}"#).unwrap();
        let mut entity = new(&registry, "omir_msgs/msg/Entity");
        let mut pair = new(&registry, "omir_msgs/msg/KeyValue");
        pair.set("key", "colour").unwrap();
        entity.set("attributes", vec![pair]).unwrap();
        let mut request = Message::new(&records.service(Operation::Remember).unwrap().request);
        request.set("records", vec![record.clone(), record]).unwrap();
        request.set("entities", vec![entity]).unwrap();
        request.set("json", r#"[{"resourceType": "Episode"}]"#).unwrap();
        for (path, place) in [
            ("", ""),
            ("/0", "/records/0"),
            ("/1/importance", "/records/1/importance"),
            ("/1/createdAt", "/records/1/created_at"),
            ("/0/decay/halfLifeHours", "/records/0/decay/half_life_hours"),
            ("/0/decay", "/records/0/decay"),
            ("/0/entityRefs/0/ref", "/records/0/entities/0"),
            ("/0/tags/1", "/records/0/json/tags/1"),
            ("/0/unheardOf", "/records/0/json/unheardOf"),
            ("/0/extension/0/url", "/records/0/json/extension/0/url"),
            ("/0/extension/1/valueJson/position/2", "/records/0/pose/pose/pose/position/z"),
            ("/0/extension/1/valueJson/frame", "/records/0/pose/header/frame_id"),
            ("/2/name", "/entities/0/name"),
            ("/2/attributes/colour", "/entities/0/attributes/0/value"),
            ("/3/name", "/json/0/name"),
            ("/merge", "/merge"),
        ] {
            assert_eq!(records.place(Operation::Remember, &request, path), place, "{path}");
        }
    }

    #[test]
    fn a_parameter_is_the_field_that_brought_it() {
        let (_, records) = records();
        let request = |operation: Operation, changes: &[(&str, Value)]| {
            let mut request = Message::new(&records.service(operation).unwrap().request);
            for (path, value) in changes {
                request.set(path, value.clone()).unwrap();
            }
            request
        };
        let recall = request(
            Operation::Recall,
            &[("filter.json", r#"{"sort": "x"}"#.into()), ("filter.after.sec", 5_i64.into())],
        );
        let frames = vec![Value::Text("kf_1".into()), Value::Text("kf_2".into())];
        let rebase = request(Operation::Rebase, &[("keyframes", Value::List(frames))]);
        let forget = request(Operation::Forget, &[]);
        let anchor = request(Operation::Anchor, &[]);
        for (operation, request, path, place) in [
            (Operation::Recall, &recall, "/minImportance", "/filter/min_importance"),
            (Operation::Recall, &recall, "/near", "/filter/near/0"),
            (Operation::Recall, &recall, "/_time", "/filter/after"),
            (Operation::Recall, &recall, "/sort", "/filter/json/sort"),
            (Operation::Recall, &recall, "/limit", "/limit"),
            (Operation::Recall, &recall, "/touch", "/untouched"),
            (Operation::Forget, &forget, "/ref", "/refs"),
            (Operation::Anchor, &anchor, "/ref", "/ref"),
            (Operation::Rebase, &rebase, "/keyframes/kf_2", "/keyframes/1"),
            (Operation::Rebase, &rebase, "/keyframes/kf_2/position", "/poses/1/position"),
            (Operation::Rebase, &rebase, "/dryRun", "/dry_run"),
        ] {
            assert_eq!(records.place(operation, request, path), place, "{operation:?} {path}");
        }
    }
}
