//! Memory of sealing and compaction, for logs full of small updates.
//!
//! In a program of its own, since it counts what is allocated in all of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use omird::disk::Folder;
use omird::engine::testing::ByHand;
use omird::engine::{CompactionScope, Durability, Encoding, Forgetting, Settings};
use omird_tests::session::{Session, TestClock};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// More than what is there anyway.
const SPARE: usize = 40 * MIB;
const PATIENCE: Duration = Duration::from_secs(120);

/// Entities that are updated over and over.
const DOORS: usize = 64;

/// The next version of every door.
fn update(session: &Session, round: usize) {
    let door = |n: usize| {
        format!(
            r#"{{"resourceType":"Entity","id":"door-{n}","name":"door {n}, seen {round} times"}}"#
        )
    };
    let doors: Vec<String> = (0..DOORS).map(door).collect();
    let bundle =
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{}]}}"#, doors.join(","));
    let change = session.prepare(bundle.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("the disk is good");
}

/// Name and length of the log that is being written.
fn log(folder: &Path) -> (PathBuf, u64) {
    let files = std::fs::read_dir(folder.join("wal")).expect("it is there");
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let newest = paths.filter(|path| path.extension().is_some_and(|ending| ending == "wal")).max();
    let newest = newest.expect("there is always one");
    let len = newest.metadata().map_or(0, |found| found.len());
    (newest, len)
}

/// Bytes allocated in addition, at the most during some work and after it.
fn beyond(work: impl FnOnce()) -> (usize, usize) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    work();
    let beyond = |usage: usize| usage.saturating_sub(before);
    (beyond(HEAP.peak_usage()), beyond(HEAP.current_usage()))
}

#[test]
fn sealing_and_compacting_small_updates_takes_little_memory_and_gives_it_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings {
        durability: Durability::None,
        index_from_bytes: 0,
        forgetting: Forgetting { sweep_interval: None, ..Forgetting::default() },
        ..Settings::default()
    };
    let (full, history) = (settings.segment_bytes, settings.keep_history);
    let disk = Arc::new(Folder::new(folder.path()));
    let index = Some(folder.path().join("index"));
    let clock = TestClock::new();
    let session = Session::open_with(disk, &clock, settings, index).expect("it opens");
    let mut round = 0;
    let mut update_while = |is_wanted: &dyn Fn(&(PathBuf, u64)) -> bool| {
        while is_wanted(&log(folder.path())) {
            update(&session, round);
            round += 1;
        }
    };
    // From here on the kept index is open, which takes memory of its own.
    update_while(&|(_, len)| *len < full / 100);
    session.seal_now(PATIENCE).expect("the disk is good");
    update_while(&|(_, len)| *len < full / 100 * 98);
    let (filled, _) = log(folder.path());
    let (most, left) = beyond(|| {
        update_while(&|(newest, _)| *newest == filled);
        session.seal_now(PATIENCE).expect("the disk is good");
    });
    println!("sealing: {} kB at most, {} kB left", most >> 10, left >> 10);
    assert!(most < SPARE, "sealing took {most} bytes");
    assert!(left < 8 * MIB, "sealing kept {left} bytes");

    clock.advance(2 * history);
    let (most, left) = beyond(|| {
        let done = session.compact(CompactionScope::All).expect("the disk is good");
        assert!(done.superseded > 10_000, "{done:?}");
    });
    println!("compaction: {} kB at most, {} kB left", most >> 10, left >> 10);
    assert!(most < SPARE, "compaction took {most} bytes");
    assert!(left < MIB, "compaction kept {left} bytes");
}
