//! State that the parts of the engine share besides the catalog.

mod accesses;
mod deletion_causes;
mod queue;
mod sealed;
mod sweep_state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use omir_core::instant::Timestamp;
use omird_store::Mark;
use parking_lot::RwLock;

use self::accesses::Accesses;
use self::deletion_causes::DeletionCauses;
use self::queue::QueueCounts;
use self::sealed::Sealed;
use self::sweep_state::SweepState;
use crate::card::faults::Faults;
use crate::card::free_space::FreeSpace;
use crate::card::health::{Part, State};
use crate::card::integrity::Integrity;
use crate::card::odometer::Odometer;
use crate::card::quota::QuotaUsage;
use crate::card::reserve::Reserve;
use crate::contained::Broken;
use crate::disk::Usage;
use crate::index::vectors::Vectors;
use crate::settings::Settings;
use crate::time::clock::ClockState;
use crate::time::timeline::Time;

pub(crate) use self::accesses::AccessEvent;

/// State that the threads of the engine share besides the catalog: parts with one concern each.
pub(crate) struct Shared {
    /// The time of the store.
    pub(crate) time: Arc<Time>,
    /// The settings, until the next change of them.
    settings: RwLock<Arc<Settings>>,
    /// Counters of the queue to the writer.
    pub(crate) queue: QueueCounts,
    /// Accesses that wait to be counted.
    pub(crate) accesses: Accesses,
    /// Faults of the card.
    pub(crate) faults: Faults,
    /// Files that rotted, and their repair.
    pub(crate) integrity: Integrity,
    /// Bytes written to the card.
    pub(crate) odometer: Odometer,
    /// Free space on a full disk.
    pub(crate) free_space: FreeSpace,
    /// Logs and segments.
    pub(crate) sealed: Sealed,
    /// State of the sweep.
    pub(crate) sweep: SweepState,
    /// Causes of deletions since boot.
    pub(crate) deletion_causes: DeletionCauses,
    /// Threads that ended by a panic.
    pub(crate) broken: Arc<Broken>,
    /// Versions that could not be read since boot.
    pub(crate) unreadable: AtomicU64,
    /// True once the engine was told to stop: nothing long is begun any more.
    pub(crate) is_stopping: AtomicBool,
    /// Vectors, beside the catalog.
    pub(crate) vectors: Arc<Vectors>,
}

impl Shared {
    /// State of a store that was last marked with `mark`, and whose start repaired so much.
    pub(crate) fn new(
        time: Time,
        mark: &Mark,
        usage: Arc<Usage>,
        settings: Settings,
        reserve: Reserve,
        repaired: u64,
    ) -> Self {
        let time = Arc::new(time);
        let per_day = settings.flash.bytes_per_day;
        Self {
            settings: RwLock::new(Arc::new(settings)),
            queue: QueueCounts::default(),
            accesses: Accesses::default(),
            faults: Faults::new(time.clone()),
            integrity: Integrity::after(repaired),
            odometer: Odometer::new(time.clone(), usage, mark, per_day),
            free_space: FreeSpace::new(reserve),
            sealed: Sealed::new(mark.scrub),
            sweep: SweepState::after(mark.swept),
            deletion_causes: DeletionCauses::default(),
            broken: Arc::default(),
            unreadable: AtomicU64::default(),
            is_stopping: AtomicBool::default(),
            vectors: Arc::default(),
            time,
        }
    }

    /// The settings as of now. A caller that needs two of the settings to agree takes them from one call.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    /// Goes on with other settings.
    pub(super) fn follow(&self, settings: Settings) {
        let per_day = settings.flash.bytes_per_day;
        self.odometer.set_per_day(per_day);
        *self.settings.write() = Arc::new(settings);
    }

    /// The time to date by, and how far it can be trusted.
    pub(crate) fn now(&self) -> (Timestamp, ClockState) {
        let moment = self.time.moment();
        (moment.now, moment.state)
    }

    /// The mark of the store, as of now.
    pub(crate) fn mark(&self) -> Mark {
        let swept = self.sweep.swept.load(Ordering::Relaxed);
        let mut mark = Mark { swept, scrub: self.sealed.scrubbing(), ..Mark::default() };
        self.odometer.fill(&mut mark);
        self.time.fill(&mut mark);
        mark
    }

    /// Returns the bytes on the card, and the most that may be.
    pub(crate) fn quota_usage(&self) -> QuotaUsage {
        let derived = [&self.sealed.index_bytes, &self.vectors.bytes];
        let derived: u64 = derived.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        let bytes = self.odometer.usage.stored() + derived;
        QuotaUsage { bytes, max_bytes: self.settings().flash.max_bytes }
    }

    /// Returns true if the disk is so full that room is worth more than wear. Asked by the thread that lends the reserve, so that no other
    /// works with it just now; the writer has it for a moment only.
    pub(crate) fn is_full(&self) -> bool {
        let is_full =
            |part| self.faults.health().of(part).is_some_and(|fault| fault.state == State::Full);
        is_full(Part::Log) || is_full(Part::Seal) || self.free_space.reserve().lacks()
    }
}
