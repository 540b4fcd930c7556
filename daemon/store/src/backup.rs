//! A backup of a data folder: what of it lies where, and whether it can be relied on.
//!
//! A backup looks like a data folder without logs, so everything that reads one reads the other:
//! `segments/` with their signatures, `keys/device.pub`, and `backup.json`, which tells whose it is.
//!
//! | module | the question it answers |
//! |---|---|
//! | `offer` | what does a daemon have to be backed up? |
//! | `held` | what lies in this backup, and is it what was signed? |
//! | `judge` | do all segments together make one unbroken history? |
//! | `folder` | how does a backup take in what is new, and let go of what it no longer needs? |
//! | `restore` | how does a backup become a data folder again? |
//! | `pins` | whose signatures does this backup accept? |
//! | `info` | what does `backup.json` say? |
//!
//! # What is promised
//!
//! A backup that was cut short at any moment is the backup it was before, with or without some of what
//! is new; the next run goes on. A segment is removed only when a signed one that covers the same
//! transactions is durably there.

mod folder;
mod info;
mod judge;
mod offer;
mod pins;
mod restore;
mod stored_segment;

use std::fmt;

pub use folder::{BackupError, BackupOutcome, FetchOutcome, Folder, TakeError};
pub use info::{INFO, Info};
pub use judge::{Judgement, judge};
pub use offer::{Offer, Offered};
pub use pins::Pins;
pub(crate) use restore::UNFINISHED;
pub use restore::{RestoreError, Restored, Verified, restore, verify};
pub use stored_segment::StoredSegment;

/// Something that does not verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// The fault.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

/// How far a long look has come, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Done.
    pub done: u64,
    /// In all.
    pub total: u64,
}
