//! Reading the bytes of one version, wherever they lie, and checking them against their CRC: invariant 9 of
//! ARCHITECTURE.md.

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::model::Resource;
use omir_core::value::Value;

use crate::disk::{self, DiskFile};
use crate::files::{Locate, Mend};
use crate::index::Index;
use crate::recorded::version::{DocId, FileId, Location};
use crate::sync::RwLock;

/// How long a reader waits for the index before it gives a version up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a version cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The disk refused.
    Disk {
        /// The file.
        file: FileId,
        /// Its error.
        error: io::Error,
    },
    /// The file was set aside since the start, and what was in it is lost.
    Gone {
        /// The file.
        file: FileId,
    },
    /// The bytes are not the ones that were written: the card lost them.
    BadChecksum {
        /// Their position.
        location: Location,
        /// The CRC-32 they have now.
        computed: u32,
    },
    /// The bytes are whole and still no resource.
    NotAResource {
        /// Their position.
        location: Location,
        /// The fault.
        message: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk { file, error } => write!(f, "{file:?} cannot be read: {error}"),
            Self::Gone { file } => write!(f, "{file:?} was damaged and is set aside"),
            Self::BadChecksum { location, computed } => write!(
                f,
                "{:?} is damaged at byte {}: checksum {computed:08x} instead of {:08x}",
                location.file, location.offset, location.crc
            ),
            Self::NotAResource { location, message } => {
                write!(f, "{:?}, byte {}: {message}", location.file, location.offset)
            }
        }
    }
}

impl std::error::Error for ReadError {}

/// Weak, because the index holds the files that hold this.
impl<I: Index> Locate for Weak<RwLock<I>> {
    fn locate(&self, id: DocId) -> Option<(Location, Arc<dyn DiskFile>)> {
        let index = self.upgrade()?;
        let place = index.peek(PATIENCE, |index| {
            let location = index.location(id);
            Some((location, index.files().file(location.file)?))
        });
        place.flatten()
    }
}

/// A version's place with the open file, so that it can be read without holding the index.
#[derive(Clone)]
pub struct Handle {
    id: DocId,
    /// Its position.
    pub location: Location,
    file: Option<Arc<dyn DiskFile>>,
    mender: Option<Arc<dyn Mend>>,
    locator: Option<Arc<dyn Locate>>,
}

impl Handle {
    /// The place of a version.
    pub fn of(index: &impl Index, id: DocId) -> Self {
        let (location, files) = (index.location(id), index.files());
        let file = files.file(location.file);
        Self { id, location, file, mender: files.mender(), locator: files.locator() }
    }

    /// The bytes: one CBOR item, checked against the CRC they were written with. What the card has lost of them
    /// is mended where that is possible.
    ///
    /// Sealing and compaction drop a file when all that is live lies elsewhere. Its open handle still reads it,
    /// unless the card was out meanwhile.
    pub fn bytes(&self) -> Result<Vec<u8>, ReadError> {
        self.bytes_here().or_else(|fault| match self.moved() {
            Some(moved) => moved.bytes_here(),
            None => Err(fault),
        })
    }

    /// The version where it lies by now, if that is elsewhere.
    fn moved(&self) -> Option<Self> {
        let (location, file) = self.locator.as_ref()?.locate(self.id)?;
        (location != self.location).then(|| Self { location, file: Some(file), ..self.clone() })
    }

    /// The bytes from this file, as it is or as it can be mended.
    fn bytes_here(&self) -> Result<Vec<u8>, ReadError> {
        self.stored().or_else(|fault| match &fault {
            ReadError::Disk { error, .. } if !disk::is_loss(error) => Err(fault),
            ReadError::Disk { .. } | ReadError::BadChecksum { .. } => self.mended().ok_or(fault),
            ReadError::Gone { .. } | ReadError::NotAResource { .. } => Err(fault),
        })
    }

    /// The bytes as they lie there.
    fn stored(&self) -> Result<Vec<u8>, ReadError> {
        let Location { file, offset, len, crc } = self.location;
        let disk = |error| ReadError::Disk { file, error };
        let handle = self.file.as_ref().ok_or(ReadError::Gone { file })?;
        let mut bytes = vec![0; len as usize];
        handle.read_at(&mut bytes, u64::from(offset)).map_err(disk)?;
        let computed = crc32fast::hash(&bytes);
        if computed == crc {
            Ok(bytes)
        } else {
            Err(ReadError::BadChecksum { location: self.location, computed })
        }
    }

    /// The bytes as they are by now, for what they may still tell: nothing in them is to be believed.
    pub fn unchecked_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.location.len as usize];
        self.file.as_ref()?.read_at(&mut bytes, u64::from(self.location.offset)).ok()?;
        Some(bytes)
    }

    /// The bytes from the file as it can be mended.
    fn mended(&self) -> Option<Vec<u8>> {
        let Location { file, offset, len, crc } = self.location;
        let mended = self.mender.as_ref()?.mended(file)?;
        let start = offset as usize;
        let bytes = mended.get(start..start.checked_add(len as usize)?)?;
        (crc32fast::hash(bytes) == crc).then(|| bytes.to_vec())
    }

    /// The resource as a value.
    pub fn value(&self) -> Result<Value, ReadError> {
        let bytes = self.bytes()?;
        cbor::from_slice(&bytes, &Limits::default()).map_err(|error| ReadError::NotAResource {
            location: self.location,
            message: error.to_string(),
        })
    }

    /// The resource, typed.
    pub fn resource(&self) -> Result<Resource, ReadError> {
        Resource::from_value(self.value()?).map_err(|faults| ReadError::NotAResource {
            location: self.location,
            message: faults.first().map_or_else(String::new, |f| f.message.clone()),
        })
    }
}
