//! Requests of the services as the parameters of `docs/keys.md`.

use omir_core::json;
use omir_core::operation::Operation;
use omir_core::pointer;
use omir_core::value::{Map, Value as Json};

use super::field::{Codec, alone_of, finite, frame, instant, read, stamp};
use super::manifest::is_manifest;
use super::place::{BROUGHT, in_message};
use super::resource::{limits, rest_of, set_at};
use super::tables::FILTER;
use super::{Records, Refused, pose};
use crate::message::{Message, Value};

/// Contents of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The resources that `remember` brings; empty for any other.
    pub resources: Vec<Json>,
    /// Parameters in the names of `docs/keys.md`.
    pub parameters: Map,
}

impl Records {
    /// The call that a request of the service means.
    ///
    /// # Errors
    /// If a value is none, or two fields disagree, with the place in the request.
    pub fn request(&self, operation: Operation, request: &Message) -> Result<Call, Refused> {
        let mut call = Call { operation, resources: Vec::new(), parameters: Map::new() };
        let parameters = &mut call.parameters;
        match operation {
            Operation::Remember => {
                call.resources = self.brought(request)?;
                copy(request, parameters, &[("merge", "merge", Codec::Text)])?;
            }
            Operation::Recall => {
                filter(request, parameters)?;
                copy(
                    request,
                    parameters,
                    &[
                        ("limit", "limit", Codec::Count),
                        ("offset", "offset", Codec::Count),
                        ("explain", "explain", Codec::Flag),
                    ],
                )?;
                if request.bool("untouched") == Some(true) {
                    parameters.insert("touch", false);
                }
            }
            Operation::Export => filter(request, parameters)?,
            Operation::Forget => {
                copy(request, parameters, &[("ref", "refs", Codec::Texts)])?;
                needs(parameters, "ref", "refs", "name what to forget, as in MemoryRecord/id")?;
            }
            Operation::Anchor => {
                copy(request, parameters, &[("ref", "ref", Codec::Text)])?;
                needs(parameters, "ref", "ref", "name the record, as in MemoryRecord/id")?;
                parameters.insert("anchored", request.bool("anchored").unwrap_or_default());
            }
            Operation::Feedback => {
                copy(
                    request,
                    parameters,
                    &[("ref", "ref", Codec::Text), ("outcome", "outcome", Codec::Text)],
                )?;
                needs(parameters, "ref", "ref", "name the record, as in MemoryRecord/id")?;
                needs(parameters, "outcome", "outcome", "say `confirmed` or `contradicted`")?;
                let weight = request.f64("weight").unwrap_or_default();
                if weight != 0.0 {
                    let weight = finite(weight).map_err(|why| Refused::new("/weight", why))?;
                    parameters.insert("weight", weight);
                }
            }
            Operation::Rebase => {
                copy(
                    request,
                    parameters,
                    &[
                        ("frame", "frame", Codec::Frame),
                        ("reason", "reason", Codec::Text),
                        ("undo", "undo", Codec::Text),
                        ("dryRun", "dry_run", Codec::Flag),
                    ],
                )?;
                if let Some(keyframes) = keyframes(request)? {
                    parameters.insert("keyframes", keyframes);
                }
            }
            Operation::Compact
            | Operation::Sweep
            | Operation::Explain
            | Operation::Status
            | Operation::Backup
            | Operation::Prove => {
                return Err(Refused::new("", format!("{operation} has no service in ROS")));
            }
        }
        Ok(call)
    }

    /// The parameters of an import: `path`, `format`, `merge` and what else is in `json`.
    pub fn import_goal(&self, goal: &Message) -> Result<Map, Refused> {
        let mut parameters = Map::new();
        copy(
            goal,
            &mut parameters,
            &[
                ("path", "path", Codec::Text),
                ("format", "format", Codec::Text),
                ("merge", "merge", Codec::Text),
            ],
        )?;
        needs(&parameters, "path", "path", "name the file on the robot")?;
        more(&mut parameters, rest_of(goal)?)?;
        Ok(parameters)
    }

    /// All resources of a `Remember` request, in its order.
    fn brought(&self, request: &Message) -> Result<Vec<Json>, Refused> {
        let mut all = Vec::new();
        for (kind, field) in BROUGHT.into_iter().enumerate() {
            let messages = request.list(field).unwrap_or_default().iter();
            for (i, message) in messages.filter_map(Value::as_message).enumerate() {
                let place = pointer::join_index(&format!("/{field}"), i);
                all.push(self.from_message(message).map_err(|wrong| {
                    let path = in_message(message, kind, &wrong.path);
                    Refused { path, ..wrong }.within(&place)
                })?);
            }
        }
        let text = request.text("json").unwrap_or_default();
        if !text.trim().is_empty() {
            let value = json::from_slice(text.as_bytes(), &limits()).map_err(|wrong| {
                Refused::new("/json", format!("`json` cannot be read: {wrong}"))
            })?;
            let is_bundle = value.get("resourceType").and_then(Json::as_str) == Some("Bundle");
            match value {
                Json::Array(items) => all.extend(items),
                Json::Object(mut bundle) if is_bundle => match bundle.remove("entry") {
                    // A Bundle may be a sealed segment; what describes it is no memory.
                    Some(Json::Array(entries)) => {
                        all.extend(entries.into_iter().filter(|entry| !is_manifest(entry)));
                    }
                    _ => {
                        return Err(Refused::new("/json/entry", "a Bundle has its resources here"));
                    }
                },
                one => all.push(one),
            }
        }
        Ok(all)
    }
}

/// The keyframes of a `Rebase` request with their poses; `None` if it names none.
fn keyframes(request: &Message) -> Result<Option<Map>, Refused> {
    let names = request.list("keyframes").unwrap_or_default();
    let poses = request.list("poses").unwrap_or_default();
    if names.len() != poses.len() {
        let why = format!("{} keyframes with {} poses: each has one", names.len(), poses.len());
        return Err(Refused::new("/poses", why));
    }
    let mut keyframes = Map::new();
    for (i, (name, pose)) in names.iter().zip(poses).enumerate() {
        let (Value::Text(name), Some(pose)) = (name, pose.as_message()) else { continue };
        let name = frame(name).map_err(|why| Refused::new(format!("/keyframes/{i}"), why))?;
        let mut known = Map::new();
        for (part, axes) in
            [("position", &["x", "y", "z"][..]), ("orientation", &["x", "y", "z", "w"])]
        {
            let values = axes.iter().map(|axis| {
                finite(pose.f64(&format!("{part}.{axis}")).unwrap_or_default())
                    .map_err(|why| Refused::new(format!("/poses/{i}/{part}/{axis}"), why))
            });
            known.insert(part, values.collect::<Result<Vec<Json>, Refused>>()?);
        }
        if keyframes.insert(name, known).is_some() {
            let why = format!("{name:?} is named twice");
            return Err(Refused::new(format!("/keyframes/{i}"), why));
        }
    }
    Ok((!keyframes.is_empty()).then_some(keyframes))
}

/// Parameters that are a field each: name, field, codec.
fn copy(
    message: &Message,
    parameters: &mut Map,
    rows: &[(&'static str, &str, Codec)],
) -> Result<(), Refused> {
    for (name, field, codec) in rows {
        let value = read(message, field, *codec)
            .map_err(|why| Refused::new(format!("/{}", field.replace('.', "/")), why))?;
        if let Some(value) = value {
            parameters.insert(*name, value);
        }
    }
    Ok(())
}

fn needs(parameters: &Map, name: &str, field: &str, what: &str) -> Result<(), Refused> {
    if parameters.contains_key(name) {
        return Ok(());
    }
    Err(Refused::new(format!("/{field}"), format!("`{field}` is empty: {what}")))
}

/// The parameters of a `Filter` in the field of that name.
fn filter(request: &Message, parameters: &mut Map) -> Result<(), Refused> {
    let Some(filter) = request.message("filter") else {
        return Ok(());
    };
    read_filter(filter, parameters).map_err(|wrong| wrong.within("/filter"))
}

fn read_filter(filter: &Message, parameters: &mut Map) -> Result<(), Refused> {
    for row in FILTER {
        let value = read(filter, row.field, row.codec)
            .map_err(|why| Refused::new(format!("/{}", row.field), why))?;
        if let Some(value) = value {
            set_at(parameters, row.json, value);
        }
    }
    let point = |message: &Value, axes: &[&str], place: &str| -> Result<Vec<Json>, Refused> {
        let values = axes.iter().map(|axis| {
            let value = message.as_message().and_then(|point| point.f64(axis));
            finite(value.unwrap_or_default())
                .map_err(|why| Refused::new(format!("/{place}/{axis}"), why))
        });
        values.collect()
    };
    let one = |name: &str| {
        let items = filter.list(name).unwrap_or_default();
        alone_of(items).map_err(|why| Refused::new(format!("/{name}"), why))
    };
    if let Some(near) = one("near")? {
        let plane = filter.bool("planar") == Some(true);
        let axes: &[&str] = if plane { &["x", "y"] } else { &["x", "y", "z"] };
        parameters.insert("near", point(near, axes, "near")?);
    }
    match filter.list("box").unwrap_or_default() {
        [] => {}
        [least, greatest] => {
            let mut corners = point(least, &["x", "y", "z"], "box/0")?;
            corners.extend(point(greatest, &["x", "y", "z"], "box/1")?);
            parameters.insert("box", corners);
        }
        _ => return Err(Refused::new("/box", "a box has two corners, the least and the greatest")),
    }
    if let Some(place) = one("geo")?.and_then(Value::as_message) {
        let place = pose::read_geo(place).map_err(|why| Refused::new("/geo", why))?;
        let numbers: Vec<Json> =
            ["lat", "lon", "alt"].iter().filter_map(|name| place.get(name).cloned()).collect();
        parameters.insert("geo", numbers);
    }
    let end = |name: &str| stamp(filter, name).map_err(|why| Refused::new(format!("/{name}"), why));
    let (after, before) = (end("after")?, end("before")?);
    if after.is_some() || before.is_some() {
        if parameters.contains_key("_time") {
            return Err(Refused::new(
                "/time",
                "`time` says it all: leave `after` and `before` at zero",
            ));
        }
        let text = |at: Option<crate::stamp::Stamp>| {
            at.map(instant).and_then(|at| at.as_str().map(str::to_string)).unwrap_or_default()
        };
        parameters.insert("_time", format!("[{}..{}]", text(after), text(before)));
    }
    more(parameters, rest_of(filter)?)
}

/// Adds parameters that have no field.
fn more(parameters: &mut Map, rest: Map) -> Result<(), Refused> {
    for (name, value) in rest.iter() {
        if parameters.get(name).is_some_and(|known| known != value) {
            let why = "a field says something else than `json`: change both or one";
            return Err(Refused::new(pointer::join("/json", name), why));
        }
        parameters.insert(name, value.clone());
    }
    Ok(())
}
