//! Codes of refusals, for programs: `docs/replies.md`, "Errors". Both ends, over Zenoh,
//! ROS or a cable, mean the same by them.

use core::fmt;
use core::str::FromStr;

/// A code. Callers branch on these, never on the text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A resource breaks the format, or refers to something that does not exist.
    InvalidResource,
    /// A selector or payload of a query cannot be understood.
    InvalidQuery,
    /// The named resource is not in the store.
    NotFound,
    /// The resource changed since the caller last saw it.
    Conflict,
    /// A limit on size, nesting or count was exceeded.
    TooLarge,
    /// The disk is full; what is stored can still be read.
    StorageFull,
    /// The queue is full; try again in a moment.
    Busy,
    /// The caller asks more often than it may; try again when the refusal says.
    RateLimited,
    /// The caller is unknown: its token is missing, unknown or no longer valid.
    Unauthenticated,
    /// The caller, or the daemon's configuration, may not do that.
    Unauthorized,
    /// Something failed inside the daemon or its disk.
    Internal,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::InvalidResource,
        Self::InvalidQuery,
        Self::NotFound,
        Self::Conflict,
        Self::TooLarge,
        Self::StorageFull,
        Self::Busy,
        Self::RateLimited,
        Self::Unauthenticated,
        Self::Unauthorized,
        Self::Internal,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidResource => "INVALID_RESOURCE",
            Self::InvalidQuery => "INVALID_QUERY",
            Self::NotFound => "NOT_FOUND",
            Self::Conflict => "CONFLICT",
            Self::TooLarge => "TOO_LARGE",
            Self::StorageFull => "STORAGE_FULL",
            Self::Busy => "BUSY",
            Self::RateLimited => "RATE_LIMITED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Internal => "INTERNAL",
        }
    }

    /// Returns true if the same request may be taken a little later.
    pub fn may_pass(self) -> bool {
        match self {
            Self::Busy | Self::RateLimited | Self::StorageFull | Self::Internal => true,
            Self::InvalidResource
            | Self::InvalidQuery
            | Self::NotFound
            | Self::Conflict
            | Self::TooLarge
            | Self::Unauthenticated
            | Self::Unauthorized => false,
        }
    }

    /// Returns true if what was sent is refused for what it says, so that something else may be taken all the same.
    pub fn is_of_content(self) -> bool {
        !self.may_pass() && !matches!(self, Self::Unauthorized | Self::Unauthenticated)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no code, or one of a newer version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownCode;

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no code of an error that is known here")
    }
}

impl core::error::Error for UnknownCode {}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL.into_iter().find(|code| code.as_str() == text).ok_or(UnknownCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_read_as_it_is_written() {
        for code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert_eq!("busy".parse::<Code>(), Err(UnknownCode));
    }

    #[test]
    fn what_may_pass_is_not_of_the_content() {
        let of = |is: fn(Code) -> bool| Code::ALL.into_iter().filter(move |&code| is(code)).count();
        assert_eq!((of(Code::may_pass), of(Code::is_of_content)), (4, 5));
        assert!(!Code::Unauthorized.is_of_content());
    }
}
