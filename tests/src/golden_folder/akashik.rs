//! A field of Akashik is a format too: its units, conflicts, tasks and sessions are records, and so is its log. Here agents live
//! in one, and here are the questions that its folder is asked.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use omir_core::value::Value;
use omird::engine::Engine;
use omird::protocols::Protocols;
use omird::protocols::akashik::{AGENTS, MESSAGE, UNIT};

use super::asks::{self, Ask, protocols};
use super::lives::Robot;
use crate::session::TestClock;

/// The name of the life.
pub const NAME: &str = "akashik";

const MINUTE: Duration = Duration::from_secs(60);

/// A message of an agent. A message that is sent again has its answer again.
fn message(id: &str, agent: &str, operation: &str, payload: &str) -> Ask {
    Ask::of(
        &MESSAGE,
        format!(
            r#"{{"protocol":"akashik","version":"0.1.0","id":"{id}","operation":"{operation}","agent_id":"{agent}",
            "session_id":null,"epoch":0,"payload":{payload}}}"#
        ),
    )
}

fn unit(content: &str, relations: &str) -> String {
    format!(
        r#"{{"type":"finding","content":"{content}","intent":{{"purpose":"p","task_id":"t1"}},
        "confidence":{{"score":0.5,"reasoning":"seen"}},"relations":[{relations}]}}"#
    )
}

/// Agents that tell a field something, one message a minute.
struct Field<'l> {
    protocols: Protocols,
    clock: &'l TestClock,
    sent: usize,
}

impl Field<'_> {
    /// Sends the next message; returns what its answer has at a place.
    fn tell(&mut self, agent: &str, operation: &str, payload: &str, at: &str) -> String {
        self.clock.advance(MINUTE);
        let id = format!("m{}", self.sent);
        self.sent += 1;
        let (status, answer) = message(&id, agent, operation, payload).ask(&self.protocols);
        assert!(status < 300, "{operation} {payload}: {answer}");
        answer.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// Lives the life.
pub(super) fn life(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let robot = Robot::new(data, clock, false)?;
    let mut field = Field { protocols: protocols(robot.session()), clock, sent: 0 };
    for agent in ["a", "b", "c"] {
        field.tell(agent, "REGISTER", &format!(r#"{{"id":"{agent}","role":"r"}}"#), "");
    }
    let task = r#"{"action":"create","task":{"id":"t1","title":"t","assignee":"a"}}"#;
    field.tell("a", "COORDINATE", task, "");
    field.tell("a", "COORDINATE", r#"{"action":"start","task_id":"t1"}"#, "");
    let wide = field.tell("a", "RECORD", &unit("The gate is wide.", ""), "/memory_unit_id");
    let against = format!(r#"{{"type":"contradicts","target_id":"{wide}"}}"#);
    let narrow = unit("Nothing passes the gate.", &against);
    let conflict = field.tell("b", "RECORD", &narrow, "/conflicts_detected/0");
    let merge = format!(
        r#"{{"conflict_id":"{conflict}","strategy":"last_write_wins","resolution":{{"rationale":"r"}}}}"#
    );
    field.tell("c", "MERGE", &merge, "");
    robot.seal();

    let offer = r#"{"action":"offer","task_id":"t1","to_agent":"b","context":{"summary":"s"}}"#;
    let handoff = field.tell("a", "HANDOFF", offer, "/handoff/id");
    let accept = format!(r#"{{"action":"accept","handoff_id":"{handoff}"}}"#);
    field.tell("b", "HANDOFF", &accept, "");
    field.tell("a", "SESSION", r#"{"action":"create","session_id":"s1","goal":"g"}"#, "");
    field.tell("a", "SESSION", r#"{"action":"pause","session_id":"s1"}"#, "");
    let old =
        field.tell("b", "RECORD", &unit("A crate stands at the gate.", ""), "/memory_unit_id");
    let archive = format!(r#"{{"strategy":"archive","filter":{{"unit_ids":["{old}"]}}}}"#);
    field.tell("c", "COMPACT", &archive, "");
    field.tell("b", "RECORD", &unit("The crate is gone.", ""), "");
    field.tell("a", "DEREGISTER", r#"{"agent_id":"a"}"#, "");
    drop(field);
    robot.kill()
}

/// The questions: what is there, what there was, and a message that is sent again.
fn questions() -> Vec<Ask> {
    let ask = |id: &str, operation: &str, payload: &str| message(id, "c", operation, payload);
    vec![
        // By their names: the order of ATTUNE is a rule of the build.
        Ask::named(&UNIT, "id", "mem-6"),
        Ask::named(&UNIT, "id", "mem-7"),
        Ask::named(&UNIT, "id", "mem-13"),
        ask("q2", "DETECT", r#"{"mode":"list"}"#),
        ask("q3", "REPLAY", r#"{"target_type":"task","target_id":"t1","depth":"full_trace"}"#),
        Ask::of(&AGENTS, ""),
        message("m5", "a", "RECORD", &unit("The gate is wide.", "")),
    ]
}

/// The replies of the protocol, one a line.
///
/// # Panics
/// If it does not answer.
pub fn replies(engine: &Engine) -> String {
    asks::replies(&questions(), &protocols(engine))
}

/// Compares kept replies with those of an engine.
///
/// # Panics
/// If a member that was told is lost, or another.
#[track_caller]
pub fn compare(what: &str, kept: &str, engine: &Engine) {
    asks::compare(what, &questions(), kept, &replies(engine));
}
