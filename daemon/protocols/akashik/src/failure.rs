//! Error objects of the draft, with codes of our own where it has none: `docs/akashik.md`, "Errors".

use std::time::Duration;

use omir_core::code::Code;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_engine::Error;
use omird_router::{Denial, Denied, Refusal, Response, worded_for};

/// A row of the table of codes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldCode {
    /// The name on the wire.
    pub(crate) name: &'static str,
    /// The status over HTTP.
    pub(crate) status: u16,
    /// The caller may correct it or try again.
    pub(crate) is_recoverable: bool,
    /// The way on, if there is one.
    pub(crate) action: &'static str,
    /// The same for the audit line.
    pub(crate) kind: Code,
}

macro_rules! codes {
    ($($name:ident $status:literal $recoverable:literal $kind:ident $action:literal;)+) => {
        $(#[allow(dead_code, reason = "the draft has codes for what does not happen here")]
        pub(crate) static $name: FieldCode = FieldCode {
            name: stringify!($name),
            status: $status,
            is_recoverable: $recoverable,
            action: $action,
            kind: Code::$kind,
        };)+

        /// All codes: those of the draft, and ours.
        #[cfg(test)]
        pub(crate) static CODES: &[&FieldCode] = &[$(&$name),+];
    };
}

codes! {
    MISSING_INTENT 400 true InvalidQuery "add intent.purpose";
    MISSING_CONFIDENCE 400 true InvalidQuery "add confidence.score and confidence.reasoning";
    INVALID_CONFIDENCE 400 true InvalidQuery "give a score from 0.0 to 1.0";
    INVALID_TYPE 400 true InvalidQuery "use one of the types of the draft";
    AGENT_NOT_REGISTERED 404 true NotFound "REGISTER first";
    AGENT_ID_TAKEN 409 true Conflict "choose another id";
    CONFLICT_NOT_FOUND 404 false NotFound "";
    UNIT_NOT_FOUND 404 false NotFound "";
    INVALID_TRANSITION 409 true Conflict "read the state first";
    UNSUPPORTED_OPERATION 400 false InvalidQuery "";
    ENRICHMENT_FAILED 503 true Busy "the unit is kept, and enriched later";
    DETECTION_TIMEOUT 503 true Busy "DETECT again later";
    MERGE_FAILED 409 true Conflict "use another strategy";
    REPLAY_TOO_LARGE 413 true TooLarge "ask for depth summary";
    STORAGE_FULL 507 false StorageFull "COMPACT, or make room on the card";
    EPOCH_OVERFLOW 409 false Conflict "send an epoch that the field has answered";
    INTERNAL_ERROR 500 false Internal "";
    INVALID_ENVELOPE 400 true InvalidQuery "send the envelope of version 0.1.0 and nothing beside it";
    INVALID_PAYLOAD 400 true InvalidQuery "correct the member that the message names";
    UNAUTHENTICATED 401 true Unauthenticated "send a token of `omir token add`";
    INSUFFICIENT_AUTHORITY 403 false Unauthorized "ask an agent of higher authority";
    UNAUTHORIZED 403 false Unauthorized "";
    TASK_NOT_FOUND 404 false NotFound "";
    SESSION_NOT_FOUND 404 false NotFound "";
    HANDOFF_NOT_FOUND 404 false NotFound "";
    SUBSCRIPTION_NOT_FOUND 404 false NotFound "";
    RATE_LIMITED 429 true RateLimited "ask again later";
    TOO_LARGE 413 true TooLarge "send less";
    BUSY 503 true Busy "ask again in a moment";
}

/// A request that is not done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: &'static FieldCode,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

/// Quotes the beginning of what a client wrote: a refusal is not to be as long as what it refuses.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 64;
    let beginning: String = text.chars().take(MOST).collect();
    if beginning.len() < text.len() { format!("{beginning:?}…") } else { format!("{text:?}") }
}

impl Failure {
    /// Returns a failure of a code.
    pub(crate) fn new(code: &'static FieldCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }

    /// A member of the payload is wrong; `path` is its JSON Pointer.
    pub(crate) fn payload(path: &str, message: impl AsRef<str>) -> Self {
        Self::new(&INVALID_PAYLOAD, format!("payload{path}: {}", message.as_ref()))
    }

    /// The caller's authority is too low.
    pub(crate) fn authority(what: &str, needed: u32, has: u32) -> Self {
        let message = format!("{what} needs authority {needed}, and the caller has {has}");
        Self::new(&INSUFFICIENT_AUTHORITY, message)
    }

    /// Nothing of that name, or nothing that the caller may see: the answer does not tell which.
    pub(crate) fn unknown(code: &'static FieldCode, what: &str, id: &str) -> Self {
        Self::new(code, format!("there is no {what} {id:?}"))
    }

    /// A state forbids it.
    pub(crate) fn transition(what: &str, id: &str, state: &str, to: &str) -> Self {
        let message = format!("{what} {id:?} is {state}, and cannot be {to}");
        Self::new(&INVALID_TRANSITION, message)
    }

    /// The store or a state is not as it should be.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(&INTERNAL_ERROR, message)
    }

    /// Returns true if the store has refused a change: nothing of it was written, for certain.
    pub(crate) fn is_refusal(&self) -> bool {
        [&BUSY, &STORAGE_FULL, &TOO_LARGE, &UNAUTHORIZED].contains(&self.code)
    }

    /// Returns the Error object.
    pub(crate) fn to_value(&self, operation: Option<&str>) -> Value {
        let mut map = Map::new();
        map.insert("code", self.code.name);
        map.insert("message", self.message.as_str());
        map.insert("operation", operation);
        map.insert("recoverable", self.code.is_recoverable);
        map.insert("suggested_action", Some(self.code.action).filter(|text| !text.is_empty()));
        Value::Object(map)
    }

    /// Returns the answer of a transport.
    pub(crate) fn to_answer(&self, operation: Option<&str>) -> Response {
        let answer = Response::new(self.code.status, json::to_string(&self.to_value(operation)));
        Response { retry_after: self.retry_after, ..answer }
    }

    /// Words a refusal of the router.
    pub(crate) fn of_refusal(refusal: Refusal, method: &omird_router::Method) -> Self {
        let error = worded_for(refusal, method);
        let code = match refusal {
            Refusal::Unauthenticated(_) => &UNAUTHENTICATED,
            Refusal::TooLarge { .. } => &TOO_LARGE,
            Refusal::TooOften { .. } => &RATE_LIMITED,
            Refusal::ImportUnderWay => &BUSY,
            _ => &UNAUTHORIZED,
        };
        let failure = Self::new(code, error.message);
        match refusal {
            Refusal::TooOften { retry_after } => Self { retry_after: Some(retry_after), ..failure },
            _ => failure,
        }
    }

    /// Words a request that is not worked on.
    pub(crate) fn of_denied(denied: &Denied) -> (Self, u16) {
        match &denied.why {
            Denial::Refusal(refusal) => {
                let failure = Self::of_refusal(*refusal, denied.method);
                let status = failure.code.status;
                (failure, status)
            }
            Denial::Transport { status, error } => {
                let code = match (status, error.code) {
                    (413, _) => &TOO_LARGE,
                    (400 | 415, _) => &INVALID_ENVELOPE,
                    (503, _) => &BUSY,
                    _ => Self::from(error.clone()).code,
                };
                (Self::new(code, error.message.clone()), *status)
            }
        }
    }
}

/// Of the store. A resource or query that it cannot take was made here, so that is our fault.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.code {
            Code::StorageFull => &STORAGE_FULL,
            Code::Busy => &BUSY,
            Code::TooLarge => &TOO_LARGE,
            Code::Unauthorized => &UNAUTHORIZED,
            _ => &INTERNAL_ERROR,
        };
        let retry_after = Response::retry_after(error.code);
        Self { retry_after, ..Self::new(code, error.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 17 of the draft, with its column "recoverable".
    #[test]
    fn a_refusal_quotes_the_beginning_of_a_text() {
        assert_eq!(quoted("a\n"), "\"a\\n\"");
        let long = quoted(&"é".repeat(100_000));
        assert_eq!(long, format!("\"{}\"…", "é".repeat(64)));
    }

    #[test]
    fn the_codes_of_the_draft() {
        let of_draft: Vec<(&str, bool)> =
            CODES.iter().take(17).map(|code| (code.name, code.is_recoverable)).collect();
        assert_eq!(of_draft[0], ("MISSING_INTENT", true));
        assert_eq!(of_draft[16], ("INTERNAL_ERROR", false));
        let lost: Vec<&str> = of_draft
            .iter()
            .filter(|(_, recoverable)| !recoverable)
            .map(|(name, _)| *name)
            .collect();
        let expected = [
            "CONFLICT_NOT_FOUND",
            "UNIT_NOT_FOUND",
            "UNSUPPORTED_OPERATION",
            "STORAGE_FULL",
            "EPOCH_OVERFLOW",
            "INTERNAL_ERROR",
        ];
        assert_eq!(lost, expected);
        assert!(CODES.iter().all(|code| code.status >= 400));
    }

    #[test]
    fn an_error_object_has_the_members_of_the_draft() {
        let value = Failure::payload("/content", "is empty").to_value(Some("RECORD"));
        let expected = r#"{"code":"INVALID_PAYLOAD","message":"payload/content: is empty","operation":"RECORD","recoverable":true,"suggested_action":"correct the member that the message names"}"#;
        assert_eq!(json::to_string(&value), expected);
    }
}
