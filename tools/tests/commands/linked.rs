//! `omir convert` to N-Triples, as it is typed.

use std::path::Path;
use std::process::{Command, Output};

fn convert(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_omir"))
        .arg("convert")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("omir runs")
}

const BUNDLE: &str = r#"{"@context":"https://omir.io/spec/R1/context.jsonld","resourceType":"Bundle",
    "omirVersion":"R1","id":"b","entry":[{"resourceType":"Entity","id":"john","name":"John"}]}"#;

#[test]
fn the_ending_asks_for_triples() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    std::fs::write(folder.path().join("in.omir"), BUNDLE).unwrap();

    let done = convert(&["in.omir", "own.nt"], folder.path());
    assert!(done.status.success(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("@context is not used"), "{done:?}");
    assert!(read("own.nt").contains("<urn:omird:bundle:b:Entity/john> "), "{}", read("own.nt"));

    let base = "https://example.org/r/";
    assert!(convert(&["in.omir", "in.omirb"], folder.path()).status.success());
    let done = convert(&["--quiet", "--base", base, "in.omirb", "out.NT"], folder.path());
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert_eq!(read("out.NT"), read("own.nt").replace("urn:omird:bundle:b:", base));
}

#[test]
fn what_is_refused_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.omir"), BUNDLE).unwrap();
    std::fs::write(folder.path().join("bad.omir"), BUNDLE.replace("\"name\"", "\"nome\"")).unwrap();
    std::fs::write(folder.path().join("out.nt"), "old").unwrap();
    for (arguments, complaint) in [
        (["bad.omir", "out.nt"].as_slice(), "bad.omir: /entry/0"),
        (&["bad.omir", "out.nt"], "E120"),
        (&["--base", "robot", "in.omir", "out.nt"], "must end with /, # or :"),
        (&["--base", "https://example.org/", "in.omir", "out.omirb"], "--base is for N-Triples"),
    ] {
        let done = convert(arguments, folder.path());
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(String::from_utf8_lossy(&done.stderr).contains(complaint), "{done:?}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("out.nt")).unwrap(), "old");
    assert!(!folder.path().join("out.omirb").exists());
}
