//! A disk whose readers outlive trouble with the card: a file that cannot be read any more through an
//! open handle is opened anew, as after its card was pulled out and put in again.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use super::{Disk, DiskFile, Mode, Space};

/// Bytes that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFault {
    /// The file.
    pub path: String,
    /// From which byte on.
    pub offset: u64,
    /// How many.
    pub len: usize,
}

/// Listener for bytes that could not be read even from a reopened file.
pub type OnFault = Arc<dyn Fn(ReadFault, &io::Error) + Send + Sync>;

/// Opens what cannot be read once more, and passes everything else on.
pub struct Steady {
    inner: Arc<dyn Disk>,
    on_fault: OnFault,
}

impl Steady {
    /// Wraps a disk.
    pub fn new(inner: Arc<dyn Disk>, on_fault: OnFault) -> Self {
        Self { inner, on_fault }
    }
}

impl Disk for Steady {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.inner.open(path, mode)?;
        Ok(Arc::new(SteadyFile {
            reading: RwLock::new(file.clone()),
            file,
            path: path.to_owned(),
            disk: self.inner.clone(),
            on_fault: self.on_fault.clone(),
        }))
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

    fn space(&self) -> io::Result<Space> {
        self.inner.space()
    }

    fn mounting(&self) -> io::Result<u64> {
        self.inner.mounting()
    }
}

struct SteadyFile {
    /// The file that is written to. Never another: what was not synced through it may be lost.
    file: Arc<dyn DiskFile>,
    /// The source.
    reading: RwLock<Arc<dyn DiskFile>>,
    path: String,
    disk: Arc<dyn Disk>,
    on_fault: OnFault,
}

impl DiskFile for SteadyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let reading = self.reading.read().unwrap_or_else(PoisonError::into_inner).clone();
        let error = match reading.read_at(buf, offset) {
            // A file that is shorter than it should be is no matter of the handle.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => error,
            other => return other,
        };
        // Not if another folder lies there by now: its files have the same names.
        let anew = self.disk.mounting().and_then(|_| self.disk.open(&self.path, Mode::Read));
        if let Ok(anew) = anew
            && anew.read_at(buf, offset).is_ok()
        {
            *self.reading.write().unwrap_or_else(PoisonError::into_inner) = anew;
            return Ok(());
        }
        let fault = ReadFault { path: self.path.clone(), offset, len: buf.len() };
        (self.on_fault)(fault, &error);
        Err(error)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }
}
