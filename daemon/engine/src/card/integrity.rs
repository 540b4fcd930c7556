//! Files that rotted: repaired, or lost in part. `status` counts them, and listeners are told of each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omir_core::event::EventKind;
use parking_lot::Mutex;

use crate::contained::contain;

/// A finding about a file of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotFinding {
    /// `Repaired` or `Lost`.
    pub kind: EventKind,
    /// The file, below the data folder.
    pub file: String,
    /// The fault or the repair, in words for a person.
    pub message: String,
}

/// Listener for findings.
pub(crate) type OnFinding = Box<dyn Fn(&RotFinding) + Send + Sync>;

type Listener = Arc<dyn Fn(&RotFinding) + Send + Sync>;

/// Findings since the start.
#[derive(Default)]
pub(crate) struct Integrity {
    repaired: AtomicU64,
    lost: Mutex<BTreeSet<String>>,
    listeners: Mutex<Vec<Listener>>,
}

impl Integrity {
    /// With what the start repaired already.
    pub(crate) fn after(repaired: u64) -> Self {
        Self { repaired: AtomicU64::new(repaired), ..Self::default() }
    }

    /// Adds a listener.
    pub(crate) fn listen(&self, listener: OnFinding) {
        self.listeners.lock().push(listener.into());
    }

    /// Notes that nothing is wrong with a file.
    pub(crate) fn sound(&self, file: &str) {
        self.lost.lock().remove(file);
    }

    /// Notes that a file was damaged and is whole again.
    pub(crate) fn repaired(&self, file: &str) {
        self.repaired_with(file, "it was damaged and is whole again");
    }

    /// Notes that a file was deleted while it was open, and that it is written again.
    pub(crate) fn written_again(&self, file: &str) {
        tracing::error!(file, "was deleted while it was in use, and is written again");
        self.repaired_with(file, "it was deleted while it was in use, and is written again");
    }

    fn repaired_with(&self, file: &str, message: &str) {
        self.sound(file);
        self.repaired.fetch_add(1, Ordering::Relaxed);
        self.announce(EventKind::Repaired, file, message);
    }

    /// Notes that some of a file is lost.
    pub(crate) fn lost(&self, file: &str, message: &str) {
        let is_news = self.lost.lock().insert(file.to_owned());
        if is_news {
            tracing::error!(file, message, "damaged");
            self.announce(EventKind::Lost, file, message);
        }
    }

    fn announce(&self, kind: EventKind, file: &str, message: &str) {
        let finding = RotFinding { kind, file: file.to_owned(), message: message.to_owned() };
        // Without the lock: a listener may ask for more.
        let listeners = self.listeners.lock().clone();
        for listener in listeners {
            contain("a listener that was told of damage", || listener(&finding));
        }
    }

    /// Number of damages repaired since boot, those at the start included.
    pub(crate) fn repairs(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Files of which some was found lost since the start.
    pub(crate) fn losses(&self) -> Vec<String> {
        self.lost.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_of_once_and_a_repair_takes_it_back() {
        let integrity = Integrity::after(2);
        let told: Arc<Mutex<Vec<(EventKind, String)>>> = Arc::default();
        let teller = told.clone();
        let counted = Arc::new(AtomicU64::new(0));
        let counter = counted.clone();
        integrity.listen(Box::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        integrity.listen(Box::new(move |finding| {
            teller.lock().push((finding.kind, finding.file.clone()));
        }));
        integrity.lost("segments/1", "gone");
        integrity.lost("segments/1", "gone");
        assert_eq!(integrity.losses(), ["segments/1"]);
        integrity.repaired("segments/1");
        assert_eq!((integrity.repairs(), integrity.losses().len()), (3, 0));
        let expected =
            [EventKind::Lost, EventKind::Repaired].map(|of| (of, "segments/1".to_owned()));
        assert_eq!(*told.lock(), expected);
        assert_eq!(counted.load(Ordering::Relaxed), 2, "each listener is told");
    }
}
