//! `omir import` against a real daemon, as a person uses it: backups, sealed segments, drives.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use omird_tests::process::{Daemon, nobody_reads};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omir");

/// A daemon, and the tool that asks it.
struct Robot(Daemon);

impl Robot {
    fn start(data: &Path) -> Self {
        Self(Daemon::start_in_tool(PROGRAM, data, "r1"))
    }

    /// Stops it, so that what it holds is sealed.
    fn stop(self) {
        assert!(self.0.stop().success());
    }

    fn omir(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// What becomes of a command whose output nobody reads.
    fn unread(&self, words: &[&str]) -> Option<i32> {
        self.command(words).stdout(nobody_reads()).output().unwrap().status.code()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        for variable in ["OMIR_ROBOT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "RUST_LOG"] {
            command.env_remove(variable);
        }
        command.env("OMIR_CONNECT", &self.0.endpoint).args(words).stdin(Stdio::null());
        command
    }

    /// Output of a command that succeeds.
    #[track_caller]
    fn ask(&self, words: &[&str]) -> String {
        let output = self.omir(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.name(name)
    }
}

fn bundle(entries: &[&str]) -> String {
    let entries = entries.join(",");
    format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entries}]}}"#)
}

const DOCK: &str = r#"{"resourceType":"Entity","id":"dock","name":"dock"}"#;
const SEEN: &str = r#"{"resourceType":"MemoryRecord","id":"seen","content":"the dock",
    "createdAt":"2026-01-01T00:00:00Z","entityRefs":[{"ref":"Entity/dock"}]}"#;
const GONE: &str = r#"{"resourceType":"MemoryRecord","id":"gone","content":"soon forgotten",
    "createdAt":"2026-01-01T00:00:00Z"}"#;

#[test]
fn an_older_backup_gives_back_what_is_gone_and_takes_nothing_away() {
    let folder = Folder::new();
    let (data, backup) = (folder.path("data"), folder.name("backup.omirb"));
    let first = folder.write("first.omir", &bundle(&[DOCK, SEEN, GONE]));
    let robot = Robot::start(&data);
    assert_eq!(robot.ask(&["import", &first]), format!("{first}: 3 added\n"));
    assert_eq!(robot.ask(&["import", &first]), format!("{first}: 3 unchanged\n"));
    robot.ask(&["export", "-o", &backup]);
    robot.stop();

    let robot = Robot::start(&data);
    let newer = folder.write("newer.omir", &SEEN.replace("the dock", "the dock, again"));
    robot.ask(&["remember", "--file", &newer]);
    robot.ask(&["forget", "gone"]);
    // A sealed segment is a backup as good as any other; what describes it is left behind.
    let segment = data.join("segments/0000000001.omirb");
    let segment = segment.to_str().unwrap();
    let kept = "1 restored, 1 kept (not newer than the store's), 1 unchanged\n";
    assert_eq!(robot.ask(&["import", segment]), format!("{segment}: {kept}"));
    assert!(robot.ask(&["get", "seen"]).contains("the dock, again"));
    robot.ask(&["forget", "gone"]);
    assert_eq!(robot.ask(&["import", &backup]), format!("{backup}: {kept}"));

    let told = robot.ask(&["import", "--overwrite", &backup]);
    assert_eq!(told, format!("{backup}: 1 updated, 2 unchanged\n"));
    assert!(!robot.ask(&["get", "seen"]).contains("again"));
}

/// `omir import a b c | head -1` imports all three, and what failed is told by the exit code.
#[test]
fn what_is_to_be_done_is_done_although_nobody_reads_of_it() {
    let folder = Folder::new();
    let data = folder.path("data");
    let robot = Robot::start(&data);
    let files = ["door-a", "door-b", "door-c"].map(|id| {
        let door = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"{id}"}}"#);
        folder.write(&format!("{id}.omir"), &bundle(&[&door]))
    });
    let [a, b, c] = files.each_ref().map(String::as_str);
    assert_eq!(robot.unread(&["import", a, b, c]), Some(0));
    for id in ["Entity/door-a", "Entity/door-b", "Entity/door-c"] {
        robot.ask(&["get", id]);
    }
    // One that the daemon refuses is told of all the same.
    let nowhere = SEEN.replace("Entity/dock", "Entity/nowhere");
    let lost = folder.write("lost.omir", &format!("[{nowhere}]"));
    assert_eq!(robot.unread(&["import", a, &lost]), Some(3));
    let words = ["forget", "Entity/door-a", "Entity/nowhere", "Entity/door-b"];
    assert_eq!(robot.unread(&words), Some(1));
    assert_eq!(robot.omir(&["get", "Entity/door-b"]).status.code(), Some(1), "it is forgotten");
    robot.stop();
    // A damaged card is one, whoever reads of it.
    let robot = Robot::start(&folder.path("other"));
    std::fs::write(data.join("segments/0000000001.omirb"), "rotten").unwrap();
    let data = folder.name("data");
    for words in
        [&["store", "check"][..], &["--quiet", "store", "check"], &["--json", "store", "check"]]
    {
        let words = [words, &[data.as_str()]].concat();
        let code = robot.omir(&words).status.code();
        assert_ne!(code, Some(0));
        assert_eq!(robot.unread(&words), code, "{words:?}");
    }
}

#[test]
fn each_file_is_whole_or_not_there() {
    let folder = Folder::new();
    let robot = Robot::start(&folder.path("data"));
    let good = folder.write("good.omir", &bundle(&[DOCK]));
    // Only the daemon can know that what the last one refers to is nowhere.
    let nowhere = SEEN.replace("Entity/dock", "Entity/nowhere").replace("seen", "lost");
    let lost = folder.write("lost.omir", &format!("[{SEEN},{GONE},{nowhere}]"));
    let never = folder.write("never.omir", &bundle(&[GONE]));
    let output = robot.omir(&["import", &good, &lost, &never]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), format!("{good}: 1 added\n"));
    let complaint = text(&output.stderr);
    for part in [
        format!("{good}: in. {lost}: not in"),
        "MemoryRecord/lost: Entity/nowhere is neither".to_owned(),
        "/2/entityRefs/0/ref".to_owned(),
    ] {
        assert!(complaint.contains(&part), "{part}: {complaint}");
    }
    assert_eq!(robot.omir(&["get", "seen"]).status.code(), Some(1));
    let leaning = folder.write("leaning.omir", &format!("[{SEEN},{GONE}]"));
    assert_eq!(robot.ask(&["import", &leaning]), format!("{leaning}: 2 added\n"));
}

#[test]
fn a_drive_is_one_transaction_and_parts_are_several() {
    let folder = Folder::new();
    let robot = Robot::start(&folder.path("data"));
    let poses: Vec<String> =
        (0..300).map(|n| format!("{}.0 {n} 0 0 0 0 0 1", 1_311_868_163 + n)).collect();
    let drive = folder.write("drive.txt", &poses.join("\n"));
    let import = ["import", "--format", "tum", "--json", &drive];
    let told = robot.ask(&import);
    for part in [r#""resources": 301"#, r#""added": 301"#, r#""requests": 1"#] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = robot.ask(&[&import[..], &["--in-parts"]].concat());
    for part in [r#""unchanged": 301"#, r#""requests": 2"#] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
