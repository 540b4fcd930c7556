//! `omir backup` and `omir restore` with a real daemon over Zenoh: while robots write at full load, over
//! a slow link, with a daemon that is killed midway, and onto a device with another key.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird::engine::{Encoding, Engine, Parts, Settings};
use omird::store::device_key;
use omird_tests::folder::parts;
use omird_tests::process::{Daemon, session};
use zenoh::Wait as _;

const OMIR: &str = env!("CARGO_BIN_EXE_omir");

fn start(data: &Path) -> Daemon {
    Daemon::start_in_tool(OMIR, data, "r1")
}

/// A link between a tool and a daemon: so many bytes a second, and a word once so many came through.
struct Link {
    endpoint: String,
    passed: Arc<AtomicU64>,
}

impl Link {
    fn to(endpoint: &str, bytes_a_second: u64, mark: u64, marked: mpsc::Sender<()>) -> Self {
        let target = endpoint.trim_start_matches("tcp/").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp/{}", listener.local_addr().unwrap());
        let passed = Arc::new(AtomicU64::new(0));
        let count = passed.clone();
        // Ends with its connections, which end with the two programs.
        std::thread::spawn(move || {
            for tool in listener.incoming().map_while(Result::ok) {
                let Ok(daemon) = TcpStream::connect(&target) else { return };
                let (to, from) = (daemon.try_clone().unwrap(), tool.try_clone().unwrap());
                std::thread::spawn(move || pump(from, to, |_| {}));
                let (count, marked) = (count.clone(), marked.clone());
                std::thread::spawn(move || {
                    pump(daemon, tool, |len| {
                        let before = count.fetch_add(len, Ordering::AcqRel);
                        if before < mark && before + len >= mark {
                            let _ = marked.send(());
                        }
                        let nanos = len * 1_000_000_000 / bytes_a_second;
                        std::thread::sleep(Duration::from_nanos(nanos));
                    });
                });
            }
        });
        Self { endpoint, passed }
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut passed: impl FnMut(u64)) {
    let mut buffer = [0; 16 << 10];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        passed(len as u64);
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn omir(endpoint: Option<&str>, line: &[&str]) -> Output {
    let mut command = Command::new(OMIR);
    command.args(line).stdin(Stdio::null());
    for name in ["OMIR_ROBOT", "OMIR_CONNECT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX"] {
        command.env_remove(name);
    }
    command.args(endpoint.map(|endpoint| format!("--connect={endpoint}")));
    command.output().unwrap()
}

#[track_caller]
fn ok(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

#[track_caller]
fn number(summary: &Value, name: &str) -> u64 {
    summary.get(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name} of {summary:?}"))
}

/// A data folder of many small segments.
fn data(dir: &Path, memories: usize) {
    fs::create_dir(dir).unwrap();
    let parts = Parts {
        key: device_key(dir, || [7; 32]).unwrap(),
        settings: Settings { segment_bytes: 100_000, ..Settings::default() },
        ..parts(dir)
    };
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    for n in 0..memories {
        let words = format!("kettle {n} ").repeat(1000);
        let text = format!(r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"{words}"}}"#);
        let change = engine.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        engine.execute(change).unwrap();
    }
    engine.stop();
}

/// Lists a folder as `store ls --all` does: reference and version, and whether it is live.
fn listed(dir: &Path) -> BTreeMap<(String, u64), String> {
    let text = ok(&omir(None, &["store", "ls", "--all", "--json", &dir.display().to_string()]));
    let row = |line: &str| {
        let row = value(line);
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
        let state = format!("{} {}", text("state"), text("recorded"));
        ((text("ref"), row.get("version").and_then(Value::as_u64).unwrap_or(0)), state)
    };
    text.lines().map(row).collect()
}

struct Rig {
    dir: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

#[test]
fn a_restored_device_goes_on_with_a_key_of_its_own() {
    let rig = Rig::new();
    let (backup, copy) = (rig.text("backup"), rig.text("copy"));
    let daemon = start(&rig.path("data"));
    let robot = Some(daemon.endpoint.as_str());
    ok(&omir(robot, &["remember", "door 3 sticks", "--id", "door", "--at", "1,2,0"]));
    ok(&omir(robot, &["remember", "door 3 was mended", "--id", "door", "--at", "1,2,0"]));
    ok(&omir(robot, &["remember", "a secret", "--id", "secret"]));
    ok(&omir(robot, &["forget", "secret"]));
    ok(&omir(robot, &["recall", "door"]));
    let first = value(&ok(&omir(robot, &["backup", &backup, "--json"])));
    assert_eq!((number(&first, "segments"), number(&first, "fetched")), (1, 1));
    let again = value(&ok(&omir(robot, &["backup", &backup, "--json"])));
    assert!(number(&again, "fetched") <= 1, "at most the accesses of the recall");
    ok(&omir(robot, &["remember", "a lamp", "--id", "lamp"]));
    let third = value(&ok(&omir(robot, &["backup", &backup, "--json"])));
    assert_eq!((number(&third, "fetched"), number(&third, "removed")), (1, 0));
    assert_eq!(ok(&omir(robot, &["backup", &backup, "--quiet"])), "");
    let check = ok(&omir(None, &["store", "check", &backup]));
    assert!(check.contains("a backup of r1"), "{check}");
    let door = ok(&omir(robot, &["get", "door"]));
    drop(daemon);

    ok(&omir(None, &["restore", &backup, &copy]));
    assert_eq!(listed(&rig.path("copy")), listed(&rig.path("backup")));
    let check = ok(&omir(None, &["store", "check", &copy]));
    assert!(check.contains("not started yet"), "{check}");
    let code = omir(None, &["restore", &backup, &copy]).status.code();
    assert_eq!(code, Some(2), "it is not empty any more");
    let daemon = start(&rig.path("copy"));
    let robot = Some(daemon.endpoint.as_str());
    assert_eq!(ok(&omir(robot, &["get", "door"])), door, "with its accesses");
    assert_eq!(omir(robot, &["get", "secret"]).status.code(), Some(1));
    ok(&omir(robot, &["remember", "door 3 is locked", "--id", "door", "--at", "1,2,0"]));

    let refused = omir(robot, &["backup", &backup, "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = value(&String::from_utf8(refused.stderr).unwrap());
    assert_eq!(error.get("code").and_then(Value::as_str), Some("FOREIGN_KEY"));
    let accepted = value(&ok(&omir(robot, &["backup", &backup, "--new-key", "--json"])));
    assert_eq!(number(&accepted, "fetched"), 1, "the history goes on");
    ok(&omir(robot, &["backup", &rig.text("another")]));
    daemon.kill();
    for folder in ["backup", "another", "copy"] {
        let check = ok(&omir(None, &["store", "check", &rig.text(folder)]));
        assert!(check.contains("former key"), "{folder}: {check}");
    }
    assert_eq!(
        listed(&rig.path("backup"))[&("MemoryRecord/door".to_owned(), 3)].split(' ').next(),
        Some("live")
    );
}

#[test]
fn everything_acknowledged_before_a_backup_began_is_in_it_at_full_load() {
    let rig = Rig::new();
    let daemon = start(&rig.path("data"));
    let acknowledged: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (acknowledged, is_over) = (acknowledged.clone(), is_over.clone());
            let session = session("client", &[], &[&daemon.endpoint]);
            std::thread::spawn(move || {
                for n in 0.. {
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                    let id = format!("w{writer}-{n}");
                    let words = "corridor ".repeat(100);
                    let memory = format!(
                        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{words}"}}"#
                    );
                    let replies = session.get("omir/r1/remember").payload(memory).wait().unwrap();
                    if replies.recv().is_ok_and(|reply| reply.result().is_ok()) {
                        acknowledged.lock().unwrap().insert(format!("MemoryRecord/{id}"));
                    }
                }
            })
        })
        .collect();
    let mut fetched = 0;
    for run in 1..=3 {
        let least = 100 * run;
        while acknowledged.lock().unwrap().len() < least {
            std::thread::sleep(Duration::from_millis(5));
        }
        let before = acknowledged.lock().unwrap().clone();
        let backup = rig.text("backup");
        let summary = value(&ok(&omir(Some(&daemon.endpoint), &["backup", &backup, "--json"])));
        fetched += number(&summary, "fetched");
        assert_eq!(number(&summary, "segments"), fetched, "nothing is fetched twice");
        let there: BTreeSet<String> =
            listed(&rig.path("backup")).into_keys().map(|(target, _)| target).collect();
        let lacking: Vec<&String> = before.difference(&there).collect();
        assert!(lacking.is_empty(), "run {run}: {lacking:?}");
    }
    is_over.store(true, Ordering::Release);
    for writer in writers {
        writer.join().unwrap();
    }
    ok(&omir(None, &["store", "check", &rig.text("backup")]));
}

#[test]
fn a_daemon_that_is_killed_midway_leaves_a_backup_and_the_next_run_goes_on() {
    let rig = Rig::new();
    data(&rig.path("data"), 200);
    let files = fs::read_dir(rig.path("data/segments")).unwrap();
    let sealed = files.filter(|e| e.as_ref().unwrap().path().extension().unwrap() == "omirb");
    let total = sealed.count() as u64;
    assert!(total >= 15, "{total} segments");
    let backup = rig.text("backup");

    let daemon = start(&rig.path("data"));
    let (sender, marked) = mpsc::channel();
    let link = Link::to(&daemon.endpoint, 1 << 20, 700_000, sender);
    let endpoint = link.endpoint.clone();
    let path = backup.clone();
    let tool = std::thread::spawn(move || omir(Some(&endpoint), &["backup", &path, "--json"]));
    marked.recv_timeout(Duration::from_secs(60)).unwrap();
    daemon.kill();
    let output = tool.join().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("INTERRUPTED") && error.contains("run it again"), "{error}");
    let arrived = fs::read_dir(rig.path("backup/segments")).unwrap();
    let arrived = arrived.filter(|e| e.as_ref().unwrap().path().extension().unwrap() == "omirb");
    let arrived = arrived.count() as u64;
    assert!(0 < arrived && arrived < total, "{arrived} of {total}");
    let check = ok(&omir(None, &["store", "check", &backup]));
    assert!(check.contains("has not ended"), "{check}");

    let daemon = start(&rig.path("data"));
    let (sender, _marked) = mpsc::channel();
    let link = Link::to(&daemon.endpoint, 1 << 20, u64::MAX, sender);
    let summary = value(&ok(&omir(Some(&link.endpoint), &["backup", &backup, "--json"])));
    // The log that the killed daemon left is sealed as well, even if it holds only its start.
    assert!((total..=total + 1).contains(&number(&summary, "segments")), "{summary:?}");
    assert_eq!(number(&summary, "fetched"), number(&summary, "segments") - arrived);
    let whole = number(&summary, "bytes");
    assert!(link.passed.load(Ordering::Acquire) < whole, "what was there was not fetched again");
    let check = ok(&omir(None, &["store", "check", &backup]));
    assert!(check.contains("up to transaction"), "{check}");
}

#[test]
fn what_does_not_verify_is_not_restored() {
    let rig = Rig::new();
    data(&rig.path("data"), 30);
    let (backup, copy) = (rig.text("backup"), rig.text("copy"));
    let daemon = start(&rig.path("data"));
    ok(&omir(Some(&daemon.endpoint), &["backup", &backup]));
    let victim = rig.path("backup/segments/0000000002.omirb");
    let mut bytes = fs::read(&victim).unwrap();
    bytes[5000] ^= 1;
    fs::write(&victim, bytes).unwrap();
    let refused = omir(None, &["restore", &backup, &copy]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("segments/0000000002.omirb"), "{error}");
    assert!(!rig.path("copy").exists(), "nothing was written");
    let forced = omir(None, &["restore", &backup, &copy, "--force-damaged"]);
    assert_eq!(forced.status.code(), Some(3));
    assert_eq!(listed_code(&rig.path("copy")), Some(3));

    let line = ["restore", &rig.text("nothing"), &rig.text("nowhere")];
    assert_eq!(omir(None, &line).status.code(), Some(2));
    assert_eq!(omir(None, &["restore", &rig.text("data"), &copy]).status.code(), Some(2));
    let line = ["backup", &rig.text("data")];
    assert_eq!(omir(Some(&daemon.endpoint), &line).status.code(), Some(2), "it is in use");
}

fn listed_code(dir: &Path) -> Option<i32> {
    omir(None, &["store", "ls", &dir.display().to_string()]).status.code()
}
