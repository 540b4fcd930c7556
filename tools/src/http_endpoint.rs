//! A server of HTTP by its URL, with TLS or without.

use std::io;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::error::{Error, Result};
use crate::tls::{Shown, Tls};

/// Both ways of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An address of HTTP, and the path on it.
pub(crate) struct HttpEndpoint {
    /// `HOST:PORT`.
    pub(crate) authority: String,
    /// The path, beginning with `/` and not ending with one; empty if the URL has none.
    pub(crate) path: String,
    pub(crate) tls: Option<Tls>,
}

impl HttpEndpoint {
    /// Reads a URL. `ca` is the file of authorities, of `https` alone, as is the certificate that is shown.
    ///
    /// # Errors
    /// It is no URL of HTTP, or a file cannot be used.
    pub(crate) fn of(url: &str, ca: Option<&Path>, shown: Option<Shown<'_>>) -> Result<Self> {
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
        let path = if path == "/" { String::new() } else { path };
        Ok(Self { authority, path, tls })
    }

    /// Connects, and with TLS shakes hands.
    ///
    /// # Errors
    /// As the system and [`Tls::fault`] have it.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(&self.authority).await?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            Some(tls) => Ok(Box::new(tls.over(stream).await?)),
            None => Ok(Box::new(stream)),
        }
    }
}

/// Returns true if what came back is no answer of HTTP, as the alert that a server of TLS says to plain text.
pub(crate) fn speaks_no_http(why: &io::Error) -> bool {
    let why = why.get_ref().and_then(|why| why.downcast_ref::<hyper::Error>());
    why.is_some_and(hyper::Error::is_parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_an_endpoint() {
        for (url, authority, path) in [
            ("http://127.0.0.1:7449", "127.0.0.1:7449", ""),
            ("http://127.0.0.1:7449/", "127.0.0.1:7449", ""),
            ("http://[::1]:7449/mcp", "[::1]:7449", "/mcp"),
            ("http://rover/robot/mcp/", "rover:80", "/robot/mcp"),
        ] {
            match HttpEndpoint::of(url, None, None) {
                Ok(HttpEndpoint { authority: found, path: at, tls: None }) => {
                    assert_eq!((found.as_str(), at.as_str()), (authority, path));
                }
                _ => panic!("{url}"),
            }
        }
        for url in
            ["127.0.0.1:7449", "https://127.0.0.1:7449", "http://", "http:///mcp", "https://"]
        {
            assert!(matches!(HttpEndpoint::of(url, None, None), Err(Error::Usage(_))), "{url}");
        }
        let ca = Some(Path::new("/nowhere/ca.pem"));
        assert!(matches!(
            HttpEndpoint::of("http://127.0.0.1:7449", ca, None),
            Err(Error::Usage(_))
        ));
        assert!(matches!(
            HttpEndpoint::of("https://127.0.0.1:7449", ca, None),
            Err(Error::Input { .. })
        ));
    }
}
