//! Room on a full disk: the reserve, and the making of more.

use std::sync::atomic::AtomicBool;

use parking_lot::{Mutex, MutexGuard};

use crate::card::reserve::Reserve;

/// Room on a full disk.
pub(crate) struct Room {
    /// Held by the thread that works with the room it gives.
    reserve: Mutex<Reserve>,
    /// True while room is being made, or is about to be.
    pub(crate) is_being_made: AtomicBool,
    /// True if the log is to be closed, because the dead data in logs takes room that lacks.
    pub(crate) is_log_to_close: AtomicBool,
}

impl Room {
    /// Room with a reserve, and none being made.
    pub(crate) fn new(reserve: Reserve) -> Self {
        Self {
            reserve: Mutex::new(reserve),
            is_being_made: AtomicBool::default(),
            is_log_to_close: AtomicBool::default(),
        }
    }

    /// The reserve. Waits for the thread that works with the room it gives.
    pub(crate) fn reserve(&self) -> MutexGuard<'_, Reserve> {
        self.reserve.lock()
    }

    /// The reserve, without waiting; `None` while a thread works with its room.
    pub(crate) fn reserve_at_hand(&self) -> Option<MutexGuard<'_, Reserve>> {
        self.reserve.try_lock()
    }

    /// The reserve, to be lent: see [`with_reserve`](super::reserve::with_reserve).
    pub(crate) fn reserve_to_lend(&self) -> &Mutex<Reserve> {
        &self.reserve
    }
}
