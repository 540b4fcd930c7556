//! Stores that were compacted, and compactions that were cut short.

use super::*;

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
    let done = engine.compact(crate::write::orders::CompactionScope::Forgotten).unwrap();
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
        .intervals
        .iter()
        .filter_map(|interval| match report.history.files[interval.file?].source.kind {
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
    let repaired = repair_to(&data, &into);
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
