//! The protocol of `docs/keys.md`, `docs/replies.md` and `docs/serial-protocol.md`.
//!
//! It knows the engine, and of the router what an admitted request is. Who carries a request, and how its answer is sent,
//! are the transport's.

mod about;
mod change;
mod clock;
#[cfg(feature = "link")]
pub mod console;
mod document;
#[cfg(feature = "link")]
pub mod link;
mod memory;
mod methods;
mod operation;
#[cfg(feature = "link")]
mod pacing;
mod params;
mod schema;
pub mod tools;
mod wording;

use std::sync::Arc;

use omir_core::value::{Map, Value};

use omird_engine::{Encoding, Engine, Error, Query, RequestLimits, SimulatedClock};
use omird_router::{About, Admitted};

pub use self::clock::{NotAnInstant, instant};
pub use self::document::Document;
pub use self::methods::{CLOCK, DELETE, DOCUMENT, EVENTS, GET, OMIR, PUT, STATUS, method};
pub use self::operation::{Encoded, INLINE_BYTES, Params, Payload, Response, is_served_inline};
#[cfg(feature = "link")]
pub use self::pacing::{Cancelled, Pacer};
pub use self::params::rebase::parse as parse_rebase;
pub use self::params::recall::parse as parse_query;
pub use self::params::time_range::parse as parse_time_range;
pub use self::params::{
    Named, Parameters, add as add_parameter, add_members as add_parameters, reference,
};
pub use self::schema::schemas;
pub use self::wording::no_resource;

/// The protocol over one memory.
#[derive(Clone)]
pub struct Omir {
    engine: Engine,
    robot: Arc<str>,
    /// The clock that the method `clock` sets.
    simulated: Option<Arc<SimulatedClock>>,
}

impl Omir {
    /// Returns the protocol over `engine`, of the robot of this name.
    pub fn new(engine: Engine, robot: &str) -> Self {
        Self { engine, robot: robot.into(), simulated: None }
    }

    /// Lets the method `clock` set this clock, which the engine was opened with.
    #[must_use]
    pub fn with_simulated_time(self, clock: Arc<SimulatedClock>) -> Self {
        Self { simulated: Some(clock), ..self }
    }

    /// Returns the name of the robot.
    pub fn robot(&self) -> &Arc<str> {
        &self.robot
    }

    /// Returns the bounds of a request, as they are now: a transport decodes a payload within them.
    pub fn limits(&self) -> RequestLimits {
        self.engine.settings().limits
    }

    /// Reads the parameters of `docs/keys.md`, "Recall", on top of `base`.
    fn query(&self, about: &About, base: Query, parameters: &Parameters) -> Result<Query, Error> {
        params::recall::parse_of(about, base, parameters, self.now())
    }

    /// Returns what everybody may know: that there is a daemon of this robot, its version, and that it needs a token.
    pub fn existence(&self, encoding: Encoding) -> Encoded {
        let mut access = Map::new();
        access.insert("requireToken", true);
        let mut map = Map::new();
        map.insert("robot", &*self.robot);
        map.insert("version", env!("CARGO_PKG_VERSION"));
        map.insert("access", Value::Object(access));
        let bytes = encoding.encode(&Value::Object(map));
        Encoded { bytes, encoding: Some(encoding), left_out: None }
    }

    /// Returns how the daemon is doing.
    pub fn status(&self, _: &Admitted) -> Value {
        self.engine.status(&self.robot)
    }
}
