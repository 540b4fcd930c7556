//! A small store made by the real engine, brought up on one thread and on several.

use std::fs;
use std::path::Path;
use std::time::Duration;

use omir_core::spatial::SPATIAL_POSE_URL;

use omir_core::instant::Timestamp;
use omird_store::format::segment;
use omird_store::{Cache, Log, Op, RecordedOrigin, Transaction, device_key, recover, recover_on};

use crate::disk::Folder;
use crate::index::catalog::Catalog;
use crate::index::text::Scratch;
use crate::ingest::request::Encoding;
use crate::settings::{FlashSettings, Settings};
use crate::testing::parts;
use crate::{Engine, Parts};

fn open(dir: &Path) -> Engine {
    let parts = Parts {
        key: device_key(dir, || [7; 32]).unwrap(),
        settings: Settings {
            segment_bytes: 2500,
            touch_interval: Duration::ZERO,
            flash: FlashSettings { reserve_bytes: 0, ..FlashSettings::default() },
            ..Settings::default()
        },
        ..parts(dir)
    };
    Engine::open(parts, &mut |_| {}).unwrap()
}

/// An entity in its turn: some come again, and each is somewhere.
fn entity(turn: usize) -> String {
    let (name, words) = (turn % 40, ["kettle", "ladder", "charger"][turn % 3]);
    format!(
        r#"{{"resourceType":"Entity","id":"e{name}","name":"{words} {turn}","salience":0.{},
            "extension":[{{"url":"{SPATIAL_POSE_URL}","valueJson":
                {{"frame":"map","position":[{turn},{name},0]}}}}]}}"#,
        turn % 10
    )
}

/// Segments, one of them damaged, and logs that are not sealed.
fn stored() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for turn in 0..60 {
        let change = engine.prepare(entity(turn).as_bytes(), Encoding::Json, None).unwrap();
        engine.execute(change).unwrap();
    }
    engine.stop();
    let disk = Folder::new(dir.path());
    let found = recover::<Catalog>(&disk, &mut Cache::none(), 1 << 20, &mut |_| {}).unwrap();
    let (mut log, mut seq) = (found.log, found.next_seq);
    for turn in 60..90 {
        let value = omir_core::json::from_slice(entity(turn).as_bytes(), &Default::default());
        let resource = omir_core::cbor::to_vec(&value.unwrap());
        let op = match turn % 7 {
            0 => Op::Forget {
                target: format!("Entity/e{}", turn % 40).parse().unwrap(),
                version: 9,
                who: RecordedOrigin::User,
            },
            // This one cannot be read.
            1 => Op::Put { version: 9, resource: vec![0x60] },
            _ => Op::Put { version: 9, resource },
        };
        let at = Timestamp::from_micros(found.latest.as_micros() + turn as i64);
        let mut payload = Vec::new();
        Transaction { seq, at, ops: vec![op] }.encode(&mut payload);
        log.stage(&payload);
        seq += 1;
        if turn == 75 {
            log.write().unwrap();
            log = Log::create(&disk, log.number() + 1, seq).unwrap();
        }
    }
    log.write().unwrap();
    let damaged = dir.path().join(segment::path(2));
    let mut bytes = fs::read(&damaged).unwrap();
    let at = bytes.windows(6).position(|word| word == b"kettle").unwrap();
    bytes[at] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    dir
}

/// All that a start finds, as text.
fn state(dir: &Path, threads: usize) -> String {
    let disk = Folder::new(dir);
    let found =
        recover_on::<Catalog>(&disk, &mut Cache::none(), 1 << 20, &mut |_| {}, threads).unwrap();
    let (mut near, mut said) = (Vec::new(), Vec::new());
    let catalog = &found.catalog;
    catalog.places.index().within("map", (30.0, 20.0, None), 25.0, |doc| near.push(doc));
    near.sort_unstable();
    let query = catalog.text.query(&"ladder 44 charger".into());
    catalog.text.candidates(&query, &mut Scratch::new(), |doc, score| said.push((doc, score)));
    assert!(!near.is_empty() && !said.is_empty(), "{near:?} {said:?}");
    assert_eq!(found.unsealed.len(), 1);
    assert!(found.segments.len() > 5 && found.damage.len() > 2, "{:?}", found.damage);
    let index = (catalog.docs(), catalog.counts.live(), near, said);
    let log = (found.log.number(), found.log_first, found.log_has_changes, &found.unsealed);
    let store = (found.next_seq, found.next_segment, found.previous, &found.segments);
    let rest = (found.boots, &found.mark, found.latest, &found.damage, &found.leftovers);
    format!("{index:#?} {log:#?} {store:#?} {rest:#?}")
}

#[test]
fn the_same_files_give_the_same_store_whatever_the_threads_do() {
    let dir = stored();
    let alone = state(dir.path(), 1);
    for threads in [2, 3, 3, 8] {
        assert_eq!(state(dir.path(), threads), alone, "{threads} threads");
    }
}
