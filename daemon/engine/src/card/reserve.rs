//! Room that is kept for a full disk: `<data>/reserve`, a file that says nothing.
//!
//! Forgetting writes too: a tombstone in a log, a new log. And what was forgotten takes room until the log or
//! the segment that it lies in is rewritten without it, beside the old one. On a disk that is full the reserve
//! is given up for that, nothing new is taken in meanwhile, and it is made again as soon as there is room.
//!
//! It is as large as that needs: see [`least`].
//!
//! Invariant 35 of ARCHITECTURE.md.

use std::io;
use std::sync::Arc;

use omird_store::disk::BLOCK;
use omird_store::segment_room;
use parking_lot::Mutex;

use crate::disk;
use crate::disk::{Disk, Mode, NoRoom};

/// Its path.
pub(crate) const PATH: &str = "reserve";

/// So much is free beside the reserve when it is made again, and is left beside what a compaction takes: for the
/// next tombstones, and a new log.
pub(crate) const BESIDE: u64 = 4 * BLOCK;

/// Bytes that one sync adds at most to a log that is let grow to `log` bytes: what it may be longer than that.
pub(crate) fn group(log: u64) -> u64 {
    (log / 8).max(4 * BLOCK)
}

/// The largest segment that is made where room lacks, of logs that are let grow to `log` bytes or of segments as
/// large.
pub(crate) fn segment(log: u64) -> u64 {
    log.saturating_add(log / 4)
}

/// The room that a store needs to work with whose logs are let grow to `log` bytes.
pub(crate) fn to_work(log: u64) -> u64 {
    segment_room(segment(log)).saturating_add(BESIDE)
}

/// The reserve that it needs: that room, and some for the tombstones that come in until so much is dead that it is
/// worth it.
pub(crate) fn least(log: u64) -> u64 {
    disk::room_of(to_work(log).saturating_add(log / 4).saturating_add(BESIDE))
}

/// The reserve of a store.
pub(crate) struct Reserve {
    disk: Arc<dyn Disk>,
    bytes: u64,
    is_kept: bool,
}

impl Reserve {
    /// The reserve of so many bytes as it lies there; 0 for none at all. One of another size is dropped: an
    /// earlier omird made it, or it was being made when the power went.
    pub(crate) fn of(disk: Arc<dyn Disk>, bytes: u64) -> Self {
        let found = disk.open(PATH, Mode::Read).and_then(|file| file.len());
        let is_kept = bytes == 0 || found.as_ref().is_ok_and(|len| *len == bytes);
        if !is_kept && found.is_ok() {
            // A disk that refuses this refuses to make another one, too.
            let _ = disk.remove(PATH).and_then(|()| disk.sync_dir("."));
        }
        Self { disk, bytes, is_kept }
    }

    /// Returns true if it lacks.
    pub(crate) fn lacks(&self) -> bool {
        !self.is_kept
    }

    /// Bytes that are free, without the reserve. A disk that cannot tell has room.
    pub(crate) fn free(&self) -> u64 {
        self.disk.space().map_or(u64::MAX, |space| space.free)
    }

    /// Bytes that may be taken for what is new: what is free beside the reserve, also if that is still to be made
    /// again.
    pub(crate) fn free_beside(&self) -> u64 {
        if self.is_kept { self.free() } else { self.free().saturating_sub(self.bytes) }
    }

    /// Bytes that may be taken to make room: what is free, and the reserve.
    pub(crate) fn free_with(&self) -> u64 {
        if self.is_kept { self.free().saturating_add(self.bytes) } else { self.free() }
    }

    /// Returns true if it is there, or there is space to make it.
    pub(crate) fn can_be_kept(&self) -> bool {
        self.is_kept || self.free_beside() >= BESIDE
    }

    /// Makes it if it lacks and there is room.
    ///
    /// # Errors
    /// Whatever the disk says; [`NoRoom`] also if there would be little room beside it.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        if !self.can_be_kept() {
            let needed = self.bytes.saturating_add(BESIDE);
            return Err(NoRoom { needed, free: self.free() }.into());
        }
        let made = self.disk.open(PATH, Mode::Create).and_then(|file| {
            file.allocate(self.bytes)?;
            file.sync()?;
            self.disk.sync_dir(".")
        });
        match made {
            Ok(()) => self.is_kept = true,
            Err(_) => drop(self.disk.remove(PATH)),
        }
        made
    }

    /// Gives it up; returns whether that made room.
    pub(crate) fn give_up(&mut self) -> bool {
        if self.bytes == 0 || !self.is_kept {
            return false;
        }
        self.is_kept = self.disk.remove(PATH).is_err();
        // Some file systems give the room back only now.
        !self.is_kept && self.disk.sync_dir(".").is_ok()
    }
}

/// Does `work`, which leaves more room than it found. If the disk is too full for it, does it once more with the
/// reserve given up, which no other thread makes again meanwhile.
///
/// # Errors
/// As `work`.
pub(crate) fn with_reserve<T, E>(
    reserve: &Mutex<Reserve>,
    is_full: impl Fn(&E) -> bool,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    match work() {
        Err(error) if is_full(&error) => {
            let mut reserve = reserve.lock();
            if !reserve.give_up() {
                return Err(error);
            }
            let done = work();
            if reserve.can_be_kept()
                && let Err(error) = reserve.keep()
            {
                tracing::debug!(%error, "the reserve is not made again yet");
            }
            done
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{self, Folder};

    fn of(disk: &Folder, bytes: u64) -> Reserve {
        Reserve::of(Arc::new(disk.clone()), bytes)
    }

    #[test]
    fn it_is_made_once_given_up_once_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        let mut reserve = of(&disk, 5000);
        assert!(reserve.lacks() && !reserve.give_up());
        reserve.keep().unwrap();
        assert_eq!(std::fs::read(dir.path().join(PATH)).unwrap(), [0; 5000]);
        assert!(!of(&disk, 5000).lacks());
        assert!(reserve.give_up() && reserve.lacks());
        assert!(!dir.path().join(PATH).exists());
        assert!(!of(&disk, 0).lacks(), "none was asked for");
    }

    #[test]
    fn one_of_another_size_is_rebuilt() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        of(&disk, 5000).keep().unwrap();
        let mut reserve = of(&disk, 6000);
        assert!(reserve.lacks() && !dir.path().join(PATH).exists());
        reserve.keep().unwrap();
        assert!(!of(&disk, 6000).lacks());
    }

    #[test]
    fn there_must_be_room_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        let mut reserve = of(&disk, u64::MAX / 4);
        assert_eq!(reserve.free_beside(), 0);
        assert!(disk::is_full(&reserve.keep().unwrap_err()));
    }

    #[test]
    fn it_is_given_up_for_work_that_finds_the_disk_full_and_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        let reserve = Mutex::new(of(&disk, 5000));
        reserve.lock().keep().unwrap();
        let mut tries = Vec::new();
        let done = with_reserve(&reserve, disk::is_full, || {
            let is_there = dir.path().join(PATH).exists();
            tries.push(is_there);
            if is_there { Err(io::ErrorKind::StorageFull.into()) } else { Ok(7) }
        });
        assert_eq!((done.unwrap(), tries), (7, vec![true, false]));
        assert!(!reserve.lock().lacks());
        let failed = with_reserve(&reserve, disk::is_full, || {
            Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied))
        });
        assert!(failed.is_err() && dir.path().join(PATH).exists(), "that is no matter of room");
    }
}
