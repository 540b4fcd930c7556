//! Time as a simulation or a recording tells it (ROS: `use_sim_time`).

use std::time::Duration;

use omir_core::instant::Timestamp;
use parking_lot::Mutex;

use super::{Clock, Source, SystemClock};

/// A wall clock that is set from outside, at any pace; it may begin at zero and jump back when a
/// recording starts over. Until it is first set the time is unknown.
#[derive(Debug, Default)]
pub struct SimulatedClock {
    /// For what is no wall clock.
    machine: SystemClock,
    wall: Mutex<Option<Timestamp>>,
}

impl SimulatedClock {
    /// Sets it.
    pub fn set(&self, to: Timestamp) {
        *self.wall.lock() = Some(to);
    }

    fn wall(&self) -> Option<Timestamp> {
        *self.wall.lock()
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.wall().unwrap_or(Timestamp::EPOCH)
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }

    fn boot_id(&self) -> String {
        self.machine.boot_id()
    }

    fn is_synchronised(&self) -> bool {
        self.wall().is_some()
    }

    fn source(&self) -> Source {
        Source::Simulated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::ClockState;

    #[test]
    fn it_is_unknown_until_it_is_set_and_then_right_whatever_it_shows() {
        let clock = SimulatedClock::default();
        assert_eq!(clock.read().judged, ClockState::Unknown);
        clock.set(Timestamp::from_unix(3, 0));
        assert_eq!(clock.read().judged, ClockState::Synchronised);
        assert_eq!(clock.read().wall, 3_000_000);
    }
}
