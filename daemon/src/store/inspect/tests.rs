//! Small stores made by the real engine, damaged file by file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use omir_core::cbor;
use omir_core::confidence::{Outcome, Weight};
use omir_core::instant::Timestamp;
use omir_core::validate::{Level, validate_bundle};

use super::*;
use crate::clock::Clock;
use crate::engine::command::Change;
use crate::engine::request::Encoding;
use crate::engine::settings::{FlashSettings, Settings};
use crate::engine::{Engine, Parts};
use crate::store::keys;
use crate::store::manifest::URL;
use crate::store::signature::{DeviceKey, Seal};
use crate::testing::parts;

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
        key: keys::device_key(dir, || [7; 32]).unwrap(),
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
            let change = Change::Feedback(target, Outcome::Confirmed, Weight::ONE);
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
    std::thread::sleep(Duration::from_millis(50));
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

fn mend(dir: &Path, into: &Path) -> Repaired {
    repair(&look_into(dir), into, || [9; 32], &mut |_| {}).unwrap()
}

/// Every version with what is known of it, by reference, version and time of recording.
fn versions(dir: &Path) -> BTreeMap<(String, u64, i64), (bool, Vec<u8>)> {
    let store = look_into(dir);
    let history = store.history(&mut |_| {}).unwrap();
    let mut reader = Reader::new(&store, &history);
    let rows = history.rows().into_iter().map(|row| {
        let Version { target, stamp, place, .. } = row.version;
        let resource = reader.resource(place).unwrap();
        let key = (target.to_string(), stamp.version, stamp.recorded);
        (key, (row.state == State::Live, cbor::to_vec(&resource.to_value())))
    });
    rows.collect()
}

/// What a daemon serves.
fn served(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let engine = open(dir, BEGAN + 9_000_000_000);
    assert!(engine.damage().is_empty(), "{:?}", engine.damage());
    let mut all = BTreeMap::new();
    engine.each(None, |bytes| {
        let resource = segment::decode(&bytes).unwrap();
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
    let mut logs = fs::read_dir(data.join("wal")).unwrap();
    let log = logs.next().unwrap().unwrap().path();
    assert!(logs.next().is_none());
    log
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
    let repaired = mend(&data, &into);
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
fn a_segment_that_is_rebuilt_is_the_same_but_for_its_date() {
    let dir = made();
    let data = dir.path().join("data");
    // The first segment is empty now, so every other one gets another number.
    let into = dir.path().join("new");
    fs::remove_file(data.join("segments/0000000001.omirb")).unwrap();
    fs::remove_file(data.join("segments/0000000002.omirb")).unwrap();
    let repaired = mend(&data, &into);
    assert_eq!(repaired.copied, 0);
    let report = look(&into);
    assert_eq!(report.verdict(), Verdict::Sound, "{:#?}", report.findings);
    let all = versions(&data);
    let found = versions(&into);
    let history = look_into(&data).history(&mut |_| {}).unwrap();
    assert!(history.rows().iter().any(|row| !row.version.is_exact), "copies tell of lost ones");
    assert_eq!(found, all);
}

/// Damages each file in many ways and sees what comes of it.
#[test]
fn whatever_happens_to_one_file_the_rest_comes_back() {
    let dir = made();
    let data = dir.path().join("data");
    let truth = versions(&data);
    let originals = tree(&data);
    let places: BTreeMap<(String, u64, i64), String> = {
        let store = look_into(&data);
        let history = store.history(&mut |_| {}).unwrap();
        history
            .rows()
            .iter()
            .map(|row| {
                let stamp = row.version.stamp;
                let path = history.files[row.version.place.file].source.path.clone();
                ((row.version.target.to_string(), stamp.version, stamp.recorded), path)
            })
            .collect()
    };
    let mut cases = 0;
    for (path, original) in &originals {
        let name = path.strip_prefix(&data).unwrap().to_string_lossy().into_owned();
        let len = original.len();
        let mut damages: Vec<(String, Option<Vec<u8>>)> = vec![("deleted".into(), None)];
        let is_small = len < 1000;
        let spots = |n: usize| {
            let n = if is_small { n / 3 } else { n };
            (0..n).map(move |i| i * len / n)
        };
        for at in spots(15) {
            let mut bytes = original.clone();
            bytes[at] ^= 0x41;
            damages.push((format!("byte {at} flipped"), Some(bytes)));
        }
        for at in spots(6) {
            damages.push((format!("cut to {at}"), Some(original[..at].to_vec())));
        }
        for at in spots(4) {
            let mut bytes = original.clone();
            bytes[at..len.min(at + 512)].fill(0);
            damages.push((format!("zeros from {at}"), Some(bytes)));
        }
        for (what, bytes) in damages {
            cases += 1;
            let case = format!("{name}, {what}");
            match bytes {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
            let report = look(&data);
            judge_case(&name, &case, &report);

            let into = dir.path().join("new");
            let repaired = mend(&data, &into);
            let found = versions(&into);
            let sound = look(&into);
            assert_eq!(sound.verdict(), Verdict::Sound, "{case}: {:#?}", sound.findings);
            for (key, (_, bytes)) in &truth {
                if places[key] == name {
                    continue;
                }
                let Some((_, read)) = found.get(key) else {
                    panic!("{case}: {key:?} is lost, and lay in {}", places[key]);
                };
                assert_eq!(read, bytes, "{case}: {key:?}");
            }
            if repaired.verdict() == Verdict::Sound && !name.starts_with("wal/") {
                assert_eq!(found.len(), truth.len(), "{case}: {:#?}", repaired.findings);
            }
            let engine = open(&into, BEGAN + 9_000_000_000);
            assert!(engine.damage().is_empty(), "{case}: {:?}", engine.damage());
            let mut live: BTreeSet<String> = BTreeSet::new();
            engine.each(None, |bytes| {
                live.insert(segment::decode(&bytes).unwrap().reference().to_string());
            });
            engine.stop();
            let expected = found.iter().filter(|(_, (live, _))| *live).map(|(key, _)| &key.0);
            assert_eq!(live, expected.cloned().collect(), "{case}");
            fs::remove_dir_all(&into).unwrap();
            fs::write(path, original).unwrap();
        }
    }
    assert!(cases > 150, "{cases}");
    assert_eq!(tree(&data), originals);
}

/// What a check must say of damage to a file of that name.
fn judge_case(name: &str, case: &str, report: &Report) {
    let verdict = report.verdict();
    let found = kinds(report);
    if name.ends_with(".sig") || name.starts_with("keys/") {
        assert_eq!(verdict, Verdict::Faulty, "{case}: {:#?}", report.findings);
    } else if name.ends_with(".omirb") {
        assert_ne!(verdict, Verdict::Sound, "{case}");
        assert!(
            ["segment-unreadable", "sequence-gap", "digest-differs"]
                .iter()
                .any(|kind| found.contains(kind)),
            "{case}: {found:?}"
        );
    } else if case.ends_with("deleted") {
        assert_eq!(found, ["log-missing"].into(), "{case}");
    } else {
        // Damage to its last write cannot be told from a write that was cut short.
        let torn = report.findings.iter().any(|finding| finding.kind == Kind::TornEnd);
        let header = found.contains("log-header");
        let lossy = verdict == Verdict::Lossy;
        assert!(
            lossy || torn || header || case.contains("cut to"),
            "{case}: {:#?}",
            report.findings
        );
    }
    for finding in &report.findings {
        let is_missing = [Kind::IndexMissing, Kind::KeyMissing].contains(&finding.kind);
        assert!(is_missing || !finding.file.is_empty(), "{case}: {finding:?}");
    }
}

#[test]
fn signatures_are_judged_one_by_one() {
    let dir = made();
    let data = dir.path().join("data");
    let sig = |n: u64| data.join(format!("segments/{n:010}.sig"));
    let original = fs::read(sig(2)).unwrap();

    fs::remove_file(sig(2)).unwrap();
    assert_eq!(kinds(&look(&data)), ["signature-missing"].into());
    fs::write(sig(2), "{}").unwrap();
    assert_eq!(kinds(&look(&data)), ["signature-unreadable"].into());
    fs::write(sig(2), fs::read(sig(3)).unwrap()).unwrap();
    assert!(kinds(&look(&data)).contains("signature-bad"));

    let seal = Seal::from_json(&original).unwrap();
    let flipped = Seal { sha256: [3; 32], ..seal.clone() };
    fs::write(sig(2), flipped.to_json()).unwrap();
    assert_eq!(kinds(&look(&data)), ["signature-bad"].into(), "the segment is what was signed");

    let stranger = DeviceKey::from_secret([8; 32]);
    let forged = stranger.sign(2, seal.bytes, seal.sha256, seal.previous);
    fs::write(sig(2), forged.to_json()).unwrap();
    assert_eq!(kinds(&look(&data)), ["foreign-key"].into());

    let own = DeviceKey::from_secret([7; 32]);
    let elsewhere = own.sign(2, seal.bytes, seal.sha256, [5; 32]);
    fs::write(sig(2), elsewhere.to_json()).unwrap();
    assert_eq!(kinds(&look(&data)), ["chain-broken"].into());
    assert_eq!(look(&data).verdict(), Verdict::Faulty);
}

#[test]
fn a_missing_segment_is_a_gap_and_copies_bring_back_what_they_can() {
    let dir = made();
    let data = dir.path().join("data");
    fs::remove_file(data.join("segments/0000000001.omirb")).unwrap();
    fs::remove_file(data.join("segments/0000000001.sig")).unwrap();
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy);
    assert!(kinds(&report).is_superset(&["segment-missing", "sequence-gap"].into()));
    let gap = report.findings.iter().find(|f| f.kind == Kind::SequenceGap).unwrap();
    assert_eq!(gap.transactions.unwrap().0, 1);

    let into = dir.path().join("new");
    let repaired = mend(&data, &into);
    assert_eq!(repaired.verdict(), Verdict::Lossy);
    let back: Vec<String> =
        repaired.approximate.iter().map(|(target, _)| target.to_string()).collect();
    assert_eq!(back, ["Entity/dock"], "later records refer to it");
    assert!(served(&into).contains_key("Entity/dock"));
}

#[test]
fn one_damaged_memory_is_named_and_the_others_stay() {
    let dir = made();
    let data = dir.path().join("running");
    let truth = versions(&data);
    change(&segments(&data)[1], |bytes| {
        // Still readable, but not what was remembered.
        let at = bytes.windows(8).position(|w| w == b"saw door").unwrap();
        bytes[at] = b'S';
    });
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy);
    assert_eq!(kinds(&report), ["bytes-lost", "digest-differs"].into());
    let lost = report.findings.iter().find(|f| f.kind == Kind::BytesLost).unwrap();
    assert!(lost.names.len() == 1 && lost.names[0].starts_with("MemoryRecord/m"), "{lost:?}");
    assert!(lost.offset.is_some() && lost.len.is_some());
    let into = dir.path().join("new");
    assert_eq!(mend(&data, &into).verdict(), Verdict::Lossy);
    assert_eq!(versions(&into).len(), truth.len() - 1);
    assert_eq!(look(&into).verdict(), Verdict::Sound);
}

#[test]
fn a_damaged_manifest_misleads_nobody_about_other_files() {
    let dir = made();
    let data = dir.path().join("data");
    let truth = versions(&data);
    let path = segments(&data)[1].clone();
    let original = fs::read(&path).unwrap();
    let start = original.windows(URL.len()).position(|w| w == URL.as_bytes()).unwrap();
    let bounds: Vec<i64> = truth.keys().map(|(_, _, recorded)| *recorded).collect();
    let (earliest, latest) = (bounds.iter().min().unwrap(), bounds.iter().max().unwrap());
    let names: BTreeSet<&String> = truth.keys().map(|(target, _, _)| target).collect();
    for (index, at) in (start..original.len() - 60).step_by(7).enumerate() {
        change(&path, |bytes| bytes[at] ^= [0x01, 0x80, 0x10][index % 3]);
        assert_ne!(look(&data).verdict(), Verdict::Sound, "byte {at}");
        let into = dir.path().join("new");
        mend(&data, &into);
        let found = versions(&into);
        // The memories themselves are whole; only older versions may go with the manifest.
        let live = truth.iter().filter(|(_, (is_live, _))| *is_live);
        for ((name, _, _), (_, bytes)) in live {
            let is_it = |((target, _, _), (_, read)): (&(String, u64, i64), &(bool, Vec<u8>))| {
                target == name && read == bytes
            };
            assert!(found.iter().any(is_it), "byte {at}: {name}");
        }
        for (target, version, recorded) in found.keys() {
            assert!((earliest..=latest).contains(&recorded), "byte {at}: {target} at {recorded}");
            assert!(*version < 100 || !names.contains(target), "byte {at}: {target} {version}");
        }
        assert_eq!(look(&into).verdict(), Verdict::Sound, "byte {at}");
        fs::remove_dir_all(&into).unwrap();
        fs::write(&path, &original).unwrap();
    }
}

#[test]
fn what_a_start_set_aside_is_found_again_among_what_came_later() {
    let dir = made();
    let data = dir.path().join("running");
    let truth = versions(&data);
    let last = segments(&data).pop().unwrap();
    // Without its manifest the daemon cannot use the segment. The transactions in it are then the
    // newest it knows nothing of, and it may give out their numbers again.
    change(&last, |bytes| {
        let at = bytes.windows(8).rposition(|w| w == b"\x67version").unwrap();
        bytes[at + 1] = b'V';
    });
    let engine = open(&data, BEGAN + 8_000_000_000);
    assert!(!engine.damage().is_empty());
    live_a_little(&engine, 100, 103);
    engine.stop();
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy, "{:#?}", report.findings);
    let found = kinds(&report);
    assert!(found.is_superset(&["set-aside", "history-lost"].into()), "{found:?}");

    let into = dir.path().join("new");
    let repaired = mend(&data, &into);
    let names = |all: &BTreeMap<(String, u64, i64), (bool, Vec<u8>)>| -> BTreeSet<String> {
        all.keys().map(|(target, _, _)| target.clone()).collect()
    };
    assert!(names(&versions(&into)).is_superset(&names(&truth)));
    assert!(!repaired.approximate.is_empty(), "their stamps were in the manifest");
    let live = served(&into);
    assert!(live.contains_key("MemoryRecord/m102") && live.contains_key("Entity/dock"));
    let hall = segment::decode(&live["Entity/hall"]).unwrap();
    assert!(format!("{hall:?}").contains("hall at 103"), "what came later is the newest");
    let sound = look(&into);
    assert_eq!(sound.verdict(), Verdict::Sound, "{:#?}", sound.findings);
}

#[test]
fn an_unfinished_seal_is_no_fault() {
    let dir = folder();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let engine = open(&data, BEGAN);
    live_a_little(&engine, 0, 3);
    let cut = dir.path().join("cut");
    copy(&data, &cut);
    stop_sealed(&engine);
    // The cut came when the segment lay there, half written, and the log had not been dropped.
    let sealed = segments(&data).remove(0);
    for (what, bytes) in [
        ("without its signature", fs::read(&sealed).unwrap()),
        ("torn", fs::read(&sealed).unwrap()[..300].to_vec()),
    ] {
        fs::write(cut.join("segments/0000000001.omirb"), bytes).unwrap();
        let report = look(&cut);
        assert!(report.verdict() <= Verdict::Faulty, "{what}: {:#?}", report.findings);
        let into = dir.path().join("new");
        assert_eq!(mend(&cut, &into).verdict(), Verdict::Sound, "{what}");
        assert_eq!(versions(&into), versions(&data), "{what}");
        fs::remove_dir_all(&into).unwrap();
    }
    // The same with its signature: then it is the log that is not needed any more.
    fs::write(cut.join("segments/0000000001.omirb"), fs::read(&sealed).unwrap()).unwrap();
    fs::copy(sealed.with_extension("sig"), cut.join("segments/0000000001.sig")).unwrap();
    let report = look(&cut);
    assert_eq!(report.verdict(), Verdict::Sound, "{:#?}", report.findings);
    assert!(report.findings.iter().any(|finding| finding.kind == Kind::HeldElsewhere));
}

#[test]
fn damage_within_a_log_is_named_and_a_torn_end_is_not() {
    let dir = made();
    let data = dir.path().join("data");
    let log = only_log(&data);
    let original = fs::read(&log).unwrap();
    change(&log, |bytes| {
        let at = bytes.windows(8).position(|w| w == b"saw door").unwrap();
        bytes[at] ^= 1;
    });
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy);
    assert_eq!(kinds(&report), ["frames-lost", "sequence-gap"].into());
    let lost = report.findings.iter().find(|f| f.kind == Kind::FramesLost).unwrap();
    assert_eq!(lost.names, ["MemoryRecord/m60"]);

    fs::write(&log, &original[..original.len() - 3]).unwrap();
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Sound);
    assert!(report.findings.iter().any(|f| f.kind == Kind::TornEnd && f.len.is_some()));

    // Under another number the daemon would not read it; a repair does.
    fs::write(&log, &original).unwrap();
    let other = log.with_file_name("0000000077.wal");
    fs::rename(&log, &other).unwrap();
    let report = look(&data);
    assert_eq!(kinds(&report), ["log-header"].into());
    assert_eq!(report.verdict(), Verdict::Lossy);
    assert_eq!(mend(&data, &dir.path().join("new")).verdict(), Verdict::Sound);
}

#[test]
fn logs_whose_names_were_mixed_up_lose_nothing() {
    let dir = folder();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    // A log is begun each week, and waits for four.
    for week in 0..4 {
        let engine = open_with(&data, BEGAN + week as i64 * 8 * 86_400_000_000, 1 << 20);
        live_a_little(&engine, week * 10, week * 10 + 10);
        engine.stop();
    }
    let whole = dir.path().join("whole");
    copy(&data, &whole);
    let expected = served(&whole);
    let mut logs: Vec<_> =
        fs::read_dir(data.join("wal")).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.sort();
    let [.., older, newer] = &logs[..] else { panic!("two logs wait: {logs:?}") };
    let (first, second) = (fs::read(older).unwrap(), fs::read(newer).unwrap());
    fs::write(older, second).unwrap();
    fs::write(newer, first).unwrap();
    let report = look(&data);
    assert_eq!(kinds(&report), ["log-header"].into(), "and nothing was given up");
    let new = dir.path().join("new");
    assert_eq!(mend(&data, &new).verdict(), Verdict::Sound);
    assert_eq!(served(&new), expected);
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
    let held = lock::acquire(&data).unwrap();
    let refused = Store::open(&data, NOW).err().unwrap();
    assert!(matches!(refused, OpenError::Locked { .. }));
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    drop(held);
    let before = tree(&data);
    let store = look_into(&data);
    assert!(lock::acquire(&data).is_err(), "and keeps others out");
    assert!(store.remark().is_none());
    drop(store);
    assert!(tree(&data) == before, "and leaves no trace");
}

#[test]
fn a_repair_goes_into_an_empty_folder_elsewhere() {
    let dir = made();
    let data = dir.path().join("data");
    let store = look_into(&data);
    let into = |path: &Path| repair(&store, path, || [9; 32], &mut |_| {});
    let running = dir.path().join("running");
    assert!(matches!(into(&running), Err(RepairError::Target { .. })), "not empty");
    let inside = data.join("deep/new");
    assert!(matches!(into(&inside), Err(RepairError::Target { .. })));
    assert!(!data.join("deep").exists());
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::write(data.join("keys/device.key"), "nonsense").unwrap();
    let repaired = into(&empty).unwrap();
    assert!(matches!(repaired.key, KeyOrigin::New { .. }));
    assert_eq!(repaired.verdict(), Verdict::Sound);
}

#[test]
fn a_store_without_anything_in_it_is_sound() {
    let dir = folder();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    open(&data, BEGAN).stop();
    assert_eq!(look(&data).verdict(), Verdict::Sound);
    let into = dir.path().join("new");
    mend(&data, &into);
    assert!(served(&into).is_empty());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_panic(
        cuts in proptest::collection::vec((0usize..4000, 0u8..=255), 0..6),
        end in 0usize..4000,
    ) {
        static SAMPLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let sample = SAMPLE.get_or_init(|| {
            let dir = made();
            fs::read(&segments(&dir.path().join("data"))[1]).unwrap()
        });
        let mut bytes = sample.clone();
        for (at, byte) in cuts {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(end.max(1));
        let kind = FileKind::Segment(1);
        let source = Source { kind, is_set_aside: false, path: "x".to_owned() };
        let _ = scan::segment(&source, &bytes, scan::SealFile::Missing, true);
        let _ = scan::log(&Source { kind: FileKind::Log(1), ..source }, &bytes);
    }
}

/// A store before and after a compaction of what still told of something forgotten: segments of the
/// beginning and of the end have new numbers, those between have theirs.
fn compacted() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = folder();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    fs::create_dir(&new).unwrap();
    let engine = open(&new, BEGAN);
    remember(&engine, &record("secret", "nobody may know", ""));
    live_a_little(&engine, 0, 2);
    for n in 0..60 {
        remember(&engine, &record(&format!("plain{n}"), "nothing to be seen here", ""));
        if n == 30 {
            remember(&engine, &record("rumour", "nobody may know that either", ""));
        }
    }
    forget(&engine, "MemoryRecord/secret");
    forget(&engine, "MemoryRecord/rumour");
    engine.stop();
    copy(&new, &old);
    let engine = open(&new, BEGAN + 3_600_000_000);
    let done = engine.compact(crate::engine::compaction::Scope::Forgotten).unwrap();
    assert_eq!((done.superseded, done.forgotten), (0, 2));
    live_a_little(&engine, 60, 63);
    engine.stop();
    (dir, old, new)
}

#[test]
fn a_compacted_store_is_sound_and_can_be_repaired() {
    let (dir, _, data) = compacted();
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Sound, "{:#?}", report.findings);
    let numbers: Vec<u64> = report
        .history
        .chapters
        .iter()
        .filter_map(|chapter| match report.history.files[chapter.file?].source.kind {
            FileKind::Segment(number) => Some(number),
            FileKind::Log(_) => None,
        })
        .collect();
    assert!(!numbers.is_sorted(), "in the order of transactions: {numbers:?}");
    let store = look_into(&data);
    let known = report.history.version(&"MemoryRecord/secret".parse().unwrap(), None);
    assert!(matches!(known, Err(CatError::Unknown(_))), "not even its name is known");
    assert!(report.history.bundle(&store, None).is_ok());
    drop(store);

    let into = dir.path().join("mended");
    let repaired = mend(&data, &into);
    assert_eq!(repaired.verdict(), Verdict::Sound);
    assert_eq!(versions(&into), versions(&data));
    let again = look(&into);
    assert_eq!(again.verdict(), Verdict::Sound, "{:#?}", again.findings);
    assert_eq!(again.tombstones, report.tombstones, "kept by their hashes");
    assert_eq!(served(&into), served(&data));
}

#[test]
fn of_a_compaction_that_was_cut_short_one_side_counts() {
    let (dir, old, new) = compacted();
    let number = |path: &PathBuf| segment::number_of(&path.file_name().unwrap().to_string_lossy());
    let is_there =
        |data: &Path, of: u64| segments(data).iter().any(|path| number(path) == Some(of));
    let compacted: Vec<u64> = look(&new)
        .history
        .files
        .iter()
        .filter(|row| !row.replaces.is_empty())
        .filter_map(|row| match row.source.kind {
            FileKind::Segment(number) => Some(number),
            FileKind::Log(_) => None,
        })
        .collect();
    assert!(compacted.len() >= 2, "{compacted:?}");
    let unfinished = |data: &Path| {
        let report = look(data);
        assert_eq!(report.verdict(), Verdict::Sound, "{:#?}", report.findings);
        let found = report.findings.iter().filter(|f| f.kind == Kind::UnfinishedCompaction);
        found.count()
    };

    // The new segments are there, and the old ones were not removed yet.
    let truth = (versions(&new), served(&new));
    let both = dir.path().join("both");
    copy(&new, &both);
    for path in segments(&old) {
        for path in [path.clone(), path.with_extension("sig")] {
            fs::copy(&path, both.join("segments").join(path.file_name().unwrap())).unwrap();
        }
    }
    assert!(unfinished(&both) >= compacted.len());
    assert_eq!(versions(&both), truth.0);
    assert_eq!(served(&both), truth.1);
    assert_eq!(segments(&both).len(), segments(&new).len(), "a start removes the old ones");

    // A new segment is there, but not whole, beside all it was to replace.
    let truth = (versions(&old), served(&old));
    for number in compacted {
        let torn = dir.path().join(format!("torn{number}"));
        copy(&old, &torn);
        for path in [segment::path(number), segment::signature_path(number)] {
            fs::copy(new.join(&path), torn.join(&path)).unwrap();
        }
        fs::remove_file(torn.join(segment::signature_path(number))).unwrap();
        assert_eq!(unfinished(&torn), 1);
        assert_eq!(versions(&torn), truth.0);
        assert_eq!(served(&torn), truth.1);
        assert!(!is_there(&torn, number), "a start removes it");
    }
}
