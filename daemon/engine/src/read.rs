//! Answers from what is stored: memories, exports, explanations, backups and proofs.

mod answers;
pub(crate) mod backup;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod hits;
pub(crate) mod liveness;
pub(crate) mod outgoing;
mod phrases;
pub(crate) mod reading;
pub(crate) mod recall;
pub(crate) mod sealed_proof;
mod spread;
