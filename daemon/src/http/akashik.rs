//! The notifications of an agent's subscriptions: as server-sent events, and over a WebSocket.
//!
//! Each client has a queue of its own. One that is too slow for it misses some, is told so, and does not hold up
//! others.

pub(super) mod stream;
pub(super) mod websocket;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::response::Response as HttpResponse;
use hyper::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use super::Context;
use super::caller::{CallerCredentials, identify, nobody};
use super::exchanges::sent;
use super::omir::query_parameters;
use super::refused::Refused;
use crate::engine::{Code, Error};
use crate::protocols::akashik::{EVENTS, Listening, NoListener, Push};
use crate::router::{Admitted, Caller, Denial, Denied, Incoming, Message};

/// Time without a notification after which the client is told that the daemon is there, and the token is looked at again.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Notifications that wait for one client.
const MOST_WAITING: usize = 4096;
/// What a client is told that missed some.
const MISSED: &str = r#"{"event":"missed","summary":"notifications before this one are gone; ATTUNE with since_epoch"}"#;

/// What comes next for a client.
enum Next {
    /// A notification.
    Push(Push),
    /// Some before the next one are gone.
    Missed,
    /// Nothing happened for a while.
    Beat,
    /// The token is not valid any more.
    Revoked,
    /// The daemon stops.
    Stops,
}

/// Returns the answer of the protocol to a client that may not listen.
fn denial(context: &Context, why: Denial) -> Result<HttpResponse, Refused> {
    let Some(exchange) = context.protocols.exchange(EVENTS.protocol) else {
        return Err(Error::new(Code::NotFound, "this protocol is not served here").into());
    };
    let denied = Denied { method: &EVENTS, why, request_id: None, rate: None };
    Ok(sent(exchange.refuse(&denied), None))
}

/// Identifies the caller and its agent, and begins to listen.
async fn open(context: &Arc<Context>, parts: &Parts) -> Result<Notifications, Denial> {
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
        Ok(agent) => Ok(Notifications::new(context, parts, caller, agent, permit, admitted)),
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
    let slot = context.capacity.slot().map_err(|error| (503, error))?;
    let (akashik, caller) = (context.protocols.akashik.clone(), caller.clone());
    let found = slot.work(move || akashik.listener(&caller, named.as_deref())).await;
    let refused = |why: NoListener| (403, Error::new(Code::Unauthorized, why.to_string()));
    found.map_err(|error| (500, error))?.map_err(refused)
}

/// The notifications of one client.
struct Notifications {
    context: Arc<Context>,
    credentials: CallerCredentials,
    waiting: mpsc::Receiver<Push>,
    missed: Arc<AtomicBool>,
    /// The time of the next sign of life, however often the wait for it is given up.
    beat: Instant,
    _listening: Listening,
    _permit: OwnedSemaphorePermit,
    /// Ends with the client, however that ends.
    admitted: Option<Admitted>,
}

impl Drop for Notifications {
    fn drop(&mut self) {
        if let Some(admitted) = self.admitted.take() {
            admitted.done();
        }
    }
}

impl Notifications {
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
        let tenant: Arc<str> = caller.tenant_name().into();
        let flag = missed.clone();
        let listening = context.protocols.akashik.pushes().listen(move |push| {
            if push.agent_id == agent
                && push.tenant == tenant
                && queue.try_send(push.clone()).is_err()
            {
                flag.store(true, Ordering::Relaxed);
            }
        });
        Self {
            context: context.clone(),
            credentials: CallerCredentials::of(parts),
            waiting,
            missed,
            beat: Instant::now() + HEARTBEAT,
            _listening: listening,
            _permit: permit,
            admitted: Some(admitted),
        }
    }

    /// Waits for what comes next. Nothing is lost where the wait is given up.
    async fn next(&mut self) -> Next {
        // The notice of missed events comes behind those that filled the queue.
        let is_behind = self.waiting.is_empty() && self.missed.swap(false, Ordering::Relaxed);
        let next = if is_behind {
            Next::Missed
        } else {
            let beat = tokio::time::sleep_until(self.beat);
            tokio::select! {
                biased;
                () = self.context.stopping.cancelled() => return Next::Stops,
                next = self.waiting.recv() => next.map_or(Next::Stops, Next::Push),
                () = beat => Next::Beat,
            }
        };
        self.beat = Instant::now() + HEARTBEAT;
        // A token that was revoked is in force no longer, here too.
        match self.credentials.check(&self.context, &EVENTS) {
            Ok(()) => next,
            Err(_) => Next::Revoked,
        }
    }
}
