//! Recall: from what was asked to ranked memories (contract section 3).

pub mod parameters;
pub mod query;
pub mod score;
pub mod search;

pub use query::Query;
