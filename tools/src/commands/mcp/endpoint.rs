//! The daemon's end of the bridge: the socket in a data folder, or a port.

use std::io;
use std::path::{Path, PathBuf};

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
use super::tls::{Shown, Tls};
use crate::cli::McpArgs;
use crate::error::{Error, Result};
use crate::socket;

const PATH: &str = "/mcp";

/// Where a daemon listens, and what may be done there.
pub(super) struct Endpoint {
    target: Target,
    /// The value of the header `Authorization`.
    token: Option<String>,
    /// The daemon is asked to refuse every change.
    only_reads: bool,
}

enum Target {
    Socket(PathBuf),
    Port { authority: String, path: String, tls: Option<Tls> },
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
    /// A URL that is none, or without a token; a file of authorities that cannot be used.
    pub(super) fn of(args: &McpArgs, token: Option<String>) -> Result<Self> {
        let target = match &args.url {
            Some(url) => port(url, args.ca.as_deref(), shown(args))?,
            None => Target::Socket(args.data.clone().unwrap_or_else(socket::data_of_this_user)),
        };
        if matches!(target, Target::Port { .. }) && token.is_none() {
            let message = "--url needs a token: `omir token add NAME --scope omir:read` makes one, and OMIR_TOKEN \
                           or --token-file hands it over";
            return Err(Error::Usage(message.to_owned()));
        }
        Ok(Self { target, token, only_reads: !args.write })
    }

    /// Connects, and with TLS shakes hands.
    pub(super) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match &self.target {
            Target::Socket(data) => Ok(Box::new(socket::connect(data).await?)),
            Target::Port { authority, tls, .. } => {
                let stream = TcpStream::connect(authority).await?;
                let _ = stream.set_nodelay(true);
                match tls {
                    Some(tls) => Ok(Box::new(tls.over(stream).await?)),
                    None => Ok(Box::new(stream)),
                }
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
        let (host, path) = match &self.target {
            Target::Socket(_) => ("localhost", PATH),
            Target::Port { authority, path, .. } => (authority.as_str(), path.as_str()),
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
        Error::Unreachable(match &self.target {
            Target::Socket(data) => {
                let path = data.join(omird::socket::NAME);
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
            Target::Port { authority, tls: Some(tls), .. } => match tls.fault(why) {
                Some(fault) => format!("{authority}: {fault}"),
                None => format!(
                    "no daemon answers on {authority} with TLS ({why}). Start it with [http] listen and tls in its \
                     configuration, or name another address with --url"
                ),
            },
            Target::Port { authority, tls: None, .. } if speaks_no_http(why) => format!(
                "what answers on {authority} speaks no HTTP ({why}). If it is a daemon with TLS, use --url \
                 https://{authority} --ca FILE"
            ),
            Target::Port { authority, tls: None, .. } => format!(
                "no daemon answers on {authority} ({why}). Start it with `omird --http {authority}`, or name another \
                 address with --url"
            ),
        })
    }
}

/// Returns true if what came back is no answer of HTTP, as the alert that a server of TLS says to plain text.
fn speaks_no_http(why: &io::Error) -> bool {
    let why = why.get_ref().and_then(|why| why.downcast_ref::<hyper::Error>());
    why.is_some_and(hyper::Error::is_parse)
}

fn shown(args: &McpArgs) -> Option<Shown<'_>> {
    let (certificate, key) = args.cert.as_deref().zip(args.key.as_deref())?;
    Some(Shown { certificate, key })
}

/// Reads a URL. `ca` is the file of authorities, of `https` alone, as is the certificate that is shown.
fn port(url: &str, ca: Option<&Path>, shown: Option<Shown<'_>>) -> Result<Target> {
    let wrong = |why: &str| Error::Usage(format!("--url {url}: {why}"));
    let neither = || wrong("expected http://HOST:PORT or https://HOST:PORT");
    let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        (None, None) => return Err(neither()),
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, format!("/{}", path.trim_end_matches('/'))),
        None => (rest, String::new()),
    };
    let named = authority
        .rsplit_once(':')
        .filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    let (host, authority) = match (authority.is_empty(), named) {
        (true, _) => return Err(neither()),
        (_, Some((host, _))) => (host, authority.to_owned()),
        (_, None) => (authority, format!("{authority}:{}", if is_tls { 443 } else { 80 })),
    };
    let tls = match (is_tls, ca) {
        (true, Some(ca)) => Some(Tls::of(host, ca, shown)?),
        (true, None) => {
            return Err(wrong(
                "https needs --ca FILE, the certificate of the authority that signed the daemon's, in PEM; those of the \
                 web are /etc/ssl/certs/ca-certificates.crt on Debian and Ubuntu",
            ));
        }
        (false, Some(_)) => {
            return Err(wrong("--ca is for https://HOST:PORT; http has no certificates"));
        }
        (false, None) => None,
    };
    let path = if path.is_empty() || path == "/" { PATH.to_owned() } else { path };
    Ok(Target::Port { authority, path, tls })
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
            match port(url, None, None) {
                Ok(Target::Port { authority: found, path: at, tls: None }) => {
                    assert_eq!((found.as_str(), at.as_str()), (authority, path));
                }
                _ => panic!("{url}"),
            }
        }
        for url in
            ["127.0.0.1:7449", "https://127.0.0.1:7449", "http://", "http:///mcp", "https://"]
        {
            assert!(matches!(port(url, None, None), Err(Error::Usage(_))), "{url}");
        }
        let ca = Some(Path::new("/nowhere/ca.pem"));
        assert!(matches!(port("http://127.0.0.1:7449", ca, None), Err(Error::Usage(_))));
        assert!(matches!(port("https://127.0.0.1:7449", ca, None), Err(Error::Input { .. })));
    }

    #[test]
    fn a_port_needs_a_token_and_changes_need_write() {
        let url = Some("http://127.0.0.1:7449".to_owned());
        let args = |write, url| {
            let [ca, cert, key] = [None, None, None];
            McpArgs { write, data: Some("/data".into()), url, ca, cert, key }
        };
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
