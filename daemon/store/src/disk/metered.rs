//! A disk that counts the bytes written to it, for the flash card's sake, and knows how much lies on
//! it without asking again.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::{BLOCK, Disk, DiskFile, Mode, room_of};
use crate::pass_on;

/// The written bytes, and those that lie there.
#[derive(Debug, Default)]
pub struct Usage {
    /// Bytes written so far; whoever writes past the disk adds to it.
    pub written: Arc<AtomicU64>,
    /// Bytes of the blocks that syncs had to write: a sync after a few bytes writes a whole one.
    pub synced: AtomicU64,
    /// Lengths of the files seen so far, by path.
    sizes: Mutex<HashMap<String, u64>>,
    /// The space all of them take.
    stored: AtomicU64,
}

impl Usage {
    /// Bytes that the files take on the disk, in whole blocks.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    fn sizes(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.sizes.lock()
    }

    fn knows(&self, path: &str) -> bool {
        self.sizes().contains_key(path)
    }

    /// Notes a file's length; without one it is gone.
    fn note(&self, path: &str, len: Option<u64>) {
        let mut sizes = self.sizes();
        let old = match len {
            Some(len) => sizes.insert(path.to_owned(), len),
            None => sizes.remove(path),
        };
        self.moved(old, len);
    }

    /// Notes that a file, if it is still there, reaches to `end` at least.
    fn grown(&self, path: &str, end: u64) {
        if let Some(len) = self.sizes().get_mut(path)
            && end > *len
        {
            self.moved(Some(*len), Some(end));
            *len = end;
        }
    }

    fn renamed(&self, from: &str, to: &str) {
        let mut sizes = self.sizes();
        if let Some(len) = sizes.remove(from) {
            let replaced = sizes.insert(to.to_owned(), len);
            self.moved(replaced, None);
        }
    }

    fn moved(&self, old: Option<u64>, new: Option<u64>) {
        let space = |len: Option<u64>| len.map_or(0, room_of);
        self.stored.fetch_add(space(new), Ordering::Relaxed);
        self.stored.fetch_sub(space(old), Ordering::Relaxed);
    }
}

/// Counts what is written through it and passes everything on.
pub struct Metered {
    inner: Arc<dyn Disk>,
    usage: Arc<Usage>,
}

impl Metered {
    /// Wraps a disk. Files that are never opened count only after [`Metered::survey`].
    pub fn new(inner: Arc<dyn Disk>, usage: Arc<Usage>) -> Self {
        Self { inner, usage }
    }

    /// Asks for the lengths of those files of a folder that nobody has opened yet.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn survey(&self, dir: &str) -> io::Result<()> {
        for name in self.inner.list(dir)? {
            let path = format!("{dir}/{name}");
            if !self.usage.knows(&path)
                && let Ok(len) = self.inner.open(&path, Mode::Read).and_then(|file| file.len())
            {
                self.usage.note(&path, Some(len));
            }
        }
        Ok(())
    }
}

impl Disk for Metered {
    pass_on!(inner: create_dir list sync_dir space mount_generation);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let inner = self.inner.open(path, mode)?;
        if mode == Mode::Create || !self.usage.knows(path) {
            self.usage.note(path, Some(inner.len()?));
        }
        Ok(match mode {
            Mode::Read => inner,
            Mode::Write | Mode::Create => {
                let (path, usage) = (path.to_owned(), self.usage.clone());
                Arc::new(MeteredFile { inner, path, usage, dirty: Mutex::default() })
            }
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)?;
        self.usage.renamed(from, to);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)?;
        self.usage.note(path, None);
        Ok(())
    }
}

struct MeteredFile {
    inner: Arc<dyn DiskFile>,
    path: String,
    usage: Arc<Usage>,
    /// The blocks that were written to since the last sync. The store appends: there is no gap.
    dirty: Mutex<Option<Range<u64>>>,
}

impl MeteredFile {
    fn dirty(&self) -> MutexGuard<'_, Option<Range<u64>>> {
        self.dirty.lock()
    }
}

impl DiskFile for MeteredFile {
    pass_on!(inner: len read_at has_name);

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(buf, offset)?;
        let len = buf.len() as u64;
        self.usage.written.fetch_add(len, Ordering::Relaxed);
        let end = offset.saturating_add(len);
        self.usage.grown(&self.path, end);
        let mut dirty = self.dirty();
        let before = dirty.take().unwrap_or(offset / BLOCK..0);
        *dirty = Some(before.start.min(offset / BLOCK)..before.end.max(end.div_ceil(BLOCK)));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if let Some(blocks) = self.dirty().take() {
            let bytes = (blocks.end - blocks.start).saturating_mul(BLOCK);
            self.usage.synced.fetch_add(bytes, Ordering::Relaxed);
        }
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)?;
        if self.usage.knows(&self.path) {
            self.usage.note(&self.path, Some(len));
        }
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.inner.allocate(len)?;
        self.usage.grown(&self.path, len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Folder, replace};
    use super::*;

    #[test]
    fn a_sync_writes_whole_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let usage = Arc::new(Usage::default());
        let disk = Metered::new(Arc::new(Folder::new(dir.path())), usage.clone());
        let file = disk.open("log", Mode::Create).unwrap();
        let mut synced = Vec::new();
        for (at, len) in [(0, 10), (10, 10), (4090, 10)] {
            file.write_at(&vec![1; len], at).unwrap();
            file.sync().unwrap();
            file.sync().unwrap();
            synced.push(usage.synced.load(Ordering::Relaxed) / BLOCK);
        }
        file.write_at(&[1; 5000], 4100).unwrap();
        file.write_at(&[1; 5000], 9100).unwrap();
        file.sync().unwrap();
        synced.push(usage.synced.load(Ordering::Relaxed) / BLOCK);
        assert_eq!(synced, [1, 2, 4, 7]);
    }

    #[test]
    fn what_lies_there_is_known_without_walking_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/old"), [0; 5000]).unwrap();
        let usage = Arc::new(Usage::default());
        let disk = Metered::new(Arc::new(Folder::new(dir.path())), usage.clone());
        disk.survey("a").unwrap();
        assert_eq!((usage.stored(), usage.written.load(Ordering::Relaxed)), (2 * BLOCK, 0));
        // Written again under its name, longer by a block, and once more.
        replace(&disk, "a/old", &[1; 9000]).unwrap();
        replace(&disk, "a/new", &[1; 1]).unwrap();
        assert_eq!(usage.stored(), 4 * BLOCK);
        let file = disk.open("a/new", Mode::Write).unwrap();
        file.write_at(&[2; 10], BLOCK).unwrap();
        assert_eq!(usage.stored(), 5 * BLOCK);
        file.truncate(1).unwrap();
        disk.remove("a/old").unwrap();
        assert_eq!((usage.stored(), usage.written.load(Ordering::Relaxed)), (BLOCK, 9011));
        // Nobody counts a file that has no name any more.
        disk.remove("a/new").unwrap();
        file.write_at(&[2; 10], 0).unwrap();
        assert_eq!(usage.stored(), 0);
    }
}
