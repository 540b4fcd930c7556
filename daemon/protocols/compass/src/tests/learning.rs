//! Criticality that is learnt: from tasks that end well, and from errors.

use super::*;

fn reason(rig: &Rig, id: &str) -> Option<String> {
    let params = r#"{"query":"dock gate door cup","k":100,"touch":false}"#;
    let found = rig.ask("memory.retrieve", params);
    let memories = list(&found, "/memories");
    let it = memories.iter().find(|one| text(one, "/memory/memory_id") == id);
    let it = it.unwrap_or_else(|| panic!("{id} is not found"));
    it.pointer("/memory/criticality_reason").and_then(Value::as_str).map(str::to_owned)
}

/// Uses the memory of the dock so often in a task, and ends that.
fn task(rig: &Rig, name: &str, uses: usize, status: &str) {
    rig.ask("memory.store", &format!(r#"{{"task_id":"{name}","content":"a walk to the shelf"}}"#));
    for _ in 0..uses {
        let found = rig.ask("memory.retrieve", r#"{"query":"dock","k":1}"#);
        assert_eq!(list(&found, "/memories").len(), 1);
    }
    let params = format!(r#"{{"task_id":"{name}","task_status":"{status}"}}"#);
    rig.ask("memory.complete_stage", &params);
}

#[test]
fn two_tasks_that_end_well_make_critical_whatever_both_used_often() {
    let rig = Rig::new();
    let params = r#"{"content":"the dock is behind the plant","memory_type":"semantic"}"#;
    let id = text(&rig.ask("memory.store", params), "/memory_id").to_owned();
    task(&rig, "t2", 9, "failed");
    task(&rig, "t3", 3, "completed");
    assert_eq!(reason(&rig, &id), None, "one task");
    task(&rig, "t4", 1, "completed");
    assert_eq!(reason(&rig, &id), None, "four uses");
    task(&rig, "t5", 1, "completed");
    assert_eq!(reason(&rig, &id).as_deref(), Some("frequent_success"));
}

#[test]
fn a_task_that_is_ended_while_it_waits_has_succeeded_too() {
    let rig = Rig::new();
    let params = r#"{"content":"the dock is behind the plant","memory_type":"semantic"}"#;
    let id = text(&rig.ask("memory.store", params), "/memory_id").to_owned();
    task(&rig, "t2", 4, "completed");
    let look = r#"{"task_id":"t3","content":"@stage:verification a walk to the shelf"}"#;
    rig.ask("memory.store", look);
    rig.ask("memory.retrieve", r#"{"query":"dock","k":1}"#);
    rig.ask("memory.complete_stage", r#"{"task_id":"t3"}"#);
    assert_eq!(reason(&rig, &id), None);
    rig.ask("memory.complete_stage", r#"{"task_id":"t3","task_status":"completed"}"#);
    assert_eq!(reason(&rig, &id).as_deref(), Some("frequent_success"));
}

#[test]
fn uses_outlive_a_restart_once_the_task_was_written() {
    let mut rig = Rig::new();
    let params = r#"{"content":"the dock is behind the plant","memory_type":"semantic"}"#;
    let id = text(&rig.ask("memory.store", params), "/memory_id").to_owned();
    rig.ask("memory.store", r#"{"task_id":"t2","content":"a walk to the shelf"}"#);
    for _ in 0..5 {
        rig.ask("memory.retrieve", r#"{"query":"dock","k":1}"#);
    }
    rig.ask("memory.complete_stage", r#"{"task_id":"t2"}"#);
    rig.restart();
    // Ids of tests are counted, from one on at each start.
    (0..1000).for_each(|_| drop(rig.engine.new_id()));
    rig.ask("memory.complete_stage", r#"{"task_id":"t2","task_status":"completed"}"#);
    task(&rig, "t3", 1, "completed");
    assert_eq!(reason(&rig, &id).as_deref(), Some("frequent_success"));
}

#[test]
fn a_caller_who_has_decided_is_not_overruled() {
    let rig = Rig::new();
    let params = r#"{"content":"the dock is behind the plant","memory_type":"semantic","is_critical":false}"#;
    let id = text(&rig.ask("memory.store", params), "/memory_id").to_owned();
    task(&rig, "t2", 5, "completed");
    task(&rig, "t3", 5, "completed");
    assert_eq!(reason(&rig, &id), None);
}

#[test]
fn memories_that_would_have_prevented_an_error_are_critical() {
    let rig = Rig::new();
    let wrong = rig.store("The gate 3 is open.");
    let right = rig.store("The gate 3 is not open.");
    let other = rig.store("The gate 4 is not open.");
    let error = format!(
        r#"{{"task_id":"t1","error_type":"incorrect_action","error_severity":0.9,
            "error_description":"drove into the gate","memory_ids":["{}"]}}"#,
        text(&wrong, "/memory_id")
    );
    rig.ask("memory.record_error", &error);
    let of = |stored: &Value| {
        let id = text(stored, "/memory_id").to_owned();
        let operator = somebody(&[OPERATOR], &["a1"]);
        let found = rig.response(&operator, "memory.get_critical_memories", r#"{"task_id":"t1"}"#);
        let memories = list(&found, "/result/memories");
        let it = memories.iter().find(|one| text(one, "/memory_id") == id);
        it.map(|one| text(one, "/criticality_reason").to_owned())
    };
    assert_eq!(of(&right).as_deref(), Some("error_prevention"));
    assert_eq!((of(&wrong), of(&other)), (None, None));
}

#[test]
fn the_correction_that_a_pattern_names_is_critical() {
    let rig = Rig::new();
    rig.store("first a plan");
    let error = r#"{"task_id":"t1","error_type":"missing_info","error_description":"no map"}"#;
    let errors: Vec<String> = (0..3)
        .map(|_| text(&rig.ask("memory.record_error", error), "/error_id").to_owned())
        .collect();
    let corrects = format!(
        r#"{{"task_id":"t1","content":"ask at the door for the map","corrects_error_id":"{}","is_critical":null,"success":true}}"#,
        errors[1]
    );
    let stored = rig.ask("memory.store", &corrects);
    assert_eq!(text(&stored, "/criticality_reason"), "error_recovery");
    let found = rig.ask("memory.detect_error_patterns", r#"{"task_id":"t1"}"#);
    assert_eq!(text(&found, "/patterns/0/prevention_strategy"), "ask at the door for the map");
    // An attempt that failed prevents nothing.
    let failed = format!(
        r#"{{"task_id":"t1","content":"guess the way to the cup","corrects_error_id":"{}","success":false}}"#,
        errors[2]
    );
    assert!(!is(&rig.ask("memory.store", &failed), "/is_critical"));
    let found = rig.ask("memory.detect_error_patterns", r#"{"task_id":"t1"}"#);
    assert_eq!(text(&found, "/patterns/0/prevention_strategy"), "ask at the door for the map");
}

#[test]
fn errors_that_make_one_memory_critical_at_once_are_all_recorded() {
    let rig = Rig::new();
    for round in 0..10 {
        let wrong = rig.store(&format!("The gate {round} is open."));
        rig.store(&format!("The gate {round} is not open."));
        let error = format!(
            r#"{{"task_id":"t1","error_type":"incorrect_action","error_severity":0.9,
                "error_description":"drove into the gate","memory_ids":["{}"]}}"#,
            text(&wrong, "/memory_id")
        );
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let record = || {
                start.wait();
                text(&rig.ask("memory.record_error", &error), "/error_id").to_owned()
            };
            let both = [scope.spawn(record), scope.spawn(record)];
            let ids = both.map(|one| one.join().unwrap());
            assert_ne!(ids[0], ids[1]);
        });
    }
}
