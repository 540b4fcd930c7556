//! First versions that are lost: they have no second copy, and what is left of the damaged bytes names them, at each start.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use omir_core::reference::Ref;
use omir_core::value::Value;
use omird_store::decode_resource;

use crate::ingest::request::Encoding;
use crate::testing::{ByHand, lose, parts};
use crate::{
    Asks, Change, Code, CompactionScope, CountBy, Effect, Engine, Lookup, Moment, Parts,
    Precondition, Query, Settings,
};

const LONG: Duration = Duration::from_secs(60);
const IDS: [&str; 5] = ["a0", "a1", "a2", "a3", "a4"];

fn open(dir: &Path) -> Engine {
    Engine::open(parts(dir), &mut |_| {}).unwrap()
}

fn remember(engine: &Engine, id: &str, condition: Option<Precondition>) -> Result<u64, Code> {
    let json = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"thing {id}"}}"#);
    let change = engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
    let change = match condition {
        Some(condition) => change.only_if(condition),
        None => change,
    };
    engine.execute(change).map(|receipt| receipt.seq).map_err(|error| error.code)
}

fn file(dir: &Path, folder: &str, end: &str) -> PathBuf {
    let names = fs::read_dir(dir.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        names.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("{folder}: {end}"))
}

/// Turns two bits in the name of a thing, which no checksum restores.
fn hurt(path: &Path, id: &str) {
    let mut bytes = fs::read(path).unwrap();
    let text = format!("thing {id}");
    let at = bytes.windows(text.len()).rposition(|window| window == text.as_bytes()).unwrap();
    bytes[at] ^= 1;
    bytes[at + 3] ^= 2;
    fs::write(path, bytes).unwrap();
}

fn status(engine: &Engine, pointer: &str) -> Value {
    engine.status("rover").pointer(pointer).cloned().unwrap()
}

/// What is lost is refused, and nothing else, at this start and the next ones, whatever is sealed in between.
fn assert_missed(dir: &Path, lost: &[&str], damaged: &str) {
    for start in 0..3 {
        let engine = open(dir);
        for id in IDS {
            let found = engine.get(&format!("Entity/{id}").parse().unwrap());
            match lost.contains(&id) {
                false => assert!(found.unwrap().is_some(), "{id} at {start}"),
                true => {
                    let refused = found.expect_err(&format!("{id} is lost, {start}"));
                    assert_eq!(refused.code, Code::Internal);
                    let explained = engine.explain(&format!("Entity/{id}").parse().unwrap());
                    assert_eq!(explained.unwrap().get("unreadable"), Some(&Value::Bool(true)));
                }
            }
        }
        assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(lost.len() as u64), "{start}");
        assert_eq!(status(&engine, "/disk/damagedFiles").as_u64(), Some(1), "{start}");
        let hint = status(&engine, "/disk/hint");
        let named = hint.as_str().and_then(|hint| hint.split(": ").next()).unwrap();
        assert_eq!(named.strip_suffix(".damaged").unwrap_or(named), damaged, "{start}: {hint:?}");
        assert_eq!(engine.get(&"Entity/never".parse().unwrap()), Ok(None));
        let unknown = engine.explain(&"Entity/never".parse().unwrap()).unwrap_err();
        assert_eq!(unknown.code, Code::NotFound);
        assert!(unknown.message.contains("names cannot be read"), "{unknown}");
        engine.seal_now(LONG).unwrap();
        engine.stop();
    }
    let engine = open(dir);
    let back = lost[0];
    // Nothing keeps the name: a protocol that finds it absent writes it again.
    let name = format!("Entity/{back}").parse().unwrap();
    assert_eq!(engine.live_version(&name), None);
    assert_eq!(remember(&engine, back, Some(Precondition::Live)), Err(Code::Conflict));
    remember(&engine, back, Some(Precondition::Absent)).unwrap();
    engine.stop();
    let engine = open(dir);
    let (_, version) =
        engine.get_versioned(&format!("Entity/{back}").parse().unwrap()).unwrap().unwrap();
    assert_eq!(version, 2, "no number is given twice");
    assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(lost.len() as u64 - 1));
    engine.stop();
}

#[test]
fn a_lost_name_can_be_forgotten() {
    let dir = stored(true);
    hurt(&file(dir.path(), "segments", ".omirb"), "a2");
    fs::write(file(dir.path(), "segments", ".par"), "").unwrap();
    let name: Ref = "Entity/a2".parse().unwrap();
    let engine = open(dir.path());
    assert_eq!(engine.get(&name).unwrap_err().code, Code::Internal);
    let receipt = engine.execute(Change::Forget(vec![name.clone(), name.clone()])).unwrap();
    assert!(matches!(receipt.effect, Effect::Forgotten(1)), "{:?}", receipt.effect);
    for _ in 0..2 {
        assert_eq!(engine.get(&name), Ok(None));
        assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(0));
        engine.seal_now(LONG).unwrap();
    }
    engine.stop();
    let engine = open(dir.path());
    assert_eq!(engine.get(&name), Ok(None));
    assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(0), "nobody misses it any more");
    engine.stop();
}

#[test]
fn the_version_before_a_lost_one_is_not_served_though_its_second_copy_is_lost_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for id in IDS {
        remember(&engine, id, None).unwrap();
    }
    let newer = r#"[{"resourceType":"Entity","id":"a1","name":"newer a1"},
        {"resourceType":"Entity","id":"a2","name":"newer a2"},
        {"resourceType":"Entity","id":"a5","name":"newer a5"}]"#;
    engine.execute(engine.prepare(newer.as_bytes(), Encoding::Json, None).unwrap()).unwrap();
    engine.seal_now(LONG).unwrap();
    engine.stop();
    lose(dir.path(), "newer a");
    for start in 0..3 {
        let engine = open(dir.path());
        for id in ["a1", "a2", "a5"] {
            let name = format!("Entity/{id}").parse().unwrap();
            let refused = engine.get(&name).expect_err(&format!("{id} is lost, {start}"));
            assert_eq!(refused.code, Code::Internal);
        }
        assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(3), "{start}");
        assert!(engine.get(&"Entity/a0".parse().unwrap()).unwrap().is_some());
        // Answers about all matches count no version that is out of date, and say so.
        let asks = Asks { count: true, ..Asks::default() };
        let counted = engine.recall(&Query { asks, ..Query::everything() }).unwrap();
        assert_eq!((counted.total, counted.unreadable), (3, 2), "{start}");
        let asks = Asks { count_by: Some(CountBy::Day), ..Asks::default() };
        let by_day = engine.recall(&Query { asks, ..Query::everything() }).unwrap();
        assert_eq!((by_day.total, by_day.unreadable), (3, 2), "{start}");
        for lost in ["Entity/a1", "Entity/a5"] {
            let after = Some(Moment::Of(lost.parse().unwrap()));
            let refused = engine.recall(&Query { after, ..Query::everything() }).unwrap_err();
            assert_eq!((refused.code, refused.path.as_str()), (Code::Internal, "/after"), "{lost}");
        }
        engine.seal_now(LONG).unwrap();
        engine.stop();
    }
    let engine = open(dir.path());
    remember(&engine, "a1", None).unwrap();
    let (_, version) = engine.get_versioned(&"Entity/a1".parse().unwrap()).unwrap().unwrap();
    assert_eq!(version, 3, "no number is given twice");
    engine.stop();
}

#[test]
fn a_copy_is_not_taken_for_an_entry_that_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for id in ["c0", "c1", "a0"] {
        remember(&engine, id, None).unwrap();
    }
    engine.seal_now(LONG).unwrap();
    let near = r#"{"resourceType":"Relationship","id":"r","from":{"ref":"Entity/c0"},
        "to":{"ref":"Entity/c1"},"relationType":"near","createdAt":"2026-05-01T00:00:00Z"}"#;
    let newer = r#"{"resourceType":"Entity","id":"a0","name":"newer a0"}"#;
    for resource in [near, newer] {
        engine.execute(engine.prepare(resource.as_bytes(), Encoding::Json, None).unwrap()).unwrap();
    }
    engine.seal_now(LONG).unwrap();
    engine.stop();
    let segment = file(dir.path(), "segments", ".omirb");
    let mut bytes = fs::read(&segment).unwrap();
    let id = b"\x62id\x62a0";
    let at = bytes.windows(id.len()).rposition(|part| part == id).unwrap();
    bytes[at + 4] ^= 0x80;
    fs::write(&segment, bytes).unwrap();
    fs::write(file(dir.path(), "segments", ".par"), "").unwrap();
    let engine = open(dir.path());
    for id in ["c0", "c1"] {
        let name = format!("Entity/{id}").parse().unwrap();
        assert!(engine.get(&name).unwrap().is_some(), "{id} is whole");
    }
    assert!(status(&engine, "/counts/lost").as_u64() <= Some(1));
    engine.stop();
}

/// A relationship of a thing that is lost, and of one that is not.
fn related(dir: &Path) -> Engine {
    let engine = open(dir);
    remember(&engine, "a0", None).unwrap();
    remember(&engine, "a1", None).unwrap();
    engine.seal_now(LONG).unwrap();
    let relationship = r#"{"resourceType":"Relationship","id":"r","from":{"ref":"Entity/a0"},
        "to":{"ref":"Entity/a1"},"relationType":"near","createdAt":"2026-05-01T00:00:00Z"}"#;
    let change = engine.prepare(relationship.as_bytes(), Encoding::Json, None).unwrap();
    engine.execute(change).unwrap();
    engine.stop();
    lose(dir, "thing a0");
    open(dir)
}

#[test]
fn the_relationships_of_a_lost_thing_are_forgotten_with_it_and_never_dropped_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (thing, relationship): (Ref, Ref) =
        ("Entity/a0".parse().unwrap(), "Relationship/r".parse().unwrap());
    let engine = related(dir.path());
    assert!(matches!(engine.look_up(&thing), Ok(Lookup::Lost(_))));
    assert!(!engine.may_refer_to(&thing));
    for _ in 0..2 {
        engine.seal_now(LONG).unwrap();
        // It refuses the damaged segment.
        let _ = engine.compact(CompactionScope::All);
        assert!(engine.get(&relationship).unwrap().is_some(), "nobody forgot it");
    }
    let receipt = engine.execute(Change::Forget(vec![thing.clone()])).unwrap();
    assert!(matches!(receipt.effect, Effect::Forgotten(2)), "{:?}", receipt.effect);
    for start in 0..3 {
        let engine = if start == 0 { engine.clone() } else { open(dir.path()) };
        for name in [&thing, &relationship] {
            assert_eq!(engine.get(name), Ok(None), "{name} at {start}");
            assert_eq!(engine.live_version(name), None);
        }
        assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(0), "{start}");
        engine.seal_now(LONG).unwrap();
        let _ = engine.compact(CompactionScope::All);
        engine.stop();
    }
}

#[test]
fn what_mentions_a_lost_thing_still_does_once_it_is_written_anew() {
    for with_tombstone in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path());
        for id in ["a0", "a1", "a2"] {
            remember(&engine, id, None).unwrap();
        }
        if with_tombstone {
            engine.execute(Change::Forget(vec!["Entity/a2".parse().unwrap()])).unwrap();
        }
        engine.seal_now(LONG).unwrap();
        let put = |id: &str| {
            let record = format!(
                r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} is there",
                "entityRefs":[{{"ref":"Entity/a0"}},{{"ref":"Entity/a1"}}]}}"#
            );
            engine
                .execute(engine.prepare(record.as_bytes(), Encoding::Json, None).unwrap())
                .unwrap();
        };
        put("sealed");
        engine.seal_now(LONG).unwrap();
        put("in-a-log");
        engine.stop();
        lose(dir.path(), "thing a0");
        let mention = Query { entities: vec!["Entity/a0".parse().unwrap()], ..Query::everything() };
        for start in 0..3 {
            let engine = open(dir.path());
            assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(1), "{start}");
            for id in ["sealed", "in-a-log"] {
                let name: Ref = format!("MemoryRecord/{id}").parse().unwrap();
                if start == 1 {
                    engine.execute(Change::Anchor(name.clone(), true)).unwrap();
                }
                let stored = decode_resource(&engine.get(&name).unwrap().unwrap()).unwrap();
                let mut mentions = 0;
                stored.for_each_reference(|_, _, _| mentions += 1);
                assert_eq!(mentions, 2, "{id} at {start}, {with_tombstone}");
            }
            assert_eq!(engine.recall(&mention).unwrap().total, 2, "{start}");
            engine.seal_now(LONG).unwrap();
            let _ = engine.compact(CompactionScope::All);
            engine.stop();
        }
        let engine = open(dir.path());
        remember(&engine, "a0", None).unwrap();
        assert_eq!(engine.recall(&mention).unwrap().total, 2);
        engine.stop();
    }
}

#[test]
fn what_was_forgotten_is_not_lost_again_while_a_damaged_file_names_it() {
    let dir = stored(true);
    let path = file(dir.path(), "segments", ".omirb");
    // Nothing of its own tells where its parts lie.
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    fs::write(file(dir.path(), "segments", ".par"), "").unwrap();
    let settings = Settings { keep_history: Duration::ZERO, ..Settings::default() };
    let open =
        || Engine::open(Parts { settings: settings.clone(), ..parts(dir.path()) }, &mut |_| {});
    let engine = open().unwrap();
    let lost: Vec<Ref> = IDS
        .iter()
        .map(|id| format!("Entity/{id}").parse().unwrap())
        .filter(|name| engine.get(name).is_err())
        .collect();
    assert!(!lost.is_empty());
    engine.execute(Change::Forget(lost.clone())).unwrap();
    for start in 0..3 {
        let engine = if start == 0 { engine.clone() } else { open().unwrap() };
        assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(0), "{start}");
        assert!(lost.iter().all(|name| engine.get(name) == Ok(None)), "{start}");
        remember(&engine, &format!("b{start}"), None).unwrap();
        engine.seal_now(LONG).unwrap();
        engine.compact(CompactionScope::All).unwrap();
        engine.stop();
    }
}

#[test]
fn ids_within_a_memory_and_words_like_them_are_no_names() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let things = [
        // As the handles of protocols have it.
        r#"{"resourceType":"Entity","id":"ca.a1","name":"thing a1","attributes":{"id":"a1"}}"#,
        // `bid` holds the bytes of the key `id`, and `i` those of a text of nine.
        r#"{"resourceType":"MemoryRecord","id":"door","content":"thing door is a bidirectional one"}"#,
    ];
    for thing in things {
        engine.execute(engine.prepare(thing.as_bytes(), Encoding::Json, None).unwrap()).unwrap();
    }
    engine.seal_now(LONG).unwrap();
    engine.stop();
    let segment = file(dir.path(), "segments", ".omirb");
    hurt(&segment, "a1");
    hurt(&segment, "door");
    fs::write(file(dir.path(), "segments", ".par"), "").unwrap();
    for _ in 0..2 {
        let engine = open(dir.path());
        let get = |name: &str| engine.get(&name.parse().unwrap());
        for lost in ["Entity/ca.a1", "MemoryRecord/door"] {
            assert_eq!(get(lost).unwrap_err().code, Code::Internal, "{lost}");
        }
        for other in ["Entity/a1", "MemoryRecord/rectional"] {
            assert_eq!(get(other), Ok(None), "{other}");
        }
        assert_eq!(status(&engine, "/counts/lost").as_u64(), Some(2));
        engine.stop();
    }
}

/// A store of all things, in a segment or in a log that is written on.
fn stored(is_sealed: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    if !is_sealed {
        // The first stop leaves a segment.
        let engine = open(dir.path());
        remember(&engine, "first", None).unwrap();
        engine.stop();
    }
    let engine = open(dir.path());
    for id in IDS {
        remember(&engine, id, None).unwrap();
    }
    if is_sealed {
        engine.seal_now(LONG).unwrap();
    }
    engine.stop();
    dir
}

#[test]
fn what_a_damaged_segment_lost_is_missed_at_each_start() {
    let dir = stored(true);
    let segment = file(dir.path(), "segments", ".omirb");
    hurt(&segment, "a2");
    fs::write(file(dir.path(), "segments", ".par"), "").unwrap();
    assert_missed(dir.path(), &["a2"], "segments/0000000001.omirb");
}

#[test]
fn what_a_segment_held_that_is_set_aside_is_missed_at_each_start() {
    let dir = stored(true);
    let segment = file(dir.path(), "segments", ".omirb");
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.windows(8).rposition(|window| window == b"firstSeq").unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    fs::write(file(dir.path(), "segments", ".par"), "").unwrap();
    assert_missed(dir.path(), &IDS, "segments/0000000001.omirb");
}

#[test]
fn what_a_damaged_log_lost_is_missed_at_each_start() {
    let dir = stored(false);
    let log = file(dir.path(), "wal", ".wal");
    hurt(&log, "a2");
    let name = format!("wal/{}", log.file_name().unwrap().to_string_lossy());
    assert_missed(dir.path(), &["a2"], &name);
}

#[test]
fn a_whole_log_is_not_named_where_the_segment_before_it_is_missing() {
    let dir = stored(true);
    let engine = open(dir.path());
    remember(&engine, "later", None).unwrap();
    engine.stop();
    fs::remove_file(file(dir.path(), "segments", ".omirb")).unwrap();
    let engine = open(dir.path());
    let files: Vec<_> = engine.damage().iter().map(|damage| damage.file.as_str()).collect();
    assert_eq!(files, ["segments/0000000001.omirb"], "{:?}", engine.damage());
    engine.stop();
}
