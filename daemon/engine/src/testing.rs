//! Parts from which unit tests build an engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Parts;
use crate::clock::SystemClock;
use crate::disk::Folder;
use crate::events::Events;
use crate::settings::Settings;
use crate::store::signature::DeviceKey;

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
