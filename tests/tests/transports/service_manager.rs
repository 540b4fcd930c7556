//! omird under a service manager: what it tells it over a real socket as it starts, reads its configuration again,
//! works, hangs and stops.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use omird::engine::{Encoding, Engine};
use omird_tests::cut_disk::CutDisk;
use omird_tests::process::{Client, Daemon, Settings, eventually, free_endpoint};
use omird_tests::session::{Session, TestClock};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
/// No test waits longer for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A service manager, as far as it listens.
struct Manager {
    folder: tempfile::TempDir,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        Self { folder, socket }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, text: &str) {
        std::fs::write(self.path("omird.toml"), text).expect("it can be written");
    }

    /// Starts omird with `more` in its environment.
    fn start(&self, more: &[(&str, &str)]) -> Daemon {
        let (notify, config) = (self.path("notify"), self.path("omird.toml"));
        let text = |path: &Path| path.to_str().expect("a text").to_owned();
        let (notify, config) = (text(&notify), text(&config));
        let mut environment = vec![("NOTIFY_SOCKET", notify.as_str())];
        environment.extend(more);
        let settings = Settings { environment: &environment, arguments: &["--config", &config] };
        let mut daemon =
            Daemon::spawn_with(PROGRAM, &self.path("data"), "r1", &free_endpoint(), &settings);
        daemon.wait_until_ready();
        daemon
    }

    /// The next thing that is told, of those that `wanted` begins; nothing within `patience`.
    fn next(&self, wanted: &str, patience: Duration) -> Option<String> {
        let deadline = Instant::now() + patience;
        let mut buffer = [0; 4096];
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let _ = self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))));
            let Ok(length) = self.socket.recv(&mut buffer) else { continue };
            let told = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if told.starts_with(wanted) {
                return Some(told);
            }
        }
        None
    }

    #[track_caller]
    fn heard(&self, wanted: &str) -> String {
        self.next(wanted, PATIENCE).unwrap_or_else(|| panic!("it never told {wanted}"))
    }

    /// Has the configuration read again; returns what came of it.
    #[track_caller]
    fn reload(&self, daemon: &Daemon) -> String {
        daemon.signal("HUP");
        let reloading = self.heard("RELOADING=1\n");
        let micros = reloading.split_once("MONOTONIC_USEC=").expect("the time").1;
        let asked: u64 = micros.parse().expect("a number");
        assert!(asked > 0);
        let ready = self.heard("READY=1\nSTATUS=");
        ready.split_once("STATUS=").expect("a status").1.to_owned()
    }
}

#[test]
fn what_is_read_again_takes_hold_or_is_named() {
    let manager = Manager::new();
    manager.configure("[limits]\nmax_resources = 2\n");
    let daemon = manager.start(&[]);
    assert_eq!(manager.heard("READY=1"), "READY=1");
    let client = Client::connect(&daemon.endpoint);
    let three =
        json!([0, 1, 2].map(|n| json!({"resourceType": "Entity", "name": format!("e{n}")})));
    let remember = || client.ask_json("omir/r1/remember", &three);
    assert_eq!(remember().code(), "TOO_LARGE");

    manager.configure("[limits]\nmax_resources = 3\nreaders = 5\n[store]\ndurability = 'none'\n");
    let told = manager.reload(&daemon);
    assert_eq!(
        told,
        "taken over: limits.max_resources; needs a restart: limits.readers, store.durability"
    );
    let answer = remember();
    assert_eq!(answer.value()["durable"], true, "what waits for a restart is as it was");

    manager.configure("[limits]\nmax_resources = 1\nmax_resorces = 1\n");
    let told = manager.reload(&daemon);
    assert!(
        told.starts_with("the configuration is faulty, and the one that runs is kept: "),
        "{told}"
    );
    assert!(told.contains("omird.toml: line 3: limits.max_resorces: no such key"), "{told}");
    remember().value();

    manager.configure("[limits]\nmax_resources = 2\n");
    assert_eq!(manager.reload(&daemon), "taken over: limits.max_resources");
    assert_eq!(remember().code(), "TOO_LARGE");
    assert_eq!(manager.reload(&daemon), "the configuration is good, and nothing in it has changed");

    assert!(daemon.stop().success());
    assert_eq!(manager.heard("STOPPING=1"), "STOPPING=1");
}

#[test]
fn forgetting_and_the_bounds_of_the_card_change_while_it_runs() {
    let manager = Manager::new();
    manager.configure("");
    let daemon = manager.start(&[]);
    let client = Client::connect(&daemon.endpoint);
    let budget =
        || client.one("omir/r1/status", None).value()["wear"]["budget"]["bytesPerDay"].clone();
    assert_eq!(budget(), json!(null));
    manager.configure("[flash]\nbytes_per_day = '1MiB'\n[forgetting]\nenabled = false\n");
    assert_eq!(manager.reload(&daemon), "taken over: flash.bytes_per_day, forgetting.enabled");
    assert_eq!(budget(), json!(1 << 20));
}

#[test]
fn a_token_is_needed_from_a_reload_on_and_what_waits_for_a_restart_is_said() {
    let manager = Manager::new();
    manager.configure("");
    let mut daemon = manager.start(&[]);
    manager.heard("READY=1");
    let client = Client::connect(&daemon.endpoint);
    let status = || client.one("omir/r1/recall", None);
    status().value();
    let waits = "needs a restart: the rules of Zenoh for access.require";
    for (text, is_open) in [("[access]\nrequire = true\n", false), ("", true)] {
        manager.configure(text);
        let told = manager.reload(&daemon);
        assert_eq!(told, format!("taken over: access.require; {waits}"));
        match is_open {
            true => drop(status().value()),
            false => assert_eq!(status().code(), "UNAUTHENTICATED"),
        }
    }
    daemon.signal("TERM");
    let log = daemon.log();
    let warned = log.lines().filter(|line| line.contains("WARN") && line.contains(waits)).count();
    assert_eq!(warned, 2, "{log}");
}

#[test]
fn the_level_of_the_log_changes_while_it_runs() {
    let manager = Manager::new();
    manager.configure("log = 'error'\n");
    // RUST_LOG would win.
    let mut daemon = manager.start(&[("RUST_LOG", "")]);
    manager.heard("READY=1");
    manager.reload(&daemon);
    manager.configure("log = 'info'\n");
    assert_eq!(manager.reload(&daemon), "taken over: log");
    daemon.ask_to_stop();
    let log = daemon.log();
    assert!(!log.contains("nothing in it has changed"), "told at the level of an error: {log}");
    assert!(log.contains("SIGHUP: taken over: log") && log.contains("stopping"), "{log}");
}

#[test]
fn signs_of_life_come_while_it_works_and_end_while_it_hangs() {
    let manager = Manager::new();
    manager.configure("");
    let daemon = manager.start(&[("WATCHDOG_USEC", "900000")]);
    for _ in 0..3 {
        manager.heard("WATCHDOG=1");
    }
    daemon.signal("STOP");
    while manager.next("WATCHDOG=1", Duration::from_millis(500)).is_some() {}
    assert_eq!(manager.next("WATCHDOG=1", Duration::from_secs(1)), None);
    daemon.signal("CONT");
    manager.heard("WATCHDOG=1");
    assert!(daemon.stop().success());
}

/// While somebody has the disk, nothing comes back from it: a card that hangs.
#[test]
fn no_proof_is_given_while_the_card_hangs() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let remember = |engine: &Engine| {
        let json = br#"{"resourceType":"Entity","name":"cup"}"#;
        let change = engine.prepare(json, Encoding::Json, None).expect("it is valid");
        engine.execute(change)
    };
    remember(&session).expect("it is stored");
    let soon = || Instant::now() + Duration::from_millis(300);
    let writes = |engine: &Engine| engine.probe_writer(soon()).recv_deadline(soon()).is_ok();
    let reads = |engine: &Engine| {
        let (engine, (done, read)) = (engine.clone(), mpsc::sync_channel(1));
        thread::spawn(move || {
            engine.probe_readers();
            let _ = done.send(());
        });
        read.recv_timeout(Duration::from_millis(300)).is_ok()
    };
    assert!(writes(&session) && reads(&session));

    let (let_go, held) = mpsc::sync_channel::<()>(0);
    let (hung, hangs) = mpsc::sync_channel(0);
    let log = disk.paths().into_iter().find(|path| path.starts_with("wal/")).expect("a log");
    let hanging = disk.clone();
    let hanging = thread::spawn(move || {
        hanging.rot(&log, |_| {
            let _ = hung.send(());
            let _ = held.recv();
        });
    });
    hangs.recv().expect("it hangs");
    let engine = (*session).clone();
    let writing = thread::spawn(move || remember(&engine));
    // Until it is at the disk it still answers.
    eventually("the writer waits for the card", || !writes(&session));
    assert!(!writes(&session));
    assert!(!reads(&session), "and so does who reads");

    drop(let_go);
    hanging.join().expect("no panic");
    writing.join().expect("no panic").expect("it is stored");
    assert!(writes(&session) && reads(&session));
    session.stop();
}

#[test]
fn nobody_who_waits_for_another_process_is_given_a_sign() {
    let manager = Manager::new();
    manager.configure("");
    let daemon = manager.start(&[("WATCHDOG_USEC", "300000"), ("WATCHDOG_PID", "1")]);
    manager.heard("READY=1");
    assert_eq!(manager.next("WATCHDOG=1", Duration::from_secs(1)), None);
    assert!(daemon.stop().success());
}

/// Output and exit status of a start that fails.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.args(["20", PROGRAM]);
    refused_by(command, arguments)
}

#[track_caller]
fn refused_by(mut command: Command, arguments: &[&str]) -> String {
    let ended = command.args(arguments).env_remove("RUST_LOG").output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(ended.stdout.is_empty(), "it served");
    assert!(!said.contains("os error"), "{said}");
    said
}

#[test]
fn a_start_that_cannot_be_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a text").to_owned();
    std::fs::write(path("file"), "").expect("it can be written");
    let listen = ["--listen", "tcp/127.0.0.1:0"];
    let on = |data: &str| refused(&[&["--data", data], &listen[..]].concat());
    let said = on(&path("file"));
    assert!(
        said.contains("file: it is a file, and the memories need a folder; name another"),
        "{said}"
    );
    let said = on(&path("file/below"));
    assert!(
        said.contains("file is a file, so that there can be no folder in it; name another"),
        "{said}"
    );
    std::fs::create_dir(path("other")).expect("it can be made");
    std::fs::write(path("other/wal"), "").expect("it can be written");
    assert!(on(&path("other")).contains("wal in it is no folder, so that this is no data folder"));

    let mut daemon = Daemon::start(PROGRAM, Path::new(&path("data")), "r1", &[]);
    let said = on(&path("data"));
    assert!(
        said.contains("data: process ") && said.contains("is using it; stop that one first"),
        "{said}"
    );
    let said = refused(&["--data", &path("new"), "--listen", &daemon.endpoint]);
    assert!(
        said.contains(&format!("{} is taken: another program listens there", daemon.endpoint)),
        "{said}"
    );
    assert!(said.contains("--listen"), "{said}");
    daemon.ask_to_stop();
    daemon.log();
}

#[test]
fn a_folder_of_another_user_is_refused_with_what_to_do() {
    /// Nobody, who may write nowhere. Only root can be somebody else, and everybody else may not write to what is 0500.
    const NOBODY: u32 = 65_534;
    let folder = tempfile::tempdir().expect("a folder");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .expect("it can be set");
    };
    mode(folder.path(), 0o755);
    let (data, program) = (folder.path().join("data"), folder.path().join("omird"));
    std::fs::create_dir(&data).expect("it can be made");
    mode(&data, 0o555);
    std::fs::copy(PROGRAM, &program).expect("it can be copied");
    let is_root = std::fs::write(data.join("probe"), "").is_ok();
    let started_on = |data: &Path| {
        let mut command = Command::new("timeout");
        command.arg("20").arg(&program).current_dir("/");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        refused_by(
            command,
            &["--data", data.to_str().expect("a text"), "--listen", "tcp/127.0.0.1:0"],
        )
    };
    let said = started_on(&data);
    assert!(said.contains("data: omird may not write there as the user with uid "), "{said}");
    assert!(said.contains("chown"), "{said}");
    let said = started_on(&data.join("new"));
    assert!(said.contains("new: omird may not make it as the user with uid "), "{said}");
}

#[test]
fn a_filter_of_logs_that_is_none_is_named_and_left_aside() {
    let manager = Manager::new();
    manager.configure("");
    let mut daemon = manager.start(&[("RUST_LOG", "loud")]);
    daemon.ask_to_stop();
    let log = daemon.log();
    assert!(log.contains("RUST_LOG: \"loud\" is no level: it takes a level (off, error"), "{log}");
    assert!(log.contains("stopping"), "the default is logged: {log}");
}
