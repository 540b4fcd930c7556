//! Threads for calls that wait for a model: seconds, where a thread of a transport is there for milliseconds. Calls that wait for a
//! summary have threads of their own, so that no question waits for one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;

/// A call with all that it needs.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Calls that wait for a thread.
const MOST_WAITING: usize = 16;

/// The threads. They end once this is dropped.
pub(crate) struct WaitingPool(SyncSender<Job>);

impl WaitingPool {
    /// Starts so many threads of a name.
    pub(crate) fn start(name: &str, threads: usize) -> Self {
        let (send, jobs) = sync_channel::<Job>(MOST_WAITING);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new().name(name.into());
            if let Err(error) = thread.spawn(move || run(&jobs)) {
                tracing::error!(%error, "there is a thread less that waits for a model");
            }
        }
        Self(send)
    }

    /// Has a call worked on. If too many wait, or there is no thread, the caller's thread does it.
    pub(crate) fn work(&self, job: Job) {
        match self.0.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => job(),
        }
    }
}

fn run(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let next = jobs.lock().recv();
        let Ok(job) = next else { return };
        omird_engine::contain("a call that may ask a model", job);
    }
}
