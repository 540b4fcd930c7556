//! A DELETE of all that matches: its place among the changes is taken where it comes in, and what it means is looked up
//! and forgotten on a thread of its own, one DELETE after the other. Nothing that comes over the network waits for it.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError};
use omir_core::reference::Ref;

use super::Context;
use super::memory::each_matching;
use crate::engine::{Code, Error, Receipt, contain, unanswered};
use crate::router::Admitted;

/// DELETEs that were taken on, and those that are done. They are done in their order, so that numbers tell which.
#[derive(Default)]
pub(super) struct Deletes {
    begun: AtomicU64,
    done: Mutex<u64>,
    is_one_done: Condvar,
}

impl Deletes {
    /// Waits until those that were taken on before are done, at most `patience`.
    pub(super) fn wait_done(&self, patience: Duration) {
        let begun = self.begun.load(Ordering::Acquire);
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        // A longer wait would not help, and who asks gets what there is.
        let _ = self.is_one_done.wait_timeout_while(done, patience, |done| *done < begun);
    }
}

/// DELETEs that may wait; more are `BUSY`.
const WAITING: usize = 256;

/// The thread that carries DELETEs out; it ends when this is dropped.
pub(super) struct Deleter {
    queue: Sender<Delete>,
}

impl Deleter {
    pub(super) fn start() -> io::Result<Self> {
        let (queue, deletes) = crossbeam_channel::bounded::<Delete>(WAITING);
        std::thread::Builder::new().name("omird-deleter".to_owned()).spawn(move || {
            for delete in deletes {
                contain("a DELETE of all that matches", || delete.run());
            }
        })?;
        Ok(Self { queue })
    }
}

/// A DELETE on its way.
pub(super) struct Delete {
    context: Arc<Context>,
    key: String,
    /// Until it ends.
    admitted: Option<Admitted>,
    /// The answer to a change that was submitted as it came in, and so has its place in the order.
    place: Receiver<Result<Receipt, Error>>,
}

/// However it ends.
impl Drop for Delete {
    fn drop(&mut self) {
        let deletes = &self.context.deletes;
        *deletes.done.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        deletes.is_one_done.notify_all();
    }
}

/// A request that was not taken on, and why.
pub(super) type NotTakenOn = Box<(Admitted, Error)>;

/// Takes on a DELETE of all that matches `key`: of what was put before it, and nothing that is put after it.
///
/// # Errors
/// `BUSY` if too many wait; with the request.
pub(super) fn take_on(
    context: &Arc<Context>,
    key: &str,
    admitted: Admitted,
) -> Result<(), NotTakenOn> {
    let busy = || Error::new(Code::Busy, "too many DELETEs wait; try again in a moment");
    if context.deleter.queue.is_full() {
        return Err(Box::new((admitted, busy())));
    }
    let place = context.protocols.omir.mark(&admitted);
    context.deletes.begun.fetch_add(1, Ordering::AcqRel);
    let (key, admitted) = (key.to_owned(), Some(admitted));
    let delete = Delete { context: context.clone(), key, admitted, place };
    let Err(not_taken) = context.deleter.queue.try_send(delete) else { return Ok(()) };
    let (TrySendError::Full(mut delete) | TrySendError::Disconnected(mut delete)) = not_taken;
    delete.admitted.take().map_or(Ok(()), |admitted| Err(Box::new((admitted, busy()))))
}

impl Delete {
    fn run(mut self) {
        let Some(admitted) = self.admitted.take() else { return };
        let done = self.carry_out(&admitted);
        admitted.finish(&done);
        if let Err(error) = done {
            self.context.events.rejected(&self.key, &error);
        }
    }

    fn carry_out(&self, admitted: &Admitted) -> Result<(), Error> {
        let answer = |told: Receiver<_>| told.recv().unwrap_or_else(|_| Err(unanswered()));
        let place: Receipt = answer(self.place.clone())?;
        let mut targets: Vec<Ref> = Vec::new();
        let mut unknown = None;
        let _ = each_matching(&self.context, admitted, &self.key, |one| match one {
            Ok((name, _)) => {
                targets.push(name);
                ControlFlow::Continue(())
            }
            // What cannot be read can be forgotten all the same, if it is known to be meant.
            Err(unread) => {
                match unread.name {
                    Some(name) => targets.push(name),
                    None => unknown = Some(unread),
                }
                ControlFlow::Continue(())
            }
        });
        if !targets.is_empty() {
            answer(self.context.protocols.omir.forget_up_to(admitted, targets, place.seq))?;
        }
        unknown.map_or(Ok(()), |unread| {
            let message =
                format!("whether this is meant as well cannot be told, and it stays: {unread}");
            Err(Error::new(Code::Internal, message))
        })
    }
}
