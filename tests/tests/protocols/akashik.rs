//! Akashik across power cuts: at every operation of a card, amid a life that makes each kind of change. What was answered is there, and
//! its message has that answer again; what was not is there whole or not at all; and the life goes on from there to the same end.

use std::sync::mpsc::channel;
use std::time::Instant;

use omird::access::Access;
use omird::engine::Engine;
use omird::protocols::Protocols;
use omird::protocols::akashik::{AGENT, MESSAGE};
use omird::router::{Caller, Incoming, Message, Router, Scopes};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::session::{Session, TestClock};
use serde_json::{Value, json};

/// A running field.
struct Field {
    protocols: Protocols,
}

impl Field {
    fn over(engine: &Engine) -> Self {
        let access = Access::open_to_all(Protocols::SCOPES);
        let router = Router::new(engine.clone(), []);
        Self { protocols: Protocols::routed(engine, "r1", access, router) }
    }

    /// Sends a message of an agent with all authority. `None` if it is not done for want of power.
    fn send(&self, id: &str, agent: &str, operation: &str, payload: &Value) -> Option<Value> {
        let body = json!({
            "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation, "agent_id": agent,
            "session_id": null, "epoch": 0, "payload": payload,
        });
        let body = body.to_string().into_bytes();
        let scopes = Scopes::only(&[AGENT]);
        let caller = Caller { scopes, authority: Some(10), ..Caller::trusted("test", "a") };
        let incoming = Incoming { bytes: body.len(), ..Incoming::default() };
        let admitted =
            self.protocols.router.admit(&caller, &MESSAGE, incoming).expect("an agent may");
        let message = Message {
            body,
            parameters: Vec::new(),
            request_id: None,
            trace_id: None,
            began: Instant::now(),
        };
        let exchange = self.protocols.exchange("akashik").expect("it is served").clone();
        let (tell, told) = channel();
        exchange.answer(admitted, message, Box::new(move |answer| drop(tell.send(answer))));
        let answer = told.recv().ok()?;
        let value: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert!(answer.status < 300 || answer.status >= 500, "{operation} {payload}: {value}");
        (answer.status < 300).then_some(value)
    }

    fn look(&self, at: &str) -> Value {
        let scope = json!({"scope": {"role": "r", "max_units": 100, "include_archived": true}});
        self.send(&format!("look-{at}"), "c", "ATTUNE", &scope).expect("there is power")
    }
}

fn unit(content: &str, relations: &Value) -> Value {
    json!({
        "type": "finding", "content": content, "intent": {"purpose": "p", "task_id": "t1"},
        "confidence": {"score": 0.5, "reasoning": "seen"}, "relations": relations,
    })
}

/// The steps of a life: who asks what, by what was answered before.
fn step(at: usize, answers: &[Value]) -> Option<(&'static str, &'static str, Value)> {
    let text = |at: usize, pointer: &str| {
        let found = answers[at].pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("{pointer} of {}", answers[at])).to_owned()
    };
    let join = |id: &str| json!({"id": id, "role": "r"});
    Some(match at {
        0 => ("a", "REGISTER", join("a")),
        1 => ("b", "REGISTER", join("b")),
        2 => ("c", "REGISTER", join("c")),
        3 => (
            "a",
            "COORDINATE",
            json!({"action": "create", "task": {"id": "t1", "title": "t", "assignee": "a"}}),
        ),
        4 => ("a", "COORDINATE", json!({"action": "start", "task_id": "t1"})),
        5 => ("a", "RECORD", unit("The gate of the yard is wide.", &json!([]))),
        6 => (
            "b",
            "RECORD",
            unit(
                "Nothing passes there.",
                &json!([{"type": "contradicts", "target_id": text(5, "/memory_unit_id")}]),
            ),
        ),
        7 => {
            let conflict = text(6, "/conflicts_detected/0");
            (
                "c",
                "MERGE",
                json!({"conflict_id": conflict, "strategy": "last_write_wins", "resolution": {"rationale": "r"}}),
            )
        }
        8 => (
            "a",
            "HANDOFF",
            json!({"action": "offer", "task_id": "t1", "to_agent": "b", "context": {"summary": "s"}}),
        ),
        9 => ("b", "HANDOFF", json!({"action": "accept", "handoff_id": text(8, "/handoff/id")})),
        10 => ("a", "SESSION", json!({"action": "create", "session_id": "s1", "goal": "g"})),
        11 => ("a", "SESSION", json!({"action": "pause", "session_id": "s1"})),
        12 => (
            "c",
            "SUBSCRIBE",
            json!({"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}),
        ),
        13 => ("b", "RECORD", unit("A secret of two words.", &json!([]))),
        14 => (
            "c",
            "COMPACT",
            json!({"strategy": "archive", "filter": {"unit_ids": [text(6, "/memory_unit_id")]}}),
        ),
        15 => (
            "c",
            "COMPACT",
            json!({"strategy": "purge", "filter": {"unit_ids": [text(13, "/memory_unit_id")]}}),
        ),
        16 => ("b", "COORDINATE", json!({"action": "fail_agent"})),
        17 => ("a", "DEREGISTER", json!({"agent_id": "a"})),
        _ => return None,
    })
}

/// Lives on from what was answered, until the end or until the power goes.
fn live(field: &Field, answers: &mut Vec<Value>) {
    while let Some((agent, operation, payload)) = step(answers.len(), answers) {
        let id = format!("step-{}", answers.len());
        match field.send(&id, agent, operation, &payload) {
            Some(answer) => answers.push(answer),
            None => return,
        }
    }
}

/// What a field is in the end, without its epochs.
fn end(field: &Field, answers: &[Value]) -> Value {
    let seen = field.look("end");
    let units: Vec<_> = seen["record"]
        .as_array()
        .expect("units")
        .iter()
        .map(|one| {
            json!([
                one["memory_unit"]["content"],
                one["memory_unit"]["status"],
                one["memory_unit"]["source"]["agent_id"]
            ])
        })
        .collect();
    let ask = |id: &str, agent: &str, operation: &str, payload: Value| {
        field.send(id, agent, operation, &payload).expect("there is power")
    };
    let task = ask("end-1", "c", "COORDINATE", json!({"action": "get", "task_id": "t1"}));
    let mut task = task["task"].clone();
    task["epoch"] = Value::Null;
    let conflicts = ask("end-2", "c", "DETECT", json!({"mode": "list"}));
    let conflict = &conflicts["conflicts"][0];
    let of = |at: usize, pointer: &str| answers[at].pointer(pointer).cloned();
    let trace = |id: &str, at: usize| {
        let payload = json!({"target_type": "memory_unit", "target_id": of(at, "/memory_unit_id"), "depth": "detailed"});
        let told = ask(id, "c", "REPLAY", payload);
        let events = told["timeline"].as_array().expect("events").clone();
        events.iter().map(|one| one["event_type"].clone()).collect::<Vec<_>>()
    };
    let subscriptions = ask("end-3", "c", "SUBSCRIBE", json!({"action": "list"}));
    json!({
        "units": units, "task": task, "conflict": conflict["status"], "conflicts": conflicts["conflicts"].as_array().map(Vec::len),
        "traces": [trace("end-4", 5), trace("end-5", 6), trace("end-6", 13)],
        "subscriptions": subscriptions["subscriptions"].as_array().map(Vec::len),
    })
}

#[test]
fn a_cut_at_any_operation_keeps_each_answer_and_the_life_goes_on() {
    let whole = {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = Session::open(&disk, &clock).expect("it opens");
        let (field, mut answers) = (Field::over(&session), Vec::new());
        live(&field, &mut answers);
        assert_eq!(answers.len(), 18, "a life without a cut comes to its end");
        end(&field, &answers)
    };
    assert_eq!(whole["units"].as_array().map(Vec::len), Some(1), "{whole}");
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        disk.cut_at(cut);
        let mut answers = Vec::new();
        if let Ok(session) = Session::open(&disk, &clock) {
            live(&Field::over(&session), &mut answers);
        }
        let extreme = if cut % 2 == 0 { ONLY_SYNCED } else { EVERYTHING };
        for seed in [extreme, 2 * cut + 2] {
            let session = Session::open(&disk.survivors(seed), &clock).expect("it opens");
            let field = Field::over(&session);
            for (at, answer) in answers.iter().enumerate() {
                let (agent, operation, payload) = step(at, &answers).expect("a step");
                let again = field.send(&format!("step-{at}"), agent, operation, &payload);
                assert_eq!(
                    again.as_ref(),
                    Some(answer),
                    "cut at {cut}, survivors {seed}, step {at}"
                );
            }
            let last = answers.iter().filter_map(|answer| answer["epoch"].as_u64()).max();
            let mut resumed = answers.clone();
            live(&field, &mut resumed);
            assert_eq!(resumed.len(), 18, "cut at {cut}, survivors {seed}");
            assert_eq!(end(&field, &resumed), whole, "cut at {cut}, survivors {seed}");
            let epoch = field.look("last")["epoch"].as_u64();
            assert!(epoch > last, "cut at {cut}, survivors {seed}: {epoch:?} after {last:?}");
        }
        if !disk.is_off() {
            assert!(cut > 30, "every operation was cut: {cut}");
            break;
        }
    }
}
