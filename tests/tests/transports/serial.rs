//! Serial ports (docs/serial.md) over real pseudo-terminals: a daemon on one side, on the other a client that is
//! built of the core's link alone, with noise and a cable that is pulled in between, or a person who types.
//!
//! Invariants 28 and 31 of ARCHITECTURE.md.

mod access;
mod audit;
mod client;
mod console;
mod pull;
mod rig;
mod session;
mod terminal;
mod zmodem;

use std::time::Duration;

/// Nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(60);
