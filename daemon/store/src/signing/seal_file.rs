//! Reads the seals of segments from a disk.

use std::io;

use super::signature::{Seal, SealFault};
use crate::disk::{self, Disk};
use crate::names;

/// Reads the seal of a segment. The inner error says why nothing can be told from it.
///
/// # Errors
/// Whatever the disk says, also that the folder is away.
pub(crate) fn read(disk: &dyn Disk, number: u64) -> io::Result<Result<Seal, SealFault>> {
    let text = match disk::read_patiently(disk, &names::signature_path(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // With the card away nothing is there, and nothing is missing.
            disk.mount_generation()?;
            return Ok(Err(SealFault::Missing));
        }
        text => text?,
    };
    Ok(Seal::from_json(&text)
        .and_then(|seal| if seal.is_authentic() { Ok(seal) } else { Err(SealFault::BadSignature) }))
}

/// Returns the seal of a segment; `None` if it is missing, has rotted, or the card has lost it: then it says nothing about
/// the segment.
///
/// # Errors
/// Whatever else the disk says.
pub(crate) fn find(disk: &dyn Disk, number: u64) -> io::Result<Option<Seal>> {
    match read(disk, number) {
        Err(error) if disk::is_loss(&error) && !disk::is_gone(&error) => Ok(None),
        read => Ok(read?.ok()),
    }
}
