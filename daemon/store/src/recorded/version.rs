//! One version of a resource, as far as the store knows it: when and as what it was recorded, and where its bytes lie.

use crate::names;

/// Number of a version in the index; versions get rising numbers in the order they were recorded.
pub type DocId = u32;

/// A file that holds resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileId {
    /// A sealed segment.
    Segment(u32),
    /// A log file.
    Log(u32),
}

impl FileId {
    /// The log file with this number.
    ///
    /// # Panics
    /// If it has more than 32 bits: no file with such a name is taken for one of ours.
    pub fn log(number: u64) -> Self {
        Self::Log(u32::try_from(number).expect("fewer than 2^32 log files"))
    }

    /// The segment with this number.
    ///
    /// # Panics
    /// As [`FileId::log`].
    pub fn segment(number: u64) -> Self {
        Self::Segment(u32::try_from(number).expect("fewer than 2^32 segments"))
    }

    /// The path of the file within the data folder.
    pub fn path(self) -> String {
        match self {
            Self::Segment(number) => names::segment_path(number.into()),
            Self::Log(number) => names::log_path(number.into()),
        }
    }
}

/// Position of the bytes of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub offset: u32,
    /// How many bytes.
    pub len: u32,
    /// CRC-32 (IEEE) of the bytes as they were written.
    pub crc: u32,
}

/// When and as what a version was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stamp {
    /// The transaction.
    pub seq: u64,
    /// Position in the transaction.
    pub ordinal: u32,
    /// Version of the resource.
    pub version: u64,
    /// When, on the store's clock; microseconds.
    pub recorded: i64,
}
