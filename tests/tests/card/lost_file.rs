//! A file that is gone altogether: somebody deleted it, or the card lost its name.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::path::Path;
use std::time::{Duration, Instant};

use omird::engine::testing::ByHand;
use omird::engine::{Encoding, Engine, Parts};
use omird::store::SledStore;
use omird_tests::folder::{copy, parts};

/// Bytes of a witness that says nothing.
const WITNESS_HEADER: u64 = 24;

fn open(data: &Path) -> Engine {
    let parts = Parts { index: Some(SledStore::boxed(&data.join("index"))), ..parts(data) };
    Engine::open(parts, &mut |_| {}).unwrap()
}

fn remember(engine: &Engine, id: &str, name: &str) -> u64 {
    let entity = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"{name}"}}"#);
    let change = engine.prepare(entity.as_bytes(), Encoding::Json, None).unwrap();
    engine.execute(change).unwrap().seq
}

#[test]
fn the_last_segment_is_missed_and_its_numbers_are_not_given_out_again() {
    let data = tempfile::tempdir().unwrap();
    let engine = open(data.path());
    let sealed = |engine: &Engine| engine.seal_now(Duration::from_secs(60)).unwrap();
    remember(&engine, "first", "one");
    sealed(&engine);
    let lost = remember(&engine, "second", "two");
    sealed(&engine);
    engine.stop();
    std::fs::remove_file(data.path().join("segments/0000000002.omirb")).unwrap();

    let engine = open(data.path());
    assert_eq!(engine.damage().len(), 1, "{:?}", engine.damage());
    assert!(engine.get(&"Entity/first".parse().unwrap()).unwrap().is_some());
    assert!(engine.get(&"Entity/second".parse().unwrap()).unwrap().is_none());
    assert!(remember(&engine, "third", "three") > lost);
    engine.stop();
}

#[test]
fn a_log_that_is_gone_is_missed_at_each_start() {
    let data = tempfile::tempdir().unwrap();
    let engine = open(data.path());
    remember(&engine, "first", "four");
    engine.seal_now(Duration::from_secs(60)).unwrap();
    remember(&engine, "second", "five");
    // A witness tells of newer versions; of first ones only when its log is closed.
    let lost = remember(&engine, "second", "six");
    let of = |folder: &Path, end: &str| {
        let mut logs =
            std::fs::read_dir(folder.join("wal")).unwrap().map(|file| file.unwrap().path());
        logs.find(|path| path.to_string_lossy().ends_with(end)).unwrap_or_else(|| panic!("{end}"))
    };
    let told = || std::fs::metadata(of(data.path(), ".facts")).unwrap().len();
    let began = Instant::now();
    while told() <= WITNESS_HEADER {
        assert!(began.elapsed() < Duration::from_secs(30), "it is never durable");
        std::thread::sleep(Duration::from_millis(10));
    }
    // As at a kill: nothing is sealed.
    let card = tempfile::tempdir().unwrap();
    copy(data.path(), card.path()).unwrap();
    engine.stop();
    std::fs::remove_file(of(card.path(), ".wal")).unwrap();
    let second = "Entity/second".parse().unwrap();
    for start in 0..3 {
        let engine = open(card.path());
        let told: Vec<_> = engine.damage().iter().map(|damage| damage.message.as_str()).collect();
        let says =
            if start == 0 { "is missing" } else { "the newest version of 1 memories is lost" };
        assert!(told.iter().any(|told| told.contains(says)), "{start}: {told:?}");
        assert!(engine.get(&"Entity/first".parse().unwrap()).unwrap().is_some());
        let why = engine.get(&second).expect_err("it is lost, and was not forgotten");
        assert!(why.to_string().contains("version 2"), "{start}: {why}");
        assert!(remember(&engine, "third", &start.to_string()) > lost, "no number is given twice");
        engine.stop();
    }
    of(card.path(), ".wal.damaged");
}
