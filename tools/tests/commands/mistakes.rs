//! Mistakes on the command line, and the messages they get: tests/golden/mistakes.txt. Each message names what
//! was wrong and what to do, and nothing of what `omir` is made of.

use std::fs;
use std::process::{Command, Stdio};

use omird_tests::golden;

/// `@` stands for a folder with some files in it.
const LINES: [&[&str]; 40] = [
    &["status", "--connect", "127.0.0.1"],
    &["status", "--connect", "tcp/127.0.0.1"],
    &["status", "--connect", "127.0.0.1:port"],
    &["status", "--connect", ""],
    &["status", "--connect", "127.0.0.1:1"],
    &["status", "--zenoh-config", "@/none.json5"],
    &["status", "--zenoh-config", "@"],
    &["status", "--zenoh-config", "@/cut.json5"],
    &["status", "--zenoh-config", "@/zenoh.toml"],
    &["status", "--timeout", "soon"],
    &["status", "--timeout", "8MiB"],
    &["status", "--timeout", "2d"],
    &["--robot", "a/b", "status"],
    &["recall", "--near", "4.-1"],
    &["recall", "--near", "4,"],
    &["recall", "--near", "4 -1"],
    &["recall", "--near", "4"],
    &["recall", "--near", "nan,1"],
    &["recall", "--radius", "5"],
    &["recall", "--since", "yesterday"],
    &["recall", "--limit", "5000"],
    &["remember"],
    &["remember", "x", "--at", "1"],
    &["remember", "x", "--half-life", "soon"],
    &["remember", "x", "--importance", "80"],
    &["remember", "--type", "Entity"],
    &["remember", "--file", "@/text.txt"],
    &["get", "a b"],
    &["get", "Thing/x"],
    &["console", "--port", "@/text.txt"],
    &["console", "--port", "@"],
    &["console", "--port", "@/none"],
    &["pull", "--port", "@/text.txt", "--timeout", "0"],
    &["import", "@/none.omir"],
    &["import", "@/text.txt"],
    &["import", "@/empty.omir"],
    &["import", "@/cut.omir"],
    &["validate", "@/empty.omir"],
    &["restore", "@/none", "@/new"],
    &["export", "-o", "@/all.txt"],
];

#[test]
fn each_mistake_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    for (name, text) in [
        ("text.txt", "hello"),
        ("empty.omir", ""),
        (
            "cut.omir",
            r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"resourceType":"Entity""#,
        ),
        ("cut.json5", "{ mode: "),
        ("zenoh.toml", "mode = 1"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut shown = String::new();
    for line in LINES {
        let words = line.iter().map(|word| word.replace('@', at));
        let mut command = Command::new(env!("CARGO_BIN_EXE_omir"));
        for name in ["OMIR_ROBOT", "OMIR_CONNECT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "COLUMNS"] {
            command.env_remove(name);
        }
        let output = command.args(words).stdin(Stdio::null()).output().unwrap();
        assert!(output.stdout.is_empty(), "{line:?}");
        let said = String::from_utf8(output.stderr).unwrap().replace(at, "@");
        for inside in ["/.cargo/", "registry", ".rs:", "Err(", "ioctl", "Message {"] {
            assert!(!said.contains(inside), "{line:?}: {said}");
        }
        let code = output.status.code().unwrap();
        let line: Vec<String> = line.iter().map(|word| format!("{word:?}")).collect();
        shown.push_str(&format!("$ omir {}\n{}\n= {code}\n\n", line.join(" "), said.trim_end()));
    }
    golden::check(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/mistakes.txt"), &shown);
}
