//! The routes of all protocols, in one place: whoever brings a protocol over HTTP merges its routes here.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;

use super::Context;
use super::answer::{Refused, content_type};
use super::caller::Asker;
use crate::engine::{Code, Encoding};
use crate::protocols::omir::{Params, method};
use crate::router::Incoming;

/// What `/` says.
const PATHS: &str = "omird: /omir/v1/<operation> /omir/v1/memory/<Type>/<id> /omir/v1/events /health/live /health/ready \
                     /metrics /openapi.json /mcp /access/v1/tokens\n";

/// Returns all routes. A handler that needs to know who asks takes an [`Asker`](super::caller::Asker).
pub(super) fn routes(context: Arc<Context>) -> Router {
    Router::new()
        .route("/", get(async || PATHS))
        .route("/omir/v1/status", get(status))
        .merge(super::mcp::route(&context))
        .merge(super::tokens::routes())
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

async fn status(
    State(context): State<Arc<Context>>,
    Asker(caller): Asker,
) -> Result<Response, Refused> {
    let protocols = &context.protocols;
    let row = method(omir_core::operation::Operation::Status);
    let admitted = protocols.router.admit(&caller, row, Incoming::default())?;
    let encode = |response: crate::protocols::omir::Response| response.encode(Encoding::Json);
    let encoded = protocols.omir.ask(admitted, Params::default(), encode)?;
    Ok(([(CONTENT_TYPE, content_type(Encoding::Json))], encoded.bytes).into_response())
}
