//! The thread that lets go on what waits: messages for their transforms, sights that no memory tells of yet.
//!
//! It has a thread of its own because what goes on may have to wait for the disk. `/tf` must not: it only
//! wakes the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Context;

/// Interval between two looks at what waits, if nothing wakes it.
const TICK: Duration = Duration::from_millis(500);

/// The running thread. Dropping it ends it.
pub(super) struct RetryThread {
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

/// Wakes the thread. Cloning gives another handle on the same.
#[derive(Default)]
pub(super) struct Waker {
    state: Mutex<WakeState>,
    woken: Condvar,
}

#[derive(Default)]
struct WakeState {
    is_woken: bool,
    is_over: bool,
}

impl Waker {
    /// Something may be ready.
    pub(super) fn wake(&self) {
        self.with(|state| state.is_woken = true);
    }

    fn with(&self, change: impl FnOnce(&mut WakeState)) {
        change(&mut self.state.lock());
        self.woken.notify_all();
    }

    /// Waits until another thread wakes this one, for a tick at most; `false` if that was the last time.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        let quiet = |state: &mut WakeState| !state.is_woken && !state.is_over;
        self.woken.wait_while_for(&mut state, quiet, TICK);
        state.is_woken = false;
        !state.is_over
    }
}

impl RetryThread {
    /// Starts the thread.
    pub(super) fn start(context: Arc<Context>) -> std::io::Result<Self> {
        let waker = context.waker.clone();
        let thread = std::thread::Builder::new().name("omird-ros2-wait".into()).spawn({
            let waker = waker.clone();
            move || {
                while waker.wait() {
                    // A bug of ours in one message ends what was taken out with it, and not what comes to wait.
                    if catch_unwind(AssertUnwindSafe(|| context.go_on(false))).is_err() {
                        tracing::error!("letting messages go on panicked; that is a bug in omird");
                    }
                }
            }
        })?;
        Ok(Self { waker, thread: Some(thread) })
    }
}

impl Drop for RetryThread {
    fn drop(&mut self) {
        self.waker.with(|state| state.is_over = true);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that lets messages go on panicked");
        }
    }
}
