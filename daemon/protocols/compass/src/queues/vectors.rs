//! The way to the thread that has vectors made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;

use crate::state::Memory;

/// Memories that the thread is told of, at most.
const MOST_TOLD: usize = 1024;

/// A memory that may need a vector: its tenant and its id.
pub(crate) type Due = (String, String);

/// The way to the thread.
pub(crate) struct VectorQueue {
    send: SyncSender<Option<Due>>,
    receive: Mutex<Option<Receiver<Option<Due>>>>,
    has_missed: AtomicBool,
}

impl VectorQueue {
    pub(crate) fn new() -> Self {
        let (send, receive) = sync_channel(MOST_TOLD);
        Self { send, receive: Mutex::new(Some(receive)), has_missed: AtomicBool::new(false) }
    }

    /// Takes the other end, which there is one of.
    pub(crate) fn take_end(&self) -> Option<Receiver<Option<Due>>> {
        self.receive.lock().take()
    }

    /// Returns true if it was told of more than there was room for, once.
    pub(crate) fn take_missed(&self) -> bool {
        self.has_missed.swap(false, Ordering::AcqRel)
    }

    /// Tells of a memory that was written.
    pub(crate) fn tell(&self, memory: &Memory) {
        let due = (memory.tenant.clone(), memory.memory_id.clone());
        if let Err(TrySendError::Full(_)) = self.send.try_send(Some(due)) {
            self.has_missed.store(true, Ordering::Release);
        }
    }

    /// Tells that the settings are others.
    pub(crate) fn look(&self) {
        drop(self.send.try_send(None));
    }
}
