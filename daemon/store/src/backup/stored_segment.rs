//! One segment of a backup: what it covers, and whether it is what was signed.

use std::{fmt, io};

use crate::digest::digest;
use crate::disk::{self, Disk};
use crate::files::SeqRange;
use crate::segment;
use crate::signing::signature::Seal;

/// A segment that lies in a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSegment {
    /// Its number.
    pub segment: u64,
    /// Its length.
    pub bytes: u64,
    /// Its signature, if there is one that can be read.
    pub seal: Option<Seal>,
    /// The transactions it covers, or the reason why it is not what was signed.
    pub(crate) state: Result<SeqRange, Unsound>,
}

/// A reason why a segment is not what was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unsound {
    /// The disk does not give it; in the disk's words.
    Unreadable(String),
    /// There is no signature.
    NoSignature,
    /// There is one, and nobody can read it.
    UnreadableSignature,
    /// The signature is that of another segment.
    SignatureOf(u64),
    /// The bytes are others than those that were signed.
    OtherBytes,
    /// The signature does not verify.
    Forged,
    /// The bytes are as signed and no segment; in the words of its reader.
    NoSegment(String),
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::NoSignature => f.write_str("it has no signature"),
            Self::UnreadableSignature => f.write_str("its signature file is unreadable"),
            Self::SignatureOf(other) => {
                write!(f, "its signature file is that of segment {other}")
            }
            Self::OtherBytes => f.write_str("its bytes are not the ones that were signed"),
            Self::Forged => f.write_str("its signature does not verify"),
            Self::NoSegment(fault) => write!(f, "it is no segment: {fault}"),
        }
    }
}

impl StoredSegment {
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
            Err(error) => (0, Err(Unsound::Unreadable(error.to_string()))),
        };
        Ok(Self { segment: number, bytes, seal, state })
    }

    /// The transactions it covers, if it is what was signed.
    pub fn span(&self) -> Option<SeqRange> {
        self.state.as_ref().ok().copied()
    }
}

fn state(
    number: u64,
    bytes: &[u8],
    seal: Option<&Seal>,
    seal_is_missing: bool,
) -> Result<SeqRange, Unsound> {
    let seal = seal.ok_or(match seal_is_missing {
        true => Unsound::NoSignature,
        false => Unsound::UnreadableSignature,
    })?;
    if seal.segment != number {
        return Err(Unsound::SignatureOf(seal.segment));
    }
    if seal.contents.bytes != bytes.len() as u64 || seal.contents.sha256 != digest(bytes) {
        return Err(Unsound::OtherBytes);
    }
    if !seal.is_authentic() {
        return Err(Unsound::Forged);
    }
    let layout = segment::layout(bytes).map_err(|fault| Unsound::NoSegment(fault.to_string()))?;
    let (first_seq, last_seq) = (layout.manifest.first_seq, layout.manifest.last_seq);
    Ok(SeqRange { first_seq, last_seq })
}
