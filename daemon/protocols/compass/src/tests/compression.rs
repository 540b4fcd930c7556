//! Compression on request, its measures and its settings.

use super::*;

#[test]
fn the_settings_of_a_task_are_in_force() {
    let rig = Rig::new();
    for n in 0..50 {
        rig.store(&format!(
            "Step {n}: the robot looked at shelf {n} and counted the boxes that stood there."
        ));
    }
    let adjust = |params: &str| rig.ask("memory.adjust_compression", params);
    let all = adjust(r#"{"task_id":"t1","aggressiveness":1,"auto":false}"#);
    assert_eq!((number(&all, "/stage_ratio"), number(&all, "/task_ratio")), (20.0, 10.0));
    let stage = rig.ask("memory.get_stage_context", r#"{"task_id":"t1"}"#);
    let id = text(&stage, "/stage/stage_id").to_owned();
    let compress = || rig.ask("memory.compress_stage", &format!(r#"{{"stage_id":"{id}"}}"#));
    let hard = compress();
    let none = adjust(r#"{"task_id":"t1","aggressiveness":0}"#);
    assert_eq!((number(&none, "/stage_ratio"), number(&none, "/task_ratio")), (5.0, 2.5));
    let soft = compress();
    let ratio = |made: &Value| number(made, "/metric/compression_ratio");
    assert!(ratio(&hard) > ratio(&soft), "{} {}", ratio(&hard), ratio(&soft));
    assert!(soft.pointer("/stage/completed_at").unwrap().is_null(), "it stays open");
    let measures = rig.ask("memory.get_compression_metrics", r#"{"task_id":"t1"}"#);
    assert_eq!(number(&measures, "/summary/count"), 2.0);
    assert_eq!(number(&measures, "/summary/min_retention"), 1.0);
    assert_eq!(rig.fault("memory.adjust_compression", r#"{"task_id":"t1"}"#), -32602);
    // Those of the agent count where a task has none.
    let of_agent = adjust(r#"{"stage_ratio":4,"auto":false}"#);
    assert_eq!(number(&of_agent, "/stage_ratio"), 4.0);
    let task = adjust(r#"{"task_id":"t1","aggressiveness":0.5}"#);
    assert_eq!(number(&task, "/stage_ratio"), 4.0);
}

#[test]
fn there_must_be_something_to_compress() {
    let rig = Rig::new();
    rig.store("first a plan");
    assert_eq!(rig.fault("memory.compress_task", r#"{"task_id":"t1"}"#), -32007);
    rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    let made = rig.ask("memory.compress_task", r#"{"task_id":"t1"}"#);
    assert_eq!(text(&made, "/task_progress_summary"), "first a plan");
    assert_eq!(text(&made, "/metric/compression_type"), "task");
    let stage = rig.ask("memory.get_stage_context", r#"{"task_id":"t1"}"#);
    let id = text(&stage, "/stage/stage_id").to_owned();
    let params = format!(r#"{{"stage_id":"{id}"}}"#);
    assert_eq!(rig.fault("memory.compress_stage", &params), -32007, "it has no memories");
    let other = rig.response(&agent("a2"), "memory.compress_stage", &params);
    assert_eq!(code(&other), -32001);
}

#[test]
fn a_fact_that_only_a_summary_states_is_kept_with_the_task() {
    let rig = Rig::new();
    rig.store("The plan names three shelves.");
    let fact = "The lift must stay free.";
    let params = format!(r#"{{"task_id":"t1","summary":"The plan was made. {fact}"}}"#);
    rig.ask("memory.complete_stage", &params);
    let made = rig.ask("memory.compress_task", r#"{"task_id":"t1","ratio":10}"#);
    assert_eq!(number(&made, "/metric/critical_fact_retention_rate"), 1.0);
    assert!(list(&made, "/critical_facts").contains(&fact.into()), "{made}");
}

#[test]
fn a_task_with_more_facts_than_its_record_has_room_for_goes_on() {
    let rig = Rig::new();
    let filler = "over the wet floor of the hall ".repeat(250);
    let completed = || {
        let done =
            rig.ask("memory.complete_stage", r#"{"task_id":"t1","next_stage_type":"execution"}"#);
        assert!(is(&done, "/stage/has_more_facts"));
        let kept: usize = list(&done, "/stage/critical_facts")
            .iter()
            .map(|fact| fact.as_str().unwrap().len())
            .sum();
        assert!(kept > 120 << 10 && kept <= 128 << 10, "{kept}");
        let retention = number(&done, "/metric/critical_fact_retention_rate");
        assert!(retention > 0.4 && retention < 0.6, "the answer says so: {retention}");
    };
    for stage in 0..3 {
        let facts =
            (0..30).map(|n| format!("The robot must not drive {stage}x{n} times {filler}.\n"));
        let mut params = Map::new();
        params.insert("task_id", "t1");
        params.insert("is_critical", false);
        params.insert("content", facts.collect::<String>());
        rig.ask("memory.store", &json::to_string(&Value::Object(params)));
        completed();
    }
    let progress = rig.ask("memory.get_task_progress", r#"{"task_id":"t1","token_budget":200000}"#);
    assert!(is(&progress, "/has_more_facts"));
    // Nothing is lost: the rest is read from the stages, and from their memories.
    let brief = text(&progress, "/brief");
    for fact in (0..3).flat_map(|stage| (0..30).map(move |n| format!("drive {stage}x{n} times"))) {
        assert!(brief.contains(&fact), "{fact}");
    }
    let id = progress.pointer("/completed_stages/2").and_then(Value::as_str).unwrap();
    let stage = format!(r#"{{"task_id":"t1","stage_id":"{id}","token_budget":200000}}"#);
    let stage = rig.ask("memory.get_stage_context", &stage);
    assert!(text(&stage, "/context").contains("drive 2x29 times"));
}
