//! What becomes of a panic, which always is a bug of omird.
//!
//! The engine's threads work for everybody, so what an adapter brought along is called one by one, and what
//! panics there costs only itself. A thread that ends by a panic of its own cannot be begun anew: nobody knows
//! what it was half through. Then the engine is broken, takes nothing more, and says so. What was acknowledged
//! is durable, and a new start serves it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Code, Error};

/// Who is told that the engine is broken: the name of the thread that ended.
pub type OnBroken = Box<dyn FnOnce(&'static str) + Send>;

/// Calls what an adapter brought along. `doing` is for the log.
pub(super) fn contain(doing: &str, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!(
            "{doing} panicked; this is a bug of omird, and nothing that is stored is touched by it"
        );
    }
}

/// Whether all threads of the engine run.
#[derive(Default)]
pub struct Broken {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    thread: Option<&'static str>,
    tell: Option<OnBroken>,
}

impl Broken {
    /// Why nothing is taken any more, if so.
    pub(super) fn refusal(&self) -> Option<Error> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let message = |thread| format!("a bug ended the daemon's thread {thread}; start it again");
        state.thread.map(|thread| Error::new(Code::Internal, message(thread)))
    }

    /// Names who is told, at once if it is broken already. Only the last to be named counts.
    pub(super) fn tell(&self, tell: OnBroken) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.thread {
            None => state.tell = Some(tell),
            Some(thread) => {
                drop(state);
                tell(thread);
            }
        }
    }

    fn note(&self, thread: &'static str) {
        tracing::error!(thread, "a thread of the engine panicked; this is a bug of omird");
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.thread = Some(thread);
        let tell = state.tell.take();
        drop(state);
        if let Some(tell) = tell {
            contain("telling of that", || tell(thread));
        }
    }
}

/// Starts a thread of the engine; a panic that ends it is noted.
pub(super) fn spawn(
    name: &'static str,
    broken: &Arc<Broken>,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let broken = broken.clone();
    std::thread::Builder::new().name(name.into()).spawn(move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            broken.note(name);
        }
    })
}

#[cfg(test)]
mod tests;
