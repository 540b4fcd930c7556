//! Observations of the same become one, with the evidence of all.

use super::*;

#[test]
fn observations_of_the_same_become_one_with_the_evidence_of_all() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (session, events, _listening) = watched(&disk, &clock);
    cups(&session);
    // Memories that are alike and must stay: pinned, to come, elsewhere, with other words, with a live part.
    put(&session, &cup("pinned", 4, 1.0, "cam:3", r#""decay":{"anchored":true},"#));
    put(&session, &cup("plan", 4, 1.0, "cam:4", r#""experienceType":"intention","#));
    put(&session, &cup("far", 4, 1.0, "cam:5", "").replace("[1.0,2.0", "[9.0,2.0"));
    put(&session, &cup("door", 4, 1.0, "cam:6", "").replace("red cup", "door of 7"));
    put(&session, &cup("whole", 0, 1.0, "cam:7", ""));
    put(
        &session,
        r#"{"resourceType":"MemoryRecord","id":"part","content":"its handle is broken",
        "createdAt":"2026-06-01T00:09:00Z","parentId":"whole"}"#,
    );
    assert_eq!(sweep(&session).merged, 0, "they are too new");
    clock.advance(2 * HOUR);
    let before = evidence(&session);
    assert_eq!(session.sweep(true).expect("only a look").merged, 2);
    assert_eq!(evidence(&session), before, "a dry run changes nothing");
    let report = sweep(&session);
    assert_eq!(report.merged, 2, "{report:?}");

    let merged = get(&session, "MemoryRecord/c1").expect("the oldest name is left");
    // 3 of cam:1, which said it twice, and 1 of cam:2.
    assert_eq!(number(&merged, &["confidence", "alpha"]), 5.0);
    assert_eq!(number(&merged, &["importance"]), 0.9);
    let created = merged.get("createdAt").and_then(Value::as_str);
    assert_eq!(created, Some("2026-06-01T00:01:00Z"));
    let left: Vec<String> = evidence(&session).into_keys().collect();
    assert_eq!(left, ["c1", "door", "far", "pinned", "whole"]);
    assert!(get(&session, "MemoryRecord/plan").is_some());
    // Sent back as it is given, it is no new version.
    assert!(unchanged(put(&session, &merged.to_string())));
    assert_eq!(counts(&sweep(&session)), [0; 4], "a second sweep finds nothing");

    let why = explain(&session, "MemoryRecord/c3");
    assert_eq!(why.get("reason").and_then(Value::as_str), Some("became part of MemoryRecord/c1"));

    // One that was merged comes again: what it said is known already.
    put(&session, &cup("c2", 2, 3.0, "cam:1", ""));
    clock.advance(2 * HOUR);
    assert_eq!(sweep(&session).merged, 1);
    let again = get(&session, "MemoryRecord/c1").expect("it has the same name");
    assert_eq!(number(&again, &["confidence", "alpha"]), 5.0);
    assert_eq!(number(&explain(&session, "MemoryRecord/c1"), &["observations"]), 4.0);
    drop(session);
    let events = events.lock().expect("no panic");
    let merges =
        events.iter().filter(|e| e.cause.as_ref().is_some_and(|c| c.name == "consolidation"));
    assert_eq!(merges.count(), 5, "two survivors and three that became part of them");
}

#[test]
fn what_was_moved_or_dated_again_still_merges_with_what_is_new() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    // Seen again, each from another place in the life of the robot.
    let noted = |id: &str, minute, note: &str| {
        let note = format!(r#""extension":[{note},{{"#);
        cup(id, minute, 1.0, id, "").replace(r#""extension":[{"#, &note)
    };
    let moved = r#"{"url":"urn:omird:ext:rebase","valueJson":{"by":"MemoryRecord/s",
        "before":{"frame":"map","position":[0,0,0]}}}"#;
    let doubtful = r#"{"url":"urn:omird:ext:clock","valueJson":{"state":"unknown","bootId":"gone",
        "boot":1,"monotonicMicros":5,"wallMicros":7}}"#;
    let unplaced = r#"{"url":"urn:omird:ext:unplaced","valueString":"no transform"}"#;
    let other = r#"{"url":"urn:example:colour","valueString":"red"}"#;
    put(&session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    put(&session, &noted("moved", 1, moved));
    put(&session, &noted("doubtful", 2, doubtful));
    put(&session, &noted("unplaced", 3, unplaced));
    put(&session, &noted("other", 4, other));
    put(&session, &cup("new", 5, 1.0, "new", ""));
    clock.advance(2 * HOUR);
    assert_eq!(sweep(&session).merged, 3);
    let left = evidence(&session);
    assert_eq!(left, BTreeMap::from([("moved".to_owned(), 4.0), ("other".to_owned(), 1.0)]));
    let merged = get(&session, "MemoryRecord/moved").expect("it is live").to_string();
    // The place is that of the newest, which no step has moved.
    assert!(!merged.contains("urn:omird:ext:rebase"), "{merged}");
}

#[test]
fn what_still_waits_for_the_clock_is_not_merged_before() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    put(&session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    let undated =
        |id: &str| cup(id, 0, 1.0, id, "").replace(r#""createdAt":"2026-06-01T00:00:00Z","#, "");
    put(&session, &undated("known"));
    drop(session);
    clock.reboot(0);
    let session = Session::open(&disk, &clock).expect("it opens again");
    put(&session, &undated("waits"));
    clock.advance(2 * HOUR);
    assert_eq!(sweep(&session).merged, 0);
    drop(session);
    // Nobody will ever know.
    clock.reboot(0);
    let session = Session::open(&disk, &clock).expect("it opens again");
    put(&session, &undated("later"));
    clock.advance(2 * HOUR);
    assert_eq!(sweep(&session).merged, 1);
    assert_eq!(evidence(&session)["known"], 2.0);
    clock.advance(HOUR);
    let found = get(&session, "MemoryRecord/known").expect("it is live");
    let first = found.get("createdAt").cloned();
    // The clock is set: only what came in since is redated.
    clock.set(omird_tests::session::DAWN + 30 * 86_400_000_000, true);
    omird_tests::process::eventually("what waits is redated", || {
        let corrected = session.status("r").pointer("/clock/corrected").and_then(Value::as_u64);
        corrected == Some(1)
    });
    let found = get(&session, "MemoryRecord/known").expect("it is live");
    assert_eq!(found.get("createdAt").cloned(), first);
    clock.advance(2 * HOUR);
    assert_eq!(sweep(&session).merged, 1);
    assert_eq!(evidence(&session)["known"], 3.0);
}

#[test]
fn merging_waits_for_a_day_whose_budget_is_not_used_up() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (tell, told) = std::sync::mpsc::channel();
    let events = Events::default();
    let _listening = events.listen(move |event| {
        if event.kind == EventKind::Tier {
            let _ = tell.send(event.target.to_string());
        }
    });
    let mut settings = settings();
    settings.flash.bytes_per_day = 1;
    settings.forgetting.sweep_interval = Some(Duration::from_millis(10));
    let session = Session::open_announcing(Arc::new(disk), &clock, settings, None, events);
    let session = session.expect("it opens");
    let wait_for = |target: &str| {
        while told.recv_timeout(Duration::from_secs(60)).expect("moves are announced") != target {}
    };
    cups(&session);
    clock.advance(2 * HOUR);
    wait_for("MemoryRecord/c1");
    put(&session, PLAIN);
    clock.advance(2 * HOUR);
    // So the pass that announced the first came to its end.
    wait_for("MemoryRecord/a");
    assert!(get(&session, "MemoryRecord/c3").is_some());
    assert!(sweep(&session).merged > 0, "whoever asks need not wait");
    assert!(get(&session, "MemoryRecord/c3").is_none());
}

#[test]
fn a_sweep_that_is_cut_anywhere_loses_no_evidence_and_counts_none_twice() {
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = Session::open(&disk, &clock).expect("it opens");
        cups(&session);
        drop(session);
        let session = Session::open(&disk, &clock).expect("it opens");
        clock.advance(2 * HOUR);
        disk.cut_at(disk.operations() + cut);
        let swept = session.sweep(false).is_ok();
        drop(session);
        let was_cut = disk.is_off();
        for seed in [ONLY_SYNCED, EVERYTHING, cut + 2] {
            let card = disk.survivors(seed);
            let session = Session::open(&card, &clock).expect("it opens");
            let found = evidence(&session);
            let before = [("c1", 2.0), ("c2", 3.0), ("c3", 1.0)].map(|(id, e)| (id.to_owned(), e));
            let after = BTreeMap::from([("c1".to_owned(), 4.0)]);
            assert!(
                found == after || (!swept && found == BTreeMap::from(before)),
                "cut at {cut}, survivors {seed}: {found:?}"
            );
            sweep(&session);
            assert_eq!(evidence(&session), after, "cut at {cut}, survivors {seed}");
        }
        if !was_cut {
            assert!(cut > 3, "every operation was cut: {cut}");
            return;
        }
    }
}
