//! The protocol of `docs/keys.md`, `docs/replies.md` and `docs/serial-protocol.md`.
//!
//! It knows the engine, and of the router what an admitted request is. Who carries a request, and how its answer is sent,
//! are the transport's.

mod document;
#[cfg(feature = "link")]
pub mod link;
mod memory;
mod methods;
mod operation;
mod params;
#[cfg(test)]
mod testing;
mod wording;

use std::sync::Arc;

use omir_core::value::Value;

use omird_engine::Engine;
use omird_engine::settings::RequestLimits;
use omird_router::Admitted;

pub use self::document::Document;
pub use self::methods::{CLOCK, DELETE, DOCUMENT, EVENTS, GET, OMIR, PUT, RECALL, STATUS};
pub use self::operation::{Encoded, Operation, Params, Payload, Response};
pub use self::params::{Named, Parameters};
pub use self::wording::worded;

/// The protocol over one memory.
#[derive(Clone)]
pub struct Omir {
    engine: Engine,
    robot: Arc<str>,
}

impl Omir {
    /// Returns the protocol over `engine`, of the robot of this name.
    pub fn new(engine: Engine, robot: &str) -> Self {
        Self { engine, robot: robot.into() }
    }

    /// Returns the name of the robot.
    pub fn robot(&self) -> &Arc<str> {
        &self.robot
    }

    /// Returns the bounds of a request, as they are now: a transport decodes a payload within them.
    pub fn limits(&self) -> RequestLimits {
        self.engine.settings().limits
    }

    /// Returns how the daemon is doing.
    pub fn status(&self, _: &Admitted) -> Value {
        self.engine.status(&self.robot)
    }
}
