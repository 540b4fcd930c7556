//! Bodies that were not read to their end: of requests that are refused by their head.
//!
//! What follows on a connection of HTTP/1.1 is the rest of the body, and not the next request. A short rest is read and dropped,
//! so that the connection can be used again. Otherwise the answer says that it is closed: a client that is not told sends its next
//! request into nothing.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waiting, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::Version;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

/// Bytes that are read and dropped.
const MOST: u64 = 64 << 10;
/// Time for them.
const TIME: Duration = Duration::from_millis(500);

/// The body of a request, of which something may be left when the request is answered.
pub(super) struct Unread {
    body: Shared<Incoming>,
    /// The client sends the body only when it is asked to, or the connection carries other requests beside it.
    is_left_alone: bool,
    /// The answer can say that the connection is closed.
    can_close: bool,
}

impl Unread {
    pub(super) fn of(parts: &Parts, body: Incoming) -> Self {
        let can_close = parts.version < Version::HTTP_2;
        let is_left_alone = !can_close || parts.headers.contains_key(EXPECT);
        Self { body: Shared(Arc::new(Mutex::new(body))), is_left_alone, can_close }
    }

    /// Returns the body for the handler of the request.
    pub(super) fn body(&self) -> Body {
        Body::new(Shared(self.body.0.clone()))
    }

    /// Returns true if the connection can be used again: the body has been read to its end, or the rest of it was short.
    pub(super) async fn is_gone(&self) -> bool {
        // A handler still works with it.
        if !self.can_close || Arc::strong_count(&self.body.0) > 1 || self.body.is_end_stream() {
            return true;
        }
        let is_long = self.body.size_hint().lower() > MOST;
        !self.is_left_alone && !is_long && timeout(TIME, self.body.dropped()).await.unwrap_or(false)
    }
}

/// A body that several have. One of them reads at a time.
struct Shared<B>(Arc<Mutex<B>>);

impl<B: HttpBody<Data = Bytes> + Unpin> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, B> {
        self.0.lock()
    }

    /// Reads the rest, and returns true if that was not long.
    async fn dropped(&self) -> bool {
        let mut left = MOST;
        loop {
            match poll_fn(|waiting| Pin::new(&mut *self.lock()).poll_frame(waiting)).await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                    match left.checked_sub(bytes) {
                        Some(less) => left = less,
                        None => return false,
                    }
                }
            }
        }
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Shared<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        waiting: &mut Waiting<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut *self.lock()).poll_frame(waiting)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}
