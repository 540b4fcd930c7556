//! The protocol over an engine on a folder, and those who ask it.

use std::sync::Arc;
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird_engine::Engine;
use omird_engine::testing::{ByHand as _, lose, parts};
use omird_router::testing::{Facts, exchanged, message, somebody};
use omird_router::{Caller, Message, Method, Response, Router};

use crate::{ACTOR, AUTHORITY, GET, Keys, Manifesto, ManifestoSettings, PUT, SELECT, methods};

pub(super) struct Bench {
    pub(super) manifesto: Manifesto,
    pub(super) engine: Engine,
    router: Router,
    dir: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(ManifestoSettings::default())
    }

    pub(super) fn with(settings: ManifestoSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
        let router = Router::new(Facts { most: 4 << 20, ..Facts::default() }, []);
        Self {
            manifesto: Manifesto::new(engine.clone(), Keys::signing([7; 32]), settings),
            engine,
            router,
            dir,
        }
    }

    /// Stops, loses what has this text, and starts.
    pub(super) fn lose(&mut self, text: &str) {
        self.engine.seal_now(Duration::from_secs(60)).unwrap();
        self.engine.stop();
        lose(self.dir.path(), text);
        self.engine = Engine::open(parts(self.dir.path()), &mut |_| {}).unwrap();
        let settings = ManifestoSettings::default();
        self.manifesto = Manifesto::new(self.engine.clone(), Keys::signing([7; 32]), settings);
    }

    pub(super) fn answer(
        &self,
        caller: &Caller,
        method: &'static Method,
        body: &str,
        parameters: &[(&str, &str)],
        request_id: Option<&str>,
    ) -> Response {
        let request_id = request_id.map(str::to_owned);
        let message = Message { request_id, ..message(body, parameters) };
        exchanged(&self.manifesto, &self.router, caller, method, message)
    }

    pub(super) fn ask(
        &self,
        caller: &Caller,
        method: &'static Method,
        body: &str,
        parameters: &[(&str, &str)],
    ) -> (u16, Value) {
        let answer = self.answer(caller, method, body, parameters, None);
        (answer.status, value(std::str::from_utf8(&answer.body).unwrap()))
    }

    /// Stores resources past the protocol.
    pub(super) fn remember(&self, resources: &str) {
        let encoding = omird_engine::Encoding::Json;
        let change = self.engine.prepare(resources.as_bytes(), encoding, None).unwrap();
        self.engine.execute(change).unwrap();
    }

    /// Puts a World.
    pub(super) fn put(&self, world: &str) -> (u16, Value) {
        self.ask(&actor(), &PUT, &format!(r#"{{"world":{world}}}"#), &[])
    }

    pub(super) fn get(&self, world_id: &str) -> Value {
        let (status, answer) = self.ask(&actor(), &GET, "", &[("worldId", world_id)]);
        assert_eq!(status, 200, "{answer}");
        answer.get("world").unwrap().clone()
    }

    /// Selects; `more` follows the required members.
    pub(super) fn select(&self, query: &str, more: &str) -> Value {
        let request = format!(
            r#"{{"query":"{query}","atWorldId":"w-now","selector":{{"actorId":"agent-1","kind":"agent"}}{more}}}"#
        );
        let (status, answer) = self.ask(&actor(), &SELECT, &request, &[]);
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

pub(super) fn actor() -> Caller {
    somebody(&[ACTOR])
}

pub(super) fn authority() -> Caller {
    somebody(&[AUTHORITY])
}

/// An actor whose token speaks as one agent.
pub(super) fn agent(name: &str) -> Caller {
    Caller { agents: [Arc::from(name)].into(), ..actor() }
}

pub(super) fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the WorldIds of a selection.
pub(super) fn ids(selection: &Value) -> Vec<&str> {
    let selected = selection.get("selected").unwrap().as_array().unwrap();
    selected.iter().map(|one| one.pointer("/ref/worldId").unwrap().as_str().unwrap()).collect()
}

pub(super) fn is_as_its_schema_says(name: &str, answer: &Value) {
    let schemas = json::to_string(&Value::Object(methods::schemas("#/$defs/")));
    let schema = format!(r##"{{"$ref":"#/$defs/{name}","$defs":{schemas}}}"##);
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let answer = serde_json::from_str(&json::to_string(answer)).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?}");
}
