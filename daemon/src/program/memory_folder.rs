//! A data folder in memory, for `--memory-only`: a folder of the file system that Linux keeps in memory.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::random;

/// Where Linux has a file system in memory that every user may write to.
const IN_MEMORY: &str = "/dev/shm";

/// Returns the path of this process's folder: one that no other program can have made before.
pub(super) fn path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let made = || {
        let number = random().expect("the system gives random bytes");
        Path::new(IN_MEMORY).join(format!("omird-{:016x}", u64::from_le_bytes(number)))
    };
    PATH.get_or_init(made).clone()
}

/// Removes a folder when it is dropped.
#[derive(Debug)]
pub(super) struct RemovedOnDrop(pub(super) PathBuf);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "{} is left; remove it", self.0.display());
        }
    }
}
