//! A field: its state, and the one way in which it changes.
//!
//! Threads leave changes in a row. One thread decides about all that wait, in their order, writes what they change as
//! one transaction, and answers them once that is durable; the others go on to other work. So there are no two writers,
//! many changes share one flush, and no reader sees what a power cut could take back. What only reads shares the state
//! with other readers.
//!
//! | module | holds |
//! |---|---|
//! | `row` | the operations that wait |
//! | `decide` | decisions about them, and their transaction |
//! | `own` | what the field does by itself: leases, and conflicts that were put off |
//! | `notes` | notes of operations that changed nothing |

mod decide;
mod notes;
mod own;
mod row;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use self::row::Row;
use crate::claims::KnownClaims;
use crate::clock::{Clock, ClockAdvances, LEAP};
use crate::envelope::Envelope;
use crate::failure::{self, EPOCH_OVERFLOW, Failure};
use crate::log::{Entry, Read};
use crate::model::Model;
use crate::operation_context::{CallerRights, OperationContext, OperationResult};
use crate::operations;
use crate::push::{Push, Pushes};
use crate::store::{Batch, Store, StoreView};
use crate::types::Unit;

/// The time after which a full row may have room again.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes the answer of an operation.
pub(crate) type Answered = Box<dyn FnOnce(OperationResult) + Send>;

/// The state.
#[derive(Default)]
struct State {
    model: Model,
    /// The store may know better: it is added up once more before anything else.
    is_stale: bool,
    is_loaded: bool,
}

/// A field.
pub(crate) struct Field {
    store: Store,
    pushes: Pushes,
    state: RwLock<State>,
    clock: Mutex<Clock>,
    leaps: Mutex<ClockAdvances>,
    known: KnownClaims,
    row: Mutex<Row>,
    /// Held by the thread that decides.
    deciding: Mutex<()>,
    reads: Mutex<Vec<Read>>,
}

impl Field {
    /// Returns the field of a store. Its log is added up when it is first asked.
    pub(crate) fn new(store: Store, pushes: Pushes) -> Self {
        Self {
            store,
            pushes,
            state: RwLock::default(),
            clock: Mutex::default(),
            leaps: Mutex::default(),
            known: KnownClaims::default(),
            row: Mutex::default(),
            deciding: Mutex::default(),
            reads: Mutex::default(),
        }
    }

    /// Works on an operation that may change something, or leaves it to the thread that decides already: then the answer comes on
    /// that thread, and this one is free for others.
    pub(crate) fn change(
        self: &Arc<Self>,
        envelope: Envelope,
        who: CallerRights,
        answered: Answered,
    ) {
        let taken = self.row.lock().take_in(envelope, who, answered);
        if let Err((answered, count)) = taken {
            let message =
                format!("{count} operations wait for the field, as many as it has room for");
            return answered(Err(Failure {
                retry_after: Some(PAUSE),
                ..Failure::new(&failure::BUSY, message)
            }));
        }
        // An operation may arrive while the deciding thread is about to stop. That thread looks at the row once more
        // and finds it.
        while self.row.lock().len() > 0 {
            let Some(_deciding) = self.deciding.try_lock() else { return };
            let waiting = self.row.lock().len();
            if self.decide_about(waiting) && self.leave_the_rest() {
                return;
            }
        }
    }

    /// Leaves what waits to a thread, so that the caller is not held up by what others ask. Returns false if there is no thread.
    fn leave_the_rest(self: &Arc<Self>) -> bool {
        let field = self.clone();
        let rest = move || loop {
            let deciding = field.deciding.lock();
            field.decide_about(usize::MAX);
            drop(deciding);
            if field.row.lock().len() == 0 {
                return;
            }
        };
        std::thread::Builder::new().name("akashik-field".to_owned()).spawn(rest).is_ok()
    }

    /// Decides about so many that wait, or until nothing is left to do. Returns true if something is.
    fn decide_about(&self, most: usize) -> bool {
        let mut left = most;
        loop {
            let mut state = self.write();
            let is_all_detected =
                state.is_stale || !state.is_loaded || state.model.deferred.is_empty();
            if left == 0 {
                return !is_all_detected || self.row.lock().len() > 0;
            }
            let (batch, is_busy) = self.row.lock().next_batch();
            if batch.is_empty() {
                if is_all_detected || self.detect_deferred(&mut state).is_err() {
                    return false;
                }
                continue;
            }
            left = left.saturating_sub(batch.len());
            let answers = self.decide(&mut state, batch, is_busy);
            drop(state);
            for (answered, done) in answers {
                answered(done);
            }
        }
    }

    /// Works on an operation that changes nothing.
    ///
    /// # Errors
    /// That of the operation.
    pub(crate) fn read(&self, envelope: &Envelope, who: &CallerRights) -> OperationResult {
        loop {
            let state = self.state.read();
            if !state.is_loaded || state.is_stale {
                drop(state);
                self.refresh(&mut self.write())?;
                continue;
            }
            // A refusal takes the clock one further, whatever epoch the message states. An unknown agent is refused.
            let received = if knows(&state.model, envelope, who) { envelope.epoch } else { 0 };
            // A daemon that writes nothing leases nothing: its clock goes on in memory.
            let writes = !self.store.engine.settings().read_only;
            let (own, epoch) = {
                let mut clock = self.clock.lock();
                let own = clock.after(0, LEAP).map_err(|_| overflow(0))?;
                let epoch = self.after(*clock, received, LEAP)?;
                if !writes || own < clock.leased() {
                    let leased = clock.leased().max(own);
                    clock.go_to(own, leased);
                }
                (own, epoch)
            };
            let is_leased = |epoch| !writes || epoch < self.clock.lock().leased();
            if !is_leased(own) {
                drop(state);
                self.lease(0)?;
                continue;
            }
            let (at, _) = self.store.now();
            let (pending, entries) = (HashMap::new(), Vec::new());
            let view = self.view(&pending, &entries);
            let mut context = context(&state.model, &view, who, envelope, epoch, &at, false);
            let done = operations::carry_out(&mut context);
            debug_assert!(context.deltas.is_empty() && context.units.is_empty());
            if done.is_ok() && !is_leased(epoch) {
                drop(state);
                self.lease(received)?;
                continue;
            }
            if done.is_ok() {
                let mut clock = self.clock.lock();
                let leased = clock.leased().max(if writes { 0 } else { epoch });
                self.leaps.lock().take(clock.now(), epoch);
                clock.go_to(epoch, leased);
            }
            self.note(envelope, epoch, &at, &done);
            return done;
        }
    }

    /// Calls `f` with the state and the epoch.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn look<T>(&self, f: impl FnOnce(&Model, &Store, u64) -> T) -> Result<T, Failure> {
        loop {
            let state = self.state.read();
            if state.is_loaded && !state.is_stale {
                let epoch = self.clock.lock().now();
                return Ok(f(&state.model, &self.store, epoch));
            }
            drop(state);
            self.refresh(&mut self.write())?;
        }
    }

    /// Keeps everybody from deciding, so that what is asked waits.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.deciding.lock()
    }

    /// Returns the epoch of an operation whose message has this one, if it may take the clock so far.
    fn after(&self, clock: Clock, received: u64, most: u64) -> Result<u64, Failure> {
        let leap = self.leaps.lock().open(Instant::now(), most);
        clock.after(received, leap).map_err(|_| overflow(received))
    }

    /// Takes the clock to the epoch of an operation.
    fn go_to(&self, epoch: u64, lease: u64) {
        let mut clock = self.clock.lock();
        self.leaps.lock().take(clock.now(), epoch);
        clock.go_to(epoch, lease);
    }

    fn view<'s>(
        &'s self,
        pending: &'s HashMap<String, Unit>,
        entries: &'s [Entry],
    ) -> StoreView<'s> {
        StoreView { store: &self.store, known: &self.known, pending, entries }
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Adds the log up, if that is not done.
    fn refresh(&self, state: &mut State) -> Result<(), Failure> {
        if state.is_loaded && !state.is_stale {
            return Ok(());
        }
        self.known.clear();
        let (model, stored) = self.store.load()?;
        state.model = model;
        let mut clock = self.clock.lock();
        // Epochs in answers already given stay valid: the clock does not go back behind them.
        let answered = clock.now();
        *clock = stored;
        if answered > clock.now() {
            let leased = clock.leased();
            clock.go_to(answered, leased);
        }
        (state.is_loaded, state.is_stale) = (true, false);
        Ok(())
    }

    /// Tells listeners of what is durable now. The state is held, so that all of them hear of it in the order of the log.
    fn tell(&self, state: &State, batch: &Batch) {
        if !self.pushes.are_heard() || state.model.subscriptions.is_empty() {
            return;
        }
        let tenant = &self.store.tenant;
        let pushes: Vec<Push> = batch
            .entries
            .iter()
            .flat_map(|entry| self.pushes.of(tenant, &state.model, entry, &batch.units))
            .collect();
        self.pushes.tell(&pushes);
    }
}

/// Returns true if the sender of a message is registered, and the caller may speak as it.
fn knows(model: &Model, envelope: &Envelope, who: &CallerRights) -> bool {
    model.agent(&envelope.agent_id).is_some_and(|agent| who.may_be(agent))
}

fn overflow(received: u64) -> Failure {
    let message = format!("epoch {received} takes the clock of the field too far for this hour");
    Failure::new(&EPOCH_OVERFLOW, message)
}

fn context<'a>(
    model: &'a Model,
    view: &'a StoreView<'a>,
    who: &'a CallerRights,
    envelope: &'a Envelope,
    epoch: u64,
    at: &'a str,
    is_busy: bool,
) -> OperationContext<'a> {
    OperationContext {
        model,
        contents: view,
        who,
        authority: who.authority_as(model.agent(&envelope.agent_id)),
        envelope,
        epoch,
        at,
        is_busy,
        deltas: Vec::new(),
        units: Vec::new(),
        description: String::new(),
    }
}

#[cfg(test)]
mod tests;
