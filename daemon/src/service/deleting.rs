//! A DELETE of all that matches: its place among the changes is taken where it comes in, and what it means is looked up
//! and forgotten on a thread of its own, one DELETE after the other. Nothing that comes over the network waits for it.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use omir_core::reference::Ref;

use super::Context;
use super::memory::{each_matching, reject};
use crate::engine::command::{Change, Receipt};
use crate::engine::{contain, unanswered};
use crate::error::{Code, Error};

/// DELETEs that were taken on, and those that are done. They are done in their order, so that numbers tell which.
#[derive(Default)]
pub(super) struct Deletes {
    begun: AtomicU64,
    done: Mutex<u64>,
    is_one_done: Condvar,
}

impl Deletes {
    /// Waits until those that were taken on before are done, at most `patience`.
    pub(super) fn settle(&self, patience: Duration) {
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
                contain("a DELETE of all that matches", || {
                    if let Err(error) = delete.carry_out() {
                        reject(&delete.context, &delete.key, &error);
                    }
                });
            }
        })?;
        Ok(Self { queue })
    }
}

/// A DELETE on its way.
pub(super) struct Delete {
    context: Arc<Context>,
    key: String,
    /// What was submitted as it came in, and so stands where it stands.
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

/// Takes on a DELETE of all that matches `key`: of what was put before it, and nothing that is put after it.
///
/// # Errors
/// `BUSY` if too many wait.
pub(super) fn take_on(context: &Arc<Context>, key: &str) -> Result<(), Error> {
    if context.deleter.queue.is_full() {
        return Err(Error::new(Code::Busy, "too many DELETEs wait; try again in a moment"));
    }
    let place = submit(context, Change::Forget(Vec::new()));
    context.deletes.begun.fetch_add(1, Ordering::AcqRel);
    let delete = Delete { context: context.clone(), key: key.to_owned(), place };
    let taken = context.deleter.queue.try_send(delete);
    taken.map_err(|_| Error::new(Code::Busy, "too many DELETEs wait; try again in a moment"))
}

fn submit(context: &Context, change: Change) -> Receiver<Result<Receipt, Error>> {
    let (tell, told) = crossbeam_channel::bounded(1);
    let reply = Box::new(move |receipt| {
        // Whoever deletes waits for it.
        let _ = tell.send(receipt);
    });
    context.engine.submit(change, 0, reply);
    told
}

impl Delete {
    fn carry_out(&self) -> Result<(), Error> {
        let answer = |told: Receiver<_>| told.recv().unwrap_or_else(|_| Err(unanswered()));
        let place = answer(self.place.clone())?;
        let mut targets: Vec<Ref> = Vec::new();
        let mut unknown = None;
        let _ = each_matching(&self.context, &self.key, |one| match one {
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
            answer(submit(&self.context, Change::ForgetUpTo(targets, place.seq)))?;
        }
        unknown.map_or(Ok(()), |unread| {
            let message =
                format!("whether this is meant as well cannot be told, and it stays: {unread}");
            Err(Error::new(Code::Internal, message))
        })
    }
}
