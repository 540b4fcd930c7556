//! Errors: recorded, told of, listed, and what repeats itself.

use super::*;

fn record(rig: &Rig, more: &str) -> Value {
    rig.ask(
        "memory.record_error",
        &format!(r#"{{"task_id":"t1","error_description":"it went wrong"{more}}}"#),
    )
}

#[test]
fn errors_have_a_type_and_a_severity() {
    let rig = Rig::new();
    rig.store("first a plan");
    let defaults = [
        ("hallucination", 0.8),
        ("missing_info", 0.5),
        ("incorrect_action", 0.7),
        ("context_degradation", 0.6),
    ];
    for (kind, severity) in defaults {
        let stored = record(&rig, &format!(r#","error_type":"{kind}""#));
        assert_eq!(number(&stored, "/error_severity"), severity);
    }
    let fault = |more: &str| {
        let params = format!(r#"{{"task_id":"t1","error_description":"x"{more}}}"#);
        rig.fault("memory.record_error", &params)
    };
    assert_eq!(fault(r#","error_type":"oops""#), -32602);
    assert_eq!(fault(r#","error_type":"missing_info","error_severity":1.1"#), -32602);
    assert_eq!(fault(r#","error_type":"missing_info","memory_ids":["nobody"]"#), -32001);
    // An id is taken once.
    let chosen = r#","error_type":"missing_info","error_id":"e1""#;
    assert_eq!(text(&record(&rig, chosen), "/error_id"), "e1");
    assert_eq!(fault(chosen), -32002);
}

#[test]
fn a_severe_error_is_told_of() {
    let rig = Rig::new();
    rig.store("first a plan");
    let told = |severity: f64| {
        let stored =
            record(&rig, &format!(r#","error_type":"missing_info","error_severity":{severity}"#));
        stored.get("ace_signal").cloned().unwrap()
    };
    let signal = told(0.7);
    assert_eq!(text(&signal, "/signal_type"), "severity");
    assert_eq!(number(&signal, "/threshold"), 0.7);
    assert!(told(0.69).is_null());
    // From five memories on, their share counts.
    for n in 0..4 {
        rig.store(&format!("step {n}"));
    }
    let signal = told(0.1);
    assert_eq!(text(&signal, "/signal_type"), "error_rate");
    assert_eq!(number(&signal, "/value"), 0.6);
}

#[test]
fn three_of_a_type_are_one_pattern_however_often_one_looks() {
    let rig = Rig::new();
    rig.store("first a plan");
    for _ in 0..3 {
        record(&rig, r#","error_type":"missing_info","recovery_action":"ask again""#);
    }
    let detect = || rig.ask("memory.detect_error_patterns", r#"{"task_id":"t1"}"#);
    let found = detect();
    let patterns = list(&found, "/patterns");
    assert_eq!(patterns.len(), 1);
    assert_eq!(
        (number(&found, "/patterns/0/count"), number(&found, "/errors_examined")),
        (3.0, 3.0)
    );
    assert!((number(&found, "/patterns/0/confidence") - 0.6).abs() < 1e-9);
    assert_eq!(text(&found, "/patterns/0/prevention_strategy"), "ask again");
    let seq = rig.engine.newest();
    let again = detect();
    assert_eq!(text(&again, "/patterns/0/pattern_id"), text(&found, "/patterns/0/pattern_id"));
    assert_eq!(rig.engine.newest(), seq, "what says nothing new is not written");
    record(&rig, r#","error_type":"missing_info""#);
    let more = detect();
    assert_eq!(text(&more, "/patterns/0/pattern_id"), text(&found, "/patterns/0/pattern_id"));
    assert_eq!(number(&more, "/patterns/0/count"), 4.0);
}

#[test]
fn the_history_is_filtered() {
    let rig = Rig::new();
    rig.store("first a plan");
    let at = |kind: &str, severity: f64| {
        rig.clock.advance(Duration::from_secs(1));
        let more = format!(r#","error_type":"{kind}","error_severity":{severity}"#);
        text(&record(&rig, &more), "/error_id").to_owned()
    };
    let first = at("missing_info", 0.2);
    rig.store("[STAGE:EXECUTION] run it");
    let second = at("hallucination", 0.9);
    let third = at("missing_info", 0.4);
    let ids = |more: &str| -> Vec<String> {
        let params = format!(r#"{{"task_id":"t1"{more}}}"#);
        let found = rig.ask("memory.get_error_history", &params);
        list(&found, "/errors").iter().map(|one| text(one, "/error_id").to_owned()).collect()
    };
    assert_eq!(ids(r#","limit":2"#), [third.clone(), second.clone()]);
    assert_eq!(ids(r#","min_severity":0.7"#), std::slice::from_ref(&second));
    assert_eq!(ids(r#","stage_types":["execution"]"#), [third.clone(), second.clone()]);
    assert_eq!(ids(r#","error_types":["missing_info"]"#), [third, first]);
    let of_agent = rig.ask("memory.get_error_history", "{}");
    assert_eq!(number(&of_agent, "/total"), 3.0);
    let other = rig.response(&agent("a2"), "memory.get_error_history", r#"{"task_id":"t1"}"#);
    assert_eq!(code(&other), -32001);
}

#[test]
fn what_corrects_an_error_is_critical_and_comes_first() {
    let rig = Rig::new();
    rig.store("first a plan");
    let error =
        record(&rig, r#","error_type":"incorrect_action","recovery_action":"dry the gripper""#);
    let id = text(&error, "/error_id");
    let params = format!(
        r#"{{"task_id":"t1","content":"the gripper was dried","corrects_error_id":"{id}"}}"#
    );
    let stored = rig.ask("memory.store", &params);
    assert_eq!(text(&stored, "/criticality_reason"), "error_recovery");
    let made = rig.ask("memory.get_error_aware_context", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&made, "/boosted"), [text(&stored, "/memory_id").into()]);
    assert_eq!(list(&made, "/prevention"), ["dry the gripper".into()]);
    assert!(text(&made, "/context").contains("# Errors\n- incorrect_action (0.7): it went wrong"));
    let found = rig.ask("memory.retrieve", r#"{"query":"gripper","task_id":"t1"}"#);
    assert_eq!(number(&found, "/memories/0/parts/err"), 1.0);
    let unknown = r#"{"task_id":"t1","content":"x","corrects_error_id":"nobody"}"#;
    assert_eq!(rig.fault("memory.store", unknown), -32001);
}

#[test]
fn an_error_between_two_stages_is_seen() {
    let rig = Rig::new();
    rig.store("@stage:verification look at the shelf");
    rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    let error = r#","error_type":"missing_info","recovery_action":"ask again""#;
    for _ in 0..3 {
        assert!(record(&rig, error).get("error_id").is_some());
    }
    let made = rig.ask("memory.get_error_aware_context", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&made, "/errors").len(), 3);
    assert!(text(&made, "/context").contains("- missing_info (0.5): it went wrong"), "{made}");
    let found = rig.ask("memory.detect_error_patterns", r#"{"task_id":"t1"}"#);
    assert_eq!(number(&found, "/errors_examined"), 3.0);
    assert_eq!(list(&found, "/patterns").len(), 1);
    // A stage that has begun since is not the only one that counts.
    rig.store("once more from the beginning");
    let made = rig.ask("memory.get_error_aware_context", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&made, "/errors").len(), 3);
    // Of old ones nothing is told any more.
    for _ in 0..3 {
        rig.clock.advance(Duration::from_secs(60));
        rig.ask("memory.complete_stage", r#"{"task_id":"t1","next_stage_type":"execution"}"#);
        rig.store("one step more");
    }
    let made = rig.ask("memory.get_error_aware_context", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&made, "/errors").len(), 0);
}

#[test]
fn an_error_that_is_sent_again_is_one() {
    let rig = Rig::new();
    rig.store("first a plan");
    let error = |more: &str| {
        format!(
            r#"{{"task_id":"t1","error_type":"missing_info","error_description":"no map","error_id":"e1"{more}}}"#
        )
    };
    let first = rig.ask("memory.record_error", &error(""));
    assert!(first.get("unchanged").is_none());
    // The task moves on before the caller asks again.
    rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
    rig.clock.advance(Duration::from_secs(60));
    let seq = rig.engine.newest();
    let again = rig.ask("memory.record_error", &error(""));
    assert_eq!(text(&again, "/recorded_at"), text(&first, "/recorded_at"));
    assert!(is(&again, "/unchanged"));
    assert_eq!(rig.engine.newest(), seq, "nothing was written");
    for other in [
        r#","error_severity":0.2"#,
        r#","recovery_action":"ask""#,
        r#","recorded_at":"2026-06-02T00:00:00Z""#,
    ] {
        assert_eq!(rig.fault("memory.record_error", &error(other)), -32002, "{other}");
    }
    let theirs =
        rig.response(&agent("a2"), "memory.store", r#"{"task_id":"t2","content":"another plan"}"#);
    assert!(theirs.get("result").is_some());
    let theirs = error("").replace("t1", "t2");
    assert_eq!(code(&rig.response(&agent("a2"), "memory.record_error", &theirs)), -32002);
}
