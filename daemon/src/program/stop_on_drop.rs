//! An engine that is stopped however the program ends.

use std::ops::Deref;

use crate::engine::Engine;

/// Stops the engine when it is dropped: all is on the disk, and no thread of it runs any more. A second stop does nothing.
pub(super) struct StopOnDrop(pub(super) Engine);

impl Deref for StopOnDrop {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
