//! A card that gives nothing back: contexts are empty and say so, and nothing is written that would rest on a part.

use super::*;

/// A store with a task and a stage that is over, whose files are empty from now on.
fn emptied() -> Rig {
    let rig = Rig::new();
    rig.store("The robot must not enter room 12.");
    rig.store("[STAGE:EXECUTION] drive to the shelf");
    rig.ask(
        "memory.store",
        r#"{"content":"the shelf is behind the plant","memory_type":"semantic"}"#,
    );
    for file in std::fs::read_dir(rig.dir.path().join("wal")).unwrap() {
        let file = std::fs::OpenOptions::new().write(true).open(file.unwrap().path()).unwrap();
        file.set_len(0).unwrap();
    }
    rig
}

#[test]
fn contexts_are_empty_and_say_so() {
    let rig = emptied();
    let asked = [
        ("memory.get_context", r#"{"task_id":"t1"}"#),
        ("memory.get_context", r#"{"query":"shelf"}"#),
        ("memory.get_stage_context", r#"{"task_id":"t1"}"#),
        ("memory.get_error_aware_context", r#"{"task_id":"t1"}"#),
    ];
    for (method, params) in asked {
        let found = rig.ask(method, params);
        assert_eq!(text(&found, "/context"), "", "{method} {params}");
        assert!(is(&found, "/meta/degraded"), "{method} {params}");
        assert_eq!(number(&found, "/quality/critical_coverage"), 0.0, "{method} {params}");
    }
    let watcher = somebody(&[ACE], &["a1"]);
    let params = r#"{"task_id":"t1","decision_type":"intervene","metrics":{"error_rate":0.9}}"#;
    let found = rig.response(&watcher, "memory.get_strategic_context", params);
    assert_eq!(text(&found, "/result/context"), "");
    assert!(is(&found, "/result/meta/degraded"));
    let found = rig.ask("memory.retrieve", r#"{"query":"shelf"}"#);
    assert!(is(&found, "/meta/degraded"));
    assert_eq!(number(&found, "/validation/critical_coverage"), 0.0);
    // A fault of the question is one all the same.
    assert_eq!(rig.fault("memory.get_context", r#"{"task_id":"t1","token_budget":3}"#), -32602);
    assert_eq!(rig.fault("memory.get_stage_context", r#"{"task_id":"nobody"}"#), -32001);
}

#[test]
fn nothing_is_written_that_would_rest_on_a_part() {
    let rig = emptied();
    let seq = rig.engine.newest();
    for (method, params) in [
        ("memory.complete_stage", r#"{"task_id":"t1"}"#),
        ("memory.store", r#"{"task_id":"t1","content":"one more"}"#),
    ] {
        assert_eq!(rig.fault(method, params), -32603, "{method}");
    }
    let pruned = rig.ask("memory.prune", r#"{"strategy":"relevance","below":1}"#);
    assert_eq!((number(&pruned, "/pruned"), is(&pruned, "/meta/degraded")), (0.0, true));
    assert_eq!(rig.engine.newest(), seq);
}

#[test]
fn a_lost_memory_that_an_error_names_refuses_no_memory() {
    let mut rig = Rig::new();
    let known = rig.store("the zebra crossing is closed");
    let params = format!(
        r#"{{"task_id":"t1","error_description":"it went wrong","error_type":"hallucination",
            "error_severity":0.9,"memory_ids":["{}"]}}"#,
        text(&known, "/memory_id")
    );
    rig.ask("memory.record_error", &params);
    rig.store("drive on");
    rig.lose("the zebra crossing is closed");
    assert!(is(&rig.store("drive on, and look"), "/meta/degraded"), "it is missed");
}

#[test]
fn a_lost_stage_lets_its_task_go_on() {
    let mut rig = Rig::new();
    rig.store("[STAGE:PLANNING] the way leads by the lift");
    rig.ask("memory.complete_stage", r#"{"task_id":"t1","insights":["the lift is xylophone"]}"#);
    rig.store("[STAGE:EXECUTION] drive to the shelf");
    rig.lose("the lift is xylophone");
    rig.store("[STAGE:VERIFICATION] look at the shelf");
    let done = rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    assert!(is(&done, "/meta/degraded"), "{done}");
}
