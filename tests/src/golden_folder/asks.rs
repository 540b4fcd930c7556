//! Questions to protocols, and replies that are kept to be compared with those of later builds.
//!
//! A later build may add members to a reply. It may not lose one, nor say something else in it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird::access::Access;
use omird::engine::Engine;
use omird::protocols::compass::{self, JSONRPC};
use omird::protocols::manifesto::{self, Keys};
use omird::protocols::{ProtocolSettings, Protocols, akashik, experience};
use omird::router::{Caller, Incoming, Message, Method, Router, Scopes};

use super::lives::SECRET;

/// Members of replies that tell of the request, count that it was made, or rank by what other builds may weigh otherwise.
const PASSING: [&str; 7] =
    ["meta", "metadata", "request_id", "verifiedAt", "confidence", "access_count", "last_accessed"];
/// A message to a protocol.
pub(super) struct Ask {
    pub(super) method: &'static Method,
    pub(super) parameters: Vec<(&'static str, &'static str)>,
    pub(super) body: String,
}

impl Ask {
    pub(super) fn of(method: &'static Method, body: impl Into<String>) -> Self {
        Self { method, parameters: Vec::new(), body: body.into() }
    }

    pub(super) fn named(method: &'static Method, name: &'static str, value: &'static str) -> Self {
        Self { parameters: vec![(name, value)], ..Self::of(method, "") }
    }

    /// A call of COMPASS.
    pub(super) fn call(name: &str, params: &str) -> Self {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"memory.{name}","params":{params}}}"#);
        Self::of(&JSONRPC, body)
    }

    /// Asks, and returns status and reply.
    pub(super) fn ask(&self, protocols: &Protocols) -> (u16, Value) {
        let Self { method, parameters, body } = self;
        let scopes = [
            experience::READ,
            experience::WRITE,
            manifesto::ACTOR,
            compass::AGENT,
            compass::ACE,
            compass::OPERATOR,
            akashik::AGENT,
        ];
        // In a field this caller speaks for every agent.
        let agents: &[&str] = if method.protocol == "akashik" { &[] } else { &["a1"] };
        let agents = agents.iter().map(|agent| Arc::from(*agent)).collect();
        let caller = Caller {
            scopes: Scopes::only(&scopes),
            agents,
            authority: Some(10),
            ..Caller::trusted("test", "a")
        };
        let incoming = Incoming { bytes: body.len(), ..Incoming::default() };
        let admitted = protocols.router.admit(&caller, method, incoming);
        let admitted = admitted.unwrap_or_else(|refusal| panic!("{body}: {refusal:?}"));
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let message = Message {
            body: body.as_bytes().to_vec(),
            parameters: parameters.iter().map(own).collect(),
            request_id: None,
            trace_id: None,
            began: Instant::now(),
        };
        let exchange = protocols.exchange(method.protocol).expect("it is served");
        let (tell, told) = channel();
        exchange.answer(admitted, message, Box::new(move |response| drop(tell.send(response))));
        let response = told.recv().expect("it is answered");
        let reply = json::from_slice(&response.body, &Limits::default());
        (response.status, reply.unwrap_or_else(|error| panic!("{body}: {error}")))
    }

    /// Tells a protocol something new.
    pub(super) fn tell(&self, protocols: &Protocols) {
        let (status, reply) = self.ask(protocols);
        let is_taken = (200..300).contains(&status) && reply.get("error").is_none();
        assert!(is_taken, "{}: {status} {reply}", self.body);
    }
}

/// The protocols over an engine.
pub(super) fn protocols(engine: &Engine) -> Protocols {
    let settings =
        ProtocolSettings { manifesto_keys: Keys::signing(SECRET), ..ProtocolSettings::default() };
    let access = Access::open_to_all(Protocols::SCOPES);
    Protocols::configured(engine, "robot", access, Router::new(engine.clone(), []), settings)
}

/// The replies to questions, one a line.
pub(super) fn replies(questions: &[Ask], protocols: &Protocols) -> String {
    let mut text = String::new();
    for ask in questions {
        let (status, reply) = ask.ask(protocols);
        let _ = writeln!(text, "{status} {}", json::to_string(&lasting(reply)));
    }
    text
}

/// Compares kept replies to questions with those of now.
///
/// # Panics
/// If a member that was told is lost, or another.
#[track_caller]
pub(super) fn compare(what: &str, questions: &[Ask], kept: &str, found: &str) {
    let (kept, found): (Vec<&str>, Vec<&str>) = (kept.lines().collect(), found.lines().collect());
    assert_eq!(
        (kept.len(), found.len()),
        (questions.len(), questions.len()),
        "{what}: so many replies"
    );
    for (ask, (kept, found)) in questions.iter().zip(kept.iter().zip(found)) {
        let read = |line: &str| {
            let (status, reply) = line.split_once(' ').expect("a status and a reply");
            let reply = json::from_slice(reply.as_bytes(), &Limits::default()).expect("JSON");
            (status.to_owned(), reply)
        };
        let ((status_kept, kept), (status, found)) = (read(kept), read(found));
        let of = format!("{what}: {} {}", ask.method.name, ask.body);
        assert_eq!(status, status_kept, "{of}");
        if let Some(at) = differs(&kept, &found) {
            panic!("{of}: {at:?} is not as it was\nkept:  {kept}\nfound: {found}");
        }
    }
}

/// Returns the place of a member that is lost or another; what was added does not count.
fn differs(kept: &Value, found: &Value) -> Option<String> {
    match (kept, found) {
        (Value::Object(kept), Value::Object(found)) => kept.iter().find_map(|(name, value)| {
            let at = found.get(name).map_or(Some(String::new()), |other| differs(value, other));
            at.map(|at| format!("/{name}{at}"))
        }),
        (Value::Array(kept), Value::Array(found)) if kept.len() == found.len() => {
            let pairs = kept.iter().zip(found).enumerate();
            pairs.into_iter().find_map(|(index, (kept, found))| {
                differs(kept, found).map(|at| format!("/{index}{at}"))
            })
        }
        _ => (kept != found).then(String::new),
    }
}

/// A reply without what tells of the request alone.
fn lasting(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut plain = Map::new();
            for (name, value) in map.iter().filter(|(name, _)| !PASSING.contains(name)) {
                plain.insert(name, lasting(value.clone()));
            }
            Value::Object(plain)
        }
        Value::Array(items) => items.into_iter().map(lasting).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_lost_or_another_is_found_and_a_new_one_is_not() {
        let read = |text: &str| json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        let kept = read(r#"{"a":[1,{"b":"x"}],"c":null}"#);
        let at = |found: &str| differs(&kept, &read(found));
        assert_eq!(at(r#"{"a":[1,{"b":"x","new":1}],"c":null,"d":2}"#), None);
        assert_eq!(at(r#"{"a":[1,{"b":"y"}],"c":null}"#).as_deref(), Some("/a/1/b"));
        assert_eq!(at(r#"{"a":[1,{"b":"x"}]}"#).as_deref(), Some("/c"));
        assert_eq!(at(r#"{"a":[1],"c":null}"#).as_deref(), Some("/a"));
    }
}
