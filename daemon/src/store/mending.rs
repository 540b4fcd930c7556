//! What readers do about rot: a version that does not pass its checksum is read once more from its file as the
//! sidecar of the segment restores it, or as the checksums of the log do. Nothing is written by a reader: which
//! segments want that is told to the thread that seals, which alone writes and removes them.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{healing, wal};
use crate::disk::{self, Disk};
use crate::index::catalog::Mend;
use crate::index::doc::FileId;

/// Restores files in memory, and keeps in mind which.
pub struct Mender {
    disk: Arc<dyn Disk>,
    ailing: Mutex<BTreeSet<u64>>,
    /// Held while a file is restored: one at a time bounds the memory that takes.
    at_work: Mutex<()>,
}

impl Mender {
    /// A mender of the files on `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, ailing: Mutex::default(), at_work: Mutex::default() }
    }

    /// A segment in which a reader has met rot since this was asked last.
    pub fn take(&self) -> Option<u64> {
        self.ailing.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }
}

impl Mend for Mender {
    fn mended(&self, file: FileId) -> Option<Vec<u8>> {
        let _one = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        match file {
            FileId::Segment(number) => {
                let number = u64::from(number);
                self.ailing.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
                healing::restored(&*self.disk, number)
            }
            FileId::Log(number) => {
                let number = u64::from(number);
                let (mut bytes, _) = disk::read_around(&*self.disk, &wal::path(number)).ok()?;
                wal::mend(&mut bytes, number);
                Some(bytes)
            }
        }
    }
}
