//! Recall: from what was asked to ranked memories (`docs/keys.md`, "Recall").

mod akin;
mod collect;
mod filter;
pub(crate) mod frames;
mod fuse;
mod propose;
pub(crate) mod query;
pub(crate) mod ranking;
pub(crate) mod score;
pub(crate) mod search;
pub(crate) mod tally;
pub(crate) mod texts;
mod walk;
