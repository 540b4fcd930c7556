//! `omir restore` in the place of a memory, as docs/operations.md has it: with a real daemon before and after.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use omird_tests::process::Daemon;

const OMIR: &str = env!("CARGO_BIN_EXE_omir");

fn omir(endpoint: Option<&str>, line: &[&str]) -> Output {
    let mut command = Command::new(OMIR);
    for name in ["OMIR_ROBOT", "OMIR_CONNECT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX"] {
        command.env_remove(name);
    }
    command.args(line).args(endpoint.map(|endpoint| format!("--connect={endpoint}")));
    command.stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn ends(output: &Output, code: i32) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

fn start(data: &Path) -> Daemon {
    Daemon::start_in_tool(OMIR, data, "r1")
}

#[test]
fn a_backup_takes_the_place_of_a_memory_that_stays_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let daemon = start(&path("data"));
    ends(&omir(Some(&daemon.endpoint), &["remember", "the door sticks", "--id", "before"]), 0);
    ends(&omir(Some(&daemon.endpoint), &["backup", &text("backup")]), 0);
    ends(&omir(Some(&daemon.endpoint), &["remember", "a bad day", "--id", "after"]), 0);

    let line = ["restore", "--replace", &text("backup"), &text("data")];
    let said = ends(&omir(None, &line), 2);
    assert!(said.contains("is using it; stop that one first"), "{said}");
    assert!(daemon.stop().success());
    let key = fs::read(path("data/keys/device.key")).unwrap();
    let said = ends(&omir(None, &["restore", &text("backup"), &text("data")]), 2);
    assert!(said.contains("--replace") && !path("data.before").exists(), "{said}");
    let said = ends(&omir(None, &line), 0);
    assert!(said.contains("data.before"), "{said}");

    let daemon = start(&path("data"));
    ends(&omir(Some(&daemon.endpoint), &["get", "before"]), 0);
    ends(&omir(Some(&daemon.endpoint), &["get", "after"]), 1);
    assert!(daemon.stop().success());
    assert_eq!(fs::read(path("data/keys/device.key")).unwrap(), key, "it signs as before");
    ends(&omir(None, &["store", "check", &text("data")]), 0);
    // The old data folder still holds its memories.
    let daemon = start(&path("data.before"));
    ends(&omir(Some(&daemon.endpoint), &["get", "after"]), 0);
    assert!(daemon.stop().success());

    // Again, and with a backup that does not verify: then nothing is moved.
    ends(&omir(None, &line), 0);
    assert!(path("data.before-2").is_dir());
    fs::write(path("backup/segments/0000000001.omirb"), "rotten").unwrap();
    ends(&omir(None, &line), 1);
    assert!(!path("data.before-3").exists() && path("data/segments").is_dir());
}
