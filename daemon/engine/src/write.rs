//! One writer: changes planned, logged, applied, answered and announced.

pub(crate) mod announced;
pub(crate) mod command;
pub(crate) mod consolidate;
pub(crate) mod events;
pub(crate) mod message;
pub(crate) mod orders;
pub(crate) mod plan;
pub(crate) mod publisher;
pub(crate) mod rebase;
pub(crate) mod redate;
pub(crate) mod writer;
