//! Compaction on the sealing thread: when there is nothing to seal and no caller waits for the writer,
//! or because someone asks for it.
//!
//! Which segments are due is decided in [`policy`]; how a run becomes one segment is
//! `store/upkeep/compact`.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::TrySendError;
use omir_core::instant::Timestamp;
use omird_store::{
    CompactError, Compacted, ForgottenTraces, SealedSegment, largest_segment_in, segment_room,
};

use crate::Engine;
use crate::card::reserve::{BESIDE, with_reserve};
use crate::engine::busy;
use crate::error::{Code, Error};
use crate::index::catalog::{Garbage, garbage_in_logs, garbage_in_segments};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::upkeep::policy::{self, Allowance, Full, Rules, Segment};
use crate::upkeep::scrubbing;
use crate::upkeep::sealing::Sealer;
use crate::write::message::Message;
use crate::write::orders::{Compaction, CompactionAnswer, CompactionScope};

/// Interval between looks at what is due.
const LOOK: Duration = Duration::from_secs(600);
/// The same while the store takes more of the card than it may.
pub(crate) const LOOK_WHEN_SHORT: Duration = Duration::from_secs(10);

/// The same while the disk is full.
pub(crate) const LOOK_WHEN_FULL: Duration = Duration::from_secs(1);

/// Time for which a survey of all segments stands, if forgotten memories may stay longer than that.
const READ: Duration = Duration::from_secs(86_400);

fn rules(settings: &Settings) -> Rules {
    Rules { segment_max: settings.segment_max_bytes, purge_after: settings.purge_after }
}

/// Compacts, on the thread that seals.
pub(crate) struct Compactor {
    history: Duration,
    rules: Rules,
    is_allowed: bool,
    allowance: Box<dyn Fn() -> Allowance + Send>,
    looked: Instant,
    /// The last time the disk was full.
    was_full: Option<Instant>,
    /// The newest transaction when no more was to be made.
    exhausted: Option<u64>,
    /// True if so much is dead in logs that sealing them frees space.
    has_dead_logs: bool,
    /// Time and result of the last survey of the segments, by number.
    read: Option<(Instant, Vec<(u64, ForgottenTraces)>)>,
}

impl Compactor {
    /// A compactor; `allowance` says what the card allows at the moment it is asked.
    pub(crate) fn new(settings: &Settings, allowance: Box<dyn Fn() -> Allowance + Send>) -> Self {
        Self {
            history: settings.keep_history,
            rules: rules(settings),
            is_allowed: !settings.read_only,
            allowance,
            looked: Instant::now(),
            was_full: None,
            exhausted: None,
            has_dead_logs: false,
            read: None,
        }
    }

    /// Goes by other settings from now on.
    pub(crate) fn follow(&mut self, settings: &Settings) {
        self.history = settings.keep_history;
        self.rules = rules(settings);
    }

    /// Returns true if space is to be freed: the disk is full, or was so within the time between two looks.
    pub(crate) fn is_to_free_up(&self, shared: &Shared) -> bool {
        shared.is_full() || self.was_full.is_some_and(|at| at.elapsed() < LOOK)
    }

    /// Returns true if logs are to be sealed because what is dead in them takes space that lacks.
    pub(crate) fn has_dead_logs(&self) -> bool {
        self.has_dead_logs
    }

    /// Time for which superseded versions are kept; microseconds.
    pub(crate) fn history_micros(&self) -> i64 {
        micros(self.history)
    }

    /// Frees space, by one run of segments or by having logs sealed. It does not wait for idle time. Tells whether there
    /// may be more to make.
    pub(crate) fn free_up(&mut self, sealer: &mut Sealer, shared: &Shared) -> bool {
        if shared.is_full() {
            self.was_full = Some(Instant::now());
        }
        let newest = sealer.catalog.read().newest();
        let is_known = self.exhausted == Some(newest) && self.looked.elapsed() < LOOK_WHEN_SHORT;
        if !self.is_allowed || !shared.faults.may_seal() || is_known {
            shared.free_space.is_being_freed.store(false, Ordering::Release);
            return false;
        }
        let made = self.step(sealer, shared, &mut Compacted::default());
        if let Err(error) = &made {
            tracing::warn!(%error, "no room could be made yet");
        }
        refill_index(sealer, shared);
        let is_more_due = matches!(made, Ok(true));
        self.has_dead_logs = !is_more_due && self.look_at_logs(sealer, shared);
        if self.has_dead_logs {
            // A dead version in a log goes only once its end is in a log that is closed.
            shared.free_space.is_log_to_close.store(true, Ordering::Release);
        }
        self.exhausted = (!is_more_due && !self.has_dead_logs).then_some(newest);
        self.looked = Instant::now();
        shared
            .free_space
            .is_being_freed
            .store(is_more_due || self.has_dead_logs, Ordering::Release);
        is_more_due
    }

    /// Returns true if so much is dead in logs that sealing them is worth it.
    fn look_at_logs(&self, sealer: &Sealer, shared: &Shared) -> bool {
        let Some(full) = self.full(shared) else { return false };
        let horizon = shared.time.history().as_micros().saturating_sub(micros(self.history));
        let logs = {
            let catalog = sealer.catalog.read();
            garbage_in_logs(&catalog, &sealer.pieces, horizon)
        };
        let (before, after) = (logs.live + logs.dead, segment_room(logs.live));
        logs.dead > 0 && after <= full.free && full.is_worth(before, after)
    }

    /// The space to work with, if some is to be freed.
    fn full(&self, shared: &Shared) -> Option<Full> {
        self.is_to_free_up(shared).then(|| {
            let reserve = shared.free_space.reserve();
            let free = reserve.free_with().saturating_sub(BESIDE);
            Full { free, is_dire: !reserve.can_be_kept() }
        })
    }

    /// Compacts one run if it is time to look and one is due. Tells whether there may be more.
    pub(crate) fn idle(&mut self, sealer: &mut Sealer, shared: &Shared) -> bool {
        let is_busy = !shared.queue.is_idle();
        if !self.is_allowed || is_busy || self.looked.elapsed() < LOOK_WHEN_SHORT {
            return false;
        }
        let is_short = (self.allowance)().is_short;
        if !shared.faults.may_seal() || (!is_short && self.looked.elapsed() < LOOK) {
            return false;
        }
        let mut done = Compacted::default();
        match self.step(sealer, shared, &mut done) {
            Ok(true) => {
                refill_index(sealer, shared);
                true
            }
            Ok(false) => {
                refill_index(sealer, shared);
                self.looked = Instant::now();
                false
            }
            Err(error) => {
                tracing::warn!(%error, "not compacted");
                self.looked = Instant::now();
                false
            }
        }
    }

    /// Compacts what a person, or a program, asks for.
    pub(crate) fn serve(
        &mut self,
        scope: CompactionScope,
        sealer: &mut Sealer,
        shared: &Shared,
    ) -> Result<Compaction, Error> {
        let written = || shared.odometer.usage.written.load(Ordering::Relaxed);
        let total = |sealer: &Sealer| sealer.pieces.iter().map(|piece| piece.bytes).sum();
        let written_before = written();
        let mut result = Compaction {
            segments_before: sealer.pieces.len() as u64,
            bytes_before: total(sealer),
            ..Compaction::default()
        };
        // An unreadable segment may be there again, or be restored by now.
        let unsound = sealer.pieces.iter().filter(|piece| !piece.is_sound);
        for number in unsound.map(|piece| piece.number).collect::<Vec<_>>() {
            scrubbing::scrub(sealer, shared, number);
        }
        let mut done = Compacted::default();
        let outcome = match scope {
            CompactionScope::Due => loop {
                match self.step(sealer, shared, &mut done) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                }
            },
            CompactionScope::Forgotten | CompactionScope::All => {
                self.rewrite(scope, sealer, shared, &mut done)
            }
        };
        refill_index(sealer, shared);
        outcome.map_err(|error| refusal(&error))?;
        if shared.is_stopping.load(Ordering::Acquire) {
            return Err(Error::stopping());
        }
        result.segments_after = sealer.pieces.len() as u64;
        result.bytes_after = total(sealer);
        result.bytes_written = written() - written_before;
        result.superseded = done.superseded;
        result.forgotten = done.forgotten;
        Ok(result)
    }

    /// Compacts one run that is due; tells whether there was one. Nothing more is begun by a daemon
    /// that is stopping.
    fn step(
        &mut self,
        sealer: &mut Sealer,
        shared: &Shared,
        done: &mut Compacted,
    ) -> Result<bool, CompactError> {
        let now = shared.time.history();
        if shared.is_stopping.load(Ordering::Acquire) {
            return Ok(false);
        }
        let allowance = Allowance { full: self.full(shared), ..(self.allowance)() };
        let segments = self.segments(sealer, shared, now);
        let Some(run) = policy::due(&segments, &self.rules, &allowance) else {
            return Ok(false);
        };
        done.add(&self.compact(run, now, sealer, shared)?);
        Ok(true)
    }

    /// Compacts a run, with the reserve given up for it if need be.
    fn compact(
        &self,
        run: Range<usize>,
        now: Timestamp,
        sealer: &mut Sealer,
        shared: &Shared,
    ) -> Result<Compacted, CompactError> {
        with_reserve(shared.free_space.reserve_to_lend(), CompactError::is_full, || {
            sealer.compact(run.clone(), now, self.history)
        })
    }

    /// Compacts all that is in scope, whether it is due or not.
    fn rewrite(
        &mut self,
        scope: CompactionScope,
        sealer: &mut Sealer,
        shared: &Shared,
        done: &mut Compacted,
    ) -> Result<(), CompactError> {
        // Again after each one that turns out to be damaged: it is passed over then. And while space comes.
        while self.rewrite_once(scope, sealer, shared, done)? {}
        let unsound = sealer.pieces.iter().find(|piece| !piece.is_sound);
        unsound.map_or(Ok(()), |piece| {
            Err(CompactError::Segment {
                number: piece.number,
                message: "it is damaged and stays as it is, with whatever it tells of; see `omir \
                          store check`. The others were compacted"
                    .to_owned(),
            })
        })
    }

    /// Tells whether there may be more: it came upon a damaged segment, and may go on without that, or made room for
    /// what there was none for.
    fn rewrite_once(
        &mut self,
        scope: CompactionScope,
        sealer: &mut Sealer,
        shared: &Shared,
        done: &mut Compacted,
    ) -> Result<bool, CompactError> {
        let now = shared.time.history();
        self.read = None;
        let segments = self.segments(sealer, shared, now);
        let tells = |at: usize| segments[at].has_forgotten;
        let is_wanted = |at: usize| scope == CompactionScope::All || tells(at);
        let gains = |at: usize| tells(at) || segments[at].dead > 0;
        let full = self.full(shared);
        let fits = full.map_or(u64::MAX, |full| largest_segment_in(full.free));
        let runs = policy::all(&segments, self.rules.segment_max.min(fits), is_wanted, gains);
        self.read = None;
        // From the oldest on: a tombstone may go when nothing older is left.
        let (mut replaced, mut compacted_any) = (0, false);
        let mut refused = None;
        for run in runs {
            if shared.is_stopping.load(Ordering::Acquire) {
                break;
            }
            let len = run.len();
            let run = run.start - replaced..run.end - replaced;
            match self.compact(run, now, sealer, shared) {
                Ok(compacted) => {
                    done.add(&compacted);
                    compacted_any = true;
                    replaced += len - 1;
                }
                Err(CompactError::Segment { number, message }) => {
                    tracing::warn!(segment = number, message, "not compacted");
                    return Ok(true);
                }
                // There may be room for others, and for this one after them.
                Err(error) if error.is_full() => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if !compacted_any => Err(error),
            refused => Ok(refused.is_some()),
        }
    }

    /// The segments as the decision sees them.
    fn segments(&mut self, sealer: &Sealer, shared: &Shared, now: Timestamp) -> Vec<Segment> {
        let now = now.as_micros();
        let horizon = now.saturating_sub(micros(self.history));
        let garbage: Vec<Garbage> = {
            let catalog = sealer.catalog.read();
            garbage_in_segments(&catalog, &sealer.pieces, horizon)
        };
        let read = self.read_all(sealer);
        let since = |stamp: i64| {
            let from = shared.time.recorded_by(stamp);
            Duration::from_micros(now.saturating_sub(from).max(0) as u64)
        };
        let of = |(piece, garbage): (&SealedSegment, Garbage)| {
            let told = read.iter().find(|(number, _)| *number == piece.number);
            let told = garbage.told.and(told.map_or(ForgottenTraces::default(), |(_, told)| *told));
            Segment {
                bytes: piece.bytes,
                dead: garbage.dead,
                age: since(piece.last_recorded),
                has_forgotten: told.any,
                forgotten_for: told.since.map(since),
                is_compacted: piece.is_compacted,
                is_sound: piece.is_sound,
            }
        };
        sealer.pieces.iter().zip(garbage).map(of).collect()
    }

    /// Surveys the segments. The index knows nothing of their copies and references, so all
    /// segments are read, but only once in a day, or in the time that what was forgotten may stay.
    fn read_all(&mut self, sealer: &Sealer) -> &[(u64, ForgottenTraces)] {
        let has_tombstones = || sealer.catalog.read().has_tombstones();
        let every = self.rules.purge_after.min(READ);
        let is_old = |(at, _): &(Instant, Vec<_>)| at.elapsed() >= every;
        if self.read.as_ref().is_none_or(is_old) && has_tombstones() {
            let numbers = sealer.pieces.iter().map(|piece| piece.number);
            let told = numbers.zip(sealer.tells_of_forgotten()).collect();
            self.read = Some((Instant::now(), told));
        }
        self.read.as_ref().map_or(&[], |(_, told)| told)
    }
}

/// Rebuilds the kept index, all of which went with the forgotten memories.
fn refill_index(sealer: &mut Sealer, shared: &Shared) {
    sealer.refill_index(&|| !shared.is_stopping.load(Ordering::Acquire));
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Engine {
    /// Asks for a compaction of segments; `answer` is called when it is done, or refused. With
    /// [`CompactionScope::Forgotten`] and [`CompactionScope::All`] what is in the log is sealed first, so that nothing of
    /// what was forgotten is left anywhere.
    pub fn request_compaction(&self, scope: CompactionScope, answer: CompactionAnswer) {
        if let Err(error) = self.check_writable() {
            return answer(Err(error));
        }
        let (error, message) = match self.try_send(Message::Compact { scope, answer }) {
            Ok(()) => return,
            Err(TrySendError::Full(message)) => (busy(), message),
            Err(TrySendError::Disconnected(message)) => (Error::stopping(), message),
        };
        if let Message::Compact { answer, .. } = message {
            answer(Err(error));
        }
    }
}

/// A refusal, for who asked.
fn refusal(error: &CompactError) -> Error {
    match error {
        CompactError::Disk(error) if crate::disk::is_full(error) => {
            let message = format!(
                "the disk is full, and there is no room for a compacted segment beside the old one ({error}); forget \
                 more, or free some space, and try again"
            );
            Error::new(Code::StorageFull, message)
        }
        error => Error::new(Code::Internal, format!("not compacted: {error}")),
    }
}
