//! An engine on an ordinary folder, for tests that are about files and not about cuts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use omird::disk::Folder;
use omird::engine::{Events, Parts, Settings, SystemClock};
use omird::store::DeviceKey;

/// The parts of an engine on a folder, without a kept index and with the default settings. Its ids count
/// from one.
pub fn parts(dir: &Path) -> Parts {
    let ids = AtomicU64::new(1);
    Parts {
        disk: Arc::new(Folder::new(dir)),
        index: None,
        clock: Arc::new(SystemClock::default()),
        key: DeviceKey::from_secret([7; 32]),
        random: Box::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed))),
        settings: Settings::default(),
        events: Events::default(),
    }
}

/// Copies what is in a folder into another, which is made where there is none.
///
/// # Errors
/// Whatever the disk says.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
