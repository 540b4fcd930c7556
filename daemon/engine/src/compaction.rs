//! Compaction on the sealing thread: when there is nothing to seal and nobody waits for the writer,
//! or because someone asks for it.
//!
//! Which segments are due is decided in [`upkeep`]; how a run becomes one segment is
//! `store/compact`.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::TrySendError;
use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::reserve::{BESIDE, with_reserve};
use super::scrubbing;
use super::sealing::Sealer;
use super::settings::Settings;
use super::shared::Shared;
use super::upkeep::{self, Allowance, Full, Rules, Segment};
use super::writer::Message;
use super::{Engine, busy, stopping};
use crate::error::{Code, Error};
use crate::index::catalog::{Survey, survey, survey_logs};
use crate::store::compact::{CompactError, Compacted, Piece, Told};
use crate::store::room;

/// How often it is looked whether anything is due.
const LOOK: Duration = Duration::from_secs(600);
/// The same while the store takes more of the card than it may.
pub const LOOK_WHEN_SHORT: Duration = Duration::from_secs(10);

/// The same while the disk is full.
pub const LOOK_WHEN_FULL: Duration = Duration::from_secs(1);

/// How long what was read of all segments stands, if what was forgotten may stay longer than that.
const READ: Duration = Duration::from_secs(86_400);

/// What is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// What is due anyway.
    Due,
    /// Whatever still tells of something forgotten.
    Forgotten,
    /// All segments, into as few as there may be.
    All,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Due, Self::Forgotten, Self::All];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Forgotten => "forgotten",
            Self::All => "all",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

fn rules(settings: &Settings) -> Rules {
    Rules { segment_max: settings.segment_max_bytes, purge_after: settings.purge_after }
}

/// What a compaction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compaction {
    /// Segments before.
    pub segments_before: u64,
    /// Segments after.
    pub segments_after: u64,
    /// Bytes of all segments before.
    pub bytes_before: u64,
    /// Bytes of all segments after.
    pub bytes_after: u64,
    /// Bytes that were written to the card for it.
    pub bytes_written: u64,
    /// Versions dropped because later ones took their place.
    pub superseded: u64,
    /// Versions dropped because they were forgotten.
    pub forgotten: u64,
}

impl Compaction {
    /// As it goes over the wire.
    pub fn to_value(&self) -> Value {
        let int = |n: u64| Value::Number(Number::from(n));
        let mut dropped = Map::new();
        dropped.insert("superseded", int(self.superseded));
        dropped.insert("forgotten", int(self.forgotten));
        let mut map = Map::new();
        map.insert("segmentsBefore", int(self.segments_before));
        map.insert("segmentsAfter", int(self.segments_after));
        map.insert("bytesBefore", int(self.bytes_before));
        map.insert("bytesAfter", int(self.bytes_after));
        map.insert("bytesWritten", int(self.bytes_written));
        map.insert("dropped", Value::Object(dropped));
        Value::Object(map)
    }
}

/// Where the answer to a request for compaction goes. Called once, on one of the engine's threads.
pub type Answer = Box<dyn FnOnce(Result<Compaction, Error>) + Send>;

/// Compacts, on the thread that seals.
pub(super) struct Compactor {
    history: Duration,
    rules: Rules,
    is_allowed: bool,
    allowance: Box<dyn Fn() -> Allowance + Send>,
    looked: Instant,
    /// When the disk was full last.
    was_full: Option<Instant>,
    /// The newest transaction when no more was to be made.
    exhausted: Option<u64>,
    /// Whether so much is dead in logs that room is made by sealing them.
    has_dead_logs: bool,
    /// When it was last looked what every segment tells of, and what was found, by number.
    read: Option<(Instant, Vec<(u64, Told)>)>,
}

impl Compactor {
    /// A compactor; `allowance` says what the card allows at the moment it is asked.
    pub(super) fn new(settings: &Settings, allowance: Box<dyn Fn() -> Allowance + Send>) -> Self {
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
    pub(super) fn follow(&mut self, settings: &Settings) {
        self.history = settings.keep_history;
        self.rules = rules(settings);
    }

    /// Whether room is made: the disk is full, or was so within the time between two looks.
    pub(super) fn is_to_make_room(&self, shared: &Shared) -> bool {
        shared.is_full() || self.was_full.is_some_and(|at| at.elapsed() < LOOK)
    }

    /// Whether logs are to be sealed because what is dead in them takes room that lacks.
    pub(super) fn has_dead_logs(&self) -> bool {
        self.has_dead_logs
    }

    /// How long what was superseded is kept; microseconds.
    pub(super) fn history_micros(&self) -> i64 {
        micros(self.history)
    }

    /// Makes room, by one run of segments or by having logs sealed. Nobody need be idle for that. Tells whether there
    /// may be more to make.
    pub(super) fn make_room(&mut self, sealer: &mut Sealer, shared: &Shared) -> bool {
        if shared.is_full() {
            self.was_full = Some(Instant::now());
        }
        let newest = sealer.catalog.read().unwrap_or_else(PoisonError::into_inner).newest();
        let is_known = self.exhausted == Some(newest) && self.looked.elapsed() < LOOK_WHEN_SHORT;
        if !self.is_allowed || !shared.may_seal() || is_known {
            shared.is_making_room.store(false, Ordering::Release);
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
            // What is dead in a log goes only once its end is in a log that is closed.
            shared.is_log_to_close.store(true, Ordering::Release);
        }
        self.exhausted = (!is_more_due && !self.has_dead_logs).then_some(newest);
        self.looked = Instant::now();
        shared.is_making_room.store(is_more_due || self.has_dead_logs, Ordering::Release);
        is_more_due
    }

    /// Whether so much is dead in logs that sealing them is worth it.
    fn look_at_logs(&self, sealer: &Sealer, shared: &Shared) -> bool {
        let Some(full) = self.full(shared) else { return false };
        let horizon = shared.time.history().as_micros().saturating_sub(micros(self.history));
        let logs = {
            let catalog = sealer.catalog.read().unwrap_or_else(PoisonError::into_inner);
            survey_logs(&catalog, &sealer.pieces, horizon)
        };
        let (before, after) = (logs.live + logs.dead, room::of_segment(logs.live));
        logs.dead > 0 && after <= full.room && full.is_worth(before, after)
    }

    /// What there is to work with, if room is to be made.
    fn full(&self, shared: &Shared) -> Option<Full> {
        self.is_to_make_room(shared).then(|| {
            let reserve = shared.reserve();
            let room = reserve.free_with().saturating_sub(BESIDE);
            Full { room, is_dire: !reserve.has_room() }
        })
    }

    /// Compacts one run if it is time to look and one is due. Tells whether there may be more.
    pub(super) fn idle(&mut self, sealer: &mut Sealer, shared: &Shared) -> bool {
        let is_busy =
            shared.accepted.load(Ordering::Acquire) != shared.committed.load(Ordering::Acquire);
        if !self.is_allowed || is_busy || self.looked.elapsed() < LOOK_WHEN_SHORT {
            return false;
        }
        let is_short = (self.allowance)().is_short;
        if !shared.may_seal() || (!is_short && self.looked.elapsed() < LOOK) {
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
    pub(super) fn serve(
        &mut self,
        scope: Scope,
        sealer: &mut Sealer,
        shared: &Shared,
    ) -> Result<Compaction, Error> {
        let written = || shared.usage.written.load(Ordering::Relaxed);
        let total = |sealer: &Sealer| sealer.pieces.iter().map(|piece| piece.bytes).sum();
        let written_before = written();
        let mut result = Compaction {
            segments_before: sealer.pieces.len() as u64,
            bytes_before: total(sealer),
            ..Compaction::default()
        };
        // What could not be read may be there again, or be restored by now.
        let unsound = sealer.pieces.iter().filter(|piece| !piece.is_sound);
        for number in unsound.map(|piece| piece.number).collect::<Vec<_>>() {
            scrubbing::scrub(sealer, shared, number);
        }
        let mut done = Compacted::default();
        let outcome = match scope {
            Scope::Due => loop {
                match self.step(sealer, shared, &mut done) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                }
            },
            Scope::Forgotten | Scope::All => self.rewrite(scope, sealer, shared, &mut done),
        };
        refill_index(sealer, shared);
        outcome.map_err(|error| refusal(&error))?;
        if shared.is_stopping.load(Ordering::Acquire) {
            return Err(stopping());
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
        let Some(run) = upkeep::due(&segments, &self.rules, &allowance) else {
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
        with_reserve(shared.reserve_to_lend(), CompactError::is_full, || {
            sealer.compact(run.clone(), now, self.history)
        })
    }

    /// Compacts all that is in scope, whether it is due or not.
    fn rewrite(
        &mut self,
        scope: Scope,
        sealer: &mut Sealer,
        shared: &Shared,
        done: &mut Compacted,
    ) -> Result<(), CompactError> {
        // Again after each one that turns out to be damaged: it is passed over then. And while room comes.
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
        scope: Scope,
        sealer: &mut Sealer,
        shared: &Shared,
        done: &mut Compacted,
    ) -> Result<bool, CompactError> {
        let now = shared.time.history();
        self.read = None;
        let segments = self.segments(sealer, shared, now);
        let tells = |at: usize| segments[at].has_forgotten;
        let is_wanted = |at: usize| scope == Scope::All || tells(at);
        let gains = |at: usize| tells(at) || segments[at].dead > 0;
        let full = self.full(shared);
        let fits = full.map_or(u64::MAX, |full| room::largest_in(full.room));
        let runs = upkeep::all(&segments, self.rules.segment_max.min(fits), is_wanted, gains);
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
        let surveys: Vec<Survey> = {
            let catalog = sealer.catalog.read().unwrap_or_else(PoisonError::into_inner);
            survey(&catalog, &sealer.pieces, horizon)
        };
        let read = self.read_all(sealer);
        let since = |stamp: i64| {
            let from = shared.time.recorded_by(stamp);
            Duration::from_micros(now.saturating_sub(from).max(0) as u64)
        };
        let of = |(piece, survey): (&Piece, Survey)| {
            let told = read.iter().find(|(number, _)| *number == piece.number);
            let told = survey.told.and(told.map_or(Told::default(), |(_, told)| *told));
            Segment {
                bytes: piece.bytes,
                dead: survey.dead,
                age: since(piece.last_recorded),
                has_forgotten: told.any,
                forgotten_for: told.since.map(since),
                is_compacted: piece.is_compacted,
                is_sound: piece.is_sound,
            }
        };
        sealer.pieces.iter().zip(surveys).map(of).collect()
    }

    /// What every segment tells of. The index does not know that of copies and references, so all
    /// segments are read, but only once in a day, or in the time that what was forgotten may stay.
    fn read_all(&mut self, sealer: &Sealer) -> &[(u64, Told)] {
        let has_graves =
            || sealer.catalog.read().unwrap_or_else(PoisonError::into_inner).has_graves();
        let every = self.rules.purge_after.min(READ);
        let is_old = |(at, _): &(Instant, Vec<_>)| at.elapsed() >= every;
        if self.read.as_ref().is_none_or(is_old) && has_graves() {
            let numbers = sealer.pieces.iter().map(|piece| piece.number);
            let told = numbers.zip(sealer.tells_of_forgotten()).collect();
            self.read = Some((Instant::now(), told));
        }
        self.read.as_ref().map_or(&[], |(_, told)| told)
    }
}

/// What was forgotten took all of the kept index with it: the rest is made anew.
fn refill_index(sealer: &mut Sealer, shared: &Shared) {
    sealer.refill_index(&|| !shared.is_stopping.load(Ordering::Acquire));
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Engine {
    /// Asks for a compaction of segments; `answer` is called when it is done, or refused. With
    /// [`Scope::Forgotten`] and [`Scope::All`] what is in the log is sealed first, so that nothing of
    /// what was forgotten is left anywhere.
    pub fn request_compaction(&self, scope: Scope, answer: Answer) {
        if let Err(error) = self.check_writable() {
            return answer(Err(error));
        }
        let (error, message) = match self.try_send(Message::Compact { scope, answer }) {
            Ok(()) => return,
            Err(TrySendError::Full(message)) => (busy(), message),
            Err(TrySendError::Disconnected(message)) => (stopping(), message),
        };
        if let Message::Compact { answer, .. } = message {
            answer(Err(error));
        }
    }

    /// Compacts segments and waits until it is done.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if the daemon is configured read-only; `BUSY` if too much is waiting;
    /// `STORAGE_FULL` or `INTERNAL` if the disk refuses.
    pub fn compact(&self, scope: Scope) -> Result<Compaction, Error> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let answer = Box::new(move |result| {
            let _ = sender.send(result);
        });
        self.request_compaction(scope, answer);
        let message = "nothing compacts any more: the daemon is stopping, or a bug ended that (see disk in status)";
        receiver.recv().unwrap_or_else(|_| Err(Error::new(Code::Internal, message)))
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
