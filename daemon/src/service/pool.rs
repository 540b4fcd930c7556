//! A few threads that work for clients, behind a bounded queue.

use std::io;
use std::time::Instant;

use crossbeam_channel::{Sender, TrySendError};

enum Job<T> {
    Work(T, Box<dyn FnOnce(T) + Send>),
    Prove(Box<dyn FnOnce() + Send>),
}

/// What may wait for a worker; more is `BUSY`.
const WAITING: usize = 256;

/// Works on `T`, such as queries.
pub(super) struct Pool<T> {
    jobs: Sender<Job<T>>,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts `workers` threads called `name`; they end when the pool is dropped.
    pub(super) fn start(name: &str, workers: usize) -> io::Result<Self> {
        let (jobs, queue) = crossbeam_channel::bounded::<Job<T>>(WAITING);
        for number in 0..workers.max(1) {
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
                for job in queue {
                    let run = std::panic::AssertUnwindSafe(|| match job {
                        Job::Work(work, job) => job(work),
                        Job::Prove(prove) => prove(),
                    });
                    if std::panic::catch_unwind(run).is_err() {
                        tracing::error!("working for a client panicked; this is a bug of omird");
                    }
                }
            })?;
        }
        Ok(Self { jobs })
    }

    /// Hands work to a worker, or gives it back if all are busy and the queue is full.
    pub(super) fn run(&self, work: T, job: impl FnOnce(T) + Send + 'static) -> Option<T> {
        match self.jobs.try_send(Job::Work(work, Box::new(job))) {
            Ok(()) => None,
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => match job {
                Job::Work(work, _) => Some(work),
                Job::Prove(_) => None,
            },
        }
    }

    /// Has a worker do something, behind the work that waits; nobody does if there is no room by `deadline`.
    pub(super) fn prove(&self, job: impl FnOnce() + Send + 'static, deadline: Instant) {
        let _ = self.jobs.send_deadline(Job::Prove(Box::new(job)), deadline);
    }
}
