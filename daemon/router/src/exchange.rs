//! Exchanges: protocols whose methods take one message and give one answer, so that any transport may carry them.
//!
//! A transport knows from its own table which method a path or key means. It asks [`Router::admit`](super::Router::admit),
//! reads the message, and hands both to [`Exchange::answer`]. A request that does not get so far is worded by
//! [`Exchange::refuse`]: each protocol has its own form of an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::code::Code;
use omir_core::validate::closest;
use omir_core::value::Map;
use omird_engine::Error;

use super::admitted::Admitted;
use super::method::{Method, Protocol};
use super::rate::RateUsage;
use super::refusal::Refusal;

/// Takes the answer, on any thread. Dropped without one, the client is told of a bug.
pub type Reply = Box<dyn FnOnce(Response) + Send>;

/// A protocol of one message and one answer each.
pub trait Exchange: Send + Sync {
    /// Returns what transports and documents know of it.
    fn description(&self) -> &'static Description;

    /// Works on a request, on a thread that may wait. What waits for the disk replies from the writer's thread, so that many
    /// changes share one flush.
    fn answer(&self, admitted: Admitted, message: Message, reply: Reply);

    /// Words a request that is not worked on. Its audit line is written.
    fn refuse(&self, denied: &Denied) -> Response;

    /// Has `listener` hear of each announcement of the protocol from now on. Most protocols make none.
    fn listen(&self, listener: Listener) {
        drop(listener);
    }

    /// Returns what it counts beside requests, for those who measure the daemon.
    fn counts(&self) -> Vec<Count> {
        Vec::new()
    }
}

/// Hears of announcements, on threads of the protocol. It passes them on and does not wait.
pub type Listener = Arc<dyn Fn(&Announcement) + Send + Sync>;

/// A message that a protocol sends unasked, to all listeners under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The key below that of the robot. No part of it is a wildcard.
    pub key: String,
    /// JSON.
    pub body: Vec<u8>,
    /// JSON for a place where every way in needs a token. Zenoh does not identify subscribers, so it refers to a memory and
    /// says nothing of it.
    pub reference: Vec<u8>,
}

/// A count since the start of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The name, in words joined by `_`, beginning with that of the protocol.
    pub name: &'static str,
    /// The meaning, for a person.
    pub help: &'static str,
    /// The count.
    pub count: u64,
}

/// The facts about an [`Exchange`] that do not change.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Its table.
    pub protocol: &'static Protocol,
    /// One sentence for the OpenAPI document.
    pub about: &'static str,
    /// Returns the JSON Schemas (2020-12) of its messages and answers, by name. The argument is the place at which they lie
    /// in the document: `#/components/schemas/`.
    pub schemas: fn(&str) -> Map,
    /// Returns the statuses that a method answers with, and the name of the schema of each: one of its own, [`ERROR`], or
    /// nothing.
    pub answers: fn(&'static Method) -> &'static [(u16, &'static str)],
}

/// The name of the schema of `{"code", "message", "path"}`, which the document has anyway.
pub const ERROR: &str = "Error";

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Message {
    /// The payload; JSON, unless it is empty.
    pub body: Vec<u8>,
    /// The names in the path, and the parameters of the query or selector, decoded. No name is there twice.
    pub parameters: Vec<(String, String)>,
    /// The name that the client gave the request outside of its payload, as `X-Request-ID` does.
    pub request_id: Option<String>,
    /// The name of the conversation that the request is part of, as `X-Trace-ID` has it.
    pub trace_id: Option<String>,
    /// The moment at which it began to come in.
    pub began: Instant,
}

impl Message {
    /// Returns the parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Checks that the method knows each parameter. A transport asks before the protocol does.
    ///
    /// # Errors
    /// `INVALID_QUERY`: which parameter is none, the nearest one, and those there are.
    pub fn check_parameters(method: &Method, parameters: &[(String, String)]) -> Result<(), Error> {
        let is_unknown =
            |(name, _): &&(String, String)| method.about.names().all(|known| known != name);
        let Some((name, _)) = parameters.iter().find(is_unknown) else { return Ok(()) };
        let known: Vec<&str> = method.about.names().collect();
        let near = closest(name, known.iter().copied());
        let near = near.map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name: String = name.chars().take(64).collect();
        let message = format!("{name:?} is no parameter here; {near}known: {known}");
        Err(Error::new(Code::InvalidQuery, message))
    }
}

/// A request that is not worked on.
#[derive(Debug, Clone)]
pub struct Denied {
    /// The method that was asked.
    pub method: &'static Method,
    /// The reason.
    pub why: Denial,
    /// As [`Message::request_id`].
    pub request_id: Option<String>,
    /// The rest of the caller's second rate, where it is known who asks and there is one.
    pub rate: Option<RateUsage>,
}

/// A reason not to work on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The router refuses.
    Refusal(Refusal),
    /// The transport does: the payload is too large, too slow or of another kind, or too much is under way.
    Transport {
        /// The status, as HTTP counts them.
        status: u16,
        /// The fault.
        error: Error,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status, as HTTP counts them. From 400 on it is an error wherever it goes.
    pub status: u16,
    /// JSON, or nothing.
    pub body: Vec<u8>,
    /// Headers of HTTP.
    pub headers: Vec<(&'static str, String)>,
    /// The time until asking again may help.
    pub retry_after: Option<Duration>,
}

impl Response {
    /// Returns the status of HTTP for a code: `docs/http.md`, "Errors". A protocol states no more than where its own differ.
    pub fn status_of(code: Code) -> u16 {
        match code {
            Code::InvalidResource | Code::InvalidQuery => 400,
            Code::Unauthenticated => 401,
            Code::Unauthorized => 403,
            Code::NotFound => 404,
            Code::Conflict => 409,
            Code::TooLarge => 413,
            Code::RateLimited => 429,
            Code::Busy => 503,
            Code::StorageFull => 507,
            // As docs/replies.md says of a code that is not known.
            _ => 500,
        }
    }

    /// The time until asking again may help, where nothing tells it better.
    pub const SOON: Duration = Duration::from_secs(1);

    /// Returns that time for a code that may pass.
    pub fn retry_after(code: Code) -> Option<Duration> {
        matches!(code, Code::Busy | Code::RateLimited).then_some(Self::SOON)
    }

    /// Returns an answer without anything beside it.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), headers: Vec::new(), retry_after: None }
    }

    /// Adds a header of HTTP.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns true if it is an error.
    pub fn is_error(&self) -> bool {
        self.status >= 400
    }
}
