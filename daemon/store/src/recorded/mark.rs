//! Marks: small state of the store, and the spans whose memories are not dated for good yet. A step of a log
//! ([`super::transaction`]) and the manifest of a segment hold it.

use std::ops::RangeInclusive;

use omir_core::value::{Map, Value};

use super::values::{int, object};

/// Small state of the store that must survive a power cut and belongs to no memory. Each is written
/// now and then, never for its own sake alone more often than a setting says.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Mark {
    /// The best wall clock known at the time of writing; microseconds since 1970.
    pub now: i64,
    /// Time since the machine started, suspend included; microseconds.
    pub monotonic: i64,
    /// Which start of the machine `monotonic` counts from; empty if the system has no name for it.
    pub boot_id: String,
    /// Bytes written to the card over the life of the store.
    pub written: u64,
    /// Bytes of the memories that came in over the life of the store, as stored.
    pub payload: u64,
    /// Until when tiers were moved and the moves announced; microseconds since 1970.
    pub swept: i64,
    /// When `written` began to count; microseconds since 1970, 0 until a clock was right.
    pub began: i64,
    /// The day that `today` counts for; microseconds since 1970.
    pub day: i64,
    /// Bytes that count for that day's budget.
    pub today: u64,
    /// The time that what cannot be undone went by; microseconds since 1970, 0 if none was noted.
    pub certain: i64,
    /// How far what lies on the card was read through for rot.
    pub scrub: Scrub,
    /// Spans without a clock whose memories are not all redated yet.
    pub untrusted: Vec<UntrustedInterval>,
}

/// How far a scrub is: all segments are read through once in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Scrub {
    /// When this round began; microseconds since 1970, 0 if none ever did.
    pub began: i64,
    /// All up to this transaction was read in this round.
    pub through: u64,
    /// When a round came to its end the last time; microseconds since 1970, 0 if none ever did.
    pub ended: i64,
}

/// A span of one boot of the machine in which nobody knew the time, or nothing said that the clock was
/// right. Microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct UntrustedInterval {
    /// Which start of the machine.
    pub boot_id: String,
    /// Nothing in it was recorded with an earlier order stamp; since 1970.
    pub since: i64,
    /// When it began, on the monotonic clock.
    pub from: i64,
    /// When it ended, on the monotonic clock; zero while it lasts.
    pub until: i64,
    /// Dating less the monotonic clock, in this span.
    pub before: i64,
    /// The same once the clock was set, if it was.
    pub after: Option<i64>,
    /// True if there was a clock that may have been right.
    pub coarse: bool,
}

impl UntrustedInterval {
    /// The times that dating showed in it; microseconds since 1970.
    pub fn dated(&self) -> RangeInclusive<i64> {
        self.before.saturating_add(self.from)..=self.before.saturating_add(self.until)
    }

    /// How far dating stepped at its end, if the clock was set.
    pub fn step(&self) -> Option<i64> {
        Some(self.after?.saturating_sub(self.before))
    }

    fn to_value(&self) -> Value {
        let mut members = vec![
            ("bootId", self.boot_id.as_str().into()),
            ("since", int(self.since)),
            ("from", int(self.from)),
            ("until", int(self.until)),
            ("before", int(self.before)),
        ];
        members.extend(self.after.map(|after| ("after", int(after))));
        members.extend(self.coarse.then_some(("coarse", Value::Bool(true))));
        object(&members)
    }

    fn from_map(map: &Map) -> Self {
        let micros = |name: &str| map.get(name).and_then(Value::as_i64).unwrap_or(0);
        Self {
            boot_id: map.get("bootId").and_then(Value::as_str).unwrap_or_default().to_owned(),
            since: micros("since"),
            from: micros("from"),
            until: micros("until"),
            before: micros("before"),
            after: map.get("after").and_then(Value::as_i64),
            coarse: map.get("coarse").and_then(Value::as_bool).unwrap_or(false),
        }
    }
}

/// The members of a mark that a log lists by position.
const STATE: [&str; 13] = [
    "now",
    "monotonic",
    "bootId",
    "written",
    "payload",
    "swept",
    "began",
    "day",
    "today",
    "certain",
    "scrubBegan",
    "scrubThrough",
    "scrubEnded",
];

impl Mark {
    /// As members of a map.
    pub fn members(&self) -> [(&'static str, Value); 14] {
        [
            ("now", int(self.now)),
            ("monotonic", int(self.monotonic)),
            ("bootId", self.boot_id.as_str().into()),
            ("written", int(self.written)),
            ("payload", int(self.payload)),
            ("swept", int(self.swept)),
            ("began", int(self.began)),
            ("day", int(self.day)),
            ("today", int(self.today)),
            ("certain", int(self.certain)),
            ("scrubBegan", int(self.scrub.began)),
            ("scrubThrough", int(self.scrub.through)),
            ("scrubEnded", int(self.scrub.ended)),
            (
                "unsettled",
                Value::Array(self.untrusted.iter().map(UntrustedInterval::to_value).collect()),
            ),
        ]
    }

    /// As members of a step of a log: a list in the order of [`STATE`], as there are many of these.
    pub(super) fn step(&self) -> Vec<(&'static str, Value)> {
        let members = self.members();
        let member = |name: &str| members.iter().find(|(other, _)| *other == name);
        let state = STATE.into_iter().filter_map(member).map(|(_, value)| value.clone());
        let mut step = vec![("state", Value::Array(state.collect()))];
        if !self.untrusted.is_empty() {
            step.extend(members.iter().filter(|(name, _)| *name == "unsettled").cloned());
        }
        step
    }

    /// Reads it from a map with members, or with the list of a step of a log; what is missing counts
    /// as zero.
    pub fn from_map(map: &Map) -> Self {
        let state = map.get("state").and_then(Value::as_array);
        let member = |name: &str| match state {
            Some(state) => state.get(STATE.iter().position(|other| *other == name)?),
            None => map.get(name),
        };
        let signed = |name: &str| member(name).and_then(Value::as_i64).unwrap_or(0);
        let unsigned = |name: &str| member(name).and_then(Value::as_u64).unwrap_or(0);
        Self {
            now: signed("now"),
            monotonic: signed("monotonic"),
            boot_id: member("bootId").and_then(Value::as_str).unwrap_or_default().to_owned(),
            written: unsigned("written"),
            payload: unsigned("payload"),
            swept: signed("swept"),
            began: signed("began"),
            day: signed("day"),
            today: unsigned("today"),
            certain: signed("certain"),
            scrub: Scrub {
                began: signed("scrubBegan"),
                through: unsigned("scrubThrough"),
                ended: signed("scrubEnded"),
            },
            untrusted: map
                .get("unsettled")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|span| Some(UntrustedInterval::from_map(span.as_object()?)))
                .collect(),
        }
    }

    /// Takes over a mark that was written later. The odometers only rise.
    pub fn follow(&mut self, later: &Mark) {
        let (written, payload) = (self.written, self.payload);
        self.clone_from(later);
        self.written = self.written.max(written);
        self.payload = self.payload.max(payload);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A mark with nothing left out.
    pub(crate) fn sample() -> Mark {
        Mark {
            now: 1_780_000_000_000_000,
            monotonic: 12_000_000,
            boot_id: "5d1c".into(),
            written: 400,
            payload: 150,
            swept: 1_779_000_000_000_000,
            began: 1_770_000_000_000_000,
            day: 1_779_926_400_000_000,
            today: 70,
            certain: 1_779_926_400_000_001,
            scrub: Scrub {
                began: 1_779_000_000_000_000,
                through: 99,
                ended: 1_778_000_000_000_000,
            },
            untrusted: vec![
                UntrustedInterval {
                    boot_id: "5d1c".into(),
                    since: 7,
                    ..UntrustedInterval::default()
                },
                UntrustedInterval {
                    from: 1,
                    until: 2,
                    before: -3,
                    after: Some(4),
                    coarse: true,
                    ..UntrustedInterval::default()
                },
            ],
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_before() {
        let mark = sample();
        let Value::Object(members) = object(&mark.members()) else { unreachable!() };
        assert_eq!(Mark::from_map(&members), mark);
        let Value::Object(step) = object(&mark.step()) else { unreachable!() };
        assert_eq!(Mark::from_map(&step), mark);
        assert_eq!(STATE.len() + 1, mark.members().len(), "none is left out");
    }
}
