//! `/mcp`: the Model Context Protocol over streamable HTTP.
//!
//! Without sessions: each request brings its caller and stands for itself, so there is nothing to take over, to bound or to
//! lose in a restart. Progress comes on the stream of the request. Closing that is what cancels a call.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Context;
use super::caller::Asker;
use crate::mcp::Mcp;
use crate::router::Caller;

/// Returns the route.
pub(super) fn route(context: &Arc<Context>) -> Router<Arc<Context>> {
    let server = Mcp::new(&context.protocols);
    // Host and Origin are decided for all paths, before.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(context.protocols.omir.limits().max_payload_bytes)
        .with_cancellation_token(context.stopping.child_token());
    let make = move || Ok(server.clone());
    let service = StreamableHttpService::new(make, Arc::<NeverSessionManager>::default(), config);
    let handle = move |Asker(caller): Asker, mut request: Request| {
        let service = service.clone();
        async move {
            request.extensions_mut().insert(Caller { transport: "mcp", ..caller });
            let response: Response<_> = service.handle(request).await;
            response.map(Body::new)
        }
    };
    Router::new().route("/mcp", any(handle))
}
