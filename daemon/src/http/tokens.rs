//! `/access/v1/tokens`: the protocol of tokens over HTTP, as `omir token` asks it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::{Request, StatusCode};

use super::{Context, negotiate};
use super::answer::{Refused, content_type};
use super::body;
use super::caller::ask_who;
use crate::engine::{Code, Encoding, Error, RequestLimits, decode};
use crate::protocols::Protocols;
use crate::protocols::access::{ADD, LIST, REVOKE};
use crate::router::{Admitted, Caller, Incoming, Method};

/// Where the tokens are.
const PATH: &str = "/access/v1/tokens";
/// Bytes of what is asked: more than any token grants.
const MOST_BYTES: usize = 64 << 10;

pub(super) async fn list(
    State(context): State<Arc<Context>>,
    request: Request<Body>,
) -> Result<Response, Refused> {
    let caller = ask_who(&context, &LIST, &request.into_parts().0)?;
    ask(&context, &caller, &LIST, 0, |protocols, admitted| protocols.tokens.list(admitted)).await
}

pub(super) async fn add(
    State(context): State<Arc<Context>>,
    request: Request<Body>,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let caller = ask_who(&context, &ADD, &parts)?;
    // Before anything is read: whoever may not ask costs no memory.
    let router = &context.protocols.router;
    if let Err(refusal) = router.check(&caller, &ADD, Incoming::default()) {
        router.refuse(&caller, &ADD, 0, refusal.code());
        return Err(refusal.into());
    }
    let encoding = negotiate::content(&parts.headers)?;
    let body::Read { bytes, room: _room } =
        body::read(&context.work, &parts.headers, body, MOST_BYTES)
            .await
            .map_err(|not_read| not_read.refused(MOST_BYTES))?;
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
    request: Request<Body>,
) -> Result<Response, Refused> {
    let caller = ask_who(&context, &REVOKE, &request.into_parts().0)?;
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
