//! The one task that changes the store.
//!
//! It takes whatever waits in the queue as one group: plans each change, writes all their
//! transactions to the log, syncs once, moves the catalog, and only then hands the answers and the
//! announcements to the publisher. So one fdatasync acknowledges everything that waited for it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use omir_core::instant::Timestamp;
use omir_core::reference::ResourceType;

use super::command::{Change, Event, EventKind, Receipt, Reply};
use super::compaction::{Answer, Scope};
use super::health::{Part, State};
use super::plan::{NoPlan, Plan, Planner, Step};
use super::publisher::Delivery;
use super::reserve::Reserve;
use super::sealing::{self, Closed, SealOrder, Sealed};
use super::settings::{Durability, Settings};
use super::settle::Settling;
use super::shared::{Access, Shared};
use crate::disk::Disk;
use crate::error::{Code, Error};
use crate::index::catalog::Catalog;
use crate::index::doc::{self, DocId, Location, Stamp};
use crate::index::key::RefKey;
use crate::store::read::Handle;
use crate::store::recovery::Unsealed;
use crate::store::sealer::log_file;
use crate::store::transaction::{Op, Touch, Transaction};
use crate::store::wal::{Log, LogError};
use crate::sync::RwLock;

/// Most changes that one sync acknowledges.
const GROUP_CHANGES: usize = 1024;
/// Most log bytes that one sync acknowledges.
const GROUP_BYTES: u64 = 4 << 20;
/// How often it is worked out anew how far everything has faded, for recalls to skip by.
const GLANCE: Duration = Duration::from_secs(600);
/// A log beyond this is not written on: positions in it have 32 bits. It is sealed long before,
/// unless no new log could be begun all that time.
const LOG_CEILING: u64 = 2 << 30;
/// How long the writer sleeps when nothing comes in.
const TICK: Duration = Duration::from_millis(100);
/// How long it sleeps while it dates memories anew.
const BREATH: Duration = Duration::from_millis(1);
/// A full log waits while more than so many before it wait to be sealed: each of them is replayed
/// after a cut, which takes many times longer than reading a segment's block.
const MOST_BEHIND: usize = 2;
/// So many logs span the time after which the oldest is sealed.
const LOGS: u32 = 4;
/// A log that holds changes is sealed after so long where the store takes more of the card than it may.
const WHEN_SHORT: Duration = Duration::from_secs(3600);
/// But no longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A message to the writer.
pub enum Message {
    /// A change, its size in the queue, and where the answer goes.
    Change {
        /// What to do.
        change: Change,
        /// What it weighs against the bound on queued bytes.
        bytes: usize,
        /// Where the answer goes.
        reply: Reply,
    },
    /// Seal all that was acknowledged before, and say so once it is done.
    Seal(Sender<Sealed>),
    /// Compact segments.
    Compact {
        /// Which.
        scope: Scope,
        /// Where the answer goes.
        answer: Answer,
    },
    /// Something that is otherwise done at intervals.
    Chore(super::chore::Asked),
}

/// The writer's state.
pub struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) catalog: Arc<RwLock<Catalog>>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) settings: Settings,
    pub(super) queue: Receiver<Message>,
    pub(super) publisher: Sender<Delivery>,
    pub(super) sealing: Sender<SealOrder>,
    pub(super) log: Log,
    pub(super) log_first: u64,
    pub(super) log_has_changes: bool,
    /// Whether the log holds anything but marks and this start: changes, access counts, or what an
    /// earlier start left in it.
    pub(super) log_has_news: bool,
    /// Whether the log may be written on. A log whose sync failed may not.
    pub(super) log_is_sound: bool,
    /// When the log was begun, as [`Unsealed::began`].
    pub(super) log_began: Timestamp,
    /// What is given up for forgetting on a full disk.
    pub(super) reserve: Reserve,
    /// How often the data folder has come back; a log from before is not written on.
    pub(super) mounting: u64,
    pub(super) next_seq: u64,
    pub(super) last_sync: Instant,
    pub(super) touched: HashMap<RefKey, String>,
    /// Relationships whose use is not journaled yet.
    pub(super) touched_bonds: HashSet<RefKey>,
    pub(super) last_touch_flush: Instant,
    pub(super) last_mark: Instant,
    pub(super) last_glance: Instant,
    pub(super) settling: Option<Settling>,
}

/// A group of changes on its way.
#[derive(Default)]
struct Group {
    entries: Vec<Entry>,
    refused: Vec<(Reply, Error)>,
    weight: usize,
    /// Whether a change is among them that must be possible on a full disk.
    shrinks: bool,
}

/// Whether a change brings something new. What does not, such as forgetting, must be possible on a
/// full disk too.
fn grows(change: &Change) -> bool {
    matches!(change, Change::Remember(_) | Change::Merge(..))
}

struct Entry {
    plan: Plan,
    reply: Reply,
    /// The transaction and where its payload lies in the log; none if there is nothing to write.
    written: Option<(Transaction, u64, Vec<Option<usize>>)>,
}

impl Writer {
    /// Runs until every sender is gone, and all that was sent is dealt with.
    pub fn run(mut self) {
        let mut waiting: Option<Message> = None;
        self.go_on_settling();
        loop {
            let message = match waiting.take() {
                Some(message) => Ok(message),
                None => self.queue.recv_timeout(if self.is_settling() { BREATH } else { TICK }),
            };
            match message {
                Ok(Message::Change { change, bytes, reply }) => {
                    waiting = self.group((change, bytes, reply));
                }
                Ok(Message::Seal(done)) => self.seal_now(done),
                Ok(Message::Compact { scope, answer }) => self.compact(scope, answer),
                Ok(Message::Chore(asked)) => self.attend(asked),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.housekeeping();
            if waiting.is_none()
                && let Some(batch) = self.settle()
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
        let catalog = self.catalog.clone();
        let (now, at) = (self.shared.time.moment().now, self.shared.time.order());
        let mut planner = Planner::new(&catalog, self.settings.limits.max_resource_bytes, now);
        let mut group = Group::default();
        let mut later = None;
        let mut next = Some(first);
        while let Some((mut change, bytes, reply)) = next.take() {
            group.shrinks |= !grows(&change);
            let planned = match self.no_room(&change) {
                Some(error) => Err(NoPlan::Refused(error)),
                None => planner.plan(&mut change, now),
            };
            match planned {
                Ok(mut plan) => {
                    group.weight += bytes;
                    let written = self.stage(&mut plan, at);
                    group.entries.push(Entry { plan, reply, written });
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
            let is_full = group.entries.len() >= GROUP_CHANGES || self.log.staged() >= GROUP_BYTES;
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

    /// Puts a plan's transaction into the group of the log; its operations are in what is returned.
    fn stage(
        &mut self,
        plan: &mut Plan,
        at: Timestamp,
    ) -> Option<(Transaction, u64, Vec<Option<usize>>)> {
        if plan.ops.is_empty() {
            return None;
        }
        // Taken, not copied: of a whole file that would be as much again.
        let ops = std::mem::take(&mut plan.ops);
        let transaction = Transaction { seq: self.next_seq, at, ops };
        self.next_seq += 1;
        let mut payload = Vec::new();
        let places = transaction.encode(&mut payload);
        let at = self.log.stage(&payload);
        Some((transaction, at, places))
    }

    /// Deals with what is known to be the matter with the disk: a data folder that came back, a log
    /// that is in doubt, a reserve that lacks.
    fn make_ready(&mut self, grows: bool) {
        match self.disk.mounting() {
            Ok(mounting) if mounting != self.mounting => {
                tracing::info!("the data folder is back; a new log is begun");
                self.mounting = mounting;
                self.log_is_sound = false;
            }
            _ => {}
        }
        if !self.log_is_sound
            && !self.begin_log()
            && !grows
            && self.log_trouble() == Some(State::Full)
            && self.reserve.give_up(&*self.disk)
        {
            self.begin_log();
        }
        self.tend_reserve();
    }

    /// Makes the reserve again, if it was given up and there is room.
    fn tend_reserve(&mut self) {
        if self.reserve.lacks()
            && self.log_is_sound
            && self.reserve.has_room(&*self.disk)
            && let Err(error) = self.reserve.keep(&*self.disk)
        {
            self.shared.trouble(&*self.disk, Part::Log, &error);
        }
    }

    fn log_trouble(&self) -> Option<State> {
        self.shared.health().of(Part::Log).map(|trouble| trouble.state)
    }

    /// Notes that the disk takes what is new. With the reserve given up it is full all the same.
    fn note_success(&self) {
        if !self.reserve.lacks() || self.log_trouble() != Some(State::Full) {
            self.shared.well(Part::Log);
        }
    }

    /// Why a change is not even tried: what is left of a full disk is for forgetting.
    fn no_room(&self, change: &Change) -> Option<Error> {
        if !grows(change) {
            return None;
        }
        if self.reserve.lacks() && self.log_trouble() == Some(State::Full) {
            return Some(self.shared.refusal());
        }
        self.shared.pressure().refusal(self.shared.can_free.load(Ordering::Relaxed))
    }

    /// Stages a group again, whose writing failed, in the same order.
    fn stage_again(&mut self, entries: &mut [Entry]) {
        for (transaction, at, places) in entries.iter_mut().filter_map(|e| e.written.as_mut()) {
            let mut payload = Vec::new();
            *places = transaction.encode(&mut payload);
            *at = self.log.stage(&payload);
            self.next_seq = transaction.seq + 1;
        }
    }

    fn commit(&mut self, mut group: Group, at: Timestamp) {
        let first = group.entries.iter().find_map(|entry| entry.written.as_ref());
        let first = first.map(|(transaction, ..)| transaction.seq);
        let mut outcome = first.map_or(Ok(()), |first| self.write(first));
        if let Some(first) = first
            && outcome.is_err()
            && group.shrinks
            && self.log_trouble() == Some(State::Full)
            && self.reserve.give_up(&*self.disk)
        {
            tracing::warn!("the reserve is given up, so that what is forgotten can be noted");
            if self.log_is_sound || self.begin_log() {
                self.stage_again(&mut group.entries);
                outcome = self.write(first);
            }
        }
        let has_writes = outcome.is_ok() && first.is_some();
        self.shared.queued_bytes.fetch_sub(group.weight, Ordering::AcqRel);
        let mut delivery = Delivery::default();
        match outcome {
            Ok(()) => {
                let durable = self.settings.durability == Durability::Sync;
                let replies = self.apply(group.entries, durable, &mut delivery.events);
                if has_writes {
                    self.shared.time.advance(at);
                    self.log_has_changes = true;
                    self.log_has_news = true;
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
        self.shared.committed.fetch_add(delivery.replies.len() as u64, Ordering::AcqRel);
        // The publisher only goes away after the writer.
        let _ = self.publisher.send(delivery);
    }

    /// Moves the catalog to what was written. All of a group becomes visible at once.
    fn apply(
        &mut self,
        entries: Vec<Entry>,
        durable: bool,
        events: &mut Vec<Event>,
    ) -> Vec<(Reply, Result<Receipt, Error>)> {
        let file = log_file(self.log.number());
        let dated = self.shared.time.moment().now.as_micros();
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        let mut seq = self.next_seq.saturating_sub(1);
        let mut replies = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some((transaction, at, places)) = entry.written {
                seq = transaction.seq;
                let steps = entry.plan.steps.into_iter().zip(transaction.ops).zip(places);
                for (ordinal, ((step, op), place)) in steps.enumerate() {
                    let stamp = |version| Stamp {
                        seq: transaction.seq,
                        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                        version,
                        recorded: transaction.at.as_micros(),
                    };
                    match (step, op) {
                        (Step::Put { facts, terms, superseded }, Op::Put { version, resource }) => {
                            let offset = at + place.unwrap_or(0) as u64;
                            let location = Location {
                                file,
                                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                                len: u32::try_from(resource.len()).unwrap_or(u32::MAX),
                                crc: crc32fast::hash(&resource),
                            };
                            let superseded = superseded.as_ref();
                            catalog.put(&facts, &terms, superseded, stamp(version), location);
                            // Mentioned together: what joins them is active.
                            if facts.class.resource_type() == ResourceType::MemoryRecord {
                                let bonds = catalog.activate(&facts.mentions, dated);
                                self.touched_bonds.extend(bonds);
                            }
                            let len = u64::from(location.len);
                            self.shared.time.count_waiting(&resource);
                            self.shared.payload.fetch_add(len, Ordering::Relaxed);
                            self.touched.remove(&facts.key);
                        }
                        (Step::Forget { key, by, terms }, Op::Forget { version, .. }) => {
                            catalog.forget(&key, terms.as_ref(), stamp(version), by);
                            self.touched.remove(&key);
                        }
                        _ => unreachable!("a plan has one step for each op"),
                    }
                }
            }
            for event in &entry.plan.events {
                let key = RefKey::of(&event.target);
                match &event.cause {
                    Some(cause) if event.kind == EventKind::Forgotten => {
                        self.shared.farewells.note(key, cause.reason.clone());
                    }
                    _ => self.shared.farewells.drop(&key),
                }
            }
            events.extend(entry.plan.events);
            let receipt = Receipt { effect: entry.plan.effect, durable, seq };
            replies.push((entry.reply, Ok(receipt)));
        }
        replies
    }

    /// Writes what is staged, beginning with transaction `first`, and makes it as durable as the
    /// settings promise. On failure the numbers from `first` on are free again.
    fn write(&mut self, first: u64) -> Result<(), Error> {
        if !self.log_is_sound {
            self.log.discard();
            self.next_seq = first;
            return Err(self.shared.refusal());
        }
        // An open file can be written to after its folder was unmounted; what is acknowledged must
        // be there for the next start.
        if let Err(error) = self.disk.mounting() {
            self.log.discard();
            self.next_seq = first;
            self.shared.trouble(&*self.disk, Part::Log, &error);
            return Err(self.shared.refusal());
        }
        if self.log.len() > LOG_CEILING {
            self.log.discard();
            self.next_seq = first;
            self.begin_log();
            return Err(Error::new(
                Code::Internal,
                "the log has grown too long and no new one could be begun; see the daemon's log",
            ));
        }
        let written = self.log.write().and_then(|_| match self.settings.durability {
            Durability::Sync => self.log.sync(),
            Durability::Interval(_) | Durability::None => Ok(()),
        });
        match written {
            Ok(()) => {
                self.note_success();
                Ok(())
            }
            Err(error) => {
                self.next_seq = first;
                Err(self.refuse(error))
            }
        }
    }

    /// Says why a group was not written, and leaves a log behind that must not be used again.
    fn refuse(&mut self, error: LogError) -> Error {
        let (error, is_broken) = match error {
            LogError::Refused(error) => (error, false),
            LogError::Broken(error) => (error, true),
        };
        self.shared.trouble(&*self.disk, Part::Log, &error);
        let refusal = self.shared.refusal();
        if is_broken {
            self.log_is_sound = false;
            self.begin_log();
        }
        refusal
    }

    /// Begins a new log and sends the old one to be sealed. On failure the old one stays.
    fn begin_log(&mut self) -> bool {
        match Log::create(&*self.disk, self.log.number() + 1, self.next_seq) {
            Ok(log) => {
                let old = std::mem::replace(&mut self.log, log);
                let at = self.shared.time.order();
                let unsealed = Unsealed {
                    log: old.number(),
                    end: old.synced(),
                    durable: old.synced(),
                    first: self.log_first,
                    began: self.log_began,
                    is_sound: true,
                };
                let closed = Closed { log: unsealed, at };
                self.catalog
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add_log(log_file(self.log.number()), self.log.file());
                self.log_first = self.next_seq;
                self.log_has_changes = false;
                self.log_has_news = false;
                self.log_is_sound = true;
                self.log_began = self.shared.time.history();
                if old.exists() {
                    let _ = self.sealing.send(SealOrder::Seal(vec![closed]));
                }
                self.note_success();
                true
            }
            Err(error) => {
                tracing::debug!(%error, "no new log could be begun");
                self.shared.trouble(&*self.disk, Part::Log, &error);
                false
            }
        }
    }

    /// What is due between groups: accesses, interval syncs, full or old logs.
    fn housekeeping(&mut self) {
        self.keep_time();
        self.take_touches();
        if self.last_glance.elapsed() >= GLANCE {
            self.last_glance = Instant::now();
            let (now, _) = self.shared.now();
            let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
            catalog.refresh_glances(now.as_micros());
        }
        self.shared.read_again(&*self.disk);
        // Not with every group and every tick: an attempt that fails writes to the card as well.
        let trouble = self.log_trouble();
        let may_try = trouble.is_none() || self.shared.is_due(Part::Log);
        if trouble.is_some() && may_try {
            self.try_again();
        }
        if !self.log_is_sound {
            return;
        }
        if let Durability::Interval(every) = self.settings.durability
            && self.log.is_dirty()
            && self.last_sync.elapsed() >= every
        {
            self.last_sync = Instant::now();
            if let Err(error) = self.log.sync() {
                self.refuse(error);
            }
        }
        if self.last_touch_flush.elapsed() >= self.settings.touch_interval
            && self.shared.may_write_unasked()
        {
            self.flush_touches();
        }
        if self.last_mark.elapsed() >= self.settings.mark_interval {
            self.note(Vec::new());
        }
        if may_try && self.is_log_due() {
            self.let_sealing_catch_up();
            self.rotate();
        }
    }

    /// Whether a new log is to be begun: this one is full, or spans so much time that a part of what is
    /// not sealed should be sealed without the rest, or what is dead in it takes room that is short.
    pub(super) fn is_log_due(&self) -> bool {
        let Settings { segment_bytes, seal_after, purge_after, .. } = self.settings;
        if self.log.len() >= segment_bytes {
            return true;
        }
        if !self.log_has_changes {
            return false;
        }
        let age = sealing::age(self.log_began, self.shared.time.history());
        let is_short = || self.shared.pressure().bytes_to_free() > 0;
        let is_older = |than: Duration| age >= than;
        is_older(seal_after.min(purge_after) / LOGS) || (is_older(WHEN_SHORT) && is_short())
    }

    /// Waits while sealing falls behind, unless it fails: then nothing waits for it.
    fn let_sealing_catch_up(&self) {
        let began = Instant::now();
        while self.sealing.len() > MOST_BEHIND
            && self.shared.may_seal()
            && began.elapsed() < LONGEST_WAIT
        {
            std::thread::sleep(BREATH);
        }
    }

    /// Tries whether the disk works again, with nobody asking.
    fn try_again(&mut self) {
        self.make_ready(true);
        if self.log_is_sound && self.log_trouble().is_some() {
            if self.reserve.has_room(&*self.disk) {
                self.note(Vec::new());
            } else {
                let full = std::io::ErrorKind::StorageFull.into();
                self.shared.trouble(&*self.disk, Part::Log, &full);
            }
        }
    }

    pub(super) fn rotate(&mut self) -> bool {
        let touches = self.drain_touches();
        self.note(touches);
        if self.log.is_dirty()
            && let Err(error) = self.log.sync()
        {
            self.refuse(error);
            return false;
        }
        self.begin_log()
    }

    /// Hands a compaction on. What was forgotten may be in the log, so that is sealed first.
    fn compact(&mut self, scope: Scope, answer: Answer) {
        self.take_touches();
        let is_in_log = self.log_has_changes || !self.touched.is_empty() || !self.log_is_sound;
        if scope != Scope::Due && is_in_log && !self.rotate() {
            let message = "no new log could be begun, so the one there is cannot be sealed; see the \
                           daemon's log";
            return answer(Err(Error::new(Code::Internal, message)));
        }
        // The sealing thread only goes away after the writer.
        let _ = self.sealing.send(SealOrder::Compact(scope, answer));
    }

    /// Sends everything acknowledged so far to be sealed; the sealing thread says when it is done.
    fn seal_now(&mut self, done: Sender<Sealed>) {
        self.take_touches();
        if self.log_has_news || !self.touched.is_empty() {
            if self.settings.read_only {
                let why = "this daemon is configured read-only (access.read_only), and its log is \
                           not sealed";
                let _ = done.send(Err(why.to_owned()));
                return;
            }
            let before = self.log.number();
            self.rotate();
            if self.log.number() == before {
                let why = "no new log could be begun; see the daemon's log";
                let _ = done.send(Err(why.to_owned()));
                return;
            }
        }
        let _ = self.sealing.send(SealOrder::Report(done));
    }

    /// Counts the accesses of recalls into the catalog. Nothing is written: see `flush_touches`.
    pub(super) fn take_touches(&mut self) {
        let Some(offset) = self.shared.time.settled_offset() else { return };
        let accesses: Vec<Access> = self.shared.take_accesses();
        if accesses.is_empty() {
            return;
        }
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        for Access { key, target, at, mentions } in accesses {
            let at = at.saturating_add(offset);
            self.touched_bonds.extend(catalog.activate(&mentions, at));
            let Some(access) = catalog.live(&key).and_then(|id| catalog.access(id)) else {
                continue;
            };
            catalog.touch(&key, doc::accessed(&access, at));
            self.touched.entry(key).or_insert(target);
        }
    }

    /// Journals the access states that changed since the last time, as one transaction.
    pub(super) fn flush_touches(&mut self) {
        let touches = self.drain_touches();
        if !touches.is_empty() {
            self.note(touches);
        }
    }

    pub(super) fn drain_touches(&mut self) -> Vec<Op> {
        self.last_touch_flush = Instant::now();
        if !self.log_is_sound {
            return Vec::new();
        }
        let mut ops = self.drain_bonds();
        if self.touched.is_empty() {
            return ops;
        }
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let states = self.touched.drain().filter_map(|(key, target)| {
            let access = catalog.live(&key).and_then(|id| catalog.access(id))?;
            Some(Op::Touch(Touch {
                target,
                last_access: access.last_access,
                access_count: access.access_count,
                half_life_hours: access.half_life_hours,
            }))
        });
        ops.extend(states);
        ops
    }

    /// The use of relationships since the last time; their names are read from the disk.
    fn drain_bonds(&mut self) -> Vec<Op> {
        if self.touched_bonds.is_empty() {
            return Vec::new();
        }
        let bonds: Vec<(DocId, Handle)> = {
            let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
            let live = self.touched_bonds.drain().filter_map(|key| catalog.live(&key));
            live.map(|id| (id, Handle::of(&catalog, id))).collect()
        };
        let touches = bonds.into_iter().filter_map(|(id, handle)| {
            let target = handle.resource().ok()?.reference().to_string();
            let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
            catalog.bond_touch(id, target).map(Op::Touch)
        });
        touches.collect()
    }

    /// Journals what is no memory, with a mark: it costs no sync of its own then.
    pub(super) fn note(&mut self, mut ops: Vec<Op>) {
        self.last_mark = Instant::now();
        if !self.log_is_sound {
            return;
        }
        let has_news = !ops.is_empty();
        ops.push(Op::Mark(self.shared.mark()));
        let at = self.shared.time.order();
        let mut payload = Vec::new();
        Transaction { seq: self.next_seq, at, ops }.encode(&mut payload);
        self.log.stage(&payload);
        // Access counts are no acknowledged memory: losing some on a full disk is no error.
        let seq = self.next_seq;
        if self.write(seq).is_ok() {
            self.log_has_news |= has_news;
            self.next_seq += 1;
            self.shared.time.advance(at);
        }
    }

    fn stop(mut self) {
        self.keep_time();
        self.take_touches();
        // A store that has no segment yet leaves one, so that whoever takes the card out finds a file that
        // any CBOR reader opens. After that the log stays a log: what is durable need not be written a
        // second time for every stop.
        let is_first = self.shared.segments.load(Ordering::Relaxed) == 0;
        if !(is_first && self.log_has_changes && !self.settings.read_only && self.rotate()) {
            let touches = self.drain_touches();
            self.note(touches);
            if self.log.is_dirty()
                && let Err(LogError::Broken(error) | LogError::Refused(error)) = self.log.sync()
            {
                tracing::error!(%error, "the last sync failed");
            }
        }
        let _ = self.sealing.send(SealOrder::Stop);
    }
}
