//! Free space on a full disk: the reserve, and the freeing of more.

use std::sync::atomic::AtomicBool;

use parking_lot::{Mutex, MutexGuard};

use crate::card::reserve::Reserve;

/// Free space on a full disk.
pub(crate) struct FreeSpace {
    /// Held by the thread that works with the space it gives.
    reserve: Mutex<Reserve>,
    /// True while space is being freed, or is about to be.
    pub(crate) is_being_freed: AtomicBool,
    /// True if the log is to be closed, because the dead data in logs takes space that lacks.
    pub(crate) is_log_to_close: AtomicBool,
}

impl FreeSpace {
    /// A reserve, and nothing being freed.
    pub(crate) fn new(reserve: Reserve) -> Self {
        Self {
            reserve: Mutex::new(reserve),
            is_being_freed: AtomicBool::default(),
            is_log_to_close: AtomicBool::default(),
        }
    }

    /// The reserve. Waits for the thread that works with the space it gives.
    pub(crate) fn reserve(&self) -> MutexGuard<'_, Reserve> {
        self.reserve.lock()
    }

    /// The reserve, without waiting; `None` while a thread works with its space.
    pub(crate) fn reserve_at_hand(&self) -> Option<MutexGuard<'_, Reserve>> {
        self.reserve.try_lock()
    }

    /// The reserve, to be lent: see [`with_reserve`](super::reserve::with_reserve).
    pub(crate) fn reserve_to_lend(&self) -> &Mutex<Reserve> {
        &self.reserve
    }
}
