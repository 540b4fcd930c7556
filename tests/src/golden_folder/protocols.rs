//! What the protocols store is a format too: experiences, Worlds and stages of agents are records with extensions of their
//! own. Here a robot lives by way of them, and here are the questions that its folder is asked.
//!
//! A later build may add members to a reply. It may not lose one, nor say something else in it.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird::access::Access;
use omird::engine::Engine;
use omird::protocols::compass::{self, JSONRPC};
use omird::protocols::experience::{self, EXPERIENCE, HEALTH, HINTS, RECORD};
use omird::protocols::manifesto::{self, EXISTS, GET, Keys, PROVE, PUT, VERIFY_PROOF};
use omird::protocols::{ProtocolSettings, Protocols};
use omird::router::{Caller, Incoming, Message, Method, Router, Scopes};

use super::lives::{Robot, SECRET};
use crate::session::TestClock;

/// The name of the life.
pub const NAME: &str = "protocols";

const MINUTE: Duration = Duration::from_secs(60);
/// Members of replies that tell of the request, count that it was made, or rank by what other builds may weigh otherwise.
const PASSING: [&str; 7] =
    ["meta", "metadata", "request_id", "verifiedAt", "confidence", "access_count", "last_accessed"];
/// The World that is proven.
const WORLD: &str =
    r#"{"note":"the dock is at the window","worldId":"w-1","createdAt":1780214400000}"#;

/// A message to a protocol.
struct Ask {
    method: &'static Method,
    parameters: Vec<(&'static str, &'static str)>,
    body: String,
}

impl Ask {
    fn of(method: &'static Method, body: impl Into<String>) -> Self {
        Self { method, parameters: Vec::new(), body: body.into() }
    }

    fn named(method: &'static Method, name: &'static str, value: &'static str) -> Self {
        Self { parameters: vec![(name, value)], ..Self::of(method, "") }
    }

    /// A call of COMPASS.
    fn call(name: &str, params: &str) -> Self {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"memory.{name}","params":{params}}}"#);
        Self::of(&JSONRPC, body)
    }

    /// Asks, and returns status and reply.
    fn ask(&self, protocols: &Protocols) -> (u16, Value) {
        let Self { method, parameters, body } = self;
        let scopes = [
            experience::READ,
            experience::WRITE,
            manifesto::ACTOR,
            compass::AGENT,
            compass::ACE,
            compass::OPERATOR,
        ];
        let caller = Caller {
            scopes: Scopes::only(&scopes),
            agents: [Arc::from("a1")].into(),
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
    fn tell(&self, protocols: &Protocols) {
        let (status, reply) = self.ask(protocols);
        let is_taken = (200..300).contains(&status) && reply.get("error").is_none();
        assert!(is_taken, "{}: {status} {reply}", self.body);
    }
}

fn protocols(engine: &Engine) -> Protocols {
    let settings =
        ProtocolSettings { manifesto_keys: Keys::signing(SECRET), ..ProtocolSettings::default() };
    let access = Access::open_to_all(Protocols::SCOPES);
    Protocols::configured(engine, "robot", access, Router::new(engine.clone(), []), settings)
}

fn experience(task: &str, station: u32, success: bool, summary: &str) -> String {
    format!(
        r#"{{"request_id":"r-{summary}","task_id":"{task}","title":"Dock at station {station}","intent":"Dock the robot",
        "nodes_used":[{{"type":"tool","ref":"nav2","outcome":"success","latency_ms":100}},
            {{"type":"tool","ref":"arm","outcome":"failure"}}],
        "result":{{"summary":"{summary}","success":{success}}},
        "timestamps":{{"started_at":"2026-05-31T10:00:00Z","finished_at":"2026-05-31T10:15:30Z"}}}}"#
    )
}

/// What is told before the first segment.
fn morning() -> Vec<Ask> {
    let task = r#"{"goal":"Tidy the hall","constraints":["stay below 0.5 m/s"]}"#;
    vec![
        Ask::of(&RECORD, experience("dock-1", 2, true, "docked")),
        Ask::of(&RECORD, experience("dock-2", 3, false, "missed the dock")),
        Ask::of(&PUT, format!(r#"{{"world":{WORLD}}}"#)),
        Ask::call(
            "store",
            &format!(
                r#"{{"task_id":"t1","content":"The robot must not enter room 12.","task":{task}}}"#
            ),
        ),
        Ask::call("store", r#"{"task_id":"t1","content":"First a plan: begin at the window."}"#),
        Ask::call(
            "record_error",
            r#"{"task_id":"t1","error_type":"incorrect_action","error_id":"e1",
            "error_description":"drove against the table","error_severity":0.6,
            "recorded_at":"2026-05-31T10:20:00Z"}"#,
        ),
        Ask::call(
            "complete_stage",
            r#"{"task_id":"t1","summary":"A plan is made.","next_stage_type":"execution"}"#,
        ),
    ]
}

/// What is told after it.
fn evening() -> Vec<Ask> {
    let update =
        Ask::of(&RECORD, experience("dock-2", 3, true, "docked at last").replace("r-", "r2-"));
    vec![
        Ask { parameters: vec![("on_duplicate", "update")], ..update },
        Ask::of(
            &PUT,
            r#"{"world":{"note":"the dock has moved","worldId":"w-2","createdAt":1780218000000}}"#,
        ),
        Ask::call(
            "store",
            r#"{"task_id":"t1","content":"The hall is half done.","relevance_score":0.5}"#,
        ),
        Ask::call("adjust_compression", r#"{"task_id":"t1","stage_ratio":4}"#),
    ]
}

/// The questions; those that rank are left to tests of their own.
fn questions() -> Vec<Ask> {
    let hints =
        r#"{"request_id":"h","query_type":"task_id","task_id":"dock-1","deadline_ms":30000}"#;
    vec![
        Ask::named(&EXPERIENCE, "task_id", "dock-1"),
        Ask::named(&EXPERIENCE, "task_id", "dock-2"),
        Ask::of(&HINTS, hints),
        Ask::named(&GET, "worldId", "w-1"),
        Ask::named(&GET, "worldId", "w-2"),
        Ask::named(&EXISTS, "worldId", "w-2"),
        Ask::call("get_task_progress", r#"{"task_id":"t1"}"#),
        Ask::call("get_error_history", r#"{"task_id":"t1"}"#),
        Ask::call("get_critical_memories", r#"{"task_id":"t1"}"#),
        Ask::call("get_compression_metrics", r#"{"task_id":"t1"}"#),
    ]
}

/// Lives the life.
pub(super) fn life(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let robot = Robot::new(data, clock, false)?;
    let tell = |all: Vec<Ask>| {
        let protocols = protocols(robot.session());
        for ask in all {
            clock.advance(MINUTE);
            ask.tell(&protocols);
        }
    };
    tell(morning());
    robot.seal();
    tell(evening());
    robot.kill()
}

/// Waits until the experiences of the store are counted: hints are made of all of them then.
fn wait_counted(protocols: &Protocols) {
    let began = Instant::now();
    loop {
        let (_, health) = Ask::of(&HEALTH, "").ask(protocols);
        let indexer = health.pointer("/components/pattern_indexer").and_then(Value::as_str);
        if indexer == Some("healthy") {
            return;
        }
        assert!(began.elapsed() < MINUTE, "{health}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The replies of the protocols, one a line, and a proof that they made.
///
/// # Panics
/// If a protocol does not answer.
pub fn replies(engine: &Engine) -> String {
    let protocols = protocols(engine);
    wait_counted(&protocols);
    let prove = format!(r#"{{"memory":{{"worldId":"w-1"}},"world":{WORLD}}}"#);
    let (_, proven) = Ask::of(&PROVE, prove).ask(&protocols);
    let proof = proven.get("proof").unwrap_or_else(|| panic!("no proof: {proven}"));
    let mut text = format!("{}\n", json::to_string(proof));
    for ask in questions() {
        let (status, reply) = ask.ask(&protocols);
        let _ = writeln!(text, "{status} {}", json::to_string(&lasting(reply)));
    }
    text
}

/// Compares kept replies with those of an engine, and has the protocols verify the proof that was kept.
///
/// # Panics
/// If a member that was told is lost, or another.
#[track_caller]
pub fn compare(what: &str, kept: &str, engine: &Engine) {
    let found = replies(engine);
    let (proof, kept) = kept.split_once('\n').expect("a proof and replies");
    let (status, verified) =
        Ask::of(&VERIFY_PROOF, format!(r#"{{"proof":{proof}}}"#)).ask(&protocols(engine));
    assert_eq!(
        (status, verified.get("valid")),
        (200, Some(&Value::from(true))),
        "{what}: {verified}"
    );
    let found: Vec<&str> = found.lines().skip(1).collect();
    assert_eq!(kept.lines().count(), found.len(), "{what}: so many replies");
    for (ask, (kept, found)) in questions().iter().zip(kept.lines().zip(found)) {
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
