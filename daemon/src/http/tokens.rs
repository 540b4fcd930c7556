//! `/access/v1/tokens`: the protocol of tokens over HTTP, as `omir token` asks it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};

use super::Context;
use super::answer::{Refused, content_type};
use super::caller::{Asker, identify};
use crate::engine::{Code, Encoding, Error, RequestLimits, decode};
use crate::protocols::Protocols;
use crate::protocols::access::{ADD, LIST, REVOKE};
use crate::router::{Admitted, Caller, Incoming, Method};

/// Where the tokens are.
const PATH: &str = "/access/v1/tokens";
/// Bytes of what is asked: more than any token grants.
const MOST_BYTES: usize = 64 << 10;
/// Longest time that it may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn list(
    State(context): State<Arc<Context>>,
    Asker(caller): Asker,
) -> Result<Response, Refused> {
    ask(&context, &caller, &LIST, 0, |protocols, admitted| protocols.tokens.list(admitted)).await
}

pub(super) async fn add(
    State(context): State<Arc<Context>>,
    request: Request<Body>,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let caller = identify(&context, &parts)?;
    // Before anything is read: whoever may not ask costs no memory.
    let router = &context.protocols.router;
    if let Err(refusal) = router.check(&caller, &ADD, Incoming::default()) {
        router.refuse(&caller, &ADD, 0, refusal.code());
        return Err(refusal.into());
    }
    let encoding = encoding(&parts)?;
    let late = || {
        let message = "the body of the request comes too slowly, and is not waited for";
        Refused::new(StatusCode::REQUEST_TIMEOUT, Code::InvalidQuery, message)
    };
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, MOST_BYTES)).await;
    let bytes = read.map_err(|_| late())?.map_err(|_| {
        let message = format!("the body ends early, or has more than {MOST_BYTES} bytes");
        Refused::from(Error::new(Code::TooLarge, message))
    })?;
    let limits = RequestLimits { max_payload_bytes: MOST_BYTES, ..RequestLimits::default() };
    let asked = decode(&bytes, encoding, &limits, Code::InvalidQuery)?;
    let added = ask(&context, &caller, &ADD, bytes.len(), move |protocols, admitted| {
        protocols.tokens.add(admitted, &asked)
    });
    let mut response = added.await?;
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(LOCATION, hyper::header::HeaderValue::from_static(PATH));
    Ok(response)
}

pub(super) async fn revoke(
    State(context): State<Arc<Context>>,
    name: Result<Path<String>, PathRejection>,
    Asker(caller): Asker,
) -> Result<Response, Refused> {
    // A name that is no text is no token's.
    let name = name.map(|Path(name)| name).unwrap_or_default();
    ask(&context, &caller, &REVOKE, 0, move |protocols, admitted| {
        protocols.tokens.revoke(admitted, &name)
    })
    .await
}

/// Has the protocol answer, on a thread that may wait for the disk.
async fn ask(
    context: &Arc<Context>,
    caller: &Caller,
    method: &'static Method,
    bytes: usize,
    answer: impl FnOnce(&Protocols, Admitted) -> Result<omir_core::value::Value, Error> + Send + 'static,
) -> Result<Response, Refused> {
    let incoming = Incoming { bytes, ..Incoming::default() };
    let admitted = context.protocols.router.admit(caller, method, incoming)?;
    let protocols = context.protocols.clone();
    let answered = tokio::task::spawn_blocking(move || answer(&protocols, admitted)).await;
    let failed = |_| Error::new(Code::Internal, "a bug ended this request; the log has it");
    let bytes = Encoding::Json.encode(&answered.map_err(failed)??);
    Ok(([(CONTENT_TYPE, content_type(Encoding::Json))], bytes).into_response())
}

/// Returns the encoding that the request states. A form of another site's page cannot state one of these.
fn encoding(parts: &Parts) -> Result<Encoding, Refused> {
    let stated = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = stated.unwrap_or_default().split(';').next().unwrap_or_default();
    match essence.trim().to_ascii_lowercase().as_str() {
        "application/json" => Ok(Encoding::Json),
        "application/cbor" => Ok(Encoding::Cbor),
        _ => {
            let message = "Content-Type must be application/json or application/cbor";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(Refused::new(status, Code::InvalidQuery, message))
        }
    }
}
