//! omird: a memory daemon for robots.
//!
//! This crate is the program: its transports, its configuration and its start.
//!
//! | room | contents |
//! |---|---|
//! | `program` | the start, the reload and the end of the daemon |
//! | `config` | the configuration |
//! | `protocols` | the protocols of one daemon, and the router before them |
//! | `zenoh` | the transport over Zenoh |
//! | `http`, `unix_socket` | the transport over HTTP; the Unix socket in a data folder |
//! | `mcp` | the tools of all protocols for language models, over HTTP |
//! | `capacity` | the bounds on the work of HTTP and MCP |
//! | `serial` | the transport over serial ports |
//! | `ros2` | the transport in the graph of ROS 2 |
//! | `models` | the client of a server of language models |
//! | `audit` | audit lines, in the log and in a file |
//! | `metrics` | counts and measures for Prometheus |
//! | `liveness` | signs of life of the threads that others wait for |
//! | `logs`, `malloc`, `restart`, `service_manager` | the process and its host |
//!
//! `ARCHITECTURE.md` lists the crates below this one, and tells how one write and one query go through them.

pub mod audit;
#[cfg(feature = "http")]
mod capacity;
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
mod service_manager;
pub mod unix_socket;
pub mod zenoh;

pub use omird_access as access;
pub use omird_engine as engine;
pub use omird_router as router;
pub use omird_store as store;
pub use omird_store::disk;
