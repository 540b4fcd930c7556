//! Serving requests, each on a thread that is the service's alone.

use std::fmt;
use std::sync::Arc;

use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::query::Query;

use super::attachment::{Attachment, AttachmentError};
use super::error::NodeError;
use super::event::Event;
use super::node::{Declarations, Node, OnDrop, Shared};
use super::publisher::key_expr;
use super::qos::Qos;
use super::queue::{Lane, Queue};
use super::subscription::{Worker, attachment, unpanicked};
use super::token::{EntityKind, Gid};
use crate::interface::{MessageType, ServiceType};
use crate::message::{DecodeError, Message};
use crate::stamp::Stamp;

/// A service server. Dropping it takes it out of the graph and waits for the call that is running;
/// none comes after that.
pub struct Server {
    held: Arc<Declarations>,
    name: String,
    worker: Worker,
}

/// A request that waits for its answer. It can be kept and answered later, from any thread; dropped
/// without an answer it leaves the client with none.
pub struct Request {
    message: Message,
    /// `None` if it came without one.
    attachment: Option<Attachment>,
    received: Stamp,
    reply: Reply,
}

/// The way back to the client.
struct Reply {
    shared: Arc<Shared>,
    query: Query,
    key: KeyExpr<'static>,
    response: Arc<MessageType>,
}

impl Node {
    /// Offers the service `name`. `each` is called for one request after the other. At most 10 wait,
    /// as rmw's profile for services has it; more are refused, the oldest first. So is one that is larger than
    /// [`NodeConfig::most_request`](super::NodeConfig::most_request).
    ///
    /// A request that cannot be read is answered with Zenoh's error reply, which has the reason in
    /// it; rmw_zenoh logs it at the client.
    ///
    /// # Errors
    /// The name is none that ROS allows, or Zenoh refused a declaration.
    pub fn serve(
        &self,
        name: &str,
        ty: &ServiceType,
        each: impl FnMut(Request) + Send + 'static,
    ) -> Result<Server, NodeError> {
        let name = self.names().service(name)?;
        self.shared.serve(name, ty, each)
    }
}

impl Shared {
    /// A service under an absolute name.
    pub(super) fn serve(
        self: &Arc<Self>,
        name: String,
        ty: &ServiceType,
        mut each: impl FnMut(Request) + Send + 'static,
    ) -> Result<Server, NodeError> {
        let qos = Qos::SERVICES;
        let endpoint = self.endpoint(name.clone(), &ty.name, &ty.hash.to_rihs_string(), qos);
        let key = key_expr(self.key(&endpoint))?;
        let queue = Arc::new(Queue::<(Query, Stamp)>::new(&qos, &self.room));
        let worker = Worker::start(&name, {
            let (shared, queue, name) = (Arc::clone(self), Arc::clone(&queue), name.clone());
            let (request, response) = (Arc::clone(&ty.request), Arc::clone(&ty.response));
            let key = key.clone();
            move || {
                while let Some((query, received)) = queue.pop() {
                    match read(&query, &request) {
                        Ok((attachment, message)) => {
                            let response = Arc::clone(&response);
                            let key = key.clone();
                            let reply = Reply { shared: Arc::clone(&shared), query, key, response };
                            let request = Request { message, attachment, received, reply };
                            if let Err(why) = unpanicked(|| each(request)) {
                                shared.malformed(EntityKind::Server, &name, why.to_string());
                            }
                        }
                        Err(why) => {
                            // A node that hears of it finds it counted.
                            let why = why.to_string();
                            shared.malformed(EntityKind::Server, &name, why.clone());
                            refuse(&query, &name, &why);
                        }
                    }
                }
            }
        })?;
        let held = Arc::new(Declarations::default());
        held.hold(OnDrop({
            let queue = Arc::clone(&queue);
            move || queue.close()
        }));
        let server = Server { held, name: name.clone(), worker };
        let queryable = self
            .session
            .declare_queryable(key)
            // rmw_zenoh's clients ask only those that are complete.
            .complete(true)
            .callback({
                let shared = Arc::clone(self);
                move |query| {
                    let size = query.payload().map_or(0, |payload| payload.len());
                    if size > shared.most_request {
                        // Before it is copied, decoded, or waits.
                        let most = shared.most_request;
                        let why = format!("a request of {size} bytes; at most {most} are taken");
                        shared.malformed(EntityKind::Server, &name, why.clone());
                        return refuse(&query, &name, &why);
                    }
                    let request = (query, (shared.clock)());
                    for (oldest, _) in queue.push(request, size, Lane::New) {
                        refuse(&oldest, &name, "too many requests wait here; ask again later");
                        let (kind, name) = (EntityKind::Server, name.clone());
                        shared.events.report(&Event::Dropped { kind, name });
                    }
                }
            })
            .wait()
            .map_err(NodeError::zenoh("declare a queryable"))?;
        server.held.hold(queryable);
        self.announce(EntityKind::Server, Some(endpoint), &server.held)?;
        Ok(server)
    }
}

/// A request that cannot be read.
enum BadRequest {
    Attachment(AttachmentError),
    Empty,
    Message(DecodeError),
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attachment(error) => error.fmt(f),
            Self::Empty => f.write_str("a request without a payload"),
            Self::Message(error) => error.fmt(f),
        }
    }
}

fn read(query: &Query, ty: &Arc<MessageType>) -> Result<(Option<Attachment>, Message), BadRequest> {
    let attachment = attachment(query.attachment()).map_err(BadRequest::Attachment)?;
    let payload = query.payload().ok_or(BadRequest::Empty)?;
    let message = Message::decode(ty, &payload.to_bytes()).map_err(BadRequest::Message)?;
    Ok((attachment, message))
}

fn refuse(query: &Query, name: &str, why: &str) {
    if let Err(error) = query.reply_err(why).wait() {
        tracing::debug!("{name}: a client was not told that {why}: {error}");
    }
}

impl Server {
    /// The service's absolute name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.held.let_go();
        self.worker.join();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service {}", self.name)
    }
}

impl Request {
    /// The request.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The caller, if its attachment says so: [`super::Graph::who`] knows more.
    #[must_use]
    pub fn client(&self) -> Option<Gid> {
        self.attachment.map(|said| said.gid)
    }

    /// Time at which it came, by this node's clock.
    #[must_use]
    pub fn received(&self) -> Stamp {
        self.received
    }

    /// An answer to fill in: the response with its defaults.
    #[must_use]
    pub fn response(&self) -> Message {
        Message::new(&self.reply.response)
    }

    /// Answers with Zenoh's error reply, which has the reason in it.
    pub(super) fn refuse(self, name: &str, why: &str) {
        refuse(&self.reply.query, name, why);
    }

    /// Answers it.
    ///
    /// # Errors
    /// The message is of another type, or Zenoh refused.
    pub fn answer(self, message: &Message) -> Result<(), NodeError> {
        let Reply { shared, query, key, response } = self.reply;
        if *message.ty() != response {
            return Err(NodeError::Type {
                wanted: response.name.to_string(),
                given: message.ty().name.to_string(),
            });
        }
        let mut reply = query.reply(key, ZBytes::from(message.encode()));
        // The client finds its request by its own number and id. One that sent none has its answer from Zenoh.
        if let Some(asked) = self.attachment {
            let said = Attachment { source_time: (shared.clock)().nanos(), ..asked };
            reply = reply.attachment(ZBytes::from(said.encode().as_slice()));
        }
        reply.wait().map_err(NodeError::zenoh("answer a request"))
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attachment {
            Some(said) => write!(f, "request {} of {}", said.sequence, said.gid),
            None => f.write_str("request without an attachment"),
        }
    }
}
