//! Bodies of requests, read within bounds: of the method, of all requests together, and of time.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};

use super::answer::Refused;
use super::work::{Room, Work};
use crate::engine::{Code, Error};

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

/// A body that was not read.
pub(crate) enum NotRead {
    /// It has more bytes than the method takes; so many at least.
    TooLarge(usize),
    /// Anything else.
    Refused(Refused),
}

impl NotRead {
    /// Words it for a path that takes bodies of so many bytes.
    pub(crate) fn refused(self, most: usize) -> Refused {
        match self {
            Self::Refused(refused) => refused,
            Self::TooLarge(bytes) => {
                let message = format!("the body has {bytes} bytes; at most {most} are taken here");
                Error::new(Code::TooLarge, message).into()
            }
        }
    }
}

/// Returns the length that the header states, if it does.
pub(crate) fn stated_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body of at most so many bytes.
///
/// # Errors
/// If it is larger, too slow, or ends early; `BUSY` if there is no room for it.
pub(crate) async fn read(
    work: &Work,
    headers: &HeaderMap,
    mut body: Body,
    most: usize,
) -> Result<Read, NotRead> {
    let stated = stated_length(headers);
    let expected = match stated {
        Some(length) if length > most => return Err(NotRead::TooLarge(length)),
        Some(length) => length,
        // A body in chunks may have as many as there may be at all.
        None if headers.contains_key(TRANSFER_ENCODING) => most,
        None => 64 << 10,
    };
    let refuse =
        |status, message: &str| NotRead::Refused(Refused::new(status, Code::InvalidQuery, message));
    let mut room = work.room_for_body(expected).map_err(|error| NotRead::Refused(error.into()))?;
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
        if bytes.len() + data.len() > most {
            return Err(NotRead::TooLarge(bytes.len() + data.len()));
        }
        bytes.extend_from_slice(&data);
        if bytes.len() > expected {
            // Over HTTP/2 a body may come without a length.
            drop(room);
            room = work.room_for_body(most).map_err(|error| NotRead::Refused(error.into()))?;
        }
    }
    Ok(Read { bytes, room })
}
