//! `/mcp`: the Model Context Protocol over streamable HTTP.
//!
//! Without sessions: each request brings its caller and stands for itself, so there is nothing to take over, to bound or to
//! lose in a restart. Progress comes on the stream of the request. Closing that is what cancels a call.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use omir_core::decode::{DecodeErrorKind, Limits};
use omir_core::json;
use omir_core::value::Value;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use tokio_util::sync::CancellationToken;

use super::Context;
use super::answer::Refused;
use super::body::{self, Most, UnreadRequest};
use super::caller::ask_who;
use super::exchange::held;
use super::operations::MCP;
use crate::engine::{Code, Error};
use crate::mcp::Mcp;
use crate::router::{Caller, Incoming};

/// Bytes of a message. A memory that a model writes has some hundred.
const MOST: Most = Most { bytes: 256 << 10, limit: None };
/// What a message may hold: the SDK keeps each value, however small, in some dozen bytes.
const LIMITS: Limits = Limits { max_bytes: MOST.bytes, max_depth: 32, max_items: 10_000 };

/// Returns the route.
pub(super) fn route(context: &Arc<Context>) -> Router<Arc<Context>> {
    let server = Mcp::new(&context.protocols, &context.work);
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
        let (mut parts, body) = request.into_parts();
        let caller = ask_who(&context, &MCP, &parts, None)?;
        let asked = UnreadRequest { caller: &caller, method: &MCP, named: None };
        let body::Read { bytes, room } = asked.read(&context, &parts.headers, body, MOST).await?;
        let has_row = match check(&bytes) {
            Ok(message) => has_row(&message),
            Err(error) => {
                asked.refuse(&context, bytes.len(), error.code);
                return Err(error.into());
            }
        };
        let caller = Caller { transport: "mcp", ..caller };
        if !has_row {
            let incoming = Incoming { bytes: bytes.len(), ..Incoming::default() };
            context.protocols.router.admit(&caller, &MCP, incoming)?.done();
        }
        parts.extensions.insert(caller);
        let response = service.handle(Request::from_parts(parts, Body::from(bytes))).await;
        Ok::<Response, Refused>(response.map(|body| held(Body::new(body), room)))
    };
    Router::new().route("/mcp", any(handle))
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
