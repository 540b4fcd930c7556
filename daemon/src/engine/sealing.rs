//! The thread that seals: one log after the other, in the background, trying again what could not be
//! sealed. When there is nothing to seal it compacts.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};

use super::compaction::{self, Answer, Compactor, Scope};
use super::health::Part;
use super::shared::Shared;
use crate::error::{Code, Error};
use crate::store::recovery::Unsealed;
use crate::store::sealer::{SealError, Sealer};

/// How long a log that could not be sealed waits for the next try.
const RETRY: Duration = Duration::from_secs(10);

/// Whether everything was sealed, and if not, why.
pub type Sealed = Result<(), String>;

/// An order to the sealing thread.
pub enum SealOrder {
    /// Seal this log when its turn comes.
    Seal(Unsealed),
    /// Try what is waiting, once, and say whether anything is left.
    Report(Sender<Sealed>),
    /// Compact, once everything before is sealed.
    Compact(Scope, Answer),
    /// Seal what is waiting, once, and stop.
    Stop,
}

/// Starts the sealing thread, which ends when it is told to.
pub fn seal_in_background(
    sealer: Sealer,
    compactor: Compactor,
    orders: Receiver<SealOrder>,
    shared: Arc<Shared>,
) -> io::Result<JoinHandle<()>> {
    let (waiting, asked, fault) = (VecDeque::new(), Vec::new(), String::new());
    let sealing =
        Sealing { sealer, compactor, shared, orders, waiting, asked, fault, is_more_due: false };
    std::thread::Builder::new().name("omird-sealer".into()).spawn(move || sealing.run())
}

struct Sealing {
    sealer: Sealer,
    compactor: Compactor,
    shared: Arc<Shared>,
    orders: Receiver<SealOrder>,
    /// Logs to be sealed, oldest first.
    waiting: VecDeque<Unsealed>,
    /// Who waits for a compaction.
    asked: Vec<(Scope, Answer)>,
    /// Why the log that was tried last is not sealed.
    fault: String,
    /// Whether the last compaction left more to compact.
    is_more_due: bool,
}

impl Sealing {
    fn run(mut self) {
        let mut is_stopping = false;
        while !is_stopping {
            let mut report = None;
            match self.next() {
                Ok(SealOrder::Seal(log)) => self.waiting.push_back(log),
                Ok(SealOrder::Report(done)) => report = Some(done),
                Ok(SealOrder::Compact(scope, answer)) => self.asked.push((scope, answer)),
                Ok(SealOrder::Stop) => is_stopping = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.seal();
            if let Some(done) = report {
                let sealed = if self.waiting.is_empty() { Ok(()) } else { Err(self.fault.clone()) };
                let _ = done.send(sealed);
            }
            self.compact_as_asked();
            self.is_more_due = !is_stopping
                && self.waiting.is_empty()
                && self.compactor.idle(&mut self.sealer, &self.shared);
            self.count();
        }
    }

    fn next(&self) -> Result<SealOrder, RecvTimeoutError> {
        if !self.waiting.is_empty() {
            // After a failure: wait, unless there is more news first.
            return self.orders.recv_timeout(RETRY);
        }
        if !self.is_more_due {
            return self.orders.recv_timeout(compaction::LOOK_WHEN_SHORT);
        }
        self.orders.try_recv().map_err(|error| match error {
            TryRecvError::Empty => RecvTimeoutError::Timeout,
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
        })
    }

    /// Seals what is waiting, as far as the disk lets it.
    fn seal(&mut self) {
        let Self { sealer, shared, waiting, fault, .. } = self;
        while let Some(&log) = waiting.front()
            && shared.may_seal()
        {
            match sealer.seal(log, shared.time.order()) {
                Ok(_) => {
                    shared.well(Part::Seal);
                    shared.index_bytes.store(sealer.cache.size_on_disk(), Ordering::Relaxed);
                    waiting.pop_front();
                }
                Err(error) => {
                    if let SealError::Disk(error) = &error {
                        shared.trouble(&*sealer.disk, Part::Seal, error);
                    }
                    tracing::warn!(log = log.log, %error, "not sealed yet; served from the log");
                    *fault = error.to_string();
                    break;
                }
            }
        }
        self.count();
    }

    fn compact_as_asked(&mut self) {
        for (scope, answer) in std::mem::take(&mut self.asked) {
            let compacted = if self.waiting.is_empty() || scope == Scope::Due {
                self.compactor.serve(scope, &mut self.sealer, &self.shared)
            } else {
                let message = "what is in the log could not be sealed yet; see the daemon's log";
                Err(Error::new(Code::Internal, message))
            };
            self.count();
            answer(compacted);
        }
    }

    /// For `status`.
    fn count(&self) {
        self.shared.unsealed_logs.store(self.waiting.len() as u64, Ordering::Relaxed);
        self.shared.segments.store(self.sealer.pieces.len() as u64, Ordering::Relaxed);
    }
}
