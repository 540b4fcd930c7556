//! Faults of a type.

use std::fmt;
use std::path::PathBuf;

/// A type that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceError {
    /// Not the name of a type.
    Name {
        /// The given value.
        name: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// The text of an interface file is wrong.
    Text {
        /// The file, or the name of the type where there is none.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The fault there, and what would be right.
        why: String,
    },
    /// No definition of this type is known.
    Unknown {
        /// The type.
        name: String,
        /// The type that has a field of it, if it was not asked for itself.
        needed_by: Option<String>,
        /// The nearest name that is known.
        nearest: Option<String>,
    },
    /// The type contains itself, or is nested deeper than any type is.
    Depth {
        /// The type.
        name: String,
    },
    /// Its arrays alone would fill the memory.
    TooLarge {
        /// The type.
        name: String,
    },
    /// Another definition under the same name is in use already.
    Conflict {
        /// The type.
        name: String,
        /// The hash (RIHS01) of the definition in use.
        known: String,
        /// The hash of the other.
        other: String,
    },
    /// A type description that does not describe a type.
    Description {
        /// The type described.
        name: String,
        /// The fault.
        why: String,
    },
    /// A file or a folder cannot be read.
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Message of the system.
        why: String,
    },
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, why } => write!(f, "`{name}` is not the name of a type: {why}"),
            Self::Text { file, line, why } => write!(f, "{file}:{line}: {why}"),
            Self::Unknown { name, needed_by, nearest } => {
                write!(f, "the type {name}")?;
                if let Some(outer) = needed_by {
                    write!(f, ", which {outer} needs,")?;
                }
                f.write_str(" is not known")?;
                if let Some(nearest) = nearest {
                    write!(f, "; did you mean {nearest}?")?;
                }
                f.write_str(" (types of other packages come from folders of interface files)")
            }
            Self::Depth { name } => {
                write!(f, "the type {name} contains itself or is nested too deeply")
            }
            Self::TooLarge { name } => {
                write!(f, "the type {name} has arrays of a fixed length that are too large to hold")
            }
            Self::Conflict { name, known, other } => write!(
                f,
                "the type {name} is known with the hash {known}, and this definition has {other}: \
                 the type was changed under the same name"
            ),
            Self::Description { name, why } => {
                write!(f, "the type description of {name} is wrong: {why}")
            }
            Self::Unreadable { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for InterfaceError {}
