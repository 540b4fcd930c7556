//! HTTP/1.1 as bytes on a socket: as little between the clock and the daemon as there can be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::Result;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Address of a server, and the token that is sent to it with each request.
#[derive(Debug, Clone)]
pub struct Address {
    host: String,
    token: Option<String>,
    media_type: &'static str,
}

impl Address {
    /// A server at `host:port`, asked with a token.
    pub fn new(host: &str, token: Option<&str>) -> Self {
        let media_type = "application/cbor";
        Self { host: host.to_owned(), token: token.map(str::to_owned), media_type }
    }

    /// The same server, asked in JSON.
    pub fn json(self) -> Self {
        Self { media_type: "application/json", ..self }
    }

    fn head(&self, method: &str, target: &str, body: Option<usize>) -> String {
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\naccept: {}\r\n",
            self.host, self.media_type
        );
        if let Some(token) = &self.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        if let Some(length) = body {
            let media_type = self.media_type;
            head += &format!("content-type: {media_type}\r\ncontent-length: {length}\r\n");
        }
        head + "\r\n"
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

/// A connection that is kept.
pub struct Connection {
    address: Address,
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn open(address: &Address) -> Result<Self> {
        let stream = BufReader::with_capacity(64 << 10, address.connect()?);
        Ok(Self { address: address.clone(), stream, line: Vec::new() })
    }

    /// Sends a request and waits for the body of the answer.
    ///
    /// # Errors
    /// If there is none, or its status is not 2xx.
    pub fn ask(&mut self, method: &str, target: &str, body: Option<&[u8]>) -> Result<Vec<u8>> {
        let mut request = self.address.head(method, target, body.map(<[u8]>::len)).into_bytes();
        request.extend_from_slice(body.unwrap_or_default());
        self.stream.get_mut().write_all(&request)?;
        let (status, length) = self.head()?;
        let mut answer = vec![0; length.ok_or("the answer states no length")?];
        self.stream.read_exact(&mut answer)?;
        if (200..300).contains(&status) {
            Ok(answer)
        } else {
            Err(format!("{status} on {target}: {}", String::from_utf8_lossy(&answer)).into())
        }
    }

    /// Reads the head of an answer: its status, and the length that it states.
    fn head(&mut self) -> Result<(u16, Option<usize>)> {
        let status = self.line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or("no line of a status")?;
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((status, length));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Err("the connection was closed".into());
        }
        Ok(String::from_utf8_lossy(&self.line).trim_end().to_owned())
    }

    /// Opens a stream of events, and waits for what it begins with.
    ///
    /// # Errors
    /// If the server refuses it.
    pub fn listen(address: &Address, target: &str) -> Result<TcpStream> {
        let mut stream = address.connect()?;
        stream.write_all(address.head("GET", target, None).as_bytes())?;
        let mut begun = Vec::new();
        let mut some = [0; 2048];
        while !begun.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut some)? {
                0 => return Err("a stream of events was closed".into()),
                count => begun.extend_from_slice(&some[..count]),
            }
        }
        if begun.starts_with(b"HTTP/1.1 200") {
            Ok(stream)
        } else {
            Err(format!("no stream: {}", String::from_utf8_lossy(&begun)).into())
        }
    }
}
