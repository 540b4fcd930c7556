//! Logs that are deleted under a running daemon: an open file takes everything also without a name.
//!
//! Invariants 1 and 10 of ARCHITECTURE.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::event::EventKind;
use omir_core::value::Value;
use parking_lot::Mutex;

use crate::ingest::request::Encoding;
use crate::testing::{ByHand, parts};
use crate::write::orders::Task;
use crate::{Code, Engine, Error};

/// Long enough for any machine.
const LONG: Duration = Duration::from_secs(60);

fn open(dir: &Path) -> Engine {
    Engine::open(parts(dir), &mut |_| {}).unwrap()
}

fn remember(engine: &Engine, id: &str) -> Result<(), Error> {
    let json = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"a thing"}}"#);
    let change = engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
    engine.execute(change).map(drop)
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir.join("wal")).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|end| end == "wal")).collect();
    logs.sort();
    logs
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a daemon that is killed now leaves, opened by the next: all of `ids` must be there.
fn assert_a_start_finds(dir: &Path, ids: &[&str]) {
    let card = tempfile::tempdir().unwrap();
    for folder in ["wal", "segments"] {
        fs::create_dir(card.path().join(folder)).unwrap();
        for entry in fs::read_dir(dir.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, card.path().join(folder).join(path.file_name().unwrap())).unwrap();
        }
    }
    let engine = open(card.path());
    assert!(engine.damage().is_empty(), "{:?}", engine.damage());
    for id in ids {
        assert!(engine.get(&format!("Entity/{id}").parse().unwrap()).unwrap().is_some(), "{id}");
    }
    engine.stop();
}

fn repairs(engine: &Engine) -> Option<u64> {
    engine.status("rover").pointer("/disk/repairs").and_then(Value::as_u64)
}

#[test]
fn a_log_that_is_deleted_while_it_is_written_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let told: Arc<Mutex<Vec<(EventKind, String)>>> = Arc::default();
    let teller = told.clone();
    engine.on_finding(Box::new(move |finding| {
        teller.lock().push((finding.kind, finding.file.clone()));
    }));
    remember(&engine, "before").unwrap();
    let first = logs(dir.path()).pop().unwrap();
    // With its witness, as by `rm wal/*`.
    fs::remove_file(&first).unwrap();
    fs::remove_file(first.with_extension("facts")).unwrap();
    remember(&engine, "after").unwrap();
    assert_a_start_finds(dir.path(), &["before", "after"]);
    assert_eq!(repairs(&engine), Some(1));
    let name = format!("wal/{}", first.file_name().unwrap().to_string_lossy());
    assert_eq!(*told.lock(), [(EventKind::Repaired, name)]);

    // While no change comes in; moved away, with another file in its place.
    wait_until("a new log has a witness", || logs(dir.path()).len() == 2);
    let second = logs(dir.path()).pop().unwrap();
    fs::rename(&second, dir.path().join("moved")).unwrap();
    fs::write(&second, "not ours").unwrap();
    wait_until("it is noticed by itself", || repairs(&engine) == Some(2));
    assert_a_start_finds(dir.path(), &["before", "after"]);
    let replaced = PathBuf::from(format!("{}.replaced", second.display()));
    assert_eq!(fs::read_to_string(replaced).unwrap(), "not ours");

    // One that waits to be sealed.
    wait_until("the second log is closed", || logs(dir.path()).len() == 3);
    fs::remove_file(&first).unwrap();
    engine.run_task(Task::Seal).unwrap();
    wait_until("a closed one is noticed", || repairs(&engine) == Some(3));
    assert_a_start_finds(dir.path(), &["before", "after"]);
    engine.seal_now(LONG).unwrap();
    engine.stop();
    assert_a_start_finds(dir.path(), &["before", "after"]);
}

#[test]
fn a_copy_in_the_place_of_a_log_is_the_log_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    remember(&engine, "before").unwrap();
    let log = logs(dir.path()).pop().unwrap();
    let bytes = fs::read(&log).unwrap();
    fs::remove_file(&log).unwrap();
    fs::write(&log, bytes).unwrap();
    remember(&engine, "after").unwrap();
    assert_eq!(repairs(&engine), Some(0));
    assert_eq!(logs(dir.path()), std::slice::from_ref(&log));
    assert!(!PathBuf::from(format!("{}.replaced", log.display())).exists());
    for id in ["before", "after"] {
        let name = format!("Entity/{id}").parse().unwrap();
        assert!(engine.get(&name).unwrap().is_some(), "readers have the handle of the copy");
    }
    assert_a_start_finds(dir.path(), &["before", "after"]);
    engine.seal_now(LONG).unwrap();
    engine.stop();
}

#[test]
fn nothing_is_acknowledged_while_a_deleted_log_cannot_be_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    remember(&engine, "before").unwrap();
    let wal = dir.path().join("wal");
    fs::remove_dir_all(&wal).unwrap();
    fs::write(&wal, "a file in the place of the folder").unwrap();
    let refused = remember(&engine, "during").unwrap_err();
    assert_eq!(refused.code, Code::Internal);
    assert!(refused.message.contains("was deleted"), "{refused}");
    assert_eq!(engine.card_state().as_str(), "failing");
    assert!(engine.get(&"Entity/before".parse().unwrap()).unwrap().is_some(), "still served");
    fs::remove_file(&wal).unwrap();
    wait_until("it is tried again by itself", || engine.card_state().as_str() == "ok");
    remember(&engine, "after").unwrap();
    assert_a_start_finds(dir.path(), &["before", "after"]);
    assert!(engine.get(&"Entity/during".parse().unwrap()).unwrap().is_none());
    engine.stop();
}
