//! The row of operations that wait for the thread that decides.

use std::collections::VecDeque;

use omir_core::value::{Map, Value};

use super::Answered;
use crate::envelope::Envelope;
use crate::operation_context::CallerRights;

/// Most operations of one transaction.
const MOST_AT_ONCE: usize = 64;
/// Most bytes of their payloads.
const MOST_BYTES: usize = 256 << 10;
/// With more operations than these waiting, looking for conflicts is put off.
const BUSY: usize = 32;
/// Bytes of the payloads that wait, for one message may be as large as a payload of the daemon. More is refused.
const MOST_WAITING_BYTES: usize = 16 << 20;

/// An operation that waits.
pub(super) struct Waiting {
    pub(super) envelope: Envelope,
    pub(super) who: CallerRights,
    pub(super) answered: Answered,
    /// About the bytes that its payload takes.
    bytes: usize,
}

/// The operations that wait.
#[derive(Default)]
pub(super) struct Row {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Row {
    /// Takes an operation in. One that it has no room for comes back, with the number of those that wait.
    ///
    /// One alone is taken whatever its size: the transport has a bound of its own.
    pub(super) fn take_in(
        &mut self,
        envelope: Envelope,
        who: CallerRights,
        answered: Answered,
    ) -> Result<(), (Answered, usize)> {
        let bytes = weight(&envelope.payload);
        if !self.waiting.is_empty() && self.bytes.saturating_add(bytes) > MOST_WAITING_BYTES {
            return Err((answered, self.waiting.len()));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Waiting { envelope, who, answered, bytes });
        Ok(())
    }

    /// Returns the number of operations that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Puts operations back before all others.
    pub(super) fn put_back(&mut self, waiting: impl DoubleEndedIterator<Item = Waiting>) {
        for one in waiting.rev() {
            self.bytes = self.bytes.saturating_add(one.bytes);
            self.waiting.push_front(one);
        }
    }

    /// Takes the next operations out, with true if many waited.
    pub(super) fn next_batch(&mut self) -> (Vec<Waiting>, bool) {
        let is_busy = self.waiting.len() > BUSY;
        let (mut count, mut bytes) = (0, 0);
        for waiting in self.waiting.iter().take(MOST_AT_ONCE) {
            if count > 0 && bytes + waiting.bytes > MOST_BYTES {
                break;
            }
            bytes += waiting.bytes;
            count += 1;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        (self.waiting.drain(..count).collect(), is_busy)
    }
}

/// Returns about the bytes that a payload takes.
fn weight(payload: &Map) -> usize {
    fn of(value: &Value) -> usize {
        let inside: usize = match value {
            Value::Text(text) => text.len(),
            Value::Array(all) => all.iter().map(of).sum(),
            Value::Object(map) => weight(map),
            _ => 0,
        };
        size_of::<Value>() + inside
    }
    payload.iter().map(|(name, one)| name.len() + of(one)).sum()
}
