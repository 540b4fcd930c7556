//! Small stores made by the real engine, damaged file by file.

mod compaction;
mod damage;
mod logs;
mod repair;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use omir_core::cbor;
use omir_core::confidence::{FeedbackOutcome, Weight};
use omir_core::instant::Timestamp;
use omir_core::validate::{Level, validate_bundle};
use omird_store::format::manifest::URL;
use omird_store::format::signature::{Contents, Seal};
use omird_store::format::{segment, wal};
use omird_store::inspect::*;
use omird_store::{DeviceKey, Lock, decode_resource, device_key};

use crate::ingest::request::Encoding;
use crate::settings::{FlashSettings, Settings};
use crate::testing::{ByHand, parts};
use crate::time::clock::Clock;
use crate::write::command::Change;
use crate::write::orders::Task;
use crate::{Engine, Parts};

const BEGAN: i64 = 1_780_000_000_000_000;

/// A clock that shows a second more whenever it is asked.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed).unsigned_abs())
    }

    fn boot_id(&self) -> String {
        "ticking".to_owned()
    }

    fn is_synchronised(&self) -> bool {
        true
    }
}

fn open(dir: &Path, began: i64) -> Engine {
    open_with(dir, began, 2500)
}

fn open_with(dir: &Path, began: i64, segment_bytes: u64) -> Engine {
    let parts = Parts {
        clock: Arc::new(Ticking(AtomicI64::new(began))),
        key: device_key(dir, || [7; 32]).unwrap(),
        settings: Settings {
            segment_bytes,
            touch_interval: Duration::ZERO,
            flash: FlashSettings { reserve_bytes: 0, ..FlashSettings::default() },
            ..Settings::default()
        },
        ..parts(dir)
    };
    Engine::open(parts, &mut |_| {}).unwrap()
}

/// Stops with everything in segments.
fn stop_sealed(engine: &Engine) {
    engine.seal_now(Duration::from_secs(60)).unwrap();
    engine.stop();
}

fn remember(engine: &Engine, json: &str) {
    let change = engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
    engine.execute(change).unwrap();
}

fn forget(engine: &Engine, target: &str) {
    engine.execute(Change::Forget(vec![target.parse().unwrap()])).unwrap();
}

fn record(id: &str, content: &str, more: &str) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{content}",
            "createdAt":"2026-05-01T00:00:00Z"{more}}}"#
    )
}

const DOCK: &str = r#","entityRefs":[{"ref":"Entity/dock"}]"#;

/// Something of everything: versions, references into earlier segments, tombstones, accesses.
fn live_a_little(engine: &Engine, from: usize, to: usize) {
    if from == 0 {
        remember(engine, r#"{"resourceType":"Entity","id":"dock","name":"charging dock"}"#);
        remember(engine, r#"{"resourceType":"Entity","id":"hall","name":"hall"}"#);
        remember(
            engine,
            r#"{"resourceType":"Relationship","id":"in","from":{"ref":"Entity/dock"},
                "to":{"ref":"Entity/hall"},"relationType":"inside","createdAt":"2026-05-01T00:00:00Z"}"#,
        );
    }
    for n in from..to {
        let more = if n % 3 == 0 { DOCK } else { "" };
        let content = format!("saw door {n} and it was {}", "quite ".repeat(n % 5));
        remember(engine, &record(&format!("m{n}"), &content, more));
        if n % 7 == 3 {
            remember(engine, &record(&format!("m{}", n - 1), "looked again", DOCK));
        }
        if n % 11 == 5 {
            forget(engine, &format!("MemoryRecord/m{}", n - 2));
        }
        if n % 13 == 6 {
            let target = format!("MemoryRecord/m{n}").parse().unwrap();
            let change = Change::Feedback(target, FeedbackOutcome::Confirmed, Weight::ONE);
            engine.execute(change).unwrap();
        }
    }
    let hall = format!(r#"{{"resourceType":"Entity","id":"hall","name":"hall at {to}"}}"#);
    remember(engine, &hall);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A folder in memory where there is one: hundreds of repairs wait for thousands of syncs.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A store as a power cut leaves it: several segments, and a log with half of the last ones.
fn made() -> tempfile::TempDir {
    let dir = folder();
    let running = dir.path().join("running");
    fs::create_dir(&running).unwrap();
    let engine = open(&running, BEGAN);
    live_a_little(&engine, 0, 60);
    stop_sealed(&engine);
    let engine = open(&running, BEGAN + 3_600_000_000);
    live_a_little(&engine, 60, 66);
    // Nothing is under way any more: the thread that seals has looked.
    engine.run_task(Task::Seal).unwrap();
    copy(&running, &dir.path().join("data"));
    engine.stop();
    dir
}

const NOW: Timestamp = Timestamp::from_micros(BEGAN + 10_000_000_000);

fn look_into(path: &Path) -> Store {
    Store::open(path, NOW).unwrap()
}

fn look(dir: &Path) -> Report {
    check(&look_into(dir), &mut |_| {}).unwrap()
}

fn repair_to(dir: &Path, into: &Path) -> Repaired {
    repair(&look_into(dir), into, || [9; 32], &mut |_| {}).unwrap()
}

/// Every version with what is known of it, by reference, version and time of recording.
fn versions(dir: &Path) -> BTreeMap<(String, u64, i64), (bool, Vec<u8>)> {
    let store = look_into(dir);
    let history = store.history(&mut |_| {}).unwrap();
    let mut reader = Reader::new(&store, &history);
    let rows = history.rows().into_iter().map(|row| {
        let Version { target, stamp, position, .. } = row.version;
        let resource = reader.resource(position).unwrap();
        let key = (target.to_string(), stamp.version, stamp.recorded);
        (key, (row.state == State::Live, cbor::to_vec(&resource.to_value())))
    });
    rows.collect()
}

/// The memories that a daemon serves.
fn served(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let engine = open(dir, BEGAN + 9_000_000_000);
    assert!(engine.damage().is_empty(), "{:?}", engine.damage());
    let mut all = BTreeMap::new();
    engine.each(None, |bytes| {
        let resource = decode_resource(&bytes).unwrap();
        all.insert(resource.reference().to_string(), bytes);
    });
    engine.stop();
    all
}

fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

fn kinds(report: &Report) -> BTreeSet<&'static str> {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .map(|finding| finding.kind.as_str())
        .collect()
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(data.join("segments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "omirb"))
        .collect();
    paths.sort();
    paths
}

fn only_log(data: &Path) -> PathBuf {
    let logs = logs(data);
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs[0].clone()
}

/// The logs of a folder, without their witnesses.
fn logs(data: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(data.join("wal"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "wal"))
        .collect();
    paths.sort();
    paths
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_store_is_sound_and_is_not_touched() {
    let dir = made();
    let data = dir.path().join("data");
    let before = tree(&data);
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Sound, "{:#?}", report.findings);
    assert!(segments(&data).len() >= 4 && report.tombstones >= 5 && report.versions > report.live);

    let into = dir.path().join("new");
    let repaired = repair_to(&data, &into);
    assert_eq!(tree(&data), before);
    assert_eq!(repaired.verdict(), Verdict::Sound);
    assert_eq!(repaired.key, KeyOrigin::Kept);
    assert_eq!(repaired.copied, segments(&data).len() as u64, "only the log has to be sealed");
    assert!(repaired.approximate.is_empty());
    assert_eq!(versions(&into), versions(&data));
    assert_eq!(look(&into).verdict(), Verdict::Sound, "{:#?}", look(&into).findings);
    assert_eq!(served(&into), served(&data));
    assert_eq!(look(&into).verdict(), Verdict::Sound, "also after a daemon was there");
}

#[test]
fn left_overs_are_named() {
    let dir = made();
    let data = dir.path().join("data");
    for name in ["segments/0000000099.omirb.tmp", "segments/0000000099.sig", "wal/notes.txt"] {
        fs::write(data.join(name), "x").unwrap();
    }
    fs::write(data.join("segments/0000000098.omirb.damaged"), "x").unwrap();
    let report = look(&data);
    let kind_of = |name: &str| report.findings.iter().find(|f| f.file == name).map(|f| f.kind);
    assert_eq!(kind_of("segments/0000000099.omirb.tmp"), Some(Kind::Temporary));
    assert_eq!(kind_of("segments/0000000099.sig"), Some(Kind::LeftoverSignature));
    assert_eq!(kind_of("wal/notes.txt"), Some(Kind::Stranger));
    assert!(kinds(&report).contains("set-aside"));
}

#[test]
fn a_file_alone_can_be_looked_at() {
    let dir = made();
    let data = dir.path().join("data");
    for path in segments(&data).into_iter().chain([only_log(&data)]) {
        let alone = dir.path().join("alone");
        let _ = fs::remove_dir_all(&alone);
        fs::create_dir(&alone).unwrap();
        let file = alone.join(path.file_name().unwrap());
        fs::copy(&path, &file).unwrap();
        let store = look_into(&file);
        let report = check(&store, &mut |_| {}).unwrap();
        assert!(report.versions > 0);
        let expected: &[&str] = if path.ends_with("wal") { &[] } else { &["signature-missing"] };
        assert!(kinds(&report).iter().all(|kind| expected.contains(kind)), "{:?}", kinds(&report));
        let bundle = report.history.bundle(&store, Some(0)).unwrap();
        let faults = validate_bundle(&bundle, Level::Core);
        let is_error =
            |f: &&omir_core::validate::Fault| f.severity() == omir_core::validate::Severity::Error;
        assert_eq!(faults.iter().filter(is_error).count(), 0, "{faults:?}");
        assert!(!tree(&alone).keys().any(|path| path.ends_with("lock")));
    }
    assert!(matches!(Store::open(&dir.path().join("alone"), NOW), Err(OpenError::NoStore { .. })));
}

#[test]
fn a_resource_is_shown_with_its_versions() {
    let dir = made();
    let data = dir.path().join("data");
    let store = look_into(&data);
    let history = store.history(&mut |_| {}).unwrap();
    let of = |text: &str, version| history.version(&text.parse().unwrap(), version);
    let hall = of("Entity/hall", None).unwrap();
    assert_eq!((hall.version.stamp.version, hall.state), (3, State::Live));
    assert_eq!(of("Entity/hall", Some(1)).unwrap().state, State::Superseded);
    assert!(matches!(of("Entity/hall", Some(9)), Err(CatError::NoVersion { versions, .. })
        if versions == [1, 2, 3]));
    assert!(matches!(of("Entity/x", None), Err(CatError::Unknown(_))));
    // Forgotten in the log it came in, nothing of it was ever sealed.
    assert!(matches!(of("MemoryRecord/m3", None), Err(CatError::Unknown(_))));
    assert!(matches!(of("MemoryRecord/m58", None), Err(CatError::Forgotten { last: 3, .. })));
    assert!(matches!(of("MemoryRecord/m58", Some(3)).unwrap().state, State::Forgotten { .. }));
    let bundle = history.bundle(&store, None).unwrap();
    let entries = bundle.get("entry").unwrap().as_array().unwrap().len();
    assert_eq!(entries, served(&data).len());
}

#[test]
fn a_store_in_use_is_left_alone() {
    let dir = made();
    let data = dir.path().join("data");
    let held = Lock::acquire(&data).unwrap();
    let refused = Store::open(&data, NOW).err().unwrap();
    assert!(matches!(refused, OpenError::Locked { .. }));
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    drop(held);
    let before = tree(&data);
    let store = look_into(&data);
    assert!(Lock::acquire(&data).is_err(), "and keeps others out");
    assert!(store.remark().is_none());
    drop(store);
    assert!(tree(&data) == before, "and leaves no trace");
}
