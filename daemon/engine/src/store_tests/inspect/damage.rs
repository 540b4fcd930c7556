//! Reports of damage, file by file, and repairs.

use super::*;

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
                let path = history.files[row.version.position.file].source.path.clone();
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
            let repaired = repair_to(&data, &into);
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
                live.insert(decode_resource(&bytes).unwrap().reference().to_string());
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

/// Findings that a check must report for damage to a file of that name.
fn judge_case(name: &str, case: &str, report: &Report) {
    let verdict = report.verdict();
    let found = kinds(report);
    if name.ends_with(".facts") {
        // A second copy: the first is whole.
        assert_eq!(verdict, Verdict::Sound, "{case}: {:#?}", report.findings);
    } else if name.ends_with(".par") {
        let kind =
            if case.ends_with("deleted") { Kind::SidecarMissing } else { Kind::SidecarDamaged };
        assert!(report.findings.iter().any(|f| f.kind == kind), "{case}: {:#?}", report.findings);
        assert_ne!(verdict, Verdict::Lossy, "{case}: {:#?}", report.findings);
    } else if name.ends_with(".sig") || name.starts_with("keys/") {
        assert_eq!(verdict, Verdict::Faulty, "{case}: {:#?}", report.findings);
    } else if name.ends_with(".omirb") {
        assert_ne!(verdict, Verdict::Sound, "{case}");
        assert!(
            ["segment-unreadable", "sequence-gap", "digest-differs", "repairable"]
                .iter()
                .any(|kind| found.contains(kind)),
            "{case}: {found:?}"
        );
    } else if case.ends_with("deleted") {
        let told = ["log-missing", "version-lost"].into();
        assert!(found.contains("log-missing") && found.is_subset(&told), "{case}: {found:?}");
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
    let contents = Contents { sha256: [3; 32], ..seal.contents };
    let flipped = Seal { contents, ..seal.clone() };
    fs::write(sig(2), flipped.to_json()).unwrap();
    assert_eq!(kinds(&look(&data)), ["signature-bad"].into(), "the segment is what was signed");

    let stranger = DeviceKey::from_secret([8; 32]);
    let forged = stranger.sign(2, &seal.contents, seal.previous, None);
    fs::write(sig(2), forged.to_json()).unwrap();
    assert_eq!(kinds(&look(&data)), ["foreign-key"].into());

    let own = DeviceKey::from_secret([7; 32]);
    let elsewhere = own.sign(2, &seal.contents, [5; 32], None);
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
    let repaired = repair_to(&data, &into);
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
    let into = dir.path().join("restored");
    assert_eq!(kinds(&look(&data)), ["repairable"].into());
    assert_eq!(repair_to(&data, &into).verdict(), Verdict::Sound);
    assert_eq!(versions(&into), truth, "by its sidecar");
    for segment in segments(&data) {
        fs::remove_file(segment.with_extension("par")).unwrap();
    }
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy);
    assert_eq!(kinds(&report), ["bytes-lost", "digest-differs"].into());
    let lost = report.findings.iter().find(|f| f.kind == Kind::BytesLost).unwrap();
    assert!(lost.names.len() == 1 && lost.names[0].starts_with("MemoryRecord/m"), "{lost:?}");
    assert!(lost.offset.is_some() && lost.len.is_some());
    let into = dir.path().join("new");
    assert_eq!(repair_to(&data, &into).verdict(), Verdict::Lossy);
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
        repair_to(&data, &into);
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
    // Nor can it mend it.
    fs::remove_file(last.with_extension("par")).unwrap();
    let engine = open(&data, BEGAN + 8_000_000_000);
    assert!(!engine.damage().is_empty());
    live_a_little(&engine, 100, 103);
    engine.stop();
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy, "{:#?}", report.findings);
    let found = kinds(&report);
    assert!(found.is_superset(&["set-aside", "history-lost"].into()), "{found:?}");

    let into = dir.path().join("new");
    let repaired = repair_to(&data, &into);
    let names = |all: &BTreeMap<(String, u64, i64), (bool, Vec<u8>)>| -> BTreeSet<String> {
        all.keys().map(|(target, _, _)| target.clone()).collect()
    };
    assert!(names(&versions(&into)).is_superset(&names(&truth)));
    assert!(!repaired.approximate.is_empty(), "their stamps were in the manifest");
    let live = served(&into);
    assert!(live.contains_key("MemoryRecord/m102") && live.contains_key("Entity/dock"));
    let hall = decode_resource(&live["Entity/hall"]).unwrap();
    assert!(format!("{hall:?}").contains("hall at 103"), "what came later is the newest");
    let sound = look(&into);
    assert_eq!(sound.verdict(), Verdict::Sound, "{:#?}", sound.findings);
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
        let dir = tempfile::tempdir().unwrap();
        for path in [segment::path(1), wal::path(1)] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &bytes).unwrap();
        }
        look(dir.path());
    }
}
