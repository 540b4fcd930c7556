//! Room that is kept for a full disk: `<data>/reserve`, a file of zeros.
//!
//! Forgetting writes too: a tombstone in a log, a new log, a segment. On a disk that is full to the
//! brim the reserve is given up for that, nothing new is taken in, and it is made again as soon as
//! there is room.

use std::io;

use crate::disk::{self, Disk, Mode};

/// Where it lies.
pub const PATH: &str = "reserve";

/// The reserve of a store.
#[derive(Debug)]
pub struct Reserve {
    bytes: u64,
    is_kept: bool,
}

impl Reserve {
    /// The reserve of so many bytes as it lies there; 0 for none at all.
    pub fn of(disk: &dyn Disk, bytes: u64) -> Self {
        let found = disk.open(PATH, Mode::Read).and_then(|file| file.len());
        Self { bytes, is_kept: bytes == 0 || found.is_ok_and(|len| len == bytes) }
    }

    /// Whether it lacks.
    pub fn lacks(&self) -> bool {
        !self.is_kept
    }

    /// Whether there is room for a reserve and as much again. A disk that cannot tell has room.
    pub fn has_room(&self, disk: &dyn Disk) -> bool {
        disk.space().map_or(true, |space| space.free >= self.bytes.saturating_mul(2))
    }

    /// Makes it if it lacks and there is room.
    ///
    /// # Errors
    /// Whatever the disk says; `StorageFull` also if there would be little room beside it.
    pub fn keep(&mut self, disk: &dyn Disk) -> io::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        if !self.has_room(disk) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let zeros = vec![0; usize::try_from(self.bytes).map_err(io::Error::other)?];
        disk::replace(disk, PATH, &zeros)?;
        disk.sync_dir(".")?;
        self.is_kept = true;
        Ok(())
    }

    /// Gives it up; returns whether that made room.
    pub fn give_up(&mut self, disk: &dyn Disk) -> bool {
        if self.bytes == 0 || !self.is_kept {
            return false;
        }
        self.is_kept = disk.remove(PATH).is_err();
        // Some file systems give the room back only now.
        !self.is_kept && disk.sync_dir(".").is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;

    #[test]
    fn it_is_made_once_given_up_once_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        let mut reserve = Reserve::of(&disk, 5000);
        assert!(reserve.lacks() && !reserve.give_up(&disk));
        reserve.keep(&disk).unwrap();
        assert_eq!(std::fs::read(dir.path().join(PATH)).unwrap(), [0; 5000]);
        assert!(!Reserve::of(&disk, 5000).lacks());
        assert!(Reserve::of(&disk, 6000).lacks(), "one of another size is made anew");
        assert!(reserve.give_up(&disk) && reserve.lacks());
        assert!(!dir.path().join(PATH).exists());
        assert!(!Reserve::of(&disk, 0).lacks(), "none was asked for");
    }

    #[test]
    fn there_must_be_room_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        let mut reserve = Reserve::of(&disk, u64::MAX / 4);
        assert!(disk::is_full(&reserve.keep(&disk).unwrap_err()));
    }
}
