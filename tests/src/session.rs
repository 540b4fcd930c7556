//! An engine under test: its settings, and the certainty that it is stopped.

use std::io;
use std::ops::Deref;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use omird::disk::Disk;
pub use omird::engine::testing::{DAWN, TestClock};
use omird::engine::{Engine, Events, FlashSettings, Forgetting, Parts, Settings};
use omird::store::{Derived, DeviceKey, SledStore};

/// A disk that may keep an index beside its files.
pub trait Card: Disk + Clone {
    /// The index that is kept on it.
    fn index(&self) -> Option<Box<dyn Derived>> {
        None
    }
}

/// Small segments, so that a short life seals several; nothing else happens by itself.
pub fn settings() -> Settings {
    let day = Duration::from_secs(86_400);
    Settings {
        segment_bytes: 2048,
        segment_max_bytes: 8192,
        seal_after: day,
        purge_after: day,
        index_from_bytes: 0,
        touch_interval: day,
        flash: FlashSettings { reserve_bytes: 8192, ..FlashSettings::default() },
        forgetting: Forgetting { sweep_interval: None, ..Forgetting::default() },
        ..Settings::default()
    }
}

/// Panics in threads of an engine, which would otherwise only look like a request without answer.
static PANICS: AtomicU64 = AtomicU64::new(0);
static WATCH: Once = Once::new();

/// Counts panics in the engine's own threads. sled's are caught there and cost only a rebuild.
pub fn watch_panics() {
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let thread = std::thread::current();
            let is_ours = thread.name().is_some_and(|name| name.starts_with("omird-"));
            let is_sled = info.location().is_some_and(|at| at.file().contains("sled"));
            if is_ours && !is_sled {
                PANICS.fetch_add(1, Ordering::AcqRel);
            }
            before(info);
        }));
    });
}

/// Counts the panics in threads of engines since [`watch_panics`].
pub fn panics() -> u64 {
    PANICS.load(Ordering::Acquire)
}

/// An engine that is stopped when this goes, however the test ends: its threads must not write on
/// while another engine has the same disk.
pub struct Session(Engine);

impl Session {
    /// Opens a store, with the index that its card keeps.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open(card: &impl Card, clock: &Arc<TestClock>) -> io::Result<Self> {
        let disk = Arc::new(card.clone());
        Self::open_keeping(disk, clock, settings(), card.index(), Events::default())
    }

    /// Opens a store.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with(
        disk: Arc<dyn Disk>,
        clock: &Arc<TestClock>,
        settings: Settings,
        index: Option<PathBuf>,
    ) -> io::Result<Self> {
        Self::open_announcing(disk, clock, settings, index, Events::default())
    }

    /// Opens a store that announces to `events`, also what happens at its start.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_announcing(
        disk: Arc<dyn Disk>,
        clock: &Arc<TestClock>,
        settings: Settings,
        index: Option<PathBuf>,
        events: Events,
    ) -> io::Result<Self> {
        let index = index.map(|path| SledStore::boxed(&path));
        Self::open_keeping(disk, clock, settings, index, events)
    }

    /// Opens a store that keeps its index there.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_keeping(
        disk: Arc<dyn Disk>,
        clock: &Arc<TestClock>,
        settings: Settings,
        index: Option<Box<dyn Derived>>,
        events: Events,
    ) -> io::Result<Self> {
        watch_panics();
        let counter = AtomicU64::new(0);
        let parts = Parts {
            disk,
            index,
            clock: clock.clone(),
            key: DeviceKey::from_secret([7; 32]),
            random: Box::new(move || u128::from(counter.fetch_add(1, Ordering::Relaxed))),
            settings,
            events,
        };
        Engine::open(parts, &mut |_| {}).map(Self)
    }
}

impl Deref for Session {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.stop();
        if !std::thread::panicking() {
            assert_eq!(PANICS.load(Ordering::Acquire), 0, "a thread of an engine panicked");
        }
    }
}
