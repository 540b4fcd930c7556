//! `omir pull`, `push` and `console` over a serial line.
//!
//! Invariant 32 of ARCHITECTURE.md.

mod cable;
mod required;

use std::process::{Command, Output};

const OMIR: &str = env!("CARGO_BIN_EXE_omir");

#[track_caller]
fn ends_with(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn where_nobody_answers_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none").display().to_string();
    for timeout in ["1", "0.1"] {
        let output = Command::new(OMIR)
            .args(["pull", "--timeout", timeout, "--port", &none])
            .output()
            .unwrap();
        let said = ends_with(&output, 4);
        assert!(said.contains("there is no such device"), "{said}");
    }
}
