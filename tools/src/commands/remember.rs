//! `omir remember`: one record from the command line, or resources from a file.

use std::path::Path;

use omir_core::json;
use omir_core::reference::Ref;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value};

use crate::cli::{Globals, Orientation, RememberArgs};
use crate::client::{Client, Payload};
use crate::document;
use crate::error::{Error, Result};
use crate::geodesy;
use crate::id_prefix;
use crate::output::{self, object};
use crate::selector::Parameters;

pub(super) fn run(globals: &Globals, args: &RememberArgs) -> Result<()> {
    if let Some(option) = args.misplaced() {
        let of = if args.is_entity() { "a MemoryRecord" } else { "an Entity: add --type Entity" };
        return Err(Error::Usage(format!("{option} is for {of}")));
    }
    let document = args.file.as_deref().map(document::read).transpose()?;
    let text = args.text.as_deref().map(said).transpose()?;
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let resources = match document {
        Some(document) => document,
        None => {
            let at = at(args, || client.fixed_frame(&robot))?;
            let entities =
                args.entities.iter().map(|entity| id_prefix::by(&client, &robot, entity));
            let entities = entities.collect::<Result<Vec<Ref>>>()?;
            resource(text.as_deref(), args, &entities, at)
        }
    };
    let payload = Payload::Json(json::to_string(&resources).into_bytes());
    let mut parameters = Parameters::new();
    parameters.push_some("ifAbsent", args.if_absent.then_some(true));
    parameters.push_some("ifVersion", args.if_version);
    let reply = client.ask(&robot, "remember", &parameters, Some(&payload))?;
    let reply = reply.value()?;
    if globals.json {
        return Ok(output::print_json(&reply)?);
    }
    let durable = reply.get("durable").and_then(Value::as_bool) == Some(true);
    let stored = reply.get("stored").and_then(Value::as_array).unwrap_or_default();
    let lines: Vec<String> = stored.iter().map(|item| line(item, durable)).collect();
    Ok(output::print(&lines.join("\n"))?)
}

/// Returns the text to remember: the argument, or for `-` standard input without the end of its last line.
///
/// # Errors
/// The argument is the path of a file of memories, or standard input cannot be read or is empty.
fn said(text: &str) -> Result<String> {
    if is_file_of_memories(Path::new(text)) {
        return Err(Error::Usage(format!(
            "{text} is a file: `omir remember --file {text}` remembers one resource, `omir import {text}` all of a bundle"
        )));
    }
    if text != "-" {
        return Ok(text.to_owned());
    }
    let text = document::read_text(Path::new(text))?;
    let text = text.trim_end_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return Err(Error::Usage(
            "standard input is empty: there is nothing to remember in it".to_owned(),
        ));
    }
    Ok(text.to_owned())
}

fn is_file_of_memories(path: &Path) -> bool {
    let is_named_so = path.extension().is_some_and(|end| end == "omir" || end == "omirb");
    is_named_so && path.is_file()
}

fn line(item: &Value, durable: bool) -> String {
    let name = item.get("ref").and_then(Value::as_str).unwrap_or("?");
    let version = item.get("version").map(Value::to_string).unwrap_or_default();
    let unchanged = item.get("unchanged").and_then(Value::as_bool) == Some(true);
    let state = match (unchanged, durable) {
        (true, _) => "unchanged",
        (false, true) => "durable",
        (false, false) => "not durable yet",
    };
    format!("{} version {version} ({state})", output::one_line(name))
}

/// A frame, and metres in it.
type At = (String, [f64; 3]);

/// The place of `--at`. Only the daemon knows which frame that means that names none.
fn at(args: &RememberArgs, fixed_frame: impl FnOnce() -> Result<String>) -> Result<Option<At>> {
    let Some(at) = args.at else { return Ok(None) };
    let frame = args.frame.clone().map_or_else(fixed_frame, Ok)?;
    Ok(Some((frame, at.0)))
}

/// The resource that the options describe. Id and `createdAt` are left to the daemon, whose clock is the robot's.
fn resource(text: Option<&str>, args: &RememberArgs, entities: &[Ref], at: Option<At>) -> Value {
    let mut members = Map::new();
    members.insert("resourceType", args.resource_type.as_str());
    if let Some(id) = &args.id {
        members.insert("id", id.as_str());
    }
    if args.is_entity() {
        entity(text, args, &mut members);
    } else {
        record(text, args, entities, &mut members);
    }
    if let Some(pose) = pose(args, at) {
        let extension = object([("url", SPATIAL_POSE_URL.into()), ("valueJson", pose)]);
        members.insert("extension", Value::Array(vec![extension]));
    }
    Value::Object(members)
}

/// Options of an Entity alone.
fn entity(text: Option<&str>, args: &RememberArgs, members: &mut Map) {
    if let Some(name) = &args.name {
        members.insert("name", name.as_str());
    }
    if !args.labels.is_empty() {
        let labels = args.labels.iter().map(|label| label.to_ascii_lowercase());
        members.insert("labels", labels.collect::<Value>());
    }
    if let Some(summary) = text {
        members.insert("summary", summary);
    }
    if let Some(importance) = args.importance {
        members.insert("salience", importance);
    }
}

/// Options of a MemoryRecord alone.
fn record(text: Option<&str>, args: &RememberArgs, entities: &[Ref], members: &mut Map) {
    if let Some(text) = text {
        members.insert("content", text);
    }
    for (name, value) in
        [("kind", &args.kind), ("experienceType", &args.experience_type), ("tier", &args.tier)]
    {
        if let Some(value) = value {
            members.insert(name, value.as_str());
        }
    }
    if let Some(moment) = args.event_time {
        members.insert("eventTime", moment.to_string());
    }
    if let Some(importance) = args.importance {
        members.insert("importance", importance);
    }
    if args.half_life.is_some() || args.anchored {
        let mut decay = Map::new();
        if let Some(hours) = args.half_life {
            decay.insert("halfLifeHours", hours);
        }
        if args.anchored {
            decay.insert("anchored", true);
        }
        members.insert("decay", decay);
    }
    if !entities.is_empty() {
        let references = entities.iter();
        let references = references.map(|entity| object([("ref", entity.to_string().into())]));
        members.insert("entityRefs", references.collect::<Value>());
    }
}

fn pose(args: &RememberArgs, at: Option<At>) -> Option<Value> {
    let (frame, position) = match (at, args.geo) {
        (Some(at), _) => at,
        (None, Some(geo)) => {
            let alt = geo.alt.unwrap_or_default();
            ("earth".to_owned(), geodesy::earth_centred(geo.lat, geo.lon, alt))
        }
        (None, None) => return None,
    };
    let mut pose = Map::new();
    pose.insert("frame", frame);
    pose.insert("position", position.into_iter().collect::<Value>());
    let yaw = args.yaw.map(|yaw| [0.0, 0.0, (yaw / 2.0).sin(), (yaw / 2.0).cos()]);
    if let Some(quaternion) = args.orientation.map(|Orientation(q)| q).or(yaw) {
        pose.insert("orientation", quaternion.into_iter().collect::<Value>());
    }
    if let Some(moment) = args.event_time {
        pose.insert("stamp", moment.to_string());
    }
    if let Some(geo) = args.geo {
        let mut place = Map::new();
        place.insert("lat", geo.lat);
        place.insert("lon", geo.lon);
        if let Some(alt) = geo.alt {
            place.insert("alt", alt);
        }
        pose.insert("geo", place);
    }
    Some(Value::Object(pose))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn built(line: &[&str]) -> Value {
        let words = ["omir", "remember"].iter().chain(line);
        let Command::Remember(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("remember expected")
        };
        let at = at(&args, || Ok("odom".to_owned())).unwrap();
        resource(args.text.as_deref(), &args, &args.entities, at)
    }

    #[test]
    fn a_text_alone_is_a_record_alone() {
        assert_eq!(
            json::to_string(&built(&["door 3 sticks"])),
            r#"{"resourceType":"MemoryRecord","content":"door 3 sticks"}"#
        );
    }

    #[test]
    fn every_option_has_its_field() {
        let value = built(&[
            "x",
            "--id",
            "a",
            "--at",
            "1,2",
            "--yaw",
            "0",
            "--importance",
            "0.8",
            "--half-life",
            "24",
            "--anchored",
            "--entity",
            "dock",
            "--entity",
            "Entity/door",
            "--event-time",
            "2026-01-01T00:00:00Z",
            "--experience-type",
            "observation",
            "--kind",
            "memory",
            "--tier",
            "session",
            "--geo",
            "1,2,3",
        ]);
        let expected = r#"{"resourceType":"MemoryRecord","id":"a","content":"x","kind":"memory","#
            .to_owned()
            + r#""experienceType":"observation","tier":"session","eventTime":"2026-01-01T00:00:00Z","#
            + r#""importance":0.8,"decay":{"halfLifeHours":24.0,"anchored":true},"#
            + r#""entityRefs":[{"ref":"Entity/dock"},{"ref":"Entity/door"}],"#
            + r#""extension":[{"url":"https://omir.io/spec/R1/extension/spatial-pose","valueJson":"#
            + r#"{"frame":"odom","position":[1.0,2.0,0.0],"orientation":[0.0,0.0,0.0,1.0],"#
            + r#""stamp":"2026-01-01T00:00:00Z","geo":{"lat":1.0,"lon":2.0,"alt":3.0}}}]}"#;
        assert_eq!(json::to_string(&value), expected);
    }

    #[test]
    fn an_entity_has_a_name_and_labels() {
        let value = built(&[
            "--type",
            "Entity",
            "--name",
            "charging dock",
            "--label",
            "Location",
            "--id",
            "dock",
            "--importance",
            "0.5",
            "by the window",
        ]);
        assert_eq!(
            json::to_string(&value),
            r#"{"resourceType":"Entity","id":"dock","name":"charging dock","labels":["location"],"summary":"by the window","salience":0.5}"#
        );
    }

    #[test]
    fn a_place_on_earth_alone_has_an_earth_centred_position() {
        let value = built(&["x", "--geo", "0,90"]);
        let pose = value.pointer("/extension/0/valueJson").unwrap();
        assert_eq!(pose.get("frame").and_then(Value::as_str), Some("earth"));
        let y = pose.pointer("/position/1").and_then(Value::as_f64).unwrap();
        assert!((y - 6_378_137.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_stored_is_told_with_its_state() {
        let item = object([("ref", "MemoryRecord/a".into()), ("version", 1.into())]);
        assert_eq!(line(&item, true), "MemoryRecord/a version 1 (durable)");
        assert_eq!(line(&item, false), "MemoryRecord/a version 1 (not durable yet)");
    }
}
