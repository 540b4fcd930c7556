//! The few file operations the store is built on, so that a test can stand in for the flash card.
//!
//! Everything the store promises rests on what this trait says about *atomic*, *durable* and
//! *failed*. A double that keeps what was written apart from what was synced fits on a page
//! (`tests/src/cut_disk.rs`). Paths are relative to the data folder and use `/`.

mod folder;
mod metered;
mod pass_on;
mod pooled;
mod retry_reads;

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use rustix::io::Errno;

pub(crate) use folder::no_link;
pub use folder::{Folder, MountGeneration};
pub use metered::{Metered, Usage};
pub use pooled::Pooled;
pub use retry_reads::{ReadFault, RetryReads};

/// Tries to read a file before it counts as lost.
const READ_ATTEMPTS: usize = 3;
/// How much is read at once; after an error, [`SECTOR`] by [`SECTOR`].
const CHUNK: usize = 1 << 20;
/// The smallest read that a failing card is asked for.
const SECTOR: usize = 4096;

/// File systems give out space in blocks of so many bytes, mostly.
pub const BLOCK: u64 = 4096;

/// The room that a file of so many bytes takes. A card gives out whole blocks: of a few MiB, that decides what fits.
pub fn room_of(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK)
}

/// How [`Disk::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new, empty file; one that is already there is emptied.
    Create,
}

/// A folder on a disk that may lose its power at any moment.
///
/// * **Atomic**: only `rename`. After a cut either the old or the new name is there, never neither.
/// * **Durable**: a file's bytes after [`DiskFile::sync`]; names (created, renamed, removed) after
///   [`Disk::sync_dir`] of their folder. Until then a cut may drop or reorder any of them.
/// * **Failed**: an operation that returns an error may have happened in part.
pub trait Disk: Send + Sync + 'static {
    /// Makes a folder and its parents. It is no error if it exists.
    fn create_dir(&self, dir: &str) -> io::Result<()>;
    /// Names of the files and folders directly in `dir`, in no particular order.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Opens a file.
    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Gives a file another name, atomically replacing one that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Open handles keep reading it.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// The room on the file system the folder lies on; `Unsupported` if nobody can tell.
    fn space(&self) -> io::Result<Space> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Checks that this is still the folder the store was opened on, and tells how often it has come
    /// back since, as from a card that was pulled out and put in again. Files that were opened
    /// before it came back may not be written to any more. An error that [`is_gone`] if it is away.
    fn mount_generation(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// The room on a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that users other than root may still write.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// The data folder is away: its card was pulled out or unmounted, or it was moved.
#[derive(Debug)]
pub struct FolderGone(pub String);

impl fmt::Display for FolderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FolderGone {}

impl From<FolderGone> for io::Error {
    fn from(gone: FolderGone) -> Self {
        Self::new(io::ErrorKind::NotFound, gone)
    }
}

/// Returns true if an error means that the data folder itself is away: [`FolderGone`], or the kernel's errors for
/// a device that was pulled out (`ENODEV`, `ENXIO`, `ENOMEDIUM`) and of a network's (`ESTALE`,
/// `ENOTCONN`).
pub fn is_gone(error: &io::Error) -> bool {
    let of_a_device = [Errno::NODEV, Errno::NXIO, Errno::NOMEDIUM, Errno::STALE, Errno::NOTCONN];
    error.get_ref().is_some_and(|inner| inner.is::<FolderGone>()) || is_one_of(error, &of_a_device)
}

/// Returns true if the kernel gave one of these numbers; the standard library has no kinds for them.
fn is_one_of(error: &io::Error, numbers: &[Errno]) -> bool {
    let code = error.raw_os_error();
    code.is_some_and(|code| numbers.iter().any(|errno| errno.raw_os_error() == code))
}

/// Returns true if an error means that the file system is mounted read-only (`EROFS`).
pub fn is_read_only(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ReadOnlyFilesystem
}

/// An open file. Positions are explicit: readers share one handle without a cursor.
#[expect(clippy::len_without_is_empty, reason = "a length in bytes on disk, not a collection")]
pub trait DiskFile: Send + Sync {
    /// Current length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Fills `buf` from `offset`; `UnexpectedEof` if the file ends before.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `buf` at `offset`. On error any part of it may have been written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file's bytes and length durable (`fdatasync`). After an error nothing may be
    /// assumed of what was written since the last sync that succeeded.
    fn sync(&self) -> io::Result<()>;
    /// Cuts or extends the file to `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Returns true if the name that the file was opened under still leads to it: false if it was deleted, moved or
    /// replaced since. A disk whose names nobody else changes need not look.
    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
    /// Takes room for `len` bytes of an empty file, which read as zeros; writes them where the file system can
    /// do no better.
    fn allocate(&self, len: u64) -> io::Result<()> {
        write_zeros(self, len)
    }
}

/// Fills an empty file with zeros, to take room on a file system that cannot do so otherwise.
fn write_zeros<F: DiskFile + ?Sized>(file: &F, len: u64) -> io::Result<()> {
    let zeros = [0; SECTOR];
    for at in (0..len).step_by(SECTOR) {
        let part = (len - at).min(SECTOR as u64) as usize;
        file.write_at(&zeros[..part], at)?;
    }
    Ok(())
}

/// Reads a whole file.
pub fn read(disk: &dyn Disk, path: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Mode::Read)?;
    let len = usize::try_from(file.len()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Reads a whole file, several times if the disk gives an error: some do not come again.
pub(crate) fn read_patiently(disk: &dyn Disk, path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = read(disk, path);
    for _ in 1..READ_ATTEMPTS {
        match &bytes {
            Err(error) if error.kind() != io::ErrorKind::NotFound => bytes = read(disk, path),
            _ => break,
        }
    }
    bytes
}

/// Reads a whole file; where the disk gives an error, zeros stand, and the second value tells where.
///
/// # Errors
/// If the file cannot be opened, or its length is not to be had.
pub fn read_around(disk: &dyn Disk, path: &str) -> io::Result<(Vec<u8>, Vec<Range<usize>>)> {
    let file = disk.open(path, Mode::Read)?;
    let len = usize::try_from(file.len()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    let mut holes: Vec<Range<usize>> = Vec::new();
    for start in (0..len).step_by(CHUNK) {
        let end = len.min(start + CHUNK);
        if file.read_at(&mut bytes[start..end], start as u64).is_ok() {
            continue;
        }
        for at in (start..end).step_by(SECTOR) {
            let next = end.min(at + SECTOR);
            if file.read_at(&mut bytes[at..next], at as u64).is_err() {
                bytes[at..next].fill(0);
                match holes.last_mut() {
                    Some(hole) if hole.end == at => hole.end = next,
                    _ => holes.push(at..next),
                }
            }
        }
    }
    Ok((bytes, holes))
}

/// Writes a file under a temporary name, syncs it and renames it into place.
///
/// Durable only after [`Disk::sync_dir`] of its folder, which is left to the caller so that
/// several files can share one sync.
pub fn replace(disk: &dyn Disk, path: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{path}.tmp");
    let written = (|| {
        let file = disk.open(&temporary, Mode::Create)?;
        file.write_at(bytes, 0)?;
        file.sync()?;
        disk.rename(&temporary, path)
    })();
    if written.is_err() {
        // Best effort: a left-over is removed at the next start as well.
        let _ = disk.remove(&temporary);
    }
    written
}

/// There is less room than something needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom {
    /// Bytes it needs.
    pub needed: u64,
    /// Bytes there are for it.
    pub free: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes are needed and {} are free for it", self.needed, self.free)
    }
}

impl std::error::Error for NoRoom {}

impl From<NoRoom> for io::Error {
    fn from(lack: NoRoom) -> Self {
        Self::new(io::ErrorKind::StorageFull, lack)
    }
}

/// Checks that there is room for so many bytes, before any of them is written. A disk that cannot tell has
/// room.
///
/// # Errors
/// [`NoRoom`].
pub fn check_room(disk: &dyn Disk, needed: u64) -> io::Result<()> {
    match disk.space() {
        Ok(Space { free, .. }) if free < needed => Err(NoRoom { needed, free }.into()),
        _ => Ok(()),
    }
}

/// Returns true if an error means that there is no room left (`ENOSPC`, `EDQUOT`, or `EFBIG`).
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Returns true if the bytes themselves are lost: the card cannot give them back (`EIO`),
/// the file system's own checksums say so (`EBADMSG`, `EUCLEAN`), or the file ends before them. What
/// a process lacks (handles, memory, permission) says nothing of them.
pub fn is_loss(error: &io::Error) -> bool {
    // An error without a number was made from what was read.
    error.raw_os_error().is_none() || is_one_of(error, &[Errno::IO, Errno::BADMSG, Errno::UCLEAN])
}
