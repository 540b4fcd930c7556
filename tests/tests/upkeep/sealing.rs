//! Logs wait for each other before they are sealed, so that what is merged, superseded or forgotten
//! meanwhile is written once.
//!
//! Invariants 3, 8, 10 and 20 of ARCHITECTURE.md.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::model::Resource;
use omird::engine::testing::ByHand;
use omird::engine::{
    Change, Clock, Code, CompactionScope, DEEPEST, Encoding, Query, RequestLimits, Settings, Task,
};
use omird::store::inspect::{Report, Store, Verdict};
use omird::store::{device_key, inspect};
use omird_tests::check::{self, decode};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::session::{Session, TestClock, settings};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing is sealed for its size, and after 28 days for its age.
fn patient() -> Settings {
    Settings { segment_bytes: 1 << 20, seal_after: 28 * DAY, purge_after: 28 * DAY, ..settings() }
}

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    Session::open_with(Arc::new(disk.clone()), clock, patient(), None).expect("it opens")
}

fn put(session: &Session, json: &str) {
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("the disk is good");
}

fn entity(id: &str, name: &str) -> String {
    format!(r#"{{"resourceType":"Entity","id":"{id}","name":"{name}"}}"#)
}

fn forget(session: &Session, target: &str) {
    let change = Change::Forget(vec![target.parse().expect("a reference")]);
    session.execute(change).expect("the disk is good");
}

fn files(disk: &CutDisk, ending: &str) -> Vec<String> {
    disk.paths().into_iter().filter(|path| path.ends_with(ending)).collect()
}

fn tells(disk: &CutDisk, path: &str, word: &str) -> bool {
    disk.bytes(path).windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn what_is_forgotten_or_superseded_in_a_log_is_never_in_a_segment() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    put(&session, &entity("mirabelle", "quince"));
    put(&session, &entity("pot", "the first pot"));
    put(&session, &entity("pan", "the first pan"));
    clock.advance(HOUR);
    forget(&session, "Entity/mirabelle");
    put(&session, &entity("pot", "the second pot"));
    clock.advance(8 * DAY);
    put(&session, &entity("pan", "the second pan"));
    session.seal_now(PATIENCE).expect("the disk is good");
    let sealed = files(&disk, ".omirb");
    assert_eq!(sealed.len(), 1);
    for (word, is_there) in [
        ("mirabelle", false),
        ("quince", false),
        // Superseded longer ago than the week of history, and within it.
        ("the first pot", false),
        ("the second pot", true),
        ("the first pan", true),
        ("the second pan", true),
    ] {
        assert_eq!(tells(&disk, &sealed[0], word), is_there, "{word}");
    }
    assert_eq!(check::segments(&disk).unwrap(), 1);
    drop(session);
    let session = open(&disk, &clock);
    assert!(session.damage().is_empty(), "{:?}", session.damage());
    let mut names = Vec::new();
    session.each(None, |bytes| names.push(decode(&bytes).reference().to_string()));
    names.sort();
    assert_eq!(names, ["Entity/pan", "Entity/pot"]);
    // A name that the segment does not hold any more is free for something new.
    put(&session, &entity("mirabelle", "plum"));
    assert!(
        session.get(&"Entity/mirabelle".parse().expect("a reference")).expect("read").is_some()
    );
}

#[test]
fn only_the_first_stop_seals_and_each_log_becomes_a_segment_in_its_time() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    for day in 0..29 {
        let session = open(&disk, &clock);
        put(&session, &entity(&format!("e{day}"), "something"));
        session.run_task(Task::Seal).expect("it runs");
        assert_eq!(files(&disk, ".omirb").len(), usize::from(day > 0), "day {day}");
        drop(session);
        clock.advance(DAY);
    }
    let logs = files(&disk, ".wal").len();
    assert!((3..=5).contains(&logs), "not one for each start: {logs}");
    let session = open(&disk, &clock);
    session.run_task(Task::Seal).expect("it runs");
    assert_eq!(files(&disk, ".omirb").len(), 2);
    let left = files(&disk, ".wal");
    assert!((3..=4).contains(&left.len()), "what is younger waits on: {left:?}");
    clock.advance(8 * DAY);
    session.run_task(Task::Seal).expect("it runs");
    assert_eq!(files(&disk, ".omirb").len(), 3, "each in its time");
    assert!(!tells(&disk, &files(&disk, ".omirb")[1], "e28"));
    drop(session);
    for survivors in [ONLY_SYNCED, EVERYTHING, 5] {
        let card = disk.survivors(survivors);
        let session = open(&card, &clock);
        let mut count = 0;
        session.each(None, |_| count += 1);
        assert_eq!((count, session.damage().len()), (29, 0), "survivors {survivors}");
    }
}

/// Report of `omir store check` on a card.
fn look(card: &CutDisk, clock: &TestClock) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    for path in card.paths() {
        let file = folder.path().join(&path);
        fs::create_dir_all(file.parent().expect("it is in the folder")).expect("a folder");
        fs::write(file, card.bytes(&path)).expect("a file");
    }
    device_key(folder.path(), || [7; 32]).expect("a key");
    let store = Store::open(folder.path(), clock.now()).expect("it is a store");
    inspect::check(&store, &mut |_| {}).expect("it is read")
}

#[test]
fn a_cut_anywhere_while_logs_are_sealed_together_loses_nothing() {
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = open(&disk, &clock);
        for day in 0..28 {
            put(&session, &entity(&format!("e{}", day % 9), &format!("day {day}")));
            if day % 5 == 2 {
                forget(&session, &format!("Entity/e{}", day % 9));
            }
            session.run_task(Task::Seal).expect("it runs");
            if day < 27 {
                clock.advance(DAY);
            }
        }
        let standing = |session: &Session| {
            let mut all = Vec::new();
            session.each(None, |bytes| all.push(bytes));
            all.sort();
            all
        };
        let before = standing(&session);
        disk.cut_at(disk.operations() + cut);
        // Now it is due; before, it could have been sealed before the cut.
        clock.advance(DAY);
        let _ = session.run_task(Task::Seal);
        let was_cut = disk.is_off();
        drop(session);
        for survivors in [ONLY_SYNCED, EVERYTHING, cut + 2, cut + 1002, cut + 2002] {
            let card = disk.survivors(survivors);
            let report = look(&card, &clock);
            let findings = &report.findings;
            assert_eq!(report.verdict(), Verdict::Sound, "cut at {cut}, {survivors}: {findings:?}");
            for again in 0..2 {
                let session = open(&card, &clock);
                assert!(session.damage().is_empty(), "cut at {cut}: {:?}", session.damage());
                assert_eq!(standing(&session), before, "cut at {cut}, {survivors}, {again}");
            }
        }
        if !was_cut {
            assert!(cut > 10, "every operation was cut: {cut}");
            return;
        }
    }
}

#[test]
fn after_a_clock_that_was_a_year_ahead_what_is_forgotten_still_goes() {
    let few =
        || Settings { seal_after: 3 * DAY, purge_after: 3 * DAY, keep_history: DAY, ..patient() };
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let open =
        || Session::open_with(Arc::new(disk.clone()), &clock, few(), None).expect("it opens");
    let session = open();
    put(&session, &entity("hall", "Hall"));
    // It followed a better one that was wrong.
    let dawn = clock.now().as_micros();
    clock.set(dawn + 365 * DAY.as_micros() as i64, true);
    put(&session, &entity("ahead", "a year too early"));
    clock.set(dawn, true);
    put(&session, &entity("medlar", "sealed, then forgotten"));
    session.seal_now(PATIENCE).expect("the disk is good");
    put(&session, &entity("quince", "forgotten before it is sealed"));
    forget(&session, "Entity/medlar");
    forget(&session, "Entity/quince");
    drop(session);
    let tell = |word: &str| disk.paths().iter().filter(|path| tells(&disk, path, word)).count();
    assert!(tell("medlar") > 1 && tell("quince") == 1);
    for day in 0..9 {
        let session = open();
        put(&session, &entity("today", &format!("day {day}")));
        session.run_task(Task::Seal).expect("it runs");
        session.compact(CompactionScope::Due).expect("the disk is good");
        drop(session);
        clock.advance(DAY);
    }
    assert_eq!((tell("medlar"), tell("quince")), (0, 0), "{:?}", disk.paths());
    assert!(check::segments(&disk).unwrap() > 0);
    let session = open();
    let mut left = Vec::new();
    session.each(None, |bytes| left.push(decode(&bytes).reference().to_string()));
    left.sort();
    assert_eq!(left, ["Entity/ahead", "Entity/hall", "Entity/today"]);
}

/// A sighting of the cup, `n` minutes after midnight.
fn cup(n: usize) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"c{n}","content":"the red cup is on the table",
        "createdAt":"2026-06-01T00:{n:02}:00Z","entityRefs":[{{"ref":"Entity/cup"}}]}}"#
    )
}

#[test]
fn what_is_the_same_gathers_and_is_written_once() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    put(&session, &entity("cup", "Cup"));
    let merged = || session.sweep_gently(&|| true).expect("the disk is good").merged;
    let versions = || {
        let status = session.status("robot");
        status.pointer("/counts/versions").and_then(omir_core::value::Value::as_u64)
    };
    for n in 0..5 {
        put(&session, &cup(n));
        clock.advance(DAY);
        assert_eq!(merged(), 0, "day {n}");
    }
    let before = versions().expect("a count");
    clock.advance(2 * DAY + HOUR);
    assert_eq!(merged(), 4);
    assert_eq!(versions(), Some(before + 1), "one version for all of them");
    // Many do not wait.
    for n in 10..26 {
        put(&session, &cup(n));
    }
    clock.advance(2 * HOUR);
    assert_eq!(merged(), 16);
    let mut left = Vec::new();
    session.each(None, |bytes| left.push(decode(&bytes).reference().to_string()));
    left.sort();
    assert_eq!(left, ["Entity/cup", "MemoryRecord/c0"]);
}

#[test]
fn accesses_outlast_the_compaction_of_where_they_were_noted() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    put(&session, &cup(1).replace(r#","entityRefs":[{"ref":"Entity/cup"}]"#, ""));
    session.seal_now(PATIENCE).expect("the disk is good");
    let query = Query { text: Some("cup".into()), touch: true, ..Query::default() };
    assert_eq!(session.recall(&query).expect("it is answered").total, 1);
    session.run_task(Task::Accesses).expect("it runs");
    put(&session, &entity("secret", "nobody may know"));
    session.seal_now(PATIENCE).expect("the disk is good");
    forget(&session, "Entity/secret");
    let accesses = |session: &Session| {
        let bytes = session.get(&"MemoryRecord/c1".parse().expect("a reference")).expect("read");
        let Resource::MemoryRecord(record) = decode(&bytes.expect("it is live")) else {
            panic!("it is a record")
        };
        record.decay.and_then(|decay| decay.access_count).map(|count| count.to_string())
    };
    let before = accesses(&session);
    assert_eq!(before.as_deref(), Some("1"));
    // Only the second segment is rewritten.
    assert_eq!(session.compact(CompactionScope::Forgotten).expect("the disk is good").forgotten, 1);
    drop(session);
    let session = open(&disk, &clock);
    assert_eq!(accesses(&session), before);
}

/// A card may be out of reach for a moment, while a log is sealed whose memories refer to what lies elsewhere.
#[test]
fn a_reference_is_not_dropped_because_what_it_means_cannot_be_read_now() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    put(&session, &entity("cup", "Cup"));
    session.seal_now(PATIENCE).expect("the disk is good");
    let first = files(&disk, ".omirb").remove(0);
    put(&session, &cup(1));
    let sidecar = first.replace(".omirb", ".par");
    disk.make_unreadable(&first);
    disk.make_unreadable(&sidecar);
    session.seal_now(PATIENCE).expect_err("the cup cannot be copied");
    assert_eq!(files(&disk, ".omirb").len(), 1);
    session.compact(CompactionScope::All).expect_err("nor can the log be sealed for that");
    disk.make_readable(&first);
    disk.make_readable(&sidecar);
    session.seal_now(PATIENCE).expect("the disk is good again");
    session.compact(CompactionScope::All).expect("the disk is good again");
    drop(session);
    let session = open(&disk, &clock);
    assert!(session.damage().is_empty(), "{:?}", session.damage());
    let bytes = session.get(&"MemoryRecord/c1".parse().expect("a reference")).expect("read");
    let Resource::MemoryRecord(record) = decode(&bytes.expect("it is live")) else {
        panic!("it is a record")
    };
    assert_eq!(record.entity_refs.map(|entities| entities.len()), Some(1));
}

/// An entity of so many levels.
fn nested(id: &str, levels: usize) -> String {
    // The resource, its extensions, the extension, and what it holds.
    let inner = levels - 3;
    let deep = format!("{}{}", "[".repeat(inner), "]".repeat(inner));
    format!(
        r#"{{"resourceType":"Entity","id":"{id}","name":"{id}",
            "extension":[{{"url":"urn:example:deep","valueJson":{deep}}}]}}"#
    )
}

fn deep(max_depth: usize) -> Settings {
    let limits = RequestLimits { max_depth, ..RequestLimits::default() };
    Settings { limits, ..settings() }
}

fn damaged_files(session: &Session) -> u64 {
    let status = session.status("rover");
    let files = status.get("disk").and_then(|disk| disk.get("damagedFiles")).expect("it is told");
    files.to_string().parse().expect("a count")
}

/// As deep as any configuration lets in, and superseded: in a segment it lies deepest.
#[test]
fn what_is_accepted_at_the_deepest_is_sealed_and_read_again() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let open = || {
        let disk = Arc::new(disk.clone());
        Session::open_with(disk, &clock, deep(DEEPEST), None).expect("it opens")
    };
    let session = open();
    put(&session, &nested("a", DEEPEST));
    put(&session, &nested("a", DEEPEST).replace(r#""name":"a""#, r#""name":"b""#));
    let one_too_deep = nested("c", DEEPEST + 1);
    let refused = session.prepare(one_too_deep.as_bytes(), Encoding::Json, None);
    assert_eq!(refused.expect_err("it is too deep").code, Code::TooLarge);
    session.compact(CompactionScope::All).expect("it is sealed and compacted");
    assert_eq!(damaged_files(&session), 0);
    drop(session);
    assert!(!files(&disk, ".omirb").is_empty());
    let session = open();
    assert_eq!(session.live(), 1);
    assert_eq!(damaged_files(&session), 0);
}

/// Deeper than any configuration lets in: superseded it can be in no segment. It stays in its log, and is served.
#[test]
fn what_no_segment_can_hold_is_told_and_nothing_is_lost_for_it() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let most = Limits::default().max_depth;
    let settings = deep(most);
    let open = || {
        let disk = Arc::new(disk.clone());
        Session::open_with(disk, &clock, settings.clone(), None).expect("it opens")
    };
    let session = open();
    put(&session, &entity("before", "before"));
    put(&session, &nested("deep", most - 2));
    put(&session, &nested("deep", most - 2).replace(r#""name":"deep""#, r#""name":"again""#));
    put(&session, &entity("after", "after"));
    for _ in 0..2 {
        session.compact(CompactionScope::All).expect_err("it is not sealed");
        let status = session.status("rover");
        let state = status.get("disk").and_then(|disk| disk.get("state"));
        assert_eq!(state, Some(&omir_core::value::Value::from("stuck")), "it is told");
    }
    put(&session, &entity("later", "later"));
    assert_eq!(session.live(), 4);
    drop(session);
    assert_eq!(files(&disk, ".damaged").len(), 0);
    let session = open();
    assert_eq!((session.live(), damaged_files(&session)), (4, 0));
    for id in ["before", "deep", "after", "later"] {
        let stored = session.get(&format!("Entity/{id}").parse().unwrap());
        assert!(stored.expect("it is read").is_some(), "{id}");
    }
}
