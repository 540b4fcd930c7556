//! Refusals and drops, by the name it came under: how often, and why the last time.
//!
//! A number for the whole node says that something is wrong; this says where, and with what.

use std::collections::BTreeMap;

use super::event::Event;
use super::token::EntityKind;
use crate::stamp::Stamp;

/// Most names that are counted each for itself; beyond it they are counted under `*`.
const MOST: usize = 1000;
/// Longest reason, in characters: names in it come from the network.
const LONGEST: usize = 500;

/// Refusals under one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// Messages or requests that could not be read.
    pub malformed: u64,
    /// Others that use the name with another type or hash.
    pub other_types: u64,
    /// Messages or requests that came faster than there was room.
    pub dropped: u64,
    /// The last refusal, with its time and reason. What was dropped for want of room has no
    /// other reason than its number.
    pub last: Option<(Stamp, String)>,
}

/// The names, each with what this node has under it.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<(EntityKind, String), Refused>);

impl Refusals {
    /// Notes an event, and says how often this sort of it came under that name. `None` for what has no
    /// name.
    pub(crate) fn note(&mut self, event: &Event, now: Stamp) -> Option<u64> {
        let (kind, name) = event.under()?;
        let has_room = self.0.len() < MOST || self.0.contains_key(&(kind, name.to_owned()));
        let name = if has_room { name } else { "*" };
        let refused = self.0.entry((kind, name.to_owned())).or_default();
        let (count, why) = match event {
            Event::Malformed { why, .. } => (&mut refused.malformed, Some(why.clone())),
            Event::OtherType(other) => (&mut refused.other_types, Some(other.reason())),
            Event::Dropped { .. } => (&mut refused.dropped, None),
            Event::Token(_) => return None,
        };
        *count += 1;
        let count = *count;
        if let Some(why) = why {
            refused.last = Some((now, shortened(why)));
        }
        Some(count)
    }

    /// All of them.
    pub(crate) fn all(&self) -> BTreeMap<(EntityKind, String), Refused> {
        self.0.clone()
    }
}

fn shortened(mut why: String) -> String {
    if let Some((at, _)) = why.char_indices().nth(LONGEST) {
        why.truncate(at);
        why.push('…');
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    fn malformed(name: &str, why: &str) -> Event {
        Event::Malformed { kind: EntityKind::Subscription, name: name.into(), why: why.into() }
    }

    fn at(seconds: i64) -> Stamp {
        Stamp::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn each_name_has_its_own_numbers_and_the_reason_of_the_last() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.note(&malformed("/a", "short"), at(1)), Some(1));
        assert_eq!(refusals.note(&malformed("/a", "long"), at(2)), Some(2));
        assert_eq!(refusals.note(&malformed("/b", "odd"), at(3)), Some(1));
        let full = Event::Dropped { kind: EntityKind::Subscription, name: "/a".into() };
        assert_eq!(refusals.note(&full, at(4)), Some(1));
        let all = refusals.all();
        let of = |name: &str| &all[&(EntityKind::Subscription, name.to_owned())];
        let last = Some((at(2), "long".to_owned()));
        assert_eq!(*of("/a"), Refused { malformed: 2, other_types: 0, dropped: 1, last });
        assert_eq!(of("/b").last, Some((at(3), "odd".to_owned())));
    }

    #[test]
    fn names_and_reasons_have_an_end() {
        let mut refusals = Refusals::default();
        for n in 0..2 * MOST {
            refusals.note(&malformed(&format!("/a{n}"), "short"), at(1));
        }
        refusals.note(&malformed("/a1", &"ü".repeat(10_000)), at(2));
        let all = refusals.all();
        assert_eq!(all.len(), MOST + 1);
        let of = |name: &str| &all[&(EntityKind::Subscription, name.to_owned())];
        assert_eq!(of("*").malformed, MOST as u64);
        assert_eq!(of("/a1").last.as_ref().unwrap().1.chars().count(), LONGEST + 1);
    }
}
