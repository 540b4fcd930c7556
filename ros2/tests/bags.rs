//! Bags of rosbag2 in SQLite, and what it compresses, that another library wrote: whole, cut off, damaged, and made to
//! do harm. See `data/recordings/make.py`.
//!
//! Invariants 24 and 26 of ARCHITECTURE.md.

#![cfg(feature = "recordings")]

mod damage;

use std::path::{Path, PathBuf};

use omir_core::value::Value;
use omir_ros2::recording::{Advance, At, Import, Input, Report, by_type, configured};
use omir_ros2::rules::Ros2;
use rusqlite::Connection;

use damage::damaged;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings").join(name)
}

fn rules() -> Ros2 {
    let dock = "[[ros2.topic]]\ntopic = '/docking/result'\ntype = 'my_robot_msgs/msg/DockResult'\n\
                text = 'docked at {dock_name}, {offset[1]} m'\nkeep = {}\nmerge = false";
    let mut ros2 = by_type();
    ros2.topics.extend(configured(dock).unwrap().topics);
    ros2
}

fn tried(path: &Path) -> Result<(Vec<Value>, Report), String> {
    let files = vec![Input::open(path).unwrap()];
    let mut import = Import::new(files, &rules(), Vec::new()).map_err(|why| why.to_string())?;
    let mut all = Vec::new();
    loop {
        match import.advance(10) {
            Advance::Reading => {}
            Advance::Batch(batch) => all.extend(batch),
            Advance::Done => break,
        }
    }
    Ok((all, import.report()))
}

fn import(path: &Path) -> (Vec<Value>, Report) {
    tried(path).unwrap_or_else(|why| panic!("{why}"))
}

fn messages(report: &Report) -> u64 {
    report.topics.iter().map(|topic| topic.messages).sum()
}

/// Returns a memory without the file that it came from.
fn told(resources: &[Value]) -> Vec<String> {
    let mut all: Vec<String> = resources.iter().map(omir_core::json::to_string).collect();
    all.sort();
    all
}

#[test]
fn a_bag_gives_the_same_memories_as_the_mcap_of_the_same_messages() {
    let (drive, report) = import(&recording("drive.db3"));
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let (mcap, other) = import(&recording("drive.mcap"));
    assert_eq!(messages(&report), messages(&other));
    assert_eq!(told(&drive), told(&mcap));
    assert_eq!(report.topics, other.topics);
}

#[test]
fn what_is_compressed_by_the_message_or_as_a_file_is_the_same() {
    let (plain, _) = import(&recording("lz4.mcap"));
    for name in ["message_zstd.db3", "message_zstd.mcap", "file.db3.zstd"] {
        let (packed, report) = import(&recording(name));
        assert!(report.losses.is_empty(), "{name}: {:?}", report.losses);
        assert_eq!(told(&packed), told(&plain), "{name}");
    }
}

#[test]
fn a_bag_without_definitions_is_read_by_the_types_that_are_known() {
    let (resources, report) = import(&recording("older.db3"));
    assert_eq!(resources.len(), 2, "{resources:?}");
    let topic = |name: &str| report.topics.iter().find(|topic| topic.topic == name).unwrap();
    assert_eq!((topic("/rosout").messages, &topic("/rosout").unusable), (4, &None));
    let why = topic("/docking/result").unusable.as_deref().unwrap();
    assert!(why.contains("my_robot_msgs/msg/DockResult"), "{why}");
    assert!(why.contains("ros2.interfaces"), "it says what to do: {why}");
}

#[test]
fn of_a_bag_that_is_cut_off_or_damaged_the_rest_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x y?.db3");
    let whole = std::fs::read(recording("drive.db3")).unwrap();
    let all = messages(&import(&recording("drive.db3")).1);
    let mut some = 0;
    for end in (0..whole.len()).step_by(4096 * 3 / 2) {
        std::fs::write(&path, &whole[..end]).unwrap();
        match tried(&path) {
            Err(why) => assert!(why.contains("x y?.db3"), "{why}"),
            Ok((_, report)) => {
                let found = messages(&report);
                assert!(found < all && !report.losses.is_empty(), "cut at {end}: {found}");
                for loss in &report.losses {
                    assert!(loss.file.ends_with("x y?.db3"), "{loss}");
                }
                some += usize::from(found > 0);
            }
        }
    }
    assert!(some > 5, "{some}");
    // A page in the middle of the rows.
    let mut between = 0;
    for page in 2..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..][..4096].fill(0xa5);
        std::fs::write(&path, damaged).unwrap();
        let Ok((_, report)) = tried(&path) else { continue };
        let found = messages(&report);
        if found < all {
            let rows = report.losses.iter().any(|loss| matches!(loss.at, At::Row(_) | At::File));
            assert!(rows, "page {page}: {:?}", report.losses);
            between += usize::from(found > all / 2);
        }
    }
    assert!(between > 3, "rows behind the damage are found: {between}");
}

#[test]
fn garbage_in_a_bag_is_no_reason_to_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db3");
    let whole = std::fs::read(recording("message_zstd.db3")).unwrap();
    for damaged in damaged(&whole, 16) {
        std::fs::write(&path, damaged).unwrap();
        if let Err(why) = tried(&path) {
            assert!(why.contains("x.db3: "), "{why}");
        }
    }
}

const TABLES: &str = "
    CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT);
    INSERT INTO topics VALUES(1, '/words', 'std_msgs/msg/String', 'cdr');";
const MESSAGES: &str = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);";

/// A database of these statements.
fn database(folder: &tempfile::TempDir, sql: &str) -> (PathBuf, Connection) {
    let path = folder.path().join("x.db3");
    let _ = std::fs::remove_file(&path);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    (path, connection)
}

#[test]
fn what_is_no_bag_is_refused_and_nothing_in_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = database(&folder, "CREATE TABLE a(b); INSERT INTO a VALUES(1);");
    let why = tried(&path).unwrap_err();
    assert!(why.contains("x.db3: ") && why.contains("without a table `topics`"), "{why}");
    let endless = "CREATE VIEW messages(id, topic_id, timestamp, data) AS WITH RECURSIVE n(i) AS \
                   (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 1, i, x'00010000' FROM n;";
    let (path, _) = database(&folder, &format!("{TABLES}{endless}"));
    let why = tried(&path).unwrap_err();
    assert!(why.contains("without a table `messages`"), "{why}");
}

#[test]
fn rows_that_are_no_messages_and_messages_that_unpack_without_end_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = database(&folder, &format!("{TABLES}{MESSAGES}"));
    let bomb = zstd::encode_all(std::io::Read::take(std::io::repeat(0), 80 << 20), 1).unwrap();
    let hello = [&[0, 1, 0, 0, 6, 0, 0, 0][..], b"hello\0"].concat();
    let insert = "INSERT INTO messages(topic_id, timestamp, data) VALUES(?1, ?2, ?3)";
    for n in 0..3 {
        connection.execute(insert, (1, 1_780_000_000_000_000_000_i64 + n, &bomb)).unwrap();
    }
    connection.execute(insert, (1, "not a time", 7)).unwrap();
    connection.execute(insert, (9, 1_780_000_000_000_000_000_i64, &hello)).unwrap();
    connection.execute(insert, (1, 1_780_000_001_000_000_000_i64, &hello)).unwrap();
    drop(connection);
    let (resources, report) = import(&path);
    assert_eq!(resources.len(), 1);
    let words = &report.topics[0];
    assert_eq!((words.counters.malformed, words.messages), (3, 4), "{words:?}");
    assert!(words.malformed[0].why.contains("64 MiB"), "{:?}", words.malformed[0]);
    let told: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|loss| loss.contains("row 1: up to row 6, 1 rows")), "{told:?}");
    assert!(told.iter().any(|loss| loss.contains("1 messages of channels")), "{told:?}");
}

#[test]
fn what_a_recorder_left_in_a_log_beside_the_bag_is_read_and_the_bag_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) =
        database(&folder, &format!("PRAGMA journal_mode = WAL; {TABLES}{MESSAGES}"));
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0;")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let hello = [&[0, 1, 0, 0, 6, 0, 0, 0][..], b"hello\0"].concat();
    let insert =
        "INSERT INTO messages(topic_id, timestamp, data) VALUES(1, 1780000000000000000, ?1)";
    connection.execute(insert, [&hello]).unwrap();
    // As after a cut: the recorder is gone, and its log is there.
    let cut = tempfile::tempdir().unwrap();
    let copy = cut.path().join("x.db3");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(folder.path().join("x.db3-wal"), cut.path().join("x.db3-wal")).unwrap();
    let (resources, report) = import(&copy);
    assert_eq!((resources.len(), report.losses.len()), (1, 0), "{:?}", report.losses);
    assert_eq!(std::fs::read(&copy).unwrap(), before);
}

#[test]
fn a_journal_that_cannot_be_rolled_back_without_writing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (path, connection) = database(&folder, &format!("{TABLES}{MESSAGES}"));
    connection.execute_batch("PRAGMA cache_size = 1; PRAGMA synchronous = FULL; BEGIN;").unwrap();
    let data = [&[0, 1, 0, 0, 0xd1, 7, 0, 0][..], &[b'a'; 2000], b"\0"].concat();
    let insert = "INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?1, ?2)";
    for n in 0..200 {
        connection.execute(insert, (1_780_000_000_000_000_000_i64 + n, &data)).unwrap();
    }
    // As after a cut in the middle of it: pages of it are in the file, and the journal says what they were.
    let cut = tempfile::tempdir().unwrap();
    let copy = cut.path().join("x.db3");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(folder.path().join("x.db3-journal"), cut.path().join("x.db3-journal")).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let report = match tried(&copy) {
        Ok((_, report)) => report.losses.iter().map(ToString::to_string).collect(),
        Err(why) => why,
    };
    assert!(report.contains("x.db3-journal is not read"), "{report}");
    assert!(report.contains("sqlite3"), "it says what to do: {report}");
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    assert!(cut.path().join("x.db3-journal").exists());
}
