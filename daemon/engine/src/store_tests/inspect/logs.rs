//! Damage in logs, beside them, and between a log and its segment.

use super::*;

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
        assert_eq!(repair_to(&cut, &into).verdict(), Verdict::Sound, "{what}");
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
fn a_witness_is_known_and_one_without_its_log_is_named() {
    let dir = made();
    let data = dir.path().join("data");
    let has = |kind| look(&data).findings.iter().any(|finding| finding.kind == kind);
    assert!(!has(Kind::Stranger) && !has(Kind::LeftoverWitness));
    let facts = only_log(&data).with_extension("facts");
    fs::copy(&facts, facts.with_file_name("0000000099.facts")).unwrap();
    assert!(!has(Kind::Stranger) && has(Kind::LeftoverWitness));
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
    assert_eq!(kinds(&look(&data)), ["repairable"].into(), "a single bit is turned back");
    change(&log, |bytes| {
        bytes.copy_from_slice(&original);
        let at = bytes.windows(8).position(|w| w == b"saw door").unwrap();
        bytes[at] ^= 3;
    });
    let report = look(&data);
    assert_eq!(report.verdict(), Verdict::Lossy);
    assert_eq!(kinds(&report), ["frames-lost", "sequence-gap"].into());
    let lost = report.findings.iter().find(|f| f.kind == Kind::FramesLost).unwrap();
    assert_eq!(lost.names, ["MemoryRecord/m60"]);

    // By its witness it had been durable.
    fs::write(&log, &original[..original.len() - 3]).unwrap();
    let report = look(&data);
    assert_eq!(kinds(&report), ["frames-lost", "version-lost"].into());
    // A power cut takes the end of both.
    fs::remove_file(log.with_extension("facts")).unwrap();
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
    assert_eq!(repair_to(&data, &dir.path().join("new")).verdict(), Verdict::Sound);
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
    let logs = logs(&data);
    let [.., older, newer] = &logs[..] else { panic!("two logs wait: {logs:?}") };
    let (first, second) = (fs::read(older).unwrap(), fs::read(newer).unwrap());
    fs::write(older, second).unwrap();
    fs::write(newer, first).unwrap();
    let report = look(&data);
    assert_eq!(kinds(&report), ["log-header"].into(), "and nothing was given up");
    let new = dir.path().join("new");
    assert_eq!(repair_to(&data, &new).verdict(), Verdict::Sound);
    assert_eq!(served(&new), expected);
}

/// Two bits of the last place of a text in the only log: more than a checksum can turn back.
fn rot(data: &Path, text: &str) {
    change(&only_log(data), |bytes| {
        let at = bytes.windows(text.len()).rposition(|w| w == text.as_bytes()).unwrap();
        bytes[at] ^= 1;
        bytes[at + 1] ^= 1;
    });
}

#[test]
fn what_was_forgotten_is_not_brought_back_by_a_repair() {
    let dir = made();
    let data = dir.path().join("data");
    assert!(!served(&copied(&data, "whole")).contains_key("MemoryRecord/m58"));
    rot(&data, "MemoryRecord/m58");
    let into = dir.path().join("new");
    repair_to(&data, &into);
    let served = served(&into);
    assert!(served.contains_key("MemoryRecord/m57") && !served.contains_key("MemoryRecord/m58"));
}

#[test]
fn a_newest_version_that_is_lost_is_named() {
    let dir = made();
    let data = dir.path().join("data");
    rot(&data, "hall at 66");
    let report = look(&data);
    let lost = report.findings.iter().find(|finding| finding.kind == Kind::VersionLost).unwrap();
    assert_eq!(lost.names, ["Entity/hall"]);
    assert!(lost.message.contains("version 3") && lost.message.contains("version 2"), "{lost}");
    assert_eq!(repair_to(&data, &dir.path().join("new")).verdict(), Verdict::Lossy);
}

/// A copy of a data folder beside it.
fn copied(data: &Path, name: &str) -> PathBuf {
    let copy_of = data.with_file_name(name);
    copy(data, &copy_of);
    copy_of
}
