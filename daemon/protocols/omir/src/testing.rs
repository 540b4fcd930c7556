//! Parts from which unit tests build an engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omird_engine::Parts;
use omird_engine::clock::SystemClock;
use omird_engine::events::Events;
use omird_engine::settings::Settings;
use omird_store::disk::Folder;
use omird_store::signature::DeviceKey;

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
