//! The daemon's end of the bridge: the socket in a data folder, or a port.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use super::message;
use crate::cli::McpArgs;
use crate::error::{Error, Result};
use crate::http_endpoint::{HttpEndpoint, Stream, speaks_no_http};
use crate::socket;
use crate::tls::Shown;

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
    Http(HttpEndpoint),
}

/// The connection of one request. It ends with this: if the client waits for no answer any more, the daemon notices.
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
            Some(url) => Target::Http(HttpEndpoint::of(url, args.ca.as_deref(), shown(args))?),
            None => Target::Socket(args.data.clone().unwrap_or_else(socket::data_of_this_user)),
        };
        if matches!(target, Target::Http(_)) && token.is_none() {
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
            Target::Http(endpoint) => endpoint.connect().await,
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
            Target::Http(endpoint) if endpoint.path.is_empty() => {
                (endpoint.authority.as_str(), PATH)
            }
            Target::Http(endpoint) => (endpoint.authority.as_str(), endpoint.path.as_str()),
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
                let path = data.join(omird::unix_socket::NAME);
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
            Target::Http(HttpEndpoint { authority, tls: Some(tls), .. }) => match tls.fault(why) {
                Some(fault) => format!("{authority}: {fault}"),
                None => format!(
                    "no daemon answers on {authority} with TLS ({why}). Start it with [http] listen and tls in its \
                     configuration, or name another address with --url"
                ),
            },
            Target::Http(HttpEndpoint { authority, tls: None, .. }) if speaks_no_http(why) => {
                format!(
                    "what answers on {authority} speaks no HTTP ({why}). If it is a daemon with TLS, use --url \
                 https://{authority} --ca FILE"
                )
            }
            Target::Http(HttpEndpoint { authority, tls: None, .. }) => format!(
                "no daemon answers on {authority} ({why}). Start it with `omird --http {authority}`, or name another \
                 address with --url"
            ),
        })
    }
}

fn shown(args: &McpArgs) -> Option<Shown<'_>> {
    let (certificate, key) = args.cert.as_deref().zip(args.key.as_deref())?;
    Some(Shown { certificate, key })
}

#[cfg(test)]
mod tests {
    use super::*;

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
