//! Answers as clients take them. Bytes are handed to a connection a part at a time, and what an answer holds, such as room in
//! memory, it holds until its last part has left: the connection keeps what a client does not take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::capacity::Room;

/// Bytes of a part. A client that does not take so many in its time takes nothing.
const PART: usize = 16 << 10;

/// Something that is held until an answer is taken, or given up.
pub(super) trait DeliveryGuard: Send + Sync + 'static {
    /// A part was handed to the connection.
    fn handed(&self) {}

    /// A part has left, or was given up with the connection.
    fn left(&self) {}
}

impl DeliveryGuard for Room {}

/// Returns a body that holds something until its last byte has left, or is given up.
pub(super) fn guarded<T: DeliveryGuard>(body: Body, guard: Arc<T>) -> Body {
    Body::new(GuardedBody { body, rest: Bytes::new(), guard })
}

struct GuardedBody<T> {
    body: Body,
    /// The rest of a frame, of which parts were handed over.
    rest: Bytes,
    guard: Arc<T>,
}

impl<T: DeliveryGuard> HttpBody for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)).transpose()? {
                None => return Poll::Ready(None),
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        let length = self.rest.len().min(PART);
        let bytes = self.rest.split_to(length);
        self.guard.handed();
        let part = Part { bytes, guard: self.guard.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let of_body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower().saturating_add(rest));
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

/// A part on its way.
struct Part<T: DeliveryGuard> {
    bytes: Bytes,
    guard: Arc<T>,
}

impl<T: DeliveryGuard> AsRef<[u8]> for Part<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: DeliveryGuard> Drop for Part<T> {
    fn drop(&mut self) {
        self.guard.left();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt;

    use super::*;

    #[derive(Default)]
    struct Counted {
        handed: AtomicUsize,
        left: AtomicUsize,
    }

    impl DeliveryGuard for Counted {
        fn handed(&self) {
            self.handed.fetch_add(1, Ordering::Relaxed);
        }

        fn left(&self) {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn what_is_held_is_kept_until_the_last_part_has_left() {
        let counted = Arc::new(Counted::default());
        let whole: Vec<u8> = (0..2 * PART + 10).map(|n| n as u8).collect();
        let mut body = guarded(Body::from(whole.clone()), counted.clone());
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let mut parts = Vec::new();
        while !body.is_end_stream() {
            parts.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        drop(body);
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [PART, PART, 10]);
        assert_eq!(parts.concat(), whole);
        let last = parts.pop();
        drop(parts);
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        assert_eq!((count(&counted.handed), count(&counted.left)), (3, 2));
        assert_eq!(Arc::strong_count(&counted), 2, "the last part holds it");
        drop(last);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
