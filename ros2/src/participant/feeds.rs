//! The subscriptions and their types: the topics that rules name, matched with those of the graph.
//!
//! A topic that a rule names with a type that is known is subscribed to at once, so that `ros2 topic info` shows the
//! subscription. Everything else waits for a publisher: its token tells type, hash and quality of service, and a type
//! that is not known is asked of its node.
//!
//! Every node in the graph may announce what it likes: how many topics are listened to is bounded, a node
//! that does not answer is asked once for all its topics, and what can be listened to without a question
//! never waits for one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Context;
use crate::graph::{
    CallError, DescribeError, Durability, Entity, EntityKind, Gid, Node, Qos, Received,
    Subscription,
};
use crate::interface::{MessageType, TypeName};
use crate::rules::Interest;
use crate::stamp::Stamp;

/// Interval between two looks at the graph.
const LOOK: Duration = Duration::from_millis(500);
/// Time that a node has to describe a type.
const DESCRIBE: Duration = Duration::from_secs(2);
/// The pause before a type that could not be had is asked for again.
const AGAIN: Duration = Duration::from_secs(30);
/// Publishers of one topic that are remembered by their last message.
const MOST_MARKS: usize = 1000;
/// Most topics that are subscribed to, each with a thread of its own, or remembered as refused.
const MOST: usize = 200;

/// A topic with one type: there may be two under one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Feed {
    /// As the rules call it, before remapping.
    topic: String,
    dds_type: String,
    hash: String,
}

/// State of a feed.
struct State {
    what: Reception,
    /// True if a rule names it with its type: then it stays, with or without publishers.
    is_named: bool,
    /// The time since which no node publishes it.
    gone: Option<Instant>,
}

/// The last of each publisher's messages that were delivered: number and time of sending.
type Marks = HashMap<Gid, (i64, Stamp)>;

/// Messages delivered by an earlier subscription to the same feed.
#[derive(Default)]
struct DeliveredBefore {
    marks: Marks,
    /// Time at which it stopped listening. Without an earlier one: `None`.
    until: Option<Stamp>,
}

impl DeliveredBefore {
    /// Returns true if the earlier subscription delivered this message.
    fn includes(&self, received: &Received) -> bool {
        match received.publisher {
            Some(publisher) => self.marks.get(&publisher).is_some_and(|(sequence, source)| {
                received.sequence <= *sequence && received.source <= *source
            }),
            // A message without an attachment has no number: its time of arrival decides.
            None => !received.is_kept && self.until.is_some_and(|until| received.received < until),
        }
    }
}

enum Reception {
    /// It is listened to.
    Heard {
        is_latched: bool,
        ty: Arc<MessageType>,
        delivered: Arc<Mutex<Marks>>,
        subscription: Subscription,
    },
    /// It could not be. Nodes that publish it and were asked for the type since `at`.
    Refused { at: Instant, why: String, asked: HashSet<String> },
}

impl State {
    /// Returns true if it is time to try again what could not be listened to.
    fn is_due(&self) -> bool {
        matches!(self.what, Reception::Refused { at, .. } if at.elapsed() >= AGAIN)
    }
}

/// A node publishes what a rule wants.
struct FeedOffer {
    feed: Feed,
    name: TypeName,
    publisher: Arc<Entity>,
}

/// Actions that follow a look at the graph.
enum Next {
    Stop,
    Wait,
    Look,
}

/// All that is subscribed to by the rules. Dropping it ends that.
pub(super) struct Feeds {
    node: Arc<Node>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// True if to stop, and the waker for it.
#[derive(Default)]
struct Stop {
    is_asked: Mutex<bool>,
    waker: Condvar,
}

impl Stop {
    fn ask(&self) {
        *self.is_asked.lock() = true;
        self.waker.notify_all();
    }

    /// Waits so long at most; whether to stop.
    fn wait(&self, pause: Duration) -> bool {
        let mut is_asked = self.is_asked.lock();
        self.waker.wait_while_for(&mut is_asked, |is_asked| !*is_asked, pause);
        *is_asked
    }
}

impl Feeds {
    /// Starts to look at the graph.
    pub(super) fn start(node: Arc<Node>, context: Arc<Context>) -> std::io::Result<Self> {
        let stop = Arc::<Stop>::default();
        let looker = FeedDiscovery {
            node: node.clone(),
            context,
            stop: stop.clone(),
            feeds: HashMap::new(),
            silent: HashMap::new(),
            unknown: BTreeMap::new(),
            others: BTreeMap::new(),
            is_full: false,
            seen: None,
        };
        let thread = std::thread::Builder::new()
            .name("omird-ros2-graph".into())
            .spawn(move || looker.run())?;
        Ok(Self { node, stop, thread: Some(thread) })
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        self.stop.ask();
        // A node that keeps the question for what a type of its is holds up no stop.
        self.node.hang_up();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that follows the ROS graph panicked");
        }
    }
}

struct FeedDiscovery {
    node: Arc<Node>,
    context: Arc<Context>,
    stop: Arc<Stop>,
    feeds: HashMap<Feed, State>,
    /// Nodes that did not describe a type, and when they were asked.
    silent: HashMap<String, Instant>,
    /// Topics that rules name with a type that is unknown here, and the reason.
    unknown: BTreeMap<String, String>,
    /// Topics that were passed over in this look, and why.
    others: BTreeMap<String, String>,
    /// True if it was said that there are too many.
    is_full: bool,
    /// The version of the graph that was looked at.
    seen: Option<u64>,
}

impl FeedDiscovery {
    fn run(mut self) {
        self.hear_what_is_named();
        loop {
            let pause = match self.look() {
                Next::Stop => break,
                Next::Wait => LOOK,
                Next::Look => Duration::ZERO,
            };
            if self.stop.wait(pause) {
                break;
            }
        }
        // All at once: each ends by itself, and only then one after the other is waited for.
        for state in self.feeds.values() {
            if let Reception::Heard { subscription, .. } = &state.what {
                subscription.close();
            }
        }
    }

    /// Topics that rules name in full, with a type that is known.
    fn hear_what_is_named(&mut self) {
        // A set: a rule may be for what another asks for.
        let named: BTreeSet<(String, TypeName)> = {
            let ingest = self.context.ingest();
            let rules = ingest.rules.topics();
            rules
                .filter(|rule| rule.topic.is_exact())
                .filter_map(|rule| Some((rule.topic.as_str().to_owned(), rule.type_name.clone()?)))
                .chain(ingest.rules.localisers().map(|(topic, ty)| (topic.to_owned(), ty.clone())))
                .collect()
        };
        for (topic, name) in named {
            let known = {
                let types = self.node.types().read();
                types.message(&name.to_string())
            };
            match known {
                Ok(ty) => {
                    let feed = Feed { topic, dds_type: name.dds(), hash: self.hash(&ty) };
                    self.hear(feed, &ty, Qos::DEFAULT, true);
                }
                Err(error) => {
                    let why = format!("{error}; nobody publishes it yet who could tell");
                    tracing::info!(topic, "not listened to yet: {why}");
                    self.unknown.insert(topic, why);
                }
            }
        }
    }

    /// Topics that others publish and a rule wants.
    fn look(&mut self) -> Next {
        let version = self.node.graph().version();
        self.silent.retain(|_, at| at.elapsed() < AGAIN);
        if self.seen == Some(version) && !self.feeds.values().any(State::is_due) {
            return Next::Wait;
        }
        self.others.clear();
        let mut wanted = Vec::new();
        for (name, entities) in self.node.graph().topics() {
            let Some(topic) = self.context.topic_of(&self.node, &name) else { continue };
            for entity in entities.into_iter().filter(|one| one.kind == EntityKind::Publisher) {
                wanted.extend(self.offer(&topic, entity));
            }
        }
        // First publishers that are gone: they make room for new ones.
        self.note_who_is_gone(&wanted.iter().map(|one| &one.feed).collect());
        // Then what can be listened to as it is.
        let mut questions = Vec::new();
        for offer in wanted {
            // It may have gone while others were considered.
            if self.node.graph().has(&offer.publisher) {
                questions.extend(self.consider(offer));
            }
            if self.stop.wait(Duration::ZERO) {
                return Next::Stop;
            }
        }
        // Then what must be asked for. That takes time, and others come meanwhile: some questions, and
        // another look. Types that were never asked for come before those that are asked for again.
        questions.sort_by_key(|offer| match &self.feeds.get(&offer.feed)?.what {
            Reception::Refused { at, .. } => Some(*at),
            Reception::Heard { .. } => None,
        });
        let is_asking = !questions.is_empty();
        let begun = Instant::now();
        for offer in questions {
            // Another question may have told all there is to know.
            if let Some(offer) = self.consider(offer) {
                self.ask(offer);
            }
            if begun.elapsed() >= LOOK || self.stop.wait(Duration::ZERO) {
                break;
            }
        }
        self.seen = (!is_asking).then_some(version);
        self.tell();
        if is_asking { Next::Look } else { Next::Wait }
    }

    /// A feed that no node publishes any more is still listened to, for a publisher that comes back should be heard
    /// from the first message on; but not if its topic has another type by now.
    fn note_who_is_gone(&mut self, present: &HashSet<&Feed>) {
        let changed: HashSet<&str> = present.iter().map(|feed| feed.topic.as_str()).collect();
        self.feeds.retain(|feed, state| {
            if present.contains(feed) || state.is_named {
                state.gone = None;
            } else {
                state.gone.get_or_insert_with(Instant::now);
            }
            // No publisher comes that could be asked about a topic that only a rule names.
            if !present.contains(feed)
                && let Reception::Refused { at, .. } = &mut state.what
            {
                *at = Instant::now();
            }
            let is_heard = matches!(state.what, Reception::Heard { .. });
            state.gone.is_none() || (is_heard && !changed.contains(feed.topic.as_str()))
        });
    }

    /// Says what is not listened to.
    fn tell(&self) {
        let refused = self.feeds.iter().filter_map(|(feed, state)| match &state.what {
            Reception::Refused { why, .. } => Some((feed.topic.clone(), why.clone())),
            Reception::Heard { .. } => None,
        });
        let is_found = |topic: &str| self.feeds.keys().any(|feed| feed.topic == topic);
        let unknown = self.unknown.iter().filter(|(topic, _)| !is_found(topic));
        let others = unknown.chain(&self.others).map(|(topic, why)| (topic.clone(), why.clone()));
        self.context.tell_refused(others.chain(refused).take(MOST).collect());
    }

    /// Returns the offer of a topic's publisher, if a rule wants it.
    fn offer(&mut self, topic: &str, publisher: Arc<Entity>) -> Option<FeedOffer> {
        let endpoint = publisher.endpoint.as_ref()?;
        // The participant does not subscribe to its own publishers.
        if self.node.names().full() == publisher.node_name() {
            return None;
        }
        let name = endpoint.dds_type.parse::<TypeName>().ok()?;
        match self.context.ingest().rules.interest(topic, &name) {
            Interest::None => return None,
            Interest::OtherType(wanted) => {
                let node = publisher.node_name();
                let why = format!("{node} publishes {name}, and the rule is for {wanted}");
                self.others.insert(topic.to_owned(), why);
                return None;
            }
            Interest::Wanted => {}
        }
        let feed = Feed {
            topic: topic.to_owned(),
            dds_type: endpoint.dds_type.clone(),
            hash: endpoint.hash.clone(),
        };
        Some(FeedOffer { feed, name, publisher })
    }

    /// From here on what is offered is listened to, if it can be. Comes back if its type must be asked for.
    fn consider(&mut self, offer: FeedOffer) -> Option<FeedOffer> {
        let endpoint = offer.publisher.endpoint.as_ref()?;
        let is_latched = endpoint.qos.durability == Durability::TransientLocal;
        let state = self.feeds.get(&offer.feed);
        let is_named = state.is_some_and(|state| state.is_named);
        let node = offer.publisher.node_name();
        match state.map(|state| (&state.what, state.is_due())) {
            // A publisher that keeps its last messages may come after others that do not.
            Some((Reception::Heard { is_latched: was, .. }, _)) if *was || !is_latched => {
                return None;
            }
            Some((Reception::Refused { asked, .. }, false)) if asked.contains(&node) => {
                return None;
            }
            _ => {}
        }
        let is_new = state.is_none();
        match self.known(&offer.feed, &offer.name) {
            Some(ty) if !is_new || self.make_room(true) => {
                self.hear(offer.feed, &ty, endpoint.qos, is_named);
            }
            None if !is_new || self.has_room() => {
                if !self.silent.contains_key(&node) {
                    return Some(offer);
                }
                let why = format!("{node} did not describe another type of its");
                self.refuse(offer.feed, why, node);
            }
            _ => self.pass_over(&offer.feed.topic),
        }
        None
    }

    /// Asks a publisher's node for the type, and listens.
    fn ask(&mut self, offer: FeedOffer) {
        let FeedOffer { feed, publisher, .. } = offer;
        let Some(endpoint) = &publisher.endpoint else { return };
        let is_named = self.feeds.get(&feed).is_some_and(|state| state.is_named);
        if !self.feeds.contains_key(&feed) && !self.make_room(false) {
            return;
        }
        match self.node.type_of_publisher(&publisher, DESCRIBE) {
            Ok(ty) => self.hear(feed, &ty, endpoint.qos, is_named),
            Err(DescribeError::Call { why: CallError::HungUp, .. }) => {}
            Err(error) => {
                let node = publisher.node_name();
                let Feed { topic, dds_type, hash } = &feed;
                tracing::warn!(
                    topic,
                    node,
                    "not listened to: {dds_type} with the hash {hash}: {error}"
                );
                if matches!(error, DescribeError::Call { .. }) {
                    self.silent.insert(node.clone(), Instant::now());
                }
                self.refuse(feed, error.to_string(), node);
            }
        }
    }

    /// There is no room for a topic that a rule wants.
    fn pass_over(&mut self, topic: &str) {
        let why = format!("{MOST} topics are listened to already; name fewer in the rules");
        if self.others.len() < MOST {
            self.others.insert(topic.to_owned(), why);
        }
        if !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!(
                topic,
                "not listened to: {MOST} topics are already; name fewer in the rules"
            );
        }
    }

    /// Returns true if one more feed may be taken in whose type is not known.
    fn has_room(&self) -> bool {
        self.feeds.len() < MOST || self.feeds.values().any(|state| state.gone.is_some())
    }

    /// Makes room for one more feed; returns true if there is some. If there are too many, the one goes that no node
    /// has published for the longest time; else, for one whose type `is_known`, one that could not be listened to.
    fn make_room(&mut self, is_known: bool) -> bool {
        if self.feeds.len() < MOST {
            return true;
        }
        let gone = self.feeds.iter().filter_map(|(feed, state)| Some((state.gone?, feed)));
        let longest = gone.min_by_key(|(since, _)| *since).map(|(_, feed)| feed);
        let mut refused = self.feeds.iter().filter(|(_, state)| {
            is_known && !state.is_named && matches!(state.what, Reception::Refused { .. })
        });
        let goes = longest.or_else(|| refused.next().map(|(feed, _)| feed)).cloned();
        goes.is_some_and(|feed| self.feeds.remove(&feed).is_some())
    }

    /// The type, if it is known with that hash.
    fn known(&self, feed: &Feed, name: &TypeName) -> Option<Arc<MessageType>> {
        // Of two types of one name only one is in the registry.
        if let Some(State { what: Reception::Heard { ty, .. }, .. }) = self.feeds.get(feed) {
            return Some(ty.clone());
        }
        let types = self.node.types().read();
        types.message(&name.to_string()).ok().filter(|ty| self.hash(ty) == feed.hash)
    }

    fn hear(&mut self, feed: Feed, ty: &Arc<MessageType>, offered: Qos, is_named: bool) {
        let depth = {
            let ingest = self.context.ingest();
            ingest.rules.queue_depth(&feed.topic, &ty.name)
        };
        let depth = depth.unwrap_or(self.context.queue_depth) as u64;
        let is_latched = offered.is_latched();
        let qos = Qos {
            depth,
            ..Qos {
                reliability: offered.reliability,
                durability: offered.durability,
                ..Qos::DEFAULT
            }
        };
        // The new subscription starts before the old one ends, so no message falls between them. Both
        // hear what arrives meanwhile: the new one waits for this lock until the old one has handed on
        // all it heard, and then leaves that out. The publishers may also have kept it for the new one.
        let before = self.feeds.remove(&feed);
        let heard_before = Arc::<Mutex<DeliveredBefore>>::default();
        let mut before_it = heard_before.lock();
        let delivered = Arc::<Mutex<Marks>>::default();
        let (context, node) = (self.context.clone(), self.node.graph().clone());
        let (topic, marks) = (feed.topic.clone(), delivered.clone());
        let earlier = heard_before.clone();
        let each = move |received: Received| {
            let (sequence, source) = (received.sequence, received.source);
            if earlier.lock().includes(&received) {
                return;
            }
            if let (false, Some(publisher)) = (is_latched, received.publisher) {
                let mut marks = marks.lock();
                if marks.len() >= MOST_MARKS && !marks.contains_key(&publisher) {
                    marks.clear();
                }
                marks.insert(publisher, (sequence, source));
            }
            let who = received.publisher.and_then(|who| node.who(who));
            let who = who.map(|entity| entity.node_name());
            context.observe(&topic, who, received);
        };
        let subscribed = self.node.subscribe(&feed.topic, ty, qos, each);
        if let Some(Reception::Heard { delivered, subscription, .. }) =
            before.map(|state| state.what)
        {
            before_it.until = Some((self.context.clock)());
            subscription.finish();
            before_it.marks = std::mem::take(&mut *delivered.lock());
        }
        drop(before_it);
        match subscribed {
            Ok(subscription) => {
                tracing::info!(topic = feed.topic, ty = %ty.name, "listening");
                let ty = ty.clone();
                let what = Reception::Heard { is_latched, ty, delivered, subscription };
                self.feeds.insert(feed, State { what, is_named, gone: None });
            }
            Err(error) => {
                tracing::warn!(%error, topic = feed.topic, "not listened to");
                let what = Reception::Refused {
                    at: Instant::now(),
                    why: error.to_string(),
                    asked: HashSet::new(),
                };
                self.feeds.insert(feed, State { what, is_named, gone: None });
            }
        }
    }

    /// A node that publishes it did not say what it is.
    fn refuse(&mut self, feed: Feed, why: String, node: String) {
        let what =
            Reception::Refused { at: Instant::now(), why: String::new(), asked: HashSet::new() };
        let state = self.feeds.entry(feed).or_insert(State { what, is_named: false, gone: None });
        let is_due = state.is_due();
        let Reception::Refused { at, why: said, asked } = &mut state.what else { return };
        if is_due {
            asked.clear();
        }
        (*at, *said) = (Instant::now(), why);
        asked.insert(node);
    }

    fn hash(&self, ty: &MessageType) -> String {
        self.node.distribution().hash(&ty.hash.to_rihs_string()).to_owned()
    }
}
