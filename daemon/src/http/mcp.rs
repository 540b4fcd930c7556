//! `/mcp`: the Model Context Protocol over streamable HTTP.
//!
//! Without sessions: each request brings its caller and stands for itself, so there is nothing to take over, to bound or to
//! lose in a restart. Progress comes on the stream of the request. Closing that is what cancels a call.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use hyper::body::Body as _;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{HeaderMap, StatusCode};
use omir_core::decode::{DecodeErrorKind, Limits};
use omir_core::json;
use omir_core::value::Value;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use tokio_util::sync::CancellationToken;

use super::Context;
use super::body::{self, Most, UnreadRequest};
use super::caller::ask_who;
use super::guarded_body::guarded;
use super::monitoring::MCP;
use super::negotiate::expect_json;
use super::refused::Refused;
use crate::engine::{Code, Error};
use crate::mcp::{Decided, Mcp};
use crate::router::{Caller, Incoming};

/// Bytes of the answer to a change, at most.
const LONGEST_RECEIPT: u64 = 64 << 10;
/// Bytes of a reason that the SDK gives.
const LONGEST_REASON: usize = 4 << 10;
/// Bytes of a message. A memory that a model writes has some hundred.
const MOST: Most = Most { bytes: 256 << 10, limit: None };
/// What a message may hold: the SDK keeps each value, however small, in some dozen bytes.
const LIMITS: Limits = Limits { max_bytes: MOST.bytes, max_depth: 32, max_items: 10_000 };

type Service = StreamableHttpService<Mcp, NeverSessionManager>;

/// Returns the route.
pub(super) fn route(context: &Arc<Context>) -> Router<Arc<Context>> {
    let server = Mcp::new(&context.protocols, &context.capacity);
    // Host and Origin are decided for all paths, before. A stop ends no call: what is under way finishes.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MOST.bytes)
        .with_cancellation_token(CancellationToken::new());
    let make = move || Ok(server.clone());
    let service = StreamableHttpService::new(make, Arc::<NeverSessionManager>::default(), config);
    let handle = async move |State(context): State<Arc<Context>>, request: Request| {
        serve(&context, &service, request).await
    };
    Router::new().route("/mcp", post(handle))
}

async fn serve(
    context: &Arc<Context>,
    service: &Service,
    request: Request,
) -> Result<Response, Refused> {
    let (mut parts, body) = request.into_parts();
    let caller = ask_who(context, &MCP, &parts, None)?;
    let asked = UnreadRequest { caller: &caller, method: &MCP, named: None };
    expect_media(&parts.headers).inspect_err(|refused| {
        let bytes = body::stated_length(&parts.headers).unwrap_or(0);
        asked.refuse(context, bytes, refused.error.code);
    })?;
    let body::Read { bytes, room } = asked.read(context, &parts.headers, body, MOST).await?;
    let message = check(&bytes).map_err(|error| {
        asked.refuse(context, bytes.len(), error.code);
        Refused::from(error)
    })?;
    let caller = Caller { transport: "mcp", ..caller };
    let router = &context.protocols.router;
    let incoming = Incoming { bytes: bytes.len(), ..Incoming::default() };
    let mut admitted = match has_row(&message) {
        true => None,
        false => Some(router.admit(&caller, &MCP, incoming)?),
    };
    let decided = Decided::default();
    parts.extensions.insert(caller.clone());
    parts.extensions.insert(decided.clone());
    let response = service.handle(Request::from_parts(parts, Body::from(bytes))).await;
    // It looked as if it had a row, and the SDK found that it asks for nothing.
    if admitted.is_none() && !decided.is_decided() {
        admitted = Some(router.admit(&caller, &MCP, incoming)?);
    }
    let response = worded(response.map(Body::new)).await;
    if let Some(admitted) = admitted {
        match &response {
            Ok(_) => admitted.done(),
            Err(refused) => admitted.failed(refused.error.code),
        }
    }
    let response = response?;
    // An answer in one piece; a stream of progress is made as it is taken.
    let length = response.body().size_hint().exact().unwrap_or(0);
    let room = Arc::new(room);
    match context.capacity.room_for_answer(usize::try_from(length).unwrap_or(usize::MAX)).await {
        Ok(answer) => Ok(response.map(|body| guarded(guarded(body, room), Arc::new(answer)))),
        // It may be of a change, which is made.
        Err(_) if length <= LONGEST_RECEIPT => Ok(response.map(|body| guarded(body, room))),
        Err(error) => Err(error.into()),
    }
}

/// Refuses what is no JSON, and a client that takes not both kinds of answer, as the protocol asks of each.
fn expect_media(headers: &HeaderMap) -> Result<(), Refused> {
    expect_json(headers)?;
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds: Vec<&str> = lists
        .flat_map(|list| list.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .collect();
    let takes = |kind: &str| kinds.iter().any(|known| known.eq_ignore_ascii_case(kind));
    if takes("application/json") && takes("text/event-stream") {
        return Ok(());
    }
    let message =
        "answers are JSON or a stream: send `Accept: application/json, text/event-stream`";
    Err(Refused::new(StatusCode::NOT_ACCEPTABLE, Code::InvalidQuery, message))
}

/// Words what the SDK refuses, which it says in plain text.
///
/// # Errors
/// 400 for what is no message.
async fn worded(response: Response) -> Result<Response, Refused> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_ours = kind.is_some_and(|kind| kind.starts_with("application/json"));
    if !status.is_client_error() && !status.is_server_error() || is_ours {
        return Ok(response);
    }
    let text = axum::body::to_bytes(response.into_body(), LONGEST_REASON).await;
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    if status.is_server_error() {
        return Err(Error::new(Code::Internal, text).into());
    }
    Err(Error::new(Code::InvalidQuery, format!("this is no message of MCP: {text}")).into())
}

/// Returns true if a message asks for something that has a row of its own, by which it is admitted once it is known what is
/// meant. Every other message is admitted by the row `mcp`.
fn has_row(message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    matches!(method, Some("tools/call" | "resources/read"))
}

/// Refuses a message that is no JSON, or would take much memory once the SDK has read it.
fn check(bytes: &[u8]) -> Result<Value, Error> {
    // A request without a body has its answer from the SDK.
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    json::from_slice(bytes, &LIMITS).map_err(|error| {
        let code = match error.kind {
            DecodeErrorKind::Depth | DecodeErrorKind::TooLarge => Code::TooLarge,
            _ => Code::InvalidQuery,
        };
        Error::new(code, format!("the message: {error}"))
    })
}
