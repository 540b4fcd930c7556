//! Identities of callers. A transport hands in the token it was given, and gets the [`Caller`] that the router decides
//! by.
//!
//! | part | holds |
//! |---|---|
//! | `bearer` | the token in what a caller sends |
//! | `secret` | the text of a token, and what is kept of it |
//! | `grant` | what a token grants |
//! | `file` | the tokens of a data folder, for a daemon and for `omir token --data` beside it |
//! | `known` | the tokens in force |
//! | `jwt` | callers whom an issuer vouches for |
//!
//! A caller without a token is let in, or not, here and nowhere else. Contract, section 8; `docs/access.md`.

#![warn(unreachable_pub)]

mod active_tokens;
mod bearer;
mod clock;
mod expiry;
mod file;
mod grant;
mod jwt;
mod secret;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;

use omir_core::value::{Map, Value};
use omird_router::{Caller, Refusal, Scope, Scopes, Unauthenticated};
use parking_lot::RwLock;

use self::active_tokens::{ActiveTokens, Bearer};
pub use self::bearer::{ENOUGH_OF_CREDENTIAL, LONGEST_TOKEN, bearer};
pub use self::clock::{Clock, NO_EARLIER};
pub use self::expiry::expiry;
pub use self::file::{LOCAL, Record, TokenError, TokenStore, Unreadable, parse as parse_tokens};
pub use self::grant::{Grant, InvalidGrant, is_name};
pub use self::jwt::{InvalidKey, JwtKey, JwtSettings};
pub use self::secret::{PREFIX, Secret};

/// Random bytes for a new token.
pub type Random = Box<dyn Fn() -> [u8; 32] + Send + Sync>;

/// The configuration of access.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessSettings {
    /// Every way in needs a token (`access.require`).
    pub require: bool,
    /// The scopes of callers in a ROS graph, where `[ros2] scopes` names them.
    pub graph: Option<Vec<Scope>>,
    /// The JWTs that are taken (`[access.jwt]`).
    pub jwt: JwtSettings,
}

/// The identities of one daemon. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    settings: RwLock<Arc<AccessSettings>>,
    /// The scopes that this build knows.
    scopes: Arc<[Scope]>,
    /// The scopes of the person at the machine.
    owner: Scopes,
    /// Callers known by a token; without them none is.
    issuer: Option<Issuer>,
}

/// The tokens of a data folder, and what new ones are made with.
struct Issuer {
    known: ActiveTokens,
    clock: Box<dyn Clock>,
    random: Random,
}

impl Access {
    /// Returns identities without any token: every way in but HTTP is open.
    pub fn open_to_all(scopes: &[Scope]) -> Self {
        Self::new(AccessSettings::default(), scopes, None)
    }

    /// Returns the identities of a data folder, and makes the token of the person at the machine if there is none. A file
    /// of tokens that cannot be read is told of in the log, and none of its tokens is taken.
    ///
    /// # Errors
    /// The token of the person at the machine can be neither read nor made. A full card, or one that is read-only, is none.
    pub fn open(
        data: &Path,
        settings: AccessSettings,
        scopes: &[Scope],
        clock: Box<dyn Clock>,
        random: Random,
    ) -> io::Result<Self> {
        let store = TokenStore::of(data);
        match store.make_local(&random) {
            Err(error) if is_borne(&error) => {
                tracing::warn!(%error, file = %store.local().display(), "it could not be made");
            }
            made => made?,
        }
        let known = ActiveTokens::of(store, scopes.into(), &*clock);
        Ok(Self::new(settings, scopes, Some(Issuer { known, clock, random })))
    }

    fn new(settings: AccessSettings, scopes: &[Scope], issuer: Option<Issuer>) -> Self {
        let settings = RwLock::new(Arc::new(settings));
        let held = scopes.iter().copied().filter(|scope| scope.0 != grant::MANIFESTO_AUTHORITY);
        let owner = Scopes::Only(held.collect());
        Self(Arc::new(Inner { settings, scopes: scopes.into(), owner, issuer }))
    }

    /// Takes over what the configuration says now.
    pub fn reconfigure(&self, settings: AccessSettings) {
        *self.0.settings.write() = Arc::new(settings);
    }

    fn settings(&self) -> Arc<AccessSettings> {
        self.0.settings.read().clone()
    }

    /// Returns true if no way in is open to callers without a token (`access.require`).
    pub fn is_required(&self) -> bool {
        self.settings().require
    }

    /// Returns the caller that a token, or a JWT, speaks for. Cheap enough for each request, so that a token that is
    /// revoked stops at once.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub fn identify(&self, transport: &'static str, token: &str) -> Result<Caller, Refusal> {
        let unknown = Refusal::Unauthenticated(Unauthenticated::Unknown);
        let issuer = self.0.issuer.as_ref().ok_or(unknown)?;
        if token.len() > LONGEST_TOKEN {
            return Err(unknown);
        }
        let found = if jwt::is_one(token) {
            let settings = self.settings();
            let now = issuer.clock.now();
            jwt::identify(&settings.jwt, &self.0.scopes, transport, token, now)
        } else {
            let tokens = issuer.known.tokens(&*issuer.clock);
            tokens.bearer(token, transport, &*issuer.clock).map(|bearer| match bearer {
                Bearer::Owner => self.owner(transport),
                Bearer::Holder(caller) => caller,
            })
        };
        found.map_err(Refusal::Unauthenticated)
    }

    /// Returns the caller without a token, on a way that is open to all unless a token is required.
    ///
    /// # Errors
    /// `Unauthenticated`, if one is.
    pub fn without_token(&self, transport: &'static str) -> Result<Caller, Refusal> {
        if self.is_required() {
            return Err(Refusal::Unauthenticated(Unauthenticated::Missing));
        }
        Ok(Caller { name: transport.into(), ..self.owner(transport) })
    }

    /// Returns the person at the machine, who opened the socket in the data folder or has `keys/local.token`.
    pub fn owner(&self, transport: &'static str) -> Caller {
        Caller { scopes: self.0.owner.clone(), ..Caller::trusted(transport, Caller::LOCAL) }
    }

    /// Returns the caller in a ROS graph, which has no tokens. It acts with `[ros2] scopes`; without the key, with
    /// `omir:read` and `omir:write` where a token is required elsewhere, and else like any caller without a token.
    pub fn graph(&self, transport: &'static str) -> Caller {
        let settings = self.settings();
        let scopes = match &settings.graph {
            Some(scopes) => Scopes::only(scopes),
            None if settings.require => Scopes::only(&[Scope::READ, Scope::WRITE]),
            None => self.0.owner.clone(),
        };
        Caller { scopes, ..Caller::trusted(transport, transport) }
    }

    /// Returns the tokens that are issuer. That of the person at the machine is not among them.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn tokens(&self) -> Result<Vec<Record>, TokenError> {
        self.0.issuer.as_ref().map_or_else(|| Ok(Vec::new()), |issuer| issuer.known.store().list())
    }

    /// Adds a token, in force on return.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn add(&self, grant: Grant) -> Result<Secret, TokenError> {
        let issuer = self.issuer()?;
        grant.check_new(&self.0.scopes).map_err(TokenError::Invalid)?;
        let secret = issuer.known.store().add(grant, (issuer.random)(), issuer.clock.now());
        issuer.known.refresh(&*issuer.clock, None);
        secret
    }

    /// Revokes a token, in force on return.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let issuer = self.issuer()?;
        let revoked = issuer.known.store().revoke(name);
        issuer.known.refresh(&*issuer.clock, revoked.is_ok().then_some(name));
        revoked
    }

    /// Returns the seconds since 1970, or `None` while the clock cannot be trusted.
    pub fn now(&self) -> Option<i64> {
        self.0.issuer.as_ref()?.clock.now()
    }

    fn issuer(&self) -> Result<&Issuer, TokenError> {
        let none = || io::Error::new(io::ErrorKind::Unsupported, "this daemon keeps no tokens");
        self.0.issuer.as_ref().ok_or_else(|| TokenError::Disk(none()))
    }

    /// Returns what `status` says of it, where the ways in `open` ask for no token as long as none is required.
    pub fn status(&self, open: &[&str]) -> Value {
        let settings = self.settings();
        let mut status = Map::new();
        let tokens = self.0.issuer.as_ref().map(|issuer| issuer.known.tokens(&*issuer.clock));
        status.insert("requireToken", settings.require);
        let count = tokens.as_ref().map_or(0, |tokens| tokens.count());
        status.insert("tokens", count as u64);
        status.insert("jwtKeys", settings.jwt.keys.len() as u64);
        // A graph has no tokens: its operations are limited, and not its callers.
        let is_open = |way: &&&str| !settings.require || **way == "ros2";
        let open: Vec<Value> = open.iter().filter(is_open).map(|way| (*way).into()).collect();
        status.insert("openTransports", Value::Array(open));
        let fault = tokens.and_then(|tokens| tokens.fault.clone());
        status.insert("trouble", fault.map_or(Value::Null, Value::from));
        Value::Object(status)
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("settings", &self.settings()).finish_non_exhaustive()
    }
}

/// A card that takes no more is served all the same.
fn is_borne(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), ReadOnlyFilesystem | StorageFull | QuotaExceeded)
}
