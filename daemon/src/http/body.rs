//! Bodies of requests, read within bounds: of the method, of all requests together, and of time.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{HeaderMap, StatusCode};
use omir_core::reference::Ref;
use tokio::time::{Instant, timeout_at};

use super::Context;
use super::refused::Refused;
use crate::capacity::{Capacity, Room};
use crate::engine::{Code, Error, NotAdmitted};
use crate::router::{Caller, Incoming, Method};

/// Time for a body of no length; and for each [`PACE`] bytes a second more.
const TIME: Duration = Duration::from_secs(30);
/// Bytes a second that a client must send at least, in the long run.
const PACE: u64 = 4 << 10;

/// A body that was read.
pub(crate) struct Read {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Kept until the bytes are worked on.
    pub(crate) room: Room,
}

/// The bound of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Bytes.
    pub(crate) bytes: usize,
    /// Its name in the configuration, if it has one.
    pub(crate) limit: Option<&'static str>,
}

impl Most {
    fn refused(self, bytes: usize) -> Refused {
        let error = match self.limit {
            Some(limit) => NotAdmitted::TooLarge { bytes, most: self.bytes, limit }.into(),
            None => {
                let most = self.bytes;
                let message = format!("the body has {bytes} bytes; at most {most} are taken here");
                Error::new(Code::TooLarge, message)
            }
        };
        error.into()
    }
}

/// A request whose body is still to come, as its audit line has it.
#[derive(Clone, Copy)]
pub(crate) struct UnreadRequest<'a> {
    /// Who asks.
    pub(crate) caller: &'a Caller,
    /// For what.
    pub(crate) method: &'static Method,
    /// The resource that the path names.
    pub(crate) named: Option<&'a Ref>,
}

impl UnreadRequest<'_> {
    /// Reads the body, if the caller may ask at all: for one who may not, nothing is read. A refusal has its audit line.
    ///
    /// # Errors
    /// The router's, 413, 408, 400, or `BUSY`.
    pub(crate) async fn read(
        self,
        context: &Context,
        headers: &HeaderMap,
        body: Body,
        most: Most,
    ) -> Result<Read, Refused> {
        let bytes = stated_length(headers).unwrap_or(0);
        let incoming = Incoming { bytes, ..Incoming::default() };
        let checked = context.protocols.router.check(self.caller, self.method, incoming);
        let read = match checked {
            Ok(()) => read(&context.capacity, headers, body, most).await,
            Err(refusal) => Err(refusal.into()),
        };
        read.inspect_err(|refused| self.refuse(context, bytes, refused.error.code))
    }

    /// Notes that it is refused.
    pub(crate) fn refuse(self, context: &Context, bytes: usize, code: Code) {
        let Self { caller, method, named } = self;
        context.protocols.router.refuse_named(caller, method, bytes, named, code);
    }
}

/// Returns the length that the header states, if it does.
pub(crate) fn stated_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body of at most so many bytes.
///
/// # Errors
/// 413, 408, 400, or `BUSY`.
pub(super) async fn read(
    capacity: &Capacity,
    headers: &HeaderMap,
    mut body: Body,
    most: Most,
) -> Result<Read, Refused> {
    let stated = stated_length(headers);
    let mut expected = match stated {
        Some(length) if length > most.bytes => return Err(most.refused(length)),
        Some(length) => length,
        // A body in chunks may have as many as there may be at all.
        None if headers.contains_key(TRANSFER_ENCODING) => most.bytes,
        None => most.bytes.min(64 << 10),
    };
    let refuse = |status, message: &str| Refused::new(status, Code::InvalidQuery, message);
    let mut room = capacity.room_for_body(expected)?;
    let began = Instant::now();
    let mut bytes = Vec::with_capacity(stated.unwrap_or(0));
    loop {
        let paid = TIME + Duration::from_millis(bytes.len() as u64 * 1000 / PACE);
        let frame = match timeout_at(began + paid, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                return Err(refuse(StatusCode::BAD_REQUEST, "the body of the request ends early"));
            }
            Err(_) => {
                let message = "the body of the request comes too slowly, and is not waited for";
                return Err(refuse(StatusCode::REQUEST_TIMEOUT, message));
            }
        };
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > most.bytes {
            return Err(most.refused(length));
        }
        if length > expected {
            // Over HTTP/2 a body may come without a length.
            drop(room);
            expected = most.bytes;
            room = capacity.room_for_body(expected)?;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Read { bytes, room })
}
