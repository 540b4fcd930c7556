//! Refusals of the router: facts, which each protocol words in its own form.

use std::time::Duration;

use omir_core::code::Code;

use super::method::Scope;
use omird_engine::NotAdmitted;

/// A reason not to work on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It changes something, and the configuration allows no changes.
    ReadOnly,
    /// It changes something, and its caller asked to be held to reading.
    OnlyReads,
    /// The caller does not hold the scope of the method.
    Scope {
        /// That scope.
        needed: Scope,
        /// The way a caller of this kind gets it.
        remedy: Option<Remedy>,
    },
    /// The caller is not known.
    Unauthenticated(Unauthenticated),
    /// It is too large.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
        /// The quantity that is measured.
        size: Size,
    },
    /// It is a large import, and another one is under way.
    ImportUnderWay,
    /// The caller asks too often.
    TooOften {
        /// The time until it is heard again.
        retry_after: Duration,
    },
    /// It is not the token of the port.
    WrongToken,
    /// No token opens the port, whose configuration has none.
    NoToken,
    /// Too soon after a wrong token.
    Locked {
        /// The time until a token is looked at.
        retry_after: Duration,
    },
}

/// The reason why a caller is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unauthenticated {
    /// There is no token, and this way in needs one.
    Missing,
    /// It is no token of this daemon, or was revoked.
    Unknown,
    /// It was one, until it expired.
    Expired,
    /// The clock cannot be trusted, so omird cannot tell if it has expired. A token without an end is not affected.
    ClockUntrusted,
    /// It is signed by an issuer whom the configuration trusts, and no token of omird all the same: in words, for that
    /// issuer.
    Unsound(&'static str),
}

/// A way to a scope that a caller lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The token of the port opens it, or its configuration.
    Unlock,
    /// Any token: there is none, and every way in needs one. The refusal is `Unauthenticated`.
    Token,
}

/// The thing that a size is of, and so the bound that it is above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The payload, beside a bound of the configuration that has this name in `[limits]`.
    Payload(&'static str),
    /// The memory it takes once it is decoded.
    Decoded,
    /// The message, beside the bound of its method.
    Message,
}

impl Refusal {
    /// Returns its code in `docs/replies.md`, "Errors".
    pub fn code(self) -> Code {
        match self {
            Self::ReadOnly
            | Self::OnlyReads
            | Self::Scope { .. }
            | Self::WrongToken
            | Self::NoToken
            | Self::Locked { .. } => Code::Unauthorized,
            Self::Unauthenticated(_) => Code::Unauthenticated,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::TooOften { .. } => Code::RateLimited,
            Self::ImportUnderWay => Code::Busy,
        }
    }
}

impl From<NotAdmitted> for Refusal {
    fn from(not: NotAdmitted) -> Self {
        match not {
            NotAdmitted::TooLarge { bytes, most, limit } => {
                Self::TooLarge { bytes, most, size: Size::Payload(limit) }
            }
            NotAdmitted::ImportUnderWay => Self::ImportUnderWay,
        }
    }
}
