//! Rot, and its repair: bytes that the card has lost are put right by parity, a checksum or a second copy.
//!
//! | module | holds |
//! |---|---|
//! | `sidecar` | checksums and parity beside each segment |
//! | `mending` | repair in memory, for a reader |
//! | `segment_repair` | repair on the card, of a segment or a sidecar |
//!
//! The thread that alone writes and removes segments finds rot (`store/upkeep/scrub.rs`).

pub(crate) mod mending;
pub(crate) mod segment_repair;
pub(crate) mod sidecar;
