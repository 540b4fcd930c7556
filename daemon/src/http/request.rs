//! One request, from its header to its answer: what holds for every path.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tower::ServiceExt;

use super::connection::Arrival;
use super::exchanges::Worded;
use super::refused::{Refused, rendered};
use super::unread::Unread;
use super::{Context, guard, negotiate};
use crate::capacity;
use crate::engine::Code;

/// Longest path and query, in bytes. Parameters may also stand in a body.
const LONGEST_URI: usize = 64 << 10;

/// Said where a path does not take the verb.
pub(super) const NOT_TAKEN: &str =
    "this path does not take this method; `Allow` names those it takes";

/// Answers a request.
pub(super) async fn answer(
    context: &Arc<Context>,
    router: Router,
    arrival: Arrival,
    request: Request<Incoming>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let unread = Unread::of(&parts, body);
    let (encoding, is_head) = (negotiate::accepted(&parts.headers), parts.method == Method::HEAD);
    let checked = guard::check(&context.settings, &arrival, &parts);
    parts.extensions.insert(arrival);
    let (origin, response) = match checked.and_then(|origin| short(&parts).map(|()| origin)) {
        Err(refused) => (None, refused.into_response()),
        Ok(origin) => {
            let preflight =
                origin.as_ref().and_then(|_| guard::preflight(&parts.method, &parts.headers));
            let response = match preflight {
                Some(response) => response,
                None => routed(router, parts, unread.body()).await,
            };
            (origin, response)
        }
    };
    let mut response = rendered(response, encoding, is_head);
    let headers = response.headers_mut();
    if !unread.is_gone().await {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    guard::open_to(origin, headers);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Memories are private: no cache keeps them.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn short(parts: &Parts) -> Result<(), Refused> {
    let length = parts.uri.path_and_query().map_or(0, |it| it.as_str().len());
    if length <= LONGEST_URI {
        return Ok(());
    }
    let message = format!(
        "path and query are {length} bytes; at most {LONGEST_URI} are taken there: put parameters into the body"
    );
    Err(Refused::new(StatusCode::URI_TOO_LONG, Code::TooLarge, message))
}

async fn routed(router: Router, parts: Parts, body: Body) -> Response {
    let asks_what_is_allowed = parts.method == Method::OPTIONS;
    let request = Request::from_parts(parts, body);
    let response = match AssertUnwindSafe(router.oneshot(request)).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => return Refused::from(capacity::broken()).into_response(),
    };
    let is_ours = response.extensions().get::<Refused>().is_some();
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || is_ours {
        return response;
    }
    let allowed = response.headers().get(ALLOW).cloned();
    let mut answer = if asks_what_is_allowed && allowed.is_some() {
        StatusCode::NO_CONTENT.into_response()
    } else if response.extensions().get::<Worded>().is_some() {
        return response;
    } else {
        Refused::new(StatusCode::METHOD_NOT_ALLOWED, Code::InvalidQuery, NOT_TAKEN).into_response()
    };
    if let Some(allowed) = allowed {
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}
