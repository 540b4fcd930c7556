//! The target of a repair, and its result.

use super::*;

#[test]
fn a_segment_that_is_rebuilt_is_the_same_but_for_its_date() {
    let dir = made();
    let data = dir.path().join("data");
    // The first segment is empty now, so every other one gets another number.
    let into = dir.path().join("new");
    fs::remove_file(data.join("segments/0000000001.omirb")).unwrap();
    fs::remove_file(data.join("segments/0000000002.omirb")).unwrap();
    let repaired = repair_to(&data, &into);
    assert_eq!(repaired.copied, 0);
    let report = look(&into);
    assert_eq!(report.verdict(), Verdict::Sound, "{:#?}", report.findings);
    let all = versions(&data);
    let found = versions(&into);
    let history = look_into(&data).history(&mut |_| {}).unwrap();
    assert!(history.rows().iter().any(|row| !row.version.is_exact), "copies tell of lost ones");
    assert_eq!(found, all);
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
    repair_to(&data, &into);
    assert!(served(&into).is_empty());
}
