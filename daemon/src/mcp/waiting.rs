//! A call while a client waits for it: progress is told in a steady beat, and the work learns when no client waits any
//! more.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::router::tool::CallObserver;

/// The state that the work shares with the task that waits for it.
#[derive(Debug, Default)]
struct State {
    is_given_up: AtomicBool,
    done: AtomicU64,
    of: AtomicU64,
}

/// Held while a task waits.
#[derive(Debug)]
pub(super) struct Waiting(Arc<State>);

impl Waiting {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns what the work is given.
    pub(super) fn observer(&self) -> Observer {
        Observer(self.0.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.is_given_up.store(true, Ordering::Relaxed);
    }
}

/// Tells the work if it is still wanted, and takes note of how far it is.
#[derive(Debug)]
pub(super) struct Observer(Arc<State>);

impl CallObserver for Observer {
    fn is_wanted(&self) -> bool {
        !self.0.is_given_up.load(Ordering::Relaxed)
    }

    fn note(&self, done: u64, of: u64) {
        self.0.of.store(of, Ordering::Relaxed);
        self.0.done.store(done, Ordering::Relaxed);
    }
}

/// The way to tell of progress, and the sign to give up.
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    /// The client asked for progress.
    token: Option<ProgressToken>,
    cancelled: CancellationToken,
    began: Instant,
    beat: Duration,
}

impl Progress {
    pub(super) fn of(context: &RequestContext<RoleServer>, beat: Duration) -> Self {
        Self {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            cancelled: context.ct.clone(),
            began: Instant::now(),
            beat,
        }
    }

    /// Waits for the work and tells of it; `None` if the call is cancelled before.
    pub(super) async fn until_done<T>(
        &self,
        work: impl Future<Output = T>,
        waiting: &Waiting,
    ) -> Option<T> {
        let mut work = std::pin::pin!(work);
        let mut beat = tokio::time::interval_at(self.began + self.beat, self.beat);
        loop {
            tokio::select! {
                done = work.as_mut() => return Some(done),
                () = self.cancelled.cancelled() => return None,
                _ = beat.tick(), if self.token.is_some() => self.tell(&waiting.0).await,
            }
        }
    }

    /// Tells how long the work has taken, in seconds: that always rises. The message says how far it is.
    async fn tell(&self, state: &State) {
        let Some(token) = self.token.clone() else { return };
        let seconds = self.began.elapsed().as_secs_f64();
        let (done, of) = (state.done.load(Ordering::Relaxed), state.of.load(Ordering::Relaxed));
        let message = match of {
            0 => format!("at work for {seconds:.1} s"),
            of => format!("{done} of {of} after {seconds:.1} s"),
        };
        let note = ProgressNotificationParam::new(token, seconds).with_message(message);
        // A client that has gone is noticed by the end of its request.
        let _ = self.peer.notify_progress(note).await;
    }
}
