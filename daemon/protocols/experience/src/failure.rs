//! Refusals in words: in the form of the contract for the statuses that it names, else in omird's own.

use omir_core::value::Map;
use omird_engine::Error;
use omird_router::{Denial, Denied, Method, Refusal, Response, error_value, worded_for};

use crate::answers::{Measured, json, no_hints, rejected};
use crate::check::Fault;

/// Returns an error in omird's own form: one that the schemas of the contract have no word for.
pub(crate) fn plain(error: &Error) -> Response {
    worded(Response::status_of(error.code), error)
}

fn worded(status: u16, error: &Error) -> Response {
    let retry_after = Response::retry_after(error.code);
    Response { retry_after, ..json(status, &error_value(error)) }
}

/// Returns the answer to a request that is not worked on: in the form of the contract for the statuses that it names, else in
/// omird's own.
pub(crate) fn denied(denied: &Denied) -> Response {
    match &denied.why {
        Denial::Refusal(refusal) => {
            let error = worded_for(*refusal, denied.method);
            let answer = refused(denied.method, Response::status_of(refusal.code()), &error);
            match refusal {
                Refusal::TooOften { retry_after } => {
                    Response { retry_after: Some(*retry_after), ..answer }
                }
                _ => answer,
            }
        }
        Denial::Transport { status, error } => refused(denied.method, *status, error),
    }
}

fn refused(method: &Method, status: u16, error: &Error) -> Response {
    let (is_ours, message) = (status == 500, &error.message);
    match (method.name, status) {
        ("record", 400 | 500) => {
            let code = if is_ours { "STORAGE_ERROR" } else { "INVALID_RECORD" };
            let fault = Fault::new(error.path.clone(), error.message.clone());
            rejected(status, "", "", code, message, Some(details(&fault)))
        }
        ("hints", 400 | 500) => {
            let code = if is_ours { "SYSTEM_ERROR" } else { "INVALID_QUERY" };
            no_hints(status, "", code, message, &[], Measured::default())
        }
        (_, 405) => named(status, error, "METHOD_NOT_ALLOWED"),
        (_, 415) => named(status, error, "UNSUPPORTED_MEDIA_TYPE"),
        _ => worded(status, error),
    }
}

/// Returns an error in omird's own form, with a code that only the transport needs.
fn named(status: u16, error: &Error, code: &str) -> Response {
    let mut body = error_value(error);
    if let Some(map) = body.as_object_mut() {
        map.insert("code", code);
    }
    json(status, &body)
}

/// Returns the place and the reason of a fault, as details of an error.
pub(crate) fn details(fault: &Fault) -> Map {
    [("path", fault.path.as_str()), ("reason", fault.reason.as_str())].into_iter().collect()
}

/// Returns a sentence that names the place of a fault.
pub(crate) fn sentence(fault: &Fault) -> String {
    match fault.path.as_str() {
        "" => format!("the message: {}", fault.reason),
        path => format!("{path}: {}", fault.reason),
    }
}
