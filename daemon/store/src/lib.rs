//! The store of the daemon: the log, the sealed and signed segments, the kept index, and their return after a power
//! cut.
//!
//! For `omird-engine`, and for tools that look at a data folder while no daemon runs. The meaning of a memory is the
//! business of the index above ([`Index`]).
//!
//! | room | holds |
//! |---|---|
//! | [`disk`] | the seam to the flash card, and the layers over it |
//! | [`inspect`] | a data folder without a daemon: what is in it, and what can be saved |
//! | [`backup`] | making, verifying and restoring backups |
//! | [`mod@format`] | the bytes of each file, for tests and tools |
//!
//! `.ci/walls_check.py` counts the names in all of them.

#![warn(unreachable_pub)]

pub mod backup;
pub mod disk;
pub mod format;
pub mod inspect;

mod block;
mod block_codec;
mod cache;
mod compact;
mod derived;
mod device_key;
mod digest;
mod files;
mod index;
mod index_extractor;
mod locate;
mod lock;
mod log;
mod manifest;
mod mark;
mod mending;
mod names;
mod prove;
mod read;
mod recovery;
mod ref_key;
mod rewrite;
mod room;
mod scrub;
mod seal;
mod sealer;
mod segment;
mod segment_repair;
mod sidecar;
mod signature;
mod stamps;
mod sync;
mod tombstone;
mod transaction;
mod values;
mod version;
mod wal;
mod witness;

// The start, from a locked folder to a store in use.
pub use crate::device_key::device_key;
pub use crate::lock::{Lock, LockError};
pub use crate::recovery::{Damage, StartProgress, recover, recover_on};
pub use crate::signature::DeviceKey;

// What is written: transactions into logs, logs into segments, segments into fewer.
pub use crate::compact::{CompactError, Compacted, ForgottenTraces};
pub use crate::log::{Log, LogError, Unsealed};
pub use crate::mark::{Mark, Scrub, UntrustedInterval};
pub use crate::rewrite::Retention;
pub use crate::sealer::{SealError, SealedSegment, Sealer};
pub use crate::transaction::{Op, RecordedOrigin, Touch, Transaction};
pub use crate::witness::{Fact, FactKind};

// What is read: versions, and what mends them.
pub use crate::files::Files;
pub use crate::manifest::is_manifest;
pub use crate::mending::Mender;
pub use crate::names::MEMORY_DIRS;
pub use crate::prove::{ProveError, prove};
pub use crate::read::{Handle, ReadError};
pub use crate::ref_key::{KeyPrefix, RefKey};
pub use crate::segment::decode_resource;
pub use crate::segment_repair::Scrubbed;
pub use crate::stamps::Stamps;
pub use crate::version::{DocId, FileId, Location, Stamp};

// The index above the store, and what is kept of it.
pub use crate::block::{Block, IndexKind, Row};
pub use crate::cache::Cache;
pub use crate::derived::{Derived, DerivedEntry, DerivedRefused, SledStore, folder_size};
pub use crate::index::{CompactionEntry, Fate, Index, LearnedFacts};
pub use crate::index_extractor::IndexExtractor;
pub use crate::sync::{ReadGuard, RwLock, WriteGuard};
pub use crate::tombstone::{DeletionOrigin, EndCause, Tombstone};

// Room on the card.
pub use crate::room::{largest_segment_in, segment_room};

/// The producer of our Bundles: their `source`.
pub const PRODUCER: &str = concat!("omird/", env!("CARGO_PKG_VERSION"));
