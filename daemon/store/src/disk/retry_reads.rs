//! A disk whose readers outlive a faulty card: a file that cannot be read any more through an
//! open handle is opened again, as after its card was pulled out and put in again.

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Disk, DiskFile, Mode};
use crate::pass_on;

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
pub(super) type OnFault = Arc<dyn Fn(ReadFault, &io::Error) + Send + Sync>;

/// Opens what cannot be read once more, and passes everything else on.
pub struct RetryReads {
    inner: Arc<dyn Disk>,
    on_fault: OnFault,
}

impl RetryReads {
    /// Wraps a disk.
    pub fn new(inner: Arc<dyn Disk>, on_fault: OnFault) -> Self {
        Self { inner, on_fault }
    }
}

impl Disk for RetryReads {
    pass_on!(inner: create_dir list rename remove sync_dir space mount_generation);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.inner.open(path, mode)?;
        Ok(Arc::new(RetryReadsFile {
            reading: RwLock::new(file.clone()),
            file,
            path: path.to_owned(),
            disk: self.inner.clone(),
            on_fault: self.on_fault.clone(),
        }))
    }
}

struct RetryReadsFile {
    /// The file that is written to. Never another: what was not synced through it may be lost.
    file: Arc<dyn DiskFile>,
    /// The source.
    reading: RwLock<Arc<dyn DiskFile>>,
    path: String,
    disk: Arc<dyn Disk>,
    on_fault: OnFault,
}

impl DiskFile for RetryReadsFile {
    pass_on!(file: len write_at sync truncate has_name allocate);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let reading = self.reading.read().clone();
        let error = match reading.read_at(buf, offset) {
            // A file that is shorter than it should be is no matter of the handle.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => error,
            other => return other,
        };
        // Not if another folder lies there by now: its files have the same names.
        let reopened =
            self.disk.mount_generation().and_then(|_| self.disk.open(&self.path, Mode::Read));
        if let Ok(reopened) = reopened
            && reopened.read_at(buf, offset).is_ok()
        {
            *self.reading.write() = reopened;
            return Ok(());
        }
        let fault = ReadFault { path: self.path.clone(), offset, len: buf.len() };
        (self.on_fault)(fault, &error);
        Err(error)
    }
}
