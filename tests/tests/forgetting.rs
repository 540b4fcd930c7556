//! Time moves memories, merges what is the same and lets go of what is over; it never loses what was
//! learned, never counts it twice, and asks for no write to know where a memory is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use omir_core::value::Value;
use omir_core::{cbor, decode::Limits};
use omird::engine::command::{Change, Effect, Event, EventKind};
use omird::engine::compaction::Scope;
use omird::engine::request::Encoding;
use omird::engine::settings::Settings;
use omird::engine::sweep::SweepReport;
use omird::error::Code;
use omird::recall::Query;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

fn put(session: &Session, json: &str) -> Effect {
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("the disk is good").effect
}

/// What `GET` gives.
fn get(session: &Session, target: &str) -> Option<Value> {
    let bytes = session.get(&target.parse().expect("a reference")).expect("it is readable")?;
    Some(cbor::from_slice(&bytes, &Limits::default()).expect("it is CBOR"))
}

fn tier(session: &Session, target: &str) -> String {
    let record = get(session, target).expect("it is live");
    record.get("tier").and_then(Value::as_str).unwrap_or("working").to_owned()
}

fn in_tier(session: &Session, tier: &str) -> u64 {
    let tiers = vec![tier.parse().expect("a tier")];
    let recalled = session.recall(&Query { tiers, touch: false, ..Query::default() });
    let total = recalled.expect("it is answered").total;
    let status = session.status("r");
    let counted = status.get("counts").and_then(|counts| counts.get("tiers")?.get(tier)?.as_u64());
    assert_eq!(counted, Some(total), "status and recall agree on {tier}");
    total
}

fn explain(session: &Session, target: &str) -> Value {
    session.explain(&target.parse().expect("a reference")).expect("it is known")
}

fn unchanged(effect: Effect) -> bool {
    let Effect::Remembered(stored) = effect else { panic!("{effect:?}") };
    stored.iter().all(|stored| stored.unchanged)
}

fn sweep(session: &Session) -> SweepReport {
    session.sweep(false).expect("the disk is good")
}

fn counts(report: &SweepReport) -> [u64; 4] {
    [report.moved, report.merged, report.expired, report.evicted]
}

fn number(value: &Value, names: &[&str]) -> f64 {
    let found = names.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(Value::as_f64).unwrap_or_else(|| panic!("no {names:?} in {value}"))
}

const PLAIN: &str = r#"{"resourceType":"MemoryRecord","id":"a","content":"a bench by the lake",
    "createdAt":"2026-06-01T00:00:00Z","importance":0.7}"#;

#[test]
fn a_tier_follows_time_wherever_it_is_asked_for() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    // No log is old after a day.
    let settings = Settings { seal_after: 100 * DAY, purge_after: 100 * DAY, ..settings() };
    let session = Session::open_with(Arc::new(disk.clone()), &clock, settings, None);
    let session = session.expect("it opens");
    put(&session, PLAIN);
    // Whatever dates it states, what was stored a moment ago is given back as it came.
    put(
        &session,
        r#"{"resourceType":"MemoryRecord","id":"old","content":"a war","tier":"session",
        "createdAt":"2001-01-01T00:00:00Z"}"#,
    );
    assert!(get(&session, "MemoryRecord/a").expect("it is live").get("tier").is_none());
    assert_eq!(tier(&session, "MemoryRecord/old"), "session");
    assert_eq!([in_tier(&session, "working"), in_tier(&session, "session")], [1, 1]);

    clock.advance(2 * HOUR);
    let after_two_hours = get(&session, "MemoryRecord/a").expect("it is live");
    assert_eq!(tier(&session, "MemoryRecord/a"), "session");
    assert_eq!(tier(&session, "MemoryRecord/old"), "archive");
    assert_eq!([in_tier(&session, "session"), in_tier(&session, "archive")], [1, 1]);

    clock.advance(DAY);
    let operations = disk.operations();
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    // The copy of yesterday, and what was first sent, are no news.
    assert!(unchanged(put(&session, &after_two_hours.to_string())));
    assert!(unchanged(put(&session, PLAIN)));
    assert_eq!(disk.operations(), operations, "nothing was written");
    drop(session);

    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    assert_eq!(in_tier(&session, "archive"), 1);
    // An update that states no tier leaves it where it is.
    put(&session, &PLAIN.replace("by the lake", "by the sea"));
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    assert_eq!(in_tier(&session, "longterm"), 1);
}

/// Opens a store whose events are kept.
fn watched(disk: &CutDisk, clock: &Arc<TestClock>) -> (Session, Arc<Mutex<Vec<Event>>>) {
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let log = events.clone();
    let listener = Box::new(move |event: &Event| {
        log.lock().expect("no panic").push(event.clone());
    });
    let disk = Arc::new(disk.clone());
    let session = Session::open_listening(disk, clock, settings(), None, listener);
    (session.expect("it opens"), events)
}

/// The moves announced until the engine stopped.
fn moves(session: Session, events: &Mutex<Vec<Event>>) -> Vec<(String, String)> {
    drop(session);
    let events = events.lock().expect("no panic");
    let moved = events.iter().filter(|event| event.kind == EventKind::Tier);
    moved
        .map(|event| {
            let (from, to) = event.cause.as_ref().and_then(|cause| cause.tiers).expect("a move");
            let resource = cbor::from_slice(&event.resource, &Limits::default()).expect("CBOR");
            assert_eq!(resource.get("tier").and_then(Value::as_str), Some(to.as_str()));
            (event.target.to_string(), format!("{from} {to}"))
        })
        .collect()
}

#[test]
fn each_move_is_announced_once() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (session, events) = watched(&disk, &clock);
    put(&session, PLAIN);
    clock.advance(2 * HOUR);
    let dry = session.sweep(true).expect("it is only a look");
    assert_eq!(counts(&dry), [1, 0, 0, 0]);
    assert_eq!(counts(&sweep(&session)), [1, 0, 0, 0]);
    assert_eq!(counts(&sweep(&session)), [0, 0, 0, 0]);
    let once = [("MemoryRecord/a".to_owned(), "working session".to_owned())];
    assert_eq!(moves(session, &events), once);

    // A restart does not announce it again, and what happened while it was off is not lost.
    let (session, events) = watched(&disk, &clock);
    assert_eq!(counts(&sweep(&session)), [0, 0, 0, 0]);
    assert!(moves(session, &events).is_empty());
    clock.advance(DAY);
    let (session, events) = watched(&disk, &clock);
    assert_eq!(counts(&sweep(&session)), [1, 0, 0, 0]);
    let once = [("MemoryRecord/a".to_owned(), "session longterm".to_owned())];
    assert_eq!(moves(session, &events), once);
}

#[test]
fn the_store_is_swept_by_itself_and_stops_when_told() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (events, moves) = std::sync::mpsc::channel();
    let listener = Box::new(move |event: &Event| {
        if event.kind == EventKind::Tier {
            // Nobody listens any more when the engine stops.
            let _ = events.send(event.target.to_string());
        }
    });
    let mut settings = settings();
    settings.forgetting.sweep_interval = Some(Duration::from_millis(1));
    let disk = Arc::new(disk);
    let session = Session::open_listening(disk, &clock, settings, None, listener);
    let session = session.expect("it opens");
    for n in 0..300 {
        put(&session, &PLAIN.replace(r#""id":"a""#, &format!(r#""id":"a{n}""#)));
    }
    clock.advance(2 * HOUR);
    let moved: BTreeSet<String> =
        (0..300).map(|_| moves.recv_timeout(Duration::from_secs(60)).expect("a move")).collect();
    assert_eq!(moved.len(), 300, "each is announced once");
    drop(session);
}

#[test]
fn what_is_remembered_again_is_announced_again() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (session, events) = watched(&disk, &clock);
    put(&session, &PLAIN.replace(r#""importance":0.7"#, r#""importance":0.7,"tier":"archive""#));
    clock.advance(2 * HOUR);
    assert_eq!(counts(&sweep(&session)), [0; 4], "it was stored there, and nobody asked for it");
    let query = Query { text: Some("bench".into()), ..Query::default() };
    assert_eq!(session.recall(&query).expect("it is answered").total, 1);
    // Recalls are counted between two changes.
    put(&session, r#"{"resourceType":"Entity","id":"x","name":"X"}"#);
    put(&session, r#"{"resourceType":"Entity","id":"y","name":"Y"}"#);
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    assert_eq!(counts(&sweep(&session)), [1, 0, 0, 0]);
    assert_eq!(counts(&sweep(&session)), [0; 4]);
    let once = [("MemoryRecord/a".to_owned(), "archive longterm".to_owned())];
    assert_eq!(moves(session, &events), once);
}

/// An observation of the cup: who saw it, how sure it is, and what else it states.
fn cup(id: &str, minute: u32, evidence: f64, source: &str, more: &str) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"the red cup stands on the table",
        "createdAt":"2026-06-01T00:{minute:02}:00Z","entityRefs":[{{"ref":"Entity/cup"}}],
        "confidence":{{"alpha":{},"beta":1}},{more}
        "provenance":{{"externalId":"{source}"}},"extension":[{{
        "url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{{"frame":"map","position":[1.0,2.0,0.0]}}}}]}}"#,
        1.0 + evidence,
    )
}

fn cups(session: &Session) {
    put(session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    put(session, &cup("c1", 1, 2.0, "cam:1", r#""importance":0.9,"#));
    put(session, &cup("c2", 2, 3.0, "cam:1", ""));
    put(session, &cup("c3", 3, 1.0, "cam:2", ""));
}

/// α beyond the prior, over all live cups.
fn evidence(session: &Session) -> BTreeMap<String, f64> {
    let query = Query { limit: None, touch: false, ..Query::default() };
    let recalled = session.recall(&query).expect("it is answered");
    let records = recalled
        .hits
        .iter()
        .map(|hit| cbor::from_slice(&hit.resource, &Limits::default()).expect("it is CBOR"));
    records
        .filter(|record| record.get("confidence").is_some())
        .map(|record| {
            let id = record.get("id").and_then(Value::as_str).expect("an id").to_owned();
            (id, number(&record, &["confidence", "alpha"]) - 1.0)
        })
        .collect()
}

#[test]
fn observations_of_the_same_become_one_with_the_evidence_of_all() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (session, events) = watched(&disk, &clock);
    cups(&session);
    // What is alike and must stay: pinned, to come, elsewhere, other words, a part of which is live.
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
fn what_was_moved_or_dated_anew_still_merges_with_what_is_new() {
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
    // The clock is set: only what came in since is dated anew.
    clock.set(omird_tests::session::DAWN + 30 * 86_400_000_000, true);
    omird_tests::process::eventually("what waits is dated anew", || {
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
    let listener = Box::new(move |event: &Event| {
        if event.kind == EventKind::Tier {
            let _ = tell.send(event.target.to_string());
        }
    });
    let mut settings = settings();
    settings.flash.bytes_per_day = 1;
    settings.forgetting.sweep_interval = Some(Duration::from_millis(10));
    let session = Session::open_listening(Arc::new(disk), &clock, settings, None, listener);
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

#[test]
fn what_is_over_for_long_goes_and_what_is_pinned_stays() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let over = |id: &str, more: &str| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"the shop is open",{more}
            "createdAt":"2026-06-01T00:00:00Z","validUntil":"2026-06-02T00:00:00Z"}}"#
        )
    };
    put(&session, &over("gone", ""));
    put(&session, &over("pinned", r#""decay":{"anchored":true},"#));
    put(
        &session,
        r#"[{"resourceType":"Entity","id":"x","name":"X"},{"resourceType":"Entity","id":"y","name":"Y"},
        {"resourceType":"Relationship","id":"xy","from":{"ref":"Entity/x"},"to":{"ref":"Entity/y"},
        "relationType":"knows","invalidatedAt":"2026-06-02T00:00:00Z"}]"#,
    );
    clock.advance(30 * DAY);
    assert_eq!(sweep(&session).expired, 0);
    clock.advance(2 * DAY);
    assert_eq!(sweep(&session).expired, 2);
    assert!(get(&session, "MemoryRecord/gone").is_none());
    assert!(get(&session, "Relationship/xy").is_none());
    assert!(get(&session, "MemoryRecord/pinned").is_some());
    let explained = explain(&session, "MemoryRecord/gone");
    assert!(explained.get("forgottenAt").is_some_and(|at| at.as_str().is_some()));
    let why = explained.get("reason").and_then(Value::as_str).expect("a reason");
    assert!(why.starts_with("it stopped being valid"), "{why}");
    // Compaction leaves of it nothing but that it was forgotten.
    session.compact(Scope::All).expect("the disk is good");
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    let explained = explain(&session, "MemoryRecord/gone");
    assert_eq!(explained.get("forgotten").and_then(Value::as_bool), Some(true));
    assert!(get(&session, "MemoryRecord/gone").is_none());
    let unknown = session.explain(&"MemoryRecord/never".parse().expect("a reference"));
    assert_eq!(unknown.expect_err("nobody knows it").code, Code::NotFound);
}

#[test]
fn the_store_stays_within_what_it_may_take_of_the_card() {
    const MAX: u64 = 768 << 10;
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let mut settings = Settings { segment_bytes: 32 << 10, ..settings() };
    settings.segment_max_bytes = 128 << 10;
    settings.flash.max_bytes = MAX;
    let session =
        Session::open_with(Arc::new(disk.clone()), &clock, settings, None).expect("it opens");
    let status = |names: &[&str]| number(&session.status("r"), names) as u64;
    let mut most = 0;
    for n in 0..1500 {
        let (importance, word) = (f64::from(n % 10) / 10.0, format!("{n:x} ").repeat(200));
        let anchored = if n == 0 { r#""decay":{"anchored":true},"# } else { "" };
        put(
            &session,
            &format!(
                r#"{{"resourceType":"MemoryRecord","id":"r{n}","content":"{word}",{anchored}
                "createdAt":"2026-06-01T00:00:00Z","importance":{importance}}}"#
            ),
        );
        if n % 40 == 39 {
            clock.advance(HOUR);
            sweep(&session);
            session.compact(Scope::Due).expect("the disk is good");
            most = most.max(status(&["disk", "bytes"]));
        }
    }
    assert!(most < MAX + MAX / 10, "{most} of {MAX}");
    assert!(disk.used() < MAX + MAX / 10, "{} lie there", disk.used());
    let live = status(&["counts", "types", "MemoryRecord"]);
    assert!((300..1300).contains(&live), "{live} are left");
    let left = |n: &u32| get(&session, &format!("MemoryRecord/r{n}")).is_some();
    assert!(left(&0), "what is anchored stays");
    let share = |digit: u32| (digit..1000).step_by(10).filter(left).count();
    let (dull, dear) = (share(1), share(9));
    assert!(dull < 10 && dear > 25, "{dull} dull ones and {dear} dear ones are left of 100 each");
}

#[test]
fn without_room_what_is_needed_least_goes_first() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let record = |id: &str, importance: f64, more: &str| {
        let word = "word ".repeat(40);
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} {word}",{more}
            "createdAt":"2026-06-01T00:00:00Z","importance":{importance}}}"#
        )
    };
    put(&session, &record("pinned", 0.0, r#""decay":{"anchored":true},"#));
    put(&session, &record("plan", 0.0, r#""experienceType":"intention","#));
    put(&session, &record("dull", 0.1, ""));
    put(&session, &record("fine", 0.5, ""));
    put(&session, &record("dear", 0.9, ""));
    clock.advance(2 * DAY);
    // Not needed at all, but hardly stored yet.
    put(&session, &record("young", 0.0, "").replace("2026-06-01", "2026-06-03"));
    let gone = || {
        let ids = ["dull", "fine", "dear", "young"];
        let is_gone = |id: &&str| get(&session, &format!("MemoryRecord/{id}")).is_none();
        ids.into_iter().filter(is_gone).collect::<Vec<_>>()
    };
    assert_eq!(sweep(&session).evicted, 0);
    session.relieve(100);
    assert_eq!(session.sweep(true).expect("only a look").evicted, 1);
    assert_eq!(gone(), [""; 0]);
    assert_eq!(sweep(&session).evicted, 1);
    assert_eq!(gone(), ["dull"]);
    assert_eq!(sweep(&session).evicted, 0, "room was made");
    session.relieve(100);
    assert_eq!(sweep(&session).evicted, 0, "compaction has that to free already");
    session.relieve(500);
    assert_eq!(sweep(&session).evicted, 1);
    assert_eq!(gone(), ["dull", "fine"]);
    session.relieve(1 << 30);
    assert_eq!(sweep(&session).evicted, 2);
    assert_eq!(gone(), ["dull", "fine", "dear", "young"]);
    assert!(get(&session, "MemoryRecord/pinned").is_some());
    assert!(get(&session, "MemoryRecord/plan").is_some());
}

#[test]
fn what_is_recalled_together_is_bound_closer() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    put(
        &session,
        r#"[{"resourceType":"Entity","id":"x","name":"X"},{"resourceType":"Entity","id":"y","name":"Y"},
        {"resourceType":"Relationship","id":"xy","from":{"ref":"Entity/x"},"to":{"ref":"Entity/y"},
        "relationType":"knows","strength":0.5,"validAt":"2026-06-01T00:00:00Z"}]"#,
    );
    let xy = "Relationship/xy".parse().expect("a reference");
    let now = |session: &Session, name: &str| {
        number(&session.explain(&xy).expect("it is known"), &[name])
    };
    assert_eq!(now(&session, "strengthNow"), 0.5);
    put(
        &session,
        r#"{"resourceType":"MemoryRecord","id":"met","content":"they met",
        "createdAt":"2026-06-01T00:00:00Z","entityRefs":[{"ref":"Entity/x"},{"ref":"Entity/y"}]}"#,
    );
    assert_eq!(now(&session, "coActivations"), 1.0);
    clock.advance(30 * DAY);
    // Half of 0.55 after a half-life.
    assert!((now(&session, "strengthNow") - 0.275).abs() < 1e-3);
    let query = Query { text: Some("met".into()), ..Query::default() };
    assert_eq!(session.recall(&query).expect("it is answered").total, 1);
    // A clean stop counts it and keeps it.
    session.seal_now(Duration::from_secs(60)).expect("the disk is good");
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(now(&session, "coActivations"), 2.0);
    // So does a compaction of two segments into one.
    put(&session, r#"{"resourceType":"Entity","id":"z","name":"Z"}"#);
    let compacted = session.compact(Scope::All).expect("the disk is good");
    assert_eq!(compacted.segments_before - compacted.segments_after, 1);
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(now(&session, "coActivations"), 2.0);
    assert!((now(&session, "strengthNow") - 0.595).abs() < 1e-9);
    // What it states is what it was told.
    let stored = get(&session, "Relationship/xy").expect("it is live");
    assert_eq!(number(&stored, &["strength"]), 0.5);
}

#[test]
fn an_explanation_names_the_moment_of_the_next_move() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    put(&session, PLAIN);
    let a = "MemoryRecord/a".parse().expect("a reference");
    for expected in ["session", "longterm", "archive"] {
        let explained = session.explain(&a).expect("it is known");
        let next = explained.get("nextMove").expect("it moves on");
        assert_eq!(next.get("tier").and_then(Value::as_str), Some(expected));
        let at = next.get("at").and_then(Value::as_str).expect("an instant");
        let at: omir_core::instant::Instant = at.parse().expect("an instant");
        let wait = at.at().micros_since(session.now().0);
        clock.advance(Duration::from_micros(wait as u64 - 10_000));
        assert_ne!(tier(&session, "MemoryRecord/a"), expected, "not yet");
        clock.advance(Duration::from_micros(10_000));
        assert_eq!(tier(&session, "MemoryRecord/a"), expected);
    }
    let explained = session.explain(&a).expect("it is known");
    assert!(explained.get("nextMove").is_none(), "it stays where it is");
    let reason = explained.get("reason").and_then(Value::as_str).expect("a reason");
    assert!(reason.contains("fell below 0.1"), "{reason}");
    let change = Change::Anchor(a.clone(), true);
    session.execute(change).expect("the disk is good");
    let explained = session.explain(&a).expect("it is known");
    assert_eq!(explained.get("evictable").and_then(Value::as_bool), Some(false));
}

/// What the robot of [`phase`] does with its day; doing it again changes nothing.
const PHASES: [Duration; 7] =
    [Duration::ZERO, HOUR.saturating_mul(2), HOUR, DAY, DAY.saturating_mul(40), DAY, HOUR];

/// One part of a life in which every kind of sweep has something to do.
fn phase(session: Session, disk: &CutDisk, clock: &Arc<TestClock>, part: usize) -> Option<Session> {
    let put = |session: &Session, json: &str| -> Option<()> {
        let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
        session.execute(change).ok().map(drop)
    };
    let plain = |id: &str, importance: f64, more: &str| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} {}",{more}
            "createdAt":"2026-06-01T00:00:00Z","importance":{importance}}}"#,
            "and so on ".repeat(20),
        )
    };
    match part {
        0 => {
            put(&session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#)?;
            put(&session, &cup("c1", 1, 2.0, "cam:1", ""))?;
            put(&session, &cup("c2", 2, 3.0, "cam:1", ""))?;
            put(&session, &cup("c3", 3, 1.0, "cam:2", ""))?;
            put(&session, &plain("shop", 0.9, r#""validUntil":"2026-06-02T00:00:00Z","#))?;
            put(&session, &plain("dull", 0.0, ""))?;
            put(&session, &plain("dear", 0.9, ""))?;
            put(&session, &plain("pinned", 0.0, r#""decay":{"anchored":true},"#))?;
        }
        1 | 4 => drop(session.sweep(false).ok()?),
        2 => {
            drop(session);
            let session = Session::open(disk, clock).ok()?;
            put(&session, &cup("c4", 4, 2.0, "cam:3", ""))?;
            return Some(session);
        }
        3 => {
            session.sweep(false).ok()?;
            session.compact(Scope::All).ok()?;
        }
        5 => drop(session.compact(Scope::All).ok()?),
        _ => {
            session.relieve(1);
            session.sweep(false).ok()?;
        }
    }
    Some(session)
}

/// The refs that are live, with the tier of each.
fn standing(session: &Session) -> BTreeMap<String, String> {
    let mut standing = BTreeMap::new();
    session.each(None, |bytes| {
        let resource = cbor::from_slice(&bytes, &Limits::default()).expect("it is CBOR");
        let text = |name| resource.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        standing.insert(text("id"), text("tier"));
    });
    standing
}

/// Lives from `part` on; gives the part in which the power went, or the store at the end.
fn live_on(disk: &CutDisk, clock: &Arc<TestClock>, from: usize) -> Result<Session, usize> {
    let mut session = Some(Session::open(disk, clock).map_err(|_| from)?);
    for (part, wait) in PHASES.iter().enumerate().skip(from) {
        // Time had already passed where the power went.
        clock.advance(if part == from && from > 0 { Duration::ZERO } else { *wait });
        session = session.and_then(|session| phase(session, disk, clock, part));
        if session.is_none() || disk.is_off() {
            return Err(part);
        }
    }
    session.ok_or(PHASES.len())
}

#[test]
fn a_life_with_sweeps_cut_anywhere_ends_like_one_that_was_not() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = live_on(&disk, &clock, 0).expect("the disk is good");
    let (whole, believed) = (standing(&session), evidence(&session));
    drop(session);
    let left: Vec<&str> = whole.keys().map(String::as_str).collect();
    assert_eq!(left, ["c1", "cup", "dear", "pinned"], "all kinds of sweep had something to do");
    assert_eq!(believed, BTreeMap::from([("c1".to_owned(), 6.0)]));

    for cut in 0..disk.operations() {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        disk.cut_at(cut);
        // The last operations are those of the stop.
        let part = live_on(&disk, &clock, 0).map_or_else(|part| part, |_| PHASES.len() - 1);
        for seed in [if cut % 2 == 0 { ONLY_SYNCED } else { EVERYTHING }, cut + 2] {
            let card = disk.survivors(seed);
            let session = Session::open(&card, &clock).expect("it opens");
            assert!(session.damage().is_empty(), "cut at {cut}: {:?}", session.damage());
            let here = standing(&session);
            if part > 0 {
                for id in ["cup", "dear", "pinned"] {
                    assert!(here.contains_key(id), "cut at {cut}, survivors {seed}: {id} is lost");
                }
                // Each source of phase 0 once: apart, or in one record.
                let known: f64 = evidence(&session).values().sum();
                assert!([4.0, 6.0].contains(&known), "cut at {cut}, survivors {seed}: {known}");
            }
            drop(session);
            let session = live_on(&card, &clock, part).expect("the disk is good");
            assert_eq!(standing(&session), whole, "cut at {cut} in {part}, survivors {seed}");
            assert_eq!(evidence(&session), believed, "cut at {cut} in {part}, survivors {seed}");
        }
    }
}

#[test]
fn what_goes_is_never_pinned_and_never_needed_more_than_what_stays() {
    for seed in seeds("OMIRD_SEED", 1..13) {
        let mut random = Random::new(seed);
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let mut session = Session::open(&disk, &clock).expect("it opens");
        let mut kept: BTreeSet<String> = BTreeSet::new();
        for n in 0..30 {
            let is_kept = random.chance(20);
            let more = match (is_kept, random.chance(50)) {
                (false, _) => "",
                (true, true) => r#""decay":{"anchored":true},"#,
                (true, false) => r#""experienceType":"intention","#,
            };
            let json = format!(
                r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"thing {n}",{more}
                "importance":{},"createdAt":"2026-06-01T00:00:00Z"}}"#,
                random.below(100) as f64 / 100.0,
            );
            put(&session, &json);
            if is_kept {
                kept.insert(format!("m{n}"));
            }
            if random.chance(30) {
                let query =
                    Query { text: Some(format!("{}", random.below(n + 1))), ..Query::default() };
                session.recall(&query).expect("it is answered");
            }
            clock.advance(HOUR * random.below(4) as u32);
        }
        clock.advance(HOUR);
        sweep(&session);
        if random.chance(50) {
            drop(session);
            session = Session::open(&disk, &clock).expect("it opens");
        }
        assert_eq!(counts(&sweep(&session)), [0; 4], "OMIRD_SEED={seed}: again, there is nothing");
        let (now, _) = session.now();
        // Older than a day first, then by need.
        let worth = |id: &String| {
            let explained = explain(&session, &format!("MemoryRecord/{id}"));
            let recorded = explained.get("recorded").and_then(Value::as_str).expect("an instant");
            let recorded: omir_core::instant::Instant = recorded.parse().expect("an instant");
            let is_young = now.micros_since(recorded.at()) < DAY.as_micros() as i64;
            (is_young, number(&explained, &["need"]))
        };
        let before: BTreeSet<String> = standing(&session).into_keys().collect();
        let worths: BTreeMap<String, (bool, f64)> =
            before.difference(&kept).map(|id| (id.clone(), worth(id))).collect();
        session.relieve(random.below(6000) as u64);
        let evicted = sweep(&session).evicted;
        let after: BTreeSet<String> = standing(&session).into_keys().collect();
        assert!(after.is_superset(&kept), "OMIRD_SEED={seed}: {kept:?} in {after:?}");
        assert_eq!(evicted as usize, before.len() - after.len(), "OMIRD_SEED={seed}");
        let gone = worths.iter().filter(|(id, _)| !after.contains(*id)).map(|(_, worth)| *worth);
        let stays = worths.iter().filter(|(id, _)| after.contains(*id)).map(|(_, worth)| *worth);
        let most = gone.max_by(|a, b| a.partial_cmp(b).expect("numbers"));
        let least = stays.min_by(|a, b| a.partial_cmp(b).expect("numbers"));
        if let (Some(most), Some(least)) = (most, least) {
            assert!(most <= least, "OMIRD_SEED={seed}: {most:?} went and {least:?} stays");
        }
    }
}
