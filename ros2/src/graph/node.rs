//! The node itself: its names, its token, its view of the graph, and what its entities share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard, RwLock};
use zenoh::liveliness::LivelinessToken;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Session, Wait};

use super::client::Calls;
use super::describe;
use super::distribution::Distribution;
use super::error::NodeError;
use super::event::{Counts, Event, Events, OnEvent, OtherType};
use super::qos::Qos;
use super::queue::Room;
use super::refusals::Refused;
use super::remap::{Names, Rule};
use super::service::Server;
use super::token::{Endpoint, Entity, EntityKind, Gid, all_tokens};
use super::view::{Graph, TokenChange};
use crate::interface::{Registry, TypeName};
use crate::stamp::Stamp;

/// Returns the time, in the form of the source times of messages.
pub type Clock = Arc<dyn Fn() -> Stamp + Send + Sync>;

/// The types that a node knows, shared with the code that adds to them.
pub type Types = Arc<RwLock<Registry>>;

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its name.
    pub name: String,
    /// Its namespace; `/` is the root.
    pub namespace: String,
    /// `ROS_DOMAIN_ID`.
    pub domain: u32,
    /// The distribution whose wire format is spoken.
    pub distribution: Distribution,
    /// Remapping rules; the first that fits wins.
    pub remap: Vec<Rule>,
    /// Bytes that a request to one of its services may have.
    pub most_request: usize,
}

/// Bytes of messages and requests that wait in all queues of a node together. Beside it each queue has 64 KiB
/// of its own.
const MOST_WAITING: usize = 128 << 20;

impl NodeConfig {
    /// A node of this name in the root namespace of domain 0, as Jazzy has it.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            namespace: "/".into(),
            domain: 0,
            distribution: Distribution::default(),
            remap: Vec::new(),
            most_request: 8 << 20,
        }
    }
}

/// A node. Dropping it takes everything it has out of the graph, also what is still held elsewhere.
pub struct Node {
    pub(super) shared: Arc<Shared>,
    held: Arc<Declarations>,
    types: Types,
    /// `~/get_type_description`; dropped first, for its thread.
    describing: Option<Server>,
}

/// State shared by the entities of a node.
pub(super) struct Shared {
    pub(super) session: Session,
    pub(super) names: Names,
    pub(super) clock: Clock,
    pub(super) events: Events,
    pub(super) calls: Calls,
    pub(super) room: Arc<Room>,
    pub(super) most_request: usize,
    graph: Arc<Graph>,
    domain: u32,
    distribution: Distribution,
    node_id: String,
    /// Entities of this node, to compare others with and to close.
    local: Mutex<Local>,
}

#[derive(Default)]
struct Local {
    closed: bool,
    /// By the name of their endpoint: only of one name two can be of different types.
    entities: HashMap<String, Vec<Arc<Entity>>>,
    held: Vec<Weak<Declarations>>,
    /// Ids of our entities and tokens of those whose type was refused, so that each pair is told of
    /// once.
    refused: HashSet<(String, String)>,
}

/// Numbers for entities. Zenoh sessions may be shared by several nodes of one process, and rmw_zenoh
/// wants the numbers unique in their session.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Node {
    /// Joins the graph over `session`.
    ///
    /// # Errors
    /// A name is none that ROS allows, or Zenoh refused a declaration.
    pub fn open(
        session: &Session,
        config: NodeConfig,
        types: Types,
        clock: Clock,
        on_event: OnEvent,
    ) -> Result<Self, NodeError> {
        let names = Names::new(&config.name, &config.namespace, config.remap)?;
        let shared = Arc::new(Shared {
            session: session.clone(),
            names,
            events: Events::new(on_event, clock.clone()),
            clock,
            calls: Calls::default(),
            room: Room::new(MOST_WAITING),
            most_request: config.most_request,
            graph: Arc::default(),
            domain: config.domain,
            distribution: config.distribution,
            node_id: NEXT.fetch_add(1, Ordering::Relaxed).to_string(),
            local: Mutex::default(),
        });
        let held = Arc::new(Declarations::default());
        let watching = session
            .liveliness()
            .declare_subscriber(all_tokens(config.domain))
            .history(true)
            .callback({
                let shared = Arc::downgrade(&shared);
                move |sample| {
                    if let Some(shared) = shared.upgrade() {
                        shared.seen(&sample);
                    }
                }
            })
            .wait()
            .map_err(NodeError::zenoh("watch the graph"))?;
        held.hold(watching);
        shared.announce(EntityKind::Node, None, &held)?;
        let mut node = Self { shared, held, types, describing: None };
        if config.distribution.describes_types() {
            node.describing = Some(describe::serve(&node)?);
        }
        Ok(node)
    }

    /// The node's names after remapping.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.shared.names
    }

    /// The members of the graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.shared.graph
    }

    /// Returns the number of events of each kind.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.events.counts()
    }

    /// Refusals and drops under each name that this node listens to, publishes, serves or
    /// asks, if anything was.
    #[must_use]
    pub fn refused(&self) -> BTreeMap<(EntityKind, String), Refused> {
        self.shared.events.refused()
    }

    /// The types that are known.
    #[must_use]
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// Returns the distribution whose wire format this node speaks.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        self.shared.distribution
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.hang_up();
        self.describing = None;
        let mut local = self.shared.lock();
        local.closed = true;
        let held = std::mem::take(&mut local.held);
        drop(local);
        for held in held.iter().filter_map(Weak::upgrade) {
            held.let_go();
        }
        self.held.let_go();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of domain {}", self.shared.names.full(), self.shared.domain)
    }
}

impl Shared {
    /// The endpoint of this node for a type under an absolute name.
    pub(super) fn endpoint(&self, name: String, ty: &TypeName, rihs: &str, qos: Qos) -> Endpoint {
        let hash = self.distribution.hash(rihs).to_owned();
        Endpoint { name, dds_type: ty.dds(), hash, qos }
    }

    /// The key of an endpoint's data.
    pub(super) fn key(&self, endpoint: &Endpoint) -> String {
        endpoint.key(self.domain)
    }

    /// Puts an entity of this node into the graph until `held` lets go. Comes last of what an entity declares: a node
    /// that sees it may use it.
    pub(super) fn announce(
        self: &Arc<Self>,
        kind: EntityKind,
        endpoint: Option<Endpoint>,
        held: &Arc<Declarations>,
    ) -> Result<Gid, NodeError> {
        let id = match kind {
            EntityKind::Node => self.node_id.clone(),
            _ => NEXT.fetch_add(1, Ordering::Relaxed).to_string(),
        };
        let entity = Arc::new(Entity {
            domain: self.domain,
            session: self.session.zid().to_string(),
            node_id: self.node_id.clone(),
            id,
            kind,
            enclave: "/".into(),
            namespace: self.names.namespace().into(),
            node: self.names.node().into(),
            endpoint,
        });
        let token = entity.token();
        let declared = self
            .session
            .liveliness()
            .declare_token(token.clone())
            .wait()
            .map_err(NodeError::zenoh("declare a liveliness token"))?;
        let announced = Announced {
            declared: Some(declared),
            token: token.clone(),
            entity: Arc::clone(&entity),
            shared: Arc::clone(self),
        };
        held.hold(announced);
        let mut local = self.lock();
        if local.closed {
            return Err(NodeError::Closed);
        }
        // Now and then, or a thousand entities would cost a million looks.
        if local.held.len().is_power_of_two() {
            local.held.retain(|held| held.strong_count() > 0);
        }
        local.held.push(Arc::downgrade(held));
        let name = entity.endpoint.as_ref().map(|endpoint| endpoint.name.as_str());
        if let Some(name) = name {
            local.entities.entry(name.to_owned()).or_default().push(Arc::clone(&entity));
        }
        drop(local);
        // One's own tokens need no way over the network to be known.
        if self.graph.came(&token).is_err() {
            return Err(NodeError::Zenoh("declare", format!("{token} cannot be read back")));
        }
        for other in name.map(|name| self.graph.under(name)).unwrap_or_default() {
            self.compare(&entity, &other);
        }
        Ok(Gid::of_token(&token))
    }

    fn seen(&self, sample: &Sample) {
        let token = sample.key_expr().as_str();
        if sample.kind() == SampleKind::Delete {
            self.graph.went(token);
            self.lock().refused.retain(|(_, theirs)| theirs != token);
            return;
        }
        match self.graph.came(token) {
            Ok(TokenChange::New(theirs)) => {
                let Some(Endpoint { name, .. }) = &theirs.endpoint else { return };
                let local = self.lock().entities.get(name).cloned().unwrap_or_default();
                for ours in &local {
                    self.compare(ours, &theirs);
                }
            }
            Ok(TokenChange::Known) => {}
            Ok(TokenChange::TooMany) => {
                let name = "tokens of the graph".into();
                self.events.report(&Event::Dropped { kind: EntityKind::Node, name });
            }
            Err(error) => self.events.report(&Event::Token(error)),
        }
    }

    fn compare(&self, ours: &Arc<Entity>, theirs: &Arc<Entity>) {
        if let Some(other) = OtherType::between(ours, theirs)
            && self.lock().refused.insert((ours.id.clone(), theirs.token()))
        {
            self.events.report(&Event::OtherType(other));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Local> {
        self.local.lock()
    }
}

/// A token of ours in the graph.
struct Announced {
    declared: Option<LivelinessToken>,
    token: String,
    entity: Arc<Entity>,
    shared: Arc<Shared>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        // First the token, that the view does not learn of it again.
        drop(self.declared.take());
        self.shared.graph.went(&self.token);
        let mut local = self.shared.lock();
        if let Some(Endpoint { name, .. }) = &self.entity.endpoint
            && let Some(ours) = local.entities.get_mut(name)
        {
            ours.retain(|entity| !Arc::ptr_eq(entity, &self.entity));
            if ours.is_empty() {
                local.entities.remove(name);
            }
        }
        local.refused.retain(|(ours, _)| *ours != self.entity.id);
    }
}

/// An entity's declarations in Zenoh. They go when the entity is dropped, or when its node is.
#[derive(Default)]
pub(super) struct Declarations(Mutex<Vec<Box<dyn Send>>>);

impl Declarations {
    /// Holds on to something whose drop undeclares it.
    pub(super) fn hold(&self, part: impl Send + 'static) {
        self.0.lock().push(Box::new(part));
    }

    /// Lets go of everything, the last first: the token before what it stands for.
    pub(super) fn let_go(&self) {
        let parts = std::mem::take(&mut *self.0.lock());
        parts.into_iter().rev().for_each(drop);
    }
}

impl Drop for Declarations {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Does something when it is dropped.
pub(super) struct OnDrop<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
