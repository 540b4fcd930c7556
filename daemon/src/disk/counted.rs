//! A disk that counts the bytes written to it, for the flash card's sake.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Disk, DiskFile, Mode};

/// Counts what is written through it and passes everything on.
pub struct Counted {
    inner: Arc<dyn Disk>,
    written: Arc<AtomicU64>,
}

impl Counted {
    /// Wraps a disk; `written` is increased by the length of every write.
    pub fn new(inner: Arc<dyn Disk>, written: Arc<AtomicU64>) -> Self {
        Self { inner, written }
    }
}

impl Disk for Counted {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.inner.open(path, mode)?;
        Ok(match mode {
            Mode::Read => file,
            Mode::Write | Mode::Create => {
                Arc::new(CountedFile { inner: file, written: self.written.clone() })
            }
        })
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

struct CountedFile {
    inner: Arc<dyn DiskFile>,
    written: Arc<AtomicU64>,
}

impl DiskFile for CountedFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(buf, offset)?;
        self.written.fetch_add(buf.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }
}
