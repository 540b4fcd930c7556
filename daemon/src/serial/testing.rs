//! An engine for tests of what a port says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::SystemClock;
use crate::disk::Folder;
use crate::engine::request::Encoding;
use crate::engine::settings::Settings;
use crate::engine::{Engine, Parts};
use crate::store::signature::DeviceKey;

/// An engine on a disk of its own.
pub struct Bench {
    pub engine: Engine,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ids = AtomicU64::new(1);
        let parts = Parts {
            disk: Arc::new(Folder::new(folder.path())),
            index: None,
            clock: Arc::new(SystemClock::new("/nowhere")),
            key: DeviceKey::from_secret([7; 32]),
            random: Box::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed))),
            settings: Settings::default(),
            listener: Box::new(|_| {}),
        };
        Self { engine: Engine::open(parts, &mut |_| {}).unwrap(), _folder: folder }
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
