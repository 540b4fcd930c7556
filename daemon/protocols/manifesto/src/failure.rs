//! Refusals: `{"code", "message", "path"}`, with the codes of `docs/manifesto.md`.

use std::time::Duration;

use omir_core::manifesto::{Fault, WorldFault};
use omir_core::value::Value;
use omird_engine::{Code, Error};
use omird_router::{Denial, Denied, Refusal, Response, error_value, worded_for};

/// A request that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// The name on the wire.
    pub(crate) code: &'static str,
    /// The same for the audit line.
    pub(crate) kind: Code,
    pub(crate) message: String,
    /// A JSON Pointer into the request, where one applies.
    pub(crate) path: String,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    fn new(status: u16, code: &'static str, kind: Code, message: impl Into<String>) -> Self {
        let (message, path) = (message.into(), String::new());
        Self { status, code, kind, message, path, retry_after: None }
    }

    pub(crate) fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        let failure = Self::new(400, "INVALID_REQUEST", Code::InvalidQuery, message);
        Self { path: path.into(), ..failure }
    }

    /// The first of some faults, below `path`.
    pub(crate) fn of_faults(path: &str, faults: &[Fault]) -> Self {
        let Some(first) = faults.first() else { return Self::invalid(path, "it is not valid") };
        let more = match faults.len() {
            1 => String::new(),
            many => format!(" (and {} more)", many - 1),
        };
        Self::invalid(format!("{path}{}", first.pointer), format!("{}{more}", first.text))
    }

    pub(crate) fn of_world(path: &str, fault: &WorldFault) -> Self {
        let failure = Self::new(400, "INVALID_WORLD", Code::InvalidResource, &fault.message);
        Self { path: format!("{path}{}", fault.pointer), ..failure }
    }

    pub(crate) fn unauthorized(path: &str, message: impl Into<String>) -> Self {
        let failure = Self::new(403, "UNAUTHORIZED", Code::Unauthorized, message);
        Self { path: path.into(), ..failure }
    }

    pub(crate) fn conflict(path: &str, message: impl Into<String>) -> Self {
        let failure = Self::new(409, "CONFLICT", Code::Conflict, message);
        Self { path: path.into(), ..failure }
    }

    pub(crate) fn too_large(path: &str, message: impl Into<String>) -> Self {
        let failure = Self::new(413, "TOO_LARGE", Code::TooLarge, message);
        Self { path: path.into(), ..failure }
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        let failure = Self::new(503, "BUSY", Code::Busy, message);
        Self { retry_after: Response::retry_after(Code::Busy), ..failure }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "INTERNAL", Code::Internal, message)
    }

    pub(crate) fn to_answer(&self) -> Response {
        let mut body = error_value(&Error::at(self.kind, &self.path, &self.message));
        if let Some(map) = body.as_object_mut() {
            map.insert("code", Value::from(self.code));
        }
        let answer = Response::new(self.status, omir_core::json::to_string(&body));
        Response { retry_after: self.retry_after, ..answer }
    }
}

/// Of the store: the message names that layer.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.code {
            Code::InvalidQuery | Code::InvalidResource => "INVALID_REQUEST",
            code => code.as_str(),
        };
        let retry_after = Response::retry_after(error.code);
        let status = Response::status_of(error.code);
        let failure = Self::new(status, code, error.code, error.message);
        Self { path: error.path, retry_after, ..failure }
    }
}

/// Words a request that is not worked on.
pub(crate) fn denied(denied: &Denied) -> Failure {
    match &denied.why {
        Denial::Refusal(refusal) => {
            let failure = Failure::from(worded_for(*refusal, denied.method));
            match refusal {
                Refusal::TooOften { retry_after } => {
                    Failure { retry_after: Some(*retry_after), ..failure }
                }
                _ => failure,
            }
        }
        Denial::Transport { status, error } => {
            let failure = Failure::from(error.clone());
            let code = match status {
                405 => "METHOD_NOT_ALLOWED",
                415 => "UNSUPPORTED_MEDIA_TYPE",
                _ => failure.code,
            };
            Failure { status: *status, code, ..failure }
        }
    }
}
