//! Protocols: what can be asked of the memory, over any transport.
//!
//! Each protocol is a table of methods, and code that turns an admitted request into what the engine does. A protocol
//! opens no socket, knows no transport and no other protocol.

pub use omird_protocol_access as access;
pub use omird_protocol_akashik as akashik;
pub use omird_protocol_compass as compass;
pub use omird_protocol_experience as experience;
pub use omird_protocol_manifesto as manifesto;
pub use omird_protocol_omir as omir;

use omird_access::Access;

use std::fmt;
use std::sync::Arc;

use crate::engine::{Engine, SimulatedClock};
use crate::router::tool::Toolbox;
use crate::router::{Count, Description, Exchange, ModelClient, Router, Scope};

use self::access::Tokens;
use self::akashik::Akashik;
use self::compass::{Compass, CompassSettings};
use self::experience::{ExperienceSettings, Experiences};
use self::manifesto::{Manifesto, ManifestoSettings};
use self::omir::Omir;

/// What the protocols are configured with.
#[derive(Debug, Clone, Default)]
pub struct ProtocolSettings {
    /// `[experience]`.
    pub experience: ExperienceSettings,
    /// The key of the pseudonyms that stand for people in experiences.
    pub experience_key: [u8; 32],
    /// `[manifesto]`.
    pub manifesto: ManifestoSettings,
    /// The keys that Worlds are signed with. Those of the default sign nothing.
    pub manifesto_keys: manifesto::Keys,
    /// The clock of a simulation, which can be set.
    pub simulated: Option<Arc<SimulatedClock>>,
    /// `[compass]`.
    pub compass: CompassSettings,
    /// The way to a model, where one is configured.
    pub model: Option<ModelPath>,
    /// True if all is gone at a stop, which a protocol may have to say.
    pub is_memory_only: bool,
}

/// The way to a model.
#[derive(Clone)]
pub struct ModelPath(pub Arc<dyn ModelClient>);

impl fmt::Debug for ModelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a way to a model")
    }
}

/// The protocols of one daemon, and the router before them: what a transport is started with.
#[derive(Clone)]
pub struct Protocols {
    /// Identifies callers.
    pub access: Access,
    /// Decides what is worked on.
    pub router: Router,
    /// The protocol of `docs/keys.md` and `docs/serial-protocol.md`.
    pub omir: Omir,
    /// The protocol of `docs/access.md`, "Tokens over HTTP".
    pub tokens: Tokens,
    compass: Compass,
    /// The protocols of one message and one answer each, in the order of [`Protocols::DESCRIPTIONS`].
    exchanges: Arc<[Arc<dyn Exchange>]>,
    /// The protocol of `docs/akashik.md`, which speaks first as well.
    pub akashik: Akashik,
}

impl Protocols {
    /// The scopes of all protocols: what a token may be given.
    pub const SCOPES: &[Scope] = &[
        Scope::READ,
        Scope::WRITE,
        Scope::ADMIN,
        experience::READ,
        experience::WRITE,
        manifesto::ACTOR,
        manifesto::AUTHORITY,
        compass::AGENT,
        compass::ACE,
        compass::OPERATOR,
        akashik::AGENT,
    ];

    /// The protocols of one message and one answer each, as transports and documents know them.
    pub const DESCRIPTIONS: &[&Description] = &[
        &experience::DESCRIPTION,
        Manifesto::DESCRIPTION,
        &compass::DESCRIPTION,
        &akashik::DESCRIPTION,
    ];

    /// Returns the protocol of that name, if it is one of one message and one answer each.
    pub fn exchange(&self, name: &str) -> Option<&Arc<dyn Exchange>> {
        self.exchanges.iter().find(|exchange| exchange.description().protocol.name == name)
    }

    /// Returns the protocols of one message and one answer each.
    pub fn exchanges(&self) -> impl Iterator<Item = &Arc<dyn Exchange>> {
        self.exchanges.iter()
    }

    /// Takes other settings of COMPASS.
    pub fn reconfigure_compass(&self, settings: CompassSettings) {
        self.compass.reconfigure(settings);
    }

    /// Returns what gives the counts of all protocols.
    pub fn counts(&self) -> impl Fn() -> Vec<Count> + Send + Sync + 'static {
        let exchanges = self.exchanges.clone();
        move || exchanges.iter().flat_map(|exchange| exchange.counts()).collect()
    }

    /// Returns the tools of all protocols that have some.
    pub fn tools(&self) -> Vec<Arc<dyn Toolbox>> {
        vec![Arc::new(self.omir.clone()), Arc::new(self.akashik.clone())]
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
        Self::configured(engine, robot, access, router, ProtocolSettings::default())
    }

    /// As [`Protocols::routed`], as they are configured.
    pub fn configured(
        engine: &Engine,
        robot: &str,
        access: Access,
        router: Router,
        settings: ProtocolSettings,
    ) -> Self {
        let tokens = Tokens::new(access.clone());
        let ProtocolSettings {
            experience,
            experience_key,
            manifesto,
            manifesto_keys,
            simulated,
            compass,
            model,
            is_memory_only,
        } = settings;
        let omir = Omir::new(engine.clone(), robot);
        let omir = match simulated {
            Some(clock) => omir.with_simulated_time(clock),
            None => omir,
        };
        let experiences = Experiences::start(engine.clone(), experience, experience_key);
        let manifesto = Manifesto::new(engine.clone(), manifesto_keys, manifesto);
        let compass = Compass::new(engine, compass, model.map(|path| path.0));
        let akashik = Akashik::new(engine);
        let akashik = if is_memory_only { akashik.without_persistence() } else { akashik };
        let exchanges: Arc<[Arc<dyn Exchange>]> = Arc::new([
            Arc::new(experiences),
            Arc::new(manifesto),
            Arc::new(compass.clone()),
            Arc::new(akashik.clone()),
        ]);
        Self { access, router, omir, tokens, compass, exchanges, akashik }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::parts;

    #[test]
    fn each_description_is_of_a_protocol_that_is_made_in_that_order() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
        let protocols = Protocols::over(&engine, "r1");
        let name = |description: &Description| description.protocol.name;
        let made: Vec<&str> = protocols.exchanges().map(|one| name(one.description())).collect();
        let described: Vec<&str> = Protocols::DESCRIPTIONS.iter().map(|one| name(one)).collect();
        assert_eq!(made, described);
        drop(protocols);
        engine.stop();
    }

    #[test]
    fn a_token_may_be_given_every_scope_there_is() {
        let exchanges = Protocols::DESCRIPTIONS.iter().flat_map(|known| known.protocol.scopes);
        let all: Vec<&Scope> = omir::OMIR.scopes.iter().chain(exchanges).collect();
        assert_eq!(Protocols::SCOPES.iter().collect::<Vec<_>>(), all);
    }
}
