//! An engine for tests of what a port says.

use std::sync::Arc;

use crate::engine::testing::parts;
use crate::engine::{Clock, Encoding, Engine, Parts, SystemClock};
use crate::protocols::Protocols;

/// An engine on a disk of its own.
pub struct Bench {
    pub engine: Engine,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self::by(Arc::new(SystemClock::new("/nowhere")))
    }

    /// One that goes by this clock.
    pub fn by(clock: Arc<dyn Clock>) -> Self {
        Self::of(|parts| Parts { clock, ..parts })
    }

    /// One of other parts.
    pub fn of(change: impl FnOnce(Parts) -> Parts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let parts = change(parts(folder.path()));
        Self { engine: Engine::open(parts, &mut |_| {}).unwrap(), _folder: folder }
    }

    /// The protocols over it.
    pub fn protocols(&self) -> Protocols {
        Protocols::over(&self.engine, "r1")
    }

    pub fn remember(&self, json: &str) {
        let change = self.engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
        self.engine.execute(change).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.engine.stop();
    }
}
