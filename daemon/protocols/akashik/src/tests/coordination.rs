//! COORDINATE, HANDOFF and SESSION.

use super::*;

fn task(rig: &Rig, agent: &str, authority: u32, payload: &str) -> Value {
    rig.ask_as(agent, authority, "COORDINATE", payload)
}

fn act(action: &str, id: &str) -> String {
    format!(r#"{{"action":"{action}","task_id":"{id}"}}"#)
}

fn status_of(rig: &Rig, agent: &str) -> String {
    let answer = rig.send(&with(4), &crate::AGENTS, "", &[]);
    let agents = value(&answer.body);
    let found = list(&agents, "/agents").iter().find(|one| text(one, "/id") == agent).cloned();
    text(&found.unwrap(), "/status").to_owned()
}

#[test]
fn a_task_is_worked_on_and_its_agent_with_it() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let made =
        task(&rig, "a", 4, r#"{"action":"create","task":{"title":"Map floor 2","id":"t1"}}"#);
    assert_eq!(text(&made, "/task/state"), "created");
    let fault = |agent: &str, authority: u32, payload: &str| {
        rig.fault_as(agent, authority, "COORDINATE", payload)
    };
    assert_eq!(
        fault("a", 4, r#"{"action":"create","task":{"title":"again","id":"t1"}}"#),
        "INVALID_TRANSITION"
    );
    assert_eq!(fault("a", 6, &act("start", "t1")), "INVALID_TRANSITION", "nobody has it");
    task(&rig, "a", 4, r#"{"action":"assign","task_id":"t1","assignee":"a"}"#);
    assert_eq!(
        fault("b", 5, r#"{"action":"assign","task_id":"t1","assignee":"b"}"#),
        "INSUFFICIENT_AUTHORITY"
    );
    assert_eq!(fault("b", 4, &act("start", "t1")), "INSUFFICIENT_AUTHORITY");
    task(&rig, "a", 4, &act("start", "t1"));
    assert_eq!(status_of(&rig, "a"), "working");
    task(&rig, "a", 4, &act("block", "t1"));
    assert_eq!(status_of(&rig, "a"), "waiting");
    task(&rig, "a", 4, &act("unblock", "t1"));
    let done = task(&rig, "a", 4, r#"{"action":"complete","task_id":"t1","result":"mapped"}"#);
    assert_eq!((text(&done, "/task/state"), text(&done, "/task/result")), ("completed", "mapped"));
    assert_eq!(status_of(&rig, "a"), "idle");
    assert_eq!(fault("a", 10, &act("cancel", "t1")), "INVALID_TRANSITION");
    assert_eq!(fault("a", 4, &act("get", "t9")), "TASK_NOT_FOUND");
}

#[test]
fn a_task_waits_for_those_it_depends_on() {
    let rig = Rig::new();
    rig.join(&["a"]);
    task(&rig, "a", 4, r#"{"action":"create","task":{"title":"one","id":"t1","assignee":"a"}}"#);
    task(
        &rig,
        "a",
        4,
        r#"{"action":"create","task":{"title":"two","id":"t2","assignee":"a","depends_on":["t1"]}}"#,
    );
    assert_eq!(
        rig.fault(
            "a",
            "COORDINATE",
            r#"{"action":"create","task":{"title":"x","depends_on":["t9"]}}"#
        ),
        "TASK_NOT_FOUND"
    );
    assert_eq!(rig.fault("a", "COORDINATE", &act("start", "t2")), "INVALID_TRANSITION");
    task(&rig, "a", 4, &act("start", "t1"));
    task(&rig, "a", 4, &act("complete", "t1"));
    task(&rig, "a", 4, &act("start", "t2"));
    assert_eq!(rig.fault_as("a", 7, "COORDINATE", &act("cancel", "t2")), "INSUFFICIENT_AUTHORITY");
    task(&rig, "a", 8, &act("cancel", "t2"));
}

#[test]
fn an_agent_that_fails_gives_its_tasks_back() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    task(&rig, "a", 4, r#"{"action":"create","task":{"title":"one","id":"t1","assignee":"a"}}"#);
    task(&rig, "a", 4, &act("start", "t1"));
    assert_eq!(
        rig.fault("b", "COORDINATE", r#"{"action":"fail_agent","agent_id":"a"}"#),
        "INSUFFICIENT_AUTHORITY"
    );
    let failed =
        task(&rig, "b", 8, r#"{"action":"fail_agent","agent_id":"a","reason":"no answer"}"#);
    assert_eq!(
        (text(&failed, "/agent/status"), number(&failed, "/tasks_reassigned")),
        ("failed", 1)
    );
    let one = task(&rig, "b", 4, &act("get", "t1"));
    assert_eq!(one.pointer("/task/needs_reassignment"), Some(&Value::Bool(true)));
    task(&rig, "b", 4, r#"{"action":"assign","task_id":"t1","assignee":"b"}"#);
    task(&rig, "a", 4, r#"{"action":"recover_agent"}"#);
    assert_eq!(status_of(&rig, "a"), "idle");
}

#[test]
fn a_unit_is_taken_back_by_its_author() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let id = rig.record("a", "The lift works.", "");
    let payload = format!(r#"{{"action":"retract","unit_id":"{id}"}}"#);
    assert_eq!(rig.fault("b", "COORDINATE", &payload), "INSUFFICIENT_AUTHORITY");
    rig.ask("a", "COORDINATE", &payload);
    assert!(ids(&rig.attune("b", "")).is_empty());
    assert_eq!(rig.fault("a", "COORDINATE", &payload), "INVALID_TRANSITION");
}

#[test]
fn a_unit_that_supersedes_another_takes_its_place() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let id = rig.record("a", "The lift works.", "");
    let new = rig.record(
        "a",
        "The lift is out of order.",
        &format!(r#","relations":[{{"type":"supersedes","target_id":"{id}"}}]"#),
    );
    assert_eq!(ids(&rig.attune("b", "")), [new.as_str()]);
    assert_eq!(
        rig.fault(
            "b",
            "RECORD",
            &unit("x", &format!(r#","relations":[{{"type":"supersedes","target_id":"{id}"}}]"#))
        ),
        "INVALID_TRANSITION"
    );
}

#[test]
fn a_handoff_packs_the_context_of_its_task() {
    let rig = Rig::new();
    rig.join(&["a", "b", "c"]);
    task(&rig, "a", 4, r#"{"action":"create","task":{"title":"one","id":"t1","assignee":"a"}}"#);
    task(&rig, "a", 4, &act("start", "t1"));
    let question = r#"{"mode":"committed","type":"question","content":"Which key fits?","intent":{"purpose":"open","task_id":"t1"},"confidence":{"score":0.5,"reasoning":"open"}}"#;
    let id = text(&rig.ask("a", "RECORD", question), "/memory_unit_id").to_owned();
    let offer = r#"{"action":"offer","task_id":"t1","to_agent":"b","context":{"summary":"half done","next_steps":["try the back door"]}}"#;
    assert_eq!(rig.fault("c", "HANDOFF", offer), "INVALID_TRANSITION", "not its task");
    let offered = rig.ask("a", "HANDOFF", offer);
    let handoff = text(&offered, "/handoff/id").to_owned();
    assert_eq!(text(&offered, "/handoff/context/unit_ids/0"), id);
    assert_eq!(rig.fault("a", "HANDOFF", offer), "INVALID_TRANSITION", "one at a time");
    let decide = |action: &str| format!(r#"{{"action":"{action}","handoff_id":"{handoff}"}}"#);
    let seen = rig.ask("b", "HANDOFF", &decide("get"));
    assert_eq!(text(&seen, "/handoff/context/open_questions/0"), "Which key fits?");
    assert_eq!(rig.fault("c", "HANDOFF", &decide("get")), "HANDOFF_NOT_FOUND");
    assert_eq!(rig.fault("a", "HANDOFF", &decide("accept")), "INSUFFICIENT_AUTHORITY");
    rig.ask("b", "HANDOFF", &decide("accept"));
    let one = task(&rig, "b", 4, &act("get", "t1"));
    assert_eq!((text(&one, "/task/assignee"), text(&one, "/task/state")), ("b", "assigned"));
    assert_eq!(status_of(&rig, "a"), "idle");
    assert_eq!(rig.fault("b", "HANDOFF", &decide("decline")), "INVALID_TRANSITION");
}

#[test]
fn a_task_and_a_session_that_only_units_name_are_replayed() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let of_task = |content: &str, task: &str| {
        let intent = format!(r#"{{"purpose":"map the building","task_id":"{task}"}}"#);
        unit(content, "").replace(r#"{"purpose":"map the building"}"#, &intent)
    };
    let recorded = |rig: &Rig, payload: &str, session: Option<&str>| {
        let (status, answer) = rig.ask_in("a", 4, session, "RECORD", payload);
        assert!(status < 300, "{answer}");
        text(&answer, "/memory_unit_id").to_owned()
    };
    let first = recorded(&rig, &of_task("The hall is full of boxes.", "t9"), None);
    let second = recorded(&rig, &of_task("Rooms are painted in spring.", "t9"), None);
    rig.record("a", "The lift is slow today.", "");
    let third = recorded(&rig, &unit("The door of room 12 is open.", ""), Some("s9"));
    let replay = |of: &str, id: &str| {
        format!(r#"{{"target_type":"{of}","target_id":"{id}","depth":"detailed"}}"#)
    };
    let units = |answer: &Value| -> Vec<String> {
        let told = list(answer, "/timeline").iter();
        told.map(|one| text(one, "/memory_unit_id").to_owned()).collect()
    };
    let told = rig.ask("b", "REPLAY", &replay("task", "t9"));
    assert_eq!(units(&told), [first, second]);
    assert_eq!(rig.fault("b", "REPLAY", &replay("task", "t8")), "TASK_NOT_FOUND");
    // An agent that names the session is in it, and no other is.
    let (status, told) = rig.ask_in("b", 4, Some("s9"), "REPLAY", &replay("session", "s9"));
    assert_eq!((status, units(&told)), (200, vec![third]));
    assert_eq!(rig.fault("b", "REPLAY", &replay("session", "s9")), "SESSION_NOT_FOUND");
    // The name of a task of a session that is not one's own opens nothing.
    rig.ask("a", "SESSION", r#"{"action":"create","session_id":"s1","goal":"clear the hall"}"#);
    let create = r#"{"action":"create","task":{"title":"Sweep","id":"t7"}}"#;
    let (status, made) = rig.ask_in("a", 4, Some("s1"), "COORDINATE", create);
    assert!(status < 300, "{made}");
    let open = recorded(&rig, &of_task("The broom is behind the door.", "t7"), None);
    assert_eq!(rig.fault("b", "REPLAY", &replay("task", "t7")), "TASK_NOT_FOUND");
    let told = rig.ask("a", "REPLAY", &replay("task", "t7"));
    let types = list(&told, "/timeline").iter().map(|one| text(one, "/event_type"));
    assert_eq!(types.collect::<Vec<_>>(), ["task.created", "memory.recorded"]);
    assert_eq!(text(&told, "/timeline/1/memory_unit_id"), open);
    let before = rig.ask("b", "REPLAY", &replay("task", "t9"));
    rig.restart();
    assert_eq!(rig.ask("b", "REPLAY", &replay("task", "t9")), before);
}

#[test]
fn a_session_keeps_what_is_its_own() {
    let mut rig = Rig::new();
    rig.join(&["lead", "a", "b"]);
    rig.register("aud", "auditor", 4);
    let made = rig.ask(
        "lead",
        "SESSION",
        r#"{"action":"create","goal":"clear the hall","members":["a","aud"]}"#,
    );
    let id = text(&made, "/session/id").to_owned();
    let within = |agent: &str, operation: &str, payload: &str| {
        rig.ask_in(agent, 4, Some(&id), operation, payload)
    };
    let (_, recorded) = within(
        "a",
        "RECORD",
        &unit("The hall is full of boxes.", "").replace("finding", "decision"),
    );
    let unit_id = text(&recorded, "/memory_unit_id").to_owned();
    assert_eq!(ids(&rig.attune("lead", "")), [unit_id.as_str()], "a member, in or out of it");
    assert!(ids(&rig.attune("b", "")).is_empty());
    let code = |(status, answer): (u16, Value)| {
        assert!(status >= 400, "{answer}");
        text(&answer, "/code").to_owned()
    };
    assert_eq!(code(within("b", "RECORD", &unit("x", ""))), "SESSION_NOT_FOUND");
    assert_eq!(
        rig.fault("b", "DETECT", &format!(r#"{{"mode":"check","target_id":"{unit_id}"}}"#)),
        "UNIT_NOT_FOUND"
    );
    let replay =
        format!(r#"{{"target_type":"memory_unit","target_id":"{unit_id}","depth":"summary"}}"#);
    assert_eq!(rig.fault("b", "REPLAY", &replay), "UNIT_NOT_FOUND");
    // The replay of a session covers its units.
    let replay = format!(r#"{{"target_type":"session","target_id":"{id}","depth":"detailed"}}"#);
    let told = rig.ask("lead", "REPLAY", &replay);
    assert_eq!(number(&told, "/total_events"), 2, "{told}");
    assert_eq!(list(&told, "/agents_involved").len(), 2, "{told}");
    assert_eq!(
        rig.send(&with(10), &crate::UNIT, "", &[("id", &unit_id), ("agent_id", "b")]).status,
        404
    );
    assert_eq!(
        rig.send(&with(4), &crate::UNIT, "", &[("id", &unit_id), ("agent_id", "a")]).status,
        200
    );
    let act =
        |action: &str, more: &str| format!(r#"{{"action":"{action}","session_id":"{id}"{more}}}"#);
    assert_eq!(rig.fault("a", "SESSION", &act("pause", "")), "INSUFFICIENT_AUTHORITY");
    let policy = r#","policy":{"role_rules":[{"role":"auditor","hidden_types":["decision"]}]}"#;
    rig.ask("lead", "SESSION", &act("set_policy", policy));
    assert!(ids(&rig.attune("aud", "")).is_empty(), "hidden from the role");
    assert_eq!(rig.fault("b", "SESSION", &act("join", "")), "SESSION_NOT_FOUND");
    rig.ask("lead", "SESSION", &act("invite", r#","agents":["b"]"#));
    rig.ask("b", "SESSION", &act("join", ""));
    assert_eq!(ids(&rig.attune("b", "")), [unit_id.as_str()]);
    rig.ask("lead", "SESSION", &act("pause", ""));
    assert_eq!(code(within("a", "RECORD", &unit("x", ""))), "INVALID_TRANSITION");
    rig.ask("lead", "SESSION", &act("resume", ""));
    rig.ask("b", "SESSION", &act("leave", ""));
    assert!(ids(&rig.attune("b", "")).is_empty());
    rig.ask("lead", "SESSION", &act("end", ""));
    assert_eq!(rig.fault("lead", "SESSION", &act("resume", "")), "INVALID_TRANSITION");
    rig.restart();
    assert!(ids(&rig.attune("aud", "")).is_empty());
    assert_eq!(ids(&rig.attune("lead", "")), [unit_id.as_str()]);
}

#[test]
fn a_synthesis_is_hidden_from_whom_its_sources_are() {
    let rig = Rig::new();
    rig.join(&["lead", "a"]);
    rig.register("aud", "auditor", 4);
    let policy = r#""policy":{"role_rules":[{"role":"auditor","hidden_types":["decision"]}]}"#;
    let create = format!(
        r#"{{"action":"create","session_id":"s","goal":"clear the hall","members":["a","aud"],{policy}}}"#
    );
    rig.ask("lead", "SESSION", &create);
    let within = |agent: &str, operation: &str, payload: &str| {
        let (status, answer) = rig.ask_in(agent, 6, Some("s"), operation, payload);
        assert!(status < 300, "{answer}");
        answer
    };
    let seen = |agent: &str| {
        let payload = r#"{"scope":{"role":"r","max_units":9,"include_archived":true}}"#;
        let answer = within(agent, "ATTUNE", payload);
        ids(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let decision = unit("The hall is cleared at noon.", "").replace("finding", "decision");
    within("a", "RECORD", &decision);
    within("a", "RECORD", &unit("The hall is full of boxes.", ""));
    let open = seen("aud");
    assert_eq!(open.len(), 1, "the finding alone");
    let sum_up = |types: &str| {
        let payload = format!(r#"{{"strategy":"summarize","filter":{{"types":["{types}"]}}}}"#);
        let summed = within("lead", "COMPACT", &payload);
        assert_eq!(number(&summed, "/synthesis_units_created"), 1);
    };
    sum_up("decision");
    assert_eq!(seen("aud"), open, "what was decided stays hidden");
    assert_eq!(seen("a").len(), 1, "the author of the units sees what sums them up");
    // One of a synthesis says the same again.
    sum_up("synthesis");
    assert_eq!(seen("aud"), open);
    sum_up("finding");
    assert_eq!(seen("aud").len(), 2);
    // A rule that comes later counts too, and what is purged opens nothing.
    rig.ask("lead", "SESSION", r#"{"action":"set_policy","session_id":"s","policy":{}}"#);
    assert_eq!(seen("aud").len(), 5);
    let set = format!(r#"{{"action":"set_policy","session_id":"s",{policy}}}"#);
    rig.ask("lead", "SESSION", &set);
    let (status, _) = rig.ask_in(
        "lead",
        10,
        Some("s"),
        "COMPACT",
        r#"{"strategy":"purge","filter":{"types":["decision"]}}"#,
    );
    assert_eq!(status, 200);
    assert_eq!(seen("aud").len(), 2);
}

#[test]
fn a_session_that_nobody_created_is_that_of_its_messages() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let (_, recorded) = rig.ask_in("a", 4, Some("S"), "RECORD", &unit("The hall is full.", ""));
    let id = text(&recorded, "/memory_unit_id").to_owned();
    let attune = |session| {
        let (_, seen) =
            rig.ask_in("b", 4, session, "ATTUNE", r#"{"scope":{"role":"r","max_units":9}}"#);
        ids(&seen).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(attune(Some("S")), [id]);
    assert!(attune(Some("T")).is_empty() && attune(None).is_empty());
}
