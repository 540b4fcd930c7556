//! A file that is gone altogether: somebody deleted it, or the card lost its name.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::time::Duration;

use omird::engine::testing::ByHand;
use omird::engine::{Encoding, Engine, Parts};
use omird::store::SledStore;
use omird_tests::folder::parts;

fn open(data: &std::path::Path) -> Engine {
    let parts = Parts { index: Some(SledStore::boxed(&data.join("index"))), ..parts(data) };
    Engine::open(parts, &mut |_| {}).unwrap()
}

fn remember(engine: &Engine, id: &str) -> u64 {
    let entity = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"{id}"}}"#);
    let change = engine.prepare(entity.as_bytes(), Encoding::Json, None).unwrap();
    engine.execute(change).unwrap().seq
}

#[test]
fn the_last_segment_is_missed_and_its_numbers_are_not_given_out_again() {
    let data = tempfile::tempdir().unwrap();
    let engine = open(data.path());
    let sealed = |engine: &Engine| engine.seal_now(Duration::from_secs(60)).unwrap();
    remember(&engine, "first");
    sealed(&engine);
    let lost = remember(&engine, "second");
    sealed(&engine);
    engine.stop();
    std::fs::remove_file(data.path().join("segments/0000000002.omirb")).unwrap();

    let engine = open(data.path());
    assert_eq!(engine.damage().len(), 1, "{:?}", engine.damage());
    assert!(engine.get(&"Entity/first".parse().unwrap()).unwrap().is_some());
    assert!(engine.get(&"Entity/second".parse().unwrap()).unwrap().is_none());
    assert!(remember(&engine, "third") > lost);
    engine.stop();
}
