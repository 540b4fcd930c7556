//! The data folder before anything is read from it: there, ours, and locked.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::random;
use crate::config::Host;
use crate::disk::{Folder, is_read_only};
use crate::store::format::{keys, segment, wal};
use crate::store::{Lock, LockError};

/// A data folder that cannot be used.
#[derive(Debug)]
pub(super) enum FolderError {
    /// A file lies where the folder, or one above it, would be.
    IsFile(PathBuf, Position),
    /// Something in it is not what a data folder has there.
    IsNone(&'static str),
    /// It cannot be made.
    NotMade(io::Error),
    /// Its owner does not let omird use it.
    NotOurs {
        /// The action that omird may not take.
        matter: &'static str,
        /// The user id that omird runs as, if that is known.
        uid: Option<String>,
    },
    /// It belongs to another user than root, who runs omird.
    OfAnother {
        /// The user id of its owner.
        owner: u32,
        /// The folder.
        data: PathBuf,
    },
    /// It cannot be locked: another process has it, or the disk refuses.
    NotLocked(LockError),
}

/// The position of a file that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// In the place of the folder.
    There,
    /// In the place of one above it.
    Above,
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = "name another folder with --data, or with `data` in the configuration";
        match self {
            Self::IsFile(_, Position::There) => {
                write!(f, "it is a file, and the memories need a folder; {other}")
            }
            Self::IsFile(file, Position::Above) => {
                let found = file.display();
                write!(f, "{found} is a file, so that there can be no folder in it; {other}")
            }
            Self::IsNone(inside) => {
                write!(f, "{inside} in it is no folder, so that this is no data folder; {other}")
            }
            Self::NotMade(error) => write!(f, "it cannot be made: {error}; {other}"),
            Self::NotOurs { matter, uid } => {
                f.write_str(matter)?;
                if let Some(uid) = uid {
                    write!(f, " as the user with uid {uid}")?;
                }
                f.write_str(
                    ": give it to that user (sudo chown -R), or start omird as the user it belongs to, or name another \
                     with --data",
                )
            }
            Self::OfAnother { owner, data } => write!(
                f,
                "it belongs to another user (uid {owner}), who could not read what root writes there; a service would not \
                 start any more. Stop that and run `sudo -u omird omird --data {} …`; or, if root is meant, say so with \
                 --data",
                data.display()
            ),
            Self::NotLocked(error) => error.fmt(f),
        }
    }
}

/// Makes the folder, if it is not there: what a robot saw is not for everybody on the machine.
///
/// # Errors
/// Says what is in the way, and what to do about it.
pub(super) fn make(data: &Path) -> Result<(), FolderError> {
    let in_the_way = |path: &Path| std::fs::metadata(path).is_ok_and(|found| !found.is_dir());
    if let Some(file) = data.ancestors().find(|path| in_the_way(path)) {
        let position = if file == data { Position::There } else { Position::Above };
        return Err(FolderError::IsFile(file.to_owned(), position));
    }
    for inside in [segment::DIR, wal::DIR, keys::DIR, "index"] {
        let path = data.join(inside);
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Err(FolderError::IsNone(inside));
        }
    }
    let made = match data.parent() {
        Some(above) => std::fs::create_dir_all(above),
        None => Ok(()),
    };
    let made = made.and_then(|()| std::fs::DirBuilder::new().mode(0o700).create(data));
    match made {
        Err(_) if data.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(not_ours("omird may not make it", &Host::ask()))
        }
        made => made.map_err(FolderError::NotMade),
    }
}

/// A folder that omird may not use.
pub(super) fn not_ours(matter: &'static str, host: &Host) -> FolderError {
    FolderError::NotOurs { matter, uid: host.uid.clone() }
}

/// Root does not lock out the owner of a folder, who could not read what root writes there.
pub(super) fn check_owner(data: &Path, host: &Host) -> Result<(), FolderError> {
    let owner = std::fs::metadata(data).map_or(0, |folder| folder.uid());
    if !host.is_root || host.state_directory.is_some() || owner == 0 {
        return Ok(());
    }
    Err(FolderError::OfAnother { owner, data: data.to_owned() })
}

/// The data folder, locked and watched. One that is mounted read-only is locked as far as it can be.
pub(super) fn locked(data: &Path) -> Result<Folder, FolderError> {
    let lock = match Lock::acquire(data) {
        Err(LockError::Disk(error)) if is_read_only(&error) => {
            tracing::warn!("the data folder is read-only: what it holds is served");
            Lock::acquire_unwritten(data).map_err(FolderError::NotLocked)?
        }
        Ok(mut lock) => {
            let number = u128::from_le_bytes(random().expect("the system gives random bytes"));
            if let Err(error) = lock.stamp(number) {
                tracing::warn!(%error, "the lock file could not be written");
            }
            Some(lock)
        }
        Err(LockError::Disk(error)) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(not_ours("omird may not write there", &Host::ask()));
        }
        Err(error) => return Err(FolderError::NotLocked(error)),
    };
    Ok(match lock {
        Some(lock) => Folder::watched(data, lock.watch()),
        None => Folder::new(data),
    })
}
