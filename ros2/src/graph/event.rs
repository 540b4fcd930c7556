//! Reports of a node besides messages: refused types, broken messages, drops; each is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::node::Clock;
use super::refusals::{Refusals, Refused};
use super::token::{Entity, EntityKind, TokenError};

/// Something that its owner should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A node uses a name of ours with another type: nothing is exchanged with them.
    OtherType(OtherType),
    /// A message, request or response that could not be read, and was refused.
    Malformed {
        /// This node's entity of the name.
        kind: EntityKind,
        /// The topic or service.
        name: String,
        /// The fault.
        why: String,
    },
    /// A token that could not be read: an entity that this node cannot see.
    Token(TokenError),
    /// More messages or requests than there is room for: the oldest went. More tokens: the newest.
    Dropped {
        /// This node's entity of the name; a node for tokens.
        kind: EntityKind,
        /// The topic or service.
        name: String,
    },
}

impl Event {
    /// The name it came under, and what this node has there; none for tokens.
    pub(super) fn under(&self) -> Option<(EntityKind, &str)> {
        match self {
            Self::OtherType(other) => Some((other.ours.kind, &other.ours.endpoint.as_ref()?.name)),
            Self::Malformed { kind, name, .. } | Self::Dropped { kind, name } => {
                (*kind != EntityKind::Node).then_some((*kind, name.as_str()))
            }
            Self::Token(_) => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherType(other) => other.fmt(f),
            Self::Malformed { name, why, .. } => {
                write!(f, "{name}: refused what cannot be read: {why}")
            }
            Self::Token(error) => error.fmt(f),
            Self::Dropped { name, .. } => write!(f, "{name}: more than there is room for"),
        }
    }
}

/// Two ends of one name whose types differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherType {
    ours: Arc<Entity>,
    theirs: Arc<Entity>,
}

impl OtherType {
    /// True if data would go between the two if their types were the same. Zenoh's keys carry type
    /// and hash, so that without this nothing would say why no data arrives.
    pub(crate) fn between(ours: &Arc<Entity>, theirs: &Arc<Entity>) -> Option<Self> {
        let (a, b) = (ours.endpoint.as_ref()?, theirs.endpoint.as_ref()?);
        let differ = (&a.dds_type, &a.hash) != (&b.dds_type, &b.hash);
        (ours.kind.meets(theirs.kind) && a.name == b.name && differ)
            .then(|| Self { ours: Arc::clone(ours), theirs: Arc::clone(theirs) })
    }

    /// This node's side.
    #[must_use]
    pub fn ours(&self) -> &Entity {
        &self.ours
    }

    /// The other side.
    #[must_use]
    pub fn theirs(&self) -> &Entity {
        &self.theirs
    }

    /// The refused node and the difference between the two, without the name they share.
    #[must_use]
    pub fn reason(&self) -> String {
        let (Some(ours), Some(theirs)) = (&self.ours.endpoint, &self.theirs.endpoint) else {
            return String::new();
        };
        let who = format!("the {} of {} is refused", self.theirs.kind, self.theirs.node_name());
        if ours.dds_type == theirs.dds_type {
            format!(
                "{who}: its {} has the hash {}, ours {}: the definitions of that type differ",
                ours.dds_type, theirs.hash, ours.hash
            )
        } else {
            format!("{who}: its type is {}, ours {}", theirs.dds_type, ours.dds_type)
        }
    }
}

impl fmt::Display for OtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.ours.endpoint.as_ref().map_or("", |endpoint| &endpoint.name);
        write!(f, "{name}: {}", self.reason())
    }
}

/// Number of events of each kind since the node was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// [`Event::OtherType`].
    pub other_types: u64,
    /// [`Event::Malformed`].
    pub malformed: u64,
    /// [`Event::Token`].
    pub tokens: u64,
    /// [`Event::Dropped`].
    pub dropped: u64,
}

/// The listener. Called on the thread where it came about: it must not hold that up.
pub type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

/// Counts events, logs them, and passes them on.
pub(crate) struct Events {
    on_event: OnEvent,
    clock: Clock,
    counts: [AtomicU64; 4],
    refusals: Mutex<Refusals>,
}

impl Events {
    pub(crate) fn new(on_event: OnEvent, clock: Clock) -> Self {
        Self { on_event, clock, counts: Default::default(), refusals: Mutex::default() }
    }

    pub(crate) fn report(&self, event: &Event) {
        let index = match event {
            Event::OtherType(_) => 0,
            Event::Malformed { .. } => 1,
            Event::Token(_) => 2,
            Event::Dropped { .. } => 3,
        };
        let all = self.counts[index].fetch_add(1, Ordering::Relaxed) + 1;
        let now = (self.clock)();
        let count = self.refusals().note(event, now).unwrap_or(all);
        // Whatever comes at the rate of messages is logged ever more rarely, each name for itself.
        if count.is_power_of_two() {
            tracing::warn!(count, "{event}");
        }
        (self.on_event)(event);
    }

    pub(crate) fn counts(&self) -> Counts {
        let [other_types, malformed, tokens, dropped] =
            [0, 1, 2, 3].map(|i| self.counts[i].load(Ordering::Relaxed));
        Counts { other_types, malformed, tokens, dropped }
    }

    pub(crate) fn refused(&self) -> BTreeMap<(EntityKind, String), Refused> {
        self.refusals().all()
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::Stamp;

    const TALKER: &str = "@ros2_lv/0/a/0/10/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/RIHS01_df/::,7:,:,:,,";

    fn entity(token: &str) -> Arc<Entity> {
        Arc::new(Entity::parse(token).unwrap())
    }

    fn between(ours: &str) -> Option<String> {
        OtherType::between(&entity(ours), &entity(TALKER)).map(|other| other.to_string())
    }

    #[test]
    fn another_type_or_definition_under_a_name_of_ours_is_told() {
        let same = TALKER.replace("MP", "MS").replace("talker", "us");
        assert_eq!(between(&same), None);
        assert_eq!(
            between(&same.replace("RIHS01_df", "RIHS01_aa")).unwrap(),
            "/chatter: the publisher of /talker is refused: its std_msgs::msg::dds_::String_ has \
             the hash RIHS01_df, ours RIHS01_aa: the definitions of that type differ"
        );
        assert_eq!(
            between(&same.replace("String_", "Int32_")).unwrap(),
            "/chatter: the publisher of /talker is refused: its type is \
             std_msgs::msg::dds_::String_, ours std_msgs::msg::dds_::Int32_"
        );
    }

    #[test]
    fn who_exchanges_nothing_with_us_may_have_any_type() {
        let other = TALKER.replace("String_", "Int32_");
        assert_eq!(between(&other), None, "two publishers");
        assert_eq!(between(&other.replace("MP", "MS").replace("chatter", "else")), None);
        assert_eq!(between(&other.replace("MP", "SC")), None);
        assert_eq!(between("@ros2_lv/0/a/0/0/NN/%/%/us"), None);
    }

    #[test]
    fn events_are_counted_by_their_kind() {
        let events = Events::new(Arc::new(|_| ()), Arc::new(|| Stamp::ZERO));
        let (kind, name) = (EntityKind::Server, "/a".to_owned());
        for _ in 0..3 {
            let (name, why) = (name.clone(), "short".to_owned());
            events.report(&Event::Malformed { kind, name, why });
        }
        events.report(&Event::Dropped { kind, name: name.clone() });
        let tokens = "tokens of the graph".to_owned();
        events.report(&Event::Dropped { kind: EntityKind::Node, name: tokens });
        events.report(&Event::OtherType(OtherType {
            ours: entity(&TALKER.replace("MP", "MS")),
            theirs: entity(&TALKER.replace("String_", "Int32_")),
        }));
        let expected = Counts { malformed: 3, dropped: 2, other_types: 1, tokens: 0 };
        assert_eq!(events.counts(), expected);
        let refused = events.refused();
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert_eq!(refused[&(kind, name)].malformed, 3);
        let topic = &refused[&(EntityKind::Subscription, "/chatter".to_owned())];
        assert!(topic.last.as_ref().unwrap().1.contains("its type is std_msgs::msg::dds_::Int32_"));
    }
}
