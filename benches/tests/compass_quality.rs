//! That no rule of stage memory is worse on the held-out sessions than docs/compass.md says, where that is quick to measure.

use std::process::Command;

#[test]
fn no_figure_is_worse_than_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(env!("CARGO_BIN_EXE_omird-bench"))
        .args(["compass-quality", "--check", "--only", "names,patterns,stages"])
        .env("TMPDIR", folder.path())
        .output()
        .expect("omird-bench runs");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("none worse than published"), "{said}");
}
