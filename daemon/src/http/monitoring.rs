//! `/health/…`, `/metrics` and `/openapi.json`: for operators, outside all protocols of the memory.

use std::sync::{Arc, OnceLock};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use super::caller::ask_who;
use super::refused::{Refused, content_type};
use super::{Context, health, openapi};
use crate::engine::{Code, Encoding, Error};
use crate::metrics::MEDIA_TYPE;
use crate::router::{About, Effect, Incoming, Method, Payload, Scope};

const fn row(name: &'static str, scope: Scope) -> Method {
    let (effect, payload, about) = (Effect::Reads, Payload::None, About::NOTHING);
    Method {
        protocol: "http",
        name,
        effect,
        streams: false,
        payload,
        scope,
        rates: [None, None],
        about,
    }
}

/// `/metrics`: what the memory is like is read.
pub(super) static METRICS: Method = row("metrics", Scope::READ);
/// `/openapi.json`: for every caller with a token.
pub(super) static DOCUMENT: Method = row("openapi", Scope::OPEN);
/// `/mcp`: for every caller with a token. Each tool is a method of its own.
pub(super) static MCP: Method = row("mcp", Scope::OPEN);

pub(super) async fn live() -> Response {
    health::live()
}

pub(super) async fn ready(State(context): State<Arc<Context>>) -> Response {
    health::ready(&context.health).await
}

pub(super) async fn metrics(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, _) = request.into_parts();
    let caller = ask_who(&context, &METRICS, &parts, None)?;
    let admitted = context.protocols.router.admit(&caller, &METRICS, Incoming::default())?;
    let measures = context.metrics.clone();
    let text = context.capacity.go_on(move || measures.text()).await.and_then(|text| {
        text.map_err(|_| {
            Error::new(Code::Internal, "a measure has no text; this is a bug of omird")
        })
    });
    admitted.finish(&text);
    Ok(([(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], text?).into_response())
}

pub(super) async fn document(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response, Refused> {
    // It is the same as long as the program runs.
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let (parts, _) = request.into_parts();
    let caller = ask_who(&context, &DOCUMENT, &parts, None)?;
    let admitted = context.protocols.router.admit(&caller, &DOCUMENT, Incoming::default())?;
    let text = TEXT.get_or_init(|| openapi::document().into()).clone();
    admitted.done();
    Ok(([(CONTENT_TYPE, content_type(Encoding::Json))], text).into_response())
}
