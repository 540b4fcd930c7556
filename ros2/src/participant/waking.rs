//! The thread that lets go on what waits: messages for their transforms, sights that no memory tells of yet.
//!
//! It has a thread of its own because what goes on may have to wait for the disk. `/tf` must not: it only
//! rings the bell.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Context;

/// Interval between two looks at what waits, if nobody rings.
const TICK: Duration = Duration::from_millis(500);

/// The running thread. Dropping it ends it.
pub(super) struct Waking {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

/// Rings for the thread. Cloning gives another rope.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<Rung>,
    rung: Condvar,
}

#[derive(Default)]
struct Rung {
    is_rung: bool,
    is_over: bool,
}

impl Bell {
    /// Something may be ready.
    pub(super) fn ring(&self) {
        self.with(|state| state.is_rung = true);
    }

    fn with(&self, change: impl FnOnce(&mut Rung)) {
        change(&mut self.state.lock());
        self.rung.notify_all();
    }

    /// Waits until somebody rings, for a tick at most; `false` if that was the last time.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        let quiet = |state: &mut Rung| !state.is_rung && !state.is_over;
        self.rung.wait_while_for(&mut state, quiet, TICK);
        state.is_rung = false;
        !state.is_over
    }
}

impl Waking {
    /// Starts the thread.
    pub(super) fn start(context: Arc<Context>) -> std::io::Result<Self> {
        let bell = context.bell.clone();
        let thread = std::thread::Builder::new().name("omird-ros2-wait".into()).spawn({
            let bell = bell.clone();
            move || {
                while bell.wait() {
                    // A bug of ours in one message ends what was taken out with it, and not what comes to wait.
                    if catch_unwind(AssertUnwindSafe(|| context.go_on(false))).is_err() {
                        tracing::error!("letting messages go on panicked; that is a bug in omird");
                    }
                }
            }
        })?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        self.bell.with(|state| state.is_over = true);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that lets messages go on panicked");
        }
    }
}
