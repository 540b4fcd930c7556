//! A client of HTTP that writes bytes as it is told, right or wrong, and reads answers by RFC 9112.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Longest wait for bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both ways of a connection.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One connection.
pub struct Line {
    stream: Box<dyn Stream>,
    /// Bytes that were read and belong to the next answer.
    ahead: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, without its frames.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// A GET of a path, of a name that any daemon on loopback knows.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

impl Line {
    /// Connects to a port.
    pub fn port(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self::over(stream)
    }

    /// Connects to a socket.
    pub fn socket(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self::over(stream)
    }

    /// Over anything, such as TLS.
    pub fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), ahead: Vec::new() }
    }

    /// Sends a request, and reads its answer.
    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request);
        self.answer().expect("an answer")
    }

    /// Sends bytes.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("it takes bytes");
    }

    /// Sends bytes, as far as they are taken; false if they are not.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Reads the next answer; `None` if the connection ends before it.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut answer = self.head()?;
        let length = answer.header("content-length").map(|text| text.parse().expect("a length"));
        answer.body = match (answer.status, length) {
            (204 | 304, _) => Vec::new(),
            (_, Some(length)) => self.exactly(length)?,
            (_, None) if answer.header("transfer-encoding") == Some("chunked") => {
                let mut body = Vec::new();
                while let Some(chunk) = self.chunk()? {
                    body.extend(chunk);
                }
                body
            }
            (_, None) => self.rest(),
        };
        Some(answer)
    }

    /// Reads the head of the next answer alone.
    pub fn head(&mut self) -> Option<Answer> {
        let head = String::from_utf8(self.until(b"\r\n\r\n")?).expect("text");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Some(Answer { status, headers: lines.map(header).collect(), body: Vec::new() })
    }

    /// Reads a chunk of a body in chunks: `Some(None)` behind the last, `None` if the connection ends before.
    pub fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let size = String::from_utf8(self.until(b"\r\n")?).expect("text");
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        if size == 0 {
            self.until(b"\r\n")?;
            return Some(None);
        }
        let chunk = self.exactly(size)?;
        self.exactly(2)?;
        Some(Some(chunk))
    }

    /// Reads up to the end of the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.ahead);
        // A connection that is reset has come to its end too.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }

    fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.ahead.windows(end.len()).position(|window| window == end) {
                return Some(self.ahead.drain(..at + end.len()).collect());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < length {
            self.more()?;
        }
        Some(self.ahead.drain(..length).collect())
    }

    fn more(&mut self) -> Option<()> {
        let mut bytes = [0; 64 << 10];
        let count = self.stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        self.ahead.extend_from_slice(&bytes[..count]);
        Some(())
    }
}

/// A request: `what` is its method and path, `headers` end with a line break each.
pub fn request(what: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = match what.split(' ').next() {
        _ if !body.is_empty() => format!("Content-Length: {}\r\n", body.len()),
        Some("POST" | "PUT") => "Content-Length: 0\r\n".to_owned(),
        _ => String::new(),
    };
    let head = format!("{what} HTTP/1.1\r\nHost: localhost\r\n{headers}{length}\r\n");
    [head.as_bytes(), body].concat()
}

/// An authority that signs certificates on the spot, for tests of TLS.
pub struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    /// Its own certificate, in PEM.
    pub pem: String,
}

impl Authority {
    /// Makes one.
    pub fn make(name: &str) -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: rcgen::Issuer::new(params, key), pem }
    }

    /// Signs a certificate for a name: the certificate and its key, in PEM.
    pub fn sign(&self, name: &str) -> (String, String) {
        let params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

/// Connects by TLS to `localhost`, trusting `authority` alone, and shows a certificate if there is one to show. Returns
/// what the handshake fails with.
///
/// # Errors
/// If either end refuses the other.
pub fn tls(
    address: SocketAddr,
    authority: &str,
    shown: Option<&(String, String)>,
) -> std::io::Result<Line> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate(authority)).expect("an authority");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some((pem, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(vec![certificate(pem)], key).expect("they fit")
        }
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let client = rustls::ClientConnection::new(config.into(), name).expect("a client");
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut stream = rustls::StreamOwned::new(client, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(Line::over(stream))
}
