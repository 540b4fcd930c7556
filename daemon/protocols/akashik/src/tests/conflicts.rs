//! DETECT, MERGE, REPLAY and COMPACT.

use std::time::{Duration, Instant};

use super::*;

/// Two agents that contradict each other, and the conflict between their units.
fn quarrel(rig: &Rig) -> (String, String, String) {
    rig.join(&["a", "b", "c"]);
    let one = rig.record("a", "The gate of the yard is wide.", "");
    let against = format!(r#","relations":[{{"type":"contradicts","target_id":"{one}"}}]"#);
    let answer =
        rig.ask("b", "RECORD", &unit("Nothing passes there.", &against).replace("0.8", "0.6"));
    let two = text(&answer, "/memory_unit_id").to_owned();
    (one, two, text(&answer, "/conflicts_detected/0").to_owned())
}

fn merge(id: &str, strategy: &str, more: &str) -> String {
    format!(
        r#"{{"conflict_id":"{id}","strategy":"{strategy}","resolution":{{"rationale":"because"{more}}}}}"#
    )
}

#[test]
fn a_conflict_is_one_and_contests_both() {
    let rig = Rig::new();
    let (one, two, conflict) = quarrel(&rig);
    let seen = rig.attune("c", "");
    assert_eq!(list(&seen, "/conflicts").len(), 1);
    for unit in list(&seen, "/record") {
        assert_eq!(text(unit, "/memory_unit/status"), "contested");
    }
    let checked = rig.ask("c", "DETECT", &format!(r#"{{"mode":"check","target_id":"{one}"}}"#));
    assert_eq!(number(&checked, "/scan_coverage/new_conflicts_found"), 0);
    let listed = rig.ask(
        "c",
        "DETECT",
        r#"{"mode":"list","filter":{"status":["detected"],"involving_agents":["a"]}}"#,
    );
    assert_eq!(text(&listed, "/conflicts/0/id"), conflict);
    let none = rig.ask("c", "DETECT", r#"{"mode":"list","filter":{"status":["resolved"]}}"#);
    assert!(list(&none, "/conflicts").is_empty());
    assert_eq!(
        rig.fault("c", "DETECT", r#"{"mode":"check","target_id":"mem-0"}"#),
        "UNIT_NOT_FOUND"
    );
    assert_eq!(
        rig.fault(
            "c",
            "RECORD",
            &unit("x", r#","relations":[{"type":"contradicts","target_id":"mem-0"}]"#)
        ),
        "UNIT_NOT_FOUND"
    );
    assert_eq!(rig.fault("c", "MERGE", &merge("conflict-0", "vote", "")), "CONFLICT_NOT_FOUND");
    let _ = two;
}

#[test]
fn opposite_claims_are_found_without_being_told() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    rig.record("a", "The door of room 12 is open.", "");
    let answer = rig.ask("b", "RECORD", &unit("The door of room 12 is closed.", ""));
    assert_eq!(list(&answer, "/conflicts_detected").len(), 1, "{answer}");
    let shown = rig.attune("a", "");
    assert_eq!(text(&shown, "/conflicts/0/detected_by"), "semantic");
    // Much less sure, and later.
    rig.record("a", "The battery of the lift is full.", "");
    rig.ask("b", "RECORD", &unit("The battery of the lift is not full.", "").replace("0.8", "0.3"));
    let all = rig.ask("a", "DETECT", r#"{"mode":"list"}"#);
    assert_eq!(text(&all, "/conflicts/1/detected_by"), "temporal");
    let assumes = unit("We deliver at noon by the yard.", "").replace(
        r#""reasoning":"seen""#,
        r#""reasoning":"plan","assumptions":["The gate of the yard is open."]"#,
    );
    rig.ask("a", "RECORD", &assumes);
    rig.ask("b", "RECORD", &unit("The gate of the yard is closed.", ""));
    let all = rig.ask("a", "DETECT", r#"{"mode":"list"}"#);
    assert_eq!(text(&all, "/conflicts/2/detected_by"), "logical", "{all}");
    let scanned = rig.ask("a", "DETECT", r#"{"mode":"scan"}"#);
    assert_eq!(number(&scanned, "/scan_coverage/new_conflicts_found"), 0, "each pair once");
    assert_eq!(list(&scanned, "/conflicts").len(), 3);
}

#[test]
fn a_scan_takes_as_many_conflicts_as_fit_and_leaves_the_rest_to_the_field() {
    let rig = Rig::new();
    rig.join(&["a"]);
    // No two say the same of all rooms.
    for n in 0..120 {
        let says = |room: usize| {
            let state = if n >> room & 1 == 0 { "open" } else { "closed" };
            format!("The door of room {room} is {state}. ")
        };
        rig.record("a", &(0..7).map(says).collect::<String>(), "");
    }
    let scanned = rig.ask("a", "DETECT", r#"{"mode":"scan"}"#);
    let found = number(&scanned, "/scan_coverage/new_conflicts_found") as usize;
    assert!((500..516).contains(&found), "{found}");
    assert!(number(&scanned, "/scan_coverage/units_scanned") < 120);
    assert_eq!(text(&scanned, "/conflict_detection"), "deferred");
    // The answer lists the newest, and says how many it leaves out.
    assert!(json::to_string(&scanned).len() < 260 << 10);
    let listed = list(&scanned, "/conflicts").len();
    assert!(listed >= found);
    let left_out = number(&scanned, "/scan_coverage/conflicts_left_out") as usize;
    assert!(left_out > 0 && listed + left_out > 2 * found);
}

#[test]
fn strategies_that_compute_a_winner() {
    for (strategy, more, wins) in [
        ("last_write_wins", "", 1),
        ("confidence_weighted", "", 0),
        ("confidence_weighted", r#","winner_id":"ONE""#, 0),
        ("authority", r#","winner_id":"TWO""#, 1),
    ] {
        let rig = Rig::new();
        let (one, two, conflict) = quarrel(&rig);
        let more = more.replace("ONE", &one).replace("TWO", &two);
        let payload = merge(&conflict, strategy, &more);
        assert_eq!(rig.fault_as("c", 5, "MERGE", &payload), "INSUFFICIENT_AUTHORITY");
        let done = rig.ask_as("c", 6, "MERGE", &payload);
        let both = [one, two];
        assert_eq!(text(&done, "/status"), "resolved");
        assert_eq!(text(&done, "/conflict/resolution/winner_id"), both[wins]);
        assert_eq!(text(&done, "/conflict/resolution/resolved_by"), "c");
        assert_eq!(text(&done, "/side_effects/superseded_units/0"), both[1 - wins]);
        assert_eq!(list(&done, "/side_effects/notified_agents").len(), 2);
        let seen = rig.attune("c", "");
        assert_eq!(ids(&seen), [both[wins].as_str()], "the loser is superseded");
        assert_eq!(text(&seen, "/record/0/memory_unit/status"), "active");
        assert!(list(&seen, "/conflicts").is_empty());
        assert_eq!(rig.fault_as("c", 10, "MERGE", &payload), "INVALID_TRANSITION");
    }
}

#[test]
fn a_strategy_that_does_not_decide_leaves_the_conflict() {
    let rig = Rig::new();
    let (one, _, conflict) = quarrel(&rig);
    let fault = |payload: &str| rig.fault_as("c", 6, "MERGE", payload);
    assert_eq!(fault(&merge(&conflict, "evidence_count", "")), "MERGE_FAILED", "a tie");
    assert_eq!(
        fault(&merge(&conflict, "last_write_wins", &format!(r#","winner_id":"{one}""#))),
        "MERGE_FAILED"
    );
    assert_eq!(fault(&merge(&conflict, "authority", r#","winner_id":"mem-0""#)), "INVALID_PAYLOAD");
    assert_eq!(fault(&merge(&conflict, "authority", "")), "INVALID_PAYLOAD");
    assert_eq!(fault(&merge(&conflict, "synthesis", "")), "INVALID_PAYLOAD");
    assert_eq!(fault(&merge(&conflict, "dice", "")), "INVALID_PAYLOAD");
    assert_eq!(
        fault(&format!(r#"{{"conflict_id":"{conflict}","strategy":"vote","resolution":{{}}}}"#)),
        "INVALID_PAYLOAD"
    );
    let seen = rig.attune("c", "");
    assert_eq!(text(&seen, "/conflicts/0/status"), "detected");
    rig.record(
        "c",
        "I saw a lorry pass.",
        &format!(r#","relations":[{{"type":"supports","target_id":"{one}"}}]"#),
    );
    let done = rig.ask_as("c", 6, "MERGE", &merge(&conflict, "evidence_count", ""));
    assert_eq!(text(&done, "/conflict/resolution/winner_id"), one);
}

#[test]
fn what_is_gone_does_not_win() {
    let retract = |rig: &Rig, author: &str, unit: &str| {
        rig.ask(author, "COORDINATE", &format!(r#"{{"action":"retract","unit_id":"{unit}"}}"#));
    };
    for (strategy, more) in [
        ("confidence_weighted", ""),
        ("evidence_count", ""),
        ("authority", r#","winner_id":"TWO""#),
        ("vote", r#","winner_id":"TWO""#),
    ] {
        let rig = Rig::new();
        let (one, two, conflict) = quarrel(&rig);
        retract(&rig, "a", &one);
        let gone = merge(&conflict, strategy, &format!(r#","winner_id":"{one}""#));
        assert_eq!(rig.fault_as("c", 6, "MERGE", &gone), "MERGE_FAILED", "{strategy}");
        let payload = merge(&conflict, strategy, &more.replace("TWO", &two));
        let done = rig.ask_as("c", 6, "MERGE", &payload);
        assert_eq!(text(&done, "/conflict/resolution/winner_id"), two, "{strategy}");
        assert!(list(&done, "/side_effects/superseded_units").is_empty(), "{strategy}");
        let seen = rig.attune("c", "");
        assert_eq!(ids(&seen), [two.as_str()]);
        assert_eq!(text(&seen, "/record/0/memory_unit/status"), "active");
    }
    let rig = Rig::new();
    let (one, two, conflict) = quarrel(&rig);
    let purge = format!(r#"{{"strategy":"purge","filter":{{"unit_ids":["{two}"]}}}}"#);
    rig.ask_as("c", 10, "COMPACT", &purge);
    rig.ask_as("c", 6, "MERGE", &merge(&conflict, "human_escalation", ""));
    let done = rig.ask_as("c", 10, "MERGE", &merge(&conflict, "last_write_wins", ""));
    assert_eq!(text(&done, "/conflict/resolution/winner_id"), one);
    // Neither is left: no unit wins.
    let rig = Rig::new();
    let (one, two, conflict) = quarrel(&rig);
    retract(&rig, "a", &one);
    retract(&rig, "b", &two);
    let done = rig.ask_as("c", 6, "MERGE", &merge(&conflict, "last_write_wins", ""));
    assert_eq!(text(&done, "/status"), "resolved");
    assert_eq!(done.pointer("/conflict/resolution/winner_id").and_then(Value::as_str), None);
}

#[test]
fn a_synthesis_replaces_both() {
    let rig = Rig::new();
    let (one, two, conflict) = quarrel(&rig);
    let done = rig.ask_as(
        "c",
        6,
        "MERGE",
        &merge(&conflict, "synthesis", r#","synthesis":"It is wide, and barred at night.""#),
    );
    let new = text(&done, "/side_effects/new_unit_id").to_owned();
    assert_eq!(list(&done, "/side_effects/superseded_units").len(), 2);
    let seen = rig.attune("a", "");
    assert_eq!(ids(&seen), [new.as_str()]);
    let relations = list(&seen, "/record/0/memory_unit/relations");
    let targets: Vec<(&str, &str)> =
        relations.iter().map(|one| (text(one, "/type"), text(one, "/target_id"))).collect();
    assert_eq!(targets, [("elaborates", one.as_str()), ("elaborates", two.as_str())]);
}

#[test]
fn a_person_decides_what_was_escalated() {
    let rig = Rig::new();
    let (one, _, conflict) = quarrel(&rig);
    let done = rig.ask_as("c", 6, "MERGE", &merge(&conflict, "human_escalation", ""));
    assert_eq!(
        (text(&done, "/status"), text(&done, "/conflict/status")),
        ("escalated", "escalated")
    );
    let decide = merge(&conflict, "authority", &format!(r#","winner_id":"{one}""#));
    assert_eq!(rig.fault_as("c", 9, "MERGE", &decide), "INSUFFICIENT_AUTHORITY");
    assert_eq!(
        rig.fault_as("c", 10, "MERGE", &merge(&conflict, "human_escalation", "")),
        "INVALID_TRANSITION"
    );
    let done = rig.ask_as("c", 10, "MERGE", &decide);
    assert_eq!(text(&done, "/status"), "resolved");
}

#[test]
fn a_vote_needs_a_majority_of_those_it_began_with() {
    let rig = Rig::new();
    let (one, two, conflict) = quarrel(&rig);
    let vote = |unit: &str| merge(&conflict, "vote", &format!(r#","winner_id":"{unit}""#));
    assert_eq!(
        rig.fault_as("a", 4, "MERGE", &vote(&one)),
        "INSUFFICIENT_AUTHORITY",
        "to begin one"
    );
    let first = rig.ask_as("c", 6, "MERGE", &vote(&one));
    assert_eq!(
        (text(&first, "/status"), text(&first, "/conflict/status")),
        ("pending_vote", "resolving")
    );
    rig.join(&["late"]);
    assert_eq!(rig.fault_as("late", 6, "MERGE", &vote(&two)), "INVALID_PAYLOAD");
    let second = rig.ask_as("b", 4, "MERGE", &vote(&two));
    assert_eq!(text(&second, "/status"), "pending_vote");
    let third = rig.ask_as("a", 4, "MERGE", &vote(&one));
    assert_eq!(
        (text(&third, "/status"), text(&third, "/conflict/resolution/winner_id")),
        ("resolved", one.as_str())
    );
}

#[test]
fn the_log_tells_what_happened_at_three_depths() {
    let mut rig = Rig::new();
    let (one, two, conflict) = quarrel(&rig);
    rig.ask_as("c", 6, "MERGE", &merge(&conflict, "last_write_wins", ""));
    let replay = |rig: &Rig, of: &str, id: &str, depth: &str| {
        rig.ask(
            "c",
            "REPLAY",
            &format!(r#"{{"target_type":"{of}","target_id":"{id}","depth":"{depth}"}}"#),
        )
    };
    let summary = replay(&rig, "memory_unit", &one, "summary");
    assert!(list(&summary, "/timeline").is_empty() && !text(&summary, "/summary").is_empty());
    assert!(!list(&summary, "/agents_involved").is_empty());
    let detailed = replay(&rig, "memory_unit", &one, "detailed");
    let types: Vec<&str> =
        list(&detailed, "/timeline").iter().map(|one| text(one, "/event_type")).collect();
    assert_eq!(
        types,
        [
            "memory.recorded",
            "conflict.detected",
            "memory.contested",
            "memory.superseded",
            "conflict.resolved"
        ]
    );
    let full = replay(&rig, "memory_unit", &one, "full_trace");
    assert!(
        list(&full, "/timeline")
            .iter()
            .any(|event| event.get("memory_unit_id").and_then(Value::as_str) == Some(&two))
    );
    let epochs: Vec<u64> =
        list(&full, "/timeline").iter().map(|one| number(one, "/epoch")).collect();
    assert!(epochs.is_sorted());
    rig.restart();
    assert_eq!(replay(&rig, "memory_unit", &one, "full_trace"), full, "from the log alone");
    replay(&rig, "conflict", &conflict, "detailed");
    assert_eq!(
        rig.fault(
            "c",
            "REPLAY",
            r#"{"target_type":"memory_unit","target_id":"x","depth":"summary"}"#
        ),
        "UNIT_NOT_FOUND"
    );
    assert_eq!(
        rig.fault(
            "c",
            "REPLAY",
            &format!(r#"{{"target_type":"decision","target_id":"{two}","depth":"summary"}}"#)
        ),
        "UNIT_NOT_FOUND"
    );
}

#[test]
fn a_trace_that_is_too_large_is_refused_and_its_summary_is_not() {
    let rig = Rig::new();
    rig.join(&["a"]);
    let mut last = rig.record("a", "step 0", "");
    for n in 1..520 {
        let more = format!(r#","relations":[{{"type":"depends_on","target_id":"{last}"}}]"#);
        last = rig.record("a", &format!("step number {n}"), &more);
    }
    let replay = |depth: &str| {
        format!(r#"{{"target_type":"memory_unit","target_id":"{last}","depth":"{depth}"}}"#)
    };
    assert_eq!(rig.fault("a", "REPLAY", &replay("full_trace")), "REPLAY_TOO_LARGE");
    rig.ask("a", "REPLAY", &replay("summary"));
}

#[test]
fn units_are_archived_summed_up_and_purged() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let old = rig.record("a", "The secret word is xylophone.", "");
    let other = rig.record("a", "Rooms are painted in spring.", "");
    let only = |id: &str| format!(r#","filter":{{"unit_ids":["{id}"]}}"#);
    let done =
        rig.ask_as("b", 6, "COMPACT", &format!(r#"{{"strategy":"archive"{}}}"#, only(&other)));
    assert_eq!(number(&done, "/units_affected"), 1);
    assert_eq!(ids(&rig.attune("b", "")), [old.as_str()]);
    assert_eq!(ids(&rig.attune("b", r#","include_archived":true"#)).len(), 2);
    let done = rig.ask_as(
        "b",
        10,
        "COMPACT",
        &format!(r#"{{"strategy":"purge","reason":"asked for"{}}}"#, only(&old)),
    );
    assert_eq!(
        (number(&done, "/units_affected"), number(&done, "/storage_reclaimed_bytes")),
        (1, 29)
    );
    let check = |rig: &Rig| {
        assert!(ids(&rig.attune("b", "")).is_empty());
        let tombstone = rig.ask(
            "b",
            "REPLAY",
            &format!(r#"{{"target_type":"memory_unit","target_id":"{old}","depth":"detailed"}}"#),
        );
        let last = list(&tombstone, "/timeline").last().unwrap();
        assert_eq!(text(last, "/event_type"), "memory.purged");
        assert!(text(last, "/description").contains("asked for"));
        let mut found = false;
        rig.engine.each(None, |bytes| found |= bytes.windows(9).any(|part| part == b"xylophone"));
        assert!(!found, "nothing that lives holds the content");
    };
    check(&rig);
    rig.restart();
    check(&rig);
    for n in 0..12 {
        rig.record("a", &format!("Shelf {n} holds books about gardens."), "");
    }
    let done = rig.ask_as("b", 6, "COMPACT", r#"{"strategy":"summarize"}"#);
    assert_eq!(
        (number(&done, "/units_affected"), number(&done, "/synthesis_units_created")),
        (12, 2)
    );
    let seen = rig.attune("a", "");
    assert_eq!(ids(&seen).len(), 2);
    assert_eq!(text(&seen, "/record/0/memory_unit/type"), "synthesis");
}

#[test]
fn a_scan_without_the_time_answers_with_what_it_found_and_leaves_the_rest() {
    let mut rig = Rig::new();
    rig.akashik.patience = Duration::ZERO;
    rig.join(&["a", "b"]);
    for n in 0..3 {
        rig.record("a", &format!("The shelf {n} holds boxes of screws."), "");
    }
    let scanned = rig.ask("b", "DETECT", r#"{"mode":"scan"}"#);
    assert_eq!(number(&scanned, "/scan_coverage/units_scanned"), 1);
    assert_eq!(text(&scanned, "/conflict_detection"), "deferred");
    // The field looks at the others by itself.
    let until = Instant::now() + Duration::from_secs(60);
    let field = rig.akashik.field(None);
    while field.look(|model, _, _| model.deferred.len()).unwrap() > 0 {
        assert!(Instant::now() < until, "units were not looked at");
        std::thread::sleep(Duration::from_millis(5));
    }
    let one = rig.record("a", "The gate of the yard is open.", "");
    let checked = format!(r#"{{"mode":"check","target_id":"{one}"}}"#);
    let checked = rig.ask("b", "DETECT", &checked);
    assert!(checked.get("conflict_detection").is_none(), "one unit is looked at always");
}
