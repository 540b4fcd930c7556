//! Clocks, handed in: nothing below the program reads the system's clock by itself.
//!
//! A robot's wall clock may show 1970, jump and run backwards. [`Clock`] is what the machine says;
//! [`ClockDiscipline`] is what the store makes of it.

mod discipline;
mod simulated;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use omir_core::instant::Timestamp;
use rustix::time::{ClockId, clock_gettime};

pub(crate) use self::discipline::{ClockDiscipline, ClockStep, Reading, SLACK, TOLERANCE, resumed};
pub use self::simulated::SimulatedClock;

/// The clocks of a machine. They may be wrong and may jump, all but the monotonic one.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, in UTC.
    fn now(&self) -> Timestamp;

    /// Time since the machine started, suspend included. Never runs backwards within a boot.
    fn monotonic(&self) -> Duration;

    /// The start of the machine that [`Clock::monotonic`] counts from; empty if there is no name for it.
    fn boot_id(&self) -> String;

    /// Returns true if the wall clock follows a better one.
    fn is_synchronised(&self) -> bool;

    /// The source of the time.
    fn source(&self) -> Source {
        Source::System
    }

    /// All of it at one moment, with what can be said of the wall clock by itself.
    fn read(&self) -> Reading {
        // Whole microseconds, as everything recorded is.
        let wall = self.now().as_micros();
        let is_set = self.source() == Source::Simulated || wall >= EARLIEST_PLAUSIBLE.as_micros();
        let judged = match (self.is_synchronised(), self.source()) {
            (true, _) if is_set => ClockState::Synchronised,
            (false, Source::System) if is_set => ClockState::Coarse,
            _ => ClockState::Unknown,
        };
        let monotonic = i64::try_from(self.monotonic().as_micros()).unwrap_or(i64::MAX);
        Reading { wall, monotonic, judged }
    }
}

/// The source of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// The machine's own clock.
    #[default]
    System,
    /// A simulation or a recording that is played back (ROS: `use_sim_time`).
    Simulated,
}

impl Source {
    /// The name in the configuration and in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Simulated => "simulated",
        }
    }
}

/// The file that systemd-timesyncd and systemd-time-wait-sync make once the clock is set.
pub const SYNCHRONISED_FILE: &str = "/run/systemd/timesync/synchronized";

/// The operating system's clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    synchronised_file: PathBuf,
}

impl SystemClock {
    /// A clock that counts as synchronised while `synchronised_file` is there. It must lie on a file
    /// system that does not survive the boot, such as `/run`.
    pub fn new(synchronised_file: impl Into<PathBuf>) -> Self {
        Self { synchronised_file: synchronised_file.into() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new(SYNCHRONISED_FILE)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        };
        Timestamp::from_micros(micros)
    }

    fn monotonic(&self) -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        let secs = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(secs, u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    fn boot_id(&self) -> String {
        // random(4): a new one with each boot of the kernel.
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_default()
    }

    fn is_synchronised(&self) -> bool {
        self.synchronised_file.exists()
    }
}

/// No omird was built before this instant (2026-01-01T00:00:00Z): an earlier wall clock is unset.
pub(crate) const EARLIEST_PLAUSIBLE: Timestamp = Timestamp::from_unix(1_767_225_600, 0);

/// Trust in the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockState {
    /// It shows a time before omird existed, or one long before what was known to be past (a board
    /// without a battery clock, or one whose battery is flat).
    Unknown,
    /// It shows a time that may be right; nothing says that it follows a better clock.
    Coarse,
    /// It follows a better clock.
    Synchronised,
}

impl ClockState {
    /// All of them, the most trusted last.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Coarse, Self::Synchronised];

    /// The name shown in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Coarse => "coarse",
            Self::Synchronised => "synchronised",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_clocks_run_and_boots_have_names() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("synchronized");
        let clock = SystemClock::new(&file);
        let before = clock.monotonic();
        assert!(before > Duration::ZERO && clock.monotonic() >= before);
        assert_eq!(clock.boot_id(), clock.boot_id());
        assert!(clock.now() > EARLIEST_PLAUSIBLE, "the machine that tests has a clock");
        assert_eq!(clock.read().judged, ClockState::Coarse);
        std::fs::write(&file, "").unwrap();
        assert_eq!(clock.read().judged, ClockState::Synchronised);
    }
}
