//! Operations of the memory: `docs/keys.md`. Zenoh, ROS 2 and the command line call them by the same names.

use core::fmt;
use core::str::FromStr;

/// An operation. Over Zenoh each has a key of its own, in ROS 2 many have a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of docs/keys.md")]
pub enum Operation {
    Remember,
    Recall,
    Forget,
    Anchor,
    Feedback,
    Export,
    Compact,
    Sweep,
    Explain,
    Rebase,
    Status,
    Backup,
    Prove,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Remember,
        Self::Recall,
        Self::Forget,
        Self::Anchor,
        Self::Feedback,
        Self::Export,
        Self::Compact,
        Self::Sweep,
        Self::Explain,
        Self::Rebase,
        Self::Status,
        Self::Backup,
        Self::Prove,
    ];

    /// Returns the name in `docs/keys.md`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Remember => "remember",
            Self::Recall => "recall",
            Self::Forget => "forget",
            Self::Anchor => "anchor",
            Self::Feedback => "feedback",
            Self::Export => "export",
            Self::Compact => "compact",
            Self::Sweep => "sweep",
            Self::Explain => "explain",
            Self::Rebase => "rebase",
            Self::Status => "status",
            Self::Backup => "backup",
            Self::Prove => "prove",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that no operation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownOperation;

impl fmt::Display for UnknownOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no operation has this name")
    }
}

impl core::error::Error for UnknownOperation {}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(text: &str) -> Result<Self, UnknownOperation> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or(UnknownOperation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_read_as_it_is_written() {
        for operation in Operation::ALL {
            assert_eq!(operation.as_str().parse(), Ok(operation));
        }
        assert_eq!("Recall".parse::<Operation>(), Err(UnknownOperation));
    }
}
