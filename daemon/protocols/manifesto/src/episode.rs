//! A World as an Episode, and back. Episodes are never merged, expired or evicted, so that a World cannot change below a
//! reference.

use omir_core::instant::Timestamp;
use omir_core::manifesto::World;
use omir_core::model::Extension;
use omir_core::reference::{Ref, ResourceType};
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::value::{Map, Value};
use omird_engine::{Error, decode_stored};

use crate::names::{OURS, hex};

/// The extension that holds a World, as it came.
pub(crate) const WORLD_URL: &str = "urn:omird:ext:manifesto-world";
/// The extension that holds a recorded trace.
pub(crate) const TRACE_URL: &str = "urn:omird:ext:manifesto-trace";
/// Bytes of the text that is searched.
const MOST_TEXT: usize = 16 << 10;
/// Bytes of the name, the beginning of the title: all of it stands in the World.
const MOST_NAME: usize = 256;
/// Entities that a World may name.
const MOST_ENTITIES: usize = 64;

/// Returns the Episode of a World. `is_known` says of an Entity if it is stored: a reference must lead somewhere.
pub(crate) fn of_world(
    name: &Ref,
    tenant: &Ref,
    world: &World,
    is_known: impl Fn(&Ref) -> bool,
) -> Value {
    let metadata = world.value().get("metadata");
    let mut map = Map::new();
    map.insert("resourceType", "Episode");
    map.insert("id", name.id.as_str());
    if let Some(title) = metadata.and_then(|metadata| metadata.get("title")?.as_str()) {
        map.insert("name", cut(title, MOST_NAME));
    }
    map.insert("content", text_of(world.value()));
    if let Some(time) = world.created_at().and_then(time_of) {
        map.insert("eventTime", time.to_string());
    }
    let entities =
        metadata.and_then(|metadata| metadata.get("entities")?.as_array()).unwrap_or_default();
    let named =
        entities.iter().take(MOST_ENTITIES).filter_map(|entity| entity.as_str()?.parse().ok());
    let mut references = vec![tenant.clone()];
    for entity in named.filter(|entity: &Ref| entity.kind == ResourceType::Entity) {
        // By an Entity of ours it would be a candidate of another tenant.
        let is_ours = entity.id.as_str().starts_with(OURS);
        if !is_ours && !references.contains(&entity) && is_known(&entity) {
            references.push(entity);
        }
    }
    let reference =
        |target: &Ref| Value::Object([("ref", target.to_string())].into_iter().collect());
    map.insert("entityRefs", references.iter().map(reference).collect::<Value>());
    let mut held = Map::new();
    held.insert("worldId", world.id());
    held.insert("world", world.value().clone());
    held.insert("hash", hex(&world.hash()));
    let pose = metadata.and_then(|metadata| metadata.get("pose")).filter(|pose| is_pose(pose));
    let pose = pose.map(|pose| extension(SPATIAL_POSE_URL, pose.clone()));
    map.insert(
        "extension",
        std::iter::once(extension(WORLD_URL, held)).chain(pose).collect::<Value>(),
    );
    Value::Object(map)
}

/// Returns the Entity of a tenant.
pub(crate) fn of_tenant(tenant: &Ref) -> Value {
    let members =
        [("resourceType", "Entity"), ("id", tenant.id.as_str()), ("name", "Manifesto Memory")];
    Value::Object(members.into_iter().collect())
}

/// Returns the Episode of a recorded trace. What was said of the Worlds in it is no text to be searched: M-1.
pub(crate) fn of_trace(name: &Ref, trace: Value) -> Value {
    let mut map = Map::new();
    map.insert("resourceType", "Episode");
    map.insert("id", name.id.as_str());
    map.insert("content", "the trace of a selection");
    map.insert("extension", Value::Array(vec![extension(TRACE_URL, trace)]));
    Value::Object(map)
}

/// Returns the World in a stored Episode, if there is one of this WorldId.
pub(crate) fn world_in(stored: &[u8], world_id: &str) -> Result<Option<Value>, Error> {
    Ok(any_world_in(stored)?.filter(|(id, _)| id == world_id).map(|(_, world)| world))
}

/// Returns the World in a stored Episode and its WorldId, if there is one.
pub(crate) fn any_world_in(stored: &[u8]) -> Result<Option<(String, Value)>, Error> {
    let mut episode = decode_stored(stored)?;
    let extensions =
        episode.as_object_mut().and_then(|map| map.get_mut("extension")?.as_array_mut());
    let is_ours = |one: &&mut Value| one.get("url").and_then(Value::as_str) == Some(WORLD_URL);
    let held = extensions.and_then(|all| all.iter_mut().find(is_ours));
    let held = held.and_then(|one| one.as_object_mut()?.get_mut("valueJson")?.as_object_mut());
    Ok(held.and_then(|held| {
        let id = held.get("worldId")?.as_str()?.to_owned();
        Some((id, held.remove("world")?))
    }))
}

fn extension(url: &str, value: impl Into<Value>) -> Value {
    let mut map = Map::new();
    map.insert("url", url);
    map.insert("valueJson", value);
    Value::Object(map)
}

fn is_pose(value: &Value) -> bool {
    let mut extension = Extension::new(SPATIAL_POSE_URL);
    extension.value_json = Some(value.clone());
    SpatialPose::from_extension(&extension).is_ok()
}

/// Returns the instant of so many milliseconds since 1970, if it can be written.
fn time_of(milliseconds: i64) -> Option<Timestamp> {
    let time = Timestamp::from_micros(milliseconds.checked_mul(1000)?);
    (time.writable() == time).then_some(time)
}

/// Returns all texts in a World, in the order in which they stand, as far as they are searched.
fn text_of(world: &Value) -> String {
    let mut text = String::new();
    gather(world, &mut text);
    text.truncate(cut(&text, MOST_TEXT).len());
    text
}

/// Returns the beginning of a text, of at most so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

fn gather(value: &Value, into: &mut String) {
    match value {
        _ if into.len() > MOST_TEXT => {}
        Value::Text(text) => {
            if !into.is_empty() {
                into.push(' ');
            }
            into.push_str(text);
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Value::Object(map) => map.values().for_each(|member| gather(member, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::{cbor, json};

    use super::*;
    use crate::names;

    fn episode(world: &str) -> (Value, World) {
        let world =
            World::from_value(json::from_slice(world.as_bytes(), &Limits::default()).unwrap());
        let world = world.unwrap();
        let (name, tenant) =
            (names::world(None, world.id()).unwrap(), names::tenant(None).unwrap());
        let known = |entity: &Ref| ["kitchen", "mm.n.other"].contains(&entity.id.as_str());
        (of_world(&name, &tenant, &world, known), world)
    }

    #[test]
    fn a_world_lies_in_its_episode_as_it_came() {
        let text = r#"{"worldId":"w-1","createdAt":1700000000000,"a":{"b":["dock",7,"x"]},"metadata":{"title":"The dock","entities":["Entity/kitchen","Entity/mm.n.other","Entity/gone","Episode/kitchen",7,"Entity/kitchen"],"pose":{"frame":"map","position":[1,2,3]}}}"#;
        let (episode, world) = episode(text);
        let expected = format!(
            r#"{{"resourceType":"Episode","id":"mm.w.0065abd009780926778f5e00851728b3","name":"The dock","content":"w-1 dock x The dock Entity/kitchen Entity/mm.n.other Entity/gone Episode/kitchen Entity/kitchen map","eventTime":"2023-11-14T22:13:20Z","entityRefs":[{{"ref":"Entity/mm.n.default"}},{{"ref":"Entity/kitchen"}}],"extension":[{{"url":"urn:omird:ext:manifesto-world","valueJson":{{"worldId":"w-1","world":{text},"hash":"{}"}}}},{{"url":"https://omir.io/spec/R1/extension/spatial-pose","valueJson":{{"frame":"map","position":[1,2,3]}}}}]}}"#,
            hex(&world.hash())
        );
        assert_eq!(json::to_string(&episode), expected);
        let stored = cbor::to_vec(&episode);
        assert_eq!(world_in(&stored, "w-1").unwrap().as_ref(), Some(world.value()));
        assert_eq!(world_in(&stored, "w-2").unwrap(), None);
    }

    #[test]
    fn what_has_not_its_shape_is_left_to_the_world_alone() {
        let (episode, _) = episode(
            r#"{"worldId":"w","createdAt":9223372036854775000,"metadata":{"title":7,"entities":"x","pose":{"frame":"map"}}}"#,
        );
        for name in ["name", "eventTime"] {
            assert_eq!(episode.get(name), None, "{name}");
        }
        assert_eq!(episode.get("entityRefs").unwrap().as_array().unwrap().len(), 1);
        assert_eq!(episode.get("extension").unwrap().as_array().unwrap().len(), 1);
    }

    #[test]
    fn the_text_is_cut_between_characters() {
        let long = format!(r#"{{"worldId":"w","a":"{}","b":"x"}}"#, "\u{e4}".repeat(MOST_TEXT));
        let (episode, _) = episode(&long);
        let content = episode.get("content").unwrap().as_str().unwrap();
        assert!(content.len() <= MOST_TEXT && content.len() > MOST_TEXT - 2, "{}", content.len());
    }

    #[test]
    fn an_episode_of_somebody_else_holds_no_world() {
        let other =
            Value::Object([("resourceType", "Episode"), ("id", "mm.w.x")].into_iter().collect());
        assert_eq!(any_world_in(&cbor::to_vec(&other)).unwrap(), None);
    }
}
