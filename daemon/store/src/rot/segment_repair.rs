//! Repairs a sealed segment on the card by its sidecar, and a sidecar by its segment.
//!
//! A repaired file is written under a temporary name, synced and renamed, so that a cut at any moment leaves
//! either the damaged file, which is repaired again, or the sound one.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::io;

use super::sidecar::Sidecar;
use crate::disk::{self, Disk};
use crate::kept_index::index_extractor::Names;
use crate::log::witness::{self, Fact};
use crate::signing::seal_file;
use crate::signing::signature::Seal;
use crate::{digest, segment};

/// The state of a segment and its sidecar after a scrub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scrubbed {
    /// Both are as they should be.
    Sound,
    /// The segment was damaged and is whole again; these are its bytes.
    Segment(Vec<u8>),
    /// The sidecar was missing or damaged and was rebuilt.
    Sidecar,
    /// The segment is damaged and cannot be mended.
    Lost,
}

/// Writes the sidecar of a segment, with the facts in it. Its name is durable after a sync of the folder.
///
/// # Errors
/// Whatever the disk says.
pub(crate) fn write_sidecar(
    disk: &dyn Disk,
    number: u64,
    bytes: &[u8],
    facts: &[Fact],
) -> io::Result<()> {
    let sidecar = Sidecar::of(number, bytes, witness::encode(facts));
    disk::replace(disk, &segment::sidecar_path(number), &sidecar.encode())
}

/// The sidecar of a segment, if enough of it can be read.
pub(crate) fn read_sidecar(disk: &dyn Disk, number: u64) -> Option<Sidecar> {
    look_at_sidecar(disk, number).map(|(sidecar, _)| sidecar)
}

/// The same; also tells whether all of it can be read.
pub(crate) fn look_at_sidecar(disk: &dyn Disk, number: u64) -> Option<(Sidecar, bool)> {
    let (bytes, _) = disk::read_around(disk, &segment::sidecar_path(number)).ok()?;
    let sidecar = Sidecar::decode(&bytes).ok().filter(|sidecar| sidecar.segment == number)?;
    let is_as_written = sidecar.is_as_written(&bytes);
    Some((sidecar, is_as_written))
}

/// Reads the facts in the sidecar of a segment; none if it cannot be read.
pub(crate) fn facts_of(disk: &dyn Disk, number: u64) -> Option<Vec<Fact>> {
    let witness = read_sidecar(disk, number).and_then(|sidecar| sidecar.witness);
    witness.and_then(|witness| witness::decode(&witness))
}

/// The bytes of a segment that is not what was signed, or cannot be read, mended by its sidecar and
/// written back where the disk takes them; `None` if that is not possible.
pub(crate) fn repair(disk: &dyn Disk, number: u64, seal: Option<&Seal>) -> Option<Vec<u8>> {
    let sidecar = read_sidecar(disk, number)?;
    // A sidecar of other bytes is left from a sealing that was cut short.
    seal.is_none_or(|seal| seal.contents.sha256 == sidecar.sha256).then_some(())?;
    let path = segment::path(number);
    let (mut bytes, _) = disk::read_around(disk, &path).ok()?;
    let is_untouched = digest::digest(&bytes) == sidecar.sha256;
    let blocks = match sidecar.mend(&mut bytes) {
        Ok(blocks) => blocks,
        Err(fault) => {
            tracing::error!(file = path, %fault, "damaged beyond repair");
            return None;
        }
    };
    if is_untouched {
        return Some(bytes);
    }
    let rewritten = disk::replace(disk, &path, &bytes).and_then(|()| disk.sync_dir(segment::DIR));
    match rewritten {
        Ok(()) => tracing::warn!(file = path, blocks, "was damaged and is repaired"),
        Err(error) => {
            tracing::warn!(file = path, blocks, %error, "is damaged, and the repair cannot be written yet");
        }
    }
    Some(bytes)
}

/// The bytes of a segment with all mended that its sidecar can mend; nothing is written. What could not be
/// mended does not pass its checksum. `None` if there is no sidecar of this segment.
pub(crate) fn mended(disk: &dyn Disk, number: u64) -> Option<Vec<u8>> {
    let seal = seal_file::find(disk, number).ok().flatten();
    let sidecar = read_sidecar(disk, number)?;
    seal.is_none_or(|seal| seal.contents.sha256 == sidecar.sha256).then_some(())?;
    let (mut bytes, _) = disk::read_around(disk, &segment::path(number)).ok()?;
    sidecar.mend_stripes(&mut bytes);
    Some(bytes)
}

/// Reads a segment and its sidecar, and repairs the one by the other.
///
/// # Errors
/// Whatever the disk says of writing, and of reading other than that bytes are lost.
pub(crate) fn scrub(disk: &dyn Disk, number: u64) -> io::Result<Scrubbed> {
    let seal = seal_file::find(disk, number).ok().flatten();
    let bytes = match disk::read(disk, &segment::path(number)) {
        Err(error) if !disk::is_loss(&error) => return Err(error),
        bytes => bytes.ok(),
    };
    let digest = bytes.as_deref().map(digest::digest);
    let sidecar = look_at_sidecar(disk, number);
    let signed = seal.as_ref().map(|seal| seal.contents.sha256);
    let expected = signed.or(sidecar.as_ref().map(|(sidecar, _)| sidecar.sha256));
    if expected.is_none()
        && let Some(block) = bytes.as_deref().and_then(|bytes| segment::index::<Names>(bytes).ok())
    {
        // Its own checksums are all that vouches for it.
        write_sidecar(
            disk,
            number,
            bytes.as_deref().unwrap_or_default(),
            &witness::of_block::<Names>(&block),
        )?;
        disk.sync_dir(segment::DIR)?;
        return Ok(Scrubbed::Sidecar);
    }
    if expected.is_none() || digest != expected {
        let Some(repaired) = repair(disk, number, seal.as_ref()) else { return Ok(Scrubbed::Lost) };
        // It says so where it could not be written back: then it is tried again.
        let written = disk::read(disk, &segment::path(number))?;
        return match written == repaired {
            true => Ok(Scrubbed::Segment(repaired)),
            false => Err(io::Error::other("what was repaired could not be written back yet")),
        };
    }
    let is_kept =
        |(sidecar, is_whole): &(Sidecar, bool)| *is_whole && Some(sidecar.sha256) == expected;
    if sidecar.as_ref().is_some_and(is_kept) {
        return Ok(Scrubbed::Sound);
    }
    let bytes = bytes.unwrap_or_default();
    let facts = segment::index::<Names>(&bytes)
        .map(|block| witness::of_block::<Names>(&block))
        .unwrap_or_default();
    write_sidecar(disk, number, &bytes, &facts)?;
    disk.sync_dir(segment::DIR)?;
    Ok(Scrubbed::Sidecar)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::digest::{Digest, digest};
    use crate::disk::Folder;
    use crate::signing::signature::{Contents, DeviceKey};

    #[test]
    fn segment_and_sidecar_repair_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::new(dir.path());
        disk.create_dir(segment::DIR).unwrap();
        let at = |path: String| dir.path().join(path);
        let (file, beside) = (at(segment::path(3)), at(segment::sidecar_path(3)));
        let whole: Vec<u8> = (0..300_000u32).map(|n| (n / 7) as u8).collect();
        let contents = Contents { bytes: whole.len() as u64, sha256: digest(&whole), root: None };
        let seal = DeviceKey::from_secret([7; 32]).sign(3, &contents, Digest::default(), None);
        fs::write(&file, &whole).unwrap();
        fs::write(at(segment::signature_path(3)), seal.to_json()).unwrap();
        // A segment of an old release has none.
        assert_eq!(scrub(&disk, 3).unwrap(), Scrubbed::Sidecar);
        let sidecar = fs::read(&beside).unwrap();
        assert_eq!(scrub(&disk, 3).unwrap(), Scrubbed::Sound);

        let mut rotten = whole.clone();
        rotten[10_000..14_096].fill(0xff);
        fs::write(&file, &rotten).unwrap();
        assert_eq!(scrub(&disk, 3).unwrap(), Scrubbed::Segment(whole.clone()));
        assert_eq!(fs::read(&file).unwrap(), whole);

        for at in [0, 100, 1000, 5000, sidecar.len() - 1] {
            let mut rotten = sidecar.clone();
            rotten[at] ^= 4;
            fs::write(&beside, &rotten).unwrap();
            scrub(&disk, 3).unwrap();
            fs::write(&file, &whole[..whole.len() - 1000]).unwrap();
            let is_repaired = matches!(scrub(&disk, 3).unwrap(), Scrubbed::Segment(_));
            assert!(is_repaired, "sidecar damaged at {at}");
        }
        rotten[200_000] ^= 1;
        fs::write(&file, &rotten).unwrap();
        assert_eq!(scrub(&disk, 3).unwrap(), Scrubbed::Lost);
        assert_eq!(fs::read(&file).unwrap(), rotten, "left as it is for a person to look at");
    }
}
