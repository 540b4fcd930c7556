//! Errors of a node and its entities.

use std::fmt;

use super::name::NameError;

/// Something that could not be declared, sent or asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeError {
    /// A name that ROS does not allow.
    Name(NameError),
    /// Zenoh refused; what was tried, and its words.
    Zenoh(&'static str, String),
    /// The node is gone, and with it everything it had.
    Closed,
    /// A message of one type where another is wanted.
    Type {
        /// The wanted value.
        wanted: String,
        /// The given value.
        given: String,
    },
    /// The system refused a thread.
    Thread(String),
    /// A type of ROS that this needs is not known; why.
    Interface(String),
}

impl NodeError {
    pub(crate) fn zenoh(tried: &'static str) -> impl FnOnce(zenoh::Error) -> Self {
        move |error| Self::Zenoh(tried, error.to_string())
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Zenoh(tried, why) => write!(f, "Zenoh could not {tried}: {why}"),
            Self::Closed => f.write_str("the node is closed"),
            Self::Type { wanted, given } => write!(f, "a {given} where a {wanted} is wanted"),
            Self::Thread(why) => write!(f, "no thread: {why}"),
            Self::Interface(why) => write!(f, "a type that this needs: {why}"),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<NameError> for NodeError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}
