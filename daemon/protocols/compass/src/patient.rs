//! Threads for calls that wait for a model: seconds, where a thread of a transport is there for milliseconds.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;

/// A call with all that it needs.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Threads, and calls that wait for one.
const THREADS: usize = 2;
const MOST_WAITING: usize = 16;

/// The threads. They end once this is dropped.
pub(crate) struct Patient(SyncSender<Job>);

impl Patient {
    pub(crate) fn start() -> Self {
        let (send, jobs) = sync_channel::<Job>(MOST_WAITING);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..THREADS {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new().name("omird-cp-model".into());
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
