//! Readers and rot: a version that does not pass its checksum is read once more from its file as the
//! sidecar of the segment mends it, or as the checksums of the log do. Nothing is written by a reader: which
//! segments want that is told to the thread that seals, which alone writes and removes them.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::segment_repair;
use crate::disk::{self, Disk};
use crate::files::Mend;
use crate::log::wal;
use crate::recorded::version::FileId;

/// Mends files in memory, and keeps in mind which.
pub struct Mender {
    disk: Arc<dyn Disk>,
    damaged: Mutex<DamagedSegments>,
    /// The file mended last, for further reads of it. Held while a file is mended: one at a time bounds the
    /// memory that takes.
    last: Mutex<Option<(FileId, Arc<[u8]>)>>,
}

/// Segments in which a reader has met rot.
#[derive(Default)]
struct DamagedSegments {
    /// To be repaired on the card.
    waiting: BTreeSet<u64>,
    /// Of which some is lost for good: trying again would be in vain.
    lost: BTreeSet<u64>,
}

impl Mender {
    /// A mender of the files on `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, damaged: Mutex::default(), last: Mutex::default() }
    }

    /// A segment in which a reader has met rot since this was asked last.
    pub fn take(&self) -> Option<u64> {
        self.damaged().waiting.pop_first()
    }

    /// Notes that a segment is to be looked at again.
    pub fn put_back(&self, number: u64) {
        self.damaged().waiting.insert(number);
    }

    /// Notes that a segment was repaired as far as that is possible, and whether some of it is lost.
    pub fn done(&self, number: u64, is_lost: bool) {
        let mut damaged = self.damaged();
        if is_lost {
            damaged.lost.insert(number);
        } else {
            damaged.lost.remove(&number);
        }
        drop(damaged);
        // From now on readers get the bytes on the card.
        *self.last.lock() = None;
    }

    /// Has segments that seemed lost looked at again: the disk could not be read for a while.
    pub fn retry_lost(&self) {
        let mut damaged = self.damaged();
        let lost = std::mem::take(&mut damaged.lost);
        damaged.waiting.extend(lost);
    }

    fn damaged(&self) -> MutexGuard<'_, DamagedSegments> {
        self.damaged.lock()
    }

    fn mend(&self, file: FileId) -> Option<Vec<u8>> {
        match file {
            FileId::Segment(number) => {
                let number = u64::from(number);
                let mut damaged = self.damaged();
                if !damaged.lost.contains(&number) {
                    damaged.waiting.insert(number);
                }
                drop(damaged);
                segment_repair::mended(&*self.disk, number)
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

impl Mend for Mender {
    fn mended(&self, file: FileId) -> Option<Arc<[u8]>> {
        let mut last = self.last.lock();
        // A log may have grown.
        let is_kept =
            |(kept, _): &&(FileId, Arc<[u8]>)| *kept == file && matches!(file, FileId::Segment(_));
        if let Some((_, bytes)) = last.as_ref().filter(is_kept) {
            return Some(bytes.clone());
        }
        let bytes: Arc<[u8]> = self.mend(file)?.into();
        *last = Some((file, bytes.clone()));
        Some(bytes)
    }
}
