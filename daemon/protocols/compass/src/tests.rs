//! The protocol over a real engine on a temporary folder, asked as a transport asks it.

mod ace;
mod card;
mod compression;
mod core;
mod errors;
mod learning;
mod meaning;
mod power;
mod signals;
mod stages;
mod transcript;
mod vectors;
mod year;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_engine::testing::{ByHand as _, TestClock, lose, parts};
use omird_engine::{Engine, Parts};
use omird_router::testing::{AuditLines, Facts, exchanged, message};
use omird_router::{Caller, Message, Response, Router, Scope, Scopes};
use tempfile::TempDir;

use crate::settings::Settings;
use crate::{ACE, AGENT, Compass, JSONRPC, OPERATOR};

/// A protocol over a folder, and the time.
struct Rig {
    dir: TempDir,
    clock: Arc<TestClock>,
    engine: Engine,
    compass: Compass,
    lines: AuditLines,
    router: Router,
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
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let engine = open(dir.path(), &clock);
        let compass = Compass::new(&engine, settings, None);
        let lines = AuditLines::default();
        let router = Router::new(Facts { most: 1 << 20, ..Facts::default() }, [lines.sink()]);
        Self { dir, clock, engine, compass, lines, router }
    }

    /// Ends the daemon without a word, and starts it again.
    fn restart(&mut self) {
        self.engine.stop();
        self.engine = open(self.dir.path(), &self.clock);
        self.compass = Compass::new(&self.engine, Settings::default(), None);
    }

    /// Ends the daemon, loses what has this text, and starts it again.
    fn lose(&mut self, text: &str) {
        self.engine.seal_now(Duration::from_secs(60)).unwrap();
        self.engine.stop();
        lose(self.dir.path(), text);
        self.restart();
    }

    fn send(&self, caller: &Caller, body: &str) -> Response {
        self.send_named(caller, body, None)
    }

    fn send_named(&self, caller: &Caller, body: &str, trace: Option<&str>) -> Response {
        let message = Message {
            request_id: Some("r-1".to_owned()),
            trace_id: trace.map(str::to_owned),
            ..message(body, &[])
        };
        exchanged(&self.compass, &self.router, caller, &JSONRPC, message)
    }

    /// Asks one method; the response.
    fn response(&self, caller: &Caller, method: &str, params: &str) -> Value {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let answer = self.send(caller, &body);
        assert_eq!(answer.status, 200, "{method}");
        value(&answer.body)
    }

    /// Asks one method as agent `a1`; the result.
    fn ask(&self, method: &str, params: &str) -> Value {
        let response = self.response(&agent("a1"), method, params);
        let result = response.get("result").cloned();
        result.unwrap_or_else(|| panic!("{method} {params}: {response}"))
    }

    /// Asks one method as agent `a1`; the code of the error.
    fn fault(&self, method: &str, params: &str) -> i64 {
        code(&self.response(&agent("a1"), method, params))
    }

    /// Stores a content in the task `t1`.
    fn store(&self, content: &str) -> Value {
        let mut params = Map::new();
        params.insert("task_id", "t1");
        params.insert("content", content);
        self.ask("memory.store", &json::to_string(&Value::Object(params)))
    }
}

fn value(bytes: &[u8]) -> Value {
    json::from_slice(bytes, &Limits::default()).unwrap()
}

fn code(response: &Value) -> i64 {
    let code = response.pointer("/error/code").and_then(Value::as_i64);
    code.unwrap_or_else(|| panic!("no error: {response}"))
}

fn somebody(scopes: &[Scope], agents: &[&str]) -> Caller {
    let agents = agents.iter().map(|agent| Arc::from(*agent)).collect();
    Caller { scopes: Scopes::only(scopes), agents, ..Caller::trusted("test", "somebody") }
}

fn agent(name: &str) -> Caller {
    somebody(&[AGENT], &[name])
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer} of {value}"))
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.unwrap_or_else(|| panic!("no list at {pointer} of {value}"))
}

fn is(value: &Value, pointer: &str) -> bool {
    let found = value.pointer(pointer).and_then(Value::as_bool);
    found.unwrap_or_else(|| panic!("no flag at {pointer} of {value}"))
}
