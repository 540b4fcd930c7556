//! Publishing messages, and keeping the last ones for subscribers that come late.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::qos::CongestionControl;
use zenoh::query::Query;
use zenoh::time::{NTP64, Timestamp};

use super::attachment::Attachment;
use super::error::NodeError;
use super::node::{Declarations, Node, OnDrop, Shared};
use super::qos::{History, Qos, Reliability};
use super::token::{EntityKind, Gid};
use crate::interface::MessageType;
use crate::message::Message;

/// A publisher of one topic. Dropping it takes it out of the graph.
pub struct Publisher {
    shared: Arc<Shared>,
    held: Arc<Declarations>,
    ty: Arc<MessageType>,
    topic: String,
    gid: Gid,
    /// `None` once the node is gone.
    out: Arc<Mutex<Option<Out>>>,
}

struct Out {
    declared: zenoh::pubsub::Publisher<'static>,
    sequence: i64,
    cache: Option<Arc<Mutex<Cache>>>,
}

impl Node {
    /// Publishes messages of the type `ty` on `topic`.
    ///
    /// With [`Qos::is_latched`] the last `depth` messages are kept for subscriptions that come later,
    /// as Zenoh's advanced publisher does it, which rmw_zenoh uses since 0.2.2.
    ///
    /// # Errors
    /// The name is none that ROS allows, or Zenoh refused a declaration.
    pub fn publisher(
        &self,
        topic: &str,
        ty: &Arc<MessageType>,
        qos: Qos,
    ) -> Result<Publisher, NodeError> {
        let name = self.names().topic(topic)?;
        self.shared.publisher(name, ty, qos)
    }
}

impl Shared {
    /// A publisher under an absolute name.
    pub(super) fn publisher(
        self: &Arc<Self>,
        topic: String,
        ty: &Arc<MessageType>,
        qos: Qos,
    ) -> Result<Publisher, NodeError> {
        let endpoint = self.endpoint(topic.clone(), &ty.name, &ty.hash.to_rihs_string(), qos);
        let key = key_expr(self.key(&endpoint))?;
        let block = qos.reliability == Reliability::Reliable && qos.history == History::KeepAll;
        let declared = self
            .session
            .declare_publisher(key.clone())
            .congestion_control(if block {
                CongestionControl::Block
            } else {
                CongestionControl::Drop
            })
            .wait()
            .map_err(NodeError::zenoh("declare a publisher"))?;
        let held = Arc::new(Declarations::default());
        let cache = match qos.is_latched() {
            true => Some(self.cache(&held, &key, &qos)?),
            false => None,
        };
        let out = Arc::new(Mutex::new(Some(Out { declared, sequence: 0, cache })));
        held.hold(OnDrop({
            let out = Arc::clone(&out);
            move || drop(lock(&out).take())
        }));
        let gid = self.announce(EntityKind::Publisher, Some(endpoint), &held)?;
        Ok(Publisher { shared: Arc::clone(self), held, ty: Arc::clone(ty), topic, gid, out })
    }

    /// The cache of a latched publisher, asked under `<key>/@adv/pub/<session>/uhlc/_`.
    ///
    /// `uhlc` says that samples are told apart by their timestamps, which are Zenoh's stable API;
    /// rmw_zenoh itself numbers them, for which there is a number in that place. Its subscriptions
    /// understand both (zenoh-ext, `advanced_publisher.rs` and `advanced_subscriber.rs`).
    fn cache(
        &self,
        held: &Declarations,
        key: &KeyExpr<'static>,
        qos: &Qos,
    ) -> Result<Arc<Mutex<Cache>>, NodeError> {
        let at = format!("{key}/@adv/pub/{}/uhlc/_", self.session.zid());
        let cache = Arc::new(Mutex::new(Cache::new(qos)));
        let queryable = self
            .session
            .declare_queryable(at.clone())
            .callback({
                let (cache, key) = (Arc::clone(&cache), key.clone());
                move |query| answer(&query, &key, &lock(&cache))
            })
            .wait()
            .map_err(NodeError::zenoh("declare the cache of a publisher"))?;
        held.hold(queryable);
        let token = self
            .session
            .liveliness()
            .declare_token(at)
            .wait()
            .map_err(NodeError::zenoh("declare the token of a publisher's cache"))?;
        held.hold(token);
        Ok(cache)
    }
}

impl Publisher {
    /// The topic's absolute name.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The type of the messages.
    #[must_use]
    pub fn ty(&self) -> &Arc<MessageType> {
        &self.ty
    }

    /// Returns true if anyone subscribes to it now.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        let out = lock(&self.out);
        let matching = out.as_ref().map(|out| out.declared.matching_status().wait());
        matching.is_some_and(|status| status.is_ok_and(|status| status.matching()))
    }

    /// Publishes a message.
    ///
    /// # Errors
    /// It is of another type, the node is gone, or Zenoh refused.
    pub fn publish(&self, message: &Message) -> Result<(), NodeError> {
        if message.ty() != &self.ty {
            return Err(NodeError::Type {
                wanted: self.ty.name.to_string(),
                given: message.ty().name.to_string(),
            });
        }
        let payload = ZBytes::from(message.encode());
        let mut out = lock(&self.out);
        let out = out.as_mut().ok_or(NodeError::Closed)?;
        out.sequence += 1;
        let attachment = Attachment {
            sequence: out.sequence,
            source_time: (self.shared.clock)().nanos(),
            gid: self.gid,
        };
        let attachment = ZBytes::from(attachment.encode().as_slice());
        let put = out.declared.put(payload.clone()).attachment(attachment.clone());
        let put = match &out.cache {
            None => put.wait(),
            Some(cache) => {
                let at = lock(cache).keep(payload, attachment, self.shared.session.new_timestamp());
                put.timestamp(at).wait()
            }
        };
        put.map_err(NodeError::zenoh("publish"))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.held.let_go();
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "publisher of {} ({})", self.topic, self.ty.name)
    }
}

/// The last messages of a latched topic.
struct Cache {
    depth: usize,
    kept: VecDeque<CachedMessage>,
    last: NTP64,
}

struct CachedMessage {
    payload: ZBytes,
    attachment: ZBytes,
    at: Timestamp,
}

impl Cache {
    /// The most that is kept under KEEP_ALL.
    const MOST: usize = 10_000;

    fn new(qos: &Qos) -> Self {
        let depth = match qos.history {
            History::KeepLast => usize::try_from(qos.depth).unwrap_or(Self::MOST),
            History::KeepAll => Self::MOST,
        };
        Self { depth: depth.clamp(1, Self::MOST), kept: VecDeque::new(), last: NTP64(0) }
    }

    /// Keeps a message, and says under which time: later than all before it, for a subscription
    /// takes an earlier one for what it had already.
    fn keep(&mut self, payload: ZBytes, attachment: ZBytes, now: Timestamp) -> Timestamp {
        self.last = NTP64(now.get_time().0.max(self.last.0.saturating_add(1)));
        let at = Timestamp::new(self.last, *now.get_id());
        if self.kept.len() >= self.depth {
            self.kept.pop_front();
        }
        self.kept.push_back(CachedMessage { payload, attachment, at });
        at
    }
}

/// Answers with the last `_max` messages, the oldest first.
fn answer(query: &Query, key: &KeyExpr<'static>, cache: &Cache) {
    let max = query.parameters().get("_max").and_then(|max| max.parse().ok());
    let skip = cache.kept.len().saturating_sub(max.unwrap_or(usize::MAX));
    for kept in cache.kept.iter().skip(skip) {
        let replied = query
            .reply(key, kept.payload.clone())
            .attachment(kept.attachment.clone())
            .timestamp(kept.at)
            .wait();
        if let Err(error) = replied {
            tracing::debug!("{key}: a message kept for who comes late was not sent: {error}");
        }
    }
}

/// The key as Zenoh wants it.
pub(super) fn key_expr(key: String) -> Result<KeyExpr<'static>, NodeError> {
    KeyExpr::try_from(key).map_err(NodeError::zenoh("make a key"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zenoh::time::TimestampId;

    use super::*;

    #[test]
    fn a_cache_keeps_the_last_and_its_times_only_grow() {
        let mut cache = Cache::new(&Qos::LATCHED.keep_last(2));
        let id = TimestampId::try_from([1]).unwrap();
        let at = |seconds| Timestamp::new(NTP64::from(Duration::from_secs(seconds)), id);
        let mut keep = |n: u8, seconds| cache.keep(ZBytes::from([n]), ZBytes::new(), at(seconds));
        let times = [keep(1, 5), keep(2, 5), keep(3, 4), keep(4, 6)];
        assert!(times.is_sorted_by(|a, b| a < b));
        assert_eq!((times[0], times[3]), (at(5), at(6)));
        let kept: Vec<_> = cache.kept.iter().map(|kept| kept.payload.to_bytes()[0]).collect();
        assert_eq!(kept, [3, 4]);
    }
}
