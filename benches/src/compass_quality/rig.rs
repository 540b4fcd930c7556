//! The protocol over a real engine in a folder of its own, asked by JSON-RPC as a transport asks it. The clock is the set's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::instant::Timestamp;
use omird_embedding::Embedder;
use omird_engine::testing::{ByHand, TestClock, parts};
use omird_engine::{Engine, Parts};
use omird_protocol_compass::{AGENT, Compass, CompassSettings as Settings, JSONRPC, OPERATOR};
use omird_router::testing::Facts;
use omird_router::{Caller, Exchange, Incoming, Message, Router, Scopes};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Result;
use crate::compass_quality::set::{Agent, Task, Turn, instant};

/// Most bytes of a message.
const MOST_BYTES: usize = 1 << 20;

/// Longest wait for vectors.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ground that engines are opened on.
pub struct Bed {
    /// The folder that theirs are below.
    pub below: PathBuf,
    /// The maker of vectors; `None` for words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// A protocol with its engine.
pub struct Rig {
    clock: Arc<TestClock>,
    engine: Engine,
    router: Router,
    compass: Compass,
    embeds: bool,
    _folder: TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

/// The way that the turns of a set are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stages {
    /// Nobody says which stage a turn is of.
    Detected,
    /// The label of each turn is its marker.
    Marked,
}

impl Rig {
    /// Opens an empty engine.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn new(bed: &Bed) -> Result<Self> {
        let folder = tempfile::tempdir_in(&bed.below)?;
        let clock = TestClock::new();
        let parts = Parts { clock: clock.clone(), ..parts(folder.path()) };
        let engine = Engine::open(parts, &mut |_| {}).map_err(|e| format!("no engine: {e}"))?;
        engine.embed_with(bed.embedder.clone());
        let compass = Compass::new(&engine, Settings::default(), None);
        let policy = Facts { most: MOST_BYTES, ..Facts::default() };
        let router = Router::new(policy, []);
        let embeds = bed.embedder.is_some();
        Ok(Self { clock, engine, router, compass, embeds, _folder: folder })
    }

    /// Asks by other settings from now on.
    pub fn set(&mut self, settings: Settings) {
        self.compass = Compass::new(&self.engine, settings, None);
    }

    /// Waits until each memory has its vector, where vectors are made.
    ///
    /// # Errors
    /// They are not made in a minute.
    pub fn wait_for_vectors(&self) -> Result<()> {
        if !self.embeds {
            return Ok(());
        }
        let began = Instant::now();
        // The embedding thread may not have looked at the last memory yet.
        std::thread::sleep(Duration::from_millis(300));
        while self.engine.unembedded() > 0 {
            if began.elapsed() > PATIENCE {
                return Err("vectors are not made".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Lets it be that instant.
    pub fn be_at(&self, instant: Timestamp) {
        let epoch = Timestamp::parse("1970-01-01T00:00:00Z").map_or(0, |e| instant.micros_since(e));
        self.clock.set(epoch, true);
    }

    /// Asks one method; the result, or what it was refused with.
    ///
    /// # Errors
    /// The router refuses, or there is no answer.
    pub fn response(&self, method: &str, params: &Value) -> Result<Value> {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let caller = Caller {
            scopes: Scopes::only(&[AGENT, OPERATOR]),
            ..Caller::trusted("bench", "quality")
        };
        let incoming = Incoming { bytes: body.len(), ..Incoming::default() };
        let admitted = self
            .router
            .admit(&caller, &JSONRPC, incoming)
            .map_err(|refusal| format!("{method}: {refusal:?}"))?;
        let message = Message {
            body: body.into_bytes(),
            parameters: Vec::new(),
            request_id: None,
            trace_id: None,
            began: Instant::now(),
        };
        let told = Arc::new(Mutex::new(None));
        let tell = told.clone();
        self.compass.answer(
            admitted,
            message,
            Box::new(move |answer| {
                *tell.lock() = Some(answer);
            }),
        );
        let answer = told.lock().take();
        let answer = answer.ok_or_else(|| format!("{method}: no answer"))?;
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Asks one method; the result.
    ///
    /// # Errors
    /// It was refused.
    pub fn ask(&self, method: &str, params: &Value) -> Result<Value> {
        let response = self.response(method, params)?;
        let result = response.get("result").cloned();
        result.ok_or_else(|| format!("{method} {params}: {response}").into())
    }

    /// Stores one turn; the answer.
    ///
    /// # Errors
    /// It was refused.
    pub fn store(
        &self,
        agent: &str,
        task: &Task,
        turn: &Turn,
        stages: Stages,
        corrects: Option<&str>,
    ) -> Result<Value> {
        let at = instant(task, turn)?;
        self.be_at(at);
        let mut params = json!({
            "agent_id": agent, "task_id": task.id, "memory_id": turn.id, "timestamp": at.to_string(),
        });
        if turn.n == 1 {
            params["task"] = json!({"goal": task.goal, "constraints": task.constraints});
        }
        match turn.query.as_deref().filter(|query| !query.trim().is_empty()) {
            Some(query) => {
                let mut said = json!({"query": query, "actions": turn.actions});
                put(&mut said, "outcome", turn.outcome.as_deref().map(Value::from));
                put(&mut said, "success", turn.success.map(Value::from));
                params["interaction"] = said;
            }
            None => {
                params["content"] = json!(turn.text);
                params["actions"] = json!(turn.actions);
                put(&mut params, "outcome", turn.outcome.as_deref().map(Value::from));
                put(&mut params, "success", turn.success.map(Value::from));
            }
        }
        if stages == Stages::Marked {
            params["stage_type"] = json!(turn.stage);
        }
        if stages == Stages::Detected && turn.n > 1 {
            let said = json!({
                "task_id": task.id, "content": turn.text, "recent_actions": turn.actions, "apply": true,
            });
            self.ask("memory.detect_stage_transition", &said)?;
        }
        put(&mut params, "corrects_error_id", corrects.map(Value::from));
        self.ask("memory.store", &params)
    }

    /// Stores all turns of an agent, oldest first; calls `then` with each answer.
    ///
    /// # Errors
    /// One was refused.
    pub fn store_all(
        &self,
        agent: &Agent,
        stages: Stages,
        mut then: impl FnMut(&Task, &Turn, &Value),
    ) -> Result<()> {
        for (task, turns) in &agent.tasks {
            for turn in turns {
                let answer = self.store(&agent.name, task, turn, stages, None)?;
                then(task, turn, &answer);
            }
        }
        Ok(())
    }
}

/// Sets a member, if there is a value.
pub fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}
