//! A few threads that read for queries, behind a bounded queue.

use std::io;

use crossbeam_channel::{Sender, TrySendError};

use super::ask::Ask;

type Job = (Ask, Box<dyn FnOnce(Ask) + Send>);

/// Queries that may wait for a worker; more are `BUSY`.
const WAITING: usize = 256;

pub(super) struct Pool {
    jobs: Sender<Job>,
}

impl Pool {
    /// Starts `workers` threads; they end when the pool is dropped.
    pub(super) fn start(workers: usize) -> io::Result<Self> {
        let (jobs, queue) = crossbeam_channel::bounded::<Job>(WAITING);
        for number in 0..workers.max(1) {
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("omird-reader-{number}")).spawn(
                move || {
                    for (ask, job) in queue {
                        let run = std::panic::AssertUnwindSafe(|| job(ask));
                        if std::panic::catch_unwind(run).is_err() {
                            tracing::error!("answering a query panicked; this is a bug of omird");
                        }
                    }
                },
            )?;
        }
        Ok(Self { jobs })
    }

    /// Hands a query to a worker, or gives it back if all are busy and the queue is full.
    pub(super) fn run(&self, ask: Ask, job: impl FnOnce(Ask) + Send + 'static) -> Option<Ask> {
        match self.jobs.try_send((ask, Box::new(job))) {
            Ok(()) => None,
            Err(TrySendError::Full((ask, _)) | TrySendError::Disconnected((ask, _))) => Some(ask),
        }
    }
}
