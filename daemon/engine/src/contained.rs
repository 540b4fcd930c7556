//! Handling of a panic, which always is a bug of omird.
//!
//! The engine's threads work for everybody, so each listener is called by itself, and a panic
//! there costs only itself. A thread that ends by a panic of its own cannot be started again: it is not known
//! what it was half through. Without the writer or the publisher the engine is broken, takes nothing more, and says
//! so; what was acknowledged is durable, and a new start serves it. Without the sealer it goes on: what is stored and
//! what is new is served from logs, and a new start would most likely meet the same log again.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::error::{Code, Error};

/// Listener for a broken engine: the name of the thread that ended.
pub(crate) type OnBroken = Box<dyn FnOnce(&'static str) + Send>;

/// Calls a listener. `doing` is for the log.
pub fn contain(doing: &str, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!(
            "{doing} panicked; this is a bug of omird, and nothing that is stored is touched by it"
        );
    }
}

/// True if the threads run without which nothing goes on: the writer and the publisher.
#[derive(Default)]
pub(crate) struct Broken {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    thread: Option<&'static str>,
    tell: Option<OnBroken>,
}

impl Broken {
    /// The refusal of all changes, if a thread has ended.
    pub(super) fn refusal(&self) -> Option<Error> {
        let state = self.state.lock();
        let message = |thread| format!("a bug ended the daemon's thread {thread}; start it again");
        state.thread.map(|thread| Error::new(Code::Internal, message(thread)))
    }

    /// Names who is told, at once if it is broken already. Only the last to be named counts.
    pub(super) fn tell(&self, tell: OnBroken) {
        let mut state = self.state.lock();
        match state.thread {
            None => state.tell = Some(tell),
            Some(thread) => {
                drop(state);
                tell(thread);
            }
        }
    }

    pub(super) fn note(&self, thread: &'static str) {
        let mut state = self.state.lock();
        state.thread = Some(thread);
        let tell = state.tell.take();
        drop(state);
        if let Some(tell) = tell {
            contain("telling of that", || tell(thread));
        }
    }
}

/// Starts a thread of the engine. `broken` is called on it if a panic ends it.
pub(super) fn spawn(
    name: &'static str,
    run: impl FnOnce() + Send + 'static,
    broken: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!(
                thread = name,
                "a thread of the engine panicked; this is a bug of omird"
            );
            broken();
        }
    })
}

#[cfg(test)]
mod tests;
