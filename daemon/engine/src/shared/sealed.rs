//! State of the sealed files, for `status` and between the threads.

use std::sync::atomic::AtomicU64;

use omird_store::Scrub;
use parking_lot::Mutex;

/// Counts of files, and the progress of the reading for rot.
pub(crate) struct Sealed {
    /// Logs that wait to be sealed.
    pub(crate) unsealed_logs: AtomicU64,
    /// Bytes of those logs.
    pub(crate) unsealed_bytes: AtomicU64,
    /// Bytes of the log that is written.
    pub(crate) log_bytes: AtomicU64,
    /// Segments on disk.
    pub(crate) segments: AtomicU64,
    /// Bytes of the kept index.
    pub(crate) index_bytes: AtomicU64,
    scrub: Mutex<Scrub>,
}

impl Sealed {
    /// No files counted yet; the reading for rot goes on from `scrub`.
    pub(crate) fn new(scrub: Scrub) -> Self {
        Self {
            unsealed_logs: AtomicU64::default(),
            unsealed_bytes: AtomicU64::default(),
            log_bytes: AtomicU64::default(),
            segments: AtomicU64::default(),
            index_bytes: AtomicU64::default(),
            scrub: Mutex::new(scrub),
        }
    }

    /// Progress of the reading for rot.
    pub(crate) fn scrubbing(&self) -> Scrub {
        *self.scrub.lock()
    }

    /// Notes the progress of the reading for rot.
    pub(crate) fn scrubbed(&self, scrub: Scrub) {
        *self.scrub.lock() = scrub;
    }
}
