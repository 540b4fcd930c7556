//! `/akashik/v1/events`: the notifications of an agent's subscriptions, as server-sent events.
//!
//! Each stream has a queue of its own. A client that is too slow for it misses some, is told so, and holds up nobody.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response as HttpResponse};
use bytes::Bytes;
use futures_util::stream;
use hyper::Version;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use super::Context;
use super::answer::Refused;
use super::caller::{Asker, identify, nobody};
use super::connection::Arrival;
use super::exchanges::sent;
use super::omir::query_parameters;
use crate::engine::{Code, Error};
use crate::protocols::akashik::{EVENTS, Listening, Push};
use crate::router::{Admitted, Caller, Denial, Denied, Incoming, Message};

/// Time without a notification after which a comment says that the daemon is there, and the token is looked at again.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Notifications that wait for one client.
const MOST_WAITING: usize = 4096;
/// First in each stream: the client comes back after a second.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");
const BEAT: Bytes = Bytes::from_static(b":\n\n");
const MISSED: Bytes = Bytes::from_static(
    b"event: missed\ndata: {\"event\":\"missed\",\"summary\":\"notifications before this one are gone; ATTUNE with since_epoch\"}\n\n",
);

pub(super) async fn stream(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<HttpResponse, Refused> {
    let (parts, _) = request.into_parts();
    match open(&context, &parts).await {
        Ok(events) => Ok(streamed(&parts, events)),
        Err(why) => {
            let Some(exchange) = context.protocols.exchange(EVENTS.protocol) else {
                return Err(Error::new(Code::NotFound, "this protocol is not served here").into());
            };
            let denied = Denied { method: &EVENTS, why, request_id: None, rate: None };
            Ok(sent(exchange.refuse(&denied), None))
        }
    }
}

/// Finds out who listens as which agent, and begins to listen.
async fn open(context: &Arc<Context>, parts: &Parts) -> Result<Events, Denial> {
    let router = &context.protocols.router;
    let caller = identify(context, parts).map_err(|refusal| {
        router.refuse(&nobody(parts), &EVENTS, 0, refusal.code());
        Denial::Refusal(refusal)
    })?;
    let transport = |status: u16, error: Error| Denial::Transport { status, error };
    let Ok(permit) = context.streams.clone().try_acquire_owned() else {
        router.refuse(&caller, &EVENTS, 0, Code::Busy);
        let message = "too many streams of events are open (http.max_events); try again later";
        return Err(transport(503, Error::new(Code::Busy, message)));
    };
    let admitted = router.admit(&caller, &EVENTS, Incoming::default()).map_err(Denial::Refusal)?;
    match agent(context, parts, &caller).await {
        Ok(agent) => Ok(Events::new(context, parts, caller, agent, permit, admitted)),
        Err((status, error)) => {
            admitted.failed(error.code);
            Err(transport(status, error))
        }
    }
}

/// Returns the agent that the caller listens as.
async fn agent(
    context: &Arc<Context>,
    parts: &Parts,
    caller: &Caller,
) -> Result<Arc<str>, (u16, Error)> {
    let parameters = query_parameters(parts).map_err(|error| (400, error))?;
    Message::check_parameters(&EVENTS, &parameters).map_err(|error| (400, error))?;
    let named = parameters.into_iter().next().map(|(_, value)| value);
    // The log may have to be added up first.
    let slot = context.work.slot().map_err(|error| (503, error))?;
    let (akashik, caller) = (context.protocols.akashik.clone(), caller.clone());
    let found = slot.work(move || akashik.listener(&caller, named.as_deref())).await;
    let refused = |message| (403, Error::new(Code::Unauthorized, message));
    found.map_err(|error| (500, error))?.map_err(refused)
}

fn streamed(parts: &Parts, events: Events) -> HttpResponse {
    let is_alone = parts.version < Version::HTTP_2;
    if is_alone && let Some(arrival) = parts.extensions.get::<Arrival>() {
        arrival.leave_place();
    }
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
    response
}

/// One stream.
struct Events {
    context: Arc<Context>,
    asker: Asker,
    opening: Vec<Bytes>,
    waiting: mpsc::Receiver<Bytes>,
    missed: Arc<AtomicBool>,
    _listening: Listening,
    _permit: OwnedSemaphorePermit,
    /// Ends with the stream, however that ends.
    admitted: Option<Admitted>,
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(admitted) = self.admitted.take() {
            admitted.done();
        }
    }
}

impl Events {
    fn new(
        context: &Arc<Context>,
        parts: &Parts,
        caller: Caller,
        agent: Arc<str>,
        permit: OwnedSemaphorePermit,
        admitted: Admitted,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let missed = Arc::new(AtomicBool::new(false));
        let tenant: Arc<str> = caller.tenant.clone().unwrap_or_else(|| "default".into());
        let flag = missed.clone();
        let listening = context.protocols.akashik.pushes().listen(move |push| {
            if push.agent_id == agent
                && push.tenant == tenant
                && queue.try_send(frame(push)).is_err()
            {
                flag.store(true, Ordering::Relaxed);
            }
        });
        // Last first. Nothing is kept for whoever comes back.
        let mut opening = vec![OPENING];
        if parts.headers.contains_key("last-event-id") {
            opening.insert(0, MISSED);
        }
        Self {
            context: context.clone(),
            asker: Asker::of(parts),
            opening,
            waiting,
            missed,
            _listening: listening,
            _permit: permit,
            admitted: Some(admitted),
        }
    }

    /// Returns the next bytes; `None` once the daemon stops, or the token is not valid any more.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(frame) = self.opening.pop() {
            return Some(frame);
        }
        let beat = tokio::time::sleep_until(Instant::now() + HEARTBEAT);
        let next = tokio::select! {
            biased;
            () = self.context.stopping.cancelled() => return None,
            next = self.waiting.recv() => next,
            () = beat => None,
        };
        // A token that was revoked is in force no longer, here too.
        self.asker.check(&self.context, &EVENTS).ok()?;
        // What is missed comes behind what was in the queue when it was full.
        if self.waiting.is_empty() && self.missed.swap(false, Ordering::Relaxed) {
            self.opening.push(MISSED);
        }
        Some(next.unwrap_or(BEAT))
    }
}

fn frame(push: &Push) -> Bytes {
    Bytes::from(format!("event: {}\nid: {}\ndata: {}\n\n", push.event, push.epoch, push.body))
}
