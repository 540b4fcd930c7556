//! Forgetting, running: what time has made of the memories is announced, and what it has made
//! superfluous goes.
//!
//! A pass goes through its stages in small slices: moves between tiers are announced,
//! near-duplicate observations become one record, what stopped being valid long ago is forgotten,
//! and where there is no room what is needed least. The catalog is held for one slice only, and
//! between two there is a pause in which recalls have the machine to themselves. What a pass finds to
//! do goes through the writer, when no caller waits for it.
//!
//! No pass is needed for a right answer: tiers follow from the time they are asked for
//! ([`crate::index::fading`]). So a sweep that is cut loses nothing; the next one looks again.

mod pass;
mod report;
pub(crate) mod similarity;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::Engine;
use crate::contained::contain;
use crate::engine::Inner;
use crate::error::{Code, Error};

pub use self::report::SweepReport;

/// The mode of a pass: what it may write, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SweepMode {
    /// By itself, in idle time: what it would write waits for a day whose budget is not used up.
    Upkeep,
    /// At once, since a caller waits for it.
    Asked,
    /// Without writing: it reports what it would do.
    DryRun,
}

/// That a sweep which was asked for runs, until it is dropped.
struct Sweeping<'a>(&'a AtomicBool);

impl<'a> Sweeping<'a> {
    fn take(is_taken: &'a AtomicBool) -> Option<Self> {
        (!is_taken.swap(true, Ordering::AcqRel)).then_some(Self(is_taken))
    }
}

impl Drop for Sweeping<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Pause before the first sweep after a start: clients who waited for it come first.
const FIRST: Duration = Duration::from_secs(5);
/// Longest pause while the store takes more of the card than it may.
const WHEN_SHORT: Duration = Duration::from_secs(10);
/// The pause after each slice. A slice holds the catalog for half a millisecond at most.
pub const PAUSE: Duration = Duration::from_millis(10);

impl Engine {
    /// Sweeps now, and says what was done, or with `dry_run` what would be.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if changes are refused (not for a dry run), `BUSY` while another one that was
    /// asked for is under way, and what the writer refuses.
    pub fn sweep(&self, dry_run: bool) -> Result<SweepReport, Error> {
        if !dry_run {
            self.check_writable()?;
        }
        // The caller need not wait until the one under way finds the idle time for its whole pass.
        // One at a time: each has a thread that others want to recall with.
        let Some(_sweeping) = Sweeping::take(&self.inner.shared.sweep.is_asked) else {
            let message = "another sweep is under way; try again in a moment";
            return Err(Error::new(Code::Busy, message));
        };
        let mode = if dry_run { SweepMode::DryRun } else { SweepMode::Asked };
        self.pass(mode, &|| true)
    }

    /// One pass as the daemon makes it by itself: `pause` is called after each slice, takes about
    /// [`PAUSE`], and ends the pass by returning false.
    ///
    /// # Errors
    /// What the writer refuses.
    pub(crate) fn sweep_gently(&self, pause: &dyn Fn() -> bool) -> Result<SweepReport, Error> {
        self.pass(SweepMode::Upkeep, pause)
    }

    fn pass(&self, mode: SweepMode, pause: &dyn Fn() -> bool) -> Result<SweepReport, Error> {
        let mut announced = self.inner.announced.lock();
        pass::Pass::new(self, &mut announced, mode, pause).run()
    }
}

/// Runs the sweeping thread until it is told to stop or the engine is gone.
pub(crate) fn sweep_in_background(
    inner: &Arc<Inner>,
    stop: Receiver<()>,
) -> io::Result<Option<JoinHandle<()>>> {
    let settings = inner.shared.settings();
    let Some(interval) = settings.forgetting.sweep_interval else { return Ok(None) };
    if settings.read_only {
        return Ok(None);
    }
    // Until the first pass has looked.
    inner.shared.sweep.can_free.store(settings.forgetting.enabled, Ordering::Relaxed);
    let engine = Arc::downgrade(inner);
    let thread = std::thread::Builder::new().name("omird-sweeper".into());
    thread.spawn(move || run(&engine, &stop, FIRST.min(interval))).map(Some)
}

fn run(engine: &Weak<Inner>, woken: &Receiver<()>, mut wait: Duration) {
    // New settings wake it before its time.
    let goes_on = |pause| woken.recv_timeout(pause) != Err(RecvTimeoutError::Disconnected);
    while goes_on(wait) {
        let Some(inner) = engine.upgrade() else { return };
        let engine = Engine { inner };
        let settings = engine.settings();
        let Some(interval) = settings.forgetting.sweep_interval else { return };
        wait = interval;
        if !settings.forgetting.enabled {
            continue;
        }
        // After each slice, and on while others have work for the writer.
        let pause = || {
            while goes_on(PAUSE) && !engine.inner.shared.sweep.is_asked.load(Ordering::Acquire) {
                if engine.queue().is_none_or(|queue| queue.is_empty()) {
                    return true;
                }
            }
            false
        };
        contain("a sweep", || match engine.sweep_gently(&pause) {
            Ok(report) if report.is_empty() => {}
            Ok(report) => tracing::debug!(?report, "swept"),
            Err(error) => tracing::warn!(%error, "the sweep was given up; the next one goes on"),
        });
        if engine.quota_usage().bytes_to_free() > 0 {
            wait = interval.min(WHEN_SHORT);
        }
    }
}
