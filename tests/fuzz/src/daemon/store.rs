//! A data folder looked at with no daemon running: listing, checking, reading and repairing what is
//! left of a segment and a log.

use std::cell::RefCell;
use std::fs;

use omir_core::instant::Timestamp;
use omir_core::validate::{Level, Severity, validate_bundle};
use omird::store::format::{segment, wal};
use omird::store::inspect::{Repaired, Store, Verdict, check, repair};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_unix(1_780_000_000, 0);

thread_local! {
    /// One folder for all inputs.
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// The first two bytes tell how much of the rest is the segment; the log takes what is left.
pub fn run(bytes: &[u8]) {
    let Some((&[high, low], rest)) = bytes.split_first_chunk() else { return };
    let (sealed, log) = rest.split_at(usize::from(u16::from_be_bytes([high, low])).min(rest.len()));
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(in_memory);
        let root = folder.path().join("data");
        let new = folder.path().join("repaired");
        for path in [&root, &new] {
            let _ = fs::remove_dir_all(path);
        }
        for dir in [segment::DIR, wal::DIR] {
            fs::create_dir_all(root.join(dir)).expect("a folder");
        }
        fs::write(root.join(segment::path(1)), sealed).expect("a segment");
        fs::write(root.join(wal::path(2)), log).expect("a log");
        look(&root, &new);
    });
}

/// A folder in memory where the machine has one: a repair syncs what it writes.
fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

fn look(root: &std::path::Path, new: &std::path::Path) {
    let store = Store::open(root, NOW).expect("a data folder");
    let report = check(&store, &mut |_| {}).expect("files that can be read");
    let rows = report.history.rows().len() as u64;
    assert!(report.live <= report.versions && report.versions == rows);
    let bundle = report.history.bundle(&store, None).expect("what can be read can be given out");
    let faults = validate_bundle(&bundle, Level::Core);
    let errors: Vec<_> =
        faults.iter().filter(|fault| fault.severity() == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");

    let repaired: Repaired = repair(&store, new, || [1; 32], &mut |_| {}).expect("a new folder");
    assert_eq!(repaired.versions, report.versions);
    drop(store);
    // A repaired store is sound, and holds the same memories.
    let store = Store::open(new, NOW).expect("a data folder");
    let after = check(&store, &mut |_| {}).expect("files that can be read");
    assert_eq!(after.verdict(), Verdict::Sound, "{:?}", after.findings);
    assert_eq!(after.versions, report.versions);
    // A number or a time that is only likely may bring back something forgotten.
    if repaired.approximate.is_empty() {
        assert_eq!(after.live, report.live);
        assert_eq!(after.history.bundle(&store, None).expect("the same"), bundle);
    }
}
