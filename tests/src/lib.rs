//! Support for the end-to-end and crash tests of omird: a flash card whose power can be cut, a
//! model of what a store must hold, and lives for robots to live.
//!
//! Nothing here is shipped. The tests themselves are in `tests/`, and use only what a program
//! embedding the daemon could use.

pub mod cable;
pub mod check;
pub mod cut_disk;
pub mod folder;
pub mod golden;
pub mod golden_folder;
pub mod http;
pub mod journal;
pub mod life;
pub mod model;
pub mod process;
pub mod random;
pub mod rot;
pub mod session;
pub mod slow_disk;
pub mod wire;
pub mod years;

/// The result of a check or of a life. The error says what is wrong.
pub type Result<T = (), E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
