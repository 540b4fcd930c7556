//! An engine for tests of what a port says.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use omir_core::instant::Timestamp;

use crate::clock::{Clock, SystemClock};
use crate::engine::request::Encoding;
use crate::engine::{Engine, Parts};
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
        let parts = change(crate::testing::parts(folder.path()));
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

/// A clock that is right, and turned by hand.
#[derive(Debug)]
pub struct Turned {
    wall: AtomicI64,
    monotonic: AtomicU64,
}

/// When it begins: 2026-06-01T00:00:00Z, in microseconds.
const DAWN: i64 = 1_780_272_000_000_000;

impl Turned {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { wall: AtomicI64::new(DAWN), monotonic: AtomicU64::new(60_000_000) })
    }

    /// Time goes by, seconds.
    pub fn advance(&self, seconds: u32) {
        self.step(i64::from(seconds));
        self.monotonic.fetch_add(u64::from(seconds) * 1_000_000, Ordering::AcqRel);
    }

    /// It is set, by so many seconds.
    pub fn step(&self, seconds: i64) {
        self.wall.fetch_add(seconds * 1_000_000, Ordering::AcqRel);
    }
}

impl Clock for Turned {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall.load(Ordering::Acquire))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.monotonic.load(Ordering::Acquire))
    }

    fn boot_id(&self) -> String {
        "a boot".to_owned()
    }

    fn is_synchronised(&self) -> bool {
        true
    }
}
