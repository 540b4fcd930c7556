//! A daemon on this machine, asked over HTTP through the socket in its data folder. Only the owner may open it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird::config::Host;
use omird::unix_socket::{Address, NAME};
use tokio::net::UnixStream;

use crate::cli::Globals;
use crate::error::{Error, Result};

/// Bytes of an answer.
const MOST_BYTES: usize = 16 << 20;

/// Returns the data folder of the daemon that this user would start: `$OMIRD_DATA`, or the default one.
pub(crate) fn data_of_this_user() -> PathBuf {
    let stated = std::env::var_os("OMIRD_DATA").filter(|data| !data.is_empty());
    stated.map_or_else(|| Host::ask().data(), PathBuf::from)
}

/// Connects to the socket in a data folder.
pub(crate) async fn connect(data: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(Address::of(data)?.path()).await
}

/// The socket of a daemon.
pub struct Socket {
    data: PathBuf,
    runtime: tokio::runtime::Runtime,
    timeout: Duration,
}

impl Socket {
    /// Returns the socket of the daemon that this user would start: in `$OMIRD_DATA`, or in the default data folder.
    ///
    /// # Errors
    /// There is no runtime.
    pub fn of_this_user(globals: &Globals) -> Result<Self> {
        Self::of(&data_of_this_user(), globals.timeout)
    }

    fn of(data: &Path, timeout: Duration) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Error::Unreachable(format!("no runtime: {why}")))?;
        Ok(Self { data: data.to_owned(), runtime, timeout })
    }

    /// Asks for what is at a path.
    ///
    /// # Errors
    /// No daemon answers, or it refuses.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.ask(Method::GET, path, None)
    }

    /// Sends a value to a path.
    ///
    /// # Errors
    /// As [`Socket::get`].
    pub fn post(&self, path: &str, value: &Value) -> Result<Value> {
        self.ask(Method::POST, path, Some(value))
    }

    /// Deletes what is at a path.
    ///
    /// # Errors
    /// As [`Socket::get`].
    pub fn delete(&self, path: &str) -> Result<Value> {
        self.ask(Method::DELETE, path, None)
    }

    fn ask(&self, method: Method, path: &str, value: Option<&Value>) -> Result<Value> {
        let body = value.map(json::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(ACCEPT, "application/json");
        if value.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|why| Error::Usage(format!("{path}: {why}")))?;
        let answered = self
            .runtime
            .block_on(async { tokio::time::timeout(self.timeout, self.exchange(request)).await });
        let (status, bytes) = match answered {
            Ok(answered) => answered?,
            Err(_) => return Err(self.unreachable("it does not answer")),
        };
        let limits = Limits { max_bytes: MOST_BYTES, ..Limits::default() };
        let answer = json::from_slice(&bytes, &limits);
        if status.is_success() {
            return answer.map_err(|why| self.unreachable(&format!("no answer of omird: {why}")));
        }
        let text = |name: &str| {
            let text = answer.as_ref().ok()?.get(name).and_then(Value::as_str)?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        match (text("code"), text("message")) {
            (Some(code), Some(message)) => {
                Err(Error::Refused { code, message, path: text("path") })
            }
            _ => {
                Err(self.unreachable(&format!("it answers {status}, as no omird of this version")))
            }
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(hyper::StatusCode, Bytes)> {
        let stream = connect(&self.data).await.map_err(|why| self.not_there(&why))?;
        let broken = |why: &dyn std::fmt::Display| self.unreachable(&why.to_string());
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|why| broken(&why))?;
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|why| broken(&why))?;
        let status = answer.status();
        let bytes = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
        let bytes = bytes.map_err(|why| broken(&why))?.to_bytes();
        connection.abort();
        Ok((status, bytes))
    }

    fn not_there(&self, why: &io::Error) -> Error {
        let data = self.data.display();
        Error::Unreachable(match why.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "{data}/{NAME}: {why}. The daemon runs as another user: call this as that user, or with sudo"
            ),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => format!(
                "no daemon of this user runs: nobody listens on {data}/{NAME}. Start omird, or name the data folder with \
                 --data DIR, as in `sudo omir token --data /var/lib/omird list` for a service; that needs no daemon"
            ),
            _ => format!("{data}/{NAME}: {why}"),
        })
    }

    fn unreachable(&self, why: &str) -> Error {
        let path = self.data.join(NAME);
        Error::Unreachable(format!(
            "{}: {why}; --data {} works without it",
            path.display(),
            self.data.display()
        ))
    }
}
