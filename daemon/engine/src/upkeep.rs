//! Writes that the daemon makes by itself: sealing, compaction, scrubbing and the sweep.

pub(crate) mod compaction;
pub(crate) mod embedding;
pub(crate) mod policy;
pub(crate) mod scrubbing;
pub(crate) mod sealing;
pub(crate) mod sweep;
