//! The way to the thread that looks for patterns.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Tasks that wait to be looked at. One that finds no room is looked at after its next error.
const MOST_WAITING: usize = 1024;

/// A task with a new error, and its tenant before it.
pub(crate) type Recorded = (String, String);

/// The way to the thread, which ends once this is dropped.
pub(crate) struct PatternQueue(SyncSender<Recorded>);

impl PatternQueue {
    /// Returns a way, and its other end.
    pub(crate) fn new() -> (Self, Receiver<Recorded>) {
        let (tell, told) = sync_channel(MOST_WAITING);
        (Self(tell), told)
    }

    /// Has a task looked at that has a new error.
    pub(crate) fn look_at(&self, tenant: &str, task: &str) {
        let told = self.0.try_send((tenant.to_owned(), task.to_owned()));
        if let Err(TrySendError::Full(_)) = told {
            tracing::debug!("too many tasks have errors; patterns are looked for after the next");
        }
    }
}
