//! The queue to the writer: how a change gets in, and how a caller waits for it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};

use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::write::command::{Change, Receipt, Reply};
use crate::write::message::Message;

/// The refusal of a change because the queue is full.
pub(crate) fn busy() -> Error {
    let message = "too many requests are waiting for the disk; try again in a moment";
    Error::new(Code::Busy, message)
}

/// The error for a queued change that gets no answer.
pub fn unanswered() -> Error {
    let message = "a bug ended the daemon's work on this change: it is not known whether it was made; look, or send \
                   it again";
    Error::new(Code::Internal, message)
}

impl Engine {
    /// # Errors
    /// `UNAUTHORIZED` if the daemon is configured read-only.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.settings().read_only {
            return Err(Error::read_only());
        }
        Ok(())
    }

    /// Hands a change to the writer. `reply` is called once it is as durable as the settings
    /// promise, or refused; at once, on this thread, if it cannot even be queued.
    pub fn submit(&self, change: Change, bytes: usize, reply: Reply) {
        let shared = &self.inner.shared;
        if let Err(error) = self.check_writable() {
            return reply(Err(error));
        }
        if let Some(error) = shared.broken.refusal() {
            return reply(Err(error));
        }
        // A large import waits for its turn and not for room in the queue, which is for what a robot remembers
        // meanwhile.
        let bytes = if matches!(change, Change::Merge(_, _, Some(_))) { 0 } else { bytes };
        let queued = shared.queue.bytes.fetch_add(bytes, Ordering::AcqRel);
        // A request larger than the bound may pass when nothing else waits.
        if queued > 0 && queued + bytes > self.settings().queue_bytes {
            shared.queue.bytes.fetch_sub(bytes, Ordering::AcqRel);
            return reply(Err(busy()));
        }
        shared.queue.accepted.fetch_add(1, Ordering::AcqRel);
        match self.try_send(Message::Change { change, bytes, reply }) {
            Ok(()) => {}
            Err(error) => {
                shared.queue.bytes.fetch_sub(bytes, Ordering::AcqRel);
                shared.queue.accepted.fetch_sub(1, Ordering::AcqRel);
                let (message, error) = match error {
                    TrySendError::Full(message) => (message, busy()),
                    TrySendError::Disconnected(message) => (message, Error::stopping()),
                };
                if let Message::Change { reply, .. } = message {
                    reply(Err(error));
                }
            }
        }
    }

    /// The way to the writer, until the engine is told to stop. Not to be kept: the writer waits for it.
    pub(crate) fn queue(&self) -> Option<Sender<Message>> {
        self.inner.queue.lock().clone()
    }

    #[expect(
        clippy::result_large_err,
        reason = "what is not taken goes back to who sent it, as from the queue itself"
    )]
    pub(crate) fn try_send(&self, message: Message) -> Result<(), TrySendError<Message>> {
        match self.queue() {
            Some(queue) => queue.try_send(message),
            None => Err(TrySendError::Disconnected(message)),
        }
    }

    /// Makes a change of the daemon's own and waits for its receipt. It takes no room in the queue.
    ///
    /// # Errors
    /// As [`Engine::submit`] replies.
    pub fn execute(&self, change: Change) -> Result<Receipt, Error> {
        self.execute_counted(change, 0)
    }

    /// Makes a change and waits for its receipt. The queue counts its bytes meanwhile, as [`Engine::submit`] does.
    ///
    /// # Errors
    /// As [`Engine::submit`] replies.
    pub fn execute_counted(&self, change: Change, bytes: usize) -> Result<Receipt, Error> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let reply = Box::new(move |result| {
            // The caller waits for it.
            let _ = sender.send(result);
        });
        self.submit(change, bytes, reply);
        receiver.recv().unwrap_or_else(|_| Err(unanswered()))
    }

    /// Waits until everything that was queued before is committed, at most `patience`; returns whether it is.
    ///
    /// A client that puts and then gets over one connection reads what it wrote.
    pub fn wait_committed(&self, patience: Duration) -> bool {
        let shared = &self.inner.shared;
        let target = shared.queue.accepted.load(Ordering::Acquire);
        let began = Instant::now();
        let mut pause = Duration::from_micros(20);
        while shared.queue.committed.load(Ordering::Acquire) < target {
            if began.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        true
    }
}
