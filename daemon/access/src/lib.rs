//! Identities: who asks. A transport hands in the token it was given, and gets the [`Caller`] that the router decides by.
//!
//! Contract: a caller without a token is let in, or not, here and nowhere else.

#![warn(unreachable_pub)]

use std::sync::Arc;

use omird_router::{Caller, Refusal, Scope, Scopes, Unauthenticated};

/// The scope that no owner has by being there: whoever verifies must be somebody else than who acts.
const MANIFESTO_AUTHORITY: &str = "manifesto:authority";

/// The identities of one daemon. Cloning gives another handle on the same.
#[derive(Debug, Clone)]
pub struct Access(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Every way in needs a token.
    is_required: bool,
    /// The scopes of the person at the machine.
    owner: Scopes,
}

impl Access {
    /// Returns identities without any token: every way in but HTTP is open.
    pub fn open_to_all(scopes: &[Scope]) -> Self {
        Self(Arc::new(Inner { is_required: false, owner: of_owner(scopes) }))
    }

    /// Returns true if no way in is open to callers without a token (`access.require`).
    pub fn is_required(&self) -> bool {
        self.0.is_required
    }

    /// Returns the caller that a token, or a JWT, speaks for.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub fn identify(&self, _transport: &'static str, _token: &str) -> Result<Caller, Refusal> {
        Err(Refusal::Unauthenticated(Unauthenticated::Unknown))
    }

    /// Returns the caller who has no token, and comes by a way that is open to all unless a token is required.
    ///
    /// # Errors
    /// `Unauthenticated`, if one is.
    pub fn without_token(&self, transport: &'static str) -> Result<Caller, Refusal> {
        if self.0.is_required {
            return Err(Refusal::Unauthenticated(Unauthenticated::Missing));
        }
        Ok(self.owner(transport))
    }

    /// Returns the person at the machine: who opened the socket in the data folder, or has `keys/local.token`.
    pub fn owner(&self, transport: &'static str) -> Caller {
        Caller { scopes: self.0.owner.clone(), ..Caller::trusted(transport, transport) }
    }
}

fn of_owner(scopes: &[Scope]) -> Scopes {
    let held = scopes.iter().copied().filter(|scope| scope.0 != MANIFESTO_AUTHORITY);
    Scopes::Only(held.collect())
}
