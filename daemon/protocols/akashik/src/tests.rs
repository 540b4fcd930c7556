//! The protocol over a real engine on a temporary folder, asked as a transport asks it.

mod conflicts;
mod coordination;
mod crowd;
mod gaps;
mod levels;
mod pushes;
mod simulation;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_engine::testing::{ByHand as _, TestClock, lose, parts};
use omird_engine::{Engine, Parts};
use omird_router::testing::{Facts, exchanged, message};
use omird_router::{Caller, Method, Response, Router, Scope, Scopes};
use tempfile::TempDir;

use crate::{AGENT, Akashik, MESSAGE};

/// A protocol over a folder.
struct Rig {
    dir: TempDir,
    clock: Arc<TestClock>,
    engine: Engine,
    akashik: Akashik,
    router: Router,
    next: AtomicU64,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

fn open(dir: &Path, clock: &Arc<TestClock>) -> Engine {
    Engine::open(Parts { clock: clock.clone(), ..parts(dir) }, &mut |_| {}).unwrap()
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let engine = open(dir.path(), &clock);
        let akashik = Akashik::new(&engine);
        let router = Router::new(Facts { most: 1 << 20, ..Facts::default() }, []);
        Self { dir, clock, engine, akashik, router, next: AtomicU64::new(1) }
    }

    /// Ends the daemon, and starts it again.
    fn restart(&mut self) {
        self.engine.stop();
        self.engine = open(self.dir.path(), &self.clock);
        self.akashik = Akashik::new(&self.engine);
    }

    /// Ends the daemon, loses what has this text, and starts it again.
    fn lose(&mut self, text: &str) {
        self.engine.seal_now(Duration::from_secs(60)).unwrap();
        self.engine.stop();
        lose(self.dir.path(), text);
        self.restart();
    }

    fn send(
        &self,
        caller: &Caller,
        method: &'static Method,
        body: &str,
        parameters: &[(&str, &str)],
    ) -> Response {
        exchanged(&self.akashik, &self.router, caller, method, message(body, parameters))
    }

    /// Returns a message of its own id.
    fn message(
        &self,
        agent: &str,
        operation: &str,
        session: Option<&str>,
        payload: &str,
    ) -> String {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        envelope(&format!("msg-{id}"), agent, operation, session, 0, payload)
    }

    /// Asks as an agent of some authority; status and answer.
    fn ask_in(
        &self,
        agent: &str,
        authority: u32,
        session: Option<&str>,
        operation: &str,
        payload: &str,
    ) -> (u16, Value) {
        let body = self.message(agent, operation, session, payload);
        let answer = self.send(&with(authority), &MESSAGE, &body, &[]);
        (answer.status, value(&answer.body))
    }

    /// Asks as a standard agent; the answer.
    fn ask(&self, agent: &str, operation: &str, payload: &str) -> Value {
        self.ask_as(agent, 4, operation, payload)
    }

    fn ask_as(&self, agent: &str, authority: u32, operation: &str, payload: &str) -> Value {
        let (status, answer) = self.ask_in(agent, authority, None, operation, payload);
        assert!(status < 300, "{operation} {payload}: {status} {answer}");
        answer
    }

    /// Asks as a standard agent; the code of the error.
    fn fault(&self, agent: &str, operation: &str, payload: &str) -> String {
        self.fault_as(agent, 4, operation, payload)
    }

    fn fault_as(&self, agent: &str, authority: u32, operation: &str, payload: &str) -> String {
        let (status, answer) = self.ask_in(agent, authority, None, operation, payload);
        assert!(status >= 400, "{operation} {payload}: {status} {answer}");
        text(&answer, "/code").to_owned()
    }

    fn join(&self, agents: &[&str]) {
        for agent in agents {
            self.register(agent, "planner", 4);
        }
    }

    fn register(&self, agent: &str, role: &str, authority: u32) -> Value {
        let payload = format!(r#"{{"id":"{agent}","role":"{role}"}}"#);
        self.ask_as(agent, authority, "REGISTER", &payload)
    }

    /// Records a finding; its id.
    fn record(&self, agent: &str, content: &str, more: &str) -> String {
        let answer = self.ask(agent, "RECORD", &unit(content, more));
        text(&answer, "/memory_unit_id").to_owned()
    }

    fn attune(&self, agent: &str, scope: &str) -> Value {
        let payload = format!(r#"{{"scope":{{"role":"planner","max_units":50{scope}}}}}"#);
        self.ask(agent, "ATTUNE", &payload)
    }
}

fn envelope(
    id: &str,
    agent: &str,
    operation: &str,
    session: Option<&str>,
    epoch: u64,
    payload: &str,
) -> String {
    let session = session.map_or("null".to_owned(), |session| format!("{session:?}"));
    format!(
        r#"{{"protocol":"akashik","version":"0.1.0","id":"{id}","operation":"{operation}","agent_id":"{agent}","session_id":{session},"epoch":{epoch},"payload":{payload}}}"#
    )
}

/// Returns the payload of a committed finding, with more members behind it.
fn unit(content: &str, more: &str) -> String {
    let mut map = Map::new();
    map.insert("content", content);
    let content = json::to_string(&Value::Object(map));
    let content = content.trim_matches(['{', '}']);
    format!(
        r#"{{"mode":"committed","type":"finding",{content},"intent":{{"purpose":"map the building"}},"confidence":{{"score":0.8,"reasoning":"seen"}}{more}}}"#
    )
}

fn with(authority: u32) -> Caller {
    Caller {
        scopes: Scopes::only(&[AGENT]),
        authority: Some(authority),
        ..Caller::trusted("test", "somebody")
    }
}

fn token(name: &str, agents: &[&str], scopes: &[Scope]) -> Caller {
    Caller {
        scopes: Scopes::only(scopes),
        agents: agents.iter().map(|agent| Arc::from(*agent)).collect(),
        has_token: true,
        ..Caller::trusted("test", name)
    }
}

fn value(bytes: &[u8]) -> Value {
    json::from_slice(bytes, &Limits::default()).unwrap()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

fn number(value: &Value, pointer: &str) -> u64 {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number at {pointer} of {value}"))
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.unwrap_or_else(|| panic!("no list at {pointer} of {value}"))
}

/// Returns the ids of the units of an ATTUNE.
fn ids(answer: &Value) -> Vec<&str> {
    list(answer, "/record").iter().map(|one| text(one, "/memory_unit/id")).collect()
}
