//! The daemon's end of the bridge: the socket in a data folder, or a port.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::message;
use crate::cli::McpArgs;
use crate::error::{Error, Result};
use crate::socket;

const PATH: &str = "/mcp";

/// Where a daemon listens, and what may be done there.
pub(super) struct Endpoint {
    place: Place,
    /// The value of the header `Authorization`.
    token: Option<String>,
    /// The daemon is asked to refuse every change.
    only_reads: bool,
}

enum Place {
    Socket(PathBuf),
    Port { authority: String, path: String },
}

/// Both ways of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The connection of one request. It ends with this: where nobody waits for an answer any more, the daemon notices.
pub(super) struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Endpoint {
    /// Returns the endpoint that the arguments name.
    ///
    /// # Errors
    /// A URL that is none, or without a token.
    pub(super) fn of(args: &McpArgs, token: Option<String>) -> Result<Self> {
        let place = match &args.url {
            Some(url) => port(url)?,
            None => Place::Socket(args.data.clone().unwrap_or_else(socket::data_of_this_user)),
        };
        if matches!(place, Place::Port { .. }) && token.is_none() {
            let message = "--url needs a token: `omir token add NAME --scope omir:read` makes one, and OMIR_TOKEN \
                           or --token-file hands it over";
            return Err(Error::Usage(message.to_owned()));
        }
        Ok(Self { place, token, only_reads: !args.write })
    }

    /// Connects.
    pub(super) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match &self.place {
            Place::Socket(data) => Ok(Box::new(socket::connect(data).await?)),
            Place::Port { authority, .. } => {
                let stream = TcpStream::connect(authority).await?;
                let _ = stream.set_nodelay(true);
                Ok(Box::new(stream))
            }
        }
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(
        &self,
        request: &message::Request,
        version: Option<&str>,
    ) -> io::Result<(Response<Incoming>, Connection)> {
        let stream = TokioIo::new(self.connect().await?);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(io::Error::other)?;
        let request = self.request(request, version).map_err(io::Error::other)?;
        let connection = Connection(tokio::task::spawn_local(async move {
            // How it ends is seen by the request.
            let _ = connection.await;
        }));
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        Ok((answer, connection))
    }

    fn request(
        &self,
        request: &message::Request,
        version: Option<&str>,
    ) -> hyper::http::Result<Request<Full<Bytes>>> {
        let (host, path) = match &self.place {
            Place::Socket(_) => ("localhost", PATH),
            Place::Port { authority, path } => (authority.as_str(), path.as_str()),
        };
        let mut built = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(token) = &self.token {
            built = built.header(AUTHORIZATION, token);
        }
        if self.only_reads {
            built = built.header("Omir-Read-Only", "true");
        }
        if request.method != "initialize"
            && let Some(version) = version
        {
            built = built.header("MCP-Protocol-Version", version);
            built = built.header("Mcp-Method", &request.method);
            if let Some(name) = &request.name {
                built = built.header("Mcp-Name", name);
            }
        }
        built.body(Full::new(Bytes::from(request.line.clone())))
    }

    /// The error of a daemon that is not there, with what to do.
    pub(super) fn not_there(&self, why: &io::Error) -> Error {
        Error::Unreachable(match &self.place {
            Place::Socket(data) => {
                let path = data.join(socket::NAME);
                let path = path.display();
                match why.kind() {
                    io::ErrorKind::PermissionDenied => format!(
                        "{path}: {why}. The daemon runs as another user: use its token with --url and OMIR_TOKEN"
                    ),
                    _ => format!(
                        "no daemon answers on {path} ({why}). Start it with `omird --data {}`, or name its data folder \
                         with --data DIR",
                        data.display()
                    ),
                }
            }
            Place::Port { authority, .. } => format!(
                "no daemon answers on {authority} ({why}). Start it with `omird --http {authority}`, or name another \
                 address with --url"
            ),
        })
    }
}

/// Reads a URL.
fn port(url: &str) -> Result<Place> {
    let wrong = |why: &str| Error::Usage(format!("--url {url}: {why}"));
    if url.starts_with("https://") {
        return Err(wrong(
            "TLS is not spoken here; an MCP client connects to an https address itself, or to a tunnel with http",
        ));
    }
    let rest = url.strip_prefix("http://").ok_or_else(|| wrong("expected http://HOST:PORT"))?;
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, format!("/{}", path.trim_end_matches('/'))),
        None => (rest, String::new()),
    };
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    let authority = match (authority.is_empty(), has_port) {
        (true, _) => return Err(wrong("expected http://HOST:PORT")),
        (_, true) => authority.to_owned(),
        (_, false) => format!("{authority}:80"),
    };
    let path = if path.is_empty() || path == "/" { PATH.to_owned() } else { path };
    Ok(Place::Port { authority, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_port() {
        for (url, authority, path) in [
            ("http://127.0.0.1:7449", "127.0.0.1:7449", "/mcp"),
            ("http://127.0.0.1:7449/", "127.0.0.1:7449", "/mcp"),
            ("http://[::1]:7449/mcp", "[::1]:7449", "/mcp"),
            ("http://rover/robot/mcp/", "rover:80", "/robot/mcp"),
        ] {
            match port(url) {
                Ok(Place::Port { authority: found, path: at }) => {
                    assert_eq!((found.as_str(), at.as_str()), (authority, path));
                }
                _ => panic!("{url}"),
            }
        }
        for url in ["127.0.0.1:7449", "https://127.0.0.1:7449", "http://", "http:///mcp"] {
            assert!(matches!(port(url), Err(Error::Usage(_))), "{url}");
        }
    }

    #[test]
    fn a_port_needs_a_token_and_changes_need_write() {
        let url = Some("http://127.0.0.1:7449".to_owned());
        let args = |write, url| McpArgs { write, data: Some("/data".into()), url };
        assert!(matches!(Endpoint::of(&args(false, url.clone()), None), Err(Error::Usage(_))));
        for (write, token, url) in [
            (false, None, None),
            (true, None, None),
            (false, Some("t"), url.clone()),
            (true, Some("t"), url),
        ] {
            let endpoint = Endpoint::of(&args(write, url), token.map(str::to_owned)).unwrap();
            assert_eq!(endpoint.only_reads, !write);
        }
    }
}
