//! Stages: begun, detected, completed, at every level of a context.

use omir_core::space::Isometry3;
use omird_engine::Encoding;

use super::*;

fn stored(rig: &Rig, content: &str) -> String {
    text(&rig.store(content), "/memory_id").to_owned()
}

#[test]
fn a_marker_moves_the_task_on() {
    let rig = Rig::new();
    rig.store("first a plan");
    let moved = rig.store("[STAGE:EXECUTION] run it");
    assert_eq!(text(&moved, "/transition/from"), "planning");
    assert_eq!(text(&moved, "/transition/to"), "execution");
    assert_eq!(text(&moved, "/stage_type"), "execution");
    let progress = rig.ask("memory.get_task_progress", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&progress, "/completed_stages").len(), 1);
    assert_eq!(text(&progress, "/current_stage_id"), text(&moved, "/stage_id"));
    let past = rig.ask("memory.get_stage_context", r#"{"task_id":"t1","stage_type":"planning"}"#);
    assert!(past.pointer("/stage/completed_at").is_some_and(|at| !at.is_null()));
    assert_eq!(text(&past, "/stage/stage_summary"), "first a plan");
}

/// A coding agent reports one action with each memory, and what its tool answered as another.
#[test]
fn actions_that_come_one_by_one_move_the_task_on() {
    let rig = Rig::new();
    let act = |content: &str, action: &str| {
        let params = format!(r#"{{"task_id":"t1","content":"{content}","actions":["{action}"]}}"#);
        let stored = rig.ask("memory.store", &params);
        rig.store("the tool says so");
        stored.pointer("/transition/to").and_then(Value::as_str).map(str::to_owned)
    };
    rig.store("the rounding is wrong");
    assert_eq!(act("First the case of the report.", "create reproduce.py"), None);
    assert_eq!(act("Its code goes in.", "edit 1:1"), Some("execution".to_owned()));
    // One of another kind does not turn back what two have said.
    assert_eq!(act("Where is it?", "ls -F"), None);
    assert_eq!(act("It is in a file.", "find_file fields.py"), Some("planning".to_owned()));
    assert_eq!(act("Nothing that says anything.", "zzz"), None);
}

#[test]
fn a_stage_without_memories_is_relabelled() {
    let rig = Rig::new();
    rig.store("first a plan");
    let done = rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    let next = text(&done, "/next_stage_id").to_owned();
    let moved = rig.store("@stage:reflection why did it fail");
    assert_eq!((text(&moved, "/stage_id"), text(&moved, "/stage_type")), (&*next, "reflection"));
    let progress = rig.ask("memory.get_task_progress", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&progress, "/completed_stages").len(), 1);
}

#[test]
fn a_change_is_detected_and_applied_only_when_told() {
    let rig = Rig::new();
    rig.store("first a plan");
    let detect = |more: &str| {
        rig.ask("memory.detect_stage_transition", &format!(r#"{{"task_id":"t1"{more}}}"#))
    };
    let found = detect(r#","recent_actions":["verify_a","test_b","check_c"]"#);
    assert!(is(&found, "/should_transition") && !is(&found, "/applied"));
    assert_eq!(text(&found, "/suggested_stage_type"), "verification");
    assert!(!is(&detect(r#","recent_actions":["a","b","c"]"#), "/should_transition"));
    let told = detect(r#","recent_actions":["verify_a","test_b"],"ace_signal":"execution""#);
    assert_eq!(text(&told, "/suggested_stage_type"), "execution");
    let applied = detect(r#","ace_signal":"execution","apply":true"#);
    assert!(is(&applied, "/applied"));
    let now = detect("");
    assert_eq!(text(&now, "/current_stage_type"), "execution");
    // Half an hour is too long for an execution, and moves nothing by itself.
    rig.clock.advance(Duration::from_secs(1801));
    let late = detect("");
    assert_eq!(text(&late, "/signals/0/source"), "time");
    assert!(!is(&late, "/should_transition"));
}

#[test]
fn a_stage_is_completed_once() {
    let rig = Rig::new();
    for n in 0..36 {
        rig.store(&format!(
            "Step {n}: the robot drove along the corridor and looked at the shelf on its left side."
        ));
    }
    let facts = [
        "The robot must not enter room 12.",
        "The battery must stay above 20 percent.",
        "Never lift more than 5 kg.",
        "The deadline is 17:00.",
    ];
    facts.iter().for_each(|fact| drop(rig.store(fact)));
    let stage = rig.ask("memory.get_stage_context", r#"{"task_id":"t1"}"#);
    let id = text(&stage, "/stage/stage_id").to_owned();
    let params = format!(r#"{{"task_id":"t1","stage_id":"{id}"}}"#);
    let done = rig.ask("memory.complete_stage", &params);
    assert_eq!(number(&done, "/metric/critical_fact_retention_rate"), 1.0);
    assert_eq!(number(&done, "/metric/coherence_score"), 1.0);
    assert_eq!(number(&done, "/metric/cost_usd"), 0.0);
    assert_eq!(text(&done, "/metric/model_used"), "extract-1");
    let (input, output) =
        (number(&done, "/metric/input_tokens"), number(&done, "/metric/output_tokens"));
    let ratio = (input / output * 100.0).round() / 100.0;
    assert_eq!(number(&done, "/metric/compression_ratio"), ratio);
    let summary = text(&done, "/stage/stage_summary");
    assert!(facts.iter().all(|fact| summary.contains(fact)), "{summary}");
    assert_eq!(list(&done, "/stage/raw_memory_refs").len(), 40);
    assert_eq!(rig.fault("memory.complete_stage", &params), -32002);
    let progress = rig.ask("memory.get_task_progress", r#"{"task_id":"t1"}"#);
    assert!(facts.iter().all(|fact| text(&progress, "/brief").contains(fact)));
}

#[test]
fn what_a_caller_calls_a_constraint_is_a_fact_whatever_its_words() {
    let rig = Rig::new();
    rig.ask(
        "memory.store",
        r#"{"task_id":"t1","content":"The dock is wet. The lamp is on.","is_critical":true,"criticality_reason":"constraint"}"#,
    );
    let facts = ["The dock is wet.", "The lamp is on."];
    let context = || rig.ask("memory.get_context", r#"{"task_id":"t1","format":"json"}"#);
    let expected: Vec<Value> = facts.iter().map(|fact| format!("- {fact}").into()).collect();
    assert_eq!(list(&context(), "/context/critical_facts"), expected);
    let done = rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&done, "/stage/critical_facts"), facts.map(Value::from));
    assert_eq!(list(&context(), "/context/critical_facts"), expected);
}

#[test]
fn the_progress_of_a_task_with_many_facts_is_told() {
    let rig = Rig::new();
    let store = |content: &str, goal: &str| {
        let mut task = Map::new();
        task.insert("goal", goal);
        let mut params = Map::new();
        params.insert("task_id", "t1");
        params.insert("content", content);
        params.insert("task", task);
        rig.ask("memory.store", &json::to_string(&Value::Object(params)))
    };
    for n in 0..60 {
        store(&format!("Door {n} of the storage wing must always be locked at night."), "Lock up");
    }
    let progress =
        |more: &str| rig.ask("memory.get_task_progress", &format!(r#"{{"task_id":"t1"{more}}}"#));
    let told = progress("");
    assert_eq!(text(&told, "/task_goal"), "Lock up");
    assert!(text(&told, "/brief").contains("Goal: Lock up"), "{told}");
    assert_eq!(number(&told, "/quality/critical_coverage"), 0.0);
    assert!(number(&told, "/quality/token_count") <= 500.0);
    let whole = progress(r#","token_budget":2000"#);
    assert_eq!(number(&whole, "/quality/critical_coverage"), 1.0);
    rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    let told = progress("");
    assert!(text(&told, "/brief").contains("Completed: planning"), "{told}");
    store("The wing is dark.", &"lock up ".repeat(1000));
    let told = progress("");
    assert_eq!((text(&told, "/brief"), text(&told, "/status")), ("", "active"));
}

#[test]
fn a_stage_of_very_many_memories_can_be_completed() {
    let rig = Rig::with(Settings { episodic_memory_capacity: 0, ..Settings::default() });
    let stored = rig.store("The robot drove past a shelf.");
    let (id, stage) = (text(&stored, "/memory_id"), text(&stored, "/stage_id"));
    let name = format!("MemoryRecord/cr.{id}").parse().unwrap();
    let record = omird_engine::decode_stored(&rig.engine.get(&name).unwrap().unwrap()).unwrap();
    let Value::Object(mut record) = record else { panic!("{record}") };
    for name in ["createdAt", "version", "meta", "decay"] {
        record.remove(name);
    }
    // Copies of it: to store so many one by one takes long.
    let record = json::to_string(&Value::Object(record));
    let copies: Vec<String> = (0..1200).map(|n| record.replace(id, &format!("m-{n}"))).collect();
    let copies = format!("[{}]", copies.join(","));
    let change = rig.engine.prepare(copies.as_bytes(), Encoding::Json, None).unwrap();
    rig.engine.execute(change).unwrap();
    let params = format!(r#"{{"task_id":"t1","stage_id":"{stage}"}}"#);
    let done = rig.ask("memory.complete_stage", &params);
    assert_eq!(list(&done, "/stage/raw_memory_refs").len(), 1000);
    assert_eq!(number(&done, "/stage/memory_count"), 1201.0);
}

#[test]
fn a_context_reads_the_past_stages_that_it_has_room_for() {
    let rig = Rig::new();
    let mut oldest = None;
    for n in 0..12 {
        rig.store(&format!("step {n} was done"));
        let summary = format!(
            "Part {n} of the work was done by the arm at the long table, as it was planned."
        );
        let params =
            format!(r#"{{"task_id":"t1","summary":"{summary}","next_stage_type":"execution"}}"#);
        let done = rig.ask("memory.complete_stage", &params);
        oldest.get_or_insert(text(&done, "/stage/stage_id").to_owned());
    }
    let context = |more: &str| {
        rig.ask("memory.get_context", &format!(r#"{{"task_id":"t1","level":"{more}}}"#))
    };
    let (small, whole) = (r#"stage","token_budget":64"#, r#"raw""#);
    let before = [context(small), context(whole)];
    assert!(
        text(&before[0], "/context").contains("Part 11") && is(&before[0], "/sections/0/truncated")
    );
    // A stage that the context does not read may be forgotten.
    let oldest = format!("MemoryRecord/cm.{}", oldest.unwrap()).parse().unwrap();
    rig.engine.execute(omird_engine::Change::Forget(vec![oldest])).unwrap();
    for (before, after) in before.iter().zip([context(small), context(whole)]) {
        assert_eq!(text(before, "/context"), text(&after, "/context"));
        let ratio = |made| number(made, "/quality/compression_ratio");
        assert_eq!(ratio(before), ratio(&after), "what is not read counts");
    }
}

#[test]
fn of_two_that_complete_a_stage_at_once_one_does() {
    let rig = Rig::new();
    for round in 0..5 {
        rig.store(&format!("step {round} was done"));
        let stage = rig.ask("memory.get_stage_context", r#"{"task_id":"t1"}"#);
        let id = text(&stage, "/stage/stage_id").to_owned();
        let params =
            format!(r#"{{"task_id":"t1","stage_id":"{id}","next_stage_type":"execution"}}"#);
        let ended: Vec<bool> = std::thread::scope(|scope| {
            let ask = || {
                rig.response(&agent("a1"), "memory.complete_stage", &params).get("result").is_some()
            };
            let both = [scope.spawn(ask), scope.spawn(ask)];
            both.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(ended.iter().filter(|done| **done).count(), 1, "{round}");
        let progress = rig.ask("memory.get_task_progress", r#"{"task_id":"t1"}"#);
        assert_eq!(list(&progress, "/completed_stages").len(), round + 1);
    }
}

/// Transforms that ask something the first time a pose is wanted: a memory is decided about by then, and not written.
struct Meanwhile(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl omird_engine::Frames for Meanwhile {
    fn fixed(
        &self,
        _: &str,
    ) -> Result<Option<(String, Isometry3)>, Box<dyn std::error::Error + Send + Sync>> {
        let ask = self.0.lock().unwrap().take();
        ask.into_iter().for_each(|ask| ask());
        Ok(None)
    }
}

#[test]
fn a_memory_goes_into_no_stage_that_was_completed_meanwhile() {
    let rig =
        Rig::with(Settings { robot_frame: Some("base_link".to_owned()), ..Settings::default() });
    let first = rig.store("first a plan");
    let ask = meanwhile(&rig, "memory.complete_stage", r#"{"task_id":"t1"}"#);
    rig.engine.follow_frames(Arc::new(Meanwhile(Mutex::new(Some(ask)))));
    let before = rig.engine.newest();
    let second = rig.store("the wheels turn");
    assert!(rig.engine.newest() > before + 1, "the stage was completed in between");
    assert_ne!(text(&second, "/stage_id"), text(&first, "/stage_id"));
    assert_eq!(text(&second, "/stage_type"), "execution");
    // A condition is no write: the task is the version that the completion made.
    let task = crate::names::name(crate::names::Sort::Task, "default", "t1").unwrap();
    let version = rig.engine.live_version(&task);
    rig.store("they turn still");
    assert_eq!(rig.engine.live_version(&task), version);
}

#[test]
fn a_memory_goes_into_no_task_that_ended_meanwhile() {
    let rig =
        Rig::with(Settings { robot_frame: Some("base_link".to_owned()), ..Settings::default() });
    rig.store("first a plan");
    let end = r#"{"task_id":"t1","task_status":"failed"}"#;
    let ask = meanwhile(&rig, "memory.complete_stage", end);
    rig.engine.follow_frames(Arc::new(Meanwhile(Mutex::new(Some(ask)))));
    let late = r#"{"task_id":"t1","content":"too late"}"#;
    assert_eq!(rig.fault("memory.store", late), -32002);
}

/// Returns a call of agent `a1` that another thread may make.
fn meanwhile(rig: &Rig, method: &str, params: &str) -> Box<dyn FnOnce() + Send> {
    let compass = rig.compass.clone();
    let router = Router::new(Facts { most: 1 << 20, ..Facts::default() }, []);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    Box::new(move || {
        let answer = exchanged(&compass, &router, &agent("a1"), &JSONRPC, message(&body, &[]));
        assert_eq!(answer.status, 200);
    })
}

#[test]
fn each_level_tells_its_own() {
    let rig = Rig::new();
    rig.ask(
        "memory.store",
        r#"{"content":"The plan names three shelves.","task_id":"t1","task":{"goal":"Tidy up"}}"#,
    );
    rig.ask("memory.complete_stage", r#"{"task_id":"t1","summary":"The plan was made."}"#);
    rig.store("The first shelf is empty.");
    let context = |level: &str| {
        let made =
            rig.ask("memory.get_context", &format!(r#"{{"task_id":"t1","level":"{level}"}}"#));
        text(&made, "/context").to_owned()
    };
    let (raw, stage, task) = (context("raw"), context("stage"), context("task"));
    assert!(raw.contains("first shelf is empty") && !raw.contains("Goal"), "{raw}");
    assert!(stage.contains("The plan was made.") && !stage.contains("first shelf"), "{stage}");
    assert!(task.contains("Goal: Tidy up") && !task.contains("first shelf"), "{task}");
    let all = context("auto");
    assert!(
        ["first shelf is empty", "The plan was made.", "Goal: Tidy up"]
            .iter()
            .all(|part| all.contains(part))
    );
}

#[test]
fn a_task_ends() {
    let rig = Rig::new();
    rig.store("@stage:verification all tests pass");
    let waiting = rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    assert!(waiting.get("next_stage_id").unwrap().is_null(), "nothing follows verification");
    stored(&rig, "one more look");
    let done = rig.ask("memory.complete_stage", r#"{"task_id":"t1","task_status":"completed"}"#);
    assert_eq!(text(&done, "/task_status"), "completed");
    assert_eq!(rig.fault("memory.store", r#"{"task_id":"t1","content":"too late"}"#), -32002);
    let both = r#"{"task_id":"t1","task_status":"failed","next_stage_type":"execution"}"#;
    assert_eq!(rig.fault("memory.complete_stage", both), -32602);
    assert_eq!(
        rig.fault("memory.complete_stage", r#"{"task_id":"t1","require_model":true}"#),
        -32006
    );
}

#[test]
fn a_task_that_waits_can_be_ended() {
    let rig = Rig::new();
    let complete =
        |more: &str| rig.ask("memory.complete_stage", &format!(r#"{{"task_id":"t1"{more}}}"#));
    for step in ["first a plan", "drive to the shelf", "look at the shelf"] {
        rig.store(step);
        complete("");
    }
    let progress = || rig.ask("memory.get_task_progress", r#"{"task_id":"t1"}"#);
    let last = progress().pointer("/completed_stages/2").cloned();
    // It has no stage that could end, and none that could change.
    assert_eq!(rig.fault("memory.complete_stage", r#"{"task_id":"t1"}"#), -32002);
    let detect = r#"{"task_id":"t1","ace_signal":"execution","apply":true}"#;
    let found = rig.ask("memory.detect_stage_transition", detect);
    assert!(!is(&found, "/should_transition") && !is(&found, "/applied"));
    assert!(found.get("current_stage_type").unwrap().is_null());
    let said = r#"{"task_id":"t1","task_status":"completed","summary":"It is done."}"#;
    assert_eq!(rig.fault("memory.complete_stage", said), -32602, "there is no stage to sum up");
    let done = complete(r#","task_status":"completed""#);
    assert_eq!(done.pointer("/stage/stage_id"), last.as_ref());
    assert_eq!(text(&done, "/stage/stage_type"), "verification");
    assert!(["metric", "next_stage_id"].iter().all(|name| done.get(name).unwrap().is_null()));
    assert_eq!(
        (text(&done, "/task_status"), text(&progress(), "/status")),
        ("completed", "completed")
    );
    let again = r#"{"task_id":"t1","task_status":"failed"}"#;
    assert_eq!(rig.fault("memory.complete_stage", again), -32002);
    assert_eq!(rig.fault("memory.store", r#"{"task_id":"t1","content":"too late"}"#), -32002);
}

#[test]
fn a_stage_that_is_not_named_is_completed_once() {
    let rig = Rig::new();
    rig.store("first a plan");
    let asked = r#"{"task_id":"t1"}"#;
    rig.ask("memory.complete_stage", asked);
    for again in [asked, r#"{"task_id":"t1","summary":"The plan was made."}"#] {
        assert_eq!(rig.fault("memory.complete_stage", again), -32002, "{again}");
    }
    let progress = rig.ask("memory.get_task_progress", asked);
    assert_eq!(list(&progress, "/completed_stages").len(), 1);
    // A call that names an empty one completes it.
    let named =
        format!(r#"{{"task_id":"t1","stage_id":"{}"}}"#, text(&progress, "/current_stage_id"));
    let done = rig.ask("memory.complete_stage", &named);
    assert_eq!(text(&done, "/stage/stage_type"), "execution");
    for round in 0..5 {
        let params = format!(r#"{{"task_id":"r{round}"}}"#);
        rig.ask(
            "memory.store",
            &format!(r#"{{"task_id":"r{round}","content":"step {round} was done"}}"#),
        );
        let ended: Vec<bool> = std::thread::scope(|scope| {
            let ask = || {
                rig.response(&agent("a1"), "memory.complete_stage", &params).get("result").is_some()
            };
            let both = [scope.spawn(ask), scope.spawn(ask)];
            both.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(ended.iter().filter(|done| **done).count(), 1, "{round}");
    }
}

#[test]
fn a_stage_with_nothing_but_errors_can_be_completed_without_its_name() {
    let rig = Rig::new();
    rig.store("first a plan");
    let asked = r#"{"task_id":"t1"}"#;
    rig.ask("memory.complete_stage", asked);
    rig.ask(
        "memory.record_error",
        r#"{"task_id":"t1","error_type":"missing_info","error_description":"the shelf is not on the map"}"#,
    );
    let done = rig.ask("memory.complete_stage", asked);
    assert_eq!(text(&done, "/stage/stage_type"), "execution");
}

#[test]
fn fifty_turns_fit_a_fifth_of_their_tokens() {
    let rig = Rig::with(Settings { episodic_memory_capacity: 0, ..Settings::default() });
    let filler = "The arm moved to the next bin and the camera looked at what lay in it before anything was taken. ";
    let mut facts = Vec::new();
    let kinds = ["planning", "execution", "reflection", "execution", "verification"];
    for turn in 0..50 {
        let mark = format!("[STAGE:{}] ", kinds[turn / 10].to_uppercase());
        let fact = format!("Bin {turn} must stay below {} kg.", 10 + turn);
        let more = if turn % 5 == 0 {
            facts.push(fact.clone());
            fact
        } else {
            String::new()
        };
        rig.store(&format!("{mark}Turn {turn}. {}{more}", filler.repeat(22)));
    }
    let made = rig.ask("memory.get_context", r#"{"task_id":"t1","token_budget":5000}"#);
    let context = text(&made, "/context");
    assert!(omird_text::TokenCounter::count(&omird_text::Approx1, context) <= 5000);
    assert!(facts.iter().all(|fact| context.contains(fact)), "{context}");
    assert!(number(&made, "/quality/compression_ratio") >= 5.0, "{made}");
}
