//! Decisions about messages, and how often each was made.

use std::collections::BTreeMap;

use omir_core::value::{Map, Value};

use crate::stamp::Stamp;

/// Decision about a message, or about one element of its list.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It is to be remembered.
    Keep(Box<KeptResource>),
    /// It is a known thing seen again, which is counted for now and told later.
    Merged {
        /// Number of sights of the thing by now.
        count: u64,
    },
    /// Nothing.
    Dropped(Reason),
    /// The message has so many elements more than one may bring: nothing.
    Beyond(u64),
    /// Not decided: its transform is still to come. Nothing has changed; call
    /// [`Rules::retry`](super::Rules::retry).
    Wait(Wait),
}

/// A resource to be remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptResource {
    /// The resource, ready for `remember`.
    pub resource: Value,
    /// Entities it refers to. To be stored in the same request, where they are not known yet: what is
    /// known of them must not be lost for a bare name.
    pub about: Vec<Value>,
    /// Number of sights that it reports for the first time, this one included.
    pub seen: u64,
    /// True if the rule hands out this id for the first time since it began; for counting. Something may
    /// be stored under it all the same, from before a restart or by others: always store
    /// [`folded`](super::folded).
    pub is_first: bool,
    /// The reason, if it has no place in the fixed frame though it should.
    pub unplaced: Option<String>,
    /// Time at which the sight came, if it was published just then.
    pub heard: Option<Stamp>,
}

/// `Type/id` of a resource.
pub fn reference(resource: &Value) -> Option<String> {
    let text = |name| resource.get(name).and_then(Value::as_str);
    Some(format!("{}/{}", text("resourceType")?, text("id")?))
}

/// Sights of a thing since its memory was written, with the last of them.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreportedSightings {
    /// The resource, as `Type/id`.
    pub reference: String,
    /// Number of sights that the memory does not report yet.
    pub seen: u64,
    /// Time at which the last of them happened.
    pub last: Stamp,
    /// Time at which that came, if it was published just then.
    pub heard: Option<Stamp>,
    /// Its memory's new contents: place, text and all else.
    pub late: Option<Box<KeptResource>>,
}

/// A message that waits for its transform.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// The rule to be asked again.
    pub rule: usize,
    /// The time on the robot's clock at which it is worth to ask again.
    pub expected: Stamp,
    /// The missing transform.
    pub reason: String,
}

/// The reason why a message was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Not one of the levels.
    Level,
    /// A condition does not hold.
    Condition,
    /// Nothing changed or moved enough, and no limit was crossed.
    Unchanged,
    /// Too soon after the last.
    TooSoon,
    /// The rule made enough new memories in this hour.
    TooMany,
    /// No place in the fixed frame.
    NoTransform,
    /// The robot does not know where it is, by what the rule asks for.
    NotLocalised,
    /// The type has not the fields that the rule names.
    WrongType,
    /// A name is empty, or an element is not there.
    NoName,
    /// The pose is not finite, or the position not on the Earth.
    BadPose,
    /// The text is empty.
    NoText,
    /// It stands far back in a list that is too long.
    TooLong,
}

impl Reason {
    /// One word for counters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Condition => "condition",
            Self::Unchanged => "unchanged",
            Self::TooSoon => "too-soon",
            Self::TooMany => "too-many",
            Self::NoTransform => "no-transform",
            Self::NotLocalised => "not-localised",
            Self::WrongType => "wrong-type",
            Self::NoName => "no-name",
            Self::BadPose => "bad-pose",
            Self::NoText => "no-text",
            Self::TooLong => "too-long",
        }
    }
}

/// Counters of a topic, for `status`. Messages count as received once; the rest counts elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages.
    pub received: u64,
    /// Memories made.
    pub kept: u64,
    /// Memories of known things that were written again.
    pub updated: u64,
    /// Sights of known things that were only counted.
    pub merged: u64,
    /// Messages that had to wait for a transform.
    pub waited: u64,
    /// Memories kept without a place in the fixed frame, though they have one.
    pub unplaced: u64,
    /// Messages that were no message of their type.
    pub malformed: u64,
    /// Drops, by reason.
    pub dropped: BTreeMap<Reason, u64>,
}

impl Counters {
    pub(super) fn count(&mut self, decision: &Decision) {
        if let Decision::Keep(kept) = decision {
            self.unplaced += u64::from(kept.unplaced.is_some());
        }
        match decision {
            Decision::Keep(kept) if kept.is_first => self.kept += 1,
            Decision::Keep(_) => self.updated += 1,
            Decision::Merged { .. } => self.merged += 1,
            Decision::Dropped(reason) => *self.dropped.entry(*reason).or_default() += 1,
            Decision::Beyond(count) => *self.dropped.entry(Reason::TooLong).or_default() += count,
            Decision::Wait(_) => {}
        }
    }

    /// As `status` shows them.
    pub fn to_value(&self) -> Value {
        let dropped: Map =
            self.dropped.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        let mut map = Map::new();
        map.insert("received", self.received);
        map.insert("kept", self.kept);
        map.insert("updated", self.updated);
        map.insert("merged", self.merged);
        map.insert("waited", self.waited);
        map.insert("unplaced", self.unplaced);
        map.insert("malformed", self.malformed);
        map.insert("dropped", dropped);
        Value::Object(map)
    }
}
