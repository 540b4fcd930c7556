//! Files as their second copies mend them: a look at a store sees what its next start would see. Nothing is
//! written.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::finding::{Finding, Kind};
use super::scan::SealFile;
use super::{FileKind, Source, Store};
use crate::disk::{self, DiskFile, Mode};
use crate::log::wal;
use crate::rot::segment_repair;
use crate::{digest, segment};

/// The bytes of a file, where the disk gives errors, and what is to be said of it.
type Seen = (Vec<u8>, Vec<Range<usize>>, Option<Finding>);

impl Store {
    /// Looks at a file, mended as far as that is possible.
    pub(super) fn read(&self, source: &Source, seal: &SealFile) -> io::Result<Seen> {
        let (bytes, holes) = disk::read_around(&*self.disk, &source.path)?;
        let mended = match source.kind {
            _ if !self.is_folder || source.is_set_aside => None,
            FileKind::Segment(number) => self.mended_segment(number, &bytes, seal),
            FileKind::Log(number) => mended_log(number, &bytes),
        };
        let Some((mended, message)) = mended else { return Ok((bytes, holes, None)) };
        let finding = Finding::new(Kind::Repairable, &source.path, message);
        let kept: Arc<[u8]> = mended.as_slice().into();
        let mut all = self.mended.lock();
        all.insert(source.path.clone(), kept);
        Ok((mended, Vec::new(), Some(finding)))
    }

    /// A segment by its sidecar, if that makes it what was written.
    fn mended_segment(
        &self,
        number: u64,
        bytes: &[u8],
        seal: &SealFile,
    ) -> Option<(Vec<u8>, String)> {
        let digest = digest::digest(bytes);
        if matches!(seal, SealFile::Read(seal) if seal.contents.sha256 == digest) {
            return None;
        }
        let sidecar = segment_repair::read_sidecar(&*self.disk, number)?;
        let mended = segment_repair::mended(&*self.disk, number)?;
        let is_whole = sidecar.sha256 != digest && digest::digest(&mended) == sidecar.sha256;
        let blocks = sidecar.damaged_blocks(bytes).len();
        let message = format!(
            "damaged blocks of 4 KiB: {blocks}; its sidecar restores them at the next start"
        );
        is_whole.then_some((mended, message))
    }

    /// The fault of a segment's sidecar, if any.
    pub(super) fn check_sidecar(&self, source: &Source) -> Option<Finding> {
        let FileKind::Segment(number) = source.kind else { return None };
        if !self.is_folder || source.is_set_aside {
            return None;
        }
        let path = segment::sidecar_path(number);
        let name = path.rsplit('/').next().unwrap_or_default();
        if !self.names(segment::DIR).ok()?.iter().any(|other| other == name) {
            let message = "the segment has none, as older releases and backups leave it; a daemon makes it soon after its start";
            return Some(Finding::new(Kind::SidecarMissing, &path, message));
        }
        let sidecar = segment_repair::look_at_sidecar(&*self.disk, number);
        let message = "it is damaged: what rots of the segment meanwhile is lost; a daemon rebuilds it soon after its start";
        let is_good = sidecar.is_some_and(|(_, is_as_written)| is_as_written);
        (!is_good).then(|| Finding::new(Kind::SidecarDamaged, &path, message))
    }

    /// A file to read from: what was mended of it, or else the file.
    pub(super) fn open_read(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let all = self.mended.lock();
        match all.get(path) {
            Some(bytes) => Ok(Arc::new(InMemory(bytes.clone()))),
            None => self.disk.open(path, Mode::Read),
        }
    }
}

/// A log with the single bits turned back that have rotted.
fn mended_log(number: u64, bytes: &[u8]) -> Option<(Vec<u8>, String)> {
    let mut mended = bytes.to_vec();
    let bits = wal::mend(&mut mended, number);
    let first = bits.first()?;
    let (count, at) = (bits.len(), first.at);
    let message =
        format!("rotten bits: {count}, the first in byte {at}; the next start turns them back");
    Some((mended, message))
}

/// Mended bytes, as a file to read from.
struct InMemory(Arc<[u8]>);

impl DiskFile for InMemory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(self.0.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
