//! One request, from its header to its answer: what holds for every path.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waiting, Poll};

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, StatusCode};
use tower::ServiceExt;

use super::Context;
use super::answer::{Refused, rendered};
use super::connection::{Arrival, UnderWay};
use crate::engine::{Code, Encoding};

/// Answers a request.
pub(super) async fn answer(
    _context: &Arc<Context>,
    router: Router,
    arrival: Arrival,
    mut request: Request<Incoming>,
) -> Response {
    request.extensions_mut().insert(arrival);
    let request = request.map(Body::new);
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let response = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED if response.extensions().get::<Refused>().is_none() => {
            let refused = Refused::new(
                StatusCode::METHOD_NOT_ALLOWED,
                Code::InvalidQuery,
                "this path does not take this method; `Allow` names those it takes",
            );
            let allowed = response.headers().clone();
            let mut response = refused.into_response();
            response.headers_mut().extend(allowed);
            response
        }
        _ => response,
    };
    let mut response = rendered(response, Encoding::Json);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A body that holds something until it is sent, or given up.
pub(super) fn held(body: Body, holds: UnderWay) -> Body {
    Body::new(Held { body, _holds: holds })
}

struct Held {
    body: Body,
    _holds: UnderWay,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waiting: &mut Waiting<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(waiting)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
