//! Answers and events as messages.

use std::sync::Arc;

use omir_core::event::EventKind;
use omir_core::json;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value as Json};

use super::field::{Row, near, set, write};
use super::resource::get_at;
use super::tables::{HIT, REPLY, STORED};
use super::{Records, overlay};
use crate::interface::{Element, MessageType};
use crate::message::Message;
use crate::stamp::Stamp;

/// Beside the members of a Bundle that is answered to an export: what could not be read,
/// `{"unreadable":1,"first":["…"]}`. It is no part of the Bundle.
pub const LEFT_OUT: &str = "leftOut";

/// Progress of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file that were read.
    pub bytes_done: u64,
    /// Bytes of the file.
    pub bytes_total: u64,
    /// Resources or messages read.
    pub read: u64,
    /// Resources stored.
    pub stored: u64,
}

impl Records {
    /// Returns the response of an operation's service: what `docs/replies.md` says, or its error object. `None` if the
    /// operation has no service.
    pub fn response(&self, operation: Operation, answer: Result<&Json, &Json>) -> Option<Message> {
        let mut message = Message::new(&self.service(operation)?.response);
        let Some(answer) = self.status(&mut message, answer) else {
            return Some(message);
        };
        match operation {
            Operation::Export => {
                let mut bundle = answer.clone();
                if let Some(left_out) = bundle.remove(LEFT_OUT) {
                    let count = left_out.get("unreadable").and_then(Json::as_u64);
                    set(&mut message, "unreadable", count.unwrap_or_default().into());
                    let first = left_out.get("first").and_then(Json::as_array).unwrap_or_default();
                    let why: Vec<String> =
                        first.iter().filter_map(Json::as_str).map(without_nul).collect();
                    set(&mut message, "why", why.into());
                }
                let entries = bundle.get("entry").and_then(Json::as_array).unwrap_or_default();
                set(&mut message, "count", (entries.len() as u64).into());
                set(&mut message, "bundle", without_nul(&json::to_string(&bundle.into())).into());
                return Some(message);
            }
            Operation::Recall => {
                let hits = answer.get("hits").and_then(Json::as_array).unwrap_or_default();
                let hits = hits.iter().filter_map(|hit| self.hit(&message, hit.as_object()?));
                let hits: Vec<Message> = hits.collect();
                set(&mut message, "hits", hits.into());
            }
            Operation::Remember => {
                let ty = element(&message, "stored");
                let stored = answer.get("stored").and_then(Json::as_array).unwrap_or_default();
                let stored = stored.iter().filter_map(|one| {
                    let mut stored = Message::new(ty.as_ref()?);
                    fill(&mut stored, one.as_object()?, STORED, &[]);
                    Some(stored)
                });
                let stored: Vec<Message> = stored.collect();
                set(&mut message, "stored", stored.into());
            }
            _ => {}
        }
        fill(&mut message, answer, REPLY, &["hits", "stored"]);
        Some(message)
    }

    /// The result of an import: its answer or its error object.
    pub fn import_result(&self, answer: Result<&Json, &Json>) -> Message {
        let mut message = Message::new(&self.import.result);
        if let Some(answer) = self.status(&mut message, answer) {
            fill(&mut message, answer, REPLY, &["stored"]);
            let all = answer.get("stored").and_then(Json::as_array).unwrap_or_default();
            let is_same = |one: &&Json| one.get("unchanged").and_then(Json::as_bool) == Some(true);
            let unchanged = all.iter().filter(is_same).count();
            set(&mut message, "unchanged", (unchanged as u64).into());
            set(&mut message, "stored", ((all.len() - unchanged) as u64).into());
        }
        message
    }

    /// The feedback of an import.
    pub fn import_feedback(&self, progress: Progress) -> Message {
        let mut message = Message::new(&self.import.feedback);
        let Progress { bytes_done, bytes_total, read, stored } = progress;
        for (field, n) in [
            ("bytes_done", bytes_done),
            ("bytes_total", bytes_total),
            ("read", read),
            ("stored", stored),
        ] {
            set(&mut message, field, n.into());
        }
        message
    }

    /// An event: its kind and reference, what it carries (a resource, `{"ref"}` or an error object) and
    /// the cause, where the daemon changed something by itself.
    pub fn event(
        &self,
        kind: EventKind,
        reference: &str,
        carried: &Json,
        cause: Option<&Json>,
        at: Stamp,
    ) -> Message {
        let mut message = Message::new(&self.event);
        if let Some((sec, nanosec)) = at.to_ros() {
            set(&mut message, "stamp.sec", sec.into());
            set(&mut message, "stamp.nanosec", nanosec.into());
        }
        set(&mut message, "kind", kind.as_str().to_owned().into());
        set(&mut message, "ref", without_nul(reference).into());
        let is_error = kind == EventKind::Rejected;
        self.status(&mut message, if is_error { Err(carried) } else { Ok(carried) });
        set(&mut message, "resource", self.to_any(carried).into());
        if let Some(cause) = cause {
            set(&mut message, "json", json::to_string(cause).into());
        }
        message
    }

    /// Fills in `status`; gives the answer, if it is none of an error.
    fn status<'a>(
        &self,
        message: &mut Message,
        answer: Result<&'a Json, &Json>,
    ) -> Option<&'a Map> {
        match answer {
            Ok(answer) => {
                set(message, "status.ok", true.into());
                answer.as_object()
            }
            Err(error) => {
                for name in ["code", "message", "path"] {
                    let text = error.get(name).and_then(Json::as_str).unwrap_or_default();
                    set(message, &format!("status.{name}"), without_nul(text).into());
                }
                None
            }
        }
    }

    fn hit(&self, response: &Message, hit: &Map) -> Option<Message> {
        let mut message = Message::new(&element(response, "hits")?);
        let nothing = Json::Null;
        let resource = hit.get("resource").unwrap_or(&nothing);
        set(&mut message, "resource", self.to_any(resource).into());
        let part = |name| resource.get(name).and_then(Json::as_str).unwrap_or_default();
        let reference = format!("{}/{}", part("resourceType"), part("id"));
        set(&mut message, "ref", without_nul(&reference).into());
        let score = hit.get("score").and_then(Json::as_f64).unwrap_or_default();
        set(&mut message, "score", score.into());
        fill(&mut message, hit, HIT, &["resource", "score"]);
        Some(message)
    }
}

/// Fills in the fields that the message has, and `json` with what is left of the answer. `done` are
/// members that are elsewhere already.
fn fill(message: &mut Message, answer: &Map, rows: &[Row], done: &[&str]) {
    let mut typed = Map::new();
    let mut rest = answer.clone();
    rest.retain(|name, _| !done.contains(&name));
    for row in rows {
        let [first, ..] = row.json else {
            continue;
        };
        let Some((_, field)) = message.ty().field(row.field.split('.').next().unwrap_or_default())
        else {
            continue;
        };
        // `forgotten` is a number in one answer and a truth value in a hit.
        let fits = !matches!(
            (field.ty.element.clone(), row.codec),
            (Element::Bool, super::field::Codec::Count)
        );
        let Some(value) = get_at(answer, row.json).filter(|_| fits) else {
            continue;
        };
        if let Some(near) = near(row.codec, value) {
            write(message, row.field, row.codec, &near);
            super::resource::set_at(&mut typed, row.json, near);
        } else if row.json.len() == 1 {
            // False and zero are what the field says by itself.
            rest.remove(first);
        }
    }
    let rest = overlay::rest(&rest, &typed);
    if !rest.is_empty() && message.ty().field("json").is_some() {
        set(message, "json", json::to_string(&rest.into()).into());
    }
}

/// The type of the elements of a list.
fn element(message: &Message, field: &str) -> Option<Arc<MessageType>> {
    match &message.ty().field(field)?.1.ty.element {
        Element::Message(ty) => Some(ty.clone()),
        _ => None,
    }
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}
