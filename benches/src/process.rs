//! The programs that are measured, each a process of its own: this program, started again.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Parser;
use omird::program::Arguments;

use crate::Result;

/// First argument that makes this program the daemon; its own arguments follow.
pub const DAEMON: &str = "@daemon";
/// First argument that makes this program the floor's server.
pub const ECHO: &str = "@echo";
/// First argument that makes this program the floor's server of HTTP.
pub const HTTP_FLOOR: &str = "@http-floor";
/// The name the measured robot has.
pub const ROBOT: &str = "bench";

/// Longest time for a process to be ready or to stop.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the daemon, and at its end tells what it wrote.
pub fn be_daemon(arguments: impl Iterator<Item = String>) -> ExitCode {
    // As the program itself does.
    omird::restart::with_settings();
    let code = omird::program::run(Arguments::parse_from(
        std::iter::once("omird".to_owned()).chain(arguments),
    ));
    println!("written {}", written_by_this_process().unwrap_or(0));
    code
}

fn written_by_this_process() -> Option<u64> {
    written_by("self")
}

/// Bytes a process sent to the disk, whole pages, as the kernel counts them.
fn written_by(process: &str) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
}

/// An endpoint nobody listens on.
pub fn free_endpoint() -> Result<String> {
    let probe = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(format!("tcp/{}", probe.local_addr()?))
}

/// Memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Everything resident.
    pub resident: u64,
    /// The most that was resident, since the start or [`Process::forget_peak`].
    pub peak: u64,
    /// Its memory without files: heap and stacks.
    pub anonymous: u64,
}

/// A running process that said it is ready.
pub struct Process {
    child: std::process::Child,
    lines: Receiver<String>,
    ready: String,
    /// From its start to its being ready.
    pub start: Duration,
}

impl Process {
    /// Starts the daemon on a data folder, without HTTP.
    pub fn daemon(data: &Path, endpoint: &str) -> Result<Self> {
        Self::daemon_with(data, endpoint, "off", None)
    }

    /// Starts the daemon on a data folder, with HTTP at an address and with a configuration.
    pub fn daemon_with(
        data: &Path,
        endpoint: &str,
        http: &str,
        config: Option<&Path>,
    ) -> Result<Self> {
        let named: [(&str, &OsStr); 4] = [
            ("--data", data.as_ref()),
            ("--robot", ROBOT.as_ref()),
            ("--listen", endpoint.as_ref()),
            ("--http", http.as_ref()),
        ];
        let config = config.map(|config| ("--config", config.as_os_str()));
        let list = named.into_iter().chain(config).flat_map(|(name, value)| [name.as_ref(), value]);
        Self::start(DAEMON, &list.collect::<Vec<&OsStr>>())
    }

    /// Starts the floor's server of HTTP.
    pub fn http_floor() -> Result<Self> {
        Self::start(HTTP_FLOOR, &[])
    }

    /// Returns the rest of the line by which it said that it is ready.
    pub fn ready(&self) -> &str {
        &self.ready
    }

    /// Returns the address of the daemon's HTTP.
    pub fn http(&self) -> Option<&str> {
        self.ready.split(' ').find_map(|part| part.strip_prefix("http="))
    }

    /// Starts the floor's server, which appends to `file`.
    pub fn echo(file: &Path, endpoint: &str) -> Result<Self> {
        Self::start(ECHO, &[file.as_ref(), endpoint.as_ref()])
    }

    fn start(role: &str, arguments: &[&OsStr]) -> Result<Self> {
        let began = Instant::now();
        let mut child = Command::new(std::env::current_exe()?)
            .arg(role)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Zenoh and the daemon say what they do; warnings are worth seeing.
            .env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()))
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the process has no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut process = Self { child, lines, ready: String::new(), start: Duration::ZERO };
        process.ready = process.line("ready")?;
        process.start = began.elapsed();
        Ok(process)
    }

    /// Waits for a line that begins so; gives the rest of it.
    fn line(&self, beginning: &str) -> Result<String> {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .map_err(|_| format!("a measured process never said `{beginning}`"))?;
            if let Some(rest) = line.strip_prefix(beginning) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Its memory now.
    pub fn memory(&self) -> Result<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| -> Option<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(rest.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        match (field("VmRSS:"), field("VmHWM:"), field("RssAnon:")) {
            (Some(resident), Some(peak), Some(anonymous)) => {
                Ok(Memory { resident, peak, anonymous })
            }
            _ => Err("the kernel does not say how much memory a process has".into()),
        }
    }

    /// Time on processors so far, of all its threads, in steps of 10 ms.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in brackets may hold anything; user and system time are the 12th and 13th word behind it.
        let behind = stat.rsplit_once(')').ok_or("/proc/PID/stat has no name")?.1;
        let ticks: Vec<u64> = behind
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        Ok(Duration::from_millis(10 * ticks.iter().sum::<u64>()))
    }

    /// Resets the peak.
    pub fn forget_peak(&self) -> Result<()> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    /// Bytes it sent to the disk so far, whole pages, as the kernel counts them.
    pub fn written(&self) -> Result<u64> {
        let written = written_by(&self.child.id().to_string());
        written.ok_or_else(|| "the kernel does not say what a process wrote".into())
    }

    /// Kills it, as a power cut would, as far as the process goes.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops the daemon as an operator would; gives the bytes it sent to the disk and how long it
    /// took to stop.
    pub fn stop(mut self) -> Result<(u64, Duration)> {
        let began = Instant::now();
        self.signal("-TERM")?;
        let written = self.line("written")?.parse()?;
        let status = self.child.wait()?;
        if status.success() {
            Ok((written, began.elapsed()))
        } else {
            Err(status.to_string().into())
        }
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status()?;
        if status.success() { Ok(()) } else { Err("`kill` failed".into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
