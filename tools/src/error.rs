//! Failures, and their exit codes.
//!
//! The codes are documented in every `--help` and are what scripts rely on.

use std::fmt;
use std::io;
use std::path::Path;

use omir_core::code::Code;
use omir_core::json;
use omir_core::value::Value;

use crate::output::object;

/// The daemon refused, something was not found, or a validation failed.
pub const REFUSED: u8 = 1;
/// The command line is wrong, or an input cannot be read.
pub const USAGE: u8 = 2;
/// Finished, but data was lost or is incomplete.
pub const PARTIAL: u8 = 3;
/// No daemon can be reached.
pub const UNREACHABLE: u8 = 4;

/// A failed command. The variants are what the exit code tells apart.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The daemon answered with an error object.
    Refused {
        /// One of the codes of docs/replies.md, such as `INVALID_RESOURCE`.
        code: String,
        /// The daemon's message.
        message: String,
        /// JSON Pointer to the offending part of the request.
        path: Option<String>,
    },
    /// The question was fine and the answer is no: not found, not valid, not to be trusted.
    Negative {
        /// `NOT_FOUND`, `INVALID`, or of a backup `INTERRUPTED`, `FOREIGN_KEY`, `OTHER_HISTORY` or
        /// `UNSOUND`.
        code: &'static str,
        /// The name that was not found, or the failure.
        message: String,
    },
    /// The command line asks for something impossible.
    Usage(String),
    /// A file cannot be read or does not hold what it should.
    Input {
        /// The fault, beginning with the file and, where it has lines, the line.
        message: String,
        /// JSON Pointer into the document, where one applies.
        path: Option<String>,
    },
    /// The command ended, and not everything it was about was done.
    Partial(String),
    /// No daemon answers.
    Unreachable(String),
    /// Writing the result failed.
    Output(io::Error),
}

/// The result of the commands.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An input that cannot be read or understood, named.
    pub fn input(file: &Path, problem: impl fmt::Display) -> Self {
        Self::Input { message: format!("{}: {problem}", file.display()), path: None }
    }

    /// `NOT_FOUND`, exit code 1.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::Negative { code: Code::NotFound.as_str(), message: message.into() }
    }

    /// The status the process ends with. A reader that closed its pipe had enough: 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { .. } | Self::Negative { .. } => REFUSED,
            Self::Usage(_) | Self::Input { .. } => USAGE,
            Self::Partial(_) => PARTIAL,
            Self::Unreachable(_) => UNREACHABLE,
            Self::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(_) => USAGE,
        }
    }

    /// The word a script can branch on.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Negative { code, .. } => code,
            Self::Usage(_) => "USAGE",
            Self::Input { .. } => "UNREADABLE",
            Self::Partial(_) => "PARTIAL",
            Self::Unreachable(_) => "UNREACHABLE",
            Self::Output(_) => "OUTPUT",
        }
    }

    /// Returns true if the daemon said that it has no time just now: the same request may be taken in a moment.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == Code::Busy.as_str())
    }

    /// JSON Pointer to the cause, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Refused { path, .. } | Self::Input { path, .. } => path.as_deref(),
            _ => None,
        }
    }

    /// `{"code", "message", "path"}`, as the daemon's own errors.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let message = match self {
            Self::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        };
        object([
            ("code", self.code().into()),
            ("message", message.into()),
            ("path", self.path().into()),
        ])
    }

    /// Says it on standard error: one line, or one JSON object.
    pub fn report(&self, json: bool) {
        use io::Write as _;
        if self.exit_code() == 0 {
            return;
        }
        let text = if json { json::to_string(&self.to_json()) } else { format!("omir: {self}") };
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, message, path } => {
                write!(f, "{message} ({code}")?;
                if let Some(path) = path.as_deref().filter(|path| !path.is_empty()) {
                    write!(f, " at {path}")?;
                }
                f.write_str(")")
            }
            Self::Negative { message, .. }
            | Self::Usage(message)
            | Self::Input { message, .. }
            | Self::Partial(message)
            | Self::Unreachable(message) => f.write_str(message),
            Self::Output(cause) => write!(f, "cannot write the result: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

/// Every bare I/O error is one of writing; reading goes through [`Error::input`].
impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Output(cause)
    }
}

/// Ends a command that tells what it did. Its findings and failures matter more than output that the reader closed: a
/// closed pipe is told last, and stops nothing that a command does beside.
///
/// # Errors
/// The outcome, or that its result could not be written; first of all, that a file could not.
pub fn told<E: Into<Error>>(
    printed: std::result::Result<(), E>,
    outcome: Result<()>,
) -> Result<()> {
    match printed.map_err(Into::into) {
        // A closed pipe is no error of its own; a full card is.
        Err(error) if error.exit_code() != 0 => Err(error),
        printed => outcome.and(printed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_counts_for_more_than_that_nobody_reads_it() {
        let closed = || Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe));
        let lossy = || Err(Error::Partial("lost".into()));
        let code = |told: Result<()>| told.map_err(|error| error.exit_code());
        assert_eq!(code(told(closed(), lossy())), Err(PARTIAL));
        assert_eq!(code(told(Ok::<(), io::Error>(()), lossy())), Err(PARTIAL));
        assert_eq!(code(told(closed(), Ok(()))), Err(0));
        let full = Err(Error::input(Path::new("x.omir"), "no room"));
        assert_eq!(code(told(full, lossy())), Err(USAGE));
        let no_space = Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(code(told(no_space, lossy())), Err(USAGE), "the result is cut off");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error = Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(error.exit_code(), 0);
        let error = Error::from(io::Error::other("disk full"));
        assert_eq!(error.exit_code(), USAGE);
    }

    #[test]
    fn the_json_form_is_the_daemons() {
        let error = Error::Refused {
            code: "INVALID_RESOURCE".to_owned(),
            message: "importance is above 1".to_owned(),
            path: Some("/importance".to_owned()),
        };
        assert_eq!(
            json::to_string(&error.to_json()),
            r#"{"code":"INVALID_RESOURCE","message":"importance is above 1","path":"/importance"}"#
        );
        assert_eq!(error.exit_code(), REFUSED);
        assert_eq!(Error::Usage("x".into()).to_json().get("path"), Some(&Value::Null));
    }
}
