//! A field: its state, and the one way in which it changes.
//!
//! Whoever changes something leaves it in a row. One of them decides about all that wait, in their order, writes what they change as one
//! transaction, and answers them once that is durable; the others go on to other work. So there are no two writers, many changes
//! share one flush, and nobody sees what a power cut could take back. What only reads shares the state with other readers.

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};

use crate::claims::KnownClaims;
use crate::clock::{Clock, LEAP, LEAP_OF_STRANGERS, Leaps};
use crate::envelope::Envelope;
use crate::failure::{self, EPOCH_OVERFLOW, Failure, INVALID_ENVELOPE, TOO_LARGE};
use crate::fingerprint;
use crate::log::{Delta, Entry, Read};
use crate::model::Model;
use crate::push::{Push, Pushes};
use crate::store::{Batch, Store, StoreView, message_key};
use crate::turn::{Done, Turn, Who};
use crate::types::Unit;
use crate::words::Operation;
use crate::work::{self, detect};

/// Most operations of one transaction.
const MOST_AT_ONCE: usize = 64;
/// Most bytes of their payloads.
const MOST_BYTES: usize = 256 << 10;
/// Bytes that the engine and the handles add to a record, at most.
const BESIDE: usize = 8 << 10;
/// The share of a transaction that is left to what comes after: one that has taken more is written as it is.
const FULL: usize = 4;
/// With more operations than these waiting, looking for conflicts is put off.
const BUSY: usize = 32;
/// Deferred units that are looked at between two transactions.
const DEFERRED_AT_ONCE: usize = 8;
/// Bytes of the payloads that wait, for one message may be as large as a payload of the daemon. More is refused.
const MOST_WAITING_BYTES: usize = 16 << 20;
/// The time after which a full row may have room again.
const PAUSE: Duration = Duration::from_secs(1);
/// Reads that wait for a change to be written with it.
const MOST_READS: usize = 64;
/// The name that the field has where it does something by itself.
const FIELD: &str = "field";

/// Takes the answer of an operation.
pub(crate) type Answered = Box<dyn FnOnce(Done) + Send>;

/// An operation that waits.
struct Waiting {
    envelope: Envelope,
    who: Who,
    answered: Answered,
    /// About the bytes that its payload takes.
    bytes: usize,
}

/// The operations that wait.
#[derive(Default)]
struct Row {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Row {
    /// Puts operations back before all others.
    fn put_back(&mut self, waiting: impl DoubleEndedIterator<Item = Waiting>) {
        for one in waiting.rev() {
            self.bytes = self.bytes.saturating_add(one.bytes);
            self.waiting.push_front(one);
        }
    }
}

/// The state.
#[derive(Default)]
struct State {
    model: Model,
    /// The store may know better: it is added up once more before anything else.
    is_stale: bool,
    is_loaded: bool,
}

/// The changes that are decided about together.
#[derive(Default)]
struct Deciding {
    batch: Batch,
    /// Units that are not written yet.
    pending: HashMap<String, Unit>,
    /// Bytes of its records.
    bytes: usize,
    /// The message of the last entry, which the model does not know yet.
    unapplied: Option<u128>,
    /// The model knows entries that are not written.
    is_ahead: bool,
}

impl Deciding {
    /// Tells the model of the last entry. That is put off until somebody needs it: where the store refuses the one operation
    /// that came alone, nothing must be taken back.
    fn apply(&mut self, model: &mut Model) {
        if let (Some(key), Some(entry)) = (self.unapplied.take(), self.batch.entries.last()) {
            model.apply(entry, Some(key), &mut |id| self.pending.get(id).cloned());
            self.is_ahead = true;
        }
    }
}

/// A field.
pub(crate) struct Field {
    store: Store,
    pushes: Pushes,
    state: RwLock<State>,
    clock: Mutex<Clock>,
    leaps: Mutex<Leaps>,
    known: KnownClaims,
    row: Mutex<Row>,
    /// Held by the one who decides.
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
    pub(crate) fn change(self: &Arc<Self>, envelope: Envelope, who: Who, answered: Answered) {
        let bytes = weight(&envelope.payload);
        let full = {
            let mut row = self.row.lock();
            // One alone is taken whatever its size: the transport has a bound of its own.
            if row.waiting.is_empty() || row.bytes.saturating_add(bytes) <= MOST_WAITING_BYTES {
                row.bytes = row.bytes.saturating_add(bytes);
                row.waiting.push_back(Waiting { envelope, who, answered, bytes });
                None
            } else {
                Some((answered, row.waiting.len()))
            }
        };
        if let Some((answered, count)) = full {
            let message =
                format!("{count} operations wait for the field, as many as it has room for");
            return answered(Err(Failure {
                retry_after: Some(PAUSE),
                ..Failure::new(&failure::BUSY, message)
            }));
        }
        // What was left while the one who decides was about to stop is met by its last look at the row.
        while !self.row.lock().waiting.is_empty() {
            let Some(_deciding) = self.deciding.try_lock() else { return };
            let waiting = self.row.lock().waiting.len();
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
            if field.row.lock().waiting.is_empty() {
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
                return !is_all_detected || !self.row.lock().waiting.is_empty();
            }
            let (batch, is_busy) = self.next_batch();
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
    pub(crate) fn read(&self, envelope: &Envelope, who: &Who) -> Done {
        loop {
            let state = self.state.read();
            if !state.is_loaded || state.is_stale {
                drop(state);
                self.refresh(&mut self.write())?;
                continue;
            }
            // What is refused takes the clock one further, whatever its epoch, and a stranger is refused.
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
            let mut turn = turn(&state.model, &view, who, envelope, epoch, &at, false);
            let done = work::work(&mut turn);
            debug_assert!(turn.deltas.is_empty() && turn.units.is_empty());
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
        // What was answered stays answered.
        let answered = clock.now();
        *clock = stored;
        if answered > clock.now() {
            let leased = clock.leased();
            clock.go_to(answered, leased);
        }
        (state.is_loaded, state.is_stale) = (true, false);
        Ok(())
    }

    /// Writes a lease ahead, so that reads go on.
    fn lease(&self, received: u64) -> Result<(), Failure> {
        let mut state = self.write();
        self.refresh(&mut state)?;
        let epoch = {
            let clock = self.clock.lock();
            let epoch = self.after(*clock, received, LEAP)?;
            if epoch < clock.leased() {
                return Ok(());
            }
            epoch
        };
        self.by_itself(&mut state, Operation::Attune, epoch, "a lease of epochs", Vec::new())
    }

    /// Writes an entry of the field's own.
    fn by_itself(
        &self,
        state: &mut State,
        operation: Operation,
        epoch: u64,
        description: &str,
        deltas: Vec<Delta>,
    ) -> Result<(), Failure> {
        let (at, _) = self.store.now();
        let lease = self.clock.lock().lease_for(epoch);
        let entry = Entry {
            epoch,
            previous: state.model.last,
            at,
            operation,
            agent_id: FIELD.to_owned(),
            authority: 0,
            caller: FIELD.to_owned(),
            message_id: format!("{FIELD}-{epoch}"),
            digest: String::new(),
            session_id: None,
            lease,
            description: description.to_owned(),
            deltas,
            status: 200,
            reply: "null".to_owned(),
        };
        let batch = Batch { entries: vec![entry], reads: self.take_reads(), ..Batch::default() };
        if let Err(failure) = self.store.commit(&batch, &state.model) {
            state.is_stale = !failure.is_refusal();
            return Err(failure);
        }
        batch.entries.iter().for_each(|entry| state.model.apply(entry, None, &mut |_| None));
        self.go_to(epoch, lease);
        self.tell(state, &batch);
        Ok(())
    }

    /// Takes the next operations out of the row.
    fn next_batch(&self) -> (Vec<Waiting>, bool) {
        let mut row = self.row.lock();
        let is_busy = row.waiting.len() > BUSY;
        let (mut count, mut bytes) = (0, 0);
        for waiting in row.waiting.iter().take(MOST_AT_ONCE) {
            if count > 0 && bytes + waiting.bytes > MOST_BYTES {
                break;
            }
            bytes += waiting.bytes;
            count += 1;
        }
        row.bytes = row.bytes.saturating_sub(bytes);
        (row.waiting.drain(..count).collect(), is_busy)
    }

    /// Decides about operations in their order, writes what they change, and returns the answers.
    fn decide(
        &self,
        state: &mut State,
        waiting: Vec<Waiting>,
        is_busy: bool,
    ) -> Vec<(Answered, Done)> {
        if let Err(failure) = self.refresh(state) {
            return waiting.into_iter().map(|one| (one.answered, Err(failure.clone()))).collect();
        }
        let leased = self.clock.lock().leased();
        let mut deciding = Deciding::default();
        // The answers, and if each stands for an entry.
        let mut answers: Vec<(Answered, Done, bool)> = Vec::new();
        let mut waiting = waiting.into_iter();
        while let Some(Waiting { envelope, who, answered, .. }) = waiting.next() {
            let before = deciding.batch.entries.len();
            let done = self.one(state, &envelope, &who, is_busy, &mut deciding);
            // One that was answered before stands for an entry as well, which may be of this batch.
            let is_new = deciding.batch.entries.len() > before;
            let is_written = is_new || done.as_ref().is_ok_and(|done| done.2);
            answers.push((answered, done.map(|(status, value, _)| (status, value)), is_written));
            if deciding.bytes > self.most_bytes() / FULL {
                // The rest goes first next time.
                self.row.lock().put_back(waiting.by_ref());
            }
        }
        if deciding.batch.entries.is_empty() {
            return answers.into_iter().map(|(answered, done, _)| (answered, done)).collect();
        }
        deciding.batch.reads = self.take_reads();
        let written = self.store.commit(&deciding.batch, &state.model);
        match &written {
            Err(failure) if failure.is_refusal() && !deciding.is_ahead => {
                self.clock.lock().lease_back(leased);
            }
            Err(_) => state.is_stale = true,
            Ok(()) => {
                deciding.apply(&mut state.model);
                let batch = &deciding.batch;
                let purged = batch.entries.iter().flat_map(|entry| &entry.deltas);
                let purged: Vec<String> = purged
                    .filter_map(|delta| match delta {
                        Delta::Purged { id, .. } => Some(id.clone()),
                        _ => None,
                    })
                    .collect();
                self.known.forget(&purged);
                if let Err(failure) = self.store.purge(&purged) {
                    // The tombstones are written; a start purges what is left.
                    tracing::warn!(
                        message = failure.message,
                        "purged units lie in the store still"
                    );
                }
                self.tell(state, batch);
            }
        }
        answers
            .into_iter()
            .map(|(answered, done, is_written)| match (&written, is_written) {
                (Err(failure), true) => (answered, Err(failure.clone())),
                _ => (answered, done),
            })
            .collect()
    }

    /// Decides about one operation. The answer says if it stands for an entry.
    fn one(
        &self,
        state: &mut State,
        envelope: &Envelope,
        who: &Who,
        is_busy: bool,
        deciding: &mut Deciding,
    ) -> Result<(u16, Value, bool), Failure> {
        deciding.apply(&mut state.model);
        let key = message_key(&envelope.agent_id, &envelope.id);
        let view = self.view(&deciding.pending, &deciding.batch.entries);
        if let Some(epoch) = state.model.messages.get(&key) {
            return answered_before(&view, *epoch, envelope, who);
        }
        let (epoch, lease) = {
            let clock = self.clock.lock();
            let is_known = knows(&state.model, envelope, who);
            let leap = if is_known { LEAP } else { LEAP_OF_STRANGERS };
            let epoch = self.after(*clock, envelope.epoch, leap)?;
            (epoch, clock.lease_for(epoch))
        };
        let (at, _) = self.store.now();
        let (done, authority, mut deltas, units, description) = {
            let mut turn = turn(&state.model, &view, who, envelope, epoch, &at, is_busy);
            let done = work::work(&mut turn);
            (done, turn.authority, turn.deltas, turn.units, turn.description)
        };
        self.note_unless(done.is_ok() && !deltas.is_empty(), envelope, epoch, &at, &done);
        let (status, reply) = done?;
        for delta in &mut deltas {
            if let Delta::Unit { id, digest } = delta
                && let Some(unit) = units.iter().find(|unit| unit.id == *id)
            {
                *digest = fingerprint::of_unit(unit);
            }
        }
        let is_leased = epoch < self.clock.lock().leased();
        if deltas.is_empty() && is_leased {
            self.go_to(epoch, lease);
            return Ok((status, reply, false));
        }
        let entry = Entry {
            epoch,
            previous: state.model.last,
            at,
            operation: envelope.operation,
            agent_id: envelope.agent_id.clone(),
            authority,
            caller: who.caller.clone(),
            message_id: envelope.id.clone(),
            digest: fingerprint::of_message(envelope),
            session_id: envelope.session_id.clone(),
            lease,
            description,
            deltas,
            status,
            reply: json::to_string(&reply),
        };
        let bytes = match self.measured(&entry, &units) {
            Ok(bytes) => bytes,
            Err(failure) => {
                self.note(envelope, epoch, &entry.at, &Err(failure.clone()));
                return Err(failure);
            }
        };
        deciding.bytes += bytes;
        deciding.pending.extend(units.iter().map(|unit| (unit.id.clone(), unit.clone())));
        deciding.batch.units.extend(units);
        deciding.batch.entries.push(entry);
        deciding.unapplied = Some(key);
        self.go_to(epoch, lease);
        Ok((status, reply, true))
    }

    /// Returns the bytes that one transaction may have.
    fn most_bytes(&self) -> usize {
        self.store.engine.settings().limits.max_payload_bytes
    }

    /// Returns the bytes of the records that an operation writes. An operation that the store would not take is refused here
    /// and alone: in the store it would take along all that are written with it.
    ///
    /// # Errors
    /// `TOO_LARGE`.
    fn measured(&self, entry: &Entry, units: &[Unit]) -> Result<usize, Failure> {
        let most = self.store.engine.settings().limits.max_resource_bytes;
        let mut all = 0;
        let what = entry.operation.as_str();
        let refused = |what: String, bytes: usize, limit: &str, most: usize| {
            let message = format!(
                "{what} would take {bytes} bytes, and {limit} is {most}; send shorter texts, or do less at once"
            );
            Failure::new(&TOO_LARGE, message)
        };
        for (id, bytes) in self.store.sizes(entry, units)? {
            all += bytes;
            let bytes = bytes + BESIDE;
            if bytes > most {
                let record = match id {
                    Some(id) => format!("the unit {id} of this {what}"),
                    None => format!("the entry of this {what} in the log"),
                };
                return Err(refused(record, bytes, "limits.max_resource_bytes", most));
            }
        }
        let most = self.most_bytes() - self.most_bytes() / FULL;
        if all > most {
            let what = format!("all records of this {what}");
            return Err(refused(what, all, "three quarters of limits.max_payload_bytes", most));
        }
        Ok(all)
    }

    /// Looks for the conflicts of units that were put off.
    fn detect_deferred(&self, state: &mut State) -> Result<(), Failure> {
        let ids: Vec<String> =
            state.model.deferred.iter().take(DEFERRED_AT_ONCE).cloned().collect();
        let clock = *self.clock.lock();
        let epoch = clock.after(0, LEAP).map_err(|_| overflow(0))?;
        let (at, _) = self.store.now();
        let who = Who {
            authority: 0,
            holder: String::new(),
            caller: FIELD.to_owned(),
            agents: Vec::new(),
            reads_robot: false,
            is_owner: false,
        };
        let envelope = Envelope {
            id: format!("{FIELD}-{epoch}"),
            operation: Operation::Detect,
            agent_id: FIELD.to_owned(),
            session_id: None,
            epoch,
            payload: Map::new(),
        };
        let (pending, entries) = (HashMap::new(), Vec::new());
        let view = self.view(&pending, &entries);
        let deltas = {
            let mut turn = turn(&state.model, &view, &who, &envelope, epoch, &at, false);
            for id in &ids {
                detect::of_stored(&mut turn, id, false)?;
            }
            turn.deltas.push(Delta::Detected { ids });
            turn.deltas
        };
        self.by_itself(state, Operation::Detect, epoch, "conflicts that were put off", deltas)
    }

    /// Notes an operation that is in no entry.
    fn note(&self, envelope: &Envelope, epoch: u64, at: &str, done: &Done) {
        let outcome = match done {
            Ok(_) => "ok".to_owned(),
            Err(failure) => failure.code.name.to_owned(),
        };
        let read = Read {
            epoch,
            at: at.to_owned(),
            operation: envelope.operation,
            agent_id: envelope.agent_id.clone(),
            outcome,
        };
        let mut reads = self.reads.lock();
        reads.push(read);
        if reads.len() >= MOST_READS {
            let batch = Batch { reads: std::mem::take(&mut *reads), ..Batch::default() };
            drop(reads);
            self.store.write_reads(&batch);
        }
    }

    fn note_unless(&self, is_entry: bool, envelope: &Envelope, epoch: u64, at: &str, done: &Done) {
        if !is_entry {
            self.note(envelope, epoch, at, done);
        }
    }

    fn take_reads(&self) -> Vec<Read> {
        std::mem::take(&mut *self.reads.lock())
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

impl Drop for Field {
    fn drop(&mut self) {
        let batch = Batch { reads: self.take_reads(), ..Batch::default() };
        if !batch.reads.is_empty() {
            self.store.write_reads(&batch);
        }
    }
}

/// Returns true if the sender of a message is registered, and the caller may speak as it.
fn knows(model: &Model, envelope: &Envelope, who: &Who) -> bool {
    model.agent(&envelope.agent_id).is_some_and(|agent| who.may_be(agent))
}

fn overflow(received: u64) -> Failure {
    let message = format!("epoch {received} takes the clock of the field too far for this hour");
    Failure::new(&EPOCH_OVERFLOW, message)
}

/// Returns about the bytes that a payload takes.
fn weight(payload: &Map) -> usize {
    fn of(value: &Value) -> usize {
        let inside: usize = match value {
            Value::Text(text) => text.len(),
            Value::Array(all) => all.iter().map(of).sum(),
            Value::Object(map) => weight(map),
            _ => 0,
        };
        size_of::<Value>() + inside
    }
    payload.iter().map(|(name, one)| name.len() + of(one)).sum()
}

/// Returns the first answer to a message that has come before.
fn answered_before(
    view: &StoreView<'_>,
    epoch: u64,
    envelope: &Envelope,
    who: &Who,
) -> Result<(u16, Value, bool), Failure> {
    use crate::turn::Contents as _;
    let entry = view.entry(epoch)?;
    let entry =
        entry.ok_or_else(|| Failure::internal(format!("entry {epoch} of the log is gone")))?;
    if entry.digest != fingerprint::of_message(envelope)
        || entry.caller != who.caller && !who.is_owner
    {
        let message = format!("message id {:?} was used for another message", envelope.id);
        return Err(Failure::new(&INVALID_ENVELOPE, message));
    }
    let reply = json::from_slice(entry.reply.as_bytes(), &Limits::default()).map_err(|error| {
        Failure::internal(format!("entry {epoch} of the log is damaged: {error}"))
    })?;
    Ok((entry.status, reply, true))
}

fn turn<'a>(
    model: &'a Model,
    view: &'a StoreView<'a>,
    who: &'a Who,
    envelope: &'a Envelope,
    epoch: u64,
    at: &'a str,
    is_busy: bool,
) -> Turn<'a> {
    Turn {
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
mod tests {
    use std::sync::mpsc;

    use omird_engine::testing::parts;
    use omird_engine::{Engine, Parts, Settings};

    use super::*;
    use crate::Akashik;

    fn somebody() -> Who {
        Who {
            authority: 4,
            holder: String::new(),
            caller: "somebody".to_owned(),
            agents: Vec::new(),
            reads_robot: false,
            is_owner: false,
        }
    }

    fn envelope(id: &str, operation: Operation, payload: &str) -> Envelope {
        let payload = json::from_slice(payload.as_bytes(), &Limits::default()).unwrap();
        Envelope {
            id: id.to_owned(),
            operation,
            agent_id: "a".to_owned(),
            session_id: None,
            epoch: 0,
            payload: payload.as_object().unwrap().clone(),
        }
    }

    /// Asks for changes that are decided about together.
    fn together(field: &Arc<Field>, messages: Vec<Envelope>) -> Vec<Done> {
        let deciding = field.hold();
        let told: Vec<mpsc::Receiver<Done>> = messages
            .into_iter()
            .map(|message| {
                let (tell, told) = mpsc::channel();
                field.change(message, somebody(), Box::new(move |done| tell.send(done).unwrap()));
                told
            })
            .collect();
        assert_eq!(field.row.lock().waiting.len(), told.len(), "all of them wait");
        drop(deciding);
        while field.decide_about(usize::MAX) {}
        told.into_iter().map(|told| told.recv().unwrap()).collect()
    }

    fn register() -> Envelope {
        envelope("m-1", Operation::Register, r#"{"id":"a","role":"r"}"#)
    }

    /// Returns a unit whose evidence alone takes so many texts of 16 KiB.
    fn record(id: &str, texts: usize) -> Envelope {
        let text = format!("\"{}\"", "x".repeat(16 << 10));
        let evidence = vec![text; texts].join(",");
        let payload = format!(
            r#"{{"type":"finding","content":"c","intent":{{"purpose":"p"}},"confidence":{{"score":0.9,"reasoning":"r","evidence":[{evidence}]}}}}"#
        );
        envelope(id, Operation::Record, &payload)
    }

    #[test]
    fn an_operation_that_is_too_large_is_refused_alone() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
        let field = Akashik::new(&engine).field(None);
        let task = |n: usize| {
            let text = "x".repeat(16 << 10);
            let payload = format!(
                r#"{{"action":"create","task":{{"title":"t","description":"{text}","assignee":"a"}}}}"#
            );
            envelope(&format!("t-{n}"), Operation::Coordinate, &payload)
        };
        let tasks = std::iter::once(register()).chain((0..65).map(task)).collect();
        assert!(together(&field, tasks).iter().all(Result::is_ok));
        // Whoever leaves gives all its tasks back, in one entry.
        let leave = envelope("m-3", Operation::Deregister, r#"{"agent_id":"a"}"#);
        let done = together(&field, vec![record("m-2", 1), leave, record("m-4", 1)]);
        assert!(done[0].is_ok() && done[2].is_ok(), "{done:?}");
        assert_eq!(done[1].as_ref().unwrap_err().code, &TOO_LARGE);
        assert!(!field.state.read().is_stale, "the log is not read again");
        // Many that fit alone are written, one transaction after the other.
        let many: Vec<Envelope> = (0..8).map(|n| record(&format!("n-{n}"), 50)).collect();
        assert!(together(&field, many).iter().all(Result::is_ok));
        let large = together(&field, vec![record("m-5", 65)]);
        assert_eq!(large[0].as_ref().unwrap_err().code, &TOO_LARGE);
        assert_eq!(field.state.read().model.units.len(), 10);
        engine.stop();
    }

    #[test]
    fn a_change_that_the_store_refuses_leaves_the_state_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { read_only: true, ..Settings::default() };
        let parts = Parts { settings, ..parts(dir.path()) };
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let field = Akashik::new(&engine).field(None);
        let done = together(&field, vec![register()]);
        assert!(done[0].is_err());
        let state = field.state.read();
        assert!(state.is_loaded && !state.is_stale, "the log is not read again");
        assert!(state.model.agents.is_empty());
        assert_eq!(field.clock.lock().leased(), 0, "no lease was written");
        engine.stop();
    }
}
