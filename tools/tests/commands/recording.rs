//! `omir import` of recordings and `omir export --format mcap`, as a person uses them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird_tests::process::{Daemon, nobody_reads};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omir");

fn omir(endpoint: &str, words: &[&str]) -> Output {
    command(endpoint, words).output().unwrap()
}

fn command(endpoint: &str, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    for variable in ["OMIR_ROBOT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.env("OMIR_CONNECT", endpoint).args(words).stdin(Stdio::null());
    command
}

/// An endpoint on which nobody listens.
const NOBODY: &str = "tcp/127.0.0.1:1";

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn parsed(bytes: &[u8]) -> Value {
    json::from_slice(bytes, &Limits::default()).unwrap()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}"))
}

fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ros2/tests/data/recordings");
    folder.join(name).to_str().unwrap().to_owned()
}

fn path(folder: &tempfile::TempDir, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    let name = path.to_str().unwrap().to_owned();
    (path, name)
}

#[test]
fn a_recording_is_imported_once_however_often() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in_tool(PROGRAM, &folder.path().join("data"), "r1");
    let drive = recording("drive.mcap");
    let import = |words: &[&str]| {
        let line = ["--json", "import", "--format", "mcap"].iter().chain(words).copied();
        let output = omir(&daemon.endpoint, &line.collect::<Vec<_>>());
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        parsed(&output.stdout)
    };
    let would = import(&["--dry-run", &drive]);
    assert_eq!(would.get("stored"), Some(&Value::Null));
    let first = import(&[&drive]);
    let count = number(&first, "/resources");
    assert_eq!((number(&would, "/resources"), number(&first, "/stored/added")), (count, count));
    let second = import(&[&drive]);
    assert_eq!(number(&second, "/stored/unchanged"), count, "{}", json::to_string(&second));
    // A part of it tells of some things less, and takes nothing back.
    let part = import(&["--topics", "/camera*", "--overwrite", &drive]);
    assert_eq!(number(&part, "/stored/unchanged"), number(&part, "/resources"));

    let (bundle, name) = path(&folder, "all.omir");
    let export = omir(&daemon.endpoint, &["export", "-o", &name]);
    assert!(export.status.success(), "{}", text(&export.stderr));
    let entries = parsed(&std::fs::read(bundle).unwrap());
    assert_eq!(entries.get("entry").and_then(Value::as_array).unwrap().len() as u64, count);
    let (timeline, name) = path(&folder, "all.mcap");
    let export = omir(&daemon.endpoint, &["export", "--format", "mcap", "-o", &name]);
    assert!(export.status.success(), "{}", text(&export.stderr));
    assert!(text(&export.stderr).contains(&format!("{count} resources written")));
    let bytes = std::fs::read(timeline).unwrap();
    assert!(bytes.starts_with(b"\x89MCAP0\r\n") && bytes.ends_with(b"\x89MCAP0\r\n"));
}

#[test]
fn without_a_daemon_a_document_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (document, name) = path(&folder, "drive.omir");
    let output = omir(NOBODY, &["import", "--format", "mcap", "-o", &name, &recording("lz4.mcap")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("/camera/detections"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("Detection3DArray"), "{}", text(&output.stderr));
    let written = parsed(&std::fs::read(&document).unwrap());
    assert!(written.get("entry").and_then(Value::as_array).unwrap().len() > 5);
    let valid = omir(NOBODY, &["validate", &name]);
    assert!(valid.status.success(), "{}", text(&valid.stdout));
}

#[test]
fn rules_say_what_is_kept_and_a_cut_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (rules, rules_name) = path(&folder, "omird.toml");
    std::fs::write(
        &rules,
        "[robot]\nid = 'r1'\n[ros2]\nfixed_frame = 'map'\n[[ros2.topic]]\ntopic = '/docking/result'\n\
         text = 'at {dock_name}'\nkeep = {}\n",
    )
    .unwrap();
    let (cut, cut_name) = path(&folder, "cut.mcap");
    let whole = std::fs::read(recording("unchunked.mcap")).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 40]).unwrap();
    let line =
        ["--json", "import", "--format", "mcap", "--dry-run", "--rules", &rules_name, &cut_name];
    let output = omir(NOBODY, &line);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("PARTIAL"), "{}", text(&output.stderr));
    let told = parsed(&output.stdout);
    assert_eq!(number(&told, "/resources"), 1);
    assert!(number(&told, "/losses/0/offset") > 0);
    // Also where nobody reads of it.
    for words in [&line[..], &line[1..]] {
        let output = command(NOBODY, words).stdout(nobody_reads()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    }
    std::fs::write(&rules, "[ros2]\nfixed_fame = 'map'\n").unwrap();
    let output = omir(NOBODY, &line);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("ros2.fixed_fame"), "{}", text(&output.stderr));
}

#[test]
fn options_of_recordings_are_for_recordings() {
    for (words, why) in [
        (&["import", "--rules", "x.toml", "y.omir"][..], "is for recordings"),
        (&["import", "x.mcap", "y.omir"], "commands of their own"),
        (&["import", "-o", "x.omir", "y.omir"], "--dry-run"),
        (&["import", "--format", "mcap", "--spacing", "1", "y.mcap"], "--spacing"),
        (&["import", "--format", "mcap", "-o", "x.txt", "y.mcap"], "ending"),
        (&["export", "--format", "mcap"], "--output"),
        (&["export", "--uncompressed"], "--format mcap"),
    ] {
        let output = omir(NOBODY, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(why), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_recording_is_known_without_being_told() {
    let folder = tempfile::tempdir().unwrap();
    let resources = |words: &[&str], code: i32| {
        let line = ["--json", "import", "--dry-run"].iter().chain(words).copied();
        let output = omir(NOBODY, &line.collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stderr));
        (number(&parsed(&output.stdout), "/resources"), text(&output.stderr).to_owned())
    };
    let lz4 = resources(&[&recording("lz4.mcap")], 0).0;
    assert!(lz4 > 5);
    for name in ["message_zstd.db3", "message_zstd.mcap", "file.db3.zstd"] {
        assert_eq!(resources(&[&recording(name)], 0).0, lz4, "{name}");
    }
    // By its bytes, whatever it is called.
    let (odd, odd_name) = path(&folder, "monday");
    std::fs::copy(recording("lz4.mcap"), &odd).unwrap();
    assert_eq!(resources(&[&odd_name], 0).0, lz4);
    // A folder of rosbag2: two files, one of them packed, and a third that is lost.
    let (bag, bag_name) = path(&folder, "bag");
    std::fs::create_dir(&bag).unwrap();
    std::fs::copy(recording("older.db3"), bag.join("bag_0.db3")).unwrap();
    std::fs::copy(recording("file.db3.zstd"), bag.join("bag_1.db3.zstd")).unwrap();
    let metadata = |files: &[&str]| {
        let list: String = files.iter().map(|file| format!("    - {file}\n")).collect();
        let text = format!("rosbag2_bagfile_information:\n  relative_file_paths:\n{list}  x: 1\n");
        std::fs::write(bag.join("metadata.yaml"), text).unwrap();
    };
    metadata(&["bag_0.db3", "bag_1.db3.zstd"]);
    assert_eq!(resources(&[&bag_name], 0).0, lz4);
    metadata(&["bag_0.db3", "bag_1.db3.zstd", "bag_2.db3.zstd"]);
    let (count, said) = resources(&[&bag_name], 3);
    assert_eq!(count, lz4);
    assert!(said.contains("bag_2.db3.zstd") && said.contains("not there"), "{said}");
    // A document is still one.
    let (_, document) = path(&folder, "a.omir");
    std::fs::write(&document, r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[]}"#)
        .unwrap();
    let output = omir(NOBODY, &["import", "--dry-run", &document]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_is_no_recording_is_refused_with_the_file_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let (bag, bag_name) = path(&folder, "old.bag");
    std::fs::write(&bag, "#ROSBAG V2.0\n").unwrap();
    let (database, database_name) = path(&folder, "cut.db3");
    std::fs::write(&database, "SQLite format 3\0").unwrap();
    let (packed, packed_name) = path(&folder, "cut.mcap.zstd");
    std::fs::write(&packed, [0x28, 0xb5, 0x2f, 0xfd, 0]).unwrap();
    for (name, why) in [
        (&bag_name, "rosbags-convert"),
        (&database_name, "SQLite"),
        (&packed_name, "cannot be unpacked"),
    ] {
        let output = omir(NOBODY, &["import", "--dry-run", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = text(&output.stderr);
        assert!(said.contains(name.as_str()) && said.contains(why), "{said}");
    }
}
