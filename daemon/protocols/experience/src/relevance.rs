//! The share of hints that are taken. The contract promises that hints are relevant, and no client tells omird so. It counts what follows:
//! a hint is taken where a later experience of the tenant has used the same thing with success within a day.
//!
//! A hint that is given once more while it is open is the same one. Counts are of this run of the daemon; nothing is stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ids::Key;

/// The time in which a hint may be taken.
const OPEN: Duration = Duration::from_secs(86_400);
/// Hints that are open at a time. Those beyond do not count.
const MOST: usize = 4096;

/// The hints that may still be taken, and the counts of all.
#[derive(Debug, Default)]
pub(crate) struct Relevance {
    open: HashMap<(Arc<str>, Key), Instant>,
    pub(crate) given: u64,
    pub(crate) taken: u64,
}

impl Relevance {
    /// Notes that hints were given to a tenant.
    pub(crate) fn give<'k>(
        &mut self,
        tenant: &str,
        things: impl IntoIterator<Item = &'k Key>,
        now: Instant,
    ) {
        let tenant: Arc<str> = tenant.into();
        for thing in things {
            if self.open.len() >= MOST {
                self.open.retain(|_, given| is_open(*given, now));
            }
            let name = (tenant.clone(), *thing);
            if self.open.get(&name).is_some_and(|given| is_open(*given, now))
                || self.open.len() >= MOST
            {
                continue;
            }
            self.open.insert(name, now);
            self.given += 1;
        }
    }

    /// Notes that an experience of a tenant has used things with success.
    pub(crate) fn take<'k>(
        &mut self,
        tenant: &str,
        things: impl IntoIterator<Item = &'k Key>,
        now: Instant,
    ) {
        let tenant: Arc<str> = tenant.into();
        for thing in things {
            let given = self.open.remove(&(tenant.clone(), *thing));
            self.taken += u64::from(given.is_some_and(|given| is_open(given, now)));
        }
    }
}

fn is_open(given: Instant, now: Instant) -> bool {
    now.saturating_duration_since(given) < OPEN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        (number as u128).to_be_bytes()
    }

    #[test]
    fn a_hint_is_taken_once_by_its_tenant_within_a_day() {
        let (mut all, now) = (Relevance::default(), Instant::now());
        let counts = |all: &Relevance| (all.given, all.taken);
        all.give("a", &[key(1), key(2)], now);
        all.give("a", &[key(1)], now + OPEN / 2);
        assert_eq!(counts(&all), (2, 0), "given once more it is the same");
        all.take("b", &[key(1)], now);
        all.take("a", &[key(3)], now);
        assert_eq!(counts(&all), (2, 0));
        all.take("a", &[key(1)], now);
        all.take("a", &[key(1)], now);
        assert_eq!(counts(&all), (2, 1));
        all.take("a", &[key(2)], now + OPEN);
        assert_eq!(counts(&all), (2, 1), "a day later it is none");
        all.give("a", &[key(2)], now + OPEN);
        assert_eq!(counts(&all), (3, 1));
    }

    #[test]
    fn those_that_are_open_have_a_bound() {
        let (mut all, now) = (Relevance::default(), Instant::now());
        let keys: Vec<Key> = (0..2 * MOST).map(key).collect();
        all.give("a", &keys, now);
        assert_eq!((all.open.len(), all.given), (MOST, MOST as u64));
        all.give("a", &keys[MOST..], now + OPEN);
        assert_eq!((all.open.len(), all.given), (MOST, 2 * MOST as u64), "old ones make room");
    }
}
