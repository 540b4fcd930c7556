//! An Akashik endpoint, over HTTP, over Zenoh, or both.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use omir_core::decode::{DecodeError, Limits};
use omir_core::json;
use omir_core::value::Value;
use zenoh::Wait as _;
use zenoh::bytes::Encoding;

use crate::cli::{ConformanceArgs, Globals};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::http_endpoint::HttpEndpoint;

/// Bytes of an answer.
const MOST_BYTES: usize = 16 << 20;
/// The time between two tries over Zenoh.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// A way to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Http,
    Zenoh,
}

/// An answer: a payload, or an Error object.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) is_error: bool,
    /// The status of HTTP; 0 over Zenoh.
    pub(super) status: u16,
    pub(super) value: Value,
}

/// An endpoint.
pub(super) struct Endpoint {
    http: Option<Http>,
    zenoh: Option<(Client, String)>,
    timeout: Duration,
}

struct Http {
    runtime: tokio::runtime::Runtime,
    endpoint: HttpEndpoint,
}

impl Endpoint {
    /// Returns the endpoint that the arguments name.
    ///
    /// # Errors
    /// A URL that is none; no daemon over Zenoh.
    pub(super) fn open(globals: &Globals, args: &ConformanceArgs) -> Result<Self> {
        let ca = args.ca.as_deref();
        let http = args.url.as_deref().map(|url| Http::of(url, ca)).transpose()?;
        let zenoh = match &args.zenoh {
            Some(key) => Some((Client::open_as(globals, None)?, key.clone())),
            None => None,
        };
        Ok(Self { http, zenoh, timeout: globals.timeout })
    }

    /// Returns the ways there are, the first one to be used where any will do.
    pub(super) fn ways(&self) -> Vec<Route> {
        let http = self.http.as_ref().map(|_| Route::Http);
        http.into_iter().chain(self.zenoh.as_ref().map(|_| Route::Zenoh)).collect()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// No daemon answers.
    pub(super) fn ask(
        &self,
        way: Route,
        operation: &str,
        token: Option<&str>,
        message: &str,
    ) -> Result<Answer> {
        match (way, &self.http, &self.zenoh) {
            (Route::Http, Some(http), _) => {
                http.ask(Method::POST, &operation.to_lowercase(), token, message, self.timeout)
            }
            (Route::Zenoh, _, Some((client, key))) => {
                let lost =
                    |why: &dyn std::fmt::Display| Error::Unreachable(format!("{key}: {why}"));
                let until = Instant::now() + self.timeout;
                // After a restart of the endpoint a session needs a moment to find it again. The same message may be sent twice:
                // its id is the same.
                let reply = loop {
                    let mut get = client
                        .session()?
                        .get(key.as_str())
                        .payload(message.to_owned())
                        .encoding(Encoding::APPLICATION_JSON)
                        .timeout(self.timeout);
                    if let Some(token) = token {
                        get = get.attachment(format!("Bearer {token}"));
                    }
                    let replies = get.wait().map_err(|why| lost(&why))?;
                    match replies.recv() {
                        Ok(reply) => break reply,
                        Err(_) if Instant::now() < until => std::thread::sleep(BETWEEN_TRIES),
                        Err(_) => return Err(lost(&"nobody answers")),
                    }
                };
                let (is_error, bytes) = match reply.result() {
                    Ok(sample) => (false, sample.payload().to_bytes()),
                    Err(error) => (true, error.payload().to_bytes()),
                };
                let value = decoded(&bytes).map_err(|why| lost(&why))?;
                Ok(Answer { is_error, status: 0, value })
            }
            _ => Err(Error::Usage("this way is not there".to_owned())),
        }
    }

    /// Opens a stream of notifications.
    ///
    /// # Errors
    /// There is no such stream.
    pub(super) fn open_events(&self, query: &str, token: Option<&str>) -> Result<Events<'_>> {
        let http =
            self.http.as_ref().ok_or_else(|| Error::Usage("there is no --url".to_owned()))?;
        let path = format!("events{query}");
        let (sender, response) = http.runtime.block_on(http.open(Method::GET, &path, token, ""))?;
        if response.status() != hyper::StatusCode::OK {
            return Err(http.lost(&format!("GET {path}: {}", response.status())));
        }
        Ok(Events { http, timeout: self.timeout, _sender: sender, body: response.into_body() })
    }
}

/// A stream of notifications. It ends when it is dropped.
pub(super) struct Events<'e> {
    http: &'e Http,
    timeout: Duration,
    _sender: Sender,
    body: Incoming,
}

impl Events<'_> {
    /// Returns the data of the next events: so many, or those that came in time.
    pub(super) fn next(mut self, most: usize) -> Vec<Value> {
        let mut text = String::new();
        let mut events = Vec::new();
        let until = Instant::now() + self.timeout;
        while events.len() < most {
            let left = until.saturating_duration_since(Instant::now());
            let frame = async { tokio::time::timeout(left, self.body.frame()).await };
            let Ok(Some(Ok(frame))) = self.http.runtime.block_on(frame) else { break };
            let Some(bytes) = frame.data_ref() else { continue };
            text.push_str(&String::from_utf8_lossy(bytes));
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                events.extend(data.and_then(|data| decoded(data.as_bytes()).ok()));
                text = rest.to_owned();
            }
        }
        events
    }
}

/// An answer that is no JSON.
#[derive(Debug)]
struct NoJson(DecodeError);

impl fmt::Display for NoJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON comes back: {}", self.0)
    }
}

fn decoded(bytes: &[u8]) -> std::result::Result<Value, NoJson> {
    let limits = Limits { max_bytes: MOST_BYTES, ..Limits::default() };
    json::from_slice(bytes, &limits).map_err(NoJson)
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

impl Http {
    fn of(url: &str, ca: Option<&Path>) -> Result<Self> {
        let endpoint = HttpEndpoint::of(url, ca, None)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Error::Unreachable(format!("no runtime: {why}")))?;
        Ok(Self { runtime, endpoint })
    }

    fn ask(
        &self,
        verb: Method,
        path: &str,
        token: Option<&str>,
        body: &str,
        timeout: Duration,
    ) -> Result<Answer> {
        let asked = async {
            let (_sender, response) = self.open(verb, path, token, body).await?;
            let status = response.status();
            let bytes = Limited::new(response.into_body(), MOST_BYTES).collect().await;
            let bytes = bytes.map_err(|why| self.lost(&why))?.to_bytes();
            let value =
                decoded(&bytes).map_err(|why| self.lost(&format!("{path}: {status}, {why}")))?;
            let (is_error, status) = (!status.is_success(), status.as_u16());
            Ok(Answer { is_error, status, value })
        };
        let asked = async { tokio::time::timeout(timeout, asked).await };
        self.runtime.block_on(asked).map_err(|_| self.lost(&"no answer in time"))?
    }

    async fn open(
        &self,
        verb: Method,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> Result<(Sender, Response<Incoming>)> {
        let stream = self.endpoint.connect().await.map_err(|why| self.unreached(&why))?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|why| self.lost(&why))?;
        // It ends with the sender.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(verb)
            .uri(format!("{}/{path}", self.endpoint.path))
            .header(HOST, &self.endpoint.authority)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned())));
        let request = request.map_err(|why| Error::Usage(format!("{path}: {why}")))?;
        let sent = sender.send_request(request).await;
        let response = sent.map_err(|why| match self.endpoint.tls {
            None if why.is_parse() => {
                let hint = "If it has TLS, begin the URL with https:// and name --ca FILE";
                self.lost(&format!("what answers speaks no HTTP ({why}). {hint}"))
            }
            _ => self.lost(&why),
        })?;
        Ok((sender, response))
    }

    fn unreached(&self, why: &std::io::Error) -> Error {
        match self.endpoint.tls.as_ref().and_then(|tls| tls.fault(why)) {
            Some(fault) => self.lost(&fault),
            None => self.lost(why),
        }
    }

    fn lost(&self, why: &dyn std::fmt::Display) -> Error {
        let scheme = if self.endpoint.tls.is_some() { "https" } else { "http" };
        Error::Unreachable(format!(
            "{scheme}://{}{}: {why}",
            self.endpoint.authority, self.endpoint.path
        ))
    }
}
