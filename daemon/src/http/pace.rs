//! A stream of bytes whose other end must go on taking them, and that is closed so that the last answer arrives.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Longest time in which a client takes no byte that waits for it.
const STALL: Duration = Duration::from_secs(30);
/// Longest time for the client to close its end too.
const LINGER: Duration = Duration::from_secs(1);

/// The stream.
pub(super) struct Paced<S> {
    stream: S,
    /// [`STALL`] and [`LINGER`].
    patience: [Duration; 2],
    /// Runs while bytes wait for the client.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Runs since this end is closed.
    closing: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, patience: [STALL, LINGER], stalled: None, closing: None }
    }

    /// Notes how writing went.
    fn note<T>(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.stalled = None;
            return wrote;
        }
        let [patience, _] = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client takes no answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.note(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.note(cx, flushed)
    }

    /// Closes this end, and reads what still comes for a moment: a connection that is closed over bytes nobody read is
    /// reset, and the client may never see the answer that refuses what it sends.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.note(cx, closed))?;
        }
        let [_, patience] = self.patience;
        let closing = self.closing.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; 4096];
        loop {
            let mut into = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut into)) {
                Ok(()) if !into.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);

    fn paced<S>(stream: S) -> Paced<S> {
        Paced { patience: [SHORT; 2], ..Paced::new(stream) }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut paced = paced(ours);
        let began = Instant::now();
        let error = paced.write_all(&[7; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(began.elapsed() >= SHORT);
        // One that takes a little is waited for.
        let mut taken = [0; 64];
        theirs.read_exact(&mut taken).await.unwrap();
        assert_eq!(paced.write(&[7; 10]).await.unwrap(), 10);
    }

    #[tokio::test]
    async fn what_still_comes_is_read_for_a_moment() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut paced = paced(ours);
        let sending = tokio::spawn(async move {
            for _ in 0..10 {
                theirs.write_all(&[1; 64]).await.unwrap();
            }
            theirs
        });
        // The other end stays open: it ends all the same.
        paced.shutdown().await.unwrap();
        drop(sending.await.unwrap());
    }
}
