//! For tests and benchmarks, also of other crates: the parts of an engine, a clock that a test sets, and an engine's upkeep by hand.
//! Nothing else uses it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use omir_core::instant::Timestamp;
use omird_store::{Damage, DeviceKey};

pub use crate::index::catalog::Catalog;
pub use crate::ingest::request::IngestContext;
pub use crate::question::Phrase;
pub use crate::upkeep::sweep::PAUSE as SWEEP_PAUSE;
pub use crate::write::rebase::MAX_STEPS as MAX_REBASE_STEPS;

use crate::card::quota::QuotaUsage;
use crate::disk::Folder;
use crate::settings::Settings;
use crate::time::clock::{Clock, SystemClock};
use crate::write::events::Events;
use crate::write::message::Message;
use crate::write::orders::TaskOrder;
use crate::{
    Change, Code, Compaction, CompactionScope, Encoding, Engine, Error, Parts, Precedence,
    SweepReport, Task,
};

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

/// Damages a text wherever it stands in the segments of a stopped engine, so that nothing restores it.
///
/// # Panics
/// If no segment has the text.
pub fn lose(dir: &Path, text: &str) {
    let mut places = 0;
    for file in fs::read_dir(dir.join("segments")).expect("a folder of segments") {
        let path = file.expect("a name").path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("par") => fs::write(path, "").expect("a sidecar is emptied"),
            Some("omirb") => {
                let mut bytes = fs::read(&path).expect("a segment is read");
                let place = |bytes: &[u8]| {
                    bytes.windows(text.len()).position(|part| part == text.as_bytes())
                };
                while let Some(at) = place(&bytes) {
                    bytes[at] ^= 1;
                    bytes[at + 1] ^= 2;
                    places += 1;
                }
                fs::write(path, bytes).expect("a segment is written");
            }
            _ => {}
        }
    }
    assert!(places > 0, "{text:?} is in no segment");
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

/// Work of an engine's threads, done by hand, and state that only tests and measurements look at.
pub trait ByHand {
    /// Returns the damage that the last start found.
    fn damage(&self) -> &[Damage];

    /// Returns the number of index blocks that the last start rebuilt.
    fn rebuilt(&self) -> u64;

    /// Returns the bytes used on the card, and the quota.
    fn quota_usage(&self) -> QuotaUsage;

    /// Returns the number of versions that no vector was made of yet.
    fn unembedded(&self) -> u64;

    /// Decodes what a client wants merged into what is stored, as [`Engine::admit`] does once it has a permit.
    ///
    /// # Errors
    /// As [`Engine::prepare`], with bounds of its own, and `BUSY` while another large one is under way.
    fn prepare_merge(
        &self,
        payload: &[u8],
        encoding: Encoding,
        precedence: Precedence,
    ) -> Result<Change, Error>;

    /// Compacts segments and waits until it is done.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if the daemon is configured read-only; `BUSY` if too much is waiting;
    /// `STORAGE_FULL` or `INTERNAL` if the disk refuses.
    fn compact(&self, scope: CompactionScope) -> Result<Compaction, Error>;

    /// States that so many bytes are needed: the next sweep makes room for them, once. A store that takes more than
    /// `flash.max_bytes` makes room unasked, but how far it is above that depends on every byte of its logs, segments and index,
    /// and compaction takes its part before eviction does.
    fn relieve(&self, bytes_to_free: u64);

    /// One pass as the daemon makes it by itself: `pause` is called after each slice, and ends the pass by returning false.
    ///
    /// # Errors
    /// What the writer refuses.
    fn sweep_gently(&self, pause: &dyn Fn() -> bool) -> Result<SweepReport, Error>;

    /// Does what is otherwise done at intervals, and waits until it is done. A simulation keeps a time of its own, so it sets the
    /// intervals of [`Settings`] long and asks instead. `status` and the log report a disk that refuses, as they do when
    /// the interval asks.
    ///
    /// # Errors
    /// `INTERNAL` if the engine is stopping.
    fn run_task(&self, task: Task) -> Result<(), Error>;

    /// Seals everything that was acknowledged before, and waits for it at most `patience`.
    ///
    /// # Errors
    /// The reason why not all of it is sealed; it is safe in the log.
    fn seal_now(&self, patience: Duration) -> Result<(), Error>;
}

impl ByHand for Engine {
    fn damage(&self) -> &[Damage] {
        &self.inner.damage
    }
    fn rebuilt(&self) -> u64 {
        self.inner.rebuilt
    }
    fn quota_usage(&self) -> QuotaUsage {
        self.quota_usage()
    }
    fn unembedded(&self) -> u64 {
        self.inner.shared.vectors.pending.load(Ordering::Relaxed)
    }
    fn prepare_merge(
        &self,
        payload: &[u8],
        encoding: Encoding,
        precedence: Precedence,
    ) -> Result<Change, Error> {
        self.prepare_admitted(None, payload, encoding, precedence)
    }
    fn compact(&self, scope: CompactionScope) -> Result<Compaction, Error> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let answer = Box::new(move |result| {
            let _ = sender.send(result);
        });
        self.request_compaction(scope, answer);
        let message = "nothing compacts any more: the daemon is stopping, or a bug ended that (see disk in status)";
        receiver.recv().unwrap_or_else(|_| Err(Error::new(Code::Internal, message)))
    }
    fn relieve(&self, bytes_to_free: u64) {
        self.inner.shared.sweep.bytes_to_free.store(bytes_to_free, Ordering::Relaxed);
    }
    fn sweep_gently(&self, pause: &dyn Fn() -> bool) -> Result<SweepReport, Error> {
        self.sweep_gently(pause)
    }
    fn run_task(&self, task: Task) -> Result<(), Error> {
        let (done, waiting) = crossbeam_channel::bounded(1);
        let queue = self.queue().ok_or_else(Error::stopping)?;
        queue.send(Message::Task(TaskOrder { task, done })).map_err(|_| Error::stopping())?;
        drop(queue);
        waiting.recv().map_err(|_| Error::stopping())
    }
    fn seal_now(&self, patience: Duration) -> Result<(), Error> {
        self.seal_now(patience)
    }
}
