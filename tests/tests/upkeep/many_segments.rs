//! A store has more segments than a process may have files open.

use omird::engine::testing::ByHand;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::record;
use omird_tests::model::Request;
use omird_tests::process::{Client, Daemon};
use omird_tests::session::{Session, TestClock};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const SEGMENTS: usize = 1500;
/// Number of descriptors the daemon may have.
const DESCRIPTORS: usize = 256;

/// Fills a data folder: one record in each segment.
fn fill(data: &Path) {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    for n in 0..SEGMENTS {
        clock.advance(Duration::from_secs(1));
        let one = record(&format!("m{n}"), &format!("parcel number {n}"), &[], None);
        let change = change(&session, &Request::Remember(vec![one])).expect("it is valid");
        session.execute(change).expect("there is room");
        session.seal_now(Duration::from_secs(60)).expect("there is room");
    }
    drop(session);
    let paths = disk.paths();
    assert_eq!(paths.iter().filter(|path| path.ends_with(".omirb")).count(), SEGMENTS);
    for path in paths {
        let file = data.join(&path);
        fs::create_dir_all(file.parent().expect("it is in the folder")).expect("a folder");
        fs::write(file, disk.bytes(&path)).expect("a file");
    }
}

/// A program that starts the daemon with few descriptors.
fn limited(folder: &Path) -> String {
    let script = folder.join("omird-limited");
    fs::write(&script, format!("#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec {PROGRAM:?} \"$@\"\n"))
        .expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    script.to_str().expect("a temporary path is text").to_owned()
}

fn content(client: &Client, n: usize) -> Value {
    let mut answers = client.ask(&format!("omir/r1/memory/MemoryRecord/m{n}"));
    assert_eq!(answers.len(), 1, "m{n}: {answers:?}");
    answers.remove(0).value()["content"].clone()
}

#[test]
fn more_segments_than_descriptors_are_served() {
    let (data, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(data.path());
    let program = limited(programs.path());
    // The second start reads the kept index in place of the segments.
    for start in 0..2 {
        let daemon = Daemon::start(&program, data.path(), "r1", &[]);
        let client = Client::connect(&daemon.endpoint);
        for n in (0..SEGMENTS).step_by(7).chain([SEGMENTS - 1, 0]) {
            assert_eq!(content(&client, n), format!("parcel number {n}"));
        }
        let asked = json!({"q": "parcel", "limit": 1000});
        let recalled = client.ask_json("omir/r1/recall", &asked);
        assert_eq!(recalled.value()["hits"].as_array().map(Vec::len), Some(1000));
        assert_eq!(recalled.value()["total"], SEGMENTS + start);
        let new = json!({"resourceType": "MemoryRecord", "id": format!("new-{start}"),
            "content": "one more parcel", "createdAt": "2026-05-30T11:42:05Z"});
        client.ask_json("omir/r1/remember", &new).value();
        let exported = client.one("omir/r1/export", None);
        assert_eq!(exported.value()["entry"].as_array().map(Vec::len), Some(SEGMENTS + 1 + start));
        // The stop seals the log: one more segment.
        assert!(daemon.stop().success());
    }
}
