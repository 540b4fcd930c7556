//! Accesses of recalls that the writer has not counted yet.

use omird_store::RefKey;
use parking_lot::Mutex;

/// A record that a recall has just used.
#[derive(Debug, Clone)]
pub(crate) struct AccessEvent {
    /// Its key.
    pub key: RefKey,
    /// `Type/id`.
    pub target: String,
    /// The time; microseconds since the start of the machine. The clock may be set before it is counted.
    pub at: i64,
    /// Entities it mentions, where relationships between them may be strengthened by that.
    pub mentions: Vec<RefKey>,
}

/// Most accesses that may wait to be counted. A flood of recalls beyond it is not counted: access
/// counts steer forgetting and are no memory themselves.
const MAX_ACCESSES: usize = 100_000;

/// The accesses that wait to be counted.
#[derive(Default)]
pub(crate) struct Accesses(Mutex<Vec<AccessEvent>>);

impl Accesses {
    /// Notes accesses, to be counted by the writer.
    pub(crate) fn note(&self, new: impl IntoIterator<Item = AccessEvent>) {
        let mut accesses = self.0.lock();
        let left = MAX_ACCESSES.saturating_sub(accesses.len());
        accesses.extend(new.into_iter().take(left));
    }

    /// Takes the noted accesses.
    pub(crate) fn take(&self) -> Vec<AccessEvent> {
        std::mem::take(&mut *self.0.lock())
    }
}
