//! Targets of the daemon and the tool: what lies on the disk, what comes in over the network, and what
//! a person hands over.

pub mod block;
pub mod config;
pub mod log;
pub mod manifest;
pub mod parameters;
pub mod request;
pub mod segment;
pub mod sidecar;
pub mod signature;
pub mod store;
pub mod time_range;
pub mod token;
pub mod trajectory;
pub mod transaction;
pub mod witness;
