//! One process at a time: `<data>/lock`.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// Held as long as it lives; the kernel lets it go with the process, however that ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
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
    /// The file cannot be made.
    Disk(io::Error),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { by } if by.is_empty() => f.write_str("another process is using it"),
            Self::Held { by } => write!(f, "process {by} is using it; stop that one first"),
            Self::Disk(error) => write!(f, "its lock file cannot be made: {error}"),
        }
    }
}

impl std::error::Error for LockError {}

/// Takes the lock of a data folder, which must exist.
///
/// # Errors
/// [`LockError::Held`] at once if another process has it.
pub fn acquire(data: &Path) -> Result<Lock, LockError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(data.join("lock"))
        .map_err(LockError::Disk)?;
    match file.try_lock() {
        Ok(()) => {
            // For a person who finds the folder in use; a failure to write it is no matter.
            let _ = file.set_len(0);
            let _ = file.rewind();
            let _ = write!(file, "{}", std::process::id());
            Ok(Lock { _file: file })
        }
        Err(TryLockError::WouldBlock) => Err(LockError::Held { by: holder(&mut file) }),
        Err(TryLockError::Error(error)) => Err(LockError::Disk(error)),
    }
}

/// Takes the lock of a data folder that cannot be written to, for reading: any number may hold it
/// so, and no daemon meanwhile. `None` if the folder has no lock file, so that nobody can hold it.
///
/// # Errors
/// [`LockError::Held`] at once if a daemon has it.
pub fn acquire_unwritten(data: &Path) -> Result<Option<Lock>, LockError> {
    let mut file = match File::open(data.join("lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LockError::Disk(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Err(LockError::Held { by: holder(&mut file) }),
        Err(TryLockError::Error(error)) => Err(LockError::Disk(error)),
    }
}

fn holder(file: &mut File) -> String {
    let mut by = String::new();
    let _ = file.read_to_string(&mut by);
    by.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = acquire(dir.path()).unwrap();
        match acquire(dir.path()) {
            Err(LockError::Held { by }) => assert_eq!(by, std::process::id().to_string()),
            other => panic!("{other:?}"),
        }
        drop(held);
        acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_reader_keeps_a_daemon_out_and_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        assert!(acquire_unwritten(dir.path()).unwrap().is_none(), "nobody was ever here");
        drop(acquire(dir.path()).unwrap());
        let (first, second) = (acquire_unwritten(dir.path()), acquire_unwritten(dir.path()));
        assert!(first.unwrap().is_some() && acquire(dir.path()).is_err());
        drop(second);
        let held = acquire(dir.path()).unwrap();
        assert!(matches!(acquire_unwritten(dir.path()), Err(LockError::Held { .. })));
        drop(held);
    }
}
