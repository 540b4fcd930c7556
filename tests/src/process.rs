//! The real daemon as a process of its own, and a plain Zenoh client beside it.
//!
//! Everything is on loopback, without multicast, on a port that was free a moment ago, and ends
//! with the test: a daemon that is dropped is killed.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use zenoh::Wait;
use zenoh::query::Reply;

/// An endpoint on loopback that nobody listens on. Its port is below those that the system gives to connections (32768 and
/// up), so that none of them takes it before it is listened on, and no two calls of a process give the same.
pub fn free_endpoint() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    const PORTS: Range<u32> = 10_240..32_768;
    loop {
        // Processes begin in different places.
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_mul(127).wrapping_add(call);
        let port = PORTS.start + number % PORTS.len() as u32;
        if TcpListener::bind(("127.0.0.1", port as u16)).is_ok() {
            return format!("tcp/127.0.0.1:{port}");
        }
    }
}

/// Standard output whose reader has gone, as behind `| head` once that has had enough.
pub fn nobody_reads() -> Stdio {
    let (reader, writer) = UnixStream::pair().expect("a pair of sockets");
    drop(reader);
    Stdio::from(OwnedFd::from(writer))
}

/// Settings of a daemon besides folder, name and endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings<'a> {
    /// Its environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// More arguments.
    pub arguments: &'a [&'a str],
}

/// A running daemon.
pub struct Daemon {
    child: Child,
    /// The endpoint it listens on.
    pub endpoint: String,
    /// The line it prints when it serves, up to the address of HTTP.
    ready: String,
    /// The address of HTTP, once it serves, if there is one.
    http: Option<SocketAddr>,
    data: PathBuf,
}

impl Daemon {
    /// Starts `program` on `data` and waits for its ready line.
    pub fn start(program: &str, data: &Path, robot: &str, more: &[&str]) -> Self {
        let mut daemon = Self::spawn(program, data, robot, &free_endpoint(), more);
        daemon.wait_until_ready();
        daemon
    }

    /// As [`Daemon::start`], with HTTP on a free port: [`Daemon::http`].
    pub fn start_http(program: &str, data: &Path, robot: &str, more: &[&str]) -> Self {
        let more = [&["--http", "127.0.0.1:0"], more].concat();
        Self::start(program, data, robot, &more)
    }

    /// Starts the daemon that is in `omir`, which its demo uses.
    pub fn start_in_tool(omir: &str, data: &Path, robot: &str) -> Self {
        Self::start_in_tool_with(omir, data, robot, &[])
    }

    /// As [`Daemon::start_in_tool`], with more arguments: `--config FILE`.
    pub fn start_in_tool_with(omir: &str, data: &Path, robot: &str, more: &[&str]) -> Self {
        let mut command = Command::new(omir);
        command.arg("__daemon");
        let mut daemon = Self::spawn_command(command, data, robot, &free_endpoint(), more);
        daemon.wait_until_ready();
        daemon
    }

    /// Starts `program` on `data`, listening on `endpoint`, and does not wait for it. Unless
    /// `RUST_LOG` is set, it logs only what is wrong.
    pub fn spawn(program: &str, data: &Path, robot: &str, endpoint: &str, more: &[&str]) -> Self {
        Self::spawn_command(Command::new(program), data, robot, endpoint, more)
    }

    /// As [`Daemon::spawn`], with an environment. Its log is kept: [`Daemon::log`].
    pub fn spawn_with(
        program: &str,
        data: &Path,
        robot: &str,
        endpoint: &str,
        settings: &Settings<'_>,
    ) -> Self {
        let mut command = Command::new(program);
        command.stderr(Stdio::piped());
        let child = Self::command(&mut command, data, robot, endpoint, settings.arguments)
            .envs(settings.environment.iter().copied())
            .spawn()
            .expect("the daemon starts");
        Self::of(child, data, robot, endpoint)
    }

    fn spawn_command(
        mut command: Command,
        data: &Path,
        robot: &str,
        endpoint: &str,
        more: &[&str],
    ) -> Self {
        let child = Self::command(&mut command, data, robot, endpoint, more)
            .spawn()
            .expect("the daemon starts");
        Self::of(child, data, robot, endpoint)
    }

    fn of(child: Child, data: &Path, robot: &str, endpoint: &str) -> Self {
        let ready = format!("ready robot={robot} data={} zenoh={endpoint} http=", data.display());
        Self { child, endpoint: endpoint.to_owned(), ready, http: None, data: data.to_owned() }
    }

    fn command<'c>(
        command: &'c mut Command,
        data: &Path,
        robot: &str,
        endpoint: &str,
        more: &[&str],
    ) -> &'c mut Command {
        let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| "warn,zenoh=error".to_owned());
        // Daemons of tests run side by side, and only one of them gets the default address.
        if !more.iter().any(|argument| argument.starts_with("--http")) {
            command.env("OMIRD_HTTP", "off");
        }
        command
            .env("RUST_LOG", filter)
            .args(["--robot", robot, "--listen", endpoint])
            .arg("--data")
            .arg(data)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
    }

    /// Waits for the ready line of a daemon that was only spawned.
    ///
    /// # Panics
    /// If it ends without one.
    #[track_caller]
    pub fn wait_until_ready(&mut self) {
        let mut lines = BufReader::new(self.child.stdout.take().expect("it is piped")).lines();
        let ready = lines.next().expect("a line before it ends").expect("text");
        let http = ready.strip_prefix(&self.ready).unwrap_or_else(|| panic!("{ready}"));
        self.http = (http != "none").then(|| http.parse().expect("an address"));
    }

    /// The address of HTTP.
    ///
    /// # Panics
    /// If it has none: it was not started with one, or is not ready.
    #[track_caller]
    pub fn http(&self) -> SocketAddr {
        self.http.expect("it was started with --http, and is ready")
    }

    /// The socket that its owner asks it by.
    pub fn http_socket(&self) -> PathBuf {
        self.data.join("http.sock")
    }

    /// Its number among processes.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The power is pulled, as far as a process can feel it.
    pub fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("it is gone");
    }

    /// Asks it to stop and does not wait for it.
    pub fn ask_to_stop(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal by its name: `HUP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }

    /// The log of a daemon of [`Daemon::spawn_with`] until its end, which is waited for.
    pub fn log(&mut self) -> String {
        let mut log = String::new();
        if let Some(mut logged) = self.child.stderr.take() {
            logged.read_to_string(&mut log).expect("text");
        }
        let _ = self.child.wait();
        log
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> ExitStatus {
        self.ask_to_stop();
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not stop within 30 s");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One reply: the key it came on, or the error object.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Key and value.
    Ok(String, Value),
    /// Code, message, path.
    Err(Value),
}

impl Answer {
    /// The value of a good answer.
    #[track_caller]
    pub fn value(&self) -> &Value {
        match self {
            Self::Ok(_, value) => value,
            Self::Err(error) => panic!("refused: {error}"),
        }
    }

    /// The code of a refusal.
    #[track_caller]
    pub fn code(&self) -> &str {
        match self {
            Self::Ok(key, value) => panic!("not refused: {key} {value}"),
            Self::Err(error) => error["code"].as_str().expect("a code"),
        }
    }

    /// The path of a refusal.
    #[track_caller]
    pub fn path(&self) -> &str {
        match self {
            Self::Ok(key, value) => panic!("not refused: {key} {value}"),
            Self::Err(error) => error["path"].as_str().expect("a path"),
        }
    }
}

/// A Zenoh session that knows nothing of omird.
pub struct Client {
    /// The session.
    pub session: zenoh::Session,
    /// The token that goes with all it asks and puts.
    pub token: Option<String>,
}

impl Client {
    /// Connects to one endpoint.
    pub fn connect(endpoint: &str) -> Self {
        Self { session: session("client", &[], &[endpoint]), token: None }
    }

    /// Returns a client over the same session with a token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { session: self.session.clone(), token: Some(token.to_owned()) }
    }

    /// What goes beside each question, PUT and DELETE.
    fn attachment(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    /// Asks and collects all answers.
    pub fn ask(&self, selector: &str) -> Vec<Answer> {
        self.send(selector, None)
    }

    /// Asks one daemon, with a JSON payload.
    pub fn ask_json(&self, selector: &str, payload: &Value) -> Answer {
        let bytes = serde_json::to_vec(payload).expect("it is JSON");
        self.one(selector, Some((bytes, "application/json")))
    }

    /// Asks with any payload; exactly one answer is expected.
    #[track_caller]
    pub fn one(&self, selector: &str, payload: Option<(Vec<u8>, &str)>) -> Answer {
        let mut answers = self.send(selector, payload);
        assert_eq!(answers.len(), 1, "{selector}: {answers:?}");
        answers.remove(0)
    }

    /// Asks; an empty list if the daemon is gone.
    pub fn send(&self, selector: &str, payload: Option<(Vec<u8>, &str)>) -> Vec<Answer> {
        self.replies(selector, payload)
            .iter()
            .map(|reply| match reply.result() {
                Ok(sample) => {
                    let value =
                        decode(&sample.payload().to_bytes(), &sample.encoding().to_string());
                    Answer::Ok(sample.key_expr().to_string(), value)
                }
                Err(error) => {
                    let bytes = error.payload().to_bytes();
                    match serde_json::from_slice(&bytes) {
                        Ok(value) => Answer::Err(value),
                        Err(_) => Answer::Err(decode(&bytes, &error.encoding().to_string())),
                    }
                }
            })
            .collect()
    }

    /// Asks and collects all replies as Zenoh gives them; none if the daemon is gone.
    pub fn replies(&self, selector: &str, payload: Option<(Vec<u8>, &str)>) -> Vec<Reply> {
        let get = self.session.get(selector).timeout(Duration::from_secs(60));
        let mut get = get.attachment(self.attachment());
        if let Some((bytes, encoding)) = payload {
            get = get.payload(bytes).encoding(encoding);
        }
        let Ok(replies) = get.wait() else { return Vec::new() };
        std::iter::from_fn(|| replies.recv().ok()).collect()
    }

    /// Stores a resource as an ordinary Zenoh client does.
    pub fn put(&self, key: &str, payload: impl Into<Vec<u8>>) {
        let put = self.session.put(key, payload.into()).attachment(self.attachment());
        put.wait().expect("the session is open");
    }

    /// Deletes what a key names, as an ordinary Zenoh client does.
    pub fn delete(&self, key: &str) {
        let delete = self.session.delete(key).attachment(self.attachment());
        delete.wait().expect("the session is open");
    }

    /// Waits until the daemon knows what this client subscribed to before: a subscriber that is declared after it
    /// hears of a PUT that is refused. Each try counts as refused, and is announced as `Entity/probe`.
    pub fn wait_until_subscribed(&self, robot: &str) {
        let (sender, heard) = mpsc::channel();
        let _probe = self
            .session
            .declare_subscriber(format!("omir/{robot}/event/rejected/Entity/probe"))
            .callback(move |_| {
                let _ = sender.send(());
            })
            .wait()
            .expect("a subscriber");
        eventually("the daemon knows the subscriptions", || {
            self.put(&format!("omir/{robot}/memory/Entity/probe"), "no resource");
            heard.recv_timeout(Duration::from_millis(100)).is_ok()
        });
    }
}

/// Opens a Zenoh session on loopback.
pub fn session(mode: &str, listen: &[&str], connect: &[&str]) -> zenoh::Session {
    let mut config = zenoh::Config::default();
    let list = |endpoints: &[&str]| serde_json::to_string(endpoints).expect("texts");
    for (key, value) in [
        ("mode", format!("{mode:?}")),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("listen/endpoints", list(listen)),
        ("connect/endpoints", list(connect)),
    ] {
        config.insert_json5(key, &value).expect("Zenoh knows it");
    }
    zenoh::open(config).wait().expect("the session opens")
}

fn decode(bytes: &[u8], encoding: &str) -> Value {
    match encoding {
        "application/json" => serde_json::from_slice(bytes).expect("JSON as it says"),
        "application/cbor" => ciborium::from_reader(bytes).expect("CBOR as it says"),
        other => Value::String(format!("{other}: {}", String::from_utf8_lossy(bytes))),
    }
}

/// Tries until it holds, at most ten seconds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
