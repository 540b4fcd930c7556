//! The agents that ask an endpoint, and what they expect of it.

use std::collections::BTreeMap;
use std::process::Command;

use omir_core::json;
use omir_core::value::{Map, Value};

use super::endpoint::{Answer, Endpoint, Route};
use crate::cli::ConformanceArgs;
use crate::error::{Error, Result};

/// An item that is not met, or of which nothing can be said.
#[derive(Debug, Clone)]
pub(super) enum Verdict {
    Not(String),
    Undecided(String),
}

/// The outcome of an item.
pub(super) type Checked<T = ()> = std::result::Result<T, Verdict>;

/// Returns the verdict `not met`.
pub(super) fn not(why: impl Into<String>) -> Verdict {
    Verdict::Not(why.into())
}

/// Checks something.
pub(super) fn expect(holds: bool, why: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(not(why)) }
}

/// A conversation with an endpoint. Agents, ids and contents of a run are its own.
pub(super) struct Probe {
    endpoint: Endpoint,
    /// Tokens by authority.
    tokens: BTreeMap<u32, String>,
    pub(super) restart: Option<String>,
    run: String,
    next: u64,
    pub(super) epoch: u64,
    agents: BTreeMap<String, u32>,
    declared: Option<u64>,
}

impl Probe {
    /// # Errors
    /// The file of tokens cannot be read.
    pub(super) fn new(endpoint: Endpoint, args: &ConformanceArgs) -> Result<Self> {
        let mut random = [0; 4];
        // Without a random source the time of the process will do.
        if getrandom::fill(&mut random).is_err() {
            random = std::process::id().to_be_bytes();
        }
        let run = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let tokens = args.tokens.as_deref().map(read_tokens).transpose()?;
        Ok(Self {
            endpoint,
            tokens: tokens.unwrap_or_default(),
            restart: args.restart.clone(),
            run,
            next: 0,
            epoch: 0,
            agents: BTreeMap::new(),
            declared: None,
        })
    }

    /// Checks that a daemon answers.
    ///
    /// # Errors
    /// None does, by a way that was named.
    pub(super) fn reach(&mut self) -> Result<()> {
        for way in self.endpoint.ways() {
            self.endpoint.ask(way, "ATTUNE", self.token(4), "{}").map(drop)?;
        }
        Ok(())
    }

    pub(super) fn ways(&self) -> Vec<Route> {
        self.endpoint.ways()
    }

    pub(super) fn declared_level(&self) -> Option<u64> {
        self.declared
    }

    fn token(&self, authority: u32) -> Option<&str> {
        self.tokens.get(&authority).map(String::as_str)
    }

    /// Returns true if there is a token of an authority, or none is sent at all.
    pub(super) fn needs(&self, authority: u32) -> Checked {
        if self.token(authority).is_some() {
            return Ok(());
        }
        Err(Verdict::Undecided(format!("--tokens has no token of authority {authority}")))
    }

    /// Returns a name of this run.
    pub(super) fn name(&self, name: &str) -> String {
        format!("conf-{}-{name}", self.run)
    }

    /// Returns a message that was never sent before.
    pub(super) fn message(
        &mut self,
        agent: &str,
        operation: &str,
        session: Option<&str>,
        payload: Value,
    ) -> Map {
        self.next += 1;
        let mut map = Map::new();
        map.insert("protocol", "akashik");
        map.insert("version", "0.1.0");
        map.insert("id", format!("conf-{}-{}", self.run, self.next));
        map.insert("operation", operation);
        map.insert("agent_id", agent);
        map.insert("session_id", session);
        map.insert("epoch", 0_u64);
        map.insert("payload", payload);
        map
    }

    /// Sends a message with the token of an authority.
    pub(super) fn send_by(&self, way: Route, authority: u32, message: &Map) -> Checked<Answer> {
        let operation = message.get("operation").and_then(Value::as_str).unwrap_or_default();
        let text = json::to_string(&Value::Object(message.clone()));
        self.endpoint
            .ask(way, operation, self.token(authority), &text)
            .map_err(|error| not(error.to_string()))
    }

    /// Sends a message by the first way.
    pub(super) fn send(&self, authority: u32, message: &Map) -> Checked<Answer> {
        let way = self.endpoint.ways().first().copied();
        self.send_by(way.unwrap_or(Route::Http), authority, message)
    }

    /// Sends a message without a token.
    pub(super) fn send_bare(&self, message: &Map) -> Checked<Answer> {
        self.send(u32::MAX, message)
    }

    /// Asks something in a session, and expects an answer.
    pub(super) fn ask_in(
        &mut self,
        agent: &str,
        session: Option<&str>,
        operation: &str,
        payload: &str,
    ) -> Checked<Value> {
        let message = self.message(agent, operation, session, parsed(payload));
        let authority = self.agents.get(agent).copied().unwrap_or(4);
        let answer = self.send(authority, &message)?;
        if answer.is_error {
            return Err(not(format!("{operation} is refused: {}", answer.value)));
        }
        if let Some(epoch) = answer.value.get("epoch").and_then(Value::as_u64) {
            self.epoch = self.epoch.max(epoch);
        }
        Ok(answer.value)
    }

    /// Asks something, and expects an answer.
    pub(super) fn ask(&mut self, agent: &str, operation: &str, payload: &str) -> Checked<Value> {
        self.ask_in(agent, None, operation, payload)
    }

    /// Asks something, and expects an error of this code.
    pub(super) fn refuses(
        &mut self,
        code: &str,
        agent: &str,
        operation: &str,
        payload: &str,
    ) -> Checked {
        let found = self.refusal(agent, operation, payload)?;
        expect(found == code, format!("{operation} {payload} is {found}, and not {code}"))
    }

    /// Asks something, and returns the code of the error.
    pub(super) fn refusal(
        &mut self,
        agent: &str,
        operation: &str,
        payload: &str,
    ) -> Checked<String> {
        let message = self.message(agent, operation, None, parsed(payload));
        let authority = self.agents.get(agent).copied().unwrap_or(4);
        let answer = self.send(authority, &message)?;
        let code = answer.value.get("code").and_then(Value::as_str).unwrap_or_default();
        let is_rejected = answer.value.get("status").and_then(Value::as_str) == Some("rejected");
        expect(
            answer.is_error || is_rejected || !code.is_empty(),
            format!("{operation} {payload} is answered"),
        )?;
        Ok(code.to_owned())
    }

    /// Registers an agent of this run, once, and returns its id.
    pub(super) fn join(&mut self, name: &str, role: &str, authority: u32) -> Checked<String> {
        let id = self.name(name);
        if self.agents.contains_key(&id) {
            return Ok(id);
        }
        self.agents.insert(id.clone(), authority);
        let payload = format!(r#"{{"id":"{id}","role":"{role}"}}"#);
        let answer = self.ask(&id, "REGISTER", &payload)?;
        let level = answer.pointer("/field_capabilities/conformance_level");
        self.declared = self.declared.or(level.and_then(Value::as_u64));
        Ok(id)
    }

    /// Records a committed finding, and returns its id.
    pub(super) fn record(&mut self, agent: &str, content: &str, more: &str) -> Checked<String> {
        let answer = self.ask(agent, "RECORD", &unit(content, more))?;
        text(&answer, "/memory_unit_id")
    }

    /// Attunes with some members of a scope.
    pub(super) fn attune(&mut self, agent: &str, more: &str) -> Checked<Value> {
        let payload = format!(r#"{{"scope":{{"role":"planner","max_units":200{more}}}}}"#);
        self.ask(agent, "ATTUNE", &payload)
    }

    /// Ends the endpoint and starts it again, if it is said how.
    pub(super) fn restarted(&self) -> Checked {
        let Some(command) = &self.restart else {
            return Err(Verdict::Undecided(
                "--restart says how the endpoint is started again".to_owned(),
            ));
        };
        let status = Command::new("sh").arg("-c").arg(command).status();
        let is_done = status.as_ref().is_ok_and(|status| status.success());
        if is_done { Ok(()) } else { Err(Verdict::Undecided(format!("{command}: {status:?}"))) }
    }

    /// Listens as an agent while `work` is done.
    pub(super) fn heard(
        &self,
        agent: &str,
        most: usize,
        work: impl FnOnce() -> Checked,
    ) -> Checked<Vec<Value>> {
        let authority = self.agents.get(agent).copied().unwrap_or(4);
        let token = self.token(authority);
        let events = self.endpoint.open_events(&format!("?agent_id={agent}"), token);
        // The binding of push is not in the draft.
        let events = events.map_err(|why| {
            Verdict::Undecided(format!("no stream of events at events?agent_id=: {why}"))
        })?;
        work()?;
        Ok(events.next(most))
    }
}

/// Reads the file of tokens.
///
/// # Errors
/// It cannot be read, or a line has no number and no token.
fn read_tokens(file: &std::path::Path) -> Result<BTreeMap<u32, String>> {
    let all = std::fs::read_to_string(file).map_err(|why| Error::input(file, why))?;
    let mut tokens = BTreeMap::new();
    for (number, line) in (1..).zip(all.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let authority = words.next().and_then(|word| word.parse().ok());
        match (authority, words.next(), words.next()) {
            (Some(authority), Some(token), None) => tokens.insert(authority, token.to_owned()),
            _ => {
                let problem = format!("line {number} is no AUTHORITY TOKEN");
                return Err(Error::input(file, problem));
            }
        };
    }
    Ok(tokens)
}

fn parsed(payload: &str) -> Value {
    let value = json::from_slice(payload.as_bytes(), &omir_core::decode::Limits::default());
    value.unwrap_or_default()
}

/// Returns the payload of a committed finding.
pub(super) fn unit(content: &str, more: &str) -> String {
    format!(
        r#"{{"mode":"committed","type":"finding","content":"{content}","intent":{{"purpose":"conformance"}},"confidence":{{"score":0.8,"reasoning":"seen"}}{more}}}"#
    )
}

/// Returns a text of an answer.
pub(super) fn text(value: &Value, pointer: &str) -> Checked<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| not(format!("there is no text at {pointer} of {value}")))
}

/// Returns a list of an answer.
pub(super) fn list<'v>(value: &'v Value, pointer: &str) -> Checked<&'v [Value]> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.ok_or_else(|| not(format!("there is no list at {pointer} of {value}")))
}

/// Returns the ids of the units of an ATTUNE.
pub(super) fn ids(answer: &Value) -> Checked<Vec<String>> {
    list(answer, "/record")?.iter().map(|one| text(one, "/memory_unit/id")).collect()
}
