//! The port and the socket.

use std::fmt;
use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};

use super::settings::{DEFAULT_LISTEN, Listen};
use super::tls::TlsError;
use crate::unix_socket::{Address, NAME};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: u32 = 1024;

/// A transport that does not start.
#[derive(Debug)]
pub enum ListenError {
    /// The address cannot be listened on.
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// TLS cannot be served.
    Tls(TlsError),
    /// There are no threads for it.
    Threads(io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listen = "--http, or listen in [http]";
        match self {
            Self::Address { address, error } => match error.kind() {
                ErrorKind::AddrInUse => write!(
                    f,
                    "{address} is taken: another program listens there. Is it another omird? Stop it, or name a free \
                     address with {listen}; `off` closes the port"
                ),
                ErrorKind::AddrNotAvailable => write!(
                    f,
                    "{address}: this machine has no such address now (`ip address` shows those it has; 0.0.0.0 is all of \
                     them); name another with {listen}"
                ),
                ErrorKind::PermissionDenied => write!(
                    f,
                    "{address}: omird may not listen there, as on a port below 1024; name another with {listen}"
                ),
                _ => write!(f, "{address}: {error}; name another with {listen}"),
            },
            Self::Tls(error) => error.fmt(f),
            Self::Threads(error) => write!(f, "no threads for HTTP: {error}"),
        }
    }
}

impl std::error::Error for ListenError {}

/// Listens on the port, if there is to be one. Called within the runtime.
pub(super) fn port(
    listen: &Listen,
    is_encrypted: bool,
) -> Result<Option<TcpListener>, ListenError> {
    let address = match listen {
        Listen::Off => return Ok(None),
        Listen::Default => DEFAULT_LISTEN,
        Listen::At(address) => *address,
    };
    if !is_encrypted && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "tokens cross the network in clear text: set http.tls (docs/http.md), or listen on 127.0.0.1"
        );
    }
    let bound = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A daemon that was just stopped leaves connections in TIME_WAIT behind.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bound().map(Some).map_err(|error| ListenError::Address { address, error })
}

/// Listens on the socket in the data folder, which is locked: a socket that lies there is of a daemon that is dead. Called
/// within the runtime.
pub(super) fn socket(data: &Path) -> io::Result<(UnixListener, PathBuf)> {
    let path = data.join(NAME);
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(&path)?,
        Ok(_) => return Err(io::Error::other("something else than a socket lies there")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let unbound = UnixSocket::new_stream()?;
    unbound.bind(Address::of(data)?.path())?;
    // No client can connect before it listens, and so only the owner ever can.
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((unbound.listen(BACKLOG)?, path))
}
