//! The log that the writer writes to: when it is begun again, what becomes of it when the disk refuses, and
//! what is done about a full disk.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use omird_store::disk::BLOCK;
use omird_store::{FileId, Log, LogError, Op, Transaction, Unsealed, segment_room};

use super::{BREATH, Writer, grows};
use crate::card::health::{Part, State};
use crate::card::reserve::{self, BESIDE};
use crate::disk::NoRoom;
use crate::error::{Code, Error};
use crate::settings::{Durability, Settings};
use crate::shared::Shared;
use crate::write::command::Change;
use crate::write::orders::{self, Closed, SealOrder};
use crate::write::plan::{Plan, PlannedStep};

/// A log beyond this is not written on: positions in it have 32 bits. It is sealed long before,
/// unless no new log could be begun all that time.
const LOG_CEILING: u64 = 2 << 30;
/// A full log waits while more than so many before it wait to be sealed: each of them is replayed
/// after a cut, which takes many times longer than reading a segment's block.
const MOST_BEHIND: usize = 2;
/// So many logs span the time after which the oldest is sealed.
const LOGS: u32 = 4;
/// A log that holds changes is sealed after so long where the store takes more of the card than it may.
const WHEN_SHORT: Duration = Duration::from_secs(3600);
/// But no longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Interval between looks for the log's name while no change comes in.
const LOOK: Duration = Duration::from_secs(1);

/// So much is free beside the reserve where anything new is taken in: the next block of the log and of its
/// witness.
const NEW: u64 = 2 * BLOCK;
/// Largest size of an operation in a log beside its resource.
const OP: u64 = 128;

impl Writer {
    /// Deals with what is known to be the matter with the disk: a data folder that came back, a log
    /// that is in doubt, a reserve that lacks.
    pub(super) fn make_ready(&mut self, grows: bool) {
        match self.disk.mount_generation() {
            Ok(mount_generation) if mount_generation != self.log.mount_generation => {
                tracing::info!("the data folder is back; a new log is begun");
                self.log.mount_generation = mount_generation;
                self.log.is_sound = false;
            }
            _ => {}
        }
        if !self.log.is_sound {
            let _ = if grows { self.begin_log() } else { self.begin_log_even_if_full() };
        }
        self.tend_reserve();
    }

    /// Makes the reserve again, if it was given up and there is room.
    fn tend_reserve(&mut self) {
        let Some(mut reserve) = self.shared.free_space.reserve_at_hand() else { return };
        if self.log.is_sound
            && reserve.can_be_kept()
            && let Err(error) = reserve.keep()
        {
            self.shared.faults.refused(&*self.disk, Part::Log, &error);
        }
    }

    /// Waits while space is freed, where what is to be forgotten would take what that needs. Where there is nothing
    /// to be freed nothing waits.
    pub(super) fn wait_for_free_space(&mut self) {
        let log = self.settings.segment_bytes;
        let needed = reserve::to_work(log).saturating_add(reserve::group(log));
        let lacks = |shared: &Shared| {
            let reserve = shared.free_space.reserve_at_hand();
            reserve.is_none_or(|reserve| reserve.lacks() && reserve.free() < needed)
        };
        if !lacks(&self.shared) {
            return;
        }
        self.request_free_space();
        let began = Instant::now();
        while self.shared.free_space.is_being_freed.load(Ordering::Acquire)
            && lacks(&self.shared)
            && began.elapsed() < LONGEST_WAIT
        {
            std::thread::sleep(BREATH);
        }
    }

    /// Has space freed as soon as may be.
    fn request_free_space(&self) {
        if !self.shared.free_space.is_being_freed.swap(true, Ordering::AcqRel) {
            let _ = self.sealing.send(SealOrder::FreeUp);
        }
    }

    pub(super) fn log_fault(&self) -> Option<State> {
        self.shared.faults.health().of(Part::Log).map(|fault| fault.state)
    }

    /// Notes that the disk takes what is new. With the reserve given up it is full all the same.
    pub(super) fn note_success(&self) {
        if self.log_fault() != Some(State::Full) || self.lack().is_none() {
            self.shared.faults.recovered(Part::Log);
        }
    }

    /// Bytes missing on a full disk until it is full no more, also while the reserve is lent.
    fn lack(&self) -> Option<NoRoom> {
        let free =
            self.shared.free_space.reserve_at_hand().map_or(0, |reserve| reserve.free_beside());
        (free < 2 * BESIDE).then_some(NoRoom { needed: 2 * BESIDE, free })
    }

    /// The refusal of a change that is not even tried: the rest of a full disk is for forgetting.
    pub(super) fn quota_refusal(&self, change: &Change) -> Option<Error> {
        if !grows(change) {
            return None;
        }
        self.shared.quota_usage().refusal(self.shared.sweep.can_free.load(Ordering::Relaxed))
    }

    /// The refusal of a plan that brings something new: there must be room beside the reserve, and what is
    /// longer than a log otherwise gets needs room to be sealed, too.
    pub(super) fn space_refusal(&self, plan: &Plan) -> Option<Error> {
        let len = |planned: &PlannedStep| match &planned.op {
            Op::Put { resource, .. } => resource.len() as u64 + OP,
            _ => OP,
        };
        let bytes = plan.steps.iter().map(len).sum::<u64>();
        let log = self.settings.segment_bytes;
        let beyond = segment_room(self.log.file.len().saturating_add(bytes))
            .saturating_sub(segment_room(reserve::segment(log)));
        let needed = self.log.file.staged().saturating_add(bytes).saturating_add(beyond) + NEW;
        let free = self.shared.free_space.reserve().free_beside();
        (free < needed && bytes > 0).then(|| {
            let lack = NoRoom { needed, free };
            self.shared.faults.refused(&*self.disk, Part::Log, &lack.into());
            self.request_free_space();
            self.shared.faults.refusal()
        })
    }

    /// Writes what is staged, beginning with transaction `first`, and makes it as durable as the
    /// settings promise. On failure the numbers from `first` on are free again.
    pub(super) fn write(&mut self, first: u64) -> Result<(), Error> {
        if !self.log.is_sound {
            self.log.file.discard();
            self.next_seq = first;
            return Err(self.shared.faults.refusal());
        }
        // An open file can be written to after its folder was unmounted; what is acknowledged must
        // be there for the next start.
        if let Err(error) = self.disk.mount_generation() {
            self.log.file.discard();
            self.next_seq = first;
            self.shared.faults.refused(&*self.disk, Part::Log, &error);
            return Err(self.shared.faults.refusal());
        }
        if let Err(error) = self.keep_log_name() {
            self.log.file.discard();
            self.next_seq = first;
            self.shared.faults.refused(&*self.disk, Part::Log, &error);
            return Err(self.shared.faults.refusal());
        }
        if self.log.file.len() > LOG_CEILING {
            self.log.file.discard();
            self.next_seq = first;
            self.begin_log();
            return Err(Error::new(
                Code::Internal,
                "the log has grown too long and no new one could be begun; see the daemon's log",
            ));
        }
        let written = self.log.file.write().and_then(|_| match self.settings.durability {
            Durability::Sync => self.log.file.sync(),
            Durability::Interval(_) | Durability::None => Ok(()),
        });
        match written {
            Ok(()) => {
                self.note_success();
                self.shared.sealed.log_bytes.store(self.log.file.len(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.next_seq = first;
                Err(self.refuse(error))
            }
        }
    }

    /// Looks whether the log is still found under its name, and writes it again if it was deleted: an open file
    /// takes everything without one, and all of it would be lost at the next start.
    ///
    /// # Errors
    /// Whatever the disk says. Nothing may be acknowledged then.
    fn keep_log_name(&mut self) -> std::io::Result<()> {
        self.log.last_look = Instant::now();
        let Some(is_written) = self.log.file.keep_name(&*self.disk)? else { return Ok(()) };
        let id = FileId::log(self.log.file.number());
        self.catalog.write().files.add_log(id, self.log.file.file());
        if is_written {
            // Its witness may be gone as well. A new log has one.
            self.log.is_to_close = true;
            self.shared.integrity.written_again(&id.path());
        }
        Ok(())
    }

    /// Looks after the log's name while no change comes in.
    pub(super) fn look_after_log_name(&mut self) {
        let is_here = self.disk.mount_generation().ok() == Some(self.log.mount_generation);
        if !is_here || self.log.last_look.elapsed() < LOOK {
            return;
        }
        if let Err(error) = self.keep_log_name() {
            self.shared.faults.refused(&*self.disk, Part::Log, &error);
        }
    }

    /// Says why a group was not written, and leaves a log behind that must not be used again.
    pub(super) fn refuse(&mut self, error: LogError) -> Error {
        let (error, is_broken) = match error {
            LogError::Refused(error) => (error, false),
            LogError::Broken(error) => (error, true),
        };
        self.shared.faults.refused(&*self.disk, Part::Log, &error);
        let refusal = self.shared.faults.refusal();
        if is_broken {
            self.log.is_sound = false;
            self.begin_log();
        }
        refusal
    }

    /// Begins a new log, with the reserve given up for it if need be.
    pub(super) fn begin_log_even_if_full(&mut self) -> bool {
        if self.begin_log() {
            return true;
        }
        let gave =
            self.log_fault() == Some(State::Full) && self.shared.free_space.reserve().give_up();
        gave && self.begin_log()
    }

    /// Begins a new log and sends the old one to be sealed. On failure the old one stays.
    pub(super) fn begin_log(&mut self) -> bool {
        match Log::create(&*self.disk, self.log.file.number() + 1, self.next_seq) {
            Ok(log) => {
                let mut old = std::mem::replace(&mut self.log.file, log);
                // The log ends where it was last synced, without what a failed sync left in doubt.
                old.close(self.next_seq.saturating_sub(1));
                let at = self.shared.time.order();
                let unsealed = Unsealed {
                    log: old.number(),
                    end: old.synced(),
                    durable: old.synced(),
                    first: self.log.first,
                    began: self.log.began,
                    is_sound: true,
                };
                let closed = Closed { log: unsealed, at };
                self.catalog
                    .write()
                    .files
                    .add_log(FileId::log(self.log.file.number()), self.log.file.file());
                self.log.first = self.next_seq;
                self.log.has_changes = false;
                self.log.is_to_close = false;
                self.log.has_news = false;
                self.log.is_sound = true;
                self.log.began = self.shared.time.history();
                self.shared.sealed.log_bytes.store(self.log.file.len(), Ordering::Relaxed);
                if old.exists() {
                    let _ = self.sealing.send(SealOrder::Seal(vec![closed]));
                }
                self.note_success();
                true
            }
            Err(error) => {
                tracing::debug!(%error, "no new log could be begun");
                self.shared.faults.refused(&*self.disk, Part::Log, &error);
                false
            }
        }
    }

    /// Returns true if a new log is to be begun: this one is full, or spans so much time that a part of what is
    /// not sealed should be sealed without the rest, or what is dead in it takes room that is short.
    pub(crate) fn is_log_due(&self) -> bool {
        let Settings { segment_bytes, seal_after, purge_after, .. } = *self.settings;
        if self.log.file.len() >= segment_bytes {
            return true;
        }
        if !self.log.has_changes {
            return false;
        }
        let age = orders::age(self.log.began, self.shared.time.history());
        let is_short = || self.shared.quota_usage().bytes_to_free() > 0;
        let is_older = |than: Duration| age >= than;
        is_older(seal_after.min(purge_after) / LOGS) || (is_older(WHEN_SHORT) && is_short())
    }

    /// Waits while sealing falls behind, unless it fails: then nothing waits for it.
    pub(super) fn let_sealing_catch_up(&self) {
        let began = Instant::now();
        while self.sealing.len() > MOST_BEHIND
            && self.shared.faults.may_seal()
            && began.elapsed() < LONGEST_WAIT
        {
            std::thread::sleep(BREATH);
        }
    }

    /// Tries whether the disk works again, without a change to write.
    pub(super) fn try_again(&mut self) {
        self.make_ready(true);
        if self.log.is_sound && self.log_fault().is_some() {
            match self.lack() {
                None => self.note(Vec::new()),
                Some(lack) => self.shared.faults.refused(&*self.disk, Part::Log, &lack.into()),
            }
        }
    }

    pub(crate) fn rotate(&mut self) -> bool {
        let touches = self.drain_touches();
        self.note(touches);
        if self.log.file.is_dirty()
            && let Err(error) = self.log.file.sync()
        {
            self.refuse(error);
            return false;
        }
        self.begin_log_even_if_full()
    }

    /// Journals what is no memory, with a mark: it costs no sync of its own then.
    pub(crate) fn note(&mut self, mut ops: Vec<Op>) {
        self.last_mark = Instant::now();
        if !self.log.is_sound {
            return;
        }
        let has_news = !ops.is_empty();
        ops.push(Op::Mark(self.shared.mark()));
        let at = self.shared.time.order();
        let mut payload = Vec::new();
        Transaction { seq: self.next_seq, at, ops }.encode(&mut payload);
        self.log.file.stage(&payload);
        // Access counts are no acknowledged memory: losing some on a full disk is no error.
        let seq = self.next_seq;
        if self.write(seq).is_ok() {
            self.log.has_news |= has_news;
            self.next_seq += 1;
            self.shared.time.advance(at);
        }
    }
}
