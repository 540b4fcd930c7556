//! Faults of the card: what the disk refuses, since when, and when to try again.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::card::health::{self, Health, Part, State};
use crate::disk::{self, Disk, Mode, ReadFault};
use crate::error::Error;
use crate::time::timeline::Time;

/// The faults of the card, for all threads.
pub(crate) struct Faults {
    time: Arc<Time>,
    started: Instant,
    health: Mutex<Health>,
    /// The read that failed last, to be tried again.
    unread: Mutex<Option<ReadFault>>,
}

impl Faults {
    /// No faults yet. `time` dates those to come.
    pub(crate) fn new(time: Arc<Time>) -> Self {
        Self { time, started: Instant::now(), health: Mutex::default(), unread: Mutex::default() }
    }

    /// Returns the state of each part.
    pub(crate) fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock()
    }

    /// Time since the start, by which retries are due.
    fn at(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes that the disk refused something.
    pub(crate) fn refused(&self, disk: &dyn Disk, part: Part, error: &io::Error) {
        self.failed(part, health::judge_on(disk, error), error.to_string());
    }

    /// Notes that something cannot be done, and that it is not the disk's fault.
    pub(crate) fn stalled(&self, part: Part, error: String) {
        self.failed(part, State::Stalled, error);
    }

    fn failed(&self, part: Part, state: State, error: String) {
        let now = self.time.moment().now;
        if self.health().fail(part, state, error.clone(), now, self.at()) {
            tracing::error!(state = state.as_str(), ?part, %error, "{}", state.hint());
        }
    }

    /// Notes that the disk does something again.
    pub(crate) fn recovered(&self, part: Part) {
        let fault = self.health().recover(part);
        if let Some(fault) = fault {
            tracing::info!(was = fault.state.as_str(), ?part, "the disk works again");
        }
    }

    /// Returns true if it is time to try again.
    pub(crate) fn is_due(&self, part: Part) -> bool {
        self.health().is_due(part, self.at())
    }

    /// Returns true if new files can be made, as far as is known.
    pub(crate) fn may_seal(&self) -> bool {
        let health = self.health();
        !health
            .of(Part::Log)
            .is_some_and(|fault| matches!(fault.state, State::ReadOnly | State::Gone))
    }

    /// The answer to a change that could not be written.
    pub(crate) fn refusal(&self) -> Error {
        self.health().refusal()
    }

    /// Notes that something could not be read.
    pub(crate) fn unread(&self, fault: ReadFault, error: &io::Error) {
        self.failed(Part::Read, health::judge(error), error.to_string());
        *self.unread.lock() = Some(fault);
    }

    /// Tries again to read what could not be read, if it is time.
    pub(crate) fn read_again(&self, disk: &dyn Disk) {
        if !self.is_due(Part::Read) {
            return;
        }
        let unread = self.unread.lock().clone();
        let Some(ReadFault { path, offset, len }) = unread else { return };
        let read =
            disk.mount_generation().and_then(|_| disk.open(&path, Mode::Read)).and_then(|file| {
                let mut bytes = vec![0; len];
                file.read_at(&mut bytes, offset)
            });
        match read {
            Ok(()) => self.recovered(Part::Read),
            // A file that was dropped, because all of it lies elsewhere by now, is no fault.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !disk::is_gone(&error) => {
                self.recovered(Part::Read);
            }
            Err(error) => self.refused(disk, Part::Read, &error),
        }
    }
}
