//! Recordings to memories, and memories to a timeline: MCAP files, as rosbag2 and Foxglove write them, and the SQLite
//! storage of rosbag2.

mod bounds;
mod channels;
mod export;
mod idl;
mod import;
mod input;
mod losses;
mod piece;
mod recorded_resources;
mod scan;
mod scene;
mod selection;
mod source;
mod sqlite;
mod types;
mod unpack;

use std::fmt;

pub use channels::Channel;
pub use export::{ExportError, Exported, MEMORIES, RECORDS, write_timeline};
pub use import::{Advance, Import, ImportError, Malformed, Report, TopicReport};
pub use input::{Folder, Input, Kind, Source, is_recording};
pub use losses::{At, Loss};
pub use selection::{NoRules, by_type, configured};
pub use source::{Recorded, Recording};
pub use types::UnreadableType;

/// A file that is of no use at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// The file.
    pub file: String,
    /// The fault.
    pub why: String,
}

impl RecordingError {
    fn new(file: &str, why: impl Into<String>) -> Self {
        Self { file: file.to_owned(), why: why.into() }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl std::error::Error for RecordingError {}
