//! Protocols: what can be asked of the memory, whoever carries it.
//!
//! Each protocol is a table of methods, and code that turns an admitted request into what the engine does. A protocol
//! opens no socket, knows no transport and no other protocol.

pub use omird_protocol_omir as omir;

use crate::engine::Engine;
use crate::router::Router;

use self::omir::Omir;

/// The protocols of one daemon, and the router before them: what a transport is started with.
#[derive(Clone)]
pub struct Protocols {
    /// Decides what is worked on.
    pub router: Router,
    /// The protocol of `docs/keys.md` and `docs/serial-protocol.md`.
    pub omir: Omir,
}

impl Protocols {
    /// Returns the protocols over `engine`, of the robot of this name.
    pub fn over(engine: &Engine, robot: &str) -> Self {
        Self { router: Router::new(engine.clone()), omir: Omir::new(engine.clone(), robot) }
    }
}
