//! Subscribing to messages: off Zenoh's thread, through a bounded queue, onto a thread of ours.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::query::{ConsolidationMode, QueryTarget, ReplyKeyExpr};
use zenoh::sample::{Sample, SampleKind};

use super::attachment::{Attachment, AttachmentError};
use super::error::NodeError;
use super::event::Event;
use super::latched::{Latched, Mark};
use super::node::{Declarations, Node, OnDrop, Shared};
use super::publisher::key_expr;
use super::qos::Qos;
use super::queue::{Lane, Queue};
use super::token::{EntityKind, Gid};
use crate::interface::MessageType;
use crate::message::Message;
use crate::stamp::Stamp;

/// Time that a publisher has to answer with its last messages.
const KEPT_WITHIN: Duration = Duration::from_secs(10);

/// Time that callbacks of Zenoh have to return after their subscriber was undeclared. Zenoh takes the list of those it calls
/// before it calls them: a message may still come to a subscriber that is gone, and to none that is new.
const RETURNED_WITHIN: Duration = Duration::from_secs(2);

/// Zenoh receives up to 64 KiB at once. What has half of that or more keeps no more than as much again.
const SMALL: usize = 32 << 10;

/// A message with what is known of its way.
#[derive(Debug, Clone)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// The publisher, if its attachment says so: [`super::Graph::who`] knows more.
    pub publisher: Option<Gid>,
    /// Counts up from 1 for each publisher; 0 without an attachment.
    pub sequence: i64,
    /// Time at which it was published, by the publisher's clock; without an attachment when it came.
    pub source: Stamp,
    /// Time at which it came, by this node's clock.
    pub received: Stamp,
    /// True if its publisher had kept it; else it was published just then.
    pub is_kept: bool,
    /// Bytes it took on its way.
    pub size: usize,
}

/// A subscription to one topic. Dropping it takes it out of the graph and waits for the call that is
/// running; none comes after that.
pub struct Subscription {
    held: Arc<Declarations>,
    queue: Arc<Queue<Raw>>,
    topic: String,
    worker: Worker,
}

/// A message as it came.
struct Raw {
    payload: ZBytes,
    /// `None` if it came without one.
    attachment: Option<Attachment>,
    received: Stamp,
    is_kept: bool,
}

impl Node {
    /// Subscribes to `topic`. `each` is called for one message after the other, on a thread that is
    /// this subscription's alone. As many as the depth of `qos` may wait, and more while the node has room for them;
    /// then they are dropped, the oldest first, and counted.
    ///
    /// With [`Qos::is_latched`] the publishers are asked for what they kept, those there are now and
    /// those that come later; nothing is delivered twice. That does not count against the depth.
    ///
    /// # Errors
    /// The name is none that ROS allows, or Zenoh refused a declaration.
    pub fn subscribe(
        &self,
        topic: &str,
        ty: &Arc<MessageType>,
        qos: Qos,
        mut each: impl FnMut(Received) + Send + 'static,
    ) -> Result<Subscription, NodeError> {
        let shared = &self.shared;
        let topic = self.names().topic(topic)?;
        let endpoint = shared.endpoint(topic.clone(), &ty.name, &ty.hash.to_rihs_string(), qos);
        let key = key_expr(shared.key(&endpoint))?;
        let queue = Arc::new(Queue::growing(&qos, &shared.room));
        let inlet = Arc::new(Inlet {
            shared: Arc::clone(shared),
            topic: topic.clone(),
            key: key.clone(),
            queue: Arc::clone(&queue),
            latched: qos.is_latched().then(|| Mutex::new(Latched::new())),
        });
        let held = Arc::new(Declarations::default());
        // No sender is left: all callbacks have returned once the one sender is gone, which Zenoh drops with the
        // callback.
        let (in_callback, returned) = mpsc::channel::<()>();
        held.hold(OnDrop({
            let queue = Arc::clone(&queue);
            move || {
                if queue.is_last_taken() {
                    let _ = returned.recv_timeout(RETURNED_WITHIN);
                }
                queue.close();
            }
        }));
        // The messages published before are asked for first, so that new ones wait for them.
        if qos.is_latched() {
            Inlet::ask(&inlet, &format!("{key}/@adv/**"), qos.depth);
        }
        let live = shared
            .session
            .declare_subscriber(key.clone())
            .callback({
                let inlet = Arc::clone(&inlet);
                move |sample| {
                    let _ = &in_callback;
                    inlet.take(&sample, false);
                }
            })
            .wait()
            .map_err(NodeError::zenoh("declare a subscriber"))?;
        held.hold(live);
        if qos.is_latched() {
            let caches = shared
                .session
                .liveliness()
                .declare_subscriber(format!("{key}/@adv/pub/**"))
                .history(true)
                .callback(move |token| {
                    if token.kind() == SampleKind::Put {
                        Inlet::ask(&inlet, token.key_expr(), qos.depth);
                    }
                })
                .wait()
                .map_err(NodeError::zenoh("watch for latched publishers"))?;
            held.hold(caches);
        }
        shared.announce(EntityKind::Subscription, Some(endpoint), &held)?;
        // The thread starts last: a failure above never waits for `each`.
        let worker = Worker::start(&topic, {
            let (shared, queue) = (Arc::clone(shared), Arc::clone(&queue));
            let (topic, ty) = (topic.clone(), Arc::clone(ty));
            move || {
                while let Some(raw) = queue.pop() {
                    match Message::decode(&ty, &raw.payload.to_bytes()) {
                        Ok(message) => {
                            if let Err(why) = unpanicked(|| each(raw.with(message))) {
                                let why = why.to_string();
                                shared.malformed(EntityKind::Subscription, &topic, why);
                            }
                        }
                        Err(error) => {
                            shared.malformed(EntityKind::Subscription, &topic, error.to_string());
                        }
                    }
                }
            }
        })?;
        Ok(Subscription { held, queue, topic, worker })
    }
}

impl Subscription {
    /// The topic's absolute name.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Takes it out of the graph without waiting for the call that is running; that does the drop.
    pub(crate) fn close(&self) {
        self.held.let_go();
    }

    /// Takes it out of the graph, and waits until all that came before was handed on, also what Zenoh is just bringing.
    pub(crate) fn finish(self) {
        self.queue.take_the_last();
    }

    /// Number of messages that were dropped because more came than could be taken.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.held.let_go();
        self.worker.join();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subscription to {}", self.topic)
    }
}

impl Raw {
    fn with(self, message: Message) -> Received {
        let said = self.attachment;
        Received {
            size: self.payload.len(),
            message,
            publisher: said.map(|said| said.gid),
            sequence: said.map_or(0, |said| said.sequence),
            source: said.map_or(self.received, |said| Stamp::from_nanos(said.source_time)),
            received: self.received,
            is_kept: self.is_kept,
        }
    }
}

/// Handles a sample on Zenoh's threads.
struct Inlet {
    shared: Arc<Shared>,
    topic: String,
    key: KeyExpr<'static>,
    queue: Arc<Queue<Raw>>,
    latched: Option<Mutex<Latched<Raw>>>,
}

impl Inlet {
    fn take(&self, sample: &Sample, is_kept: bool) {
        if sample.kind() != SampleKind::Put {
            return;
        }
        let attachment = match attachment(sample.attachment()) {
            Ok(attachment) => attachment,
            Err(error) => {
                let (kind, why) = (EntityKind::Subscription, error.to_string());
                return self.shared.malformed(kind, &self.topic, why);
            }
        };
        let received = (self.shared.clock)();
        let raw = Raw { payload: let_go(sample.payload()), attachment, received, is_kept };
        match (&self.latched, attachment) {
            (None, _) => self.push(raw, Lane::New),
            // Nothing tells which message of which publisher it is: it is neither ordered nor taken for another.
            (Some(_), None) => self.push(raw, if is_kept { Lane::Kept } else { Lane::New }),
            (Some(latched), Some(Attachment { sequence, source_time, gid })) => {
                // Kept until all is in the queue: another thread may bring what follows.
                let mut latched = lock(latched);
                let lane = if latched.is_asking() { Lane::Kept } else { Lane::New };
                let bytes = raw.payload.len();
                for raw in latched.offer(gid, Mark { sequence, source_time }, raw, bytes) {
                    self.push(raw, lane);
                }
            }
        }
    }

    fn push(&self, raw: Raw, lane: Lane) {
        let size = raw.payload.len();
        for _ in self.queue.push(raw, size, lane) {
            let (kind, name) = (EntityKind::Subscription, self.topic.clone());
            self.shared.events.report(&Event::Dropped { kind, name });
        }
    }

    /// Asks publishers' caches for their last messages.
    fn ask(inlet: &Arc<Self>, cache: &str, depth: u64) {
        let Some(latched) = &inlet.latched else { return };
        lock(latched).asked();
        // Dropped with the callback: when the last answer is in, the time is over, or on failure.
        let end = OnDrop({
            let inlet = Arc::clone(inlet);
            move || inlet.answered()
        });
        let asked = inlet
            .shared
            .session
            .get(format!("{cache}?_max={depth}"))
            .accept_replies(ReplyKeyExpr::Any)
            .target(QueryTarget::All)
            .consolidation(ConsolidationMode::None)
            .timeout(KEPT_WITHIN)
            .callback({
                let inlet = Arc::clone(inlet);
                move |reply| {
                    let _ = &end;
                    // A publisher may reply with other messages than those of this topic: they are ignored.
                    if let Ok(sample) = reply.result()
                        && *sample.key_expr() == inlet.key
                    {
                        inlet.take(sample, true);
                    }
                }
            })
            .wait();
        if let Err(error) = asked {
            tracing::warn!("{}: what was published before is missing: {error}", inlet.topic);
        }
    }

    fn answered(&self) {
        if let Some(latched) = &self.latched {
            let mut latched = lock(latched);
            for raw in latched.answered() {
                self.push(raw, Lane::Kept);
            }
        }
    }
}

impl Shared {
    pub(super) fn malformed(&self, kind: EntityKind, name: &str, why: String) {
        self.events.report(&Event::Malformed { kind, name: name.to_owned(), why });
    }
}

/// The same bytes, and nothing else held for them. Small messages come together in one buffer, which a clone of any
/// of them would keep.
fn let_go(payload: &ZBytes) -> ZBytes {
    if payload.len() < SMALL {
        ZBytes::from(payload.to_bytes().into_owned())
    } else {
        payload.clone()
    }
}

/// The attachment of a sample or query, if it has one. rmw_zenoh sends one with everything and means to make
/// them optional (<https://github.com/ros2/rmw_zenoh/issues/641>); other clients of Zenoh send none.
pub(super) fn attachment(bytes: Option<&ZBytes>) -> Result<Option<Attachment>, AttachmentError> {
    bytes.map(|bytes| Attachment::decode(&bytes.to_bytes())).transpose()
}

/// A callback that panicked.
pub(super) struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it made omird panic, which is a bug in omird; the log says where")
    }
}

/// Calls `each` for one message, and survives a panic in it: the next message comes all the same.
pub(super) fn unpanicked(each: impl FnOnce()) -> Result<(), Panicked> {
    catch_unwind(AssertUnwindSafe(each)).map_err(|_| Panicked)
}

/// A thread that ends when its queue is closed.
pub(super) struct Worker(Option<JoinHandle<()>>);

impl Worker {
    pub(super) fn start(
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<Self, NodeError> {
        // Linux shows the first 15 bytes of a thread's name; the end of the topic says more.
        let tail: String = name.chars().skip(name.chars().count().saturating_sub(11)).collect();
        let thread = std::thread::Builder::new().name(format!("ros{tail}")).spawn(run);
        thread.map(|t| Self(Some(t))).map_err(|error| NodeError::Thread(error.to_string()))
    }

    /// Waits for its end, unless it is this very thread that drops it.
    pub(super) fn join(&mut self) {
        if let Some(thread) = self.0.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("a ROS callback panicked; its entity was deaf from then on");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use parking_lot::RwLock;
    use zenoh::Config;

    use super::*;
    use crate::graph::{Clock, NodeConfig};
    use crate::interface::Registry;

    /// The thread whose message waits until it may be taken.
    const SLOW: &str = "slow";

    #[test]
    fn a_message_that_zenoh_is_just_bringing_is_handed_on_at_the_end() {
        let mut config = Config::default();
        let off = [("scouting/multicast/enabled", "false"), ("listen/endpoints", "[]")];
        off.into_iter().for_each(|(key, value)| config.insert_json5(key, value).unwrap());
        let session = zenoh::open(config).wait().unwrap();
        let ((came, has_come), (go, may_go)) = (mpsc::channel(), mpsc::channel());
        let wait = Mutex::new((came, may_go));
        let clock: Clock = Arc::new(move || {
            if std::thread::current().name() == Some(SLOW) {
                let (came, may_go) = &*wait.lock();
                came.send(()).unwrap();
                may_go.recv().unwrap();
            }
            Stamp::from_nanos(1)
        });
        let types = Arc::new(RwLock::new(Registry::standard()));
        let named = NodeConfig::named("listener");
        let node = Node::open(&session, named, types, clock, Arc::new(|_| ())).unwrap();
        let ty = node.types().read().message("std_msgs/msg/String").unwrap();
        let (heard, all_heard) = mpsc::channel();
        let each = move |received: Received| heard.send(received.message).unwrap();
        let subscription = node.subscribe("/chat", &ty, Qos::DEFAULT, each).unwrap();

        let topic = node.names().topic("/chat").unwrap();
        let hash = ty.hash.to_rihs_string();
        let key = node.shared.key(&node.shared.endpoint(topic, &ty.name, &hash, Qos::DEFAULT));
        let payload = Message::new(&ty).encode();
        let slow = std::thread::Builder::new().name(SLOW.to_owned());
        let slow = slow.spawn(move || session.put(key, payload).wait().unwrap()).unwrap();
        has_come.recv().unwrap();
        let finished = std::thread::spawn(|| subscription.finish());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!finished.is_finished(), "its callback runs");
        go.send(()).unwrap();
        finished.join().unwrap();
        slow.join().unwrap();
        assert_eq!(all_heard.iter().count(), 1);
    }

    #[test]
    fn what_is_small_holds_nothing_of_the_buffer_it_came_in() {
        let place = |bytes: &ZBytes| bytes.to_bytes().as_ptr();
        let small = ZBytes::from(vec![7; SMALL - 1]);
        let free = let_go(&small);
        assert_ne!(place(&free), place(&small));
        assert_eq!(free.to_bytes(), small.to_bytes());
        let large = ZBytes::from(vec![7; SMALL]);
        assert_eq!(place(&let_go(&large)), place(&large), "a copy would cost more than it saves");
    }
}
