//! Callers: who asks, what they may do, how much may come back and how often.

use std::sync::Arc;

use super::method::{Method, Payload, Rate, Scope};
use super::refusal::{Refusal, Remedy, Size};
use super::tenant::DEFAULT_TENANT;

/// The name of a caller who is not known.
const UNKNOWN: &str = "?";

/// The one who asks. It travels with each request, from the transport to the protocol.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name: of a transport or port where that knows no more, else of a token or user. Rates and audit lines go by it.
    pub name: Arc<str>,
    /// The way in, for audit lines and counts: `zenoh`, `http`, `socket`, `serial`, `ros2`, `mcp`.
    pub transport: &'static str,
    /// The part of the memory that is the caller's, for protocols that keep several apart; `None` is [`DEFAULT_TENANT`], which
    /// never stands here.
    pub tenant: Option<Arc<str>>,
    /// The agents it speaks as, the first one where a protocol knows one; empty: whom the message names.
    pub agents: Arc<[Arc<str>]>,
    /// Its authority among agents, where its token states one (Akashik).
    pub authority: Option<u32>,
    /// The scopes the caller holds.
    pub scopes: Scopes,
    /// Bounds on size and rate.
    pub bounds: Bounds,
    /// The way a caller of this kind gets the scope that it lacks, for the refusal.
    pub remedy: Option<Remedy>,
    /// Came with a token, so that the rates of a protocol hold where the token states none.
    pub has_token: bool,
    /// Asked to be held to reading, whatever its scopes: a program that hands what it may do on to another.
    pub only_reads: bool,
    /// Asks again by itself when a refusal may pass, so that such a refusal is none to be counted.
    pub retries: bool,
}

impl Caller {
    /// The name of the person at the machine, whom the token in the data folder tells.
    pub const LOCAL: &str = "local";

    /// Returns true for the person at the machine: no token that is made has the name, and no way in that is open to all.
    pub fn is_owner(&self) -> bool {
        !self.has_token && &*self.name == Self::LOCAL
    }

    /// Returns true if the caller's token may name this agent: it names it, or none at all.
    pub fn may_name(&self, agent: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|own| **own == *agent)
    }

    /// Returns the caller who is not known: its token is none of ours, or it has none where one is needed. It may do
    /// nothing but what everybody may, and is told that a token is needed.
    pub fn unknown(transport: &'static str) -> Self {
        let (scopes, remedy) = (Scopes::only(&[]), Some(Remedy::Token));
        Self { scopes, remedy, ..Self::trusted(transport, UNKNOWN) }
    }

    /// Returns true if it is not known who this is.
    pub fn is_unknown(&self) -> bool {
        &*self.name == UNKNOWN
    }

    /// Returns the name of the caller's tenant.
    pub fn tenant_name(&self) -> &str {
        self.tenant.as_deref().unwrap_or(DEFAULT_TENANT)
    }

    /// Returns a caller of that name that may do everything: another part, such as the network, decided who gets here.
    pub fn trusted(transport: &'static str, name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            transport,
            tenant: None,
            agents: Arc::default(),
            authority: None,
            scopes: Scopes::All,
            bounds: Bounds::default(),
            remedy: None,
            has_token: false,
            only_reads: false,
            retries: false,
        }
    }
}

/// The scopes of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scopes {
    /// Everything.
    All,
    /// The scopes that are listed.
    Only(Arc<[Scope]>),
}

impl Scopes {
    /// Returns just these.
    pub fn only(scopes: &[Scope]) -> Self {
        Self::Only(scopes.into())
    }

    /// Returns true if `scope`, or one of its alternatives, is among them, or if everybody holds it.
    pub fn hold(&self, scope: Scope) -> bool {
        match self {
            Self::All => true,
            Self::Only(held) => {
                scope == Scope::OPEN || scope.alternatives().any(|scope| held.contains(&scope))
            }
        }
    }

    /// Returns these and `others`.
    pub fn and(&self, others: &Self) -> Self {
        match (self, others) {
            (Self::Only(these), Self::Only(others)) => {
                let new = others.iter().filter(|scope| !these.contains(scope));
                Self::Only(these.iter().chain(new).copied().collect())
            }
            _ => Self::All,
        }
    }
}

/// Bounds of one caller, beside those of the configuration, which hold for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Memory that a request may take once it is decoded.
    pub decoded: Option<DecodedBounds>,
    /// Bytes of an answer that comes in one part.
    pub reply_bytes: Option<u64>,
    /// The rates of requests, as for a second and for an hour. Each of them holds.
    pub rates: [Option<Rate>; 2],
}

/// Bytes of memory that a decoded request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodedBounds {
    /// Of one with resources.
    pub resources: usize,
    /// Of any other.
    pub parameters: usize,
}

impl Bounds {
    pub(super) fn check_decoded(&self, method: &Method, bytes: usize) -> Result<(), Refusal> {
        let Some(decoded) = self.decoded else { return Ok(()) };
        let most = match method.payload {
            Payload::Resources => decoded.resources,
            Payload::Parameters | Payload::None | Payload::Message(_) => decoded.parameters,
        };
        if bytes > most {
            return Err(Refusal::TooLarge { bytes, most, size: Size::Decoded });
        }
        Ok(())
    }
}
