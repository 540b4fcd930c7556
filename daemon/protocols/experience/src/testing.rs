//! For the tests of this crate: messages, and the record of the contract in shape.

use std::sync::Arc;
use std::time::Duration;

use omir_core::json;
use omir_core::value::Value;
use omird_engine::testing::{ByHand as _, TestClock, lose, parts};
use omird_engine::{Engine, Parts};
pub(crate) use omird_router::testing::message;
use omird_router::testing::{begin, somebody};
use omird_router::{Caller, Message, Method, Response, Router};

use crate::health::Indexer;
use crate::{ExperienceSettings, Experiences, HINTS, RECORD};

/// The record `R` of the conformance tests, of another task.
pub(crate) fn record(task: &str) -> Value {
    let text = format!(
        r#"{{"request_id":"r1","task_id":{task:?},"title":"Dock at station 2","intent":"Dock the robot",
        "nodes_used":[{{"type":"tool","ref":"nav2","outcome":"success","latency_ms":100}},
            {{"type":"database","ref":"map_db","outcome":"failure"}}],
        "result":{{"summary":"docked","success":true}},
        "timestamps":{{"started_at":"2026-05-31T10:00:00Z","finished_at":"2026-05-31T10:15:30Z"}},
        "context":{{"domain":"general"}}}}"#
    );
    json::from_slice(text.as_bytes(), &Default::default()).unwrap()
}

/// Starts the protocol, and waits until it has counted what is stored.
fn started(engine: &Engine, settings: ExperienceSettings) -> Experiences {
    let experiences = Experiences::start(engine.clone(), settings, [7; 32]);
    while experiences.0.indexer() == Indexer::Rebuilding {
        std::thread::yield_now();
    }
    experiences
}

/// The protocol over the engine of a temporary folder, whose clock the test sets.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) experiences: Experiences,
    router: Router,
    dir: Option<tempfile::TempDir>,
}

/// An answer, its body checked against the schema that the description names for its status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) body: serde_json::Value,
    headers: Vec<(&'static str, String)>,
    pub(crate) retry_after: Option<Duration>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the references of the hints, in order.
    pub(crate) fn refs(&self) -> Vec<&str> {
        let hints = self.body["hints"].as_array().expect("there are hints");
        hints.iter().map(|hint| hint["ref"].as_str().expect("a text")).collect()
    }

    pub(crate) fn hint(&self, reference: &str) -> &serde_json::Value {
        let hints = self.body["hints"].as_array().expect("there are hints");
        hints.iter().find(|hint| hint["ref"] == reference).expect("it is among them")
    }
}

/// Checks an answer, and reads it.
pub(crate) fn told(method: &'static Method, answer: Response) -> Received {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    let answers = (crate::DESCRIPTION.answers)(method);
    let named = answers.iter().find(|(status, _)| *status == answer.status);
    let (_, name) =
        named.unwrap_or_else(|| panic!("{} is no status of {}", answer.status, method.name));
    let components = crate::schema::components();
    if let Some(schema) = components.get(name) {
        let schema = serde_json::from_str(&json::to_string(schema)).unwrap();
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft7);
        let validator = options.should_validate_formats(true).build(&schema).unwrap();
        let faults: Vec<String> = validator.iter_errors(&body).map(|f| f.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?} in {body}");
    } else if *name == omird_router::ERROR {
        let mut names: Vec<&String> = body.as_object().expect("an object").keys().collect();
        names.sort();
        assert_eq!(names, ["code", "message", "path"]);
    }
    Received {
        status: answer.status,
        body,
        headers: answer.headers,
        retry_after: answer.retry_after,
    }
}

/// A caller of a tenant, with both scopes.
pub(crate) fn caller(tenant: Option<&str>) -> Caller {
    Caller { tenant: tenant.map(Arc::from), ..somebody(&[crate::READ, crate::WRITE]) }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(ExperienceSettings::default())
    }

    pub(crate) fn with(settings: ExperienceSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::over(dir, TestClock::new(), settings)
    }

    fn over(dir: tempfile::TempDir, clock: Arc<TestClock>, settings: ExperienceSettings) -> Self {
        let parts = Parts { clock: clock.clone(), ..parts(dir.path()) };
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let router = Router::new(engine.clone(), Vec::new());
        let experiences = started(&engine, settings);
        Self { engine, clock, experiences, router, dir: Some(dir) }
    }

    /// Stops and starts.
    pub(crate) fn again(mut self) -> Self {
        self.engine.stop();
        let dir = self.dir.take().unwrap();
        let clock = self.clock.clone();
        let settings = self.experiences.0.settings.clone();
        drop(self);
        Self::over(dir, clock, settings)
    }

    /// Stops, loses what has this text, and starts.
    pub(crate) fn lost(self, text: &str) -> Self {
        self.engine.seal_now(std::time::Duration::from_secs(60)).unwrap();
        self.engine.stop();
        lose(self.dir.as_ref().unwrap().path(), text);
        self.again()
    }

    /// Flips a bit of each of these words on the card, and starts the protocol again over the same engine.
    pub(crate) fn damaged(mut self, word: &[u8]) -> Self {
        let dir = self.dir.as_ref().unwrap();
        let mut flipped = 0;
        for folder in ["segments", "wal"] {
            let Ok(files) = std::fs::read_dir(dir.path().join(folder)) else { continue };
            for path in files.map(|file| file.unwrap().path()) {
                let mut bytes = std::fs::read(&path).unwrap();
                let at = |bytes: &[u8]| bytes.windows(word.len()).position(|part| part == word);
                while let Some(at) = at(&bytes) {
                    bytes[at] ^= 1;
                    flipped += 1;
                }
                std::fs::write(&path, bytes).unwrap();
            }
        }
        assert!(flipped > 0, "the word is not on the card");
        let settings = self.experiences.0.settings.clone();
        self.experiences = started(&self.engine, settings);
        self
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(
        &self,
        method: &'static Method,
        caller: &Caller,
        message: Message,
    ) -> Received {
        self.begin(method, caller, message)()
    }

    /// Asks, and returns what waits for the answer.
    pub(crate) fn begin(
        &self,
        method: &'static Method,
        caller: &Caller,
        message: Message,
    ) -> impl FnOnce() -> Received + use<> {
        let answer = begin(&self.experiences, &self.router, caller, method, message);
        move || told(method, answer.recv().expect("it is answered"))
    }

    /// Records, as the default tenant.
    pub(crate) fn record(&self, value: &Value) -> Received {
        self.ask(&RECORD, &caller(None), message(&json::to_string(value), &[]))
    }

    /// Asks for hints, as the default tenant.
    pub(crate) fn hints(&self, body: &str) -> Received {
        self.ask(&HINTS, &caller(None), message(body, &[]))
    }

    /// Asks for hints by words.
    pub(crate) fn by_intent(&self, intent: &str) -> Received {
        self.hints(&by_intent(intent))
    }
}

/// The request for hints by words.
pub(crate) fn by_intent(intent: &str) -> String {
    format!(r#"{{"request_id":"h1","query_type":"intent","intent":{intent:?},"deadline_ms":5000}}"#)
}

/// The same value with another member.
pub(crate) fn with(mut value: Value, pointer: &str, member: impl Into<Value>) -> Value {
    let (parents, name) = pointer.rsplit_once('/').expect("a pointer");
    let mut at = &mut value;
    for token in parents.split('/').skip(1) {
        at = match token.parse::<usize>() {
            Ok(index) => &mut at.as_array_mut().expect("an array")[index],
            Err(_) => at.as_object_mut().expect("an object").get_mut(token).expect("a member"),
        };
    }
    at.as_object_mut().expect("an object").insert(name, member);
    value
}
