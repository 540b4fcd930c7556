//! Derived data in sled 0.34.
//!
//! sled's `flush` calls `sync_file_range`, which promises nothing about a power cut. After one sled may refuse to open,
//! lose what was flushed, or give back something older. That is what [`Derived`] allows.
//!
//! A panic of sled's is caught: it must not end the thread that seals. A tree that refused a write is neither written to
//! nor closed any more: closing one that a cut had damaged waited for itself for ever (`tests/tests/card/index_loss.rs`). It is
//! left to the process, and its files are removed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Derived, DerivedEntry, DerivedRefused};

/// sled's page cache. Blocks are read once, at start-up, so a small one does.
const CACHE_BYTES: u64 = 4 << 20;

/// A file that builds before 2026-11-23 put beside sled's own while words of what was forgotten may be in the index.
const UNPURGED: &str = "unpurged";

/// sled's own threads hold the file of a tree for a moment after it was closed.
const CLOSING: Duration = Duration::from_secs(2);

/// sled in a folder. It is opened with the first write, if nothing is there: an empty tree takes half a megabyte.
pub struct SledStore {
    path: PathBuf,
    db: Option<sled::Db>,
}

impl SledStore {
    /// Opens the tree in `path`. One that cannot be opened is thrown away.
    pub fn open(path: &Path) -> Self {
        let mut store = Self { path: path.to_owned(), db: None };
        // A removal that was cut short, and a copy that an older build had begun.
        for leftover in [store.aside(), path.with_extension("fresh")] {
            let _ = clear(&leftover);
        }
        if !path.exists() && fs::symlink_metadata(path).is_err() {
            return store;
        }
        let opened = match path.join(UNPURGED).exists() {
            true => Err("it may hold words of what was forgotten".to_owned()),
            false => open_tree(path).map_err(|reason| reason.0),
        };
        match opened {
            Ok(db) => store.db = Some(db),
            Err(reason) => {
                tracing::warn!(
                    index = %path.display(), %reason,
                    "the index is unreadable and will be rebuilt; no memory is lost"
                );
                if let Err(error) = store.clear() {
                    tracing::warn!(index = %path.display(), %error, "it cannot be removed");
                }
            }
        }
        store
    }

    /// The same, for an engine.
    pub fn boxed(path: &Path) -> Box<dyn Derived> {
        Box::new(Self::open(path))
    }

    /// The path to which a tree is moved before it is removed, so that no start meets half of one.
    fn aside(&self) -> PathBuf {
        self.path.with_extension("old")
    }
}

impl Derived for SledStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DerivedRefused> {
        let Some(db) = &self.db else { return Ok(None) };
        Ok(guarded(|| db.get(key))?.map(|value| value.to_vec()))
    }

    fn keys(&self) -> Result<Vec<Vec<u8>>, DerivedRefused> {
        let Some(db) = &self.db else { return Ok(Vec::new()) };
        guarded(|| db.iter().keys().map(|key| key.map(|key| key.to_vec())).collect())
    }

    fn write(&mut self, entries: &[DerivedEntry]) -> Result<(), DerivedRefused> {
        let db = match self.db.take() {
            Some(db) => db,
            None => open_tree(&self.path)?,
        };
        let mut batch = sled::Batch::default();
        for (key, value) in entries {
            match value {
                Some(value) => batch.insert(key.as_slice(), value.as_slice()),
                None => batch.remove(key.as_slice()),
            }
        }
        match guarded(|| db.apply_batch(batch).and_then(|()| db.flush())) {
            Ok(_) => {
                self.db = Some(db);
                Ok(())
            }
            Err(reason) => {
                // After a write that failed sled can wait for itself for ever when it is closed.
                std::mem::forget(db);
                Err(reason)
            }
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        if let Some(db) = self.db.take() {
            let _ = guarded(|| {
                drop(db);
                Ok(())
            });
        }
        let aside = self.aside();
        clear(&aside)?;
        match fs::rename(&self.path, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        if let Some(folder) = self.path.parent() {
            fs::File::open(folder)?.sync_all()?;
        }
        // A tree that was given up holds its file open: the room is to be free all the same.
        let _ = fs::OpenOptions::new().write(true).truncate(true).open(aside.join("db"));
        clear(&aside)
    }

    fn size_on_disk(&self) -> u64 {
        folder_size(&self.path)
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        if let Some(db) = self.db.take() {
            let _ = guarded(|| {
                drop(db);
                Ok(())
            });
        }
    }
}

/// Asks sled for something, where its panic ends nobody.
fn guarded<T>(ask: impl FnOnce() -> sled::Result<T>) -> Result<T, DerivedRefused> {
    match catch_unwind(AssertUnwindSafe(ask)) {
        Ok(answer) => answer.map_err(|error| DerivedRefused(error.to_string())),
        Err(_) => Err(DerivedRefused("sled panicked".to_owned())),
    }
}

fn open_tree(path: &Path) -> Result<sled::Db, DerivedRefused> {
    wait_until_closed(path);
    let config = sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .mode(sled::Mode::LowSpace)
        .flush_every_ms(None);
    let db = guarded(|| config.open())?;
    // Reading every key shows damage now, while it can still be answered by a rebuild.
    guarded(|| db.iter().keys().try_for_each(|key| key.map(drop)))?;
    Ok(db)
}

/// Waits until nobody holds the tree's file, for [`CLOSING`] at most. sled asks for the lock once and refuses to open without
/// it; a tree that this process has just closed would be taken for a damaged one, and all of it rebuilt.
fn wait_until_closed(path: &Path) {
    // For writing too: a pipe in its place would be waited for without end.
    let mut file = fs::OpenOptions::new();
    let Ok(file) = file.read(true).write(true).open(path.join("db")) else { return };
    let started = Instant::now();
    while matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
        && started.elapsed() < CLOSING
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes a file or a folder, if it is there.
fn clear(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Bytes allocated to the files of a folder.
pub fn folder_size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => folder_size(&entry.path()),
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests;
