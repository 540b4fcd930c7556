//! A boot without a clock: time goes by all the same, and what came in is redated when the clock is set.

use omird::engine::Change;
use omird_tests::session::settings;

use super::*;

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

#[test]
fn what_came_in_without_a_clock_is_dated_again_and_says_so() {
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
    // A record that a client sends again keeps the corrected date.
    remember(&session, &record("stamped", r#","importance":0.9"#));
    let updated = get(&session, "stamped");
    assert_eq!((version(&updated), updated.created_at), (3, stamped.created_at));
    drop(session);
    let session = open(&disk, &clock);
    assert_eq!(micros(&get(&session, "stated").created_at), booted + 29 * SECOND + SECOND / 2);
    assert_eq!(version(&get(&session, "stated")), 2, "never twice");
}

/// Value of a member of an extension.
fn told(record: &MemoryRecord, url: &str, name: &str) -> Option<String> {
    let mut extensions = record.extension.iter().flatten();
    let value = extensions.find(|extension| extension.url.ends_with(url))?.value_json.as_ref()?;
    Some(value.get(name)?.as_str()?.to_owned())
}

/// As the node in ROS does: it dates events by our clock and leaves `createdAt` to us.
#[test]
fn events_that_were_dated_by_our_clock_are_dated_again_with_it() {
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
fn evidence_and_pins_of_before_stay_when_a_memory_is_dated_again() {
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

#[test]
fn many_memories_are_dated_again_in_parts_while_others_come_in() {
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
