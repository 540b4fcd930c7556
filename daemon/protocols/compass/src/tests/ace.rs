//! Supervisors of agents.

use super::*;

fn watcher(rig: &Rig, method: &str, params: &str) -> Value {
    let response = rig.response(&somebody(&[ACE], &["a1"]), method, params);
    response.get("result").cloned().unwrap_or_else(|| panic!("{method}: {response}"))
}

#[test]
fn the_figures_decide_what_is_told() {
    let rig = Rig::new();
    rig.store("first a plan");
    for _ in 0..3 {
        rig.ask(
            "memory.record_error",
            r#"{"task_id":"t1","error_type":"missing_info","error_description":"no map"}"#,
        );
    }
    rig.ask("memory.detect_error_patterns", r#"{"task_id":"t1"}"#);
    let params = r#"{"task_id":"t1","decision_type":"intervene","metrics":{"error_rate":0.5}}"#;
    let told = watcher(&rig, "memory.get_strategic_context", params);
    assert_eq!(list(&told, "/focus"), ["errors".into()]);
    assert_eq!((list(&told, "/errors").len(), list(&told, "/patterns").len()), (3, 1));
    assert!(text(&told, "/context").contains("no map"));
    assert_eq!(rig.fault("memory.get_strategic_context", params), -32104);
}

#[test]
fn an_outcome_is_learnt_from() {
    let rig = Rig::new();
    let stored = rig.ask(
        "memory.store",
        r#"{"content":"ask the operator","task_id":"t1","relevance_score":0.5}"#,
    );
    let id = text(&stored, "/memory_id");
    let params = format!(
        r#"{{"task_id":"t1","context_id":"c1","intervention_type":"hint","effectiveness":1,"success":true,"memory_ids":["{id}"],"metrics_after":{{"error_rate":0.1}}}}"#
    );
    let name = format!("MemoryRecord/cr.{id}").parse().unwrap();
    let alpha = |rig: &Rig| {
        let record = omird_engine::decode_stored(&rig.engine.get(&name).unwrap().unwrap()).unwrap();
        record.pointer("/confidence/alpha").and_then(Value::as_f64).unwrap_or(0.0)
    };
    let version = |rig: &Rig| rig.engine.live_version(&name).unwrap().0;
    let first = watcher(&rig, "memory.record_intervention_outcome", &params);
    assert!((number(&first, "/updated/0/relevance_score") - 0.6).abs() < 1e-9);
    assert!(!is(&first, "/updated/0/is_critical"));
    assert_eq!((alpha(&rig), version(&rig)), (2.0, 2), "the evidence is in the same write");
    let before = alpha(&rig);
    watcher(&rig, "memory.record_intervention_outcome", &params);
    assert!((alpha(&rig) - before - 1.0).abs() < 1e-9, "one confirmation more");
    let third = watcher(&rig, "memory.record_intervention_outcome", &params);
    assert!(is(&third, "/updated/0/is_critical"));
    let critical = watcher(&rig, "memory.get_critical_memories", r#"{"task_id":"t1"}"#);
    assert_eq!(text(&critical, "/memories/0/criticality_reason"), "intervention");
    let progress = rig.ask("memory.get_task_progress", r#"{"task_id":"t1"}"#);
    assert_eq!(number(&progress, "/performance_metrics/error_rate"), 0.1);
}

#[test]
fn what_a_caller_says_of_criticality_stands() {
    let rig = Rig::new();
    let stored = rig.store("The robot must not enter room 12.");
    let id = text(&stored, "/memory_id");
    let set = |more: &str| {
        watcher(&rig, "memory.update_criticality", &format!(r#"{{"memory_id":"{id}"{more}}}"#))
    };
    let taken = set(r#","is_critical":false"#);
    assert_eq!((is(&taken, "/is_critical"), number(&taken, "/version")), (false, 2.0));
    assert!(is(&set(r#","is_critical":false"#), "/unchanged"));
    let name = format!("MemoryRecord/cr.{id}").parse().unwrap();
    let anchored = |rig: &Rig| {
        let record = omird_engine::decode_stored(&rig.engine.get(&name).unwrap().unwrap()).unwrap();
        record.pointer("/decay/anchored").and_then(Value::as_bool)
    };
    assert_ne!(anchored(&rig), Some(true));
    rig.ask(
        "memory.update",
        &format!(r#"{{"memory_id":"{id}","content":"It must not enter room 13."}}"#),
    );
    let critical = || watcher(&rig, "memory.get_critical_memories", "{}");
    assert_eq!(number(&critical(), "/total"), 0.0, "a manual no stands against the rules");
    set(r#","is_critical":true,"reason":"the owner says so""#);
    assert_eq!(anchored(&rig), Some(true));
    assert_eq!(text(&critical(), "/memories/0/criticality_reason"), "the owner says so");
    let caller = somebody(&[ACE], &["a1"]);
    let params = format!(r#"{{"memory_id":"{id}","is_critical":true}}"#);
    assert_eq!(code(&rig.response(&caller, "memory.update_criticality", &params)), -32602);
}

#[test]
fn an_outcome_that_is_sent_again_is_learnt_from_once() {
    let rig = Rig::new();
    let stored = rig.ask(
        "memory.store",
        r#"{"content":"ask the operator","task_id":"t1","relevance_score":0.5}"#,
    );
    let id = text(&stored, "/memory_id");
    let outcome = |effectiveness: f64| {
        format!(
            r#"{{"task_id":"t1","context_id":"c1","intervention_type":"hint","effectiveness":{effectiveness},"success":true,"memory_ids":["{id}"],"intervention_id":"i1"}}"#
        )
    };
    let method = "memory.record_intervention_outcome";
    let first = watcher(&rig, method, &outcome(1.0));
    assert_eq!(text(&first, "/intervention_id"), "i1");
    let seq = rig.engine.newest();
    let again = watcher(&rig, method, &outcome(1.0));
    assert!(is(&again, "/unchanged") && first.get("unchanged").is_none());
    assert_eq!(again.get("updated"), first.get("updated"));
    assert_eq!(rig.engine.newest(), seq, "nothing was written");
    let other = rig.response(&somebody(&[ACE], &["a1"]), method, &outcome(0.5));
    assert_eq!(code(&other), -32002);
}
