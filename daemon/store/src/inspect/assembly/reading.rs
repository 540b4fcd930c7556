//! Each file by itself: its bytes as a scan, whatever the disk says.

use std::io;

use crate::disk;
use crate::inspect::finding::{Finding, Kind};
use crate::inspect::scan::{self, Scan, SealFile};
use crate::inspect::{FileKind, Source, Store};
use crate::log::witness;
use crate::segment::locate;
use crate::signing::signature::Seal;

pub(super) fn scan_file(store: &Store, source: &Source, deep: bool) -> io::Result<Scan> {
    let seal = seal_of(store, source);
    let (bytes, holes, remark) = match store.read(source, &seal) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(io::Error::new(error.kind(), format!("{}: {error}", source.path)));
        }
        Err(error) => {
            let mut scan = Scan::new(source, 0);
            let message = format!("it cannot be read: {error}");
            scan.unreadable = Some(locate::BadSegment { offset: 0, message: message.clone() });
            let kind = match source.kind {
                FileKind::Segment(_) => Kind::DiskError,
                FileKind::Log(number) => {
                    scan.log = number;
                    Kind::LogUnreadable
                }
            };
            scan.findings.push(Finding::new(kind, &source.path, message));
            scan.is_lossy = true;
            return Ok(scan);
        }
    };
    let mut scan = match source.kind {
        FileKind::Segment(_) => scan::segment(source, &bytes, seal, deep),
        FileKind::Log(number) => {
            // Bytes that its witness calls durable are no write that was cut short.
            let durable = match store.is_folder {
                true => witness::load(&*store.disk, number).end,
                false => 0,
            };
            scan::log(source, &bytes, usize::try_from(durable).unwrap_or(usize::MAX))
        }
    };
    scan.findings.extend(remark);
    scan.findings.extend(store.check_sidecar(source));
    scan.note_disk_errors(&holes);
    Ok(scan)
}

fn seal_of(store: &Store, source: &Source) -> SealFile {
    let Some(path) = store.signature_path(source) else { return SealFile::Missing };
    match disk::read(&*store.disk, &path) {
        Ok(text) => Seal::from_json(&text)
            .map_or(SealFile::Unreadable, |seal| SealFile::Read(Box::new(seal))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => SealFile::Missing,
        Err(_) => SealFile::Unreadable,
    }
}
