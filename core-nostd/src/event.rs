//! Kinds of events: `docs/keys.md`, "Events". The kind is a part of an event's key, and a field of a ROS message.

use core::fmt;
use core::str::FromStr;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A resource was stored for the first time.
    Recorded,
    /// A resource was stored again, changed.
    Updated,
    /// A resource was forgotten.
    Forgotten,
    /// Time has moved a record to another tier.
    Tier,
    /// A change was refused whose sender waits for no answer.
    Rejected,
    /// A damaged file is whole again.
    Repaired,
    /// Some of a file is lost. The rest is served.
    Lost,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Recorded,
        Self::Updated,
        Self::Forgotten,
        Self::Tier,
        Self::Rejected,
        Self::Repaired,
        Self::Lost,
    ];

    /// Returns the name in the key of the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Updated => "updated",
            Self::Forgotten => "forgotten",
            Self::Tier => "tier",
            Self::Rejected => "rejected",
            Self::Repaired => "repaired",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that no kind of event has, or one of a newer version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownEventKind;

impl fmt::Display for UnknownEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no kind of event has this name")
    }
}

impl core::error::Error for UnknownEventKind {}

impl FromStr for EventKind {
    type Err = UnknownEventKind;

    fn from_str(text: &str) -> Result<Self, UnknownEventKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownEventKind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read_as_it_is_written() {
        for kind in EventKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("tiers".parse::<EventKind>(), Err(UnknownEventKind));
    }
}
