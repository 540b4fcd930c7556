//! A record with an owner is never consolidated, wherever its record has been since; forgetting is another
//! matter.

use omird::engine::Precedence;
use omird::engine::testing::ByHand;
use omird_tests::check;

use super::*;

/// As [`cup`], owned by a program.
fn owned(id: &str, minute: u32, more: &str) -> String {
    let extensions = r#""extension":[{"url":"urn:omird:ext:owned","valueString":"akashik"},{"#;
    cup(id, minute, 1.0, "cam:1", more).replace(r#""extension":[{"#, extensions)
}

fn names(session: &Session) -> Vec<String> {
    standing(session).into_keys().filter(|id| id != "cup").collect()
}

/// Three observations of the same that are owned, and two that are not.
fn fill(session: &Session) {
    put(session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    for (id, minute) in [("o1", 1), ("o2", 2), ("o3", 3)] {
        put(session, &owned(id, minute, ""));
    }
    for (id, minute) in [("p1", 1), ("p2", 2)] {
        put(session, &cup(id, minute, 1.0, "cam:2", ""));
    }
}

#[test]
fn what_is_owned_is_never_merged_and_the_rest_is() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    fill(&session);
    clock.advance(2 * HOUR);
    assert_eq!(session.sweep(true).expect("only a look").merged, 1);
    assert_eq!(sweep(&session).merged, 1);
    assert_eq!(names(&session), ["o1", "o2", "o3", "p1"]);
    // More than a sweep leaves to gather.
    for n in 0..20 {
        put(&session, &owned(&format!("q{n}"), 5, ""));
    }
    clock.advance(30 * DAY);
    assert_eq!(sweep(&session).merged, 0);
    // A change by name is no consolidation, and gives nothing up.
    let target: omir_core::reference::Ref = "MemoryRecord/o1".parse().expect("a reference");
    session.execute(Change::Anchor(target.clone(), true)).expect("it is there");
    session.execute(Change::Anchor(target, false)).expect("it is there");
    put(&session, &owned("o2", 2, r#""importance":0.9,"#));
    clock.advance(30 * DAY);
    assert_eq!(sweep(&session).merged, 0);
    // An update that does not state it gives the record up.
    put(&session, &cup("o1", 1, 1.0, "cam:1", ""));
    clock.advance(30 * DAY);
    assert_eq!(sweep(&session).merged, 1, "with p1");
}

#[test]
fn it_stays_owned_over_restarts_seals_compactions_and_copies() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    fill(&session);
    drop(session);
    let check = |session: &Session, from: &str| {
        clock.advance(2 * HOUR);
        sweep(session);
        assert_eq!(names(session), ["o1", "o2", "o3", "p1"], "{from}");
    };
    let session = Session::open(&disk, &clock).expect("it opens");
    check(&session, "the log");
    session.seal_now(HOUR).expect("the disk is good");
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    check(&session, "segments");
    session.compact(CompactionScope::All).expect("the disk is good");
    drop(session);
    check::segments(&disk).expect("each segment validates alone");
    let session = Session::open(&disk, &clock).expect("it opens");
    check(&session, "a compacted segment, as a backup has it");

    let bundle = session.export(&Query::everything()).expect("all is readable").to_value();
    let other = Session::open(&CutDisk::new(), &clock).expect("it opens");
    let merge = other.prepare_merge(&cbor::to_vec(&bundle), Encoding::Cbor, Precedence::Newer);
    other.execute(merge.expect("it is valid")).expect("the disk is good");
    check(&other, "an import");
}

#[test]
fn what_is_owned_is_forgotten_by_name_and_when_it_is_over() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    fill(&session);
    put(&session, &owned("over", 4, r#""validUntil":"2026-06-02T00:00:00Z","#));
    let target = "MemoryRecord/o1".parse().expect("a reference");
    session.execute(Change::Forget(vec![target])).expect("the disk is good");
    assert!(get(&session, "MemoryRecord/o1").is_none());
    clock.advance(400 * DAY);
    assert_eq!(sweep(&session).expired, 1);
    assert!(get(&session, "MemoryRecord/over").is_none());
    assert_eq!(tier(&session, "MemoryRecord/o2"), "archive", "it fades like any other");
}
