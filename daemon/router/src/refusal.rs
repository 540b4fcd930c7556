//! Refusals of the router: facts, which each protocol words in its own form.

use std::time::Duration;

use omir_core::code::Code;

use super::method::Scope;
use omird_engine::NotAdmitted;

/// Why a request is not worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It changes something, and the configuration lets nobody do that.
    ReadOnly,
    /// The caller does not hold the scope of the method.
    Scope {
        /// That scope.
        needed: Scope,
        /// The way a caller of this kind gets it.
        remedy: Option<&'static str>,
    },
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
        /// When it will be heard again.
        retry_after: Duration,
    },
}

/// What a size is of, and so which bound it is above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The payload, beside a bound of the configuration that has this name in `[limits]`.
    Payload(&'static str),
    /// The memory it takes once it is decoded.
    Decoded,
}

impl Refusal {
    /// Returns its code in `docs/replies.md`, "Errors".
    pub fn code(self) -> Code {
        match self {
            Self::ReadOnly | Self::Scope { .. } => Code::Unauthorized,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::ImportUnderWay | Self::TooOften { .. } => Code::Busy,
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
