//! The frame of a place that names none: that in which the daemon looks for it. Asked of an engine that is served over
//! Zenoh.

use std::process::{Command, Output, Stdio};

use omird::engine::{Engine, Parts, Settings};
use omird::protocols::Protocols;
use omird::zenoh::{Keys, Network, Service};
use omird_tests::folder::parts;
use omird_tests::process::free_endpoint;

/// Two poses that are five metres apart.
const DRIVE: &str = "1311868163.0 0 0 0 0 0 0 1\n1311868164.0 5 0 0 0 0 0 1\n";

/// A robot without a map.
struct Robot {
    engine: Engine,
    endpoint: String,
    _service: Service,
    folder: tempfile::TempDir,
}

impl Robot {
    fn in_odom() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fixed_frame: "odom".to_owned(), ..Settings::default() };
        let parts = Parts { settings, ..parts(folder.path()) };
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let endpoint = free_endpoint();
        let network = Network { listen: Some(vec![endpoint.clone()]), ..Network::default() };
        let keys = Keys::new("omir", "r1");
        let service =
            Service::start(&engine, &Protocols::over(&engine, keys.robot()), &keys, &network, 2)
                .unwrap();
        Self { engine, endpoint, _service: service, folder }
    }

    /// Output of a command that succeeds.
    #[track_caller]
    fn ask(&self, words: &[&str]) -> String {
        let output = omir(&self.endpoint, words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    }

    fn drive(&self) -> String {
        let file = self.folder.path().join("drive.txt");
        std::fs::write(&file, DRIVE).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

fn omir(endpoint: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omir"));
    for variable in ["OMIR_ROBOT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.env("OMIR_CONNECT", endpoint).args(words).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_put_down_without_a_frame_is_found_without_one() {
    let robot = Robot::in_odom();
    robot.ask(&["remember", "a cup", "--id", "cup", "--at", "1,0"]);
    let found = robot.ask(&["recall", "--near", "1,0", "--radius", "0.1"]);
    assert!(found.contains("MemoryRecord/cup") && found.contains("total 1"), "{found}");
    robot.ask(&["remember", "a pot", "--id", "pot", "--at", "1,0", "--frame", "map"]);
    let found = robot.ask(&["recall", "--near", "1,0", "--radius", "0.1", "--frame", "map"]);
    assert!(found.contains("MemoryRecord/pot") && found.contains("total 1"), "{found}");

    let drive = robot.drive();
    robot.ask(&["import", "--format", "tum", &drive]);
    let found = robot.ask(&["recall", "--near", "5,0", "--radius", "0.1"]);
    assert!(found.contains("MemoryRecord/drive-000001"), "{found}");
    assert!(robot.ask(&["get", "Episode/drive"]).contains("m of odom."), "the Episode says so too");
    robot.ask(&["import", "--format", "tum", "--name", "mapped", "--frame", "map", &drive]);
    assert!(robot.ask(&["get", "Episode/mapped"]).contains("m of map."));
}

#[test]
fn without_anybody_to_ask_it_is_the_map() {
    let nobody = free_endpoint();
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good.txt"), folder.path().join("bad.txt"));
    std::fs::write(&good, DRIVE).unwrap();
    std::fs::write(&bad, "1311868163.0 0 0\n").unwrap();
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let output = omir(&nobody, &["import", "--format", "tum", "--dry-run", good]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(r#""frame": "map""#), "{}", text(&output.stdout));

    // A file that cannot be read is found before anybody is looked for; the place is not guessed.
    let output = omir(&nobody, &["import", "--format", "tum", good, bad]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    for words in [&["import", "--format", "tum", good][..], &["remember", "a cup", "--at", "1,0"]] {
        let output = omir(&nobody, words);
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    }
}
