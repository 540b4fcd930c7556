//! A resource as a message of its type, and back.

use std::sync::Arc;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::pointer;
use omir_core::value::{Map, Value as Json};

use super::field::{MOST_MEMBERS, near, read, set, write};
use super::tables::{TABLES, Table};
use super::{Records, Refused, overlay, pose};
use crate::interface::MessageType;
use crate::message::Message;

impl Records {
    /// The message for a resource; `None` if its `resourceType` is none of the four. It need not be valid.
    pub fn to_message(&self, resource: &Json) -> Option<Message> {
        let map = resource.as_object()?;
        let kind = map.get("resourceType")?.as_str()?;
        let at = TABLES.iter().position(|table| table.resource_type == kind)?;
        Some(written(&self.resources[at], &TABLES[at], map))
    }

    /// The resource that a message of one of the four types says, not yet validated.
    ///
    /// # Errors
    /// If a field and `json` disagree, or one of them cannot be read, with the place.
    pub fn from_message(&self, message: &Message) -> Result<Json, Refused> {
        let at = self.resources.iter().position(|ty| **ty == **message.ty()).ok_or_else(|| {
            Refused::new("", format!("a {} is no resource of OMIR", message.ty().name))
        })?;
        resource(message, &TABLES[at])
    }

    /// `omir_msgs/msg/Resource` with the resource in the field of its type; empty if it is of none.
    pub fn to_any(&self, resource: &Json) -> Message {
        let mut any = Message::new(&self.any);
        if let Some(message) = self.to_message(resource) {
            let at =
                self.resources.iter().position(|ty| **ty == **message.ty()).unwrap_or_default();
            let field = ["record", "entity", "relationship", "episode"][at];
            set(&mut any, field, vec![message].into());
        }
        any
    }
}

fn written(ty: &Arc<MessageType>, table: &Table, resource: &Map) -> Message {
    let mut message = Message::new(ty);
    let mut typed = Map::new();
    for row in table.rows {
        if let Some(value) = get_at(resource, row.json)
            && let Some(near) = near(row.codec, value)
        {
            write(&mut message, row.field, row.codec, &near);
            set_at(&mut typed, row.json, near);
        }
    }
    let mut rest = overlay::rest(resource, &typed);
    rest.remove("resourceType");
    if table.pose {
        let extensions = resource.get("extension").and_then(Json::as_array).unwrap_or_default();
        match pose::place(extensions).and_then(|place| pose::near(&extensions[place])) {
            None => pose::clear(&mut message),
            Some(near) => {
                pose::clear(&mut message);
                pose::write(&mut message, &near);
                match overlay::without_pose(extensions, &near) {
                    Some(others) => rest.insert("extension", others),
                    None => rest.remove("extension"),
                };
            }
        }
    }
    if !rest.is_empty() {
        set(&mut message, "json", json::to_string(&rest.into()).into());
    }
    message
}

fn resource(message: &Message, table: &Table) -> Result<Json, Refused> {
    let mut typed = Map::new();
    typed.insert("resourceType", table.resource_type);
    for row in table.rows {
        let value = read(message, row.field, row.codec).map_err(|why| {
            let place = row.json.iter().fold(String::new(), |at, name| pointer::join(&at, name));
            Refused::new(place, why)
        })?;
        if let Some(value) = value {
            set_at(&mut typed, row.json, value);
        }
    }
    let over = rest_of(message)?;
    let mut all = overlay::laid(&typed, &over, table.rows)?;
    if table.pose
        && let Some(pose) = pose::read(message)?
    {
        let nothing = Json::Array(Vec::new());
        let extensions = overlay::with_pose(pose, over.get("extension").unwrap_or(&nothing))?;
        all.insert("extension", extensions);
    }
    Ok(all.into())
}

/// Values in a field `json`: as many as `limits.max_values` of the daemon by default.
const MOST_VALUES: usize = 500_000;

/// Bounds of what a field `json` holds. Its bytes are bounded with the message.
pub(super) fn limits() -> Limits {
    Limits { max_items: MOST_VALUES, ..Limits::default() }
}

/// Contents of the field `json`: an object, which is empty if the field is.
pub(super) fn rest_of(message: &Message) -> Result<Map, Refused> {
    let text = message.text("json").unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match json::from_slice(text.as_bytes(), &limits()) {
        Ok(Json::Object(map)) if map.len() > MOST_MEMBERS => {
            let why = format!(
                "`json` has {} members, and at most {MOST_MEMBERS} are taken: send fewer",
                map.len()
            );
            Err(Refused::new("/json", why))
        }
        Ok(Json::Object(map)) => Ok(map),
        Ok(other) => Err(Refused::new(
            "/json",
            format!("`json` is an object or empty, not {}", other.kind_name()),
        )),
        Err(wrong) => Err(Refused::new("/json", format!("`json` cannot be read: {wrong}"))),
    }
}

pub(super) fn get_at<'a>(map: &'a Map, path: &[&str]) -> Option<&'a Json> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(map.get(first)?, |value, name| value.get(name))
}

pub(super) fn set_at(map: &mut Map, path: &[&str], value: Json) {
    match path {
        [] => {}
        [name] => {
            map.insert(*name, value);
        }
        [name, rest @ ..] => {
            if !map.contains_key(name) {
                map.insert(*name, Map::new());
            }
            if let Some(Json::Object(inner)) = map.get_mut(name) {
                set_at(inner, rest, value);
            }
        }
    }
}
