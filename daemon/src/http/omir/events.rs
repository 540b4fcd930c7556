//! `/omir/v1/events`: what is recorded from now on, or since an event that the client had last (server-sent events).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hyper::Version;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::super::Context;
use super::super::caller::{CallerCredentials, ask_who};
use super::super::connection::Arrival;
use super::super::events::{Cursor, Entry, EventId, Next};
use super::super::refused::Refused;
use super::{admit_bare, expect_none, query_parameters};
use crate::engine::{Code, Error};
use crate::protocols::omir::EVENTS;
use crate::router::Admitted;

/// Time without an event after which a comment says that the daemon is there, and the token is looked at again.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Events that are taken from the row at a time.
const AT_A_TIME: usize = 64;
/// First in each stream: the client comes back after a second.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");
const BEAT: Bytes = Bytes::from_static(b":\n\n");
const MISSED: Bytes = Bytes::from_static(
    b"event: missed\ndata: {\"kind\":\"missed\",\"message\":\"events before this one are gone; read what is stored\"}\n\n",
);

pub(in crate::http) async fn stream(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, _) = request.into_parts();
    let caller = ask_who(&context, &EVENTS, &parts, None)?;
    let is_alone = parts.version < Version::HTTP_2;
    let Ok(permit) = context.streams.clone().try_acquire_owned() else {
        let message = "too many streams of events are open (http.max_events); try again later";
        context.protocols.router.refuse(&caller, &EVENTS, 0, Code::Busy);
        let mut refusal = Refused::from(Error::new(Code::Busy, message)).into_response();
        if is_alone {
            // A connection that was made for the stream has nothing else to do.
            refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        return Ok(refusal);
    };
    let admitted = admit_bare(&context, &EVENTS, &caller, None)?;
    let had = query_parameters(&parts)
        .and_then(|parameters| expect_none(&EVENTS, parameters, "`Last-Event-ID` resumes"))
        .and_then(|()| last_event(&parts));
    let had = match had {
        Ok(had) => had,
        Err(error) => {
            admitted.failed(error.code);
            return Err(error.into());
        }
    };
    let cursor = context.events.cursor(had);
    if is_alone && let Some(arrival) = parts.extensions.get::<Arrival>() {
        arrival.leave_place();
    }
    let events = EventStream {
        context,
        credentials: CallerCredentials::of(&parts),
        cursor,
        ready: VecDeque::from([OPENING]),
        _permit: permit,
        admitted: Some(admitted),
    };
    let stream = stream::unfold(events, async |mut events| {
        let frame = events.next().await?;
        Some((Ok::<_, Infallible>(frame), events))
    });
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if is_alone {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

fn last_event(parts: &Parts) -> Result<Option<EventId>, Error> {
    let Some(value) = parts.headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    text.parse().map(Some).map_err(|_| {
        let message =
            format!("Last-Event-ID: {text:?} is no id of an event, such as `12` or `12.1`");
        Error::new(Code::InvalidQuery, message)
    })
}

/// One stream.
struct EventStream {
    context: Arc<Context>,
    credentials: CallerCredentials,
    cursor: Cursor,
    ready: VecDeque<Bytes>,
    _permit: OwnedSemaphorePermit,
    /// Ends with the stream, however that ends.
    admitted: Option<Admitted>,
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(admitted) = self.admitted.take() {
            admitted.done();
        }
    }
}

impl EventStream {
    /// Returns the next bytes; `None` once the daemon stops, or the token is not valid any more.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let beat = tokio::time::sleep_until(Instant::now() + HEARTBEAT);
        let next = tokio::select! {
            biased;
            () = self.context.stopping.cancelled() => return None,
            next = self.cursor.next(AT_A_TIME) => Some(next),
            () = beat => None,
        };
        // A token that was revoked is in force no longer, here too.
        self.credentials.check(&self.context, &EVENTS).ok()?;
        match next {
            None => Some(BEAT),
            Some(Next::Missed) => Some(MISSED),
            Some(Next::Events(events)) => {
                self.ready.extend(events.iter().map(|entry: &Arc<Entry>| entry.text()));
                self.ready.pop_front()
            }
        }
    }
}
