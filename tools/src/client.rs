//! The Zenoh session: finding daemons and asking them.
//!
//! The tool is a Zenoh client without scouting. It connects to one endpoint, the first that answers;
//! given several `--connect` it becomes a peer of all of them, so that one question reaches a fleet.
//! Every call blocks until its answer, its timeout, or the loss of the daemon.

mod configuration;
mod fleet;
mod opening;
mod reply;
mod token;

use std::sync::mpsc;
use std::time::Duration;

use omir_core::code::Code;
use omir_core::value::Value;
use omird::engine::DEFAULT_FRAME;
use omird::zenoh::{MOST_PARAMETERS, plain};
use zenoh::bytes::Encoding;
use zenoh::handlers::FifoChannelHandler;
use zenoh::query::{ConsolidationMode, QueryTarget, Reply as ZenohReply, Selector};
use zenoh::{Session, Wait as _};

use self::configuration::configuration;
pub use self::fleet::FleetReplies;
use self::opening::{open_within, readable_endpoints, unreachable_at};
pub use self::reply::Reply;
use self::reply::error_object;
pub use self::token::Token;
use crate::cli::Globals;
use crate::error::{Error, Result};
use crate::output;
use crate::selector::Parameters;

/// Longest time to say goodbye.
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

/// An open session.
pub struct Client {
    /// Taken only when the client goes out of scope.
    session: Option<Session>,
    prefix: String,
    timeout: Duration,
    endpoints: String,
    token: Option<Token>,
}

impl Client {
    /// Connects, and asks with the token that these options or the environment name.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing answers at the endpoints, [`Error::Usage`] and
    /// [`Error::Input`] for endpoints and files that Zenoh does not understand, and for what is no token.
    pub fn open(globals: &Globals) -> Result<Self> {
        Self::open_as(globals, Token::given(globals)?)
    }

    /// Connects, and asks with this token, or without one.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn open_as(globals: &Globals, token: Option<Token>) -> Result<Self> {
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
            token,
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
                // A caller that has enough does not ask for the rest.
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
            .attachment(self.token.as_ref().map(Token::bearer))
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
                attachment: sample
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
                    |(robot, error)| (robot, self.advised(error)),
                ))
            }
        }
    }

    /// Adds where a token comes from, where the daemon needs another one.
    fn advised(&self, error: Error) -> Error {
        match error {
            Error::Refused { code, message, path } if code == Code::Unauthenticated.as_str() => {
                let advice = token::advice(self.token.as_ref());
                Error::Refused { code, message: format!("{message}. {advice}"), path }
            }
            other => other,
        }
    }

    /// Returns true if questions go with a token.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.is_some()
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use omir_core::decode::Limits;
    use omir_core::json;

    pub(super) fn globals(line: &[&str]) -> Globals {
        let words = ["omir"].iter().chain(line).chain(&["status"]);
        crate::cli::Cli::try_parse_from(words).unwrap().globals
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
}
