//! What the parts of the engine share besides the catalog.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

use omir_core::instant::Timestamp;

use super::budget::Budget;
use super::contained::Broken;
use super::farewells::Farewells;
use super::health::{self, Health, Part, State};
use super::integrity::Integrity;
use super::pressure::Pressure;
use super::reserve::Reserve;
use super::settings::Settings;
use super::time::Time;
use crate::clock::ClockState;
use crate::disk::{self, Disk, Mode, ReadFault, Usage};
use crate::error::Error;
use crate::index::key::RefKey;
use crate::store::mark::{Mark, Scrub};

/// A record that a recall has just used.
#[derive(Debug, Clone)]
pub struct Access {
    /// Its key.
    pub key: RefKey,
    /// `Type/id`.
    pub target: String,
    /// When; microseconds since the start of the machine. The clock may be set before it is counted.
    pub at: i64,
    /// Entities it mentions, where relationships between them may be strengthened by that.
    pub mentions: Vec<RefKey>,
}

/// Most accesses that may wait to be counted. A flood of recalls beyond it is not counted: access
/// counts steer forgetting and are no memory themselves.
const MAX_ACCESSES: usize = 100_000;

/// Counters and small state.
pub struct Shared {
    /// What time it is.
    pub time: Time,
    accesses: Mutex<Vec<Access>>,
    /// Bytes of the changes that wait.
    pub queued_bytes: AtomicUsize,
    /// Changes taken into the queue since boot.
    pub accepted: AtomicU64,
    /// Changes answered since boot.
    pub committed: AtomicU64,
    /// Requests refused since boot.
    pub rejected: AtomicU64,
    health: Mutex<Health>,
    /// What became of files that rotted.
    pub integrity: Integrity,
    /// How far all is read through for rot.
    scrub: Mutex<Scrub>,
    /// What could not be read last, to be tried again.
    unread: Mutex<Option<ReadFault>>,
    budget: Mutex<Budget>,
    started: Instant,
    /// Whether upkeep may still find something to drop. Without upkeep there is none.
    pub can_free: AtomicBool,
    /// How the engine runs, until it is told otherwise.
    settings: RwLock<Arc<Settings>>,
    /// Logs that wait to be sealed.
    pub unsealed_logs: AtomicU64,
    /// Segments on disk.
    pub segments: AtomicU64,
    /// What was written since boot, and what lies on the disk.
    pub usage: Arc<Usage>,
    /// When the odometers began to count, or 0 if no clock was ever right.
    began: AtomicI64,
    /// Bytes written before this start, over the life of the store.
    pub written_before: u64,
    /// Bytes of the memories that came in over the life of the store, as stored.
    pub payload: AtomicU64,
    /// Those of before this start.
    pub payload_before: u64,
    /// Bytes of the kept index.
    pub index_bytes: AtomicU64,
    /// Versions that could not be read since boot.
    pub unreadable: AtomicU64,
    /// Until when moves between tiers were announced; microseconds since 1970.
    pub swept: AtomicI64,
    /// Bytes too many on the disk, for the next sweep to make room for, once.
    pub bytes_to_free: AtomicU64,
    /// Whether a sweep was asked for: one that was not gives way to it.
    pub is_sweep_asked: AtomicBool,
    /// Why memories were forgotten since boot.
    pub farewells: Farewells,
    /// Whether a thread of the engine ended by a panic.
    pub broken: Arc<Broken>,
    /// What is given up on a full disk. Held by who works with the room that gives.
    reserve: Mutex<Reserve>,
    /// Whether room is being made on a full disk, or is about to be.
    pub is_making_room: AtomicBool,
    /// Whether the log is to be closed, because what is dead in logs takes room that lacks.
    pub is_log_to_close: AtomicBool,
    /// Whether the engine was told to stop: nothing long is begun any more.
    pub is_stopping: AtomicBool,
}

impl Shared {
    /// State of a store that was last marked with `mark`, and whose start repaired so much.
    pub fn new(
        time: Time,
        mark: &Mark,
        usage: Arc<Usage>,
        settings: Settings,
        reserve: Reserve,
        repaired: u64,
    ) -> Self {
        let per_day = settings.flash.bytes_per_day;
        Self {
            time,
            accesses: Mutex::default(),
            queued_bytes: AtomicUsize::default(),
            accepted: AtomicU64::default(),
            committed: AtomicU64::default(),
            rejected: AtomicU64::default(),
            health: Mutex::default(),
            integrity: Integrity::after(repaired),
            scrub: Mutex::new(mark.scrub),
            unread: Mutex::default(),
            budget: Mutex::new(Budget::new(per_day, mark.day, mark.today)),
            started: Instant::now(),
            can_free: AtomicBool::default(),
            settings: RwLock::new(Arc::new(settings)),
            unsealed_logs: AtomicU64::default(),
            segments: AtomicU64::default(),
            usage,
            began: AtomicI64::new(mark.began),
            written_before: mark.written,
            payload: AtomicU64::new(mark.payload),
            payload_before: mark.payload,
            index_bytes: AtomicU64::default(),
            unreadable: AtomicU64::default(),
            swept: AtomicI64::new(mark.swept),
            bytes_to_free: AtomicU64::default(),
            is_sweep_asked: AtomicBool::default(),
            farewells: Farewells::default(),
            broken: Arc::default(),
            reserve: Mutex::new(reserve),
            is_making_room: AtomicBool::default(),
            is_log_to_close: AtomicBool::default(),
            is_stopping: AtomicBool::default(),
        }
    }

    /// How the engine runs as of now. Whoever needs two of the settings to agree takes them from one call.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes on with other settings.
    pub(super) fn follow(&self, settings: Settings) {
        let per_day = settings.flash.bytes_per_day;
        self.budget.lock().unwrap_or_else(PoisonError::into_inner).set_per_day(per_day);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// The time to date by, and how far it can be trusted.
    pub fn now(&self) -> (Timestamp, ClockState) {
        let moment = self.time.moment();
        (moment.now, moment.state)
    }

    /// Where the store stands.
    pub fn mark(&self) -> Mark {
        let budget = self.budget();
        let mut mark = Mark {
            written: self.written_before + self.bytes_written(),
            began: self.began(),
            day: budget.day(),
            today: budget.today(),
            payload: self.payload.load(Ordering::Relaxed),
            swept: self.swept.load(Ordering::Relaxed),
            scrub: self.scrubbing(),
            ..Mark::default()
        };
        self.time.fill(&mut mark);
        mark
    }

    /// How far all is read through for rot.
    pub fn scrubbing(&self) -> Scrub {
        *self.scrub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how far all is read through for rot.
    pub fn scrubbed(&self, scrub: Scrub) {
        *self.scrub.lock().unwrap_or_else(PoisonError::into_inner) = scrub;
    }

    /// Bytes written since boot.
    pub fn bytes_written(&self) -> u64 {
        self.usage.written.load(Ordering::Relaxed)
    }

    /// When the odometers began to count; microseconds since 1970, or 0 if no clock was right yet.
    pub fn began(&self) -> i64 {
        let (now, state) = self.now();
        if state != ClockState::Unknown {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            let _ = self.began.compare_exchange(0, now.as_micros(), success, failure);
        }
        self.began.load(Ordering::Acquire)
    }

    /// How much may be written today, as of now.
    pub fn budget(&self) -> Budget {
        let (now, _) = self.now();
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.account(self.bytes_written(), now.as_micros());
        *budget
    }

    /// Whether today's budget leaves anything for what can wait.
    pub fn may_write_unasked(&self) -> bool {
        self.budget().may_write() > 0
    }

    /// How much lies on the card beside what may.
    pub fn pressure(&self) -> Pressure {
        let bytes = self.usage.stored() + self.index_bytes.load(Ordering::Relaxed);
        Pressure { bytes, max_bytes: self.settings().flash.max_bytes }
    }

    /// How the card is doing.
    pub fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is given up on a full disk. Waits for who works with the room that gives.
    pub fn reserve(&self) -> MutexGuard<'_, Reserve> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for whoever cannot wait; `None` while someone works with that room.
    pub fn reserve_at_hand(&self) -> Option<MutexGuard<'_, Reserve>> {
        match self.reserve.try_lock() {
            Ok(reserve) => Some(reserve),
            Err(TryLockError::Poisoned(reserve)) => Some(reserve.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The reserve, to be lent: see [`with_reserve`](super::reserve::with_reserve).
    pub fn reserve_to_lend(&self) -> &Mutex<Reserve> {
        &self.reserve
    }

    /// Whether the disk is so full that room is worth more than wear. Asked by who lends the reserve, so that nobody
    /// works with it just now; the writer has it for a moment only.
    pub fn is_full(&self) -> bool {
        let is_full =
            |part| self.health().of(part).is_some_and(|trouble| trouble.state == State::Full);
        is_full(Part::Log) || is_full(Part::Seal) || self.reserve().lacks()
    }

    /// Time since the start, as the card's health counts it.
    fn at(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes that the disk refused something.
    pub fn trouble(&self, disk: &dyn Disk, part: Part, error: &io::Error) {
        self.failed(part, health::judge_on(disk, error), error.to_string());
    }

    /// Notes that something cannot be done, and that it is not the disk's fault.
    pub fn stuck(&self, part: Part, error: String) {
        self.failed(part, State::Stuck, error);
    }

    fn failed(&self, part: Part, state: State, error: String) {
        let (now, _) = self.now();
        if self.health().fail(part, state, error.clone(), now, self.at()) {
            tracing::error!(state = state.as_str(), ?part, %error, "{}", state.hint());
        }
    }

    /// Notes that the disk does something again.
    pub fn well(&self, part: Part) {
        let recovered = self.health().recover(part);
        if let Some(trouble) = recovered {
            tracing::info!(was = trouble.state.as_str(), ?part, "the disk works again");
        }
    }

    /// Whether it is time to try again what the disk refused.
    pub fn is_due(&self, part: Part) -> bool {
        self.health().is_due(part, self.at())
    }

    /// Whether new files can be made at all, as far as is known.
    pub fn may_seal(&self) -> bool {
        let health = self.health();
        !health
            .of(Part::Log)
            .is_some_and(|trouble| matches!(trouble.state, State::ReadOnly | State::Gone))
    }

    /// What a client is told whose change could not be written.
    pub fn refusal(&self) -> Error {
        self.health().refusal()
    }

    /// Notes that something could not be read.
    pub fn unread(&self, fault: ReadFault, error: &io::Error) {
        self.failed(Part::Read, health::judge(error), error.to_string());
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Tries again to read what could not be read, if it is time.
    pub fn read_again(&self, disk: &dyn Disk) {
        if !self.is_due(Part::Read) {
            return;
        }
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(ReadFault { path, offset, len }) = unread else { return };
        let read = disk.mounting().and_then(|_| disk.open(&path, Mode::Read)).and_then(|file| {
            let mut bytes = vec![0; len];
            file.read_at(&mut bytes, offset)
        });
        match read {
            Ok(()) => self.well(Part::Read),
            // A file that was dropped, because all of it lies elsewhere by now, is nobody's trouble.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !disk::is_gone(&error) => {
                self.well(Part::Read);
            }
            Err(error) => self.trouble(disk, Part::Read, &error),
        }
    }

    /// Notes accesses, to be counted by the writer.
    pub fn note_accesses(&self, new: impl IntoIterator<Item = Access>) {
        let mut accesses = self.accesses.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_ACCESSES.saturating_sub(accesses.len());
        accesses.extend(new.into_iter().take(room));
    }

    /// Takes what was noted.
    pub fn take_accesses(&self) -> Vec<Access> {
        std::mem::take(&mut *self.accesses.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
