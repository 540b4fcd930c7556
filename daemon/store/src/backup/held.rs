//! One segment of a backup: what it covers, and whether it is what was signed.

use std::io;

use crate::digest::digest;
use crate::disk::{self, Disk};
use crate::files::Span;
use crate::segment;
use crate::signature::Seal;

/// A segment that lies in a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub segment: u64,
    /// Its length.
    pub bytes: u64,
    /// Its signature, if there is one that can be read.
    pub seal: Option<Seal>,
    /// The transactions it covers, if it is what was signed; and if not, what is wrong.
    pub state: Result<Span, String>,
}

impl Held {
    /// Looks at segment `number`.
    ///
    /// # Errors
    /// If there is no such file. One that cannot be read is no error but a fault of the segment.
    pub(super) fn look(disk: &dyn Disk, number: u64) -> io::Result<Self> {
        let seal = disk::read(disk, &segment::signature_path(number))
            .map(|text| Seal::from_json(&text).ok());
        let (seal, is_missing) = match seal {
            Ok(seal) => (seal, false),
            Err(error) => (None, error.kind() == io::ErrorKind::NotFound),
        };
        let (bytes, state) = match disk::read(disk, &segment::path(number)) {
            Ok(bytes) => (bytes.len() as u64, state(number, &bytes, seal.as_ref(), is_missing)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(error) => (0, Err(format!("it cannot be read: {error}"))),
        };
        Ok(Self { segment: number, bytes, seal, state })
    }

    /// The transactions it covers, if it is what was signed.
    pub fn span(&self) -> Option<Span> {
        self.state.as_ref().ok().copied()
    }
}

fn state(
    number: u64,
    bytes: &[u8],
    seal: Option<&Seal>,
    seal_is_missing: bool,
) -> Result<Span, String> {
    let seal = seal.ok_or(match seal_is_missing {
        true => "it has no signature",
        false => "its signature file is unreadable",
    })?;
    if seal.segment != number {
        return Err(format!("its signature file is that of segment {}", seal.segment));
    }
    if seal.contents.bytes != bytes.len() as u64 || seal.contents.sha256 != digest(bytes) {
        return Err("its bytes are not the ones that were signed".to_owned());
    }
    if !seal.is_authentic() {
        return Err("its signature does not verify".to_owned());
    }
    let layout = segment::layout(bytes).map_err(|fault| format!("it is no segment: {fault}"))?;
    let (first_seq, last_seq) = (layout.manifest.first_seq, layout.manifest.last_seq);
    Ok(Span { first_seq, last_seq })
}
