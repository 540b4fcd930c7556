//! Asking services of others.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::query::{ConsolidationMode, QueryTarget, Reply};

use super::attachment::Attachment;
use super::error::NodeError;
use super::node::{Declarations, Node, OnDrop, Shared};
use super::publisher::key_expr;
use super::qos::Qos;
use super::token::{EntityKind, Gid};
use crate::interface::{MessageType, ServiceType};
use crate::message::Message;

/// A client of one service. Dropping it takes it out of the graph.
pub struct Client {
    shared: Arc<Shared>,
    held: Arc<Declarations>,
    name: String,
    key: KeyExpr<'static>,
    gid: Gid,
    sequence: AtomicI64,
    request: Arc<MessageType>,
    response: Arc<MessageType>,
}

/// A call without a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The request could not be sent.
    Sending(NodeError),
    /// No server of that name and type answered in time.
    Unanswered,
    /// The node makes no calls any more.
    HungUp,
    /// The server refused the request with these words.
    Refused(String),
    /// The response cannot be read.
    Malformed(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sending(error) => error.fmt(f),
            Self::Unanswered => f.write_str("no server of that name and type answered in time"),
            Self::HungUp => f.write_str("this node leaves the graph"),
            Self::Refused(why) => write!(f, "the server refused: {why}"),
            Self::Malformed(why) => write!(f, "the response cannot be read: {why}"),
        }
    }
}

impl std::error::Error for CallError {}

/// The reply to a call; `None` if none came.
type CallReply = Option<Reply>;

/// The calls of a node that wait for their response.
#[derive(Default)]
pub(super) struct Calls(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    is_over: bool,
    next: u64,
    /// The waiting callers.
    callers: HashMap<u64, SyncSender<CallReply>>,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock()
    }

    /// The two ends of the reply's channel; `None` if no call may begin any more.
    fn begin(&self) -> Option<(u64, SyncSender<CallReply>, Receiver<CallReply>)> {
        let mut waiting = self.lock();
        if waiting.is_over {
            return None;
        }
        let (answer, answered) = mpsc::sync_channel(1);
        waiting.next += 1;
        let number = waiting.next;
        waiting.callers.insert(number, answer.clone());
        Some((number, answer, answered))
    }

    fn end(&self, number: u64) {
        self.lock().callers.remove(&number);
    }

    fn hang_up(&self) {
        let mut waiting = self.lock();
        waiting.is_over = true;
        for (_, caller) in waiting.callers.drain() {
            // A caller that waits no longer, or has a reply, need not be told.
            let _ = caller.try_send(None);
        }
    }

    fn is_over(&self) -> bool {
        self.lock().is_over
    }
}

impl Node {
    /// Ends all calls that wait for a response, now and from now on: a node that leaves the graph waits for no
    /// response.
    pub fn hang_up(&self) {
        self.shared.calls.hang_up();
    }

    /// A client of the service `name`.
    ///
    /// # Errors
    /// The name is none that ROS allows, or Zenoh refused a declaration.
    pub fn client(&self, name: &str, ty: &ServiceType) -> Result<Client, NodeError> {
        let shared = &self.shared;
        let name = self.names().service(name)?;
        let hash = ty.hash.to_rihs_string();
        let endpoint = shared.endpoint(name.clone(), &ty.name, &hash, Qos::SERVICES);
        let key = key_expr(shared.key(&endpoint))?;
        let held = Arc::new(Declarations::default());
        let gid = shared.announce(EntityKind::Client, Some(endpoint), &held)?;
        Ok(Client {
            shared: Arc::clone(shared),
            held,
            name,
            key,
            gid,
            sequence: AtomicI64::new(0),
            request: Arc::clone(&ty.request),
            response: Arc::clone(&ty.response),
        })
    }
}

impl Client {
    /// The service's absolute name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A request to fill in: with its defaults.
    #[must_use]
    pub fn request(&self) -> Message {
        Message::new(&self.request)
    }

    /// Returns true if there is a server now.
    #[must_use]
    pub fn is_served(&self, graph: &super::Graph) -> bool {
        graph
            .at(&self.name, EntityKind::Server)
            .iter()
            .filter_map(|server| server.endpoint.as_ref())
            .any(|endpoint| self.shared.key(endpoint) == self.key.as_str())
    }

    /// Asks, and waits for the first response. Must not be called on a thread of Zenoh.
    ///
    /// # Errors
    /// There is no response, or none that can be read.
    pub fn call(&self, request: &Message, timeout: Duration) -> Result<Message, CallError> {
        if *request.ty() != self.request {
            return Err(CallError::Sending(NodeError::Type {
                wanted: self.request.name.to_string(),
                given: request.ty().name.to_string(),
            }));
        }
        let attachment = Attachment {
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed) + 1,
            source_time: (self.shared.clock)().nanos(),
            gid: self.gid,
        };
        let calls = &self.shared.calls;
        let (number, answer, answered) = calls.begin().ok_or(CallError::HungUp)?;
        let _ended = OnDrop(|| calls.end(number));
        // Zenoh drops the callback when there is nothing more to come.
        let nothing_more = OnDrop({
            let answer = answer.clone();
            move || _ = answer.try_send(None)
        });
        self.shared
            .session
            .get(&self.key)
            .payload(ZBytes::from(request.encode()))
            .attachment(ZBytes::from(attachment.encode().as_slice()))
            .target(QueryTarget::AllComplete)
            .consolidation(ConsolidationMode::None)
            .timeout(timeout)
            .callback(move |reply| {
                let _ = &nothing_more;
                // Only the first counts, and there is room for no more.
                let _ = answer.try_send(Some(reply));
            })
            .wait()
            .map_err(|error| CallError::Sending(NodeError::zenoh("send a request")(error)))?;
        let reply = answered.recv_timeout(timeout).ok().flatten().ok_or_else(|| {
            if calls.is_over() { CallError::HungUp } else { CallError::Unanswered }
        })?;
        match reply.into_result() {
            Ok(sample) => Message::decode(&self.response, &sample.payload().to_bytes())
                .map_err(|error| CallError::Malformed(error.to_string())),
            Err(error) => Err(CallError::Refused(
                String::from_utf8_lossy(&error.payload().to_bytes()).into_owned(),
            )),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.held.let_go();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client of {}", self.name)
    }
}
