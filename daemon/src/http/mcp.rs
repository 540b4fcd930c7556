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
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Context;
use super::answer::Refused;
use super::body;
use super::caller::ask_who;
use super::operations::MCP;
use crate::mcp::Mcp;
use crate::router::Caller;

/// Returns the route.
pub(super) fn route(context: &Arc<Context>) -> Router<Arc<Context>> {
    let server = Mcp::new(&context.protocols);
    let most = context.protocols.omir.limits().max_payload_bytes;
    // Host and Origin are decided for all paths, before.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(most)
        .with_cancellation_token(context.stopping.child_token());
    let make = move || Ok(server.clone());
    let service = StreamableHttpService::new(make, Arc::<NeverSessionManager>::default(), config);
    let handle = async move |State(context): State<Arc<Context>>, request: Request| {
        let (mut parts, body) = request.into_parts();
        let caller = ask_who(&context, &MCP, &parts)?;
        let body::Read { bytes, room } = body::read(&context.work, &parts.headers, body, most)
            .await
            .map_err(|not_read| not_read.refused(most))?;
        parts.extensions.insert(Caller { transport: "mcp", ..caller });
        let response = service.handle(Request::from_parts(parts, Body::from(bytes))).await;
        drop(room);
        Ok::<Response, Refused>(response.map(Body::new))
    };
    Router::new().route("/mcp", any(handle))
}
