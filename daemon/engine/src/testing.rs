//! For tests, also of other crates: the parts of an engine, and a clock that a test sets. Nothing else uses it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use omir_core::instant::Timestamp;
use omird_store::DeviceKey;

use crate::Parts;
use crate::disk::Folder;
use crate::settings::Settings;
use crate::time::clock::{Clock, SystemClock};
use crate::write::events::Events;

/// The parts of an engine on a folder, without a kept index and with the default settings. Its ids count
/// from one.
pub fn parts(dir: &Path) -> Parts {
    let ids = AtomicU64::new(1);
    Parts {
        disk: Arc::new(Folder::new(dir)),
        index: None,
        clock: Arc::new(SystemClock::new("/nowhere")),
        key: DeviceKey::from_secret([7; 32]),
        random: Box::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed))),
        settings: Settings::default(),
        events: Events::default(),
    }
}

/// The clocks of a machine, set by a test. They begin on 2026-06-01, synchronised.
#[derive(Debug)]
pub struct TestClock {
    wall: AtomicI64,
    monotonic: AtomicU64,
    boot: AtomicU64,
    is_synchronised: AtomicBool,
}

/// The moment at which every test begins: 2026-06-01T00:00:00Z, in microseconds.
pub const DAWN: i64 = 1_780_272_000_000_000;

impl TestClock {
    /// A clock at [`DAWN`].
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            wall: AtomicI64::new(DAWN),
            monotonic: AtomicU64::new(60_000_000),
            boot: AtomicU64::new(1),
            is_synchronised: AtomicBool::new(true),
        })
    }

    /// Lets time go by.
    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.monotonic.fetch_add(micros, Ordering::AcqRel);
        self.wall.fetch_add(micros.cast_signed(), Ordering::AcqRel);
    }

    /// Sets the wall clock forward or back.
    pub fn step(&self, seconds: i64) {
        self.wall.fetch_add(seconds * 1_000_000, Ordering::AcqRel);
    }

    /// Sets the wall clock, and whether it follows a better one from now on.
    pub fn set(&self, micros: i64, is_synchronised: bool) {
        self.wall.store(micros, Ordering::Release);
        self.is_synchronised.store(is_synchronised, Ordering::Release);
    }

    /// Restarts the machine, with the wall clock at `micros` and nothing it follows.
    pub fn reboot(&self, micros: i64) {
        self.monotonic.store(0, Ordering::Release);
        self.boot.fetch_add(1, Ordering::AcqRel);
        self.set(micros, false);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall.load(Ordering::Acquire))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.monotonic.load(Ordering::Acquire))
    }

    fn boot_id(&self) -> String {
        format!("boot-{}", self.boot.load(Ordering::Acquire))
    }

    fn is_synchronised(&self) -> bool {
        self.is_synchronised.load(Ordering::Acquire)
    }
}
