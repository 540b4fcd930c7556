//! The time at which a memory was forgotten, wherever its tombstone lies by now.

use std::time::Duration;

use omir_core::reference::Ref;
use omir_core::value::Value;

use crate::ingest::request::Encoding;
use crate::testing::{ByHand, TestClock, parts};
use crate::write::command::Change;
use crate::{CompactionScope, Engine, Parts};

#[test]
fn a_tombstone_keeps_its_time_when_its_log_is_sealed_and_compacted() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let open = || {
        let parts = Parts { clock: clock.clone(), ..parts(dir.path()) };
        Engine::open(parts, &mut |_| {}).unwrap()
    };
    let remember = |engine: &Engine, id: &str, name: &str| {
        let json = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"{name}"}}"#);
        engine.execute(engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap()).unwrap();
        clock.advance(Duration::from_secs(60));
    };
    let (door, cup): (Ref, Ref) = ("Entity/door".parse().unwrap(), "Entity/cup".parse().unwrap());
    let told = |engine: &Engine| {
        [&door, &cup].map(|target| {
            let told = engine.explain(target).unwrap();
            assert_eq!(told.get("forgotten"), Some(&Value::Bool(true)));
            told.get("forgottenAt").and_then(Value::as_str).map(str::to_owned)
        })
    };
    let engine = open();
    // Of the door an older version lies in an earlier segment; of the cup all is in one log.
    remember(&engine, "door", "shut");
    engine.seal_now(Duration::from_secs(60)).unwrap();
    remember(&engine, "door", "open");
    remember(&engine, "cup", "red");
    engine.execute(Change::Forget(vec![door.clone(), cup.clone()])).unwrap();
    let expected = told(&engine);
    assert!(expected.iter().all(Option::is_some), "{expected:?}");
    clock.advance(Duration::from_secs(60));
    remember(&engine, "hall", "long");
    engine.seal_now(Duration::from_secs(60)).unwrap();
    assert_eq!(told(&engine), expected, "sealed");
    engine.stop();

    let engine = open();
    assert_eq!(told(&engine), expected, "sealed, after a start");
    engine.compact(CompactionScope::Forgotten).unwrap();
    assert_eq!(told(&engine), expected, "compacted");
    engine.stop();
    let engine = open();
    assert_eq!(told(&engine), expected, "compacted, after a start");
    engine.stop();
}
