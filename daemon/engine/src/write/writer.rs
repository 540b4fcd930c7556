//! The one task that changes the store.
//!
//! It takes whatever waits in the queue as one group: plans each change, writes all their
//! transactions to the log, syncs once, moves the catalog, and only then hands the answers and the
//! announcements to the publisher. So one fdatasync acknowledges everything that waited for it.
//!
//! Invariants 1 and 2 of ARCHITECTURE.md.

mod accesses;
mod group;
mod hold;
mod log;
mod tasks;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::group::{Entry, Group, LoggedStep, Written, facts_of, grows, stamp_of};
use self::hold::Hold;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use omir_core::instant::Timestamp;
use omir_core::reference::ResourceType;
use omird_store::{FileId, Log, LogError, Op, RefKey, RwLock, Transaction};

use crate::card::health::{Part, State};
use crate::card::reserve;
use crate::contained::contain;
use crate::disk::Disk;
use crate::error::Error;
use crate::index::catalog::{Catalog, Staged};
use crate::index::doc::Location;
use crate::settings::{Durability, Settings};
use crate::shared::Shared;
use crate::write::command::{Change, Event, Receipt, Reply};
use crate::write::message::Message;
use crate::write::orders::{CompactionAnswer, CompactionScope, SealOrder};
use crate::write::plan::{NoPlan, Plan, PlannedStep, Planner, Step};
use crate::write::publisher::Delivery;
use crate::write::redate::Redating;
use omir_core::event::EventKind;

/// Most changes that one sync acknowledges.
const GROUP_CHANGES: usize = 1024;
/// Most log bytes that one sync acknowledges, where logs may be large.
const GROUP_BYTES: u64 = 4 << 20;
/// Interval between updates of the score bounds, by which recalls skip.
const BOUNDS_REFRESH: Duration = Duration::from_secs(600);
/// Sleep of the writer when nothing comes in.
const TICK: Duration = Duration::from_millis(100);
/// Sleep of the writer while it redates memories.
const BREATH: Duration = Duration::from_millis(1);

/// The writer's state.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) catalog: Arc<RwLock<Catalog>>,
    pub(crate) disk: Arc<dyn Disk>,
    /// As of the message that is dealt with: what a group promises is what it was written by.
    pub(crate) settings: Arc<Settings>,
    pub(crate) queue: Receiver<Message>,
    pub(crate) publisher: Sender<Delivery>,
    pub(crate) sealing: Sender<SealOrder>,
    pub(crate) log: OpenLog,
    pub(crate) next_seq: u64,
    pub(crate) touches: PendingTouches,
    pub(crate) last_mark: Instant,
    pub(crate) last_bounds_refresh: Instant,
    pub(crate) redating: Option<Redating>,
}

/// The log that is written on.
pub(crate) struct OpenLog {
    pub(crate) file: Log,
    /// The transaction it began with.
    pub(crate) first: u64,
    pub(crate) has_changes: bool,
    /// True if it holds anything but marks and this start: changes, access counts, or what an earlier
    /// start left in it.
    pub(crate) has_news: bool,
    /// True while it may be written on. A log whose sync failed may not.
    pub(crate) is_sound: bool,
    /// The time it was begun, as [`Unsealed::began`](omird_store::Unsealed::began).
    pub(crate) began: Timestamp,
    /// Mount generation of the data folder; a log of an earlier one is not written on.
    pub(crate) mount_generation: u64,
    pub(crate) last_sync: Instant,
    /// Time of the last look whether its name still leads to it.
    pub(crate) last_look: Instant,
    /// True if a new log is to be begun: this one had lost its name, and perhaps its witness.
    pub(crate) is_to_close: bool,
}

/// Access states that are counted and not journaled yet.
pub(crate) struct PendingTouches {
    pub(crate) records: HashMap<RefKey, String>,
    /// Relationships that were used.
    pub(crate) bonds: HashSet<RefKey>,
    pub(crate) last_flush: Instant,
}

impl Writer {
    /// Runs until every sender is gone, and all that was sent is dealt with.
    pub(crate) fn run(mut self) {
        let mut waiting: Option<Message> = None;
        self.resume_redating();
        loop {
            let message = match waiting.take() {
                Some(message) => Ok(message),
                None => self.queue.recv_timeout(if self.is_redating() { BREATH } else { TICK }),
            };
            self.settings = self.shared.settings();
            match message {
                Ok(Message::Change { change, bytes, reply }) => {
                    waiting = self.group((change, bytes, reply));
                }
                Ok(Message::Seal(done)) => self.seal_now(done),
                Ok(Message::Compact { scope, answer }) => self.compact(scope, answer),
                Ok(Message::Task(order)) => self.run_task(order),
                Ok(Message::Probe(alive)) => {
                    // The caller may not wait any more.
                    let _ = alive.send(());
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.housekeeping();
            if waiting.is_none()
                && let Some(batch) = self.redate()
            {
                waiting = self.group(batch);
            }
        }
        self.stop();
    }

    /// Commits a change with all that waits behind it; returns what has to come after the commit.
    fn group(&mut self, first: (Change, usize, Reply)) -> Option<Message> {
        // Before anything is staged: what was in the way may be gone by now.
        self.make_ready(grows(&first.0));
        if !grows(&first.0) {
            self.wait_for_free_space();
        }
        let most = GROUP_BYTES.min(reserve::group(self.settings.segment_bytes));
        let catalog = self.catalog.clone();
        let (now, at) = (self.shared.time.moment().now, self.shared.time.order());
        let mut planner = Planner::new(&catalog, self.settings.limits.max_resource_bytes, now);
        let mut group = Group::default();
        let mut later = None;
        let mut next = Some(first);
        while let Some((mut change, bytes, reply)) = next.take() {
            group.shrinks |= !grows(&change);
            let planned = match self.quota_refusal(&change) {
                Some(error) => Err(NoPlan::Refused(error)),
                None => planner.plan(&mut change),
            };
            let planned = match planned {
                Ok(plan) if grows(&change) => match self.space_refusal(&plan) {
                    // Later plans would build on this one, and it is not written.
                    Some(error) => {
                        group.weight += bytes;
                        group.refused.push((reply, error));
                        break;
                    }
                    None => Ok(plan),
                },
                planned => planned,
            };
            match planned {
                Ok(Plan { steps, effect, events }) => {
                    group.weight += bytes;
                    let written = self.stage(steps, at);
                    let permit =
                        if let Change::Merge(_, _, permit) = change { permit } else { None };
                    group.entries.push(Entry { effect, events, reply, permit, written });
                }
                Err(NoPlan::Refused(error)) => {
                    group.weight += bytes;
                    group.refused.push((reply, error));
                }
                Err(NoPlan::Later) => {
                    later = Some(Message::Change { change, bytes, reply });
                    break;
                }
            }
            let is_full = group.entries.len() >= GROUP_CHANGES || self.log.file.staged() >= most;
            if is_full {
                break;
            }
            match self.queue.try_recv() {
                Ok(Message::Change { change, bytes, reply }) => next = Some((change, bytes, reply)),
                Ok(other) => later = Some(other),
                Err(_) => {}
            }
        }
        self.commit(group, at);
        later
    }

    /// Puts the transaction of a plan into the group of the log, if the plan has steps.
    fn stage(&mut self, planned: Vec<PlannedStep>, at: Timestamp) -> Option<Written> {
        if planned.is_empty() {
            return None;
        }
        // The bytes are moved: a copy of a whole file would take as much memory again.
        let (ops, steps): (Vec<Op>, Vec<Step>) =
            planned.into_iter().map(|PlannedStep { op, step }| (op, step)).unzip();
        let transaction = Transaction { seq: self.next_seq, at, ops };
        self.next_seq += 1;
        let mut payload = Vec::new();
        let resource_offsets = transaction.encode(&mut payload);
        let log_offset = self.log.file.stage(&payload);
        self.log.file.attest(facts_of(&transaction, &steps));
        Some(Written { transaction, steps, log_offset, resource_offsets })
    }

    /// Stages a group again, whose writing failed, in the same order.
    fn stage_again(&mut self, entries: &mut [Entry]) {
        for entry in entries {
            let Some(written) = &mut entry.written else { continue };
            let mut payload = Vec::new();
            written.resource_offsets = written.transaction.encode(&mut payload);
            written.log_offset = self.log.file.stage(&payload);
            self.log.file.attest(facts_of(&written.transaction, &written.steps));
            self.next_seq = written.transaction.seq + 1;
        }
    }

    fn commit(&mut self, mut group: Group, at: Timestamp) {
        let first = group.entries.iter().find_map(|entry| entry.written.as_ref());
        let first = first.map(|written| written.transaction.seq);
        let mut outcome = first.map_or(Ok(()), |first| self.write(first));
        if let Some(first) = first
            && outcome.is_err()
            && group.shrinks
            && self.log_fault() == Some(State::Full)
        {
            // Also where it is lent, and comes back: then room was made.
            if self.shared.free_space.reserve().give_up() {
                tracing::warn!("the reserve is given up, so that what is forgotten can be noted");
            }
            if self.log.is_sound || self.begin_log() {
                self.stage_again(&mut group.entries);
                outcome = self.write(first);
            }
        }
        let has_writes = outcome.is_ok() && first.is_some();
        self.shared.queue.bytes.fetch_sub(group.weight, Ordering::AcqRel);
        let mut delivery = Delivery::default();
        match outcome {
            Ok(()) => {
                let durable = self.settings.durability == Durability::Sync;
                let replies = self.apply(group.entries, durable, &mut delivery.events);
                if has_writes {
                    self.shared.time.advance(at);
                    self.log.has_changes = true;
                    self.log.has_news = true;
                }
                delivery.replies = replies;
            }
            Err(error) => {
                for entry in group.entries {
                    delivery.replies.push((entry.reply, Err(error.clone())));
                }
            }
        }
        delivery
            .replies
            .extend(group.refused.into_iter().map(|(reply, error)| (reply, Err(error))));
        self.shared.queue.committed.fetch_add(delivery.replies.len() as u64, Ordering::AcqRel);
        // The publisher only goes away after the writer, unless a bug ended it: then the engine is broken, and what
        // is dropped here unanswered is durable all the same.
        let _ = self.publisher.send(delivery);
    }

    /// Moves the catalog to what was written. All of a transaction becomes visible at once. A reader waits for one turn of
    /// [`Hold`] at most, and for the moment in which a transaction enters.
    fn apply(
        &mut self,
        entries: Vec<Entry>,
        durable: bool,
        events: &mut Vec<Event>,
    ) -> Vec<(Reply, Result<Receipt, Error>)> {
        let lock = self.catalog.clone();
        // A change that writes nothing gets the number of the transaction before it.
        let first = entries.iter().find_map(|entry| entry.written.as_ref());
        let next = first.map_or(self.next_seq, |written| written.transaction.seq);
        let mut seq = next.saturating_sub(1);
        let mut replies = Vec::with_capacity(entries.len());
        let mut plans = Vec::with_capacity(entries.len());
        for Entry { effect, events: mut announced, reply, permit, written } in entries {
            let steps = written.map(|written| {
                seq = written.transaction.seq;
                self.logged_steps(written)
            });
            let receipt = Receipt { effect, durable, seq };
            replies.push((reply, Ok(receipt)));
            announced.iter_mut().for_each(|event| event.seq = seq);
            plans.push((announced, steps, permit));
        }
        let mut hold = Hold::new(&lock);
        let mut entered = Vec::with_capacity(plans.len());
        for (_, steps, _) in &mut plans {
            if let Some(steps) = steps.take() {
                entered.push(self.enter(&mut hold, steps));
            }
        }
        drop(hold);
        if !entered.is_empty() {
            let is_carried = |step: &Staged| match step {
                Staged::Put { facts, .. } => facts.class.carries_vector(),
                Staged::Forget { .. } => false,
            };
            self.shared.vectors.recorded(entered.iter().flatten().any(is_carried));
        }
        for event in plans.iter().flat_map(|(events, ..)| events) {
            let key = RefKey::of(&event.target);
            match &event.cause {
                Some(cause) if event.kind == EventKind::Forgotten => {
                    self.shared.deletion_causes.note(key, cause.reason.clone());
                }
                _ => self.shared.deletion_causes.drop(&key),
            }
        }
        events.extend(plans.into_iter().flat_map(|(events, ..)| events));
        replies
    }

    /// The steps of a transaction, as they are in the log. The bytes of its operations are not needed any more.
    fn logged_steps(&self, written: Written) -> Vec<LoggedStep> {
        let Written { transaction, steps, log_offset, resource_offsets } = written;
        for op in &transaction.ops {
            if let Op::Put { resource, .. } = op {
                self.shared.time.count_waiting(resource);
                let len = resource.len() as u64;
                self.shared.odometer.payload.fetch_add(len, Ordering::Relaxed);
            }
        }
        let steps = steps.into_iter().zip(resource_offsets).enumerate();
        steps
            .map(|(ordinal, (step, within))| {
                let stamp = stamp_of(&transaction, ordinal, &step);
                let offset = log_offset + within.unwrap_or(0) as u64;
                LoggedStep { step, stamp, offset: u32::try_from(offset).unwrap_or(u32::MAX) }
            })
            .collect()
    }

    /// Brings one transaction into the catalog: step by step where no reader sees it, then all of it at once. What it
    /// gives is not needed any more, and is large: it is to be dropped when the catalog is not held.
    fn enter(&mut self, hold: &mut Hold<'_>, steps: Vec<LoggedStep>) -> Vec<Staged> {
        let dated = self.shared.time.moment().now.as_micros();
        let file = FileId::log(self.log.file.number());
        let mut staged = Vec::with_capacity(steps.len());
        for LoggedStep { step, stamp, offset } in steps {
            let catalog = hold.catalog();
            staged.push(match step {
                Step::Put { facts, terms, superseded, len, crc, .. } => {
                    let location = Location { file, offset, len, crc };
                    catalog.stage(facts, &terms, superseded.as_ref(), stamp, location)
                }
                Step::Forget { key, by, terms, .. } => {
                    catalog.stage_forget(key, terms.as_ref(), stamp, by)
                }
            });
        }
        let catalog = hold.catalog();
        for step in &staged {
            catalog.enter_staged(step);
            match step {
                Staged::Put { facts, .. } => {
                    // Mentioned together: what joins them is active.
                    if facts.class.resource_type() == ResourceType::MemoryRecord {
                        let bonds = catalog.activate(&facts.mentions, dated);
                        self.touches.bonds.extend(bonds);
                    }
                    self.touches.records.remove(&facts.key);
                }
                Staged::Forget { key, .. } => {
                    self.touches.records.remove(key);
                }
            }
        }
        staged
    }

    /// Work between groups: accesses, interval syncs, full or old logs.
    fn housekeeping(&mut self) {
        self.keep_time();
        self.take_touches();
        if self.last_bounds_refresh.elapsed() >= BOUNDS_REFRESH {
            self.last_bounds_refresh = Instant::now();
            let (now, _) = self.shared.now();
            let mut catalog = self.catalog.write();
            catalog.refresh_score_bounds(now.as_micros());
        }
        self.shared.faults.read_again(&*self.disk);
        // Not with every group and every tick: an attempt that fails writes to the card as well.
        let fault = self.log_fault();
        let may_try = fault.is_none() || self.shared.faults.is_due(Part::Log);
        if fault.is_some() && may_try {
            self.try_again();
        }
        if !self.log.is_sound {
            return;
        }
        if may_try {
            self.look_after_log_name();
        }
        if let Durability::Interval(every) = self.settings.durability
            && self.log.file.is_dirty()
            && self.log.last_sync.elapsed() >= every
        {
            self.log.last_sync = Instant::now();
            if let Err(error) = self.log.file.sync() {
                self.refuse(error);
            }
        }
        if self.touches.last_flush.elapsed() >= self.settings.touch_interval
            && self.shared.odometer.may_write_unasked()
        {
            self.flush_touches();
        }
        if self.last_mark.elapsed() >= self.settings.mark_interval {
            self.note(Vec::new());
        }
        if self.log.has_changes
            && self.shared.free_space.is_log_to_close.swap(false, Ordering::AcqRel)
        {
            self.rotate();
        }
        if may_try && self.log.is_to_close {
            self.rotate();
        }
        if may_try && self.is_log_due() {
            self.let_sealing_catch_up();
            self.rotate();
        }
    }

    /// Hands a compaction on. What was forgotten may be in the log, so that is sealed first.
    fn compact(&mut self, scope: CompactionScope, answer: CompactionAnswer) {
        self.take_touches();
        let is_in_log =
            self.log.has_changes || !self.touches.records.is_empty() || !self.log.is_sound;
        if scope != CompactionScope::Due && is_in_log && !self.rotate() {
            // STORAGE_FULL where that is why; else what the disk said.
            let refused = Err(self.shared.faults.refusal());
            return contain("a listener that was refused a compaction", || answer(refused));
        }
        // The sealing thread only goes away after the writer.
        let _ = self.sealing.send(SealOrder::Compact(scope, answer));
    }

    /// Sends everything acknowledged so far to be sealed; the sealing thread says when it is done.
    fn seal_now(&mut self, done: Sender<Result<(), Error>>) {
        self.take_touches();
        if self.log.has_news || !self.touches.records.is_empty() {
            if self.settings.read_only {
                let refusal = Error::read_only();
                let message = format!("{}, and its log is not sealed", refusal.message);
                let _ = done.send(Err(Error { message, ..refusal }));
                return;
            }
            let before = self.log.file.number();
            self.rotate();
            if self.log.file.number() == before {
                let message = "no new log could be begun; see the daemon's log";
                let refusal = self.shared.faults.refusal();
                let _ = done.send(Err(Error { message: message.to_owned(), ..refusal }));
                return;
            }
        }
        let _ = self.sealing.send(SealOrder::Report(done));
    }

    fn stop(mut self) {
        self.keep_time();
        self.take_touches();
        // A store that has no segment yet leaves one, so that an operator who takes the card out finds a file that
        // any CBOR reader opens. After that the log stays a log: what is durable need not be written a
        // second time for every stop.
        let is_first = self.shared.sealed.segments.load(Ordering::Relaxed) == 0;
        if !(is_first && self.log.has_changes && !self.settings.read_only && self.rotate()) {
            let touches = self.drain_touches();
            self.note(touches);
            let synced = if self.log.file.is_dirty() { self.log.file.sync() } else { Ok(()) };
            match synced {
                Ok(()) if self.log.is_sound => self.log.file.close(self.next_seq.saturating_sub(1)),
                Ok(()) => {}
                Err(LogError::Broken(error) | LogError::Refused(error)) => {
                    tracing::error!(%error, "the last sync failed");
                }
            }
        }
        let _ = self.sealing.send(SealOrder::Stop);
    }
}
