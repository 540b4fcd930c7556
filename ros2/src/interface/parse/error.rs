//! Faults of a line in an interface file.

use std::fmt;

use crate::interface::InterfaceError;
use crate::message::TypeMismatch;

/// A line that states neither a field nor a constant.
#[derive(Debug)]
pub(super) enum BadStatement {
    /// A type alone.
    NoName(String),
    /// The name has other characters than a name may have.
    Name(String),
    /// A name that the section has already.
    Repeated(String),
    ConstantMessage(String),
    ConstantList(String),
    Constant {
        name: String,
        why: BadLiteral,
    },
    /// Something behind the name that is neither a value nor a default.
    Trailing(String),
    DefaultMessage(String),
    Default {
        name: String,
        why: BadLiteral,
    },
    /// A bound that is no number from 1.
    Bound {
        ty: String,
        bound: String,
    },
    /// `]` without `[`.
    Bracket(String),
    /// A bound behind `<=` of a type that is no text.
    BoundOfNoText(String),
    /// Not the name of a type.
    Type(InterfaceError),
}

/// A constant or a default that is no value of its type.
#[derive(Debug)]
pub(super) enum BadLiteral {
    NoList(String),
    Kind { text: String, wanted: String },
    TypeMismatch(TypeMismatch),
}

impl From<TypeMismatch> for BadLiteral {
    fn from(misfit: TypeMismatch) -> Self {
        Self::TypeMismatch(misfit)
    }
}

impl fmt::Display for BadStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(line) => write!(f, "`{line}` is a type without the name of a field"),
            Self::Name(line) => write!(f, "`{line}`: a name is letters, digits and underscores"),
            Self::Repeated(name) => write!(f, "`{name}` stands here a second time"),
            Self::ConstantMessage(name) => write!(f, "the constant `{name}` cannot be a message"),
            Self::ConstantList(name) => write!(f, "the constant `{name}` cannot be a list"),
            Self::Constant { name, why } => write!(f, "the constant `{name}`: {why}"),
            Self::Trailing(line) => {
                write!(f, "`{line}`: behind the name stands nothing, `=` or a default")
            }
            Self::DefaultMessage(name) => {
                write!(f, "the field `{name}` is a message and can have no default")
            }
            Self::Default { name, why } => write!(f, "the default of `{name}`: {why}"),
            Self::Bound { ty, bound } => {
                write!(f, "`{ty}`: `{bound}` is no bound, it would be a number from 1")
            }
            Self::Bracket(ty) => write!(f, "`{ty}` has a `]` without `[`"),
            Self::BoundOfNoText(ty) => {
                write!(f, "`{ty}`: only string and wstring have a bound")
            }
            Self::Type(why) => write!(f, "{why}, and no type of ROS itself either"),
        }
    }
}

impl fmt::Display for BadLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoList(text) => write!(f, "`{text}` is no list, which stands in [ and ]"),
            Self::Kind { text, wanted } => write!(f, "`{text}` is no {wanted}"),
            Self::TypeMismatch(why) => why.fmt(f),
        }
    }
}
