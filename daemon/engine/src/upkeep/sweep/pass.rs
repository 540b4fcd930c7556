//! One pass over the store, in slices.

mod consolidation;
mod eviction;
mod expiry;
mod moves;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use omird_store::UntrustedInterval;

use super::SweepMode;
use super::report::SweepReport;
use crate::Engine;
use crate::error::Error;
use crate::index::doc::{Doc, DocId};
use crate::index::fading::Fading;
use crate::write::announced::Announced;
use crate::write::command::{Act, Change, Chosen};

/// Most rows looked at in one slice.
const ROWS: usize = 2048;
/// Longest time that a slice holds the catalog: a change waits for it, and recalls wait for that.
const SLICE: Duration = Duration::from_micros(500);
/// Rows between two looks at the time.
const LOOK: usize = 32;
/// Most acts in one transaction.
const BATCH: usize = 256;

/// A pass under way.
pub(super) struct Pass<'a> {
    engine: &'a Engine,
    announced: &'a mut Announced,
    dry_run: bool,
    /// True if what has time is left for later: no caller waits.
    is_upkeep: bool,
    /// True if it may write what can wait.
    may_write: bool,
    /// Lets others have their turn; false when the pass is to end.
    pause: &'a dyn Fn() -> bool,
    now: i64,
    /// Time of the last whole pass.
    swept: i64,
    /// Stretches of time whose memories may still be redated.
    untrusted: Vec<UntrustedInterval>,
    report: SweepReport,
}

/// The reason for the early end of a pass: it was told to stop, or the writer refused.
enum PassEnd {
    Stopped,
    Refused(Error),
}

impl From<Error> for PassEnd {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The rest of a slice.
struct Slice {
    began: Instant,
    rows: usize,
}

impl Slice {
    fn new() -> Self {
        Self { began: Instant::now(), rows: 0 }
    }

    /// Returns true if one more row may be looked at.
    fn takes_one(&mut self) -> bool {
        self.rows += 1;
        let has_time = || !self.rows.is_multiple_of(LOOK) || self.began.elapsed() < SLICE;
        self.rows <= ROWS && has_time()
    }
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        announced: &'a mut Announced,
        mode: SweepMode,
        pause: &'a dyn Fn() -> bool,
    ) -> Self {
        let (now, _) = engine.now();
        let dry_run = mode == SweepMode::DryRun;
        Self {
            engine,
            announced,
            dry_run,
            is_upkeep: mode == SweepMode::Upkeep,
            may_write: mode != SweepMode::Upkeep
                || engine.inner.shared.odometer.may_write_unasked(),
            pause,
            now: now.as_micros(),
            swept: engine.inner.shared.sweep.swept.load(Ordering::Relaxed),
            untrusted: engine.inner.shared.time.untrusted(),
            report: SweepReport { dry_run, ..SweepReport::default() },
        }
    }

    /// Runs to the end, or until it is told to stop.
    pub(super) fn run(mut self) -> Result<SweepReport, Error> {
        let began = Instant::now();
        let fading = self.engine.catalog().fading().copied();
        if let Some(fading) = fading {
            let ended = self.stages(&fading);
            match ended {
                // After a pass that left something out, the next one looks from the same time on.
                Ok(()) if !self.dry_run && self.may_write => {
                    self.engine.inner.shared.sweep.swept.fetch_max(self.now, Ordering::Relaxed);
                }
                Ok(()) | Err(PassEnd::Stopped) => {}
                Err(PassEnd::Refused(error)) => return Err(error),
            }
        }
        let took = began.elapsed().as_micros();
        self.report.took_micros = u64::try_from(took).unwrap_or(u64::MAX);
        Ok(self.report)
    }

    fn stages(&mut self, fading: &Fading) -> Result<(), PassEnd> {
        self.announce_moves(fading)?;
        if self.may_write {
            if self.engine.settings().forgetting.merge {
                self.merge_duplicates(fading)?;
            }
            self.expire()?;
        }
        // A store that takes too much of the card is worse than one that writes too much.
        self.evict(fading)
    }

    fn yield_to_others(&self) -> Result<(), PassEnd> {
        if (self.pause)() { Ok(()) } else { Err(PassEnd::Stopped) }
    }

    /// Has the writer do these, and waits for it.
    fn submit(&self, acts: Vec<Act>) -> Result<(), PassEnd> {
        if !acts.is_empty() && !self.dry_run {
            self.engine.execute(Change::Sweep(acts))?;
        }
        Ok(())
    }

    fn chosen(&self, id: DocId) -> Option<(Chosen, Doc)> {
        let (handle, doc) = {
            let catalog = self.engine.catalog();
            (catalog.handle(id), catalog.doc(id).clone())
        };
        let target = handle.resource().ok()?.reference();
        Some((Chosen { target, version: doc.version }, doc))
    }
}
