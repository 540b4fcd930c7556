//! The row and its batches: what is refused, and what a refusal leaves.

use std::sync::mpsc;

use omird_engine::testing::parts;
use omird_engine::{Engine, Parts, Settings};

use omir_core::decode::Limits;
use omir_core::json;

use super::*;
use crate::Akashik;
use crate::failure::TOO_LARGE;
use crate::words::Operation;

fn somebody() -> CallerRights {
    CallerRights {
        authority: 4,
        holder: String::new(),
        caller: "somebody".to_owned(),
        agents: Vec::new(),
        reads_robot: false,
        is_owner: false,
    }
}

fn envelope(id: &str, operation: Operation, payload: &str) -> Envelope {
    let payload = json::from_slice(payload.as_bytes(), &Limits::default()).unwrap();
    Envelope {
        id: id.to_owned(),
        operation,
        agent_id: "a".to_owned(),
        session_id: None,
        epoch: 0,
        payload: payload.as_object().unwrap().clone(),
    }
}

/// Asks for changes that are decided about together.
fn together(field: &Arc<Field>, messages: Vec<Envelope>) -> Vec<OperationResult> {
    let deciding = field.hold();
    let told: Vec<mpsc::Receiver<OperationResult>> = messages
        .into_iter()
        .map(|message| {
            let (tell, told) = mpsc::channel();
            field.change(message, somebody(), Box::new(move |done| tell.send(done).unwrap()));
            told
        })
        .collect();
    assert_eq!(field.row.lock().len(), told.len(), "all of them wait");
    drop(deciding);
    while field.decide_about(usize::MAX) {}
    told.into_iter().map(|told| told.recv().unwrap()).collect()
}

fn register() -> Envelope {
    envelope("m-1", Operation::Register, r#"{"id":"a","role":"r"}"#)
}

/// Returns a unit whose evidence alone takes so many texts of 16 KiB.
fn record(id: &str, texts: usize) -> Envelope {
    let text = format!("\"{}\"", "x".repeat(16 << 10));
    let evidence = vec![text; texts].join(",");
    let payload = format!(
        r#"{{"type":"finding","content":"c","intent":{{"purpose":"p"}},"confidence":{{"score":0.9,"reasoning":"r","evidence":[{evidence}]}}}}"#
    );
    envelope(id, Operation::Record, &payload)
}

#[test]
fn an_operation_that_is_too_large_is_refused_alone() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    let field = Akashik::new(&engine).field(None);
    let task = |n: usize| {
        let text = "x".repeat(16 << 10);
        let payload = format!(
            r#"{{"action":"create","task":{{"title":"t","description":"{text}","assignee":"a"}}}}"#
        );
        envelope(&format!("t-{n}"), Operation::Coordinate, &payload)
    };
    let tasks = std::iter::once(register()).chain((0..65).map(task)).collect();
    assert!(together(&field, tasks).iter().all(Result::is_ok));
    // An agent that leaves gives all its tasks back, in one entry.
    let leave = envelope("m-3", Operation::Deregister, r#"{"agent_id":"a"}"#);
    let done = together(&field, vec![record("m-2", 1), leave, record("m-4", 1)]);
    assert!(done[0].is_ok() && done[2].is_ok(), "{done:?}");
    assert_eq!(done[1].as_ref().unwrap_err().code, &TOO_LARGE);
    assert!(!field.state.read().is_stale, "the log is not read again");
    // Many that fit alone are written, one transaction after the other.
    let many: Vec<Envelope> = (0..8).map(|n| record(&format!("n-{n}"), 50)).collect();
    assert!(together(&field, many).iter().all(Result::is_ok));
    let large = together(&field, vec![record("m-5", 65)]);
    assert_eq!(large[0].as_ref().unwrap_err().code, &TOO_LARGE);
    assert_eq!(field.state.read().model.units.len(), 10);
    engine.stop();
}

#[test]
fn a_change_that_the_store_refuses_leaves_the_state_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { read_only: true, ..Settings::default() };
    let parts = Parts { settings, ..parts(dir.path()) };
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    let field = Akashik::new(&engine).field(None);
    let done = together(&field, vec![register()]);
    assert!(done[0].is_err());
    let state = field.state.read();
    assert!(state.is_loaded && !state.is_stale, "the log is not read again");
    assert!(state.model.agents.is_empty());
    assert_eq!(field.clock.lock().leased(), 0, "no lease was written");
    engine.stop();
}
