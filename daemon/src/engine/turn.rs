//! Large imports come one at a time, whoever brings them: the memory that one takes is enough. Whoever has
//! the turn keeps it until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use crate::error::{Code, Error};

impl Engine {
    /// The turn to merge a payload of so many bytes, to be taken before it is read and kept until it is
    /// merged; `None` for one that is no larger than any other payload may be.
    ///
    /// # Errors
    /// `BUSY` while somebody else has it.
    pub fn turn_to_merge(&self, bytes: usize) -> Result<Option<Turn>, Error> {
        if bytes <= self.settings().limits.max_payload_bytes {
            return Ok(None);
        }
        let message = "another import is under way; try again in a moment";
        let turn = self.inner.imports.take();
        turn.map(Some).ok_or_else(|| Error::new(Code::Busy, message))
    }
}

/// Where the turn is given out.
#[derive(Default)]
pub(super) struct Turns(Arc<AtomicBool>);

/// The turn.
#[derive(Debug)]
pub struct Turn(Arc<AtomicBool>);

impl Turns {
    /// The turn, unless somebody has it.
    fn take(&self) -> Option<Turn> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| Turn(self.0.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_comes_back_when_it_is_dropped() {
        let turns = Turns::default();
        let turn = turns.take();
        assert!(turn.is_some());
        assert!(turns.take().is_none());
        drop(turn);
        assert!(turns.take().is_some());
    }
}
