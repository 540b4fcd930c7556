//! What a node reports besides messages: refused types, broken messages, drops; each is counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::token::{Entity, TokenError};

/// Something that its owner should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Someone uses a name of ours with another type: nothing is exchanged with them.
    OtherType(OtherType),
    /// A message, request or response that could not be read, and was refused.
    Malformed {
        /// The topic or service.
        name: String,
        /// What was wrong with it.
        why: String,
    },
    /// A token that could not be read: someone whom this node cannot see.
    Token(TokenError),
    /// More messages, requests or tokens than there is room for: the oldest went.
    Dropped {
        /// The topic or service.
        name: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherType(other) => other.fmt(f),
            Self::Malformed { name, why } => {
                write!(f, "{name}: refused what cannot be read: {why}")
            }
            Self::Token(error) => error.fmt(f),
            Self::Dropped { name } => write!(f, "{name}: more than there is room for"),
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
    /// Whether data would go between the two if their types were the same. Zenoh's keys carry type
    /// and hash, so that without this nobody would say why nothing arrives.
    pub(crate) fn between(ours: &Arc<Entity>, theirs: &Arc<Entity>) -> Option<Self> {
        let (a, b) = (ours.endpoint.as_ref()?, theirs.endpoint.as_ref()?);
        let differ = (&a.dds_type, &a.hash) != (&b.dds_type, &b.hash);
        (ours.kind.meets(theirs.kind) && a.name == b.name && differ)
            .then(|| Self { ours: Arc::clone(ours), theirs: Arc::clone(theirs) })
    }

    /// What this node has.
    #[must_use]
    pub fn ours(&self) -> &Entity {
        &self.ours
    }

    /// What the other one has.
    #[must_use]
    pub fn theirs(&self) -> &Entity {
        &self.theirs
    }
}

impl fmt::Display for OtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(ours), Some(theirs)) = (&self.ours.endpoint, &self.theirs.endpoint) else {
            return Ok(());
        };
        write!(
            f,
            "{}: the {} of {} is refused: ",
            ours.name,
            self.theirs.kind,
            self.theirs.node_name()
        )?;
        if ours.dds_type == theirs.dds_type {
            write!(
                f,
                "its {} has the hash {}, ours {}: the definitions of that type differ",
                ours.dds_type, theirs.hash, ours.hash
            )
        } else {
            write!(f, "its type is {}, ours {}", theirs.dds_type, ours.dds_type)
        }
    }
}

/// How often each event came about since the node was made.
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

/// Whom to tell. Called on the thread where it came about: it must not hold that up.
pub type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

/// Counts events, logs them, and passes them on.
pub(crate) struct Events {
    on_event: OnEvent,
    counts: [AtomicU64; 4],
}

impl Events {
    pub(crate) fn new(on_event: OnEvent) -> Self {
        Self { on_event, counts: Default::default() }
    }

    pub(crate) fn report(&self, event: &Event) {
        let index = match event {
            Event::OtherType(_) => 0,
            Event::Malformed { .. } => 1,
            Event::Token(_) => 2,
            Event::Dropped { .. } => 3,
        };
        let count = self.counts[index].fetch_add(1, Ordering::Relaxed) + 1;
        // Whatever comes at the rate of messages is logged ever more rarely.
        if index == 0 || count.is_power_of_two() {
            tracing::warn!(count, "{event}");
        }
        (self.on_event)(event);
    }

    pub(crate) fn counts(&self) -> Counts {
        let [other_types, malformed, tokens, dropped] =
            [0, 1, 2, 3].map(|i| self.counts[i].load(Ordering::Relaxed));
        Counts { other_types, malformed, tokens, dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let events = Events::new(Arc::new(|_| ()));
        for _ in 0..3 {
            events.report(&Event::Malformed { name: "/a".into(), why: "short".into() });
        }
        events.report(&Event::Dropped { name: "/a".into() });
        assert_eq!(events.counts(), Counts { malformed: 3, dropped: 1, ..Counts::default() });
    }
}
