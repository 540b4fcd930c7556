//! omird: a memory daemon for robots.
//!
//! It records memories durably (`store`), finds them again by place, time and words (`index`,
//! `recall`), and serves them over Zenoh (`service`). `engine` is the one thing every protocol
//! adapts to. The format itself, validation, poses and forgetting are in the crate `omir-core`.
//!
//! `ARCHITECTURE.md` tells how one write and one query go through these rooms.

pub mod config;
pub mod logs;
pub mod malloc;
pub mod program;
pub mod protocols;
pub mod restart;
#[cfg(feature = "ros2")]
pub mod ros2;
#[cfg(feature = "serial")]
pub mod serial;
pub mod service;
mod service_manager;
#[cfg(test)]
mod testing;
mod zenoh_threads;

pub use omird_engine as engine;
pub use omird_engine::{clock, error, index, recall};
pub use omird_router as router;
pub use omird_store as store;
pub use omird_store::{PRODUCER, disk, sync};
