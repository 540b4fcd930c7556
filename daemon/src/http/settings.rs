//! The section `[http]`, checked.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The address that is listened on where none is stated.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7449);

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The port.
    pub listen: Listen,
    /// The files of TLS; `None` is plain HTTP. The socket is always plain.
    pub tls: Option<TlsFiles>,
    /// Names besides those of loopback and the address itself that a request may have as its `Host`, in lower case.
    pub hosts: Vec<String>,
    /// Origins of pages that may use the port, such as `https://panel.example`.
    pub origins: Vec<String>,
    /// Most connections at a time.
    pub connections: usize,
    /// Most streams of events at a time. A connection that carries one does not count among the connections.
    pub events: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: Listen::Default,
            tls: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            connections: 256,
            events: 512,
        }
    }
}

/// The port to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// The configuration states none: [`DEFAULT_LISTEN`], unless it is taken.
    Default,
    /// This one; port 0 is any free one.
    At(SocketAddr),
    /// None. The socket in the data folder is still there.
    Off,
}

/// Files in PEM. They are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those between it and its authority behind it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of clients, each of which must show a certificate then.
    pub client_ca: Option<PathBuf>,
}
