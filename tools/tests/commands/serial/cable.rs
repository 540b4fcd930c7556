//! A daemon's port and a tool, with a cable between them that has the speed of a serial line and can be pulled out.
//! Both ends are pseudo-terminals; the daemon's ports are served in the test.

mod console;
mod ending;
mod pull;
mod push;

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
use omird::engine::{Encoding, Engine, Parts, Settings};
use omird::protocols::Protocols;
use omird::router::AccessPolicy;
use omird::serial::{Port, Ports, Share};
use omird::store::device_key;
use omird_tests::cable::End;
use omird_tests::folder::parts;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::serial::{OMIR, ends_with};

pub const BAUD: u32 = 460_800;
pub const MEMORIES: usize = 400;

/// A daemon with a port, and a folder with a name for either end of the cable.
pub struct Rig {
    pub engine: Engine,
    ports: Option<Ports>,
    folder: TempDir,
}

impl Rig {
    pub fn new() -> Rig {
        Rig::with(7, Settings::default())
    }

    /// Another memory has another key.
    pub fn with_key(key: u8) -> Rig {
        Rig::with(key, Settings::default())
    }

    pub fn with(key: u8, settings: Settings) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let key = device_key(&data, || [key; 32]).unwrap();
        let parts = Parts { key, settings, ..parts(&data) };
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
        let access = AccessPolicy { write: false, token: Some("open sesame".to_owned()) };
        let path = folder.path().join("daemon");
        let port = Port { path, baud: BAUD, access, share: Share::new(1.0) };
        let ports = Ports::start(&Protocols::over(&engine, "r2"), &[port]).unwrap();
        Rig { engine, ports: Some(ports), folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Plugs a cable in that carries `most` bytes from the daemon, and is pulled out then.
    pub fn plug(&self, most: usize) -> Cable {
        plug(["daemon", "tool"].map(|name| self.path(name)), most)
    }

    pub fn omir(&self, args: &[&str]) -> Output {
        let tool = self.path("tool").display().to_string();
        Command::new(OMIR)
            .args(args)
            .args(["--port", &tool, "--baud", &BAUD.to_string()])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The console as a person sees it now; a program that left the line without a word keeps it for longer.
    #[track_caller]
    pub fn console_is_back(&self) {
        assert!(self.console("ls type=Entity\n").ends_with("0 of 0\r\nr2> "));
    }

    /// Output of a console that is piped into.
    #[track_caller]
    pub fn console(&self, typed: &str) -> String {
        let mut child = self.tool(&["console", "--timeout", "5"], BAUD).spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        ends_with(&output, 0);
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn terminal(&self) -> OwnedFd {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(self.path("tool"), flags, Mode::empty()).unwrap()
    }

    pub fn tool(&self, args: &[&str], baud: u32) -> Command {
        let mut command = Command::new(OMIR);
        command.args(args).args(["--baud", &baud.to_string(), "--port"]).arg(self.path("tool"));
        command.current_dir(self.folder.path()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
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

/// Plugs a cable in between two names, that of the daemon first. It carries `most` bytes from the daemon, and is pulled out
/// then.
pub fn plug(names: [PathBuf; 2], most: usize) -> Cable {
    let daemon = End::plug(&names[0]);
    let tool = End::plug(&names[1]);
    let out = Arc::new(AtomicBool::new(false));
    let is_out = out.clone();
    let passes = Arc::new(AtomicUsize::new(usize::MAX));
    let may_pass = passes.clone();
    let typed = Arc::new(AtomicUsize::new(0));
    let may_type = typed.clone();
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
            may_type.fetch_add(carry(&tool.ours, &daemon.ours), Ordering::AcqRel);
            std::thread::sleep(Duration::from_millis(1));
        }
        // A device that is gone has no name; its number may be the next one's.
        names.iter().for_each(|name| drop(fs::remove_file(name)));
    });
    Cable { out, passes, typed, thread: Some(thread) }
}

/// Some sixty characters without much order.
pub fn sha(n: usize) -> String {
    let mut state = n as u64 + 1;
    let mut word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", state ^ state >> 29)
    };
    [word(), word(), word(), word()].concat()
}

/// Carries what is there, as much as a line of that speed does in a millisecond; how much.
pub fn carry(from: &OwnedFd, to: &OwnedFd) -> usize {
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

pub struct Cable {
    out: Arc<AtomicBool>,
    /// So many bytes still come from the daemon before the rest is held back.
    pub passes: Arc<AtomicUsize>,
    /// So many came to the daemon.
    pub typed: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Cable {
    /// Waits until it has carried what it carries.
    pub fn wait(mut self) {
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

/// The ids in a file, each once.
pub fn ids(file: &Path) -> BTreeSet<String> {
    let document = json::from_slice(&fs::read(file).unwrap(), &Limits::default()).unwrap();
    let entries = document.get("entry").and_then(Value::as_array).unwrap();
    let ids: BTreeSet<String> = entries
        .iter()
        .map(|entry| entry.get("id").and_then(Value::as_str).unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), entries.len());
    ids
}

pub fn all() -> BTreeSet<String> {
    (0..MEMORIES).map(|n| format!("m{n}")).collect()
}
