//! The routes of all protocols, in one place: whoever brings a protocol over HTTP merges its routes here.

use std::sync::Arc;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::StatusCode;

use super::Context;
use super::answer::Refused;
use super::omir;
use crate::engine::Code;

/// What `/` says.
const PATHS: &str = "omird: /omir/v1/<operation> /omir/v1/memory/<Type>/<id> /omir/v1/events /health/live /health/ready \
                     /metrics /openapi.json /mcp /access/v1/tokens\n";

/// Returns all routes. A handler that needs to know who asks takes an [`Asker`](super::caller::Asker).
pub(super) fn routes(context: Arc<Context>) -> Router {
    Router::new()
        .route("/", get(async || PATHS))
        .merge(super::mcp::route(&context))
        .merge(super::tokens::routes())
        .merge(omir::routes())
        .fallback(nothing_there)
        .with_state(context)
}

async fn nothing_there() -> impl IntoResponse {
    Refused::new(
        StatusCode::NOT_FOUND,
        Code::NotFound,
        "there is nothing at this path; `/` names those there are",
    )
}
