//! `/akashik/v1/events`: notifications as server-sent events (HTML, section 9.2).

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response as HttpResponse};
use bytes::Bytes;
use futures_util::stream;
use hyper::Version;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;

use super::{MISSED, Next, Notifications, denial, open};
use crate::http::Context;
use crate::http::connection::Arrival;
use crate::http::refused::Refused;
use crate::protocols::akashik::Push;

/// First in each stream: the client comes back after a second.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");
const BEAT: Bytes = Bytes::from_static(b":\n\n");

pub(in crate::http) async fn listen(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<HttpResponse, Refused> {
    let (parts, _) = request.into_parts();
    match open(&context, &parts).await {
        Ok(notifications) => Ok(streamed(&parts, notifications)),
        Err(why) => denial(&context, why),
    }
}

fn streamed(parts: &Parts, notifications: Notifications) -> HttpResponse {
    let is_alone = parts.version < Version::HTTP_2;
    if is_alone && let Some(arrival) = parts.extensions.get::<Arrival>() {
        arrival.leave_place();
    }
    // Nothing is kept for a client that comes back.
    let mut opening = OPENING.to_vec();
    if parts.headers.contains_key("last-event-id") {
        opening.extend(&*missed());
    }
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(opening))]);
    let rest = stream::unfold(notifications, async |mut notifications| {
        let frame = match notifications.next().await {
            Next::Push(push) => frame(&push),
            Next::Missed => missed(),
            Next::Beat => BEAT,
            Next::Revoked | Next::Stops => return None,
        };
        Some((Ok(frame), notifications))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if is_alone {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn missed() -> Bytes {
    Bytes::from(format!("event: missed\ndata: {MISSED}\n\n"))
}

fn frame(push: &Push) -> Bytes {
    Bytes::from(format!("event: {}\nid: {}\ndata: {}\n\n", push.event, push.epoch, push.body))
}
