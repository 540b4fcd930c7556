//! The health of the four components that the contract names.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use omir_core::value::{Map, Value};
use omird_engine::CardState;

/// Hints whose times count.
const LATEST: usize = 100;
/// Hints of which one must have succeeded.
const RECENT: usize = 20;
/// The time that 95 of 100 hints keep within, as the contract promises.
const PROMISED: Duration = Duration::from_secs(2);
/// The time for which the queue may be full.
const FULL: Duration = Duration::from_secs(10);

/// A state. The worst comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Healthy,
    Degraded,
    Unhealthy,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// The hints of late, and since when the queue has been full.
#[derive(Debug, Default)]
pub(crate) struct HealthWindow {
    hints: VecDeque<(Duration, bool)>,
    full_since: Option<Instant>,
}

impl HealthWindow {
    /// Notes a request for hints: the time it took, and if it was answered, be it by "there are none".
    pub(crate) fn note(&mut self, took: Duration, is_answered: bool) {
        if self.hints.len() == LATEST {
            self.hints.pop_front();
        }
        self.hints.push_back((took, is_answered));
    }

    fn hint_generator(&self) -> State {
        let recent = self.hints.iter().rev().take(RECENT);
        if self.hints.len() >= RECENT && recent.clone().all(|(_, is_answered)| !is_answered) {
            return State::Unhealthy;
        }
        let mut times: Vec<Duration> = self.hints.iter().map(|(took, _)| *took).collect();
        times.sort_unstable();
        // The least time that 95 of 100 keep within.
        let at = (times.len() * 95).div_ceil(100).saturating_sub(1);
        let is_slow = times.get(at).is_some_and(|p95| *p95 >= PROMISED);
        if is_slow { State::Degraded } else { State::Healthy }
    }

    /// Judges the queue, and notes when it fills and when it has room again.
    pub(crate) fn query_engine(&mut self, (waiting, most): (u64, u64), now: Instant) -> State {
        if waiting < most {
            self.full_since = None;
            let is_filling = waiting.saturating_mul(5) >= most.saturating_mul(4);
            return if is_filling { State::Degraded } else { State::Healthy };
        }
        let since = *self.full_since.get_or_insert(now);
        let is_stuck = now.saturating_duration_since(since) >= FULL;
        if is_stuck { State::Unhealthy } else { State::Degraded }
    }
}

/// The table of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexer {
    /// Is being made.
    Rebuilding,
    /// Counts everything.
    Complete,
    /// Counts what the card gave back. The rest is tried again.
    Incomplete,
    /// Its last making broke off; it is tried again.
    Failed,
}

/// Facts that health is judged by.
pub(crate) struct Facts {
    pub(crate) card: CardState,
    pub(crate) indexer: Indexer,
    pub(crate) queue: (u64, u64),
    pub(crate) now: Instant,
    /// The time, as RFC 3339.
    pub(crate) timestamp: String,
}

/// Returns the body, and if all is not lost.
pub(crate) fn report(window: &mut HealthWindow, facts: &Facts) -> (Value, State) {
    let storage = match facts.card {
        // Damage is repaired or withheld; what is stored now is stored.
        CardState::Ok | CardState::Damaged => State::Healthy,
        CardState::Failing | CardState::Gone => State::Unhealthy,
        CardState::Stalled | CardState::Full | CardState::ReadOnly => State::Degraded,
    };
    let indexer = match facts.indexer {
        Indexer::Complete => State::Healthy,
        Indexer::Rebuilding | Indexer::Incomplete => State::Degraded,
        Indexer::Failed => State::Unhealthy,
    };
    let components = [
        ("experience_storage", storage),
        ("pattern_indexer", indexer),
        ("hint_generator", window.hint_generator()),
        ("query_engine", window.query_engine(facts.queue, facts.now)),
    ];
    let states = components.map(|(_, state)| state);
    let degraded = states.iter().filter(|state| **state == State::Degraded).count();
    let overall = if states.contains(&State::Unhealthy) {
        State::Unhealthy
    } else if storage == State::Degraded || degraded >= 2 {
        State::Degraded
    } else {
        State::Healthy
    };
    let mut map = Map::new();
    map.insert("status", overall.as_str());
    let components = components.map(|(name, state)| (name, state.as_str()));
    map.insert("components", components.into_iter().collect::<Map>());
    map.insert("timestamp", facts.timestamp.as_str());
    (map.into(), overall)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(card: CardState, indexer: Indexer, waiting: u64) -> Facts {
        let timestamp = "2026-01-01T00:00:00Z".into();
        Facts { card, indexer, queue: (waiting, 100), now: Instant::now(), timestamp }
    }

    fn overall(window: &mut HealthWindow, facts: &Facts) -> State {
        report(window, facts).1
    }

    #[test]
    fn the_whole_is_judged_by_its_parts() {
        use Indexer::*;
        for (card, indexer, waiting, expected) in [
            (CardState::Ok, Complete, 0, State::Healthy),
            (CardState::Damaged, Complete, 0, State::Healthy),
            (CardState::Ok, Rebuilding, 0, State::Healthy),
            (CardState::Ok, Complete, 80, State::Healthy),
            (CardState::Ok, Incomplete, 0, State::Healthy),
            (CardState::Ok, Rebuilding, 80, State::Degraded),
            (CardState::Full, Complete, 0, State::Degraded),
            (CardState::ReadOnly, Complete, 0, State::Degraded),
            (CardState::Stalled, Complete, 0, State::Degraded),
            (CardState::Gone, Complete, 0, State::Unhealthy),
            (CardState::Failing, Complete, 0, State::Unhealthy),
            (CardState::Ok, Failed, 0, State::Unhealthy),
        ] {
            let found = overall(&mut HealthWindow::default(), &facts(card, indexer, waiting));
            assert_eq!(found, expected, "{card:?} {indexer:?} {waiting}");
        }
    }

    #[test]
    fn slow_hints_degrade_and_failing_ones_are_unhealthy() {
        let mut window = HealthWindow::default();
        for at in 0..100 {
            let took = if at < 6 { PROMISED } else { Duration::ZERO };
            window.note(took, true);
        }
        assert_eq!(window.hint_generator(), State::Degraded, "6 of 100 are slow");
        window.note(Duration::ZERO, true);
        assert_eq!(window.hint_generator(), State::Healthy, "5 of 100 may be");
        (0..RECENT - 1).for_each(|_| window.note(Duration::ZERO, false));
        assert_eq!(window.hint_generator(), State::Healthy);
        window.note(Duration::ZERO, false);
        assert_eq!(window.hint_generator(), State::Unhealthy);
    }

    #[test]
    fn a_queue_that_stays_full_is_unhealthy() {
        let (mut window, now) = (HealthWindow::default(), Instant::now());
        assert_eq!(window.query_engine((100, 100), now), State::Degraded);
        assert_eq!(window.query_engine((101, 100), now + FULL / 2), State::Degraded);
        assert_eq!(window.query_engine((100, 100), now + FULL), State::Unhealthy);
        assert_eq!(window.query_engine((79, 100), now + FULL), State::Healthy);
        assert_eq!(window.query_engine((100, 100), now + 2 * FULL), State::Degraded);
    }
}
