//! Refusals as HTTP sends them: a status, `{"code", "message", "path"}`, and `Retry-After` where asking again may help.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

use crate::engine::{Code, Encoding, Error};
use crate::router::{self, Refusal, error_value, worded};

/// A request that is refused. [`super::request`] writes the body, in the encoding that the client takes.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The status.
    pub(crate) status: StatusCode,
    /// The error object.
    pub(crate) error: Error,
    /// The time until asking again may help.
    pub(crate) retry_after: Option<Duration>,
}

impl Refused {
    /// Returns a refusal of HTTP itself, of a status that no code of the memory has.
    pub(crate) fn new(status: StatusCode, code: Code, message: impl Into<String>) -> Self {
        Self { status, error: Error::new(code, message), retry_after: None }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let retry_after = router::Response::retry_after(error.code);
        Self { status: status(error.code), error, retry_after }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let mut refused = Self::from(worded(refusal));
        if let Refusal::TooOften { retry_after } = refusal {
            refused.retry_after = Some(retry_after);
        }
        refused
    }
}

/// Returns the status of a code.
pub(crate) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(router::Response::status_of(code))
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(after) = self.retry_after {
            headers.insert(RETRY_AFTER, in_seconds(after));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the body of a refusal, unless only its head is asked for.
pub(super) fn rendered(mut response: Response, encoding: Encoding, is_head: bool) -> Response {
    let Some(refused) = response.extensions_mut().remove::<Refused>() else { return response };
    let bytes = encoding.encode(&error_value(&refused.error));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type(encoding));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    if !is_head {
        *response.body_mut() = Body::from(bytes);
    }
    response
}

/// Returns whole seconds, rounded up: a client that waits so long is heard.
pub(super) fn in_seconds(after: Duration) -> HeaderValue {
    let seconds = u64::try_from(after.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
    HeaderValue::from(seconds.max(1))
}

/// Returns the media type of an encoding.
pub(crate) fn content_type(encoding: Encoding) -> HeaderValue {
    HeaderValue::from_static(match encoding {
        Encoding::Json => "application/json",
        Encoding::Cbor => "application/cbor",
    })
}
