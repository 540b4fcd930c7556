//! Refusals of a configuration: the key, the value that was found, and the values that are allowed.

use std::fmt;
use std::path::PathBuf;

/// A value that a configuration may not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The key, such as `store.seal_after_s`; empty where the fault is of no one key.
    pub key: String,
    /// The fault; boxed, because the error travels through many results.
    pub fault: Box<Fault>,
}

/// A fault of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A number is too small or too large.
    OutOfRange {
        /// The number.
        found: String,
        /// The smallest that is allowed.
        least: String,
        /// The largest that is allowed.
        most: String,
        /// True if 0 is allowed as well, for none.
        or_none: bool,
    },
    /// A word is none of those that are known.
    NoneOf {
        /// The word.
        found: String,
        /// Those that are known.
        known: &'static [&'static str],
    },
    /// Anything else, in words.
    Other(String),
}

impl Invalid {
    /// A number beside its range.
    pub fn out_of_range(key: &str, found: impl ToString, range: [impl ToString; 2]) -> Self {
        let [least, most] = range.map(|bound| bound.to_string());
        let fault = Fault::OutOfRange { found: found.to_string(), least, most, or_none: false };
        Self { key: key.to_owned(), fault: Box::new(fault) }
    }

    /// A word that is not known.
    pub fn none_of(key: &str, found: &str, known: &'static [&'static str]) -> Self {
        let fault = Fault::NoneOf { found: found.to_owned(), known };
        Self { key: key.to_owned(), fault: Box::new(fault) }
    }

    /// Anything else about a key.
    pub fn other(key: &str, message: impl fmt::Display) -> Self {
        Self { key: key.to_owned(), fault: Box::new(Fault::Other(message.to_string())) }
    }

    /// A fault of no one key.
    pub fn of_all(message: impl fmt::Display) -> Self {
        Self::other("", message)
    }

    /// The same where 0 is allowed as well.
    pub fn or_none(mut self) -> Self {
        if let Fault::OutOfRange { or_none, .. } = &mut *self.fault {
            *or_none = true;
        }
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        match &*self.fault {
            Fault::OutOfRange { found, least, most, or_none } => {
                write!(f, "{found} is not between {least} and {most}")?;
                if *or_none { f.write_str(", nor 0 for none") } else { Ok(()) }
            }
            Fault::NoneOf { found, known } => {
                let known: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
                write!(f, "{found:?} is none of {}", known.join(", "))
            }
            Fault::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Invalid {}

/// The origin of a configuration that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In a configuration file.
    File(PathBuf),
    /// On the command line, or in a variable of the environment.
    Arguments,
    /// Nowhere: there is no file.
    Defaults,
}

/// A configuration that is refused, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Its origin.
    pub origin: Origin,
    /// The fault.
    pub invalid: Invalid,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(file) => write!(f, "{}: {}", file.display(), self.invalid),
            Origin::Arguments => write!(f, "command line or environment: {}", self.invalid),
            Origin::Defaults => self.invalid.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {}
