//! `omir pull` and `omir push` over pseudo-terminals with the speed of a serial line, and a cable that is
//! pulled in between; the daemon's ports are served in the test.
//!
//! Invariant 32 of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird::engine::request::Encoding;
use omird::engine::{Engine, Parts};
use omird::serial::{Access, Announcements, Port, Ports, Share};
use omird::store::keys;
use omird_tests::cable::End;
use omird_tests::folder::parts;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;

const OMIR: &str = env!("CARGO_BIN_EXE_omir");
const BAUD: u32 = 460_800;
const MEMORIES: usize = 400;

/// A daemon with a port, and a folder with a name for either end of the cable.
struct Rig {
    engine: Engine,
    ports: Option<Ports>,
    folder: TempDir,
}

impl Rig {
    fn new() -> Rig {
        Rig::with_key(7)
    }

    /// Another memory has another key.
    fn with_key(key: u8) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let key = keys::device_key(&data, || [key; 32]).unwrap();
        let parts = Parts { key, ..parts(&data) };
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let items: Vec<String> = (0..MEMORIES)
            .map(|n| {
                // Words that pack badly, so that there is something to carry.
                let noise = sha(n);
                format!(
                    r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"saw {noise}",
                        "createdAt":"2026-01-01T00:00:00Z"}}"#
                )
            })
            .collect();
        let text = format!("[{}]", items.join(","));
        let change = engine.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        engine.execute(change).unwrap();
        let access = Access { write: false, token: Some("open sesame".to_owned()) };
        let path = folder.path().join("daemon");
        let port = Port { path, baud: BAUD, access, share: Share::new(1.0) };
        let ports = Ports::start(&engine, "r2", &[port], &Announcements::default()).unwrap();
        Rig { engine, ports: Some(ports), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Plugs a cable in that carries `most` bytes from the daemon, and is pulled out then.
    fn plug(&self, most: usize) -> Cable {
        let daemon = End::plug(&self.path("daemon"));
        let tool = End::plug(&self.path("tool"));
        let out = Arc::new(AtomicBool::new(false));
        let is_out = out.clone();
        let passes = Arc::new(AtomicUsize::new(usize::MAX));
        let may_pass = passes.clone();
        let names = ["daemon", "tool"].map(|name| self.path(name));
        let thread = std::thread::spawn(move || {
            let mut left = most;
            while left > 0 && !is_out.load(Ordering::Acquire) {
                let may = may_pass.load(Ordering::Acquire);
                if may > 0 {
                    let carried = carry(&daemon.ours, &tool.ours);
                    left = left.saturating_sub(carried);
                    if may != usize::MAX {
                        may_pass.store(may.saturating_sub(carried), Ordering::Release);
                    }
                }
                carry(&tool.ours, &daemon.ours);
                std::thread::sleep(Duration::from_millis(1));
            }
            // A device that is gone has no name; its number may be the next one's.
            names.iter().for_each(|name| drop(fs::remove_file(name)));
        });
        Cable { out, passes, thread: Some(thread) }
    }

    fn omir(&self, args: &[&str]) -> Output {
        let tool = self.path("tool").display().to_string();
        Command::new(OMIR)
            .args(args)
            .args(["--port", &tool, "--baud", &BAUD.to_string()])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(ports) = self.ports.take() {
            ports.stop();
        }
        self.engine.stop();
    }
}

/// Some sixty characters without much order.
fn sha(n: usize) -> String {
    let mut state = n as u64 + 1;
    let mut word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", state ^ state >> 29)
    };
    [word(), word(), word(), word()].concat()
}

/// Carries what is there, as much as a line of that speed does in a millisecond; how much.
fn carry(from: &OwnedFd, to: &OwnedFd) -> usize {
    let mut buffer = [0; BAUD as usize / 10_000];
    let read = match rustix::io::read(from, &mut buffer) {
        Ok(read) => read,
        Err(Errno::AGAIN | Errno::IO) => 0,
        Err(error) => panic!("{error}"),
    };
    let mut rest = &buffer[..read];
    while !rest.is_empty() {
        match rustix::io::write(to, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::AGAIN) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
    read
}

struct Cable {
    out: Arc<AtomicBool>,
    /// So many bytes still come from the daemon before the rest is held back.
    passes: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Cable {
    /// Waits until it has carried what it carries.
    fn wait(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.out.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[track_caller]
fn ends_with(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The ids in a file, each once.
fn ids(file: &Path) -> BTreeSet<String> {
    let document = json::from_slice(&fs::read(file).unwrap(), &Limits::default()).unwrap();
    let entries = document.get("entry").and_then(Value::as_array).unwrap();
    let ids: BTreeSet<String> = entries
        .iter()
        .map(|entry| entry.get("id").and_then(Value::as_str).unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), entries.len());
    ids
}

fn all() -> BTreeSet<String> {
    (0..MEMORIES).map(|n| format!("m{n}")).collect()
}

#[test]
fn a_pull_outlives_its_cable() {
    let rig = Rig::new();
    let short = rig.plug(12_000);
    std::thread::scope(|scope| {
        let pull = scope.spawn(|| rig.omir(&["pull", "-o", "out.omir"]));
        short.wait();
        let part = rig.path("out.omir.part");
        assert!(fs::metadata(&part).unwrap().len() > 0, "nothing came before the cable was pulled");
        assert!(!rig.path("out.omir").exists());
        let _whole = rig.plug(usize::MAX);
        ends_with(&pull.join().unwrap(), 0);
        assert!(!part.exists());
    });
    assert_eq!(ids(&rig.path("out.omir")), all());
    let _whole = rig.plug(usize::MAX);
    let output = rig.omir(&["pull", "--type", "Entity"]);
    ends_with(&output, 0);
    let document = json::from_slice(&output.stdout, &Limits::default()).unwrap();
    assert_eq!(document.get("entry").and_then(Value::as_array).map(<[Value]>::len), Some(0));
}

#[test]
fn a_pull_that_gave_up_goes_on_another_time() {
    let rig = Rig::new();
    let pull = ["pull", "-o", "out.omir", "--wait", "1"];
    let short = rig.plug(12_000);
    let said = ends_with(&rig.omir(&pull), 3);
    assert!(said.contains("out.omir.part: run this again to go on"), "{said}");
    drop(short);
    // The last of it was not written whole.
    let part = rig.path("out.omir.part");
    let mut bytes = fs::read(&part).unwrap();
    let whole = bytes.clone();
    bytes.extend(&whole[..whole.len() / 2]);
    bytes.truncate(bytes.len() - 3);
    let _cable = rig.plug(usize::MAX);
    let said = ends_with(&rig.omir(&["pull", "-o", "out.omir", "--type", "MemoryRecord"]), 2);
    assert!(said.contains("other filters"), "{said}");
    ends_with(&rig.omir(&pull), 0);
    assert_eq!(ids(&rig.path("out.omir")), all());
    assert!(!part.exists());
}

#[test]
fn a_line_that_is_lost_before_anything_came_is_waited_for_too() {
    let rig = Rig::new();
    // The first resources come together, and are more than that.
    let short = rig.plug(4_000);
    std::thread::scope(|scope| {
        let pull =
            scope.spawn(|| rig.omir(&["pull", "-o", "out.omir", "--timeout", "2", "--wait", "60"]));
        short.wait();
        // Longer than a daemon is waited for that never answered.
        std::thread::sleep(Duration::from_secs(3));
        let _whole = rig.plug(usize::MAX);
        ends_with(&pull.join().unwrap(), 0);
    });
    assert_eq!(ids(&rig.path("out.omir")), all());
}

#[test]
fn a_pull_that_is_killed_again_and_again_ends_whole() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let part = rig.path("out.omir.part");
    let size = || fs::metadata(&part).map_or(0, |found| found.len());
    let mut kills = 0;
    loop {
        let before = size();
        let mut child = Command::new(OMIR)
            .args(["pull", "-o", "out.omir", "--baud", &BAUD.to_string(), "--port"])
            .arg(rig.path("tool"))
            .current_dir(rig.folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Once at each beginning, and then whenever more came.
        let over = loop {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break true;
            }
            if size() > before {
                child.kill().unwrap();
                child.wait().unwrap();
                break false;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if over {
            break;
        }
        kills += 1;
    }
    assert!(kills >= 2, "it was killed {kills} times");
    assert_eq!(ids(&rig.path("out.omir")), all());
    assert!(!part.exists());
}

#[test]
fn two_memories_do_not_become_one_file() {
    let (one, other) = (Rig::new(), Rig::with_key(8));
    let pull = ["pull", "-o", "out.omir", "--wait", "1"];
    let short = one.plug(12_000);
    ends_with(&one.omir(&pull), 3);
    drop(short);
    // The same file, and the cable in a robot that has the same name.
    fs::copy(one.path("out.omir.part"), other.path("out.omir.part")).unwrap();
    let _cable = other.plug(usize::MAX);
    let said = ends_with(&other.omir(&pull), 2);
    assert!(said.contains("out.omir.part") && said.contains("remove it"), "{said}");
    assert!(!other.path("out.omir").exists());
    fs::remove_file(other.path("out.omir.part")).unwrap();
    ends_with(&other.omir(&pull), 0);
}

#[test]
fn a_push_needs_the_token() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let file = rig.path("new.omir");
    fs::write(&file, r#"{"resourceType":"Entity","id":"new","name":"new"}"#).unwrap();
    let said = ends_with(&rig.omir(&["push", "new.omir"]), 1);
    assert!(said.contains("UNAUTHORIZED"), "{said}");
    let push = ["push", "new.omir", "--token", "open sesame"];
    let output = rig.omir(&push);
    ends_with(&output, 0);
    assert_eq!(output.stdout, b"1 stored, 0 unchanged\n");
    assert_eq!(rig.omir(&push).stdout, b"0 stored, 1 unchanged\n");
    assert!(rig.engine.get(&"Entity/new".parse().unwrap()).unwrap().is_some());
}

#[test]
fn a_large_file_is_pushed_in_parts_that_hold_together() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    // What is referred to comes last in it, and all of it is more than a message takes.
    let mut items: Vec<String> = (0..300)
        .map(|n| {
            let parent =
                if n == 299 { String::new() } else { format!(r#","parentId":"p{}""#, n + 1) };
            format!(
                r#"{{"resourceType":"MemoryRecord","id":"p{n}","content":"{}"{parent},
                    "createdAt":"2026-01-01T00:00:00Z","entityRefs":[{{"ref":"Entity/last"}}]}}"#,
                format!("{n} ").repeat(2_000)
            )
        })
        .collect();
    items.push(r#"{"resourceType":"Entity","id":"last","name":"last"}"#.to_owned());
    let file = rig.path("large.omir");
    fs::write(&file, format!("[{}]", items.join(","))).unwrap();
    assert!(fs::metadata(&file).unwrap().len() > 2 << 20);
    let push = ["push", "large.omir", "--token", "open sesame"];
    let output = rig.omir(&push);
    ends_with(&output, 0);
    assert_eq!(output.stdout, b"301 stored, 0 unchanged\n");
    assert_eq!(rig.omir(&push).stdout, b"0 stored, 301 unchanged\n");

    // A part that is refused leaves those before it, and says where in the file.
    items.push(r#"{"resourceType":"MemoryRecord","id":"bad","content":5}"#.to_owned());
    fs::write(&file, format!("[{}]", items.join(","))).unwrap();
    let said = ends_with(&rig.omir(&push), 3);
    assert!(said.contains("of 302 resources are in") && said.contains("/301"), "{said}");
}

#[test]
fn a_console_types_each_line_after_the_answer_to_the_one_before() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    let mut child = Command::new(OMIR)
        .args(["console", "--baud", &BAUD.to_string(), "--port"])
        .arg(rig.path("tool"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // More than the console keeps of what is typed ahead, after something that takes long.
    let gets: String = (0..100).map(|n| format!("get MemoryRecord/m{n}\n")).collect();
    let typed = format!("dump\r\n{gets}\nls type=Entity");
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    ends_with(&output, 0);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with("r2> dump\r\n-----BEGIN OMIR-----\r\n"), "{shown:.100}");
    assert!(shown.contains("-----END OMIR-----\r\nr2> get MemoryRecord/m0\r\n"));
    for n in 0..100 {
        assert!(shown.contains(&format!("\"id\": \"m{n}\"")), "m{n} is not shown");
    }
    assert!(shown.ends_with("\r\nr2> \r\nr2> ls type=Entity\r\n0 of 0\r\nr2> "), "{shown}");
}

#[test]
fn a_console_that_is_not_there_is_no_success() {
    let rig = Rig::new();
    let _silent = End::plug(&rig.path("tool"));
    let said = ends_with(&rig.omir(&["console", "--timeout", "1"]), 4);
    assert!(said.contains("no console answers"), "{said}");
}

#[test]
fn where_nobody_answers_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none").display().to_string();
    for timeout in ["1", "0.1"] {
        let output = Command::new(OMIR)
            .args(["pull", "--timeout", timeout, "--port", &none])
            .output()
            .unwrap();
        let said = ends_with(&output, 4);
        assert!(said.contains("No such file"), "{said}");
    }
}

impl Rig {
    /// What a person sees who looks at the console now; a program that left the line without a word keeps it for longer.
    #[track_caller]
    fn console_is_back(&self) {
        let mut child = self.tool(&["console", "--timeout", "5"], BAUD).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"ls type=Entity\n").unwrap();
        let output = child.wait_with_output().unwrap();
        ends_with(&output, 0);
        assert!(String::from_utf8_lossy(&output.stdout).ends_with("0 of 0\r\nr2> "));
    }

    fn terminal(&self) -> OwnedFd {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(self.path("tool"), flags, Mode::empty()).unwrap()
    }

    fn tool(&self, args: &[&str], baud: u32) -> Command {
        let mut command = Command::new(OMIR);
        command.args(args).args(["--baud", &baud.to_string(), "--port"]).arg(self.path("tool"));
        command.current_dir(self.folder.path()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Whether these tests were started with a signal ignored, which what they start inherits (proc(5)).
fn is_ignored(signal: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

#[test]
fn the_console_is_back_however_a_tool_ended() {
    let rig = Rig::new();
    let cable = rig.plug(usize::MAX);
    fs::write(rig.path("new.omir"), r#"{"resourceType":"Entity","id":"new","name":"new"}"#)
        .unwrap();
    // Refused, and done; as a slow line is waited for, of which this end knows.
    let refused = rig.tool(&["push", "new.omir"], BAUD).output().unwrap();
    assert!(ends_with(&refused, 1).contains("UNAUTHORIZED"));
    rig.console_is_back();
    ends_with(&rig.tool(&["pull", "--type", "Entity"], 9_600).output().unwrap(), 0);
    rig.console_is_back();

    // Ctrl-C, and a terminal that is closed; while the tool waits for what is missing.
    for (signal, number, file) in [("-INT", 2, "stopped.omir"), ("-HUP", 1, "hung-up.omir")] {
        // As under nohup: the tool heeds that, and there is nothing to see.
        if is_ignored(number) {
            continue;
        }
        cable.passes.store(10_000, Ordering::Release);
        let mut child = rig.tool(&["pull", "-o", file], BAUD).spawn().unwrap();
        while cable.passes.load(Ordering::Acquire) > 0 {
            assert_eq!(child.try_wait().unwrap(), None, "it was over too soon");
            std::thread::sleep(Duration::from_millis(1));
        }
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let said = ends_with(&child.wait_with_output().unwrap(), 3);
        assert!(said.contains("interrupted"), "{said}");
        cable.passes.store(usize::MAX, Ordering::Release);
        rig.console_is_back();
        ends_with(&rig.omir(&["pull", "-o", file]), 0);
        assert_eq!(ids(&rig.path(file)), all());
    }
}

#[test]
fn a_console_that_is_piped_into_ends_what_was_left_running() {
    let rig = Rig::new();
    let _cable = rig.plug(usize::MAX);
    for left in [&b"tail\r"[..], b"get Memory\x1b[", b"\x13"] {
        let terminal = rig.terminal();
        rustix::io::write(&terminal, left).unwrap();
        // Until it was carried over.
        std::thread::sleep(Duration::from_millis(200));
        drop(terminal);
        rig.console_is_back();
    }
}
