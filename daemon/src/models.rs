//! The client of a server of language models, the one of the program: JSON over HTTP/1.1, to an address on this machine unless
//! the configuration says otherwise.
//!
//! A call has a connection of its own, a bound on what it reads, and a deadline for all of it. The calling thread
//! waits.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::router::{ModelClient, ModelFault, Reached};

/// Most bytes of an answer: 32 vectors of 4096 numbers take four megabytes, a number a line.
const MOST: usize = 8 << 20;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket on this machine.
    Unix(PathBuf),
    /// A host and its port, in the clear.
    Plain(String, u16),
    /// A host and its port with TLS, by the authorities of a PEM file.
    Tls(String, u16, PathBuf),
}

/// A server, as it is configured: `[compass.model]`.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelServer {
    /// Its address.
    pub address: Address,
    /// The path before those of the API: `/v1`.
    pub base: String,
    /// Its key.
    pub key: Option<String>,
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, base, key } = self;
        let key = if key.is_some() { "a key" } else { "no key" };
        write!(f, "{address:?} at {base:?} with {key}")
    }
}

impl ModelServer {
    /// Returns the host as a request names it.
    fn host(&self) -> String {
        match &self.address {
            Address::Unix(_) => "localhost".to_owned(),
            Address::Plain(host, port) | Address::Tls(host, port, _) => match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
        }
    }
}

/// The client. Each call is one request.
#[derive(Debug, Clone)]
pub struct Client {
    server: ModelServer,
}

impl Client {
    /// Returns the client of a server. Nothing is connected before it is asked.
    pub fn new(server: ModelServer) -> Self {
        Self { server }
    }

    async fn posted(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, ModelFault> {
        let Self { server } = self;
        match &server.address {
            Address::Unix(path_of_socket) => {
                let stream = UnixStream::connect(path_of_socket).await.map_err(unreachable)?;
                self.sent(stream, path, body).await
            }
            Address::Plain(host, port) => {
                let stream =
                    TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
                self.sent(stream, path, body).await
            }
            Address::Tls(host, port, authorities) => {
                let config = trusting(authorities).map_err(unreachable)?;
                let name = ServerName::try_from(host.clone());
                let name = name.map_err(|error| unreachable(io::Error::other(error)))?;
                let stream =
                    TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
                let connector = TlsConnector::from(Arc::new(config));
                let stream = connector.connect(name, stream).await.map_err(unreachable)?;
                self.sent(stream, path, body).await
            }
        }
    }

    async fn sent<S>(&self, stream: S, path: &str, body: Vec<u8>) -> Result<Vec<u8>, ModelFault>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let request = self.request(path, body)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
        // It ends with the runtime of the call.
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(unanswered)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MOST).collect().await;
        connection.abort();
        if !status.is_success() {
            let later = status.is_server_error() || status.as_u16() == 429;
            let reached = if later { Reached::RefusedForNow } else { Reached::Refused };
            return Err(ModelFault { reached, message: format!("the server answers {status}") });
        }
        Ok(body.map_err(unanswered)?.to_bytes().to_vec())
    }

    fn request(&self, path: &str, body: Vec<u8>) -> Result<Request<Full<Bytes>>, ModelFault> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{path}", self.server.base))
            .header(HOST, self.server.host())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.server.key {
            let mut value = HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|_| unreachable("the key has characters that no header may have"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(Full::new(Bytes::from(body))).map_err(unreachable)
    }
}

impl ModelClient for Client {
    fn post(&self, path: &str, body: Vec<u8>, deadline: Instant) -> Result<Vec<u8>, ModelFault> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(unreachable)?;
        let answer = runtime.block_on(async {
            let until = tokio::time::Instant::from_std(deadline);
            tokio::time::timeout_at(until, self.posted(path, body)).await
        });
        // A name that is still looked up does not hold up the caller.
        runtime.shutdown_background();
        answer.unwrap_or_else(|_| {
            let message = "the server did not answer in time".to_owned();
            Err(ModelFault { reached: Reached::NoAnswer, message })
        })
    }
}

/// Reads the authorities that a server's certificate must come from.
fn trusting(authorities: &PathBuf) -> io::Result<ClientConfig> {
    let wrong =
        |error: &dyn fmt::Display| io::Error::other(format!("{}: {error}", authorities.display()));
    let mut roots = RootCertStore::empty();
    let read = CertificateDer::pem_file_iter(authorities).map_err(|error| wrong(&error))?;
    for certificate in read {
        // A list of the whole world's authorities may have one that this library does not take.
        let certificate = certificate.map_err(|error| wrong(&error))?;
        drop(roots.add(certificate));
    }
    if roots.is_empty() {
        return Err(wrong(&"there is no authority in it"));
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn unreachable(error: impl fmt::Display) -> ModelFault {
    let message = format!("the server cannot be reached: {error}");
    ModelFault { reached: Reached::Nobody, message }
}

fn unanswered(error: impl fmt::Display) -> ModelFault {
    let message = format!("the answer did not come whole: {error}");
    ModelFault { reached: Reached::NoAnswer, message }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    use super::*;

    fn client(address: Address) -> Client {
        Client::new(ModelServer { address, base: "/v1".into(), key: Some("secret".into()) })
    }

    /// Reads a request up to the end of its body, which is `{}`.
    fn read(stream: &mut impl io::Read) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n{}") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap()
    }

    /// Asks a server that says these bytes and closes.
    fn asked(answer: &'static [u8]) -> (Result<Vec<u8>, ModelFault>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read(&mut stream);
            stream.write_all(answer).unwrap();
            request
        });
        let client = client(Address::Plain("127.0.0.1".into(), port));
        let deadline = Instant::now() + Duration::from_secs(10);
        let answer = client.post("/chat/completions", b"{}".to_vec(), deadline);
        (answer, server.join().unwrap())
    }

    #[test]
    fn an_answer_comes_back_or_a_fault_that_says_how_far_it_came() {
        let (answer, request) = asked(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{ }");
        assert_eq!(answer.unwrap(), b"{ }");
        assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
        assert!(request.to_lowercase().contains("authorization: bearer secret\r\n"), "{request}");
        let reached = |answer| asked(answer).0.unwrap_err().reached;
        assert_eq!(
            reached(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
            Reached::RefusedForNow
        );
        assert_eq!(
            reached(b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n"),
            Reached::RefusedForNow
        );
        assert_eq!(reached(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"), Reached::Refused);
        assert_eq!(reached(b"HTTP/1.1 302 No\r\nLocation: http://x\r\n\r\n"), Reached::Refused);
        assert_eq!(reached(b"no HTTP at all"), Reached::NoAnswer);
        assert_eq!(reached(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), Reached::NoAnswer);
        assert_eq!(reached(b""), Reached::NoAnswer);
        assert!(!format!("{:?}", client(Address::Unix("/x".into()))).contains("secret"));
    }

    #[test]
    fn an_answer_without_end_is_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read(&mut stream);
            let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let mut bytes = 0_usize;
            while sent.is_ok() && bytes < 64 << 20 {
                sent = stream.write_all(&[b' '; 4096]);
                bytes += 4096;
            }
            bytes
        });
        let client = client(Address::Plain("127.0.0.1".into(), port));
        let deadline = Instant::now() + Duration::from_secs(30);
        let fault = client.post("/x", b"{}".to_vec(), deadline).unwrap_err();
        assert_eq!(fault.reached, Reached::NoAnswer);
        assert!(server.join().unwrap() < 64 << 20);
    }

    #[test]
    fn a_call_ends_at_its_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client =
            client(Address::Plain("127.0.0.1".into(), listener.local_addr().unwrap().port()));
        let began = Instant::now();
        let deadline = began + Duration::from_millis(300);
        let fault = client.post("/x", b"{}".to_vec(), deadline).unwrap_err();
        assert_eq!(fault.reached, Reached::NoAnswer);
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(listener);
        let deadline = Instant::now() + Duration::from_secs(10);
        let fault = client.post("/x", b"{}".to_vec(), deadline).unwrap_err();
        assert_eq!(fault.reached, Reached::Nobody, "{fault}");
    }

    #[test]
    fn a_socket_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]").unwrap();
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        let answer = client(Address::Unix(path)).post("/x", b"{}".to_vec(), deadline);
        assert_eq!(answer.unwrap(), b"[]");
        server.join().unwrap();
    }
}
