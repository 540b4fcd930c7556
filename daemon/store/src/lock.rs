//! One process at a time: `<data>/lock`, and whether the folder that has it is still there.
//!
//! A card that is pulled out leaves its mount point behind: an empty folder of the same name, on
//! another disk. One that is put in again may come back as another device, and another card may
//! come back as the same. So the lock file is what tells: it holds the process id and a number
//! that the daemon drew at its start.
//!
//! Invariant 19 of ARCHITECTURE.md.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::disk::{FolderGone, MountGeneration, no_link};

const NAME: &str = "lock";
/// No lock file is longer; more of one that somebody put there is not read.
const MOST: u64 = 128;

/// Held as long as it lives; the kernel lets it go with the process, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    data: PathBuf,
    /// Contents of the file.
    text: String,
    /// The file, and the folder it is in, as they were found last.
    found: Option<(Identity, Identity)>,
    /// How often the folder came back.
    returns: u64,
}

/// Identity of a file, which tells it from another, and from itself on another mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    /// When it was written; 0 for a folder.
    written: (i64, i64),
}

impl Identity {
    fn of_file(file: &Metadata) -> Self {
        let written = (file.mtime(), file.mtime_nsec());
        Self { device: file.dev(), inode: file.ino(), written }
    }

    fn of_folder(folder: &Metadata) -> Self {
        Self { device: folder.dev(), inode: folder.ino(), written: (0, 0) }
    }
}

impl Lock {
    /// Takes the lock of a data folder, which must exist.
    ///
    /// # Errors
    /// [`LockError::Held`] at once if another process has it.
    pub fn acquire(data: &Path) -> Result<Self, LockError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(no_link())
            .open(data.join(NAME))
            .map_err(refused)?;
        match file.try_lock() {
            Ok(()) => {
                // For a person who finds the folder in use; a failure to write it is no matter.
                let _ = file.set_len(0);
                let _ = file.rewind();
                let text = std::process::id().to_string();
                let _ = file.write_all(text.as_bytes());
                Ok(Self::new(file, data, text))
            }
            Err(TryLockError::WouldBlock) => Err(LockError::Held { by: process(&mut file) }),
            Err(TryLockError::Error(error)) => Err(LockError::Disk(error)),
        }
    }

    /// Takes the lock of a data folder for reading, and writes nothing: any number may hold it so, and
    /// no daemon meanwhile. `None` if the folder has no lock file, so that nobody can hold it.
    ///
    /// # Errors
    /// [`LockError::Held`] at once if a daemon has it.
    pub fn acquire_unwritten(data: &Path) -> Result<Option<Self>, LockError> {
        let opened = OpenOptions::new().read(true).custom_flags(no_link()).open(data.join(NAME));
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => {
                let text = holder(&mut file);
                Ok(Some(Self::new(file, data, text)))
            }
            Err(TryLockError::WouldBlock) => Err(LockError::Held { by: process(&mut file) }),
            Err(TryLockError::Error(error)) => Err(LockError::Disk(error)),
        }
    }

    fn new(file: File, data: &Path, text: String) -> Self {
        let mut lock = Self { file, data: data.to_owned(), text, found: None, returns: 0 };
        lock.note();
        lock
    }

    fn note(&mut self) {
        let file = self.file.metadata().map(|file| Identity::of_file(&file));
        let folder = std::fs::metadata(&self.data).map(|folder| Identity::of_folder(&folder));
        self.found = file.ok().zip(folder.ok());
    }

    /// Writes a number into the lock file that no other start draws, so that the folder is known
    /// again when its card comes back. Durable on return.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn stamp(&mut self, number: u128) -> io::Result<()> {
        self.text = format!("{} {number:032x}", std::process::id());
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(self.text.as_bytes())?;
        self.file.sync_all()?;
        self.note();
        Ok(())
    }

    /// Keeps the lock and tells whether its folder is still there, as [`Folder::watched`] asks.
    ///
    /// [`Folder::watched`]: crate::disk::Folder::watched
    pub fn watch(self) -> MountGeneration {
        let lock = Mutex::new(self);
        std::sync::Arc::new(move || lock.lock().look())
    }

    /// How often the folder came back.
    ///
    /// # Errors
    /// [`FolderGone`] if it is not there, or another one is; whatever the disk says.
    fn look(&mut self) -> io::Result<u64> {
        match std::fs::metadata(self.data.join(NAME)) {
            Ok(file) if self.found.is_some_and(|(own, _)| own == Identity::of_file(&file)) => {
                return Ok(self.returns);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if self.was_removed_by_hand() {
            let mut made = Lock::acquire(&self.data).map_err(io::Error::other)?;
            made.file.rewind()?;
            made.file.write_all(self.text.as_bytes())?;
            self.file = made.file;
        } else {
            self.file = self.find_again()?;
            self.returns += 1;
        }
        self.note();
        Ok(self.returns)
    }

    /// Returns true if only the file is gone: nobody has pulled anything out.
    fn was_removed_by_hand(&self) -> bool {
        let folder = std::fs::metadata(&self.data).map(|folder| Identity::of_folder(&folder));
        let is_same = folder.is_ok_and(|now| self.found.is_some_and(|(_, own)| own == now));
        is_same && self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }

    /// Opens and locks the file of this lock in a folder that came back.
    fn find_again(&self) -> io::Result<File> {
        let data = self.data.display();
        let path = self.data.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(no_link());
        let opened = options.clone().write(true).open(&path);
        let mut file = match opened.or_else(|_| options.open(&path)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("{data} is away, or what lies there is no store");
                return Err(FolderGone(message).into());
            }
            Err(error) => return Err(error),
        };
        if holder(&mut file) != self.text {
            let message = format!("{data} is another store, or another daemon has used it since");
            return Err(FolderGone(message).into());
        }
        file.try_lock().map_err(|_| FolderGone(format!("another process is using {data}")))?;
        Ok(file)
    }
}

/// Why a data folder cannot be locked.
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    /// Another process has it.
    Held {
        /// Its process id, if it could be read.
        by: String,
    },
    /// It is a symbolic link, which may lead anywhere.
    Link,
    /// The file cannot be made.
    Disk(io::Error),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { by } if by.is_empty() => f.write_str("another process is using it"),
            Self::Held { by } => write!(f, "process {by} is using it; stop that one first"),
            Self::Link => f.write_str(
                "its file `lock` is a symbolic link, and is not followed; remove the link",
            ),
            Self::Disk(error) => write!(f, "its lock file cannot be made: {error}"),
        }
    }
}

impl std::error::Error for LockError {}

fn refused(error: io::Error) -> LockError {
    if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::LOOP) {
        return LockError::Link;
    }
    LockError::Disk(error)
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.take(MOST).read_to_string(&mut text);
    text.trim().to_owned()
}

/// The process id in a lock file, as far as there is one and it can be true: who holds the lock for
/// reading has not written its own.
fn process(file: &mut File) -> String {
    let id = holder(file).split(' ').next().unwrap_or_default().to_owned();
    if Path::new("/proc").join(&id).exists() { id } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lock::acquire(dir.path()).unwrap();
        match Lock::acquire(dir.path()) {
            Err(LockError::Held { by }) => assert_eq!(by, std::process::id().to_string()),
            other => panic!("{other:?}"),
        }
        drop(held);
        Lock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (data, other) = (dir.path().join("data"), dir.path().join("other"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, data.join(NAME)).unwrap();
        let error = Lock::acquire(&data).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(matches!(Lock::acquire_unwritten(&data), Err(LockError::Link)));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    }

    fn stamped(data: &Path) -> MountGeneration {
        let mut lock = Lock::acquire(data).unwrap();
        lock.stamp(7).unwrap();
        lock.watch()
    }

    #[test]
    fn a_folder_that_was_moved_away_is_gone_until_it_is_back() {
        let dir = tempfile::tempdir().unwrap();
        let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
        std::fs::create_dir(&data).unwrap();
        let mount_generation = stamped(&data);
        assert_eq!(mount_generation().unwrap(), 0);
        std::fs::rename(&data, &elsewhere).unwrap();
        assert!(crate::disk::is_gone(&mount_generation().unwrap_err()));
        // As a mount point is without its card; and then with another card.
        std::fs::create_dir(&data).unwrap();
        assert!(crate::disk::is_gone(&mount_generation().unwrap_err()));
        assert!(!data.join(NAME).exists(), "nothing is written to what lies there");
        drop(Lock::acquire(&data).unwrap());
        assert!(crate::disk::is_gone(&mount_generation().unwrap_err()));
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::rename(&elsewhere, &data).unwrap();
        assert_eq!(mount_generation().unwrap(), 0, "the very same files");
    }

    #[test]
    fn a_folder_that_came_back_on_another_device_is_known_and_locked() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mount_generation = stamped(&data);
        let text = std::fs::read(data.join(NAME)).unwrap();
        std::fs::rename(&data, dir.path().join("pulled out")).unwrap();
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join(NAME), text).unwrap();
        assert_eq!((mount_generation().unwrap(), mount_generation().unwrap()), (1, 1));
        assert!(Lock::acquire(&data).is_err(), "it is locked again");
    }

    #[test]
    fn a_lock_file_that_somebody_removed_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let mount_generation = stamped(dir.path());
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        assert_eq!(mount_generation().unwrap(), 0);
        assert!(Lock::acquire(dir.path()).is_err());
    }

    #[test]
    fn a_reader_keeps_a_daemon_out_and_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Lock::acquire_unwritten(dir.path()).unwrap().is_none(), "nobody was ever here");
        drop(Lock::acquire(dir.path()).unwrap());
        // Of a daemon that was here long ago; no process has that number.
        std::fs::write(dir.path().join(NAME), "4194305 0").unwrap();
        let (first, second) =
            (Lock::acquire_unwritten(dir.path()), Lock::acquire_unwritten(dir.path()));
        let refused = Lock::acquire(dir.path()).unwrap_err().to_string();
        assert!(first.unwrap().is_some() && refused == "another process is using it", "{refused}");
        assert_eq!(std::fs::read_to_string(dir.path().join(NAME)).unwrap(), "4194305 0");
        drop(second);
        let held = Lock::acquire(dir.path()).unwrap();
        assert!(matches!(Lock::acquire_unwritten(dir.path()), Err(LockError::Held { .. })));
        drop(held);
    }
}
