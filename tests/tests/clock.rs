//! Clocks that are wrong: boards that boot in 1970, batteries that are flat, clocks a year ahead,
//! machines that sleep. Memories fade by the time that went by, and what came in without a clock is
//! dated anew, once.
//!
//! Invariants 8 and 18 of ARCHITECTURE.md.

use std::sync::Arc;
use std::time::Duration;

use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{MemoryRecord, Resource};
use omir_core::reference::Ref;
use omir_core::tier::Tier;
use omir_core::value::Value;
use omird::clock::ClockState;
use omird::engine::command::{Change, Stored};
use omird::engine::compaction::Scope;
use omird::engine::request::Encoding;
use omird::recall::Query;
use omird_tests::check;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::process::eventually;
use omird_tests::session::{Session, TestClock, settings};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    Session::open(disk, clock).expect("it opens")
}

/// Remembers a JSON text as it came and says what became of it.
fn remember(session: &Session, json: &str) -> Stored {
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    match session.execute(change).expect("it is stored").effect {
        omird::engine::command::Effect::Remembered(mut stored) => stored.remove(0),
        other => panic!("{other:?}"),
    }
}

fn record(id: &str, more: &str) -> String {
    format!(r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} is seen"{more}}}"#)
}

fn bytes(session: &Session, id: &str) -> Vec<u8> {
    let target: Ref = format!("MemoryRecord/{id}").parse().expect("a reference");
    session.get(&target).expect("it is whole").expect("it is there")
}

fn get(session: &Session, id: &str) -> MemoryRecord {
    match check::decode(&bytes(session, id)) {
        Resource::MemoryRecord(record) => *record,
        other => panic!("{other:?}"),
    }
}

fn micros(instant: &Instant) -> i64 {
    instant.at().as_micros()
}

/// The note about the clock that a record bears.
fn note(record: &MemoryRecord) -> Option<Value> {
    let mut extensions = record.extension.iter().flatten();
    extensions.find(|extension| extension.url == "urn:omird:ext:clock")?.value_json.clone()
}

fn state_of(record: &MemoryRecord) -> Option<String> {
    Some(note(record)?.get("state")?.as_str()?.to_owned())
}

fn version(record: &MemoryRecord) -> u64 {
    record.version.as_ref().and_then(|version| version.as_u64()).unwrap_or(1)
}

/// How retrievable a record is, without being thought of.
fn retrievability(session: &Session, id: &str) -> f64 {
    let text = Some(id.to_owned());
    let query = Query { text, touch: false, ..Query::default() };
    session.recall(&query).expect("a recall").hits[0].retrievability
}

fn think_of(session: &Session, id: &str) {
    let query = Query { text: Some(id.to_owned()), ..Query::default() };
    assert_eq!(session.recall(&query).expect("a recall").hits.len(), 1);
}

fn clock_status(session: &Session, name: &str) -> Value {
    let status = session.status("r1");
    status.pointer(&format!("/clock/{name}")).cloned().expect(name)
}

fn corrected(session: &Session, count: u64) {
    eventually("what waits is dated anew", || {
        clock_status(session, "corrected").as_u64() == Some(count)
    });
}

fn state(session: &Session) -> ClockState {
    session.now().1
}

/// Memories of a week ago, and a machine that was cut off its power just now.
fn lived() -> (CutDisk, Arc<TestClock>) {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    remember(&session, &record("old", ""));
    clock.advance(seconds(7 * 86_400));
    remember(&session, &record("new", ""));
    drop(session);
    (disk, clock)
}

#[test]
fn a_boot_in_1970_neither_forgets_nor_un_forgets() {
    let (disk, clock) = lived();
    let session = open(&disk, &clock);
    let before = ["old", "new"].map(|id| retrievability(&session, id));
    drop(session);
    let known = clock_now(&clock);

    clock.reboot(0);
    clock.advance(seconds(30));
    let session = open(&disk, &clock);
    assert_eq!(state(&session), ClockState::Unknown);
    for (id, before) in ["old", "new"].into_iter().zip(before) {
        let now = retrievability(&session, id);
        assert!(now <= before && now > before - 1e-3, "{id}: {before} became {now}");
    }
    assert_eq!(session.now().0.as_micros(), known + 30 * SECOND, "the time off counts as none");

    // A month went by while it was off.
    clock.set(known + 30 * DAY, true);
    let after = retrievability(&session, "new");
    let expected = (1.0 + 3.0 * 30.0 * 24.0 / 48.0_f64).sqrt().recip();
    let half_life = get(&session, "new").decay.and_then(|decay| decay.half_life_hours);
    assert_eq!(half_life, None, "the rate is that of the core");
    assert!(after < 0.5 * before[1], "it faded by a month: {after}, about {expected}");
    assert_eq!(state(&session), ClockState::Synchronised);
    drop(session);
    // Counted once: a restart changes nothing.
    let session = open(&disk, &clock);
    let again = retrievability(&session, "new");
    assert!((again - after).abs() < 1e-9, "{after} became {again}");
}

fn clock_now(clock: &TestClock) -> i64 {
    use omird::clock::Clock;
    clock.now().as_micros()
}

#[test]
fn what_came_in_without_a_clock_is_dated_anew_and_says_so() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(0);
    clock.advance(seconds(30));
    let session = open(&disk, &clock);
    // The daemon's date, one read off the same wrong clock, one from elsewhere, an old one.
    let pose = r#"[{"url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{"frame":"map","position":[1,2,3],"stamp":"1970-01-01T00:00:29Z"}}]"#;
    let stated = format!(
        r#","createdAt":"1970-01-01T00:00:29.5Z","eventTime":"1970-01-01T00:00:29Z","extension":{pose}"#
    );
    let elsewhere = r#","createdAt":"2026-06-05T00:00:00Z""#;
    let ancient = r#","createdAt":"2019-01-01T00:00:00Z""#;
    remember(&session, &record("stamped", ""));
    remember(&session, &record("stated", &stated));
    remember(&session, &record("elsewhere", elsewhere));
    remember(&session, &record("ancient", ancient));
    let waiting = get(&session, "stamped");
    assert_eq!(micros(&waiting.created_at), known + 30 * SECOND);
    assert_eq!(state_of(&waiting).as_deref(), Some("unknown"));
    let stamp = note(&waiting).and_then(|note| note.get("monotonicMicros")?.as_i64());
    assert_eq!(stamp, Some(30 * SECOND));
    assert_eq!(clock_status(&session, "toCorrect").as_u64(), Some(2));
    let sent_while_unknown = bytes(&session, "stamped");
    // The same again, and what one got, is no change while nobody knows ...
    clock.advance(seconds(10));
    assert!(remember(&session, &record("stamped", "")).unchanged);
    assert!(remember(&session, &record("stated", &stated)).unchanged);

    // Ten days off, and half a minute until the clock is set.
    let booted = known + 10 * DAY;
    clock.set(booted + 40 * SECOND, false);
    corrected(&session, 2);
    assert_eq!(state(&session), ClockState::Coarse);
    let stamped = get(&session, "stamped");
    assert_eq!(micros(&stamped.created_at), booted + 30 * SECOND);
    assert_eq!((state_of(&stamped).as_deref(), version(&stamped)), (Some("corrected"), 2));
    let was = note(&stamped)
        .and_then(|note| Some(note.get("was")?.get("createdAt")?.as_str()?.to_owned()));
    assert_eq!(was.as_deref(), Some(waiting.created_at.as_str()));
    let stated_now = get(&session, "stated");
    assert_eq!(micros(&stated_now.created_at), booted + 29 * SECOND + SECOND / 2);
    assert_eq!(stated_now.event_time.as_ref().map(micros), Some(booted + 29 * SECOND));
    let pose_stamp = stated_now.extension.iter().flatten().find_map(|extension| {
        Some(extension.value_json.as_ref()?.get("stamp")?.as_str()?.to_owned())
    });
    assert_eq!(pose_stamp, Some(Timestamp::from_micros(booted + 29 * SECOND).to_string()));
    for id in ["elsewhere", "ancient"] {
        let record = get(&session, id);
        assert_eq!((note(&record), version(&record)), (None, 1), "{id} stays as it came");
    }
    // ... nor afterwards, whichever version it was.
    assert!(remember(&session, &record("stamped", "")).unchanged);
    assert!(remember(&session, &record("stated", &stated)).unchanged);
    for got in [sent_while_unknown, bytes(&session, "stamped"), bytes(&session, "stated")] {
        let change = session.prepare(&got, Encoding::Cbor, None).expect("it is valid");
        session.execute(change).expect("it is stored");
    }
    for id in ["stamped", "stated"] {
        assert_eq!(version(&get(&session, id)), 2, "{id}: what one got is no change");
    }
    // What is said anew keeps the date that was put right.
    remember(&session, &record("stamped", r#","importance":0.9"#));
    let updated = get(&session, "stamped");
    assert_eq!((version(&updated), updated.created_at), (3, stamped.created_at));
    drop(session);
    let session = open(&disk, &clock);
    assert_eq!(micros(&get(&session, "stated").created_at), booted + 29 * SECOND + SECOND / 2);
    assert_eq!(version(&get(&session, "stated")), 2, "never twice");
}

/// What a member of an extension says.
fn told(record: &MemoryRecord, url: &str, name: &str) -> Option<String> {
    let mut extensions = record.extension.iter().flatten();
    let value = extensions.find(|extension| extension.url.ends_with(url))?.value_json.as_ref()?;
    Some(value.get(name)?.as_str()?.to_owned())
}

/// As the node in ROS does: it dates events by our clock and leaves `createdAt` to us.
#[test]
fn events_that_were_dated_by_our_clock_are_dated_anew_with_it() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(0);
    clock.advance(seconds(30));
    let session = open(&disk, &clock);
    let at = |micros: i64| Timestamp::from_micros(micros).to_string();
    let seen = |first: i64, last: i64| {
        let (first, until, last) = (at(first), at(last + 30 * DAY), at(last));
        format!(
            r#","eventTime":"{last}","validUntil":"{until}","extension":[
            {{"url":"https://omir.io/spec/R1/extension/spatial-pose",
              "valueJson":{{"frame":"map","position":[1,2,3],"stamp":"{last}"}}}},
            {{"url":"urn:omird:ext:consolidated","valueJson":{{"count":2,"first":"{first}",
              "last":"{last}","from":[],"evidence":{{}}}}}}]"#
        )
    };
    clock.advance(seconds(1));
    let first = session.now().0.as_micros();
    assert_eq!(first, known + 31 * SECOND);
    remember(&session, &record("cup", &seen(first - SECOND, first)));
    // By the wall clock, which a camera has for its stamps.
    let wall = clock_now(&clock);
    remember(&session, &record("door", &seen(wall - SECOND, wall)));
    // Seen again: what is stored, with a later event.
    clock.advance(seconds(7200));
    let last = session.now().0.as_micros();
    let created = format!(r#","createdAt":"{}""#, get(&session, "cup").created_at.as_str());
    remember(&session, &record("cup", &(created + &seen(first - SECOND, last))));

    // Ten days off, and until the clock is set.
    let booted = known + 10 * DAY;
    clock.set(booted + 7231 * SECOND, true);
    corrected(&session, 2);
    let cup = get(&session, "cup");
    let (then, again) = (booted + 31 * SECOND, booted + 7231 * SECOND);
    assert_eq!(micros(&cup.created_at), then);
    assert_eq!(cup.event_time.as_ref().map(micros), Some(again));
    assert_eq!(cup.valid_until.as_ref().map(micros), Some(again + 30 * DAY));
    assert_eq!(told(&cup, "spatial-pose", "stamp"), Some(at(again)));
    assert_eq!(told(&cup, "consolidated", "first"), Some(at(then - SECOND)));
    assert_eq!(told(&cup, "consolidated", "last"), Some(at(again)));
    let door = get(&session, "door");
    assert_eq!(micros(&door.created_at), then);
    assert_eq!(door.event_time.as_ref().map(micros), Some(then));
    assert_eq!(door.valid_until.as_ref().map(micros), Some(then + 30 * DAY));
    assert_eq!(told(&door, "consolidated", "first"), Some(at(then - SECOND)));
}

#[test]
fn what_was_thought_of_without_a_clock_was_thought_of_then() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(0);
    clock.advance(seconds(60));
    let session = open(&disk, &clock);
    think_of(&session, "old");
    clock.advance(seconds(60));
    clock.set(known + 20 * DAY + 120 * SECOND, true);
    let last = || get(&session, "old").decay.and_then(|decay| Some(micros(&decay.last_access?)));
    eventually("the access is counted", || last() == Some(known + 20 * DAY + 60 * SECOND));
    drop(session);
    let session = open(&disk, &clock);
    let decay = get(&session, "old").decay.expect("it was thought of");
    assert_eq!(decay.last_access.as_ref().map(micros), Some(known + 20 * DAY + 60 * SECOND));
}

#[test]
fn a_restart_of_the_daemon_alone_loses_no_time_and_what_waits() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(0);
    clock.advance(seconds(10));
    let session = open(&disk, &clock);
    remember(&session, &record("first", ""));
    think_of(&session, "old");
    drop(session);
    // The daemon was away; the machine was not.
    clock.advance(seconds(100));
    let session = open(&disk, &clock);
    assert_eq!(session.now().0.as_micros(), known + 110 * SECOND);
    remember(&session, &record("second", ""));
    drop(session);
    clock.advance(seconds(10));
    clock.set(known + DAY + 120 * SECOND, true);
    // Set while the daemon was away.
    let session = open(&disk, &clock);
    corrected(&session, 2);
    assert_eq!(micros(&get(&session, "first").created_at), known + DAY + 10 * SECOND);
    assert_eq!(micros(&get(&session, "second").created_at), known + DAY + 110 * SECOND);
    let decay = get(&session, "old").decay.expect("it was thought of");
    assert_eq!(decay.last_access.as_ref().map(micros), Some(known + DAY + 10 * SECOND));
}

#[test]
fn a_clock_that_was_a_year_ahead_leaves_nothing_unfaded_and_the_order_stands() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(known + YEAR);
    let session = open(&disk, &clock);
    assert_eq!((state(&session), session.now().0.as_micros()), (ClockState::Coarse, known + YEAR));
    think_of(&session, "old");
    remember(&session, &record("ahead", ""));
    clock.advance(seconds(10));
    clock.set(known + 10 * SECOND, true);
    let now = || session.now().0.as_micros();
    assert_eq!(now(), known + 10 * SECOND, "a synchronised clock wins");
    let last = || get(&session, "old").decay.and_then(|decay| Some(micros(&decay.last_access?)));
    eventually("it was thought of ten seconds ago", || last() == Some(known));
    corrected(&session, 1);
    let ahead = get(&session, "ahead");
    assert_eq!((micros(&ahead.created_at), state_of(&ahead)), (known, Some("corrected".into())));
    assert_eq!(ahead.decay, None, "it fades from its date on");
    clock.advance(seconds(2 * 86_400));
    let faded = retrievability(&session, "ahead");
    assert!(faded < 0.9, "it fades from now on, not in a year: {faded}");
    // What is recorded later is ordered later, whatever the date.
    let at = Query { as_of: Some(Timestamp::from_micros(known + YEAR - 1)), ..Query::default() };
    remember(&session, &record("later", ""));
    let seen = session.recall(&at).expect("a recall").total;
    assert_eq!(seen, 2, "before the year ahead there were two");
    drop(session);
    clock.reboot(0);
    let session = open(&disk, &clock);
    let dated = session.now().0.as_micros();
    assert!((known..known + 3 * DAY).contains(&dated), "the year ahead is gone for good");
}

#[test]
fn a_clock_that_was_a_year_ahead_loses_nothing_for_good() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    let until = |at: i64| Timestamp::from_micros(at).to_string();
    {
        let session = open(&disk, &clock);
        remember(&session, &record("fair", &format!(r#","validUntil":"{}""#, until(known + DAY))));
        remember(&session, &record("door", ""));
        remember(&session, &record("door", r#","importance":0.5"#));
    }
    let before = Query { as_of: Some(Timestamp::from_micros(known - DAY)), ..Query::default() };
    let past = |session: &Session| session.recall(&before).expect("a recall").total;
    // Two starts, so that the second has a past that is ahead as well.
    for start in 0..2 {
        clock.reboot(known + YEAR + start * DAY);
        let session = open(&disk, &clock);
        assert_eq!(state(&session), ClockState::Coarse);
        clock.advance(seconds(3600));
        assert_eq!(session.sweep(false).expect("it is swept").expired, 0);
        let done = session.compact(Scope::All).expect("the disk is good");
        assert_eq!(done.superseded, 0, "the history of a week is kept");
        bytes(&session, "fair");
        assert_eq!(past(&session), 1);
    }
    clock.reboot(known + DAY);
    let session = open(&disk, &clock);
    clock.set(known + DAY, true);
    assert_eq!(session.now().0.as_micros(), known + DAY);
    bytes(&session, "fair");
    // By a clock that is right it is over a month later, and the week of history with it.
    clock.advance(seconds(40 * 86_400));
    assert_eq!(session.sweep(false).expect("it is swept").expired, 1);
    assert!(session.compact(Scope::All).expect("the disk is good").superseded > 0);
}

#[test]
fn a_clock_that_nobody_vouches_for_is_believed_after_a_while() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    let over = Timestamp::from_micros(known + DAY).to_string();
    remember(&open(&disk, &clock), &record("fair", &format!(r#","validUntil":"{over}""#)));
    clock.reboot(known + 60 * DAY);
    let session = open(&disk, &clock);
    assert_eq!(session.sweep(false).expect("it is swept").expired, 0);
    clock.advance(seconds(2 * 86_400));
    assert_eq!(session.now().1, ClockState::Coarse);
    assert_eq!(session.sweep(false).expect("it is swept").expired, 1);
}

/// A board whose clock goes on from what it saved when it was shut down.
#[test]
fn what_came_in_by_a_clock_that_had_stood_still_is_dated_anew() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(known + 20 * SECOND);
    let session = open(&disk, &clock);
    assert_eq!(state(&session), ClockState::Coarse);
    clock.advance(seconds(600));
    let here = Timestamp::from_micros(known + 610 * SECOND);
    remember(&session, &record("stamped", ""));
    remember(&session, &record("stated", &format!(r#","createdAt":"{here}""#)));
    remember(&session, &record("ancient", r#","createdAt":"2019-01-01T00:00:00Z""#));
    think_of(&session, "old");
    for id in ["stamped", "stated"] {
        assert_eq!(note(&get(&session, id)), None, "a clock that may be right is no news");
    }
    let mine = bytes(&session, "stamped");
    // A restart of the daemon alone, and five hours that nobody knew of.
    drop(session);
    let session = open(&disk, &clock);
    clock.advance(seconds(60));
    let off = 5 * HOUR;
    clock.set(known + off + 680 * SECOND, true);
    corrected(&session, 2);
    assert_eq!(micros(&get(&session, "stamped").created_at), known + off + 620 * SECOND);
    assert_eq!(micros(&get(&session, "stated").created_at), known + off + 610 * SECOND);
    assert_eq!(version(&get(&session, "ancient")), 1);
    let decay = get(&session, "old").decay.expect("it was thought of");
    assert_eq!(decay.last_access.as_ref().map(micros), Some(known + off + 620 * SECOND));
    let change = session.prepare(&mine, Encoding::Cbor, None).expect("it is valid");
    session.execute(change).expect("it is stored");
    assert_eq!(version(&get(&session, "stamped")), 2, "what one got is no change");
    let was = note(&get(&session, "stamped"));
    let offset = was.and_then(|note| note.get("offsetMicros")?.as_i64());
    assert_eq!(offset, Some(off));
}

#[test]
fn a_clock_that_only_drifted_was_right() {
    let (disk, clock) = lived();
    let known = clock_now(&clock);
    clock.reboot(known);
    let session = open(&disk, &clock);
    remember(&session, &record("seen", ""));
    // 100 ppm of a month.
    clock.advance(seconds(30 * 86_400));
    clock.set(known + 30 * DAY + 260 * SECOND, true);
    assert_eq!(session.now().0.as_micros(), known + 30 * DAY + 260 * SECOND);
    assert_eq!(clock_status(&session, "settling").as_bool(), Some(false));
    assert_eq!(version(&get(&session, "seen")), 1);
}

#[test]
fn a_leap_second_and_a_suspend_are_no_steps() {
    let (disk, clock) = lived();
    let session = open(&disk, &clock);
    let before = session.now().0;
    clock.set(before.as_micros() - SECOND, true);
    assert_eq!(session.now().0, before, "it stands");
    clock.advance(seconds(3));
    assert_eq!(session.now().0.as_micros(), before.as_micros() + 2 * SECOND);
    let left = retrievability(&session, "new");
    clock.advance(seconds(8 * 3600));
    assert!(retrievability(&session, "new") < left, "a night asleep is a night");
    assert_eq!(clock_status(&session, "steppedBySeconds").as_f64(), Some(0.0));
    assert_eq!(clock_status(&session, "corrected").as_u64(), Some(0));
}

#[test]
fn a_remote_date_is_taken_only_where_it_can_be_right() {
    let (disk, clock) = lived();
    let session = open(&disk, &clock);
    let now = clock_now(&clock);
    for (id, sent, taken) in [
        ("recent", now - HOUR, true),
        ("skewed", now + SECOND / 4, true),
        ("ahead", now + YEAR, false),
        ("ancient", now - 2 * DAY, false),
    ] {
        let json = record(id, "");
        let sent_at = Timestamp::from_micros(sent);
        let change = session
            .prepare_sent(json.as_bytes(), Encoding::Json, None, sent_at)
            .expect("it is valid");
        session.execute(change).expect("it is stored");
        let created = micros(&get(&session, id).created_at);
        assert_eq!(created, if taken { sent } else { now }, "{id}");
    }
    assert_eq!(session.now().0.as_micros(), now, "nobody drags ours");
}

#[test]
fn evidence_and_pins_of_before_stay_when_a_memory_is_dated_anew() {
    let (disk, clock) = lived();
    clock.reboot(0);
    let session = open(&disk, &clock);
    remember(&session, &record("pinned", ""));
    let target: Ref = "MemoryRecord/pinned".parse().expect("a reference");
    session.execute(Change::Anchor(target, true)).expect("it is pinned");
    let known = session.now().0.as_micros();
    clock.set(known + 50 * DAY, true);
    corrected(&session, 1);
    let pinned = get(&session, "pinned");
    let decay = pinned.decay.expect("it is pinned");
    assert_eq!((decay.anchored, version(&get(&session, "pinned"))), (Some(true), 3));
    assert_eq!(decay.last_access.as_ref().map(micros), Some(known + 50 * DAY));
}

/// The card loses its power at every operation while memories are dated anew. None is lost, none is
/// dated twice, and whatever was set right by the end is right.
#[test]
fn a_cut_at_any_operation_dates_nothing_twice() {
    const RECORDS: usize = 6;
    for cut in 0.. {
        let (disk, clock) = lived();
        let known = clock_now(&clock);
        clock.reboot(0);
        let session = open(&disk, &clock);
        for n in 0..RECORDS {
            clock.advance(seconds(1));
            remember(&session, &record(&format!("r{n}"), ""));
        }
        let booted = known + 3 * DAY;
        disk.cut_at(disk.operations() + cut);
        clock.set(booted + 6 * SECOND, true);
        let is_done = || clock_status(&session, "corrected").as_u64() == Some(RECORDS as u64);
        eventually("it is done or cut", || is_done() || disk.is_off());
        drop(session);
        let is_whole = !disk.is_off();
        for survivors in [ONLY_SYNCED, EVERYTHING, 2 * cut + 2] {
            let card = disk.survivors(survivors);
            let again = after_a_cut(booted + HOUR);
            let session = open(&card, &again);
            // Whether it was known that the clock was set is told by the log alone.
            let goes_on = || clock_status(&session, "settling").as_bool() == Some(true);
            eventually("it comes to an end", || {
                again.advance(seconds(1));
                !goes_on()
            });
            let mut dated_anew = 0;
            for n in 0..RECORDS {
                let record = get(&session, &format!("r{n}"));
                let created = micros(&record.created_at);
                let at = SECOND * (n as i64 + 1);
                let context = format!("r{n}, cut at {cut}, survivors {survivors}");
                match state_of(&record).as_deref() {
                    Some("unknown") => {
                        assert_eq!((created, version(&record)), (known + at, 1), "{context}");
                    }
                    Some("corrected") => {
                        assert_eq!((created, version(&record)), (booted + at, 2), "{context}");
                        dated_anew += 1;
                    }
                    other => panic!("{context}: {other:?}"),
                }
            }
            assert!(dated_anew == 0 || dated_anew == RECORDS, "cut at {cut}: {dated_anew} only");
            assert!(!is_whole || dated_anew == RECORDS, "whole at {cut}");
        }
        if is_whole {
            assert!(cut > 2, "there were operations to cut: {cut}");
            break;
        }
    }
}

/// The clocks of the machine of a test when it is started once more, with the wall clock at `micros`.
fn after_a_cut(micros: i64) -> Arc<TestClock> {
    let clock = TestClock::new();
    clock.reboot(0);
    clock.reboot(micros);
    clock
}

/// The clock is set while the daemon is away, and the power goes while it starts. Either all that came
/// in before is put right, memories and accesses, or the store stands where it stood.
#[test]
fn a_cut_while_the_daemon_finds_the_clock_set_moves_all_or_nothing() {
    let (mut has_moved, mut has_stood) = (false, false);
    for cut in 0.. {
        let (disk, clock) = lived();
        let known = clock_now(&clock);
        clock.reboot(0);
        let session = open(&disk, &clock);
        clock.advance(seconds(1));
        remember(&session, &record("seen", ""));
        think_of(&session, "old");
        drop(session);
        let booted = known + 3 * DAY;
        clock.set(booted + SECOND, true);
        disk.cut_at(disk.operations() + cut);
        if let Ok(session) = Session::open(&disk, &clock) {
            let is_done = || clock_status(&session, "settling").as_bool() == Some(false);
            let mut looks = 0;
            eventually("it is done or cut", || {
                clock.advance(seconds(1));
                looks += 1;
                (looks > 20 && is_done()) || disk.is_off()
            });
        }
        for survivors in [ONLY_SYNCED, EVERYTHING, 2 * cut + 2] {
            let context = format!("cut at {cut}, survivors {survivors}");
            let card = disk.survivors(survivors);
            let again = after_a_cut(booted + HOUR);
            let session = open(&card, &again);
            eventually("it comes to an end", || {
                again.advance(seconds(1));
                clock_status(&session, "settling").as_bool() == Some(false)
            });
            let decay = get(&session, "old").decay.expect("it was thought of");
            let thought_of = decay.last_access.as_ref().map(micros).expect("it was thought of");
            let seen = micros(&get(&session, "seen").created_at);
            assert_eq!(seen, thought_of, "{context}");
            match seen - SECOND {
                at if at == booted => has_moved = true,
                at if at == known => has_stood = true,
                at => panic!("{context}: {at}"),
            }
        }
        if !disk.is_off() {
            break;
        }
    }
    assert!(has_moved && has_stood, "there were operations to cut");
}

#[test]
fn many_memories_are_dated_anew_in_parts_while_others_come_in() {
    let (disk, clock) = lived();
    clock.reboot(0);
    let session =
        Session::open_with(Arc::new(disk.clone()), &clock, settings(), None).expect("it opens");
    let batch = |from: usize| {
        let records: Vec<String> =
            (from..from + 500).map(|n| record(&format!("m{n}"), "")).collect();
        format!("[{}]", records.join(","))
    };
    for from in [0, 500, 1000] {
        remember(&session, &batch(from));
    }
    let known = session.now().0.as_micros();
    clock.set(known + DAY, true);
    remember(&session, &record("meanwhile", ""));
    corrected(&session, 1500);
    for n in [0, 499, 500, 1499] {
        assert_eq!(micros(&get(&session, &format!("m{n}")).created_at), known + DAY);
    }
    assert_eq!(note(&get(&session, "meanwhile")), None);
    assert_eq!(clock_status(&session, "toCorrect").as_u64(), Some(0));
}

#[test]
fn tiers_follow_the_date_and_not_an_order_that_is_a_year_ahead() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let right = micros(&"2026-06-01T00:00:00Z".parse().expect("an instant"));
    clock.set(right + YEAR, false);
    let session = open(&disk, &clock);
    remember(&session, &record("ahead", ""));
    clock.set(right, true);
    remember(&session, &record("after", ""));
    corrected(&session, 1);
    clock.advance(seconds(2 * 3600));
    for id in ["ahead", "after"] {
        assert_eq!(get(&session, id).tier, Some(Tier::Session), "{id}");
        let explained =
            session.explain(&format!("MemoryRecord/{id}").parse().expect("a reference"));
        let explained = explained.expect("it is known");
        let next = explained.get("nextMove").expect("it moves on").get("at");
        let next: Instant =
            next.and_then(Value::as_str).expect("it is dated").parse().expect("a date");
        assert!(micros(&next) < right + YEAR, "{next:?}");
    }
}
