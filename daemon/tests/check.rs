//! `omird --check`: the exit status and the words that `docs/operations.md` promises.
//!
//! A test of this package also makes `cargo test --workspace` build the program, which `.ci/run` then gives to clients
//! of others.

use std::process::{Command, Output};

/// Runs `omird --check` on a file with `text`, in an environment with nothing of the machine's in it.
fn check(text: &str) -> (Output, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("omird.toml");
    std::fs::write(&file, text).expect("the file can be written");
    let output = Command::new(env!("CARGO_BIN_EXE_omird"))
        .args(["--check", "--config"])
        .arg(&file)
        .env_clear()
        .env("HOME", folder.path())
        .output()
        .expect("omird runs");
    assert!(!folder.path().join(".local").exists(), "--check leaves nothing behind");
    (output, file.display().to_string())
}

#[test]
fn a_good_configuration_is_confirmed_with_status_0() {
    let (output, _) = check("robot = \"rover\"\ndata = \"/nowhere/at/all\"\n");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("configuration is good: robot=rover data=/nowhere/at/all"), "{said}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_mistake_is_named_with_file_line_and_key_and_status_2() {
    for (text, place, hint) in [
        ("roboot = \"rover\"\n", "line 1: roboot: no such key", "did you mean \"robot\"?"),
        (
            "robot = \"rover\"\n\n[store]\nsegment_bytes = \"8 cows\"\n",
            "line 4: store.segment_bytes",
            "cows",
        ),
        ("robot = \n", "line 1", ""),
    ] {
        let (output, file) = check(text);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with(&format!("omird: {file}: ")), "{said}");
        assert!(said.contains(place) && said.contains(hint), "{said}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_status_2() {
    let output = Command::new(env!("CARGO_BIN_EXE_omird"))
        .args(["--check", "--config", "/nowhere/omird.toml"])
        .output()
        .expect("omird runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/omird.toml"), "{output:?}");
}
