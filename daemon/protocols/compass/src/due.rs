//! The way to the thread that has vectors made, and the vectors that were made lately.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use omird_embedding::Vector;
use parking_lot::Mutex;

use crate::model::embedding::Maker;
use crate::state::Memory;

/// Memories that the thread is told of, at most.
const MOST_TOLD: usize = 1024;
/// Vectors that are kept in mind, by their texts.
const MOST_KEPT: usize = 256;

/// A memory that may need a vector: its tenant and its id.
pub(crate) type Due = (String, String);

/// The way to the thread.
pub(crate) struct Told {
    send: SyncSender<Option<Due>>,
    receive: Mutex<Option<Receiver<Option<Due>>>>,
    has_missed: AtomicBool,
}

impl Told {
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

/// Vectors by their texts: the same text is not paid for twice in a row.
#[derive(Default)]
pub(crate) struct Cache(Mutex<VecDeque<(String, Vector)>>);

impl Cache {
    /// Returns the vector of a text.
    pub(crate) fn get(&self, maker: &Maker, hash: &str) -> Option<Vector> {
        let key = maker.key(hash);
        let kept = self.0.lock();
        kept.iter().find(|(known, _)| *known == key).map(|(_, vector)| vector.clone())
    }

    /// Keeps the vector of a text, and lets go of the oldest.
    pub(crate) fn put(&self, maker: &Maker, hash: &str, vector: Vector) {
        let key = maker.key(hash);
        let mut kept = self.0.lock();
        kept.retain(|(known, _)| *known != key);
        if kept.len() >= MOST_KEPT {
            kept.pop_front();
        }
        kept.push_back((key, vector));
    }
}
