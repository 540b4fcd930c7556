//! `/access/v1/tokens`: the protocol of tokens over HTTP, as `omir token` asks it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::{Request, StatusCode};

use super::body::{self, Most, UnreadRequest};
use super::caller::ask_who;
use super::refused::{Refused, content_type};
use super::{Context, negotiate};
use crate::engine::{Code, Encoding, Error, RequestLimits, decode};
use crate::protocols::Protocols;
use crate::protocols::access::{ADD, LIST, REVOKE};
use crate::router::{Admitted, Caller, Incoming, Method};

/// Where the tokens are.
const PATH: &str = "/access/v1/tokens";
/// Bytes of what is asked: more than any token grants.
const MOST: Most = Most { bytes: 64 << 10, limit: None };

pub(super) async fn list(
    State(context): State<Arc<Context>>,
    request: Request<Body>,
) -> Result<Response, Refused> {
    let caller = ask_who(&context, &LIST, &request.into_parts().0, None)?;
    ask(&context, &caller, &LIST, 0, |protocols, admitted| protocols.tokens.list(admitted)).await
}

pub(super) async fn add(
    State(context): State<Arc<Context>>,
    request: Request<Body>,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let caller = ask_who(&context, &ADD, &parts, None)?;
    let asked = UnreadRequest { caller: &caller, method: &ADD, named: None };
    let body::Read { bytes, room: _room } =
        asked.read(&context, &parts.headers, body, MOST).await?;
    let refuse = |code| asked.refuse(&context, bytes.len(), code);
    let encoding = negotiate::content(&parts.headers);
    let encoding = encoding.inspect_err(|refused| refuse(refused.error.code))?;
    let limits = RequestLimits { max_payload_bytes: MOST.bytes, ..RequestLimits::default() };
    let wanted = decode(&bytes, encoding, &limits, Code::InvalidQuery);
    let wanted = wanted.inspect_err(|error| refuse(error.code))?;
    let added = ask(&context, &caller, &ADD, bytes.len(), move |protocols, admitted| {
        protocols.tokens.add(admitted, &wanted)
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
    let caller = ask_who(&context, &REVOKE, &request.into_parts().0, None)?;
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
    let protocols = context.protocols.clone();
    let slot = context.capacity.slot_at_the_disk().inspect_err(|error| {
        protocols.router.refuse(caller, method, bytes, error.code);
    })?;
    let admitted = protocols.router.admit(caller, method, incoming)?;
    let answered = slot.work(move || answer(&protocols, admitted)).await??;
    let bytes = Encoding::Json.encode(&answered);
    Ok(([(CONTENT_TYPE, content_type(Encoding::Json))], bytes).into_response())
}
