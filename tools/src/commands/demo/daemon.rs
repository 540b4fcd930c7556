//! A daemon of one's own: this program run again as `omird`, so that it can really be killed.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cli::{DaemonArgs, Globals};
use crate::client::Client;
use crate::error::{Error, Result};

/// The hidden command that is the daemon.
pub(super) const COMMAND: &str = "__daemon";

/// Longest time for the daemon to come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The hidden command: it does exactly what the program `omird` does.
pub(crate) fn run(globals: &Globals, args: &DaemonArgs) -> Result<()> {
    let status = omird::program::run(omird::program::Arguments {
        config: args.config.clone(),
        data: Some(args.data.clone()),
        memory_only: false,
        robot: globals.robot.clone(),
        listen: vec![args.listen.clone()],
        connect: Vec::new(),
        http: args.config.is_none().then(|| "off".to_owned()),
        mode: None,
        zenoh_config: None,
        check: false,
        read_only: false,
    });
    if status == ExitCode::SUCCESS {
        Ok(())
    } else {
        Err(Error::Unreachable("the demo's daemon ended with an error".to_owned()))
    }
}

/// A running daemon; killed when dropped.
pub(super) struct Daemon {
    child: Arc<Mutex<Child>>,
    /// The endpoint it listens on.
    pub(super) endpoint: String,
}

impl Daemon {
    /// Starts it and waits until it says that it is ready.
    pub(super) fn start(data: &Path, robot: &str) -> Result<Self> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::Unreachable(format!("the demo's own daemon did not start: {why}"))
        };
        let endpoint = free_endpoint().map_err(|error| failed(&error))?;
        let program: PathBuf = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut child = Command::new(program)
            .arg(COMMAND)
            .args(["--robot", robot, "--listen", &endpoint])
            .arg("--data")
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        let stdout = child.stdout.take().ok_or_else(|| failed(&"it has no output"))?;
        let (sender, receiver) = std::sync::mpsc::channel();
        // Ends with the daemon: its standard output closes.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(std::io::Result::ok);
            let _ = sender.send(lines.any(|line| line.starts_with("ready ")));
        });
        let daemon = Self { child: Arc::new(Mutex::new(child)), endpoint };
        match receiver.recv_timeout(PATIENCE) {
            Ok(true) => Ok(daemon),
            Ok(false) => Err(failed(&"it stopped at once; run `omird` to see why")),
            Err(_) => Err(failed(&"it was not ready in time")),
        }
    }

    /// A session with it.
    pub(super) fn client(&self, globals: &Globals) -> Result<Client> {
        // Its daemon knows none of the person's tokens.
        let globals = Globals {
            robot: None,
            connect: vec![self.endpoint.clone()],
            zenoh_config: None,
            token_file: None,
            prefix: "omir".to_owned(),
            timeout: Duration::from_secs(5),
            json: globals.json,
            quiet: globals.quiet,
        };
        Client::open_as(&globals, None)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.lock().id()
    }

    /// Sends SIGKILL after a while, whatever it is doing then.
    pub(super) fn kill_soon(&self, after: Duration) -> JoinHandle<()> {
        let child = self.child.clone();
        std::thread::spawn(move || {
            std::thread::sleep(after);
            kill(&child);
        })
    }

    /// Asks it to stop (SIGTERM) and waits until it has.
    pub(super) fn stop(self) -> Result<()> {
        let pid = self.pid().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        if asked.is_ok_and(|status| status.success()) {
            self.child.lock().wait()?;
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        kill(&self.child);
    }
}

fn kill(child: &Mutex<Child>) {
    let mut child = child.lock();
    // It may be gone already; either way it must be waited for.
    let _ = child.kill();
    let _ = child.wait();
}

/// A loopback port without a listener.
fn free_endpoint() -> std::io::Result<String> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(format!("tcp/127.0.0.1:{port}"))
}
