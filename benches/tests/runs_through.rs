//! That the commands of benches/README.md measure to their end; what they measure is not looked at.

use std::process::Command;

fn measured(arguments: &[&str], row: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(env!("CARGO_BIN_EXE_omird-bench"))
        .arg("--quick")
        .args(arguments)
        .env("TMPDIR", folder.path())
        .output()
        .expect("omird-bench runs");
    let (table, told) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{told}");
    assert!(table.contains(row), "no {row} in\n{table}");
}

#[test]
fn the_table_is_made() {
    // A store that is too small for an index on the disk, and one that has one.
    measured(&["--sizes", "100,3000"], "reopen, index deleted");
}

#[test]
fn the_table_of_a_long_life_is_made() {
    measured(&["--life", "--sizes", "1000"], "start after a cut, no index");
}
