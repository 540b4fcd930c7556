//! Errors as callers get them: `docs/replies.md`, "Errors".

use std::fmt;

pub use omir_core::code::Code;
use omir_core::validate::Fault;

/// A refusal: what was wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind of refusal.
    pub code: Code,
    /// For a person: what was found, what is expected.
    pub message: String,
    /// JSON Pointer into the request, where one applies; otherwise empty.
    pub path: String,
}

impl Error {
    /// An error that concerns the whole request.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), path: String::new() }
    }

    /// An error at one place of the request.
    pub fn at(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        // The validator's reports write the root as `/`, as OMIR's own does; to callers it is a
        // JSON Pointer (RFC 6901), where the root is empty and `/` names a member without a name.
        let path = Some(path.into()).filter(|path| path != "/").unwrap_or_default();
        Self { code, message: message.into(), path }
    }

    /// An [`Code::InvalidQuery`] about one parameter.
    pub fn query(parameter: &str, message: impl fmt::Display) -> Self {
        Self::at(Code::InvalidQuery, format!("/{parameter}"), format!("{parameter}: {message}"))
    }

    /// The refusal of a request because the daemon is stopping.
    pub(crate) fn stopping() -> Self {
        Self::new(Code::Internal, "the daemon is stopping")
    }

    /// The refusal of a change because of the configuration.
    pub(crate) fn read_only() -> Self {
        Self::new(Code::Unauthorized, "this daemon is configured read-only (access.read_only)")
    }

    /// The first of a list of faults, saying how many more there are.
    pub fn from_faults(faults: &[Fault]) -> Self {
        match faults.split_first() {
            None => Self::new(Code::InvalidResource, "the resource is not valid"),
            Some((first, [])) => {
                Self::at(Code::InvalidResource, first.pointer.clone(), first.message.clone())
            }
            Some((first, rest)) => {
                let others: Vec<&str> = rest.iter().take(4).map(|f| f.pointer.as_str()).collect();
                Self::at(
                    Code::InvalidResource,
                    first.pointer.clone(),
                    format!(
                        "{} (and {} more: {}{})",
                        first.message,
                        rest.len(),
                        others.join(", "),
                        if rest.len() > others.len() { ", …" } else { "" }
                    ),
                )
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)?;
        if !self.path.is_empty() {
            write!(f, " (at {})", self.path)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
