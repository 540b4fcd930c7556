//! The data folder before anything is read from it: there, ours, and locked.

use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use super::random;
use crate::config::Host;
use crate::disk::{Folder, is_read_only};
use crate::store::lock::LockError;
use crate::store::{keys, lock, segment, wal};

/// Makes the folder, if it is not there: what a robot saw is not for everybody on the machine.
///
/// # Errors
/// Says what is in the way, and what to do about it.
pub(super) fn make(data: &Path) -> Result<(), String> {
    let other = "name another folder with --data, or with `data` in the configuration";
    let in_the_way = |path: &Path| std::fs::metadata(path).is_ok_and(|found| !found.is_dir());
    if let Some(file) = data.ancestors().find(|path| in_the_way(path)) {
        let found = file.display();
        return Err(if file == data {
            format!("it is a file, and the memories need a folder; {other}")
        } else {
            format!("{found} is a file, so that there can be no folder in it; {other}")
        });
    }
    for inside in [segment::DIR, wal::DIR, keys::DIR, "index"] {
        let path = data.join(inside);
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Err(format!(
                "{inside} in it is no folder, so that this is no data folder; {other}"
            ));
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
        made => made.map_err(|error| format!("it cannot be made: {error}; {other}")),
    }
}

/// What to do about a folder that omird may not use.
pub(super) fn not_ours(matter: &str, host: &Host) -> String {
    let who =
        host.uid.as_deref().map(|uid| format!(" as the user with uid {uid}")).unwrap_or_default();
    format!(
        "{matter}{who}: give it to that user (sudo chown -R), or start omird as the user it belongs to, or name another \
         with --data"
    )
}

/// Root does not lock the user out whom a folder belongs to, who could not read what root writes there.
pub(super) fn check_owner(data: &Path, host: &Host) -> Result<(), String> {
    let owner = std::fs::metadata(data).map_or(0, |folder| folder.uid());
    if !host.is_root || host.state_directory.is_some() || owner == 0 {
        return Ok(());
    }
    Err(format!(
        "it belongs to another user (uid {owner}), who could not read what root writes there; a service would not start any \
         more. Stop that and run `sudo -u omird omird --data {} …`; or, if root is meant, say so with --data",
        data.display()
    ))
}

/// The data folder, locked and watched. One that is mounted read-only is locked as far as it can be.
pub(super) fn locked(data: &Path) -> Result<Folder, String> {
    let lock = match lock::acquire(data) {
        Err(LockError::Disk(error)) if is_read_only(&error) => {
            tracing::warn!("the data folder is read-only: what it holds is served");
            lock::acquire_unwritten(data).map_err(|error| error.to_string())?
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
        Err(error) => return Err(error.to_string()),
    };
    Ok(match lock {
        Some(lock) => Folder::watched(data, lock.watch()),
        None => Folder::new(data),
    })
}
