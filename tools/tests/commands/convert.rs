//! `omir convert` over real files and pipes: byte for byte what converting in memory gives, and the old
//! file stays where something is wrong.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use omir_core::decode::Limits;
use omir_core::{cbor, json};
use omir_tools::document::{self, Encoding};

const EVERYTHING: &str = include_str!("../../../core-nostd/tests/data/everything.omir");

/// Documents as they are, as they should not be, and values that are none; the last two are larger than
/// what waits in memory and what is read at once.
fn documents() -> Vec<String> {
    let record = r#"{"resourceType":"MemoryRecord","id":"m","content":"door \u00e9 \ud83e\udd16 \u0000","createdAt":"2026-01-01T00:00:00Z","importance":1.0,"extension":[{"url":"urn:x:y","valueJson":{"b":-0.0,"a":18446744073709551616,"c":1e400,"deep":[[[{"":{}}]]]}}]}"#;
    let many = vec![record; 4500].join(",\n");
    let long = format!(r#""{}""#, "long ".repeat(60_000));
    vec![
        EVERYTHING.to_owned(),
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{record}]}}"#),
        format!(r#"{{"entry":[{record},{{"id":1,"a":2}},3,null,[]],"z":{{}},"y":[1],"\n":1}}"#),
        r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[]}"#.to_owned(),
        r#"{"resourceType":"Bundle","entry":{"a":1}}"#.to_owned(),
        record.to_owned(),
        format!("[{record},{{}}]"),
        "{}".to_owned(),
        "12345678901234567890.5".to_owned(),
        format!(
            r#"{{"@context":"c","entry":[{many}],"resourceType":"Bundle","omirVersion":"R1","id":"b"}}"#
        ),
        format!(r#"{{"entry":[{long},{long}],"x":{long}}}"#),
    ]
}

fn omir(words: &[&Path], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_omir"))
        .arg("convert")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feed = std::thread::spawn(move || drop(pipe.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    output
}

#[track_caller]
fn convert(from: &Path, to: &Path) {
    let output = omir(&[from, to], b"");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn streaming_gives_what_memory_gives() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for text in documents() {
        let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        fs::write(path("in.omir"), &text).unwrap();

        convert(&path("in.omir"), &path("out.omirb"));
        let binary = fs::read(path("out.omirb")).unwrap();
        assert_eq!(binary, cbor::to_vec(&value));

        convert(&path("in.omir"), &path("same.omir"));
        assert_eq!(fs::read(path("same.omir")).unwrap(), Encoding::Json.write(&value));

        convert(&path("out.omirb"), &path("back.omir"));
        let sorted = document::read(&path("out.omirb")).unwrap();
        let expected = Encoding::Json.write(&document::in_schema_order(sorted));
        assert_eq!(fs::read(path("back.omir")).unwrap(), expected);
        let piped = omir(&[Path::new("-"), Path::new("-")], &binary);
        assert_eq!(piped.stdout, expected);

        convert(&path("back.omir"), &path("again.omirb"));
        assert_eq!(fs::read(path("again.omirb")).unwrap(), binary);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left behind");
}

#[test]
fn a_document_can_be_converted_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.omir");
    fs::write(&file, EVERYTHING).unwrap();
    let value = document::read(&file).unwrap();
    convert(&file, &file);
    assert_eq!(fs::read(&file).unwrap(), Encoding::Json.write(&value));
}

#[test]
fn what_cannot_be_read_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in.omir"), folder.path().join("out.omirb"));
    fs::write(&to, "old").unwrap();
    let whole = &documents()[9];
    let cut_off = &whole[..whole.len() - 100];
    let end = format!("at byte {}", cut_off.len());
    for (input, place) in [(cut_off, end.as_str()), ("{\"entry\":[1],\"entry\":[]}", "at byte 13")]
    {
        fs::write(&from, input).unwrap();
        let output = omir(&[&from, &to], b"");
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains("in.omir") && complaint.contains(place), "{complaint}");
        assert_eq!(fs::read_to_string(&to).unwrap(), "old");
    }
    let output = omir(&[&folder.path().join("absent.omir"), &to], b"");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&to).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");

    let output = omir(&[Path::new("-"), Path::new("-")], b"{\"entry\":[{},");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("in.omir");
    fs::write(&from, EVERYTHING).unwrap();
    let output = omir(&[&from, &folder.path().join("absent/out.omirb")], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write"));
    let output = omir(&[&from, &folder.path().join("out.txt")], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains(".omirb"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in.omir"), folder.path().join("out.omirb"));
    fs::write(&from, EVERYTHING).unwrap();
    std::os::unix::fs::symlink("/dev/full", &to).unwrap();
    let output = omir(&[&from, &to], b"");
    assert_eq!(output.status.code(), Some(2));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("out.omirb: cannot write"), "{complaint}");
}
