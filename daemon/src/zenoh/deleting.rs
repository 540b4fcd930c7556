//! A DELETE of all that matches: its place among the changes is taken where it comes in, and what it means is looked up
//! and forgotten on a thread of its own, one DELETE after the other. Nothing that comes over the network waits for it.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use omir_core::reference::Ref;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Context;
use super::memory::each_matching;
use crate::engine::{Code, Error, Receipt, Unread, contain, unanswered};
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
        let mut done = self.done.lock();
        // A longer wait would not help, and the client gets what there is.
        self.is_one_done.wait_while_for(&mut done, |done| *done < begun, patience);
    }
}

/// DELETEs that may wait; more are `BUSY`.
const WAITING: usize = 256;

/// Time that DELETEs which wait have at a stop. Those that are not done then are refused.
const AT_A_STOP: Duration = Duration::from_secs(2);

/// The thread that carries DELETEs out; it ends when this is dropped or stopped.
pub(super) struct Deleter {
    queue: Mutex<Option<Sender<Delete>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    is_hurried: AtomicBool,
}

impl Deleter {
    pub(super) fn start() -> io::Result<Self> {
        let (queue, deletes) = crossbeam_channel::bounded::<Delete>(WAITING);
        let thread = std::thread::Builder::new().name("omird-deleter".to_owned());
        let thread = thread.spawn(move || {
            for delete in deletes {
                contain("a DELETE of all that matches", || delete.run());
            }
        })?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            is_hurried: AtomicBool::new(false),
        })
    }

    /// Ends each DELETE that was taken on, and takes no more: each leaves its audit line.
    pub(super) fn stop(&self) {
        drop(held(&self.queue).take());
        let Some(thread) = held(&self.thread).take() else { return };
        let began = Instant::now();
        while !thread.is_finished() && began.elapsed() < AT_A_STOP {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.is_hurried.store(true, Ordering::Release);
        // A panic in it was told of when it happened.
        let _ = thread.join();
    }

    /// Returns the way to the thread; nothing once it is stopped.
    fn queue(&self) -> Option<Sender<Delete>> {
        held(&self.queue).clone()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
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
        *deletes.done.lock() += 1;
        deletes.is_one_done.notify_all();
    }
}

fn stopping() -> Error {
    Error::new(Code::Internal, "the daemon is stopping")
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
    let Some(queue) = context.deleter.queue() else {
        return Err(Box::new((admitted, stopping())));
    };
    if queue.is_full() {
        return Err(Box::new((admitted, busy())));
    }
    let place = context.protocols.omir.mark(&admitted);
    context.deletes.begun.fetch_add(1, Ordering::AcqRel);
    let (key, admitted) = (key.to_owned(), Some(admitted));
    let delete = Delete { context: context.clone(), key, admitted, place };
    let Err(not_taken) = queue.try_send(delete) else { return Ok(()) };
    let (TrySendError::Full(mut delete) | TrySendError::Disconnected(mut delete)) = not_taken;
    delete.admitted.take().map_or(Ok(()), |admitted| Err(Box::new((admitted, busy()))))
}

impl Delete {
    fn run(mut self) {
        let Some(mut admitted) = self.admitted.take() else { return };
        let done = self.carry_out(&mut admitted);
        admitted.finish(&done);
        if let Err(error) = done {
            self.context.events.rejected(&self.key, &error);
        }
    }

    fn carry_out(&self, admitted: &mut Admitted) -> Result<(), Error> {
        let is_hurried = || self.context.deleter.is_hurried.load(Ordering::Acquire);
        if is_hurried() {
            return Err(stopping());
        }
        let place = self.place.recv().unwrap_or_else(|_| Err(unanswered()))?;
        let mut targets: Vec<Ref> = Vec::new();
        let mut unknown = None;
        let looked = each_matching(&self.context, admitted, &self.key, |one| {
            match one {
                Ok((name, _)) => targets.push(name),
                // A memory that cannot be read can be forgotten all the same, if its name is known to match.
                Err(Unread { name: Some(name), .. }) => targets.push(name),
                Err(unread) => unknown = Some(unread),
            }
            if is_hurried() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if looked.is_break() {
            return Err(stopping());
        }
        if !targets.is_empty() {
            self.context.protocols.omir.forget_up_to(admitted, targets, place.seq)?;
        }
        unknown.map_or(Ok(()), |unread| {
            let message =
                format!("whether this is meant as well cannot be told, and it stays: {unread}");
            Err(Error::new(Code::Internal, message))
        })
    }
}
