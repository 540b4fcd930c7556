//! Errors of the network: endpoints, settings of Zenoh, and a service that does not start.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::path::PathBuf;

use super::network::PROTOCOLS;

/// A service that does not start.
#[derive(Debug)]
pub enum StartError {
    /// The settings of the network are refused.
    Settings(NetworkError),
    /// The network is not open.
    NotOpened(NotOpened),
    /// A key could not be declared.
    Key(zenoh::Error),
    /// There are no threads for it.
    Threads(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::NotOpened(error) => error.fmt(f),
            Self::Key(error) => write!(f, "a key could not be declared: {error}"),
            Self::Threads(error) => write!(f, "no worker threads: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A setting of the network that Zenoh refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkError {
    /// Zenoh's own file cannot be used.
    File {
        /// The file.
        file: PathBuf,
        /// The reason in Zenoh's words.
        reason: String,
    },
    /// A value is refused.
    Setting {
        /// The key, by Zenoh's name.
        key: &'static str,
        /// The value.
        value: String,
        /// The reason in Zenoh's words.
        reason: String,
    },
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, reason } => write!(f, "{}: {reason}", file.display()),
            Self::Setting { key, value, reason } => {
                write!(f, "Zenoh refuses {key} = {value}: {reason}")
            }
        }
    }
}

impl std::error::Error for NetworkError {}

/// A text that is no endpoint of this build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError {
    /// The text.
    pub endpoint: String,
    /// The part of it that is wrong.
    pub fault: EndpointFault,
}

/// The part of an endpoint that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointFault {
    /// It has no protocol before a slash.
    Form,
    /// This build does not know the protocol.
    Protocol,
    /// The address names no host or no port.
    Port,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = "expected an endpoint such as tcp/127.0.0.1:7448";
        write!(f, "{:?}: ", self.endpoint)?;
        match self.fault {
            EndpointFault::Form => f.write_str(expected),
            EndpointFault::Protocol => write!(f, "this build knows {}", PROTOCOLS.join(", ")),
            EndpointFault::Port => write!(f, "{expected}, with a port from 0 to 65535"),
        }
    }
}

impl std::error::Error for EndpointError {}

/// A network that is not open. Its text says what to do.
#[derive(Debug)]
pub enum NotOpened {
    /// An endpoint cannot be listened on.
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// The reason that the machine gives.
        kind: ErrorKind,
    },
    /// Anything else, as Zenoh says it.
    Other(String),
}

impl NotOpened {
    /// Finds the reason why Zenoh could not open `listening`, where it says `said`. Zenoh gives reasons as text alone, so
    /// the machine is asked once more for the endpoint that the text names.
    pub(super) fn find(listening: &[String], said: String) -> Self {
        let refused = listening.iter().find_map(|endpoint| {
            let address = address(endpoint).filter(|address| said.contains(address))?;
            let kind = TcpListener::bind(address).err()?.kind();
            Some((endpoint.clone(), kind))
        });
        match refused {
            Some((endpoint, kind)) => Self::Endpoint { endpoint, kind },
            None => Self::Other(said),
        }
    }
}

/// The address of an endpoint over TCP.
fn address(endpoint: &str) -> Option<&str> {
    let (protocol, rest) = endpoint.split_once('/')?;
    matches!(protocol, "tcp" | "tls").then(|| rest.split(['?', '#']).next().unwrap_or_default())
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listen = "--listen, or listen in [network]";
        match self {
            Self::Endpoint { endpoint, kind: ErrorKind::AddrInUse } => write!(
                f,
                "{endpoint} is taken: another program listens there. Is it another omird, perhaps the service (systemctl \
                 status omird)? Stop it, or name a free endpoint with {listen}"
            ),
            Self::Endpoint { endpoint, kind: ErrorKind::AddrNotAvailable } => write!(
                f,
                "{endpoint}: this machine has no such address now (`ip address` shows those it has; tcp/0.0.0.0 is all of \
                 them); name another with {listen}"
            ),
            Self::Endpoint { endpoint, kind: ErrorKind::PermissionDenied } => write!(
                f,
                "{endpoint}: omird may not listen there, as on a port below 1024; name another with {listen}"
            ),
            Self::Endpoint { endpoint, kind } => {
                write!(f, "the network could not be opened: {endpoint}: {kind}")
            }
            Self::Other(said) => write!(f, "the network could not be opened: {said}"),
        }
    }
}

impl std::error::Error for NotOpened {}
