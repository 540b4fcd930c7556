//! `omir watch`: events as they happen.

use std::sync::mpsc;

use omir_core::value::{Map, Value};
use zenoh::Wait as _;
use zenoh::sample::{Sample, SampleKind};

use super::view;
use crate::cli::{Globals, WatchArgs};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::instant::Instant;
use crate::{document, output};

pub(super) fn run(globals: &Globals, args: &WatchArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let alive = client.robots()?;
    let several = globals.robot.is_none() && alive.len() > 1;
    if alive.is_empty() {
        output::remark(globals.quiet, "no robot is alive there yet; waiting");
    }
    let (sender, news) = mpsc::channel();
    let robot = globals.robot.as_deref().unwrap_or("*");
    let mut kinds: Vec<&str> = args.kinds.iter().map(|kind| kind.as_str()).collect();
    if kinds.is_empty() {
        kinds.push("*");
    }
    let mut subscribers = Vec::new();
    for kind in kinds {
        let sender = sender.clone();
        let key = format!("{}/{robot}/event/{kind}/**", client.prefix());
        let subscriber = client
            .session()?
            .declare_subscriber(key)
            .callback(move |sample| {
                let _ = sender.send(WatchMessage::Event(Box::new(sample)));
            })
            .wait()
            .map_err(|why| Error::Unreachable(format!("cannot subscribe: {why}")))?;
        subscribers.push(subscriber);
    }
    end_on_ctrl_c(sender);
    let mut seen = 0;
    while let Ok(WatchMessage::Event(sample)) = news.recv() {
        let Some(mut event) = Event::read(client.prefix(), &sample) else {
            continue;
        };
        // An event carries a reference alone if a token is needed; a client with a token may ask for the rest.
        if event.is_reference()
            && client.has_token()
            && let Ok(Some(reply)) = client.fetch(&event.robot, &format!("memory/{}", event.name))
        {
            event.body = document::in_schema_order(reply.value()?);
        }
        if globals.json {
            output::print_json_line(&event.to_json())?;
        } else {
            output::print(&event.to_line(several, Instant::now()))?;
        }
        seen += 1;
        if args.count.is_some_and(|count| seen >= count) {
            break;
        }
    }
    Ok(())
}

enum WatchMessage {
    Event(Box<Sample>),
    Interrupted,
}

/// Ctrl-C ends the watch with status 0. Without it, where no handler can be had, it kills as usual.
fn end_on_ctrl_c(sender: mpsc::Sender<WatchMessage>) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            let _ = sender.send(WatchMessage::Interrupted);
        }
    });
}

/// One event: its key taken apart, its payload decoded.
struct Event {
    robot: String,
    kind: String,
    name: String,
    body: Value,
    /// The daemon's reason, if it acted by itself.
    cause: Option<Value>,
}

impl Event {
    /// `None` for what is no event of ours.
    fn read(prefix: &str, sample: &Sample) -> Option<Self> {
        if sample.kind() != SampleKind::Put {
            return None;
        }
        let attachment = sample.attachment().map(|attachment| attachment.to_bytes());
        let key = sample.key_expr().as_str();
        Self::decode(prefix, key, &sample.payload().to_bytes(), attachment.as_deref())
    }

    fn decode(prefix: &str, key: &str, payload: &[u8], attachment: Option<&[u8]>) -> Option<Self> {
        let rest = key.strip_prefix(prefix)?.strip_prefix('/')?;
        let mut parts = rest.splitn(4, '/');
        let robot = parts.next()?.to_owned();
        let (Some("event"), Some(kind), Some(name)) = (parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        Some(Self {
            robot,
            kind: kind.to_owned(),
            name: name.to_owned(),
            body: document::in_schema_order(document::decode(payload).unwrap_or_default()),
            cause: attachment.and_then(|attachment| document::decode(attachment).ok()),
        })
    }

    /// Returns true if it should tell of a resource, and names it only.
    fn is_reference(&self) -> bool {
        let is_of_resource = matches!(self.kind.as_str(), "recorded" | "updated" | "tier");
        is_of_resource && self.body.get("resourceType").is_none()
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("robot", self.robot.as_str());
        members.insert("kind", self.kind.as_str());
        members.insert("ref", self.name.as_str());
        match self.kind.as_str() {
            "forgotten" => {}
            _ if self.is_reference() => {}
            "repaired" | "lost" => {
                members.insert("message", self.body.get("message").cloned().unwrap_or_default());
            }
            "rejected" => {
                members.insert("error", self.body.clone());
            }
            _ => {
                members.insert("resource", self.body.clone());
            }
        }
        if let Some(cause) = &self.cause {
            members.insert("cause", cause.clone());
        }
        Value::Object(members)
    }

    fn to_line(&self, with_robot: bool, now: Instant) -> String {
        let words = match self.kind.as_str() {
            "forgotten" => String::new(),
            _ if self.is_reference() => String::new(),
            "repaired" | "lost" => {
                let message = self.body.get("message").and_then(Value::as_str);
                message.unwrap_or_default().to_owned()
            }
            "rejected" => {
                let field = |name| self.body.get(name).and_then(Value::as_str);
                format!(
                    "{} {} {}",
                    field("code").unwrap_or_default(),
                    field("message").unwrap_or_default(),
                    field("path").unwrap_or_default()
                )
            }
            "tier" => {
                let tier = self.body.get("tier").and_then(Value::as_str);
                format!("{}: {}", tier.unwrap_or("?"), view::words(&self.body))
            }
            _ => view::words(&self.body),
        };
        let reason = self.cause.as_ref().and_then(|cause| cause.get("reason")?.as_str());
        let words = match reason {
            Some(reason) => format!("{words} ({reason})"),
            None => words,
        };
        let robot = if with_robot { format!("{}  ", self.robot) } else { String::new() };
        let line = format!(
            "{}  {robot}{:<9}  {}  {}",
            now.clock_time(),
            self.kind,
            self.name,
            output::one_line(&words)
        );
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::{cbor, json};

    #[test]
    fn events_are_lines_or_objects() {
        let resource = document::decode(
            br#"{"resourceType":"MemoryRecord","id":"a","content":"door\nsticks","createdAt":"2026-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        let payload = cbor::to_vec(&resource);
        let key = "site/omir/r1/event/recorded/MemoryRecord/a";
        let event = Event::decode("site/omir", key, &payload, None).unwrap();
        let now = "2026-01-01T12:00:05Z".parse().unwrap();
        assert_eq!(
            event.to_line(true, now),
            "12:00:05  r1  recorded   MemoryRecord/a  door sticks"
        );
        assert_eq!(
            json::to_string(&event.to_json()),
            r#"{"robot":"r1","kind":"recorded","ref":"MemoryRecord/a","resource":{"resourceType":"MemoryRecord","id":"a","content":"door\nsticks","createdAt":"2026-01-01T00:00:00Z"}}"#
        );
        let key = "omir/r1/event/rejected/unknown/unknown";
        let body = br#"{"code":"INVALID_RESOURCE","message":"no content","path":"/content"}"#;
        let event = Event::decode("omir", key, body, None).unwrap();
        assert_eq!(
            event.to_line(false, now),
            "12:00:05  rejected   unknown/unknown  INVALID_RESOURCE no content /content"
        );
        assert!(event.to_json().get("error").is_some());
        let key = "omir/r1/event/repaired/segments/0000000007.omirb";
        let body = br#"{"file":"segments/0000000007.omirb","message":"4096 bytes restored"}"#;
        let event = Event::decode("omir", key, body, None).unwrap();
        assert_eq!(
            event.to_line(false, now),
            "12:00:05  repaired   segments/0000000007.omirb  4096 bytes restored"
        );
        assert!(
            event.to_json().get("message").is_some() && event.to_json().get("resource").is_none()
        );
        let key = "omir/r1/event/forgotten/MemoryRecord/a";
        let event = Event::decode("omir", key, br#"{"ref":"MemoryRecord/a"}"#, None).unwrap();
        assert_eq!(event.to_line(false, now), "12:00:05  forgotten  MemoryRecord/a");
        // Of a daemon that needs a token.
        let key = "omir/r1/event/recorded/MemoryRecord/a";
        let event = Event::decode("omir", key, br#"{"ref":"MemoryRecord/a"}"#, None).unwrap();
        assert_eq!(event.to_line(false, now), "12:00:05  recorded   MemoryRecord/a");
        assert!(event.is_reference() && event.to_json().get("resource").is_none());
        let key = "omir/r1/event/tier/MemoryRecord/a";
        let cause = br#"{"cause":"sweep","from":"working","to":"session","reason":"age"}"#;
        let moved =
            br#"{"resourceType":"MemoryRecord","id":"a","content":"door","tier":"session"}"#;
        let event = Event::decode("omir", key, moved, Some(cause)).unwrap();
        assert_eq!(
            event.to_line(false, now),
            "12:00:05  tier       MemoryRecord/a  session: door (age)"
        );
        let from =
            event.to_json().pointer("/cause/from").and_then(Value::as_str).map(str::to_owned);
        assert_eq!(from.as_deref(), Some("working"));
        assert!(Event::decode("omir", "omir/r1/alive", b"", None).is_none());
    }
}
