//! Errors that end the program.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::data_folder::FolderError;
use crate::zenoh::StartError;

/// An error that ends the program.
#[derive(Debug)]
pub(super) enum ServeError {
    /// There is no runtime for signals.
    Runtime(io::Error),
    /// Signals cannot be handled.
    Signals(io::Error),
    /// The data folder cannot be used.
    Data {
        /// The folder.
        folder: PathBuf,
        /// Its fault.
        fault: DataFault,
    },
    /// The model of `[embedding]` cannot be used.
    Model(omird_embedding::ModelError),
    /// There is no thread for the file of audit lines.
    Audit(io::Error),
    /// The service on the network does not start.
    Service(StartError),
    /// HTTP does not start.
    #[cfg(feature = "http")]
    Http(crate::http::ListenError),
    /// The serial ports are not served.
    #[cfg(feature = "serial")]
    Serial(io::Error),
    /// The node in the graph of ROS 2 does not start.
    #[cfg(feature = "ros2")]
    Ros2(omir_ros2::participant::OpenError),
    /// A bug ended a thread.
    Broken {
        /// The name of the thread.
        thread: &'static str,
    },
}

/// A fault of the data folder.
#[derive(Debug)]
pub(super) enum DataFault {
    /// It is not there, not ours or not free.
    Folder(FolderError),
    /// Its key cannot be read or made.
    Key(io::Error),
    /// The token of the person at the machine cannot be read or made.
    Tokens(io::Error),
    /// The store in it cannot be opened.
    Store(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "no runtime: {error}"),
            Self::Signals(error) => write!(f, "signals cannot be handled: {error}"),
            Self::Data { folder, fault } => write!(f, "{}: {fault}", folder.display()),
            Self::Model(error) => write!(f, "embedding.model: {error}"),
            Self::Audit(error) => write!(f, "no thread for audit lines: {error}"),
            Self::Service(error) => error.fmt(f),
            #[cfg(feature = "http")]
            Self::Http(error) => write!(f, "http: {error}"),
            #[cfg(feature = "serial")]
            Self::Serial(error) => write!(f, "serial: {error}"),
            #[cfg(feature = "ros2")]
            Self::Ros2(error) => write!(f, "ros2: {error}"),
            Self::Broken { thread } => write!(
                f,
                "a bug ended the thread {thread}, see above; what was acknowledged is stored, and the next start serves it"
            ),
        }
    }
}

impl fmt::Display for DataFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::Tokens(error) => write!(f, "keys/local.token: {error}"),
            Self::Store(error) => {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "; something in it belongs to another user: chown -R it to whoever omird runs as"
                    }
                    io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                        "; what lies there is no data folder: name another with --data"
                    }
                    _ => "",
                };
                write!(f, "{error}{hint}")
            }
        }
    }
}

impl std::error::Error for ServeError {}
