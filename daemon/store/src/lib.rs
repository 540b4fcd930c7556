//! What lies on the disk, and nothing above it: the log, the sealed segments, their signatures, the
//! kept index, and how a store comes up from them after a power cut.
//!
//! For `omird-engine`, and for tools that look at a data folder with no daemon running. The meaning of a memory is the
//! business of the index above ([`index`]).

pub mod backup;
pub mod block;
pub mod cache;
pub mod compact;
pub mod derived;
pub mod disk;
pub mod files;
pub mod healing;
pub mod index;
pub mod inspect;
pub mod key;
pub mod keys;
mod locate;
pub mod lock;
pub mod manifest;
pub mod mark;
pub mod mending;
pub mod merkle;
pub mod read;
pub mod recovery;
pub mod room;
mod scrub;
pub mod sealer;
pub mod segment;
pub mod sidecar;
pub mod signature;
pub mod stamps;
pub mod sync;
pub mod transaction;
pub mod version;
pub mod wal;
pub mod witness;

/// Who produced a Bundle: its `source`.
pub const PRODUCER: &str = concat!("omird/", env!("CARGO_PKG_VERSION"));
