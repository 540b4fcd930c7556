//! One at a time: whoever has the turn keeps it until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the turn is given out.
#[derive(Default)]
pub(super) struct Turns(Arc<AtomicBool>);

/// The turn.
pub(super) struct Turn(Arc<AtomicBool>);

impl Turns {
    /// The turn, unless somebody has it.
    pub(super) fn take(&self) -> Option<Turn> {
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
