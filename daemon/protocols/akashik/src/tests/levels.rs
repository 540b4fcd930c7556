//! The items of levels 0 and 1, and the outside requests of the reference.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use omir_core::cbor;
use omir_core::decode::Limits;
use omird_embedding::{Embedder, ModelName};
use omird_engine::Encoding;
use omird_router::DEFAULT_TENANT;

use super::*;
use crate::names::{Sort, name};

#[test]
fn a_unit_is_recorded_and_found_by_others() {
    let rig = Rig::new();
    let joined = rig.register("a", "mapper", 4);
    assert_eq!(text(&joined, "/agent/status"), "idle");
    assert_eq!(number(&joined, "/field_capabilities/conformance_level"), 3);
    rig.join(&["b"]);
    let id = rig.record("a", "The door of room 12 is open.", "");
    let draft = r#"{"mode":"draft","type":"question","content":"Is room 12 empty?","intent":{"purpose":"ask"}}"#;
    let draft = text(&rig.ask("a", "RECORD", draft), "/memory_unit_id").to_owned();
    let seen = rig.attune("b", "");
    assert_eq!(ids(&seen), [id.as_str()], "a draft is its author's: {draft}");
    let found = &list(&seen, "/record")[0];
    assert_eq!(text(found, "/memory_unit/source/agent_id"), "a");
    assert_eq!(text(found, "/memory_unit/source/agent_role"), "mapper");
    assert_eq!(text(found, "/memory_unit/status"), "active");
    assert_eq!(text(found, "/memory_unit/content"), "The door of room 12 is open.");
    let score = found.pointer("/relevance_score").and_then(Value::as_f64).unwrap();
    assert!((0.0..=1.0).contains(&score) && !text(found, "/relevance_reason").is_empty());
    assert!(ids(&rig.attune("a", "")).is_empty(), "its own are left out");
    assert_eq!(ids(&rig.attune("a", r#","include_own":true"#)).len(), 2);
}

#[test]
fn what_is_wrong_is_named_and_stores_nothing() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let fault = |payload: &str| rig.fault("a", "RECORD", payload);
    assert_eq!(fault(r#"{"type":"finding","content":"x"}"#), "MISSING_INTENT");
    assert_eq!(
        fault(r#"{"mode":"draft","type":"finding","content":"x","intent":{"purpose":"  "}}"#),
        "MISSING_INTENT"
    );
    let whole = unit("x", "");
    let but = |from: &str, to: &str| {
        assert!(whole.contains(from));
        fault(&whole.replace(from, to))
    };
    assert_eq!(but(r#","reasoning":"seen""#, ""), "MISSING_CONFIDENCE");
    assert_eq!(but(r#""score":0.8,"#, ""), "MISSING_CONFIDENCE");
    assert_eq!(but("0.8", "1.1"), "INVALID_CONFIDENCE");
    assert_eq!(but("0.8", "\"high\""), "INVALID_CONFIDENCE");
    assert_eq!(but("finding", "rumour"), "INVALID_TYPE");
    assert_eq!(but(r#""content":"x""#, r#""content":"""#), "INVALID_PAYLOAD");
    assert_eq!(but(r#""content":"x""#, r#""content":"x","id":"mine""#), "INVALID_PAYLOAD");
    assert_eq!(but(r#""content":"x""#, r#""content":"x","contents":"y""#), "INVALID_PAYLOAD");
    let draft = r#"{"mode":"draft","type":"finding","content":"x","intent":{"purpose":"p"},"confidence":{"score":2}}"#;
    assert_eq!(fault(draft), "INVALID_CONFIDENCE", "drafts too");
    assert_eq!(rig.fault("nobody", "RECORD", &whole), "AGENT_NOT_REGISTERED");
    assert_eq!(rig.fault("a", "REGISTER", r#"{"id":"a","role":"r"}"#), "AGENT_ID_TAKEN");
    assert_eq!(
        rig.fault("a", "ATTUNE", r#"{"scope":{"role":"","max_units":1}}"#),
        "INVALID_PAYLOAD"
    );
    assert_eq!(
        rig.fault("a", "ATTUNE", r#"{"scope":{"role":"r","max_units":0}}"#),
        "INVALID_PAYLOAD"
    );
    let missing =
        rig.ask("c", "REGISTER", r#"{"id":"c","role":"r","required_operations":["DREAM"]}"#);
    assert_eq!(text(&missing, "/status"), "rejected");
    assert!(text(&missing, "/rejection_reason").contains("DREAM"));
    assert!(ids(&rig.attune("b", "")).is_empty());
}

#[test]
fn the_trace_of_the_draft() {
    let rig = Rig::new();
    let send = |body: String| {
        let answer = rig.send(&with(4), &MESSAGE, &body, &[]);
        assert!(answer.status < 300, "{}", String::from_utf8_lossy(&answer.body));
        value(&answer.body)
    };
    send(envelope(
        "m1",
        "researcher-01",
        "REGISTER",
        None,
        0,
        r#"{"id":"researcher-01","role":"market_researcher"}"#,
    ));
    let first = send(envelope(
        "m2",
        "researcher-01",
        "RECORD",
        None,
        1,
        &unit(
            "The market grows by 5 %.",
            r#","relations":[{"type":"answers","target_id":"question-7"}]"#,
        ),
    ));
    assert_eq!(number(&first, "/epoch"), 2);
    assert!(list(&first, "/conflicts_detected").is_empty());
    for (id, agent) in [("m3", "strategist-01"), ("m4", "researcher-02")] {
        send(envelope(
            id,
            agent,
            "REGISTER",
            None,
            2,
            &format!(r#"{{"id":"{agent}","role":"strategist"}}"#),
        ));
    }
    let target = text(&first, "/memory_unit_id").to_owned();
    let against = format!(r#","relations":[{{"type":"contradicts","target_id":"{target}"}}]"#);
    let second = send(envelope(
        "m5",
        "researcher-02",
        "RECORD",
        None,
        10,
        &unit("Nobody buys any more.", &against),
    ));
    assert_eq!(number(&second, "/epoch"), 11);
    let conflict = text(&second, "/conflicts_detected/0").to_owned();
    let seen = rig.attune("strategist-01", "");
    assert!(number(&seen, "/epoch") > 11);
    let shown = &list(&seen, "/conflicts")[0];
    assert_eq!(
        (text(shown, "/id"), text(shown, "/type"), text(shown, "/status")),
        (conflict.as_str(), "factual", "detected")
    );
    assert_eq!(
        (text(shown, "/unit_a"), text(shown, "/detected_by")),
        (target.as_str(), "explicit")
    );
}

#[test]
fn the_same_message_is_one_unit_and_has_one_answer() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let body = envelope("once", "a", "RECORD", None, 0, &unit("The lift works.", ""));
    let first = rig.send(&with(4), &MESSAGE, &body, &[]);
    let again = rig.send(&with(4), &MESSAGE, &body, &[]);
    assert_eq!(first, again);
    rig.restart();
    assert_eq!(rig.send(&with(4), &MESSAGE, &body, &[]), first, "after a restart as well");
    let other = envelope("once", "a", "RECORD", None, 0, &unit("The lift is red.", ""));
    assert_eq!(rig.send(&with(4), &MESSAGE, &other, &[]).status, 400);
    assert_eq!(ids(&rig.attune("b", "")).len(), 1);
}

#[test]
fn the_same_message_at_once_is_one_unit() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let body = envelope("once", "a", "RECORD", None, 0, &unit("The lift works.", ""));
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..8).map(|_| scope.spawn(|| rig.send(&with(4), &MESSAGE, &body, &[]))).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(ids(&rig.attune("b", "")).len(), 1);
}

#[test]
fn everything_outlives_a_restart_and_epochs_never_fall() {
    let mut rig = Rig::new();
    rig.join(&["a", "b", "c"]);
    let one = rig.record("a", "The charger is at the door.", "");
    let two = rig.record(
        "b",
        "Cups are on the shelf.",
        &format!(r#","relations":[{{"type":"contradicts","target_id":"{one}"}}]"#),
    );
    rig.ask(
        "c",
        "SUBSCRIBE",
        r#"{"action":"subscribe","subscription":{"events":["memory.recorded"]}}"#,
    );
    let task =
        rig.ask("a", "COORDINATE", r#"{"action":"create","task":{"title":"map","assignee":"a"}}"#);
    // Reads advance the clock as well.
    let last = (0..40).map(|_| number(&rig.attune("c", ""), "/epoch")).max().unwrap();
    let before = rig.attune("c", "");
    rig.restart();
    let after = rig.attune("c", "");
    assert!(number(&after, "/epoch") > last);
    for pointer in ["/record", "/conflicts"] {
        assert_eq!(before.pointer(pointer), after.pointer(pointer));
    }
    assert_eq!(ids(&after).len(), 2);
    let status = rig.attune("c", r#","since_epoch":1"#);
    assert_eq!(ids(&status).len(), 2, "{one} {two}");
    let id = text(&task, "/task/id");
    let again = rig.ask("a", "COORDINATE", &format!(r#"{{"action":"get","task_id":"{id}"}}"#));
    assert_eq!(again.pointer("/task"), task.pointer("/task"));
    let subscriptions = rig.ask("c", "SUBSCRIBE", r#"{"action":"list"}"#);
    assert_eq!(list(&subscriptions, "/subscriptions").len(), 1);
}

#[test]
fn reads_beyond_the_lease_write_a_new_one() {
    let mut rig = Rig::new();
    rig.join(&["a"]);
    let ahead =
        envelope("far", "a", "ATTUNE", None, 1_000_000, r#"{"scope":{"role":"r","max_units":1}}"#);
    let answer = value(&rig.send(&with(4), &MESSAGE, &ahead, &[]).body);
    let epoch = number(&answer, "/epoch");
    assert!(epoch > 1_000_000);
    rig.restart();
    assert!(number(&rig.attune("a", ""), "/epoch") > epoch);
    let beyond = envelope(
        "beyond",
        "a",
        "ATTUNE",
        None,
        (1 << 53) - 1,
        r#"{"scope":{"role":"r","max_units":1}}"#,
    );
    let answer = rig.send(&with(4), &MESSAGE, &beyond, &[]);
    assert_eq!(text(&value(&answer.body), "/code"), "EPOCH_OVERFLOW");
}

#[test]
fn polling_meets_each_unit() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    rig.record("a", "one", "");
    let since = number(&rig.attune("b", ""), "/epoch");
    let two = rig.record("a", "two", "");
    let seen = rig.attune("b", &format!(r#","since_epoch":{since}"#));
    assert_eq!(ids(&seen), [two.as_str()]);
}

#[test]
fn interests_have_a_bound() {
    let rig = Rig::new();
    let register = |count: usize, bytes: usize| {
        let interest = format!("\"{}\"", "x".repeat(bytes));
        let interests = vec![interest; count].join(",");
        let payload = format!(r#"{{"id":"a","role":"r","interests":[{interests}]}}"#);
        rig.ask_in("a", 4, None, "REGISTER", &payload)
    };
    for (count, bytes) in [(40, 16 << 10), (65, 1), (1, 257)] {
        let (status, answer) = register(count, bytes);
        assert_eq!((status, text(&answer, "/code")), (400, "INVALID_PAYLOAD"));
        assert!(text(&answer, "/message").contains("/interests"), "{answer}");
    }
    assert_eq!(register(64, 256).0, 201);
}

#[test]
fn units_outlive_their_agent() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    rig.record("a", "The lift works.", "");
    rig.ask("a", "COORDINATE", r#"{"action":"create","task":{"title":"map","assignee":"a"}}"#);
    let left = rig.ask("a", "DEREGISTER", r#"{"agent_id":"a"}"#);
    assert_eq!(
        (
            text(&left, "/status"),
            number(&left, "/cleanup/units_orphaned"),
            number(&left, "/cleanup/tasks_reassigned")
        ),
        ("ok", 1, 1)
    );
    assert_eq!(ids(&rig.attune("b", "")).len(), 1);
    assert_eq!(
        rig.fault("a", "ATTUNE", r#"{"scope":{"role":"r","max_units":1}}"#),
        "AGENT_NOT_REGISTERED"
    );
    assert_eq!(rig.fault("b", "DEREGISTER", r#"{"agent_id":"b2","x":1}"#), "INVALID_PAYLOAD");
    let gone = rig.ask_as("b", 8, "DEREGISTER", r#"{"agent_id":"a"}"#);
    assert_eq!(text(&gone, "/status"), "not_found");
    rig.register("a", "planner", 4);
}

#[test]
fn a_budget_of_tokens_is_kept() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let long = "The corridor of the second floor is long and dark. It has nine doors. Nobody uses the last of them. ".repeat(4);
    for n in 0..50 {
        rig.record("a", &format!("Floor {n}. {long}"), "");
    }
    let seen = rig.attune("b", r#","max_tokens":200"#);
    let used = number(&seen, "/context_budget/tokens_used");
    let counted: usize = list(&seen, "/record")
        .iter()
        .map(|one| crate::meaning::tokens(text(one, "/memory_unit/content")))
        .sum();
    assert!(used <= 200 && counted as u64 == used && used > 0, "{used} {counted}");
    assert_eq!(number(&seen, "/context_budget/units_available"), 50);
    assert!(list(&seen, "/record").iter().any(|one| text(one, "/format") == "summary"));
    let ids_only =
        rig.ask("b", "ATTUNE", r#"{"scope":{"role":"r","max_units":3},"format":"ids_only"}"#);
    assert_eq!(ids(&ids_only).len(), 3);
    let near = rig.attune("b", r#","interests":["floor 7"],"relevance_threshold":0.99"#);
    assert!(ids(&near).is_empty());
}

#[test]
fn a_tenant_knows_nothing_of_another() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    rig.record("a", "The lift works.", "");
    let other = Caller { tenant: Some("acme".into()), ..with(4) };
    let register = envelope("r", "b", "REGISTER", None, 0, r#"{"id":"b","role":"planner"}"#);
    assert_eq!(rig.send(&other, &MESSAGE, &register, &[]).status, 201);
    let attune =
        envelope("t", "b", "ATTUNE", None, 0, r#"{"scope":{"role":"planner","max_units":9}}"#);
    assert!(ids(&value(&rig.send(&other, &MESSAGE, &attune, &[]).body)).is_empty());
}

#[test]
fn a_token_speaks_for_its_agents_alone() {
    let rig = Rig::new();
    let send = |caller: &Caller, agent: &str, operation: &str, payload: &str| {
        let body = rig.message(agent, operation, None, payload);
        let answer = rig.send(caller, &MESSAGE, &body, &[]);
        (answer.status, value(&answer.body))
    };
    let one = token("one", &["a"], &[AGENT]);
    let two = token("two", &["b"], &[AGENT]);
    let any = token("any", &[], &[AGENT]);
    let register = |agent: &str| format!(r#"{{"id":"{agent}","role":"planner"}}"#);
    assert_eq!(send(&one, "a", "REGISTER", &register("a")).0, 201);
    assert_eq!(send(&two, "a", "RECORD", &unit("x", "")).0, 403);
    assert_eq!(send(&any, "a", "RECORD", &unit("x", "")).0, 403, "registered with another token");
    assert_eq!(send(&with(10), "a", "RECORD", &unit("x", "")).0, 403, "nor without one");
    assert_eq!(send(&any, "c", "REGISTER", &register("c")).0, 201);
    assert_eq!(send(&any, "c", "RECORD", &unit("x", "")).0, 201);
    let declared = r#"{"id":"b","role":"planner","authority_level":8}"#;
    let (status, answer) = send(&two, "b", "REGISTER", declared);
    assert_eq!((status, text(&answer, "/code")), (403, "INSUFFICIENT_AUTHORITY"));
    // Less than the token has is what the agent has.
    let declared = r#"{"id":"d","role":"planner","authority_level":3}"#;
    assert_eq!(send(&any, "d", "REGISTER", declared).0, 201);
    let (status, answer) = send(&any, "d", "RECORD", &unit("x", ""));
    assert_eq!((status, text(&answer, "/code")), (403, "INSUFFICIENT_AUTHORITY"));
    assert_eq!(send(&any, "d", "ATTUNE", r#"{"scope":{"role":"planner","max_units":50}}"#).0, 200);
}

#[test]
fn a_freed_name_is_its_holders_still() {
    let mut rig = Rig::new();
    let send = |rig: &Rig, caller: &Caller, operation: &str, payload: &str| {
        let body = rig.message("a", operation, None, payload);
        let answer = rig.send(caller, &MESSAGE, &body, &[]);
        (answer.status, value(&answer.body))
    };
    let (one, two) = (token("one", &[], &[AGENT]), token("two", &[], &[AGENT]));
    let register = r#"{"id":"a","role":"planner"}"#;
    assert_eq!(send(&rig, &one, "REGISTER", register).0, 201);
    let draft = unit("nobody's business", "").replace("committed", "draft");
    assert_eq!(send(&rig, &one, "RECORD", &draft).0, 201);
    assert_eq!(send(&rig, &one, "DEREGISTER", r#"{"agent_id":"a"}"#).0, 200);
    rig.restart();
    for stranger in [&two, &with(10)] {
        let (status, answer) = send(&rig, stranger, "REGISTER", register);
        assert_eq!((status, text(&answer, "/code")), (409, "AGENT_ID_TAKEN"));
        assert!(text(&answer, "/message").contains("--agent a"), "{answer}");
    }
    let sees = |caller: &Caller| {
        let own = r#"{"scope":{"role":"planner","max_units":50,"include_own":true}}"#;
        ids(&send(&rig, caller, "ATTUNE", own).1).len()
    };
    assert_eq!(send(&rig, &one, "REGISTER", register).0, 201);
    assert_eq!(sees(&one), 1);
    // The owner hands it over by a token that names the agent.
    assert_eq!(send(&rig, &one, "DEREGISTER", r#"{"agent_id":"a"}"#).0, 200);
    let heir = token("heir", &["a"], &[AGENT]);
    assert_eq!(send(&rig, &heir, "REGISTER", register).0, 201);
    assert_eq!(sees(&heir), 1);
    assert_eq!(send(&rig, &one, "ATTUNE", r#"{"scope":{"role":"r","max_units":1}}"#).0, 403);
}

#[test]
fn what_is_refused_does_not_take_the_clock_along() {
    let rig = Rig::new();
    rig.join(&["a"]);
    let epoch = || number(&rig.attune("a", ""), "/epoch");
    let ask = |agent: &str, operation: &str, epoch: u64, payload: &str| {
        let id = rig.next.fetch_add(1, Ordering::Relaxed);
        let body = envelope(&format!("far-{id}"), agent, operation, None, epoch, payload);
        let answer = rig.send(&with(4), &MESSAGE, &body, &[]);
        (answer.status, value(&answer.body))
    };
    let before = epoch();
    let far = before + (1 << 30);
    let scope = r#"{"scope":{"role":"planner","max_units":50}}"#;
    assert_eq!(text(&ask("ghost", "ATTUNE", far, scope).1, "/code"), "AGENT_NOT_REGISTERED");
    assert_eq!(ask("a", "ATTUNE", far, r#"{"scope":1}"#).0, 400);
    let register = r#"{"id":"ghost","role":"planner"}"#;
    assert_eq!(text(&ask("ghost", "REGISTER", far, register).1, "/code"), "EPOCH_OVERFLOW");
    assert!(epoch() < before + 10);
    // Of an agent that it knows, the field takes it.
    let (status, answer) = ask("a", "ATTUNE", far, scope);
    assert!(status == 200 && number(&answer, "/epoch") > far, "{answer}");
    assert!(epoch() > far);
}

#[test]
fn messages_take_the_clock_only_so_far_in_an_hour() {
    let rig = Rig::new();
    rig.join(&["a"]);
    let scope = r#"{"scope":{"role":"planner","max_units":50}}"#;
    let mut now = number(&rig.attune("a", ""), "/epoch");
    let first = now;
    let ahead = |epoch: u64, operation: &str, payload: &str| {
        let id = rig.next.fetch_add(1, Ordering::Relaxed);
        let body = envelope(&format!("far-{id}"), "a", operation, None, epoch, payload);
        value(&rig.send(&with(4), &MESSAGE, &body, &[]).body)
    };
    // Reads and changes count alike.
    for (operation, payload) in [("ATTUNE", scope), ("RECORD", &unit("x", ""))].repeat(2) {
        now = number(&ahead(now + (1 << 29), operation, payload), "/epoch");
    }
    let far = ahead(now + (1 << 32), "ATTUNE", scope);
    assert_eq!(text(&far, "/code"), "EPOCH_OVERFLOW");
    let _ = ahead(now + (1 << 31) - 4096, "ATTUNE", scope);
    for (operation, payload) in [("ATTUNE", scope), ("RECORD", &unit("x", ""))] {
        now = number(&rig.attune("a", ""), "/epoch");
        assert!(now - first > (1 << 32) - 8192 && now - first < (1 << 32));
        let over = ahead(now + (1 << 20), operation, payload);
        assert_eq!(text(&over, "/code"), "EPOCH_OVERFLOW");
        // A small step is always open.
        assert!(number(&ahead(now + 200, operation, payload), "/epoch") > now + 200);
    }
}

#[test]
fn a_record_that_was_changed_past_the_field_is_not_taken_for_its_unit() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let forged = rig.record("a", "The gate of the yard is shut.", "");
    let other = rig.record("a", "A lorry passed.", "");
    let name = name(Sort::Unit, DEFAULT_TENANT, &forged).unwrap();
    let bytes = rig.engine.get(&name).unwrap().unwrap();
    let mut record = cbor::from_slice(&bytes, &Limits::default()).unwrap();
    let map = record.as_object_mut().unwrap();
    map.insert("content", "The gate of the yard is open.");
    map.remove("version");
    let bytes = cbor::to_vec(&record);
    let change = rig.engine.prepare(&bytes, Encoding::Cbor, None).unwrap();
    let (tell, told) = mpsc::channel();
    rig.engine.submit(change, bytes.len(), Box::new(move |done| tell.send(done.is_ok()).unwrap()));
    assert!(told.recv().unwrap(), "the owner of the robot may write what he likes");
    let check = |rig: &Rig| {
        assert_eq!(ids(&rig.attune("b", "")), [other.as_str()]);
        let asked = [("id", forged.as_str()), ("agent_id", "a")];
        assert_eq!(rig.send(&with(10), &crate::UNIT, "", &asked).status, 404);
        let asked = [("id", other.as_str()), ("agent_id", "a")];
        assert_eq!(rig.send(&with(10), &crate::UNIT, "", &asked).status, 200);
    };
    check(&rig);
    rig.restart();
    check(&rig);
}

#[test]
fn what_is_read_without_an_envelope_needs_its_authority_too() {
    let rig = Rig::new();
    rig.join(&["a", "lead"]);
    let id = rig.record("a", "The lift works.", "");
    let get = |authority, method, parameters: &[(&str, &str)]| {
        rig.send(&with(authority), method, "", parameters).status
    };
    let of_unit = [("id", id.as_str()), ("agent_id", "a")];
    assert_eq!([1, 2].map(|authority| get(authority, &crate::UNIT, &of_unit)), [403, 200]);
    let of_agent = [("agent_id", "a")];
    assert_eq!([3, 4].map(|authority| get(authority, &crate::CONFLICTS, &of_agent)), [403, 200]);
    // The task of an agent is shown to those in the session of the task.
    let made = rig.ask("lead", "SESSION", r#"{"action":"create","goal":"clear the hall"}"#);
    let session = text(&made, "/session/id").to_owned();
    let task = |payload: &str| rig.ask_in("lead", 4, Some(&session), "COORDINATE", payload).0;
    assert_eq!(
        task(r#"{"action":"create","task":{"title":"one","id":"t1","assignee":"lead"}}"#),
        201
    );
    assert_eq!(task(r#"{"action":"start","task_id":"t1"}"#), 200);
    let shown = |agent: &str| {
        let answer = rig.send(&with(4), &crate::AGENTS, "", &[("agent_id", agent)]);
        String::from_utf8(answer.body).unwrap().contains("t1")
    };
    assert_eq!((shown("lead"), shown("a")), (true, false));
}

#[test]
fn nobody_replaces_what_was_recorded_with_more_authority() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let ordered = rig.ask_as("a", 10, "RECORD", &unit("Keep the gate of the yard shut.", ""));
    let id = text(&ordered, "/memory_unit_id").to_owned();
    let replaces = format!(r#","relations":[{{"type":"supersedes","target_id":"{id}"}}]"#);
    let new = unit("Leave the gate of the yard open.", &replaces);
    assert_eq!(rig.fault_as("b", 4, "RECORD", &new), "INSUFFICIENT_AUTHORITY");
    rig.ask_as("a", 4, "RECORD", &new);
    // It is gone: what contradicts it is no conflict.
    let late = format!(r#","relations":[{{"type":"contradicts","target_id":"{id}"}}]"#);
    let answer = rig.ask_as("b", 4, "RECORD", &unit("A lorry passed.", &late));
    assert!(list(&answer, "/conflicts_detected").is_empty(), "{answer}");
}

#[test]
fn each_operation_asks_for_its_authority() {
    let rig = Rig::new();
    rig.register("o", "observer", 2);
    rig.register("d", "planner", 2);
    let id = {
        rig.join(&["a"]);
        rig.record("a", "The lift works.", "")
    };
    let draft = r#"{"mode":"draft","type":"finding","content":"x","intent":{"purpose":"p"}}"#;
    let refused = "INSUFFICIENT_AUTHORITY";
    assert_eq!(rig.fault_as("o", 2, "RECORD", draft), refused, "an observer only looks");
    rig.ask_as("d", 2, "RECORD", draft);
    assert_eq!(rig.fault_as("d", 2, "RECORD", &unit("x", "")), refused);
    assert_eq!(rig.fault_as("d", 1, "ATTUNE", r#"{"scope":{"role":"r","max_units":1}}"#), refused);
    rig.ask_as(
        "d",
        0,
        "REPLAY",
        &format!(r#"{{"target_type":"memory_unit","target_id":"{id}","depth":"summary"}}"#),
    );
    assert_eq!(rig.fault_as("d", 2, "DETECT", r#"{"mode":"list"}"#), refused);
    for (strategy, needed) in [("archive", 6), ("summarize", 6), ("purge", 10)] {
        let payload = format!(r#"{{"strategy":"{strategy}","filter":{{"unit_ids":["none"]}}}}"#);
        assert_eq!(rig.fault_as("a", needed - 1, "COMPACT", &payload), refused);
        rig.ask_as("a", needed, "COMPACT", &payload);
    }
    assert_eq!(rig.fault_as("d", 7, "DEREGISTER", r#"{"agent_id":"a"}"#), refused);
    rig.ask_as("d", 8, "DEREGISTER", r#"{"agent_id":"a"}"#);
}

#[test]
fn the_robot_finds_units_and_agents_find_what_it_saw() {
    let rig = Rig::new();
    rig.join(&["a"]);
    rig.record("a", "The blue kettle is in the pantry.", "");
    let query =
        omird_engine::Query { text: Some("kettle".into()), ..omird_engine::Query::default() };
    let recalled = rig.engine.recall(&query).unwrap();
    assert_eq!(recalled.hits.len(), 1, "entries of the log are not met");
    let seen = br#"[{"resourceType":"MemoryRecord","id":"cup","content":"a red cup on the table","createdAt":"2026-05-01T00:00:00Z"}]"#;
    let change = rig.engine.prepare(seen, omird_engine::Encoding::Json, None).unwrap();
    rig.engine.execute(change).unwrap();
    let attune = |caller: &Caller| {
        let payload = r#"{"scope":{"role":"planner","max_units":9,"interests":["red cup"]}}"#;
        let body = rig.message("a", "ATTUNE", None, payload);
        value(&rig.send(caller, &MESSAGE, &body, &[]).body)
    };
    let reader = Caller { scopes: Scopes::only(&[AGENT, Scope::READ]), ..with(4) };
    let seen = attune(&reader);
    assert_eq!(ids(&seen), ["omir:MemoryRecord/cup"]);
    assert_eq!(text(&seen, "/record/0/memory_unit/type"), "observation");
    assert!(ids(&attune(&with(4))).is_empty(), "a token that may not read the robot's memory");
}

#[test]
fn memories_of_the_robot_are_found_behind_records_of_protocols() {
    let rig = Rig::new();
    rig.join(&["a"]);
    let at = omir_core::instant::Timestamp::from_micros(1_780_000_000_000_000);
    let write = |from: usize, to: usize| {
        let record = |n: usize| {
            let id = omir_core::reference::Id::new(format!("stage-{n}")).unwrap();
            let mut record = omir_core::model::MemoryRecord::new(id, "red cup", at.into());
            let url = omir_core::extension::COMPASS_URL;
            record.extension = Some(vec![omir_core::model::Extension::json(url, Map::new())]);
            omir_core::model::Resource::from(record).to_value()
        };
        let bytes = cbor::to_vec(&(from..to).map(record).collect::<Value>());
        let change = rig.engine.prepare(&bytes, Encoding::Cbor, None).unwrap();
        rig.engine.execute(change).unwrap();
    };
    write(0, 300);
    let seen = br#"[{"resourceType":"MemoryRecord","id":"cup","content":"a red thing stood on the long table by the window of the kitchen","createdAt":"2026-05-01T00:00:00Z"}]"#;
    let change = rig.engine.prepare(seen, Encoding::Json, None).unwrap();
    rig.engine.execute(change).unwrap();
    let reader = Caller { scopes: Scopes::only(&[AGENT, Scope::READ]), ..with(4) };
    let attune = || {
        let payload = r#"{"scope":{"role":"planner","max_units":9,"interests":["red cup"]}}"#;
        let body = rig.message("a", "ATTUNE", None, payload);
        value(&rig.send(&reader, &MESSAGE, &body, &[]).body)
    };
    let searched = "/context_budget/robot_records_searched";
    let found = attune();
    assert_eq!(ids(&found), ["omir:MemoryRecord/cup"]);
    assert!(found.pointer(searched).is_none(), "all that matches was looked at");
    write(300, 4200);
    let found = attune();
    assert!(ids(&found).is_empty());
    assert_eq!(number(&found, searched), 4096, "the answer says that it is not all");
}

#[test]
fn a_field_outlives_the_handle_of_its_log() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let one = rig.record("a", "The lift works.", "");
    let forget = |rig: &Rig| {
        let handle = "Entity/akg.log".parse().unwrap();
        rig.engine.execute(omird_engine::Change::Forget(vec![handle])).unwrap();
    };
    forget(&rig);
    rig.restart();
    assert_eq!(ids(&rig.attune("b", "")), [one.as_str()]);
    // The next entry makes the handle once more, and only that one is found by it.
    forget(&rig);
    let two = rig.record("a", "The ramp is free.", "");
    rig.restart();
    let seen = rig.attune("b", "");
    let mut seen = ids(&seen);
    seen.sort_unstable();
    let mut both = [one.as_str(), two.as_str()];
    both.sort_unstable();
    assert_eq!(seen, both);
}

#[test]
fn notes_of_who_asked_expire_and_the_log_does_not() {
    let mut rig = Rig::new();
    rig.join(&["a"]);
    rig.record("a", "The lift works.", "");
    for _ in 0..70 {
        rig.attune("a", "");
    }
    // A note that is not full yet is written with the next change.
    rig.record("a", "The ramp is free.", "");
    let count = |rig: &Rig, of: &str| {
        let mut count = 0;
        rig.engine.each(Some(omir_core::reference::ResourceType::MemoryRecord), |bytes| {
            let record = omird_engine::decode_stored(&bytes).unwrap();
            count += usize::from(text(&record, "/id").starts_with(of));
        });
        count
    };
    let entries = count(&rig, "akl.");
    assert_eq!(count(&rig, "akr."), 2);
    rig.clock.advance(Duration::from_secs(31 * 86_400));
    rig.engine.sweep(false).unwrap();
    assert_eq!((count(&rig, "akr."), count(&rig, "akl.")), (0, entries));
    rig.restart();
    assert_eq!(ids(&rig.attune("a", r#","include_own":true"#)).len(), 2);
}

#[test]
fn a_daemon_that_may_not_write_is_read_beyond_its_lease() {
    let mut rig = Rig::new();
    rig.join(&["a"]);
    rig.engine.stop();
    let settings = omird_engine::Settings { read_only: true, ..omird_engine::Settings::default() };
    let parts = Parts { clock: rig.clock.clone(), settings, ..parts(rig.dir.path()) };
    rig.engine = Engine::open(parts, &mut |_| {}).unwrap();
    rig.akashik = Akashik::new(&rig.engine);
    let scope = r#"{"scope":{"role":"r","max_units":1}}"#;
    let ahead = envelope("far", "a", "ATTUNE", None, 1_000_000, scope);
    let answer = rig.send(&with(4), &MESSAGE, &ahead, &[]);
    assert_eq!(answer.status, 200);
    assert!(number(&value(&answer.body), "/epoch") > 1_000_000);
    assert!(number(&rig.attune("a", ""), "/epoch") > 1_000_001);
    let (status, refused) = rig.ask_in("a", 4, None, "RECORD", &unit("x", ""));
    assert_eq!((status, text(&refused, "/code")), (403, "UNAUTHORIZED"));
}

/// A model that knows one pair of synonyms.
struct Synonyms(ModelName);

impl Embedder for Synonyms {
    fn model(&self) -> &ModelName {
        &self.0
    }

    fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        let has = |words: [&str; 2]| words.iter().any(|word| text.to_lowercase().contains(word));
        out.copy_from_slice(&[
            f32::from(has(["cup", "mug"])),
            0.1,
            f32::from(has(["door", "gate"])),
        ]);
        true
    }
}

#[test]
fn the_model_of_the_store_ranks_what_shares_no_word() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let mug = rig.record("a", "The white mug stands on the shelf.", "");
    let gate = rig.record("a", "The gate of the yard is open.", "");
    let first = |wanted: &str| {
        let seen = rig.attune("b", &format!(r#","interests":["{wanted}"],"recency_weight":0"#));
        (ids(&seen)[0].to_owned(), text(&seen, "/record/0/relevance_reason").to_owned())
    };
    let embedding = |agent: &str| {
        let joined = rig.register(agent, "planner", 4);
        text(&joined, "/field_capabilities/embedding").to_owned()
    };
    assert_eq!(embedding("c"), "hashed-256-en");
    let model = ModelName { name: "synonyms".into(), dims: 3, hash: [1; 32] };
    rig.engine.embed_with(Some(Arc::new(Synonyms(model))));
    // Vectors come in idle time.
    let began = Instant::now();
    while first("cup").0 != mug || first("door").0 != gate {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    for (wanted, unit) in [("cup", &mug), ("door", &gate)] {
        let (found, why) = first(wanted);
        assert_eq!(&found, unit, "{wanted}");
        assert!(why.contains("near in meaning"), "{why}");
    }
    assert_eq!(embedding("d"), "synonyms");
}
