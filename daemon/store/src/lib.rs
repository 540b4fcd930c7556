//! The store of the daemon: the log, the sealed and signed segments, the kept index, and their return after a power
//! cut.
//!
//! For `omird-engine`, and for tools that look at a data folder while no daemon runs. The meaning of a memory is the
//! business of the index above ([`Index`]).
//!
//! Public modules:
//!
//! | module | holds |
//! |---|---|
//! | [`disk`] | the seam to the flash card, and the layers over it |
//! | [`inspect`] | a data folder without a daemon: its contents, its damage, and what can be saved |
//! | [`backup`] | making, verifying and restoring backups |
//! | [`mod@format`] | the bytes of each file, for tests and tools |
//!
//! Folders, the inner ones first:
//!
//! | module | holds |
//! |---|---|
//! | `recorded` | versions of resources, their ends, and the transactions that made them |
//! | `kept_index` | what is extracted from each segment, and kept between starts |
//! | `log` | the log that is written, the bytes of log files, and second copies of facts |
//! | `signing` | the key of the device, and the seals of segments that it signs |
//! | `segment` | the bytes of a segment: one Bundle that validates alone, and the manifest in it |
//! | `rot` | checksums and parity beside each segment, and repair by them: in memory and on the card |
//! | `upkeep` | logs made into segments, segments into fewer, and reading for rot |
//! | `recovery` | a store made of its files at each start, after any power cut |
//!
//! The index above the store, and how a version is read:
//!
//! | module | holds |
//! |---|---|
//! | `index` | the seam to the index above: its two traits |
//! | `read` | reading the bytes of one version, and checking their CRC |
//! | `files` | the open files that versions lie in |
//! | `sync` | a lock for many readers and one writer, which detects a thread that would wait forever |
//!
//! Alone:
//!
//! | module | holds |
//! |---|---|
//! | `prove` | proofs that a resource was sealed |
//! | `lock` | one process for each data folder, and the check that the folder is still there |
//! | `names` | names of the files in a data folder |
//! | `digest` | SHA-256 digests, and their text |
//!
//! `.ci/walls_check.py` counts the names that this file and its public modules export.

#![warn(unreachable_pub)]

pub mod backup;
pub mod disk;
pub mod format;
pub mod inspect;

mod digest;
mod files;
mod index;
mod kept_index;
mod lock;
mod log;
mod names;
mod prove;
mod read;
mod recorded;
mod recovery;
mod rot;
mod segment;
mod signing;
mod sync;
mod upkeep;

// The start, from a locked folder to a store in use.
pub use crate::lock::{Lock, LockError};
pub use crate::recovery::{Damage, StartProgress, recover, recover_on};
pub use crate::signing::device_key::device_key;
pub use crate::signing::signature::DeviceKey;

// Writing: transactions into logs, logs into segments, segments into fewer.
pub use crate::log::witness::{Fact, FactKind};
pub use crate::log::{Log, LogError, Unsealed};
pub use crate::recorded::mark::{Mark, Scrub, UntrustedInterval};
pub use crate::recorded::transaction::{Op, RecordedOrigin, Touch, Transaction};
pub use crate::upkeep::compact::{CompactError, Compacted, ForgottenTraces};
pub use crate::upkeep::rewrite::Retention;
pub use crate::upkeep::sealer::{SealError, SealedSegment, Sealer};

// Reading: versions, and what mends them.
pub use crate::files::Files;
pub use crate::names::MEMORY_DIRS;
pub use crate::prove::{ProveError, prove};
pub use crate::read::{Handle, ReadError};
pub use crate::recorded::ref_key::{KeyPrefix, RefKey};
pub use crate::recorded::stamps::Stamps;
pub use crate::recorded::version::{DocId, FileId, Location, Stamp};
pub use crate::rot::mending::Mender;
pub use crate::rot::segment_repair::Scrubbed;
pub use crate::segment::decode_resource;
pub use crate::segment::manifest::is_manifest;

// The index above the store, and what is kept of it.
pub use crate::index::{CompactionEntry, Fate, Index, LearnedFacts};
pub use crate::kept_index::block::{Block, IndexKind, Row};
pub use crate::kept_index::cache::Cache;
pub use crate::kept_index::derived::{
    Derived, DerivedEntry, DerivedRefused, SledStore, folder_size,
};
pub use crate::kept_index::index_extractor::IndexExtractor;
pub use crate::recorded::tombstone::{DeletionOrigin, EndCause, Tombstone};
pub use crate::sync::{ReadGuard, RwLock, WriteGuard};

// Room on the card.
pub use crate::upkeep::room::{largest_segment_in, segment_room};

/// The producer of our Bundles: their `source`.
pub const PRODUCER: &str = concat!("omird/", env!("CARGO_PKG_VERSION"));
