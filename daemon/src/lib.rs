//! omird: a memory daemon for robots.
//!
//! This crate is the program: its transports, its configuration and its start.
//!
//! | room | contents |
//! |---|---|
//! | `program` | the start, the reload and the end of the daemon |
//! | `config` | the configuration |
//! | `audit` | audit lines, in the log and in a file |
//! | `logs`, `malloc`, `restart`, `service_manager` | the process and its host |
//! | `service`, `zenoh_threads` | the transport over Zenoh |
//! | `serial` | the transport over serial ports |
//! | `http` | the transport over HTTP |
//! | `mcp` | the tools of all protocols for language models, over HTTP |
//! | `models` | the client of a server of language models |
//! | `ros2` | the transport in the graph of ROS 2 |
//! | `protocols` | the protocols of one daemon, and the router before them |
//! | crate `omird-access` | tokens and JWTs made into callers |
//! | crate `omird-router` | the decision if a request may be worked on |
//! | crate `omird-protocol-omir` | the methods, their parameters and their answers |
//! | crate `omird-protocol-access` | methods that add, list and revoke tokens |
//! | crate `omird-engine` | recalls, changes and upkeep |
//! | crate `omird-store` | files |
//! | crate `omir-core` | the format, validation, poses and forgetting |
//!
//! `ARCHITECTURE.md` tells how one write and one query go through these rooms.

pub mod audit;
pub mod config;
#[cfg(feature = "http")]
pub mod http;
pub mod liveness;
pub mod logs;
pub mod malloc;
#[cfg(feature = "http")]
pub mod mcp;
#[cfg(feature = "http")]
pub mod metrics;
#[cfg(feature = "http")]
pub mod models;
pub mod program;
pub mod protocols;
pub mod restart;
#[cfg(feature = "ros2")]
pub mod ros2;
#[cfg(feature = "serial")]
pub mod serial;
pub mod service;
mod service_manager;
pub mod socket;
#[cfg(feature = "http")]
mod work;
mod zenoh_threads;

pub use omird_access as access;
pub use omird_engine as engine;
pub use omird_router as router;
pub use omird_store as store;
pub use omird_store::disk;
