//! Recall: from what was asked to ranked memories (`docs/keys.md`, "Recall").

pub mod frames;
pub mod parameters;
pub mod query;
pub mod score;
pub mod search;
pub mod time_range;

pub use query::Query;
