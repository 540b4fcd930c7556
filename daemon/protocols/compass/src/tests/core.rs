//! Storing, finding, contexts, changes, pruning, and what each caller sees.

use omir_core::reference::ResourceType;
use omird_engine::Encoding;
use omird_router::{Denial, Denied, Exchange, Incoming};

use super::*;

const OPEN: &str = r#"{"content":"Use JWT tokens.","task_id":"t1","task":{"goal":"Build login","constraints":["must not store passwords"]}}"#;

#[test]
fn a_memory_opens_its_task_and_outlives_a_restart() {
    let mut rig = Rig::new();
    let stored = rig.ask("memory.store", OPEN);
    assert_eq!(text(&stored, "/stage_type"), "planning");
    assert!(!is(&stored, "/is_critical") && is(&stored, "/durable"));
    assert_eq!(text(&stored, "/meta/agent_id"), "a1");
    rig.restart();
    let found = rig.ask("memory.retrieve", r#"{"query":"JWT"}"#);
    assert_eq!(list(&found, "/memories").len(), 1);
    assert_eq!(text(&found, "/memories/0/memory/memory_id"), text(&stored, "/memory_id"));
    assert_eq!(text(&found, "/memories/0/memory/content"), "Use JWT tokens.");
}

#[test]
fn a_constraint_is_critical_and_anchored() {
    let rig = Rig::new();
    let stored = rig.store("The robot must not enter room 12.");
    assert_eq!(text(&stored, "/criticality_reason"), "constraint");
    let name = format!("MemoryRecord/cr.{}", text(&stored, "/memory_id")).parse().unwrap();
    let record = omird_engine::decode_stored(&rig.engine.get(&name).unwrap().unwrap()).unwrap();
    assert!(is(&record, "/decay/anchored"));
    assert!(number(&record, "/importance") >= 0.9);
}

#[test]
fn an_id_is_taken_once() {
    let rig = Rig::new();
    let params = |content: &str| format!(r#"{{"memory_id":"m1","content":"{content}"}}"#);
    let first = rig.ask("memory.store", &params("one"));
    let again = rig.ask("memory.store", &params("one"));
    assert!(is(&again, "/unchanged"));
    assert_eq!(number(&first, "/version"), number(&again, "/version"));
    assert_eq!(rig.fault("memory.store", &params("two")), -32002);
    let other = rig.response(&agent("a2"), "memory.store", &params("one"));
    assert_eq!(code(&other), -32002);
}

#[test]
fn what_does_not_fit_has_its_code_and_place() {
    let rig = Rig::new();
    let ask = |method: &str, params: &str| rig.response(&agent("a1"), method, params);
    assert_eq!(code(&ask("memory.nope", "[1]")), -32601);
    assert_eq!(code(&ask("memory.store", "[1]")), -32602);
    for (params, path) in [
        (r#"{"content":""}"#, "/content"),
        (r#"{"content":"x","colour":"red"}"#, "/colour"),
        (r#"{"content":"x","relevance_score":1.1}"#, "/relevance_score"),
        (r#"{"content":"x","memory_type":"vague"}"#, "/memory_type"),
        (r#"{"content":"x","task":{"goal":"g"}}"#, "/task_id"),
        (r#"{"content":"x","task_id":"t","task":{"goal":"g","aim":1}}"#, "/task/aim"),
        (
            r#"{"content":"x","stage_relevance_map":{"dreaming":1}}"#,
            "/stage_relevance_map/dreaming",
        ),
        (r#"{"content":"x","interaction":{"query":"q"}}"#, "/interaction"),
        (r#"{}"#, "/content"),
    ] {
        let response = ask("memory.store", params);
        assert_eq!((code(&response), text(&response, "/error/data/path")), (-32602, path));
    }
    let unknown = r#"{"content":"x","parent_memory_id":"nobody"}"#;
    assert_eq!(code(&ask("memory.store", unknown)), -32001);
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat((256 << 10) + 1));
    assert_eq!(code(&ask("memory.store", &long)), -32003);
}

#[test]
fn a_context_has_its_sections_and_keeps_its_budget() {
    let rig = Rig::new();
    rig.ask("memory.store", OPEN);
    rig.store("The robot must not enter room 12.");
    let made = rig.ask("memory.get_context", r#"{"task_id":"t1","token_budget":2000}"#);
    let context = text(&made, "/context");
    for expected in ["Goal: Build login", "must not store passwords", "must not enter room 12."] {
        assert!(context.contains(expected), "{context}");
    }
    let at = |heading: &str| context.find(heading).unwrap();
    assert!(
        at("# Task Progress") < at("# Current Stage")
            && at("# Current Stage") < at("# Critical Facts")
    );
    let tokens = omird_text::TokenCounter::count(&omird_text::Approx1, context);
    assert_eq!(number(&made, "/quality/token_count"), tokens as f64);
    assert_eq!(number(&made, "/quality/critical_coverage"), 1.0);
    for n in 0..20 {
        rig.store(&format!("Door {n} of the storage wing must always be locked at night."));
    }
    let small =
        rig.response(&agent("a1"), "memory.get_context", r#"{"task_id":"t1","token_budget":64}"#);
    assert_eq!(code(&small), -32008);
    assert!(number(&small, "/error/data/needed") > 64.0);
    let json = rig.ask("memory.get_context", r#"{"task_id":"t1","format":"json"}"#);
    assert_eq!(list(&json, "/context/critical_facts").len(), 22);
}

#[test]
fn a_context_without_a_task_has_the_facts_of_no_task() {
    let rig = Rig::new();
    let store = |content: &str| {
        rig.ask("memory.store", &format!(r#"{{"content":"{content}"}}"#));
    };
    let fact = "The robot must not enter room 12.";
    store(fact);
    store("The cup is red.");
    rig.store("Door 3 must stay closed.");
    let asked = r#"{"query":"cup","token_budget":20000}"#;
    let context = || rig.ask("memory.get_context", asked);
    let made = context();
    assert!(text(&made, "/context").contains(&format!("# Critical Facts\n- {fact}\n")), "{made}");
    assert!(text(&made, "/context").contains("The cup is red."));
    assert!(!text(&made, "/context").contains("Door 3"), "it belongs to a task");
    assert_eq!(number(&made, "/quality/critical_coverage"), 1.0);
    let other = rig.response(&agent("a2"), "memory.get_context", asked);
    assert_eq!(text(&other, "/result/context"), "");
    for n in 0..109 {
        rig.clock.advance(Duration::from_secs(1));
        store(&format!("Gate {n} must stay closed."));
    }
    let made = context();
    assert!(
        text(&made, "/context").contains("Gate 108") && !text(&made, "/context").contains(fact)
    );
    let coverage = number(&made, "/quality/critical_coverage");
    assert!((coverage - 100.0 / 110.0).abs() < 1e-9, "the newest are told: {coverage}");
    // Never refused: an agent cannot lose such a memory.
    let small = rig.ask("memory.get_context", r#"{"query":"cup","token_budget":64}"#);
    assert!(number(&small, "/quality/token_count") <= 64.0);
    assert!(text(&small, "/context").contains("Gate 108"), "{small}");
    assert!(number(&small, "/quality/critical_coverage") < 0.1);
    // A memory whose fact has no room there is told as what it is: an answer.
    let asked = r#"{"query":"gate 20","token_budget":400}"#;
    let small = rig.ask("memory.get_context", asked);
    assert!(text(&small, "/context").contains("Gate 20 must"), "{small}");
}

#[test]
fn long_memories_are_cut_and_facts_are_not() {
    let rig = Rig::with(Settings { episodic_memory_capacity: 0, ..Settings::default() });
    for n in 0..40 {
        rig.store(&format!(
            "Shelf {n} holds boxes. {}",
            "The robot looked at each of them. ".repeat(10)
        ));
    }
    rig.store("The robot must not lift more than 5 kg.");
    let made =
        rig.ask("memory.get_context", r#"{"task_id":"t1","token_budget":500,"query":"boxes"}"#);
    assert!(number(&made, "/quality/token_count") <= 500.0);
    assert!(text(&made, "/context").contains("must not lift more than 5 kg."));
    let cut = list(&made, "/sections").iter().filter(|section| is(section, "/truncated")).count();
    assert!(cut > 0);
}

#[test]
fn critical_memories_are_never_missed() {
    let rig = Rig::with(Settings { episodic_memory_capacity: 0, ..Settings::default() });
    for n in 0..94 {
        rig.store(&format!("The charger of bay {n} was used in the night."));
    }
    for n in 0..6 {
        rig.store(&format!("The charger of hall {n} must be switched off before cleaning."));
    }
    let found = rig.ask("memory.retrieve", r#"{"query":"charger","task_id":"t1","k":5}"#);
    assert_eq!(list(&found, "/memories").len(), 6);
    assert!(is(&found, "/extended"));
    assert_eq!(number(&found, "/validation/critical_coverage"), 1.0);
    assert!(list(&found, "/memories").iter().all(|one| is(one, "/memory/is_critical")));
}

#[test]
fn what_is_not_asked_for_takes_the_place_of_no_answer() {
    let rig = Rig::new();
    let store = |content: &str, kind: &str| {
        let params =
            format!(r#"{{"content":"{content}","memory_type":"{kind}","relevance_score":0.1}}"#);
        text(&rig.ask("memory.store", &params), "/memory_id").to_owned()
    };
    let far = "A charger is told of here among very many other things that are in the long hall";
    let semantic = store(&format!("{far}."), "semantic");
    // More than are candidates, all of them nearer to the question.
    (0..120).for_each(|n| drop(store(&format!("charger bay {n}"), "episodic")));
    let found = |more: &str| {
        let params = format!(r#"{{"query":"charger bay","k":100,"touch":false{more}}}"#);
        let found = rig.ask("memory.retrieve", &params);
        let ids = list(&found, "/memories").iter();
        ids.map(|one| text(one, "/memory/memory_id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(r#","memory_types":["semantic"]"#), std::slice::from_ref(&semantic));
    assert!(!found("").contains(&semantic), "it is among the last");
    let pruned = rig.ask("memory.prune", r#"{"strategy":"relevance","below":0.5}"#);
    assert_eq!(number(&pruned, "/pruned"), 121.0);
    let open = store(&format!("{far} of the yard."), "episodic");
    assert_eq!(found(""), [open]);
    assert!(found(r#","include_archived":true"#).len() > 1);
}

#[test]
fn critical_memories_take_no_place_in_a_context_without_a_question() {
    let rig = Rig::with(Settings { episodic_memory_capacity: 0, ..Settings::default() });
    (0..12).for_each(|n| drop(rig.store(&format!("Guest {n} must never get nut {n}."))));
    (0..4).for_each(|n| drop(rig.store(&format!("Served table {n} with soup."))));
    let made = rig.ask("memory.get_context", r#"{"task_id":"t1","token_budget":8000}"#);
    let told = text(&made, "/context");
    assert_eq!(told.matches("Served table").count(), 4, "{told}");
    assert_eq!(told.matches("must never get").count(), 12, "each once: {told}");
}

#[test]
fn critical_memories_of_no_task_are_among_the_answers_without_a_task() {
    let rig = Rig::new();
    let store = |content: &str| {
        rig.ask("memory.store", &format!(r#"{{"content":"{content}"}}"#));
    };
    (0..3).for_each(|n| {
        store(&format!("Lamp {n} in the very long hall of the house must stay dark."))
    });
    (0..120).for_each(|n| store(&format!("lamp {n}")));
    let found = rig.ask("memory.retrieve", r#"{"query":"lamp","k":5}"#);
    let critical = list(&found, "/memories").iter().filter(|one| is(one, "/memory/is_critical"));
    assert_eq!(critical.count(), 3, "{found}");
    assert_eq!(number(&found, "/validation/critical_coverage"), 1.0);
}

#[test]
fn errors_take_the_place_of_no_memory() {
    let rig = Rig::new();
    let asked = r#"{"content":"the charger is behind the door of the long hall","task_id":"t1"}"#;
    let stored = rig.ask("memory.store", asked);
    for n in 0..120 {
        let error = format!(
            r#"{{"task_id":"t1","error_type":"missing_info","error_description":"charger {n}"}}"#
        );
        rig.ask("memory.record_error", &error);
    }
    let found = rig.ask("memory.retrieve", r#"{"query":"charger"}"#);
    assert_eq!(text(&found, "/memories/0/memory/memory_id"), text(&stored, "/memory_id"));
}

#[test]
fn of_two_that_contradict_each_other_one_is_left_out() {
    let rig = Rig::new();
    let first = rig.store("door 3 is open");
    let second = rig.store("door 3 is not open");
    let found = rig.ask("memory.retrieve", r#"{"query":"door 3 open","task_id":"t1"}"#);
    assert_eq!(list(&found, "/memories").len(), 1);
    let pair = list(&found, "/validation/contradictions/0");
    for stored in [&first, &second] {
        assert!(pair.contains(&text(stored, "/memory_id").into()));
    }
}

#[test]
fn the_score_is_that_of_its_parts() {
    let rig = Rig::new();
    let params = |critical| {
        format!(
            r#"{{"content":"the dock is by the window","task_id":"t1","is_critical":{critical}}}"#
        )
    };
    rig.ask("memory.store", &params("true"));
    rig.ask("memory.store", &params("false"));
    // Nine uses now, and nothing for a week.
    for _ in 0..9 {
        rig.ask("memory.retrieve", r#"{"query":"dock","task_id":"t1"}"#);
    }
    // The writer counts uses between two changes, some time after the answer that noted them.
    let peek = r#"{"query":"dock","task_id":"t1","touch":false}"#;
    let is_counted = |one: &Value| number(one, "/memory/access_count") == 9.0;
    for _ in 0..2000 {
        if list(&rig.ask("memory.retrieve", peek), "/memories").iter().all(is_counted) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    rig.clock.advance(Duration::from_secs(7 * 86_400));
    let found = rig.ask("memory.retrieve", peek);
    let [first, second] = list(&found, "/memories") else { panic!("{found}") };
    let weights = [
        ("sim", 0.35),
        ("rec", 0.15),
        ("freq", 0.10),
        ("stage", 0.20),
        ("crit", 0.10),
        ("err", 0.10),
    ];
    for one in [first, second] {
        let part = |name: &str| number(one, &format!("/parts/{name}"));
        let sum: f64 = weights.iter().map(|(name, weight)| weight * part(name)).sum();
        assert!((sum - number(one, "/score")).abs() < 1e-6);
        assert_eq!((part("stage"), part("err")), (1.0, 0.0));
        assert!((part("rec") - 0.5).abs() < 1e-3, "{one}");
        assert!((part("freq") - 0.498_922).abs() < 1e-5, "{one}");
    }
    assert_eq!((number(first, "/parts/crit"), number(second, "/parts/crit")), (1.0, 0.5));
    assert!((number(first, "/score") - number(second, "/score") - 0.05).abs() < 1e-6);
}

#[test]
fn the_current_stage_decides_the_order() {
    let rig = Rig::new();
    let store = |kind: &str| {
        rig.ask(
            "memory.store",
            &format!(
                r#"{{"content":"how to open the valve","task_id":"t1","memory_type":"{kind}"}}"#
            ),
        );
    };
    store("semantic");
    store("procedural");
    let first = |stage: &str| {
        let params =
            format!(r#"{{"query":"valve","task_id":"t1","stage_type":"{stage}","touch":false}}"#);
        let found = rig.ask("memory.retrieve", &params);
        text(&found, "/memories/0/memory/memory_type").to_owned()
    };
    // Both are of the planning stage; what is favoured decides in execution.
    assert_eq!(first("execution"), "procedural");
    let plan = r#"{"query":"valve","task_id":"t1","stage_type":"planning","touch":false}"#;
    let found = rig.ask("memory.retrieve", plan);
    let parts: Vec<f64> =
        list(&found, "/memories").iter().map(|one| number(one, "/parts/stage")).collect();
    assert_eq!(parts, [1.0, 1.0]);
}

#[test]
fn agents_do_not_see_each_other() {
    let rig = Rig::new();
    let stored = rig.ask("memory.store", OPEN);
    let id = text(&stored, "/memory_id");
    let other = |method: &str, params: &str| rig.response(&agent("a2"), method, params);
    let same = |method: &str, of: &str, none: &str| {
        let (of, none) = (other(method, of), other(method, none));
        assert_eq!((code(&of), code(&none)), (-32001, -32001), "{method}");
    };
    same(
        "memory.retrieve",
        r#"{"query":"JWT","task_id":"t1"}"#,
        r#"{"query":"JWT","task_id":"t9"}"#,
    );
    same("memory.get_context", r#"{"task_id":"t1"}"#, r#"{"task_id":"t9"}"#);
    let update = |id: &str| format!(r#"{{"memory_id":"{id}","relevance_score":0.1}}"#);
    same("memory.update", &update(id), &update("m9"));
    let found = other("memory.retrieve", r#"{"query":"JWT"}"#);
    assert_eq!(list(&found, "/result/memories").len(), 0);
    let named = other("memory.retrieve", r#"{"query":"JWT","agent_id":"a1"}"#);
    assert_eq!(code(&named), -32104);
    // A supervisor of both sees both, and another tenant sees none.
    let ace = somebody(&[ACE], &["a2", "a1"]);
    let seen = rig.response(&ace, "memory.retrieve", r#"{"query":"JWT","agent_id":"a1"}"#);
    assert_eq!(list(&seen, "/result/memories").len(), 1);
    let stranger = Caller { tenant: Some("other".into()), ..somebody(&[OPERATOR], &["a1"]) };
    let seen = rig.response(&stranger, "memory.retrieve", r#"{"query":"JWT"}"#);
    assert_eq!(list(&seen, "/result/memories").len(), 0);
    assert_eq!(code(&rig.response(&stranger, "memory.get_context", r#"{"task_id":"t1"}"#)), -32001);
}

#[test]
fn null_is_as_good_as_nothing() {
    let rig = Rig::new();
    rig.ask("memory.store", OPEN);
    let methods = [
        ("memory.get_context", ""),
        ("memory.prune", r#","dry_run":true"#),
        ("memory.detect_error_patterns", ""),
        ("memory.get_error_history", ""),
        ("memory.get_compression_metrics", ""),
        ("memory.adjust_compression", r#","auto":false"#),
    ];
    // The first agent of the token is another one: where the call names no agent, the task says whose it is.
    let ace = somebody(&[ACE], &["a2", "a1"]);
    let critical = ("memory.get_critical_memories", "");
    for (method, more) in methods.into_iter().chain([critical]) {
        let params = format!(r#"{{"agent_id":null,"task_id":"t1"{more}}}"#);
        let told = rig.response(&ace, method, &params);
        assert!(told.get("result").is_some(), "{method}: {told}");
    }
    for (method, more) in methods {
        rig.ask(method, &format!(r#"{{"task_id":null{more}}}"#));
    }
    let metrics = r#"{"task_id":null,"stage_id":null}"#;
    rig.ask("memory.get_compression_metrics", metrics);
}

#[test]
fn a_caller_without_the_scope_is_told_so() {
    let rig = Rig::new();
    let refused = rig.response(&agent("a1"), "memory.get_critical_memories", "{}");
    assert_eq!(code(&refused), -32104);
    let lines = rig.lines.take();
    assert!(lines.iter().all(|line| line.contains("UNAUTHORIZED")), "{lines:?}");
    // A caller without a scope of the protocol does not get as far as a call.
    let reader = somebody(&[Scope::READ], &["a1"]);
    let refusal = rig.router.admit(&reader, &JSONRPC, Incoming::default()).map(|_| ()).unwrap_err();
    let denied =
        Denied { method: &JSONRPC, why: Denial::Refusal(refusal), request_id: None, rate: None };
    let answer = rig.compass.refuse(&denied);
    assert_eq!((answer.status, code(&value(&answer.body))), (403, -32104));
    let prune = r#"{"task_id":"t1","mode":"forget"}"#;
    rig.store("a cup");
    assert_eq!(rig.fault("memory.prune", prune), -32104);
}

#[test]
fn each_call_of_a_batch_is_told_of() {
    let rig = Rig::new();
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"memory.store","params":{"content":"a cup"}},
        {"jsonrpc":"2.0","method":"memory.store","params":{"content":"a plate"}},
        {"jsonrpc":"2.0","id":2,"method":"memory.retrieve","params":{"query":"cup plate"}},
        {"jsonrpc":"2.0","id":3,"method":"memory.nope"}]"#;
    let answer = value(&rig.send(&agent("a1"), batch).body);
    let [stored, found, unknown] = answer.as_array().unwrap() else { panic!("{answer}") };
    assert!(is(stored, "/result/durable"));
    assert_eq!(list(found, "/result/memories").len(), 2, "it sees what came before it");
    assert_eq!(code(unknown), -32601);
    let lines = rig.lines.take();
    let names: Vec<&str> = lines.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    let expected =
        ["compass.memory.store", "compass.memory.store", "compass.memory.retrieve", "compass.?"];
    assert_eq!(names, expected);
    assert!(lines[0].contains("MemoryRecord/cr."), "{lines:?}");
    let quiet = r#"{"jsonrpc":"2.0","method":"memory.store","params":{"content":"a fork"}}"#;
    let answer = rig.send(&agent("a1"), quiet);
    assert_eq!((answer.status, answer.body.len()), (204, 0));
}

#[test]
fn the_trace_comes_back() {
    let rig = Rig::new();
    let ask = |content: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"k","method":"memory.store","params":{{"content":"{content}"}},"a2a_context":{{"trace_id":"x-1"}}}}"#
        );
        value(&rig.send(&agent("a1"), &body).body)
    };
    assert_eq!(text(&ask("a cup"), "/result/meta/trace_id"), "x-1");
    let failed = ask("");
    assert_eq!(text(&failed, "/error/data/trace_id"), "x-1");
    // That of a header counts where the message has none, before the name of the request.
    let named = |trace: Option<&str>| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"memory.store","params":{"content":"a"}}"#;
        value(&rig.send_named(&agent("a1"), body, trace).body)
    };
    assert_eq!(text(&named(Some("h-1")), "/result/meta/trace_id"), "h-1");
    assert_eq!(text(&named(None), "/result/meta/trace_id"), "r-1");
    assert_eq!(text(&failed, "/error/data/agent_id"), "a1");
}

#[test]
fn a_working_memory_is_found_for_an_hour() {
    let mut rig = Rig::new();
    rig.ask("memory.store", r#"{"content":"the cup is in the left hand","memory_type":"working"}"#);
    let count =
        |rig: &Rig| list(&rig.ask("memory.retrieve", r#"{"query":"cup"}"#), "/memories").len();
    rig.clock.advance(Duration::from_secs(3500));
    rig.restart();
    assert_eq!(count(&rig), 1);
    rig.clock.advance(Duration::from_secs(101));
    assert_eq!(count(&rig), 0);
}

#[test]
fn a_critical_working_memory_has_no_end() {
    let rig = Rig::new();
    let store = |content: &str| {
        let params = format!(r#"{{"content":"{content}","memory_type":"working"}}"#);
        text(&rig.ask("memory.store", &params), "/memory_id").to_owned()
    };
    let watcher = somebody(&[ACE], &["a1"]);
    let decide = |id: &str, more: &str| {
        let params = format!(r#"{{"memory_id":"{id}","is_critical":{more}}}"#);
        let told = rig.response(&watcher, "memory.update_criticality", &params);
        assert!(told.get("result").is_some(), "{told}");
    };
    let ids = || {
        let found = rig.ask("memory.retrieve", r#"{"query":"cup plate fork spoon","k":9}"#);
        let ids = list(&found, "/memories").iter();
        let mut ids: Vec<String> =
            ids.map(|one| text(one, "/memory/memory_id").to_owned()).collect();
        ids.sort();
        ids
    };
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let by_rule = store("The cup must not be lifted.");
    let by_caller = store("The plate is on the table.");
    let by_change = store("The fork is in the drawer.");
    store("The spoon is in the sink.");
    decide(&by_caller, r#"true,"reason":"the owner says so""#);
    let params = format!(r#"{{"memory_id":"{by_change}","content":"The fork must stay there."}}"#);
    rig.ask("memory.update", &params);
    rig.clock.advance(Duration::from_secs(3601));
    assert_eq!(ids(), sorted(vec![by_rule.clone(), by_caller.clone(), by_change.clone()]));
    // A change of its type gives it no end either.
    for kind in ["episodic", "working"] {
        let params = format!(r#"{{"memory_id":"{by_rule}","memory_type":"{kind}"}}"#);
        rig.ask("memory.update", &params);
    }
    // One that is critical no more lasts as long as a new one.
    decide(&by_caller, "false");
    rig.clock.advance(Duration::from_secs(3500));
    assert_eq!(ids(), sorted(vec![by_rule.clone(), by_caller, by_change.clone()]));
    rig.clock.advance(Duration::from_secs(101));
    assert_eq!(ids(), sorted(vec![by_rule, by_change]));
}

#[test]
fn what_is_above_the_capacity_is_put_aside() {
    let rig = Rig::new();
    rig.store("The robot must not enter room 12.");
    for n in 1..50 {
        let stored = rig.store(&format!("box {n} was moved"));
        assert_eq!(number(&stored, "/pruned"), 0.0, "{n}");
    }
    assert_eq!(number(&rig.store("box 50 was moved"), "/pruned"), 1.0);
    let count = |more: &str| {
        let params = format!(r#"{{"query":"box moved room","task_id":"t1","k":100{more}}}"#);
        list(&rig.ask("memory.retrieve", &params), "/memories").len()
    };
    assert_eq!((count(""), count(r#","include_archived":true"#)), (50, 51));
    let found = rig.ask("memory.retrieve", r#"{"query":"room 12","task_id":"t1"}"#);
    assert_eq!(text(&found, "/memories/0/memory/content"), "The robot must not enter room 12.");
}

#[test]
fn many_that_store_into_a_full_task_at_once_are_all_taken() {
    const THREADS: usize = 8;
    let rig = Rig::with(Settings { episodic_memory_capacity: 3, ..Settings::default() });
    let active = || {
        let found =
            rig.ask("memory.retrieve", r#"{"query":"box","task_id":"t1","k":100,"touch":false}"#);
        list(&found, "/memories").len()
    };
    (0..3).for_each(|n| drop(rig.store(&format!("box {n} was moved"))));
    for round in 0..20 {
        let start = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for n in 0..THREADS {
                let (rig, start) = (&rig, &start);
                scope.spawn(move || {
                    start.wait();
                    rig.store(&format!("box {} was moved", 10 * round + n));
                });
            }
        });
        // The next one takes with it what they left.
        let over = active() - 3;
        let next = rig.store(&format!("box {} was moved", 10 * round + THREADS));
        assert_eq!(number(&next, "/pruned"), (over + 1) as f64, "{round}");
        assert_eq!(active(), 3);
    }
}

#[test]
fn the_least_relevant_goes_first_also_after_it_has_changed() {
    let settings = Settings { episodic_memory_capacity: 3, ..Settings::default() };
    let rig = Rig::with(settings);
    let stored: Vec<String> = (0..3)
        .map(|n| text(&rig.store(&format!("box {n} was moved")), "/memory_id").to_owned())
        .collect();
    let update = |n: usize, relevance: f64| {
        let params = format!(r#"{{"memory_id":"{}","relevance_score":{relevance}}}"#, stored[n]);
        rig.ask("memory.update", &params);
    };
    let active = || {
        let params = r#"{"query":"box","task_id":"t1","k":100,"touch":false}"#;
        let found = rig.ask("memory.retrieve", params);
        let ids = list(&found, "/memories").iter();
        ids.map(|one| text(one, "/memory/memory_id").to_owned()).collect::<Vec<_>>()
    };
    rig.store("box 3 was moved");
    assert!(!active().contains(&stored[0]), "the oldest of equal relevance");
    update(2, 0.1);
    rig.store("box 4 was moved");
    assert!(active().contains(&stored[1]) && !active().contains(&stored[2]));
    // One that is critical from now on is never chosen, and its successor is.
    let watcher = somebody(&[ACE], &["a1"]);
    let params = format!(r#"{{"memory_id":"{}","is_critical":true,"reason":"manual"}}"#, stored[1]);
    rig.response(&watcher, "memory.update_criticality", &params);
    let pruned: Vec<f64> =
        (5..9).map(|n| number(&rig.store(&format!("box {n} was moved")), "/pruned")).collect();
    assert_eq!(pruned, [1.0; 4]);
    assert!(active().contains(&stored[1]));
    assert_eq!(active().len(), 3);
}

#[test]
fn a_memory_has_the_place_that_is_stated() {
    let rig = Rig::new();
    let pose = r#"{"frame":"map","position":[1.0,2.0,0.5]}"#;
    let stored =
        rig.ask("memory.store", &format!(r#"{{"content":"a cup stands here","pose":{pose}}}"#));
    let query = omird_engine::Query {
        near: Some(omir_core::space::Center::Plane { x: 1.0, y: 2.0 }),
        radius: Some(0.1),
        ..omird_engine::Query::default()
    };
    let found = rig.engine.recall(&query).unwrap();
    assert_eq!(found.hits.len(), 1);
    let id = text(&stored, "/memory_id");
    // A change of something else leaves it where it is.
    rig.ask("memory.update", &format!(r#"{{"memory_id":"{id}","relevance_score":0.5}}"#));
    let found = rig.ask("memory.retrieve", r#"{"query":"cup"}"#);
    assert_eq!(number(&found, "/memories/0/memory/pose/position/1"), 2.0);
    let wrong = r#"{"content":"x","pose":{"frame":"map","position":[1.0,"2",0]}}"#;
    let response = rig.response(&agent("a1"), "memory.store", wrong);
    assert_eq!(code(&response), -32602);
    assert_eq!(text(&response, "/error/data/path"), "/pose/position/1");
}

#[test]
fn a_sweep_is_there_where_the_configuration_says_so() {
    let rig = Rig::new();
    let operator = somebody(&[OPERATOR], &["a1"]);
    assert_eq!(code(&rig.response(&operator, "memory.run_memify", "{}")), -32601);
    rig.compass.reconfigure(Settings { memify: true, ..Settings::default() });
    assert_eq!(rig.fault("memory.run_memify", "{}"), -32104);
    let swept = rig.response(&operator, "memory.run_memify", "{}");
    for figure in ["merged", "expired", "moved"] {
        assert_eq!(number(&swept, &format!("/result/{figure}")), 0.0);
    }
}

#[test]
fn pruning_can_be_tried_first() {
    let rig = Rig::new();
    for n in 0..6 {
        let relevance = if n % 2 == 0 { 0.1 } else { 0.9 };
        let params =
            format!(r#"{{"content":"box {n}","task_id":"t1","relevance_score":{relevance}}}"#);
        rig.ask("memory.store", &params);
    }
    rig.ask(
        "memory.store",
        r#"{"content":"box 7 must stay","task_id":"t1","relevance_score":0.1}"#,
    );
    let prune = |more: &str| {
        rig.ask("memory.prune", &format!(r#"{{"task_id":"t1","strategy":"relevance"{more}}}"#))
    };
    let tried = prune(r#","dry_run":true"#);
    assert_eq!((number(&tried, "/pruned"), number(&tried, "/kept_critical")), (3.0, 1.0));
    let seq = rig.engine.newest();
    assert_eq!(number(&prune(r#","dry_run":true"#), "/pruned"), 3.0);
    assert_eq!(rig.engine.newest(), seq, "nothing was changed");
    let pruned = prune("");
    assert_eq!((number(&pruned, "/examined"), list(&pruned, "/ids").len()), (7.0, 3));
    assert_eq!(number(&prune(""), "/pruned"), 0.0);
    let operator = somebody(&[OPERATOR], &["a1"]);
    let forget = r#"{"task_id":"t1","strategy":"relevance","mode":"forget"}"#;
    let response = rig.response(&operator, "memory.prune", forget);
    assert_eq!(number(&response, "/result/pruned"), 3.0);
    let all = rig.ask(
        "memory.retrieve",
        r#"{"query":"box","task_id":"t1","include_archived":true,"k":100}"#,
    );
    assert_eq!(list(&all, "/memories").len(), 4);
}

#[test]
fn critical_memories_above_a_capacity_are_counted() {
    let rig = Rig::with(Settings { episodic_memory_capacity: 0, ..Settings::default() });
    for n in 0..3 {
        rig.store(&format!("Door {n} must stay closed at night."));
    }
    let other = rig.store("box 4 was moved");
    let prune = |more: &str| rig.ask("memory.prune", &format!(r#"{{"task_id":"t1"{more}}}"#));
    let counts = |pruned: &Value| (number(pruned, "/pruned"), number(pruned, "/kept_critical"));
    assert_eq!(counts(&prune("")), (0.0, 0.0), "there is no bound");
    rig.compass.reconfigure(Settings { episodic_memory_capacity: 2, ..Settings::default() });
    assert_eq!(counts(&prune(r#","dry_run":true"#)), (1.0, 1.0), "two of four are above it");
    let pruned = prune("");
    assert_eq!(counts(&pruned), (1.0, 1.0));
    assert_eq!(list(&pruned, "/ids"), [text(&other, "/memory_id").into()]);
    assert_eq!(counts(&prune("")), (0.0, 1.0));
}

/// A rig whose payloads are small, with more long memories in a task than one of them holds.
fn with_long_memories() -> Rig {
    let settings = Settings { episodic_memory_capacity: 0, ..Settings::default() };
    let mut rig = Rig::with(settings.clone());
    rig.engine.stop();
    let mut small = omird_engine::Settings::default();
    small.limits.max_payload_bytes = 64 << 10;
    let parts = Parts { clock: rig.clock.clone(), settings: small, ..parts(rig.dir.path()) };
    rig.engine = Engine::open(parts, &mut |_| {}).unwrap();
    rig.compass = Compass::new(&rig.engine, settings, None);
    for n in 0..18 {
        let content = format!("Box {n} was moved by the arm. ").repeat(200);
        let params = format!(r#"{{"content":"{content}","task_id":"t1","relevance_score":0.1}}"#);
        rig.ask("memory.store", &params);
    }
    rig
}

#[test]
fn more_is_pruned_than_one_payload_holds() {
    let rig = with_long_memories();
    let prune = || rig.ask("memory.prune", r#"{"task_id":"t1","strategy":"relevance"}"#);
    let pruned = prune();
    assert_eq!((number(&pruned, "/pruned"), list(&pruned, "/ids").len()), (18.0, 18));
    assert_eq!((number(&prune(), "/pruned"), number(&prune(), "/examined")), (0.0, 18.0));
}

#[test]
fn a_store_puts_aside_what_fits_beside_it() {
    let rig = with_long_memories();
    rig.compass.reconfigure(Settings { episodic_memory_capacity: 1, ..Settings::default() });
    let first = number(&rig.store("one more"), "/pruned");
    assert!(first > 0.0 && first < 18.0, "{first}");
    let later: f64 = (0..15).map(|_| number(&rig.store("and one more"), "/pruned")).sum();
    assert_eq!(first + later, 33.0, "all but one");
}

#[test]
fn a_change_needs_the_version_that_was_seen() {
    let rig = Rig::new();
    let stored = rig.store("the cup is red");
    let id = text(&stored, "/memory_id");
    let update = |more: &str| format!(r#"{{"memory_id":"{id}"{more}}}"#);
    let changed = rig.ask(
        "memory.update",
        &update(r#","version":1,"content":"the cup is blue","relevance_score":0.4"#),
    );
    assert_eq!(number(&changed, "/version"), 2.0);
    assert_eq!(
        rig.fault("memory.update", &update(r#","version":1,"relevance_score":0.5"#)),
        -32002
    );
    let same = rig.ask("memory.update", &update(r#","relevance_score":0.4"#));
    assert!(is(&same, "/unchanged"));
    let found = rig.ask("memory.retrieve", r#"{"query":"blue cup","task_id":"t1"}"#);
    assert_eq!(number(&found, "/memories/0/memory/relevance_score"), 0.4);
    assert_eq!(text(&found, "/memories/0/memory/summary"), "the cup is blue");
}

#[test]
fn nothing_is_written_where_nobody_may_write() {
    let mut rig = Rig::new();
    rig.router = Router::new(Facts { is_read_only: true, most: 1 << 20, ..Facts::default() }, []);
    assert_eq!(rig.fault("memory.store", r#"{"content":"x"}"#), -32010);
    assert_eq!(list(&rig.ask("memory.retrieve", r#"{"query":"x"}"#), "/memories").len(), 0);
}

#[test]
fn memories_that_are_nearly_the_same_are_not_merged() {
    let rig = Rig::new();
    for n in 0..20 {
        rig.store(&format!("the dock is by the window, {n}"));
    }
    // The same without an owner: a sweep merges these.
    for _ in 0..20 {
        let text = r#"{"resourceType":"MemoryRecord","content":"the dock is by the window","entityRefs":[{"ref":"Entity/ct.t1"}]}"#;
        let change = rig.engine.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        rig.engine.execute(change).unwrap();
    }
    rig.clock.advance(Duration::from_secs(30 * 86_400));
    rig.engine.sweep(false).unwrap();
    let found = rig.ask("memory.retrieve", r#"{"query":"dock","task_id":"t1","k":100}"#);
    assert_eq!(list(&found, "/memories").len(), 20);
    let mut others = 0;
    rig.engine.each(Some(ResourceType::MemoryRecord), |bytes| {
        let record = omird_engine::decode_stored(&bytes).unwrap();
        others += usize::from(record.pointer("/provenance/externalId").is_none());
    });
    assert!(others < 20, "the sweep did merge: {others}");
}
