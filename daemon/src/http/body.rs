//! Bodies of requests, read within bounds: of the method, of all requests together, and of time.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::header::CONTENT_LENGTH;
use hyper::{HeaderMap, StatusCode};
use omir_core::reference::Ref;
use tokio::time::{Instant, timeout_at};

use super::Context;
use super::refused::Refused;
use crate::capacity::{Capacity, Room};
use crate::engine::{Code, Error, NotAdmitted};
use crate::router::{Caller, Incoming, Method};

/// Time for a body of no length, and for each [`PACE`] bytes a second more; and the longest time without a byte.
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
    /// The caller.
    pub(crate) caller: &'a Caller,
    /// For what.
    pub(crate) method: &'static Method,
    /// The resource that the path names.
    pub(crate) named: Option<&'a Ref>,
}

impl UnreadRequest<'_> {
    /// Reads the body, if the caller may ask at all: for one that may not, nothing is read. A refusal has its audit
    /// line.
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

/// Returns the moment until which the next byte is waited for, of a body that began to come at `began` and of which the last of
/// so many bytes came at `last`. What came fast pays for a slow rest, and for no pause: a client that stalls holds its room no
/// longer than one that sends nothing.
fn deadline(began: Instant, last: Instant, bytes: usize) -> Instant {
    let paid = TIME + Duration::from_millis(bytes as u64 * 1000 / PACE);
    (began + paid).min(last + TIME)
}

/// Reads a body of at most so many bytes. It takes room as it comes: a client that sends nothing does not hold up
/// others.
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
    if let Some(length) = stated.filter(|&length| length > most.bytes) {
        return Err(most.refused(length));
    }
    let refuse = |status, message: &str| Refused::new(status, Code::InvalidQuery, message);
    let mut room = capacity.room_for_body(stated, most.bytes);
    let began = Instant::now();
    let mut last = began;
    let mut bytes = Vec::new();
    loop {
        let deadline = deadline(began, last, bytes.len());
        let frame = match timeout_at(deadline, body.frame()).await {
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
        // An empty part is no progress.
        if !data.is_empty() {
            last = Instant::now();
        }
        // No more memory than there is room for.
        let has = room.grow(length)?;
        bytes.reserve_exact(has - bytes.len());
        bytes.extend_from_slice(&data);
    }
    Ok(Read { bytes, room: room.whole() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures_util::{StreamExt, stream};
    use hyper::header::{HeaderValue, TRANSFER_ENCODING};

    use super::*;

    const LARGE: Most = Most { bytes: 32 << 20, limit: None };

    fn headers(stated: Option<usize>) -> HeaderMap {
        HeaderMap::from_iter([match stated {
            Some(length) => (CONTENT_LENGTH, HeaderValue::from(length)),
            None => (TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
        }])
    }

    /// A body of which so many bytes come, and then no more.
    fn stalled(bytes: usize) -> Body {
        let came = [Ok::<_, Infallible>(Bytes::from(vec![b'x'; bytes]))];
        Body::from_stream(stream::iter(came).chain(stream::pending()))
    }

    #[test]
    fn the_next_byte_is_waited_for_at_the_pace_and_no_longer_than_a_body_of_none() {
        let began = Instant::now();
        let wait = |bytes, last| {
            let waited = deadline(began, began + Duration::from_secs(last), bytes);
            waited.duration_since(began).as_secs()
        };
        assert_eq!(wait(0, 0), 30);
        // One that comes at the pace, or a little faster, is waited for as long as it goes on.
        assert_eq!(wait(100 * PACE as usize, 100), 130);
        assert_eq!(wait(100 * PACE as usize, 90), 120);
        // One that trickles ends where its bytes have paid for.
        assert_eq!(wait(10, 29), 30);
        assert_eq!(wait(100 * PACE as usize, 129), 130);
        // One that came fast and then stalls.
        assert_eq!(wait(24 << 20, 3), 33);
    }

    #[tokio::test]
    async fn bodies_that_stall_hold_up_no_others() {
        let capacity = Capacity::new(1);
        let stalling: Vec<_> = (0..100)
            .map(|n| {
                let stated = (n % 2 == 0).then_some(LARGE.bytes);
                let (capacity, body) = (capacity.clone(), stalled(n));
                tokio::spawn(
                    async move { read(&capacity, &headers(stated), body, LARGE).await.is_ok() },
                )
            })
            .collect();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let none = read(&capacity, &HeaderMap::new(), Body::empty(), LARGE).await;
        assert!(none.is_ok_and(|read| read.bytes.is_empty()));
        for length in [1, 64 << 10, 20 << 20] {
            for stated in [Some(length), None] {
                let body = Body::from(vec![b'x'; length]);
                let came = read(&capacity, &headers(stated), body, LARGE).await;
                assert!(came.is_ok_and(|read| read.bytes.len() == length), "{length}");
            }
        }
        assert!(stalling.iter().all(|one| !one.is_finished()));
        stalling.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn where_large_ones_have_all_room_small_ones_and_none_are_read() {
        let capacity = Capacity::new(1);
        let mut all = capacity.room_for_body(Some(usize::MAX), usize::MAX);
        all.grow(64 << 20).unwrap();
        for (length, status) in [(0, None), (64 << 10, None), (65 << 10, Some(503))] {
            for stated in [Some(length), None] {
                let body = Body::from(vec![b'x'; length]);
                let came = read(&capacity, &headers(stated), body, LARGE).await;
                assert_eq!(came.err().map(|refused| refused.status.as_u16()), status, "{length}");
            }
        }
        // A body announced above the bound is refused as too large, and none of it is read.
        let refused = read(&capacity, &headers(Some(LARGE.bytes + 1)), stalled(0), LARGE).await;
        assert_eq!(refused.err().map(|refused| refused.error.code), Some(Code::TooLarge));
    }
}
