//! A disk whose syncs take long, as those of a memory card do.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use omird::disk::{Disk, DiskFile, Folder, Mode};

/// A folder whose files take `sync` longer to become durable.
pub struct SlowDisk {
    /// The real one.
    pub inner: Folder,
    /// How much longer.
    pub sync: Duration,
}

impl Disk for SlowDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile { inner: self.inner.open(path, mode)?, sync: self.sync }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

struct SlowFile {
    inner: Arc<dyn DiskFile>,
    sync: Duration,
}

impl DiskFile for SlowFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        std::thread::sleep(self.sync);
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.inner.allocate(len)
    }
}
