//! The Zenoh session: finding daemons and asking them.
//!
//! The tool is a Zenoh client without scouting. It connects to one endpoint, the first that answers;
//! given several `--connect` it becomes a peer of all of them, so that one question reaches a fleet.
//! Every call blocks until its answer, its timeout, or the loss of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use omir_core::code::Code;
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird::recall::query::DEFAULT_FRAME;
use omird::service::{MOST_PARAMETERS, plain};
use zenoh::bytes::Encoding;
use zenoh::handlers::FifoChannelHandler;
use zenoh::query::{ConsolidationMode, QueryTarget, Reply as ZenohReply, Selector};
use zenoh::{Config, Session, Wait as _};

use crate::cli::Globals;
use crate::document;
use crate::error::{Error, Result};
use crate::output;
use crate::selector::Parameters;

/// Where a daemon listens by default, and where a router does.
const DEFAULT_ENDPOINTS: [&str; 2] = ["tcp/127.0.0.1:7448", "tcp/127.0.0.1:7447"];

/// How long to wait for the slowest of several endpoints.
const FLEET_PATIENCE: Duration = Duration::from_millis(1000);

/// How long nobody is heard before nobody is there.
const HEARING: Duration = Duration::from_secs(2);

/// Between two questions of who is there.
const A_MOMENT: Duration = Duration::from_millis(40);

/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_millis(300);

/// A question's payload.
#[derive(Debug, Clone)]
pub enum Payload {
    /// `application/json`
    Json(Vec<u8>),
    /// `application/cbor`
    Cbor(Vec<u8>),
}

impl Payload {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Json(bytes) | Self::Cbor(bytes) => bytes.len(),
        }
    }
}

/// One robot's answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Key of the answer.
    pub key: String,
    /// In the encoding of the question, JSON without payload.
    pub body: Vec<u8>,
    /// What is said beside it, as JSON; empty if nothing is.
    pub beside: Vec<u8>,
}

impl Reply {
    /// The answer, decoded.
    ///
    /// # Errors
    /// [`Error::Partial`] if that fails: something answered, and nothing can be said of it.
    pub fn value(&self) -> Result<Value> {
        document::decode(&self.body).map_err(|why| {
            Error::Partial(format!("the answer on {} is unreadable {why}", self.key))
        })
    }
}

/// What a question to every robot brought.
#[derive(Debug, Default)]
pub struct FleetReplies {
    /// Answers by robot.
    pub answers: BTreeMap<String, Reply>,
    /// Robots that answered with an error.
    pub refusals: Vec<(Option<String>, Error)>,
    /// Robots that are alive and did not answer.
    pub silent: BTreeSet<String>,
}

impl FleetReplies {
    /// The failure to end with once the answers are shown; `None` if every robot answered.
    #[must_use]
    pub fn shortfall(&mut self) -> Option<Error> {
        if self.answers.is_empty() && !self.refusals.is_empty() {
            return Some(self.refusals.swap_remove(0).1);
        }
        let mut words = Vec::new();
        if !self.silent.is_empty() {
            let names: Vec<&str> = self.silent.iter().map(String::as_str).collect();
            words.push(format!("no answer from {}", names.join(", ")));
        }
        for (robot, error) in &self.refusals {
            words.push(match robot {
                Some(robot) => format!("{robot}: {error}"),
                None => error.to_string(),
            });
        }
        (!words.is_empty()).then(|| Error::Partial(words.join("; ")))
    }
}

/// An open session.
pub struct Client {
    /// Taken only when the client goes out of scope.
    session: Option<Session>,
    prefix: String,
    timeout: Duration,
    endpoints: String,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing answers at the endpoints, [`Error::Usage`] and
    /// [`Error::Input`] for endpoints and files that Zenoh does not understand.
    pub fn open(globals: &Globals) -> Result<Self> {
        let config = configuration(globals)?;
        let endpoints = config
            .get_json("connect/endpoints")
            .map(|json| readable_endpoints(&json))
            .unwrap_or_default();
        let session = open_within(config, globals.timeout)
            .map_err(|why| unreachable_at(&endpoints, why.as_deref()))?;
        let client = Self {
            session: Some(session),
            prefix: globals.prefix.clone(),
            timeout: globals.timeout,
            endpoints,
        };
        let info = client.session()?.info();
        let linked = info.peers_zid().wait().count() + info.routers_zid().wait().count();
        if linked == 0 {
            return Err(unreachable_at(&client.endpoints, None));
        }
        if linked < globals.connect.len() {
            let remark = format!("only {linked} of {} endpoints answer", globals.connect.len());
            output::remark(globals.quiet || globals.json, &remark);
        }
        Ok(client)
    }

    /// Waits at least this long for answers from now on.
    pub fn be_patient(&mut self, at_least: Duration) {
        self.timeout = self.timeout.max(at_least);
    }

    /// Zenoh's session, for subscriptions.
    ///
    /// # Errors
    /// None while the client exists.
    pub fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| self.lost(&"the session is closed"))
    }

    /// The configured first part of every key.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Names of the robots that are alive, in order.
    ///
    /// A daemon that hangs on a router answers a question of who is alive before it knows that itself, now and then.
    /// So it is asked until an answer brings nobody new, and where nobody is heard for `HEARING`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if the question cannot be sent.
    pub fn robots(&self) -> Result<BTreeSet<String>> {
        let until = Instant::now() + HEARING.min(self.timeout);
        let mut robots = BTreeSet::new();
        loop {
            let known = robots.len();
            self.hear(&mut robots)?;
            let is_settled = known > 0 && robots.len() == known;
            if is_settled || Instant::now() >= until {
                return Ok(robots);
            }
            std::thread::sleep(A_MOMENT);
        }
    }

    /// Adds the robots of one answer.
    fn hear(&self, robots: &mut BTreeSet<String>) -> Result<()> {
        let replies = self
            .session()?
            .liveliness()
            .get(format!("{}/*/alive", self.prefix))
            .timeout(self.timeout)
            .wait()
            .map_err(|why| self.lost(&why))?;
        while let Ok(reply) = replies.recv() {
            if let Ok(token) = reply.result()
                && let Some(robot) = self.robot_of(token.key_expr().as_str())
            {
                robots.insert(robot.to_owned());
            }
        }
        Ok(())
    }

    /// The robot that is meant: the one named, or the only one alive.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if none is alive, [`Error::Usage`] with their names if several are.
    pub fn robot(&self, named: Option<&str>) -> Result<String> {
        if let Some(name) = named {
            return Ok(name.to_owned());
        }
        let mut robots = self.robots()?;
        match (robots.pop_first(), robots.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(self.nobody()),
            (Some(first), false) => {
                let names: Vec<String> = std::iter::once(first).chain(robots).collect();
                Err(Error::Usage(format!(
                    "several robots are alive: {}; name one with --robot",
                    names.join(", ")
                )))
            }
        }
    }

    /// Asks one robot `<prefix>/<robot>/<path>` and returns its answer.
    ///
    /// # Errors
    /// What the daemon refused, or [`Error::Unreachable`] without an answer in time.
    pub fn ask(
        &self,
        robot: &str,
        path: &str,
        parameters: &Parameters,
        payload: Option<&Payload>,
    ) -> Result<Reply> {
        self.first_reply(robot, path, parameters, payload)?.ok_or_else(|| self.no_answer(robot))
    }

    /// The frame in which a robot looks for places that name none, which is where such a place is put.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn fixed_frame(&self, robot: &str) -> Result<String> {
        let status = self.ask(robot, "status", &Parameters::new(), None)?.value()?;
        Ok(fixed_frame(&status).to_owned())
    }

    /// Asks for one resource; `None` if the robot is alive and does not have it.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn fetch(&self, robot: &str, path: &str) -> Result<Option<Reply>> {
        match self.first_reply(robot, path, &Parameters::new(), None) {
            Ok(None) if self.robots()?.contains(robot) => Ok(None),
            Ok(None) => Err(self.no_answer(robot)),
            Err(Error::Refused { code, .. }) if code == Code::NotFound.as_str() => Ok(None),
            other => other,
        }
    }

    /// Calls `f` with the key of each resource that `path`, with wildcards, names, until it says that it has enough.
    ///
    /// # Errors
    /// As [`Client::ask`], if there was no key. That there is none is no error.
    pub fn each_key(&self, robot: &str, path: &str, mut f: impl FnMut(&str) -> bool) -> Result<()> {
        let key = format!("{}/{robot}/{path}", self.prefix);
        let mut format = Parameters::new();
        // As it lies on the card, which costs the daemon least.
        format.push("format", "cbor");
        let replies = self.send(&key, &format, None, QueryTarget::BestMatching)?;
        let mut refused = None;
        while let Ok(reply) = replies.recv() {
            match self.outcome(&reply) {
                Ok(answer) if f(&answer.key) => {}
                // Who has enough does not ask what else there is.
                Ok(_) => return Ok(()),
                Err((_, error)) => refused = refused.or(Some(error)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn first_reply(
        &self,
        robot: &str,
        path: &str,
        parameters: &Parameters,
        payload: Option<&Payload>,
    ) -> Result<Option<Reply>> {
        let key = format!("{}/{robot}/{path}", self.prefix);
        let replies = self.query(&key, parameters, payload, QueryTarget::BestMatching)?;
        match replies.first() {
            Some(reply) => self.outcome(reply).map(Some).map_err(|(_, error)| error),
            None => Ok(None),
        }
    }

    /// Asks `<prefix>/<robot>/<path>` of every robot in `alive`, all at once.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if none answers. Single failures are in the result.
    pub fn ask_fleet(
        &self,
        alive: BTreeSet<String>,
        path: &str,
        parameters: &Parameters,
    ) -> Result<FleetReplies> {
        if alive.is_empty() {
            return Err(self.nobody());
        }
        let key = format!("{}/*/{path}", self.prefix);
        let mut fleet = FleetReplies { silent: alive, ..FleetReplies::default() };
        for reply in self.query(&key, parameters, None, QueryTarget::All)? {
            match self.outcome(&reply) {
                Ok(answer) => {
                    if let Some(robot) = self.robot_of(&answer.key) {
                        let robot = robot.to_owned();
                        fleet.silent.remove(&robot);
                        fleet.answers.insert(robot, answer);
                    }
                }
                Err((_, Error::Unreachable(_))) => {}
                Err((robot, error)) => fleet.refusals.push((robot, error)),
            }
        }
        // An error reply does not say whose it is: as many silent robots are accounted for.
        if fleet.silent.len() <= fleet.refusals.len() {
            fleet.silent.clear();
        }
        if fleet.answers.is_empty() && fleet.refusals.is_empty() {
            let names: Vec<String> = fleet.silent.into_iter().collect();
            return Err(self.no_answer(&names.join(", ")));
        }
        Ok(fleet)
    }

    /// The robot in `<prefix>/<robot>/…`.
    #[must_use]
    pub fn robot_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        rest.split('/').next()
    }

    fn query(
        &self,
        key: &str,
        parameters: &Parameters,
        payload: Option<&Payload>,
        target: QueryTarget,
    ) -> Result<Vec<ZenohReply>> {
        let replies = self.send(key, parameters, payload, target)?;
        Ok(std::iter::from_fn(|| replies.recv().ok()).collect())
    }

    fn send(
        &self,
        key: &str,
        parameters: &Parameters,
        payload: Option<&Payload>,
        target: QueryTarget,
    ) -> Result<FifoChannelHandler<ZenohReply>> {
        check_sizes(key, parameters.as_str())?;
        let key = zenoh::key_expr::KeyExpr::try_from(key)
            .map_err(|why| Error::Usage(format!("`{key}` is no Zenoh key: {}", plain(&why))))?;
        let mut get = self
            .session()?
            .get(Selector::from((key, parameters.as_str())))
            .target(target)
            .consolidation(ConsolidationMode::None)
            .timeout(self.timeout);
        get = match payload {
            Some(Payload::Json(bytes)) => {
                get.payload(bytes.as_slice()).encoding(Encoding::APPLICATION_JSON)
            }
            Some(Payload::Cbor(bytes)) => {
                get.payload(bytes.as_slice()).encoding(Encoding::APPLICATION_CBOR)
            }
            None => get,
        };
        get.wait().map_err(|why| self.lost(&why))
    }

    /// An answer, or an error with the robot it is of, as far as it says.
    fn outcome(&self, reply: &ZenohReply) -> std::result::Result<Reply, (Option<String>, Error)> {
        match reply.result() {
            Ok(sample) => Ok(Reply {
                key: sample.key_expr().as_str().to_owned(),
                body: sample.payload().to_bytes().into_owned(),
                beside: sample
                    .attachment()
                    .map_or_else(Vec::new, |said| said.to_bytes().into_owned()),
            }),
            Err(refusal) => {
                let body = refusal.payload().to_bytes();
                Err(error_object(&body).map_or_else(
                    || {
                        let text = String::from_utf8_lossy(&body).into_owned();
                        (None, self.strange_error(&text))
                    },
                    |(robot, error)| (robot, error),
                ))
            }
        }
    }

    /// Zenoh's own error replies are bare words; `Timeout` is the one that happens.
    fn strange_error(&self, text: &str) -> Error {
        if text == "Timeout" {
            Error::Unreachable(format!(
                "no answer within {} s (--timeout)",
                self.timeout.as_secs_f64()
            ))
        } else {
            Error::Refused {
                code: Code::Internal.as_str().to_owned(),
                message: format!("the daemon answered with an error: {text}"),
                path: None,
            }
        }
    }

    fn lost(&self, why: &dyn std::fmt::Display) -> Error {
        let why = plain(why);
        Error::Unreachable(format!("the connection to {} failed: {why}", self.endpoints))
    }

    fn nobody(&self) -> Error {
        Error::Unreachable(format!(
            "connected to {}, but no robot's memory is alive there; start one with `omird`",
            self.endpoints
        ))
    }

    fn no_answer(&self, robot: &str) -> Error {
        let alive = self.robots().unwrap_or_default();
        let others: Vec<&str> =
            alive.iter().map(String::as_str).filter(|name| *name != robot).collect();
        Error::Unreachable(if others.is_empty() {
            format!("no answer from robot {robot} at {}", self.endpoints)
        } else {
            format!(
                "no answer from robot {robot} at {}; alive are {}",
                self.endpoints,
                others.join(", ")
            )
        })
    }
}

/// Closes the session, but does not wait for a daemon that no longer answers: Zenoh would, for as long
/// as a connection attempt takes.
impl Drop for Client {
    fn drop(&mut self) {
        let (done, closed) = mpsc::channel();
        if let Some(session) = self.session.take() {
            std::thread::spawn(move || {
                let _ = session.close().wait();
                let _ = done.send(());
            });
            let _ = closed.recv_timeout(GOODBYE);
        }
    }
}

/// Zenoh does not come back from sending a longer key, and a daemon takes no more parameters.
fn check_sizes(key: &str, parameters: &str) -> Result<()> {
    for (what, bytes, most) in [
        ("a key", key.len(), usize::from(u16::MAX)),
        ("what is asked for", parameters.len(), MOST_PARAMETERS),
    ] {
        if bytes > most {
            let message =
                format!("{what} has {bytes} bytes, and may have {most}; ask for less at a time");
            return Err(Error::Usage(message));
        }
    }
    Ok(())
}

/// As a status tells it. An older daemon does not; what it kept lay in `map`.
fn fixed_frame(status: &Value) -> &str {
    status.get("fixedFrame").and_then(Value::as_str).unwrap_or(DEFAULT_FRAME)
}

/// `{"code", "message", "path"}`, and the robot if the object names one.
fn error_object(body: &[u8]) -> Option<(Option<String>, Error)> {
    let value = document::decode(body).ok()?;
    let field = |name: &str| {
        let text = value.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let error = Error::Refused {
        code: field("code")?,
        message: field("message").unwrap_or_default(),
        path: field("path"),
    };
    Some((field("robot"), error))
}

fn unreachable_at(endpoints: &str, why: Option<&str>) -> Error {
    let mut message = format!(
        "no omird answers at {endpoints}; start one with `omird`, or name one with --connect"
    );
    if let Some(why) = why {
        message.push_str(&format!(" ({why})"));
    }
    Error::Unreachable(message)
}

/// `["tcp/a:1","tcp/b:2"]` as `tcp/a:1 or tcp/b:2`; what is no such list, as it is.
fn readable_endpoints(json: &str) -> String {
    let list = json::from_slice(json.as_bytes(), &Limits::default()).ok();
    let names: Option<Vec<&str>> = list
        .as_ref()
        .and_then(Value::as_array)
        .and_then(|items| items.iter().map(Value::as_str).collect());
    names.map_or_else(|| json.to_owned(), |names| names.join(" or "))
}

/// Opens a session, giving up after `timeout`: an address that swallows packets would hold a
/// connection attempt for minutes. The error is a reason worth showing, if there is one.
fn open_within(config: Config, timeout: Duration) -> std::result::Result<Session, Option<String>> {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = done.send(zenoh::open(config).wait());
    });
    match result.recv_timeout(timeout.max(Duration::from_millis(100))) {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(why)) => {
            let why = plain(&why);
            // A refused connection is the ordinary case and explains itself.
            let ordinary = why.contains("Unable to connect to any of");
            Err((!ordinary).then_some(why))
        }
        Err(_) => Err(Some(format!("gave up after {} s", timeout.as_secs_f64()))),
    }
}

fn configuration(globals: &Globals) -> Result<Config> {
    let mut config = match &globals.zenoh_config {
        Some(file) => zenoh_file(file)?,
        None => Config::default(),
    };
    if !globals.connect.is_empty() || !has_endpoints(&config) {
        let endpoints: Vec<&str> = if globals.connect.is_empty() {
            DEFAULT_ENDPOINTS.to_vec()
        } else {
            globals.connect.iter().map(String::as_str).collect()
        };
        let json = json::to_string(&Value::from(endpoints));
        set(&mut config, "connect/endpoints", &json).map_err(|why| {
            Error::Usage(format!("--connect {}: {why}", globals.connect.join(",")))
        })?;
    }
    let several = globals.connect.len() > 1;
    let quiet = [
        ("mode", if several { "\"peer\"" } else { "\"client\"" }),
        ("scouting/multicast/enabled", "false"),
        // One endpoint is tried once, at once. Of several each is tried by itself in the background, so
        // that a robot that is out of range holds nobody up.
        ("connect/timeout_ms", if several { "-1" } else { "0" }),
        ("connect/exit_on_failure", "false"),
    ];
    for (key, value) in quiet {
        if is_unset(&config, key) {
            set(&mut config, key, value)
                .map_err(|why| Error::Usage(format!("Zenoh refuses {key}: {why}")))?;
        }
    }
    if several && globals.zenoh_config.is_none() {
        // A peer for the length of one command neither listens nor makes friends.
        let patience = globals.timeout.min(FLEET_PATIENCE).as_millis().to_string();
        for (key, value) in [
            ("listen/endpoints", "[]"),
            ("scouting/gossip/enabled", "false"),
            ("scouting/delay", patience.as_str()),
        ] {
            set(&mut config, key, value)
                .map_err(|why| Error::Usage(format!("Zenoh refuses {key}: {why}")))?;
        }
    }
    Ok(config)
}

/// Zenoh's own file, or why that is none.
fn zenoh_file(file: &Path) -> Result<Config> {
    let refused = |why: &str| {
        Error::input(file, format!("{why} (--zenoh-config: a file of Zenoh's, in JSON5 or YAML)"))
    };
    match std::fs::metadata(file) {
        Ok(found) if found.is_dir() => return Err(refused("is a folder")),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return Err(refused("there is no such file"));
        }
        _ => {}
    }
    Config::from_file(file).map_err(|why| refused(&plain(&why)))
}

fn set(config: &mut Config, key: &str, value: &str) -> std::result::Result<(), String> {
    config.insert_json5(key, value).map_err(|why| plain(&why))
}

fn is_unset(config: &Config, key: &str) -> bool {
    config.get_json(key).is_ok_and(|json| json == "null")
}

fn has_endpoints(config: &Config) -> bool {
    config.get_json("connect/endpoints").is_ok_and(|json| !matches!(json.as_str(), "null" | "[]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn globals(line: &[&str]) -> Globals {
        let words = ["omir"].iter().chain(line).chain(&["status"]);
        crate::cli::Cli::try_parse_from(words).unwrap().globals
    }

    fn get(config: &Config, key: &str) -> String {
        config.get_json(key).unwrap()
    }

    #[test]
    fn by_default_a_client_without_scouting() {
        let config = configuration(&globals(&[])).unwrap();
        assert_eq!(get(&config, "mode"), "\"client\"");
        assert_eq!(get(&config, "scouting/multicast/enabled"), "false");
        assert_eq!(
            get(&config, "connect/endpoints"),
            r#"["tcp/127.0.0.1:7448","tcp/127.0.0.1:7447"]"#
        );
    }

    #[test]
    fn several_endpoints_are_all_connected() {
        let line = ["--connect", "tcp/a:1", "--connect", "tcp/b:2"];
        let config = configuration(&globals(&line)).unwrap();
        assert_eq!(get(&config, "mode"), "\"peer\"");
        assert_eq!(get(&config, "listen/endpoints"), "[]");
        assert_eq!(get(&config, "connect/endpoints"), r#"["tcp/a:1","tcp/b:2"]"#);
    }

    #[test]
    fn a_zenoh_file_keeps_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zenoh.json5");
        std::fs::write(&file, "{ mode: 'peer', connect: { endpoints: ['tcp/c:3'] }, }").unwrap();
        let path = file.to_str().unwrap();
        let config = configuration(&globals(&["--zenoh-config", path])).unwrap();
        assert_eq!(get(&config, "mode"), "\"peer\"");
        assert_eq!(get(&config, "connect/endpoints"), r#"["tcp/c:3"]"#);
        let line = ["--zenoh-config", path, "--connect", "tcp/d:4"];
        let config = configuration(&globals(&line)).unwrap();
        assert_eq!(get(&config, "connect/endpoints"), r#"["tcp/d:4"]"#);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = configuration(&globals(&["--zenoh-config", "/no/such"])).unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
    }

    #[test]
    fn nothing_there_is_said_at_once() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp/{}", free.local_addr().unwrap());
        drop(free);
        let error = Client::open(&globals(&["--connect", &endpoint])).err().unwrap();
        assert_eq!(error.exit_code(), crate::error::UNREACHABLE);
        assert!(error.to_string().contains(&endpoint), "{error}");
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_the_bound() {
        assert!(check_sizes("omir/r1/recall", &"a".repeat(65_536)).is_ok());
        for (key, parameters, bound) in
            [("k", "a".repeat(65_537), "65536"), (&"k".repeat(65_536), String::new(), "65535")]
        {
            let error = check_sizes(key, &parameters).unwrap_err();
            assert_eq!(error.exit_code(), crate::error::USAGE);
            assert!(error.to_string().contains(bound), "{error}");
        }
    }

    #[test]
    fn an_older_daemon_means_the_map() {
        let read = |text: &[u8]| json::from_slice(text, &Limits::default()).unwrap();
        assert_eq!(fixed_frame(&read(br#"{"robot":"r1","fixedFrame":"odom"}"#)), "odom");
        assert_eq!(fixed_frame(&read(br#"{"robot":"r1"}"#)), "map");
    }

    #[test]
    fn refusals_are_read() {
        let body = br#"{"code":"NOT_FOUND","message":"gone","path":null}"#;
        let (robot, error) = error_object(body).unwrap();
        assert_eq!(robot, None);
        assert_eq!(error.code(), "NOT_FOUND");
        assert_eq!(error.path(), None);
        assert!(error_object(b"Timeout").is_none());
    }
}
