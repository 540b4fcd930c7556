//! A live view of the members of the graph, made of tokens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::token::{Endpoint, Entity, EntityKind, Gid, TokenError};

/// The most entities that are kept; a robot has hundreds.
const MOST: usize = 100_000;

/// Everything in the graph, this node's own entities included.
#[derive(Default)]
pub struct Graph {
    entities: Mutex<Entities>,
    changed: Condvar,
    /// Counts changes.
    version: AtomicU64,
}

#[derive(Default)]
struct Entities {
    by_token: BTreeMap<String, Arc<Entity>>,
    by_gid: HashMap<Gid, Arc<Entity>>,
    /// Those that have an endpoint, by its absolute name.
    by_name: HashMap<String, Vec<Arc<Entity>>>,
}

/// Change of the view by a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenChange {
    New(Arc<Entity>),
    Known,
    /// There is no room for it.
    TooMany,
}

impl Graph {
    /// Another number after every change: a reader that has seen this one has seen all.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Everything there is.
    #[must_use]
    pub fn entities(&self) -> Vec<Arc<Entity>> {
        self.lock().by_token.values().cloned().collect()
    }

    /// Everything of one kind under one absolute name: the publishers of a topic, say.
    #[must_use]
    pub fn at(&self, name: &str, kind: EntityKind) -> Vec<Arc<Entity>> {
        self.under(name).into_iter().filter(|entity| entity.kind == kind).collect()
    }

    /// Everything under one absolute name, of whatever kind.
    pub(crate) fn under(&self, name: &str) -> Vec<Arc<Entity>> {
        self.lock().by_name.get(name).cloned().unwrap_or_default()
    }

    /// Returns true if an entity with an endpoint, as it was found here, is still there.
    #[must_use]
    pub fn has(&self, entity: &Arc<Entity>) -> bool {
        let Some(Endpoint { name, .. }) = &entity.endpoint else { return false };
        let entities = self.lock();
        // Not by its token: others may write theirs in another way than we do.
        let under = entities.by_name.get(name);
        under.is_some_and(|all| all.iter().any(|other| Arc::ptr_eq(other, entity)))
    }

    /// The sender of a message or request. Nothing says that a sender's gid is that of its token,
    /// but rmw_zenoh_cpp and this crate make it so.
    #[must_use]
    pub fn who(&self, gid: Gid) -> Option<Arc<Entity>> {
        self.lock().by_gid.get(&gid).cloned()
    }

    /// The absolute names of all nodes.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<String> {
        let entities = self.lock();
        let nodes = entities.by_token.values().filter(|e| e.kind == EntityKind::Node);
        nodes.map(|e| e.node_name()).collect()
    }

    /// All topics, each with what publishes and subscribes to it.
    #[must_use]
    pub fn topics(&self) -> BTreeMap<String, Vec<Arc<Entity>>> {
        self.named(&[EntityKind::Publisher, EntityKind::Subscription])
    }

    /// All services, each with its servers and clients.
    #[must_use]
    pub fn services(&self) -> BTreeMap<String, Vec<Arc<Entity>>> {
        self.named(&[EntityKind::Server, EntityKind::Client])
    }

    fn named(&self, kinds: &[EntityKind]) -> BTreeMap<String, Vec<Arc<Entity>>> {
        let mut named: BTreeMap<String, Vec<Arc<Entity>>> = BTreeMap::new();
        for entity in self.lock().by_token.values() {
            if let Some(Endpoint { name, .. }) = &entity.endpoint
                && kinds.contains(&entity.kind)
            {
                named.entry(name.clone()).or_default().push(Arc::clone(entity));
            }
        }
        named
    }

    /// Returns the result of `find`, called again whenever the graph changes; `None` when `timeout` is over.
    pub fn wait<T>(&self, timeout: Duration, find: impl Fn(&Self) -> Option<T>) -> Option<T> {
        let until = Instant::now() + timeout;
        loop {
            if let Some(found) = find(self) {
                return Some(found);
            }
            // A change between `find` and here is seen after a moment all the same.
            let left = until.checked_duration_since(Instant::now())?;
            let moment = left.min(Duration::from_millis(50));
            self.changed.wait_for(&mut self.lock(), moment);
        }
    }

    pub(crate) fn came(&self, token: &str) -> Result<TokenChange, TokenError> {
        let entity = Arc::new(Entity::parse(token)?);
        let mut entities = self.lock();
        if entities.by_token.contains_key(token) {
            return Ok(TokenChange::Known);
        }
        if entities.by_token.len() >= MOST {
            return Ok(TokenChange::TooMany);
        }
        entities.by_token.insert(token.to_owned(), Arc::clone(&entity));
        entities.by_gid.insert(Gid::of_token(token), Arc::clone(&entity));
        if let Some(Endpoint { name, .. }) = &entity.endpoint {
            entities.by_name.entry(name.clone()).or_default().push(Arc::clone(&entity));
        }
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
        Ok(TokenChange::New(entity))
    }

    pub(crate) fn went(&self, token: &str) {
        let mut entities = self.lock();
        let Some(entity) = entities.by_token.remove(token) else { return };
        entities.by_gid.remove(&Gid::of_token(token));
        if let Some(Endpoint { name, .. }) = &entity.endpoint
            && let Some(under) = entities.by_name.get_mut(name)
        {
            under.retain(|other| !Arc::ptr_eq(other, &entity));
            if under.is_empty() {
                entities.by_name.remove(name);
            }
        }
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Entities> {
        self.entities.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "@ros2_lv/0/a/0/0/NN/%/%r1/talker";
    const TALKER: &str = "@ros2_lv/0/a/0/10/MP/%/%r1/talker/%chatter/std_msgs::msg::dds_::String_/RIHS01_df/::,7:,:,:,,";
    const SERVER: &str =
        "@ros2_lv/0/a/0/11/SS/%/%r1/talker/%sum/a::srv::dds_::Sum_/RIHS01_e1/::,10:,:,:,,";

    #[test]
    fn the_view_follows_tokens_that_come_and_go() {
        let graph = Graph::default();
        for token in [NODE, TALKER, SERVER] {
            assert!(matches!(graph.came(token), Ok(TokenChange::New(_))));
            assert_eq!(graph.came(token), Ok(TokenChange::Known));
        }
        assert_eq!(graph.nodes().into_iter().collect::<Vec<_>>(), ["/r1/talker"]);
        assert_eq!(graph.topics().keys().collect::<Vec<_>>(), ["/chatter"]);
        assert_eq!(graph.services().keys().collect::<Vec<_>>(), ["/sum"]);
        assert_eq!(graph.at("/chatter", EntityKind::Publisher).len(), 1);
        assert!(graph.at("/chatter", EntityKind::Subscription).is_empty());
        assert_eq!(graph.who(Gid::of_token(TALKER)).unwrap().kind, EntityKind::Publisher);
        let talker = graph.at("/chatter", EntityKind::Publisher).remove(0);
        assert!(graph.has(&talker));
        graph.went(TALKER);
        assert!(graph.topics().is_empty() && graph.under("/chatter").is_empty());
        assert!(!graph.has(&talker));
        let version = graph.version();
        graph.went(TALKER);
        assert_eq!(graph.version(), version, "nothing changed");
        assert_eq!(graph.who(Gid::of_token(TALKER)), None);
        assert_eq!(graph.entities().len(), 2);
        let version = graph.version();
        assert!(graph.came("@ros2_lv/0/a").is_err());
        assert_eq!(graph.came(NODE), Ok(TokenChange::Known));
        assert_eq!(graph.version(), version);
        graph.came(TALKER).unwrap();
        assert_ne!(graph.version(), version);
    }

    #[test]
    fn who_waits_is_told_of_a_change() {
        let graph = Arc::new(Graph::default());
        let found = std::thread::spawn({
            let graph = Arc::clone(&graph);
            move || graph.wait(Duration::from_secs(60), |g| g.topics().into_keys().next())
        });
        graph.came(TALKER).unwrap();
        assert_eq!(found.join().unwrap().as_deref(), Some("/chatter"));
        assert_eq!(graph.wait(Duration::ZERO, |g| g.services().into_keys().next()), None);
    }
}
