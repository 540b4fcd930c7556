//! What lies on the disk, and nothing above it: the log, the sealed segments, their signatures, the
//! kept index, and how a store comes up from them after a power cut.

pub mod backup;
pub mod cache;
pub mod compact;
pub mod healing;
pub mod inspect;
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
pub mod transaction;
pub mod wal;
pub mod witness;
