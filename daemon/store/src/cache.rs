//! The persistent index: sled, holding one block for each segment.
//!
//! sled 0.34 is fine for what can be rebuilt and for nothing else: its `flush` calls
//! `sync_file_range`, which promises nothing about a power cut, and after one it may refuse to
//! open, or panic. So every block carries a checksum and the digest of its segment, everything
//! sled does runs where a panic is caught, and whatever goes wrong costs a rebuild, never data.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::signature::Digest;
use crate::block::{self, Outline};
use crate::index::{BlockOf, Draw};

/// How long sled may take to open before it is given up: a damaged tree can send it in circles.
const PATIENCE: Duration = Duration::from_secs(20);
/// sled's page cache. Blocks are read once, at start-up, so a small one does.
const CACHE_BYTES: u64 = 4 << 20;

/// A row that says that others were removed, whose values sled's log still holds.
const REMOVED: &[u8] = b"removed";

/// How long sled may take to close: after a failed write it can wait for itself for ever.
const CLOSING: Duration = Duration::from_secs(5);

/// A file beside sled's own: it is there while words of what was forgotten may be in the index.
const UNPURGED: &str = "unpurged";

/// The index on disk, or nothing if it cannot be used.
pub struct Cache {
    db: Option<sled::Db>,
    path: Option<PathBuf>,
    /// Blocks of smaller segments are not kept.
    least: u64,
}

impl Cache {
    /// A cache that keeps nothing: every start rebuilds.
    pub fn none() -> Self {
        Self { db: None, path: None, least: 0 }
    }

    /// Keeps only blocks of segments of at least so many bytes from now on: that of a small one is
    /// made anew in less time than sled needs to write it, and wears out no card.
    #[must_use]
    pub fn keeping(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    /// Whether the block of a segment of so many bytes is worth keeping.
    pub fn is_for(&self, bytes: u64) -> bool {
        bytes >= self.least
    }

    /// Opens the index in `path`. What cannot be opened is moved out of the way and begun anew. Where
    /// nothing is kept sled is not even opened: it writes half a megabyte each time.
    pub fn open(path: &Path) -> Self {
        // Of a copy that was cut short.
        for leftover in ["fresh", "old"] {
            let _ = clear(&path.with_extension(leftover));
        }
        if !path.exists() {
            return Self { db: None, path: Some(path.to_owned()), least: 0 };
        }
        let db = open_guarded(path).or_else(|reason| {
            tracing::warn!(
                index = %path.display(), %reason,
                "the index is unreadable and will be rebuilt; no memory is lost"
            );
            discard(path).map_err(|error| error.to_string())?;
            open_guarded(path)
        });
        match db {
            Ok(db) => Self { db: Some(db), path: Some(path.to_owned()), least: 0 },
            Err(reason) => {
                tracing::warn!(index = %path.display(), %reason, "running without a kept index");
                Self { db: None, path: None, least: 0 }
            }
        }
    }

    /// The block of a segment, if it is there, whole, and of this very file.
    pub fn get<D: Draw>(&self, segment: u64, digest: &Digest) -> Option<BlockOf<D>> {
        let db = self.db.as_ref()?;
        let bytes = guarded(|| db.get(segment.to_be_bytes())).ok()?.ok()??;
        block::from_bytes::<D>(&bytes).filter(|block| block.digest == *digest)
    }

    /// What the block of a segment says of it as a whole, without reading the block.
    pub fn outline(&self, segment: u64, digest: &Digest) -> Option<Outline> {
        let db = self.db.as_ref()?;
        let bytes = guarded(|| db.get(outline_key(segment))).ok()?.ok()??;
        Outline::from_bytes(&bytes).filter(|outline| outline.digest == *digest)
    }

    /// Keeps the block of a segment of so many bytes, if it is worth it; returns how many bytes were
    /// written. A failure is logged: it only costs a rebuild.
    pub fn put<D: Draw>(&mut self, segment: u64, bytes: u64, block: &BlockOf<D>) -> u64 {
        if !self.is_for(bytes) {
            return 0;
        }
        if self.db.is_none() {
            let Some(path) = &self.path else { return 0 };
            match open_guarded(path) {
                Ok(db) => self.db = Some(db),
                Err(reason) => {
                    tracing::warn!(%reason, "running without a kept index");
                    self.path = None;
                    return 0;
                }
            }
        }
        let value = match block.to_bytes() {
            Ok(value) => value,
            Err(error) => {
                tracing::warn!(segment, %error, "cannot encode the index of a segment");
                return 0;
            }
        };
        let outline = Outline::of(block).to_bytes();
        if let Err(reason) = self.insert(segment, &value, &outline) {
            tracing::warn!(segment, %reason, "the index cannot be written and is begun anew");
            self.begin_anew();
            if let Err(reason) = self.insert(segment, &value, &outline) {
                tracing::warn!(%reason, "running without a kept index");
                self.close();
                self.path = None;
                return 0;
            }
        }
        (value.len() + outline.len()) as u64
    }

    fn insert(&self, segment: u64, value: &[u8], outline: &[u8]) -> Result<(), String> {
        let db = self.db.as_ref().ok_or("it is not open")?;
        guarded(|| {
            db.insert(segment.to_be_bytes(), value)?;
            db.insert(outline_key(segment), outline)?;
            db.flush()
        })?
        .map(drop)
        .map_err(|error| error.to_string())
    }

    /// Drops the blocks of segments that were replaced.
    pub fn remove(&self, segments: &[u64]) {
        self.retain(|number| !segments.contains(&number));
    }

    /// Notes, durably, that words of what was forgotten are left in the index until it is purged: the
    /// segments that held them are removed before that, and a start after a cut could not tell. Where
    /// it cannot be noted, the index is begun anew.
    pub fn expect_purge(&mut self) {
        // Where nothing was ever kept there are no words to be left.
        let Some(path) = self.path.as_ref().filter(|path| path.exists()) else { return };
        let noted = std::fs::File::create(path.join(UNPURGED))
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::File::open(path)?.sync_all());
        if let Err(error) = noted {
            tracing::warn!(%error, "the index cannot be marked and is begun anew");
            self.begin_anew();
        }
    }

    /// Whether words of what was forgotten may be left in the index.
    pub fn is_unpurged(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.join(UNPURGED).exists())
    }

    /// Copies all blocks into a new tree, which takes the place of the old: sled's own log keeps
    /// values that were replaced or removed for as long as it likes. Returns the bytes written.
    pub fn purge(&mut self) -> u64 {
        let (Some(db), Some(path)) = (&self.db, self.path.clone()) else { return 0 };
        // Without a row and without the note that there were some, nothing was ever written.
        if guarded(|| db.is_empty()) == Ok(true) {
            return 0;
        }
        let fresh = path.with_extension("fresh");
        let copied = clear(&fresh)
            .map_err(|error| error.to_string())
            .and_then(|()| open_guarded(&fresh))
            .and_then(|into| {
                let copied = guarded(|| copy(db, &into))?.map_err(|error| error.to_string());
                // Closed before it is renamed.
                guarded(move || drop(into))?;
                copied
            });
        self.close();
        // Whatever of this fails, or is cut short, costs a rebuild; the old tree goes all the same.
        let moved = copied.and_then(|bytes| {
            let moved = set_aside(&path)
                .and_then(|old| std::fs::rename(&fresh, &path).and_then(|()| clear(&old)));
            moved.map(|()| bytes).map_err(|error| error.to_string())
        });
        if let Err(reason) = &moved {
            tracing::warn!(%reason, "the index cannot be copied and is begun anew");
        }
        let reopened = match moved {
            Ok(_) => open_guarded(&path),
            Err(_) => {
                let _ = clear(&fresh);
                discard(&path).map_err(|error| error.to_string()).and_then(|()| open_guarded(&path))
            }
        };
        self.db = reopened.ok();
        moved.unwrap_or(0)
    }

    /// Throws away what is there: a tree that opened and cannot be written was cut by a power cut.
    fn begin_anew(&mut self) {
        self.close();
        let Some(path) = &self.path else { return };
        self.db =
            discard(path).map_err(|error| error.to_string()).and_then(|()| open_guarded(path)).ok();
    }

    fn close(&mut self) {
        let Some(db) = self.db.take() else { return };
        let (sender, receiver) = mpsc::sync_channel(1);
        let closing =
            std::thread::Builder::new().name("omird-index-close".into()).spawn(move || {
                let _ = guarded(move || drop(db));
                let _ = sender.send(());
            });
        // A thread that hangs in sled is left behind; it holds nothing anyone waits for.
        if closing.is_err() || receiver.recv_timeout(CLOSING).is_err() {
            tracing::warn!("sled did not close the index");
        }
    }

    /// Drops blocks of segments that are no longer there.
    pub fn retain(&self, keep: impl Fn(u64) -> bool) {
        let Some(db) = &self.db else { return };
        let dropped = guarded(|| {
            for key in db.iter().keys().filter_map(Result::ok).filter(|key| key != REMOVED) {
                if !number_of(&key).is_some_and(&keep) {
                    let _ = db.insert(REMOVED, &[]);
                    let _ = db.remove(key);
                }
            }
        });
        if let Err(reason) = dropped {
            tracing::warn!(%reason, "cannot tidy the index");
        }
    }

    /// Bytes on disk, as far as they can be told.
    pub fn size_on_disk(&self) -> u64 {
        self.path.as_deref().map_or(0, folder_size)
    }
}

/// The key of a segment's outline; that of its block is the number alone.
fn outline_key(segment: u64) -> [u8; 9] {
    let mut key = [b'o'; 9];
    key[..8].copy_from_slice(&segment.to_be_bytes());
    key
}

/// The segment that a key belongs to.
fn number_of(key: &[u8]) -> Option<u64> {
    let (number, rest) = key.split_first_chunk::<8>()?;
    matches!(rest, b"" | b"o").then(|| u64::from_be_bytes(*number))
}

/// Copies all of one tree into another; returns how many bytes that are.
fn copy(from: &sled::Db, into: &sled::Db) -> sled::Result<u64> {
    let mut bytes = 0;
    for row in from.iter() {
        let (key, value) = row?;
        if key == REMOVED {
            continue;
        }
        bytes += (key.len() + value.len()) as u64;
        into.insert(key, value)?;
    }
    into.flush()?;
    Ok(bytes)
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.close();
    }
}

fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|_| "sled panicked".to_owned())
}

fn open_guarded(path: &Path) -> Result<sled::Db, String> {
    let config = sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .mode(sled::Mode::LowSpace)
        .flush_every_ms(None);
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("omird-index-open".into())
        .spawn(move || {
            let opened = guarded(|| config.open())
                .and_then(|opened| opened.map_err(|error| error.to_string()))
                // Reading every key shows damage now, while it can still be answered by a rebuild.
                .and_then(|db| {
                    guarded(|| db.iter().keys().try_for_each(|key| key.map(drop)))?
                        .map_err(|error| error.to_string())?;
                    Ok(db)
                });
            let _ = sender.send(opened);
        })
        .map_err(|error| error.to_string())?;
    receiver
        .recv_timeout(PATIENCE)
        .map_err(|_| format!("sled did not open it within {} s", PATIENCE.as_secs()))?
}

/// Removes an index, whatever is cut on the way: never the note first and then what it is about.
fn discard(path: &Path) -> std::io::Result<()> {
    set_aside(path).and_then(|old| clear(&old))
}

/// Moves an index to where the next start removes it, and tells where that is.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let old = path.with_extension("old");
    clear(&old)?;
    match std::fs::rename(path, &old) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(old),
    }
}

fn clear(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Bytes allocated to the files of a folder.
pub fn folder_size(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => folder_size(&entry.path()),
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
