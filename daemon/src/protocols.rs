//! Protocols: what can be asked of the memory, whoever carries it.
//!
//! Each protocol is a table of methods, and code that turns an admitted request into what the engine does. A protocol
//! opens no socket, knows no transport and no other protocol.

pub use omird_protocol_access as access;
pub use omird_protocol_omir as omir;

use omird_access::Access;

use std::sync::Arc;

use crate::engine::Engine;
use crate::router::tool::Toolbox;
use crate::router::{Description, Exchange, Router, Scope};

use self::access::Tokens;
use self::omir::Omir;

/// The protocols of one daemon, and the router before them: what a transport is started with.
#[derive(Clone)]
pub struct Protocols {
    /// Knows who asks.
    pub access: Access,
    /// Decides what is worked on.
    pub router: Router,
    /// The protocol of `docs/keys.md` and `docs/serial-protocol.md`.
    pub omir: Omir,
    /// The protocol of `docs/access.md`, "Tokens over HTTP".
    pub tokens: Tokens,
    /// The protocols of one message and one answer each, in the order of [`Protocols::DESCRIPTIONS`].
    exchanges: Arc<[Arc<dyn Exchange>]>,
}

impl Protocols {
    /// The scopes of all protocols: what a token may be given.
    pub const SCOPES: &[Scope] = omir::OMIR.scopes;

    /// The protocols of one message and one answer each, as transports and documents know them.
    pub const DESCRIPTIONS: &[&Description] = &[];

    /// Returns the protocol of that name, if it is one of one message and one answer each.
    pub fn exchange(&self, name: &str) -> Option<&Arc<dyn Exchange>> {
        self.exchanges.iter().find(|exchange| exchange.description().protocol.name == name)
    }

    /// Returns the tools of all protocols that have some.
    pub fn tools(&self) -> Vec<Arc<dyn Toolbox>> {
        vec![Arc::new(self.omir.clone())]
    }

    /// Returns the protocols over `engine`, of the robot of this name, open to all as they are without configuration.
    pub fn over(engine: &Engine, robot: &str) -> Self {
        Self::guarded(engine, robot, Access::open_to_all(Self::SCOPES))
    }

    /// Returns the protocols over `engine`, of the robot of this name, for those that `access` knows.
    pub fn guarded(engine: &Engine, robot: &str, access: Access) -> Self {
        Self::routed(engine, robot, access, Router::new(engine.clone(), []))
    }

    /// Returns the protocols over `engine`, of the robot of this name, behind this router.
    pub fn routed(engine: &Engine, robot: &str, access: Access, router: Router) -> Self {
        let omir = Omir::new(engine.clone(), robot);
        let tokens = Tokens::new(access.clone());
        let exchanges: Arc<[Arc<dyn Exchange>]> = Arc::new([]);
        Self { access, router, omir, tokens, exchanges }
    }
}
