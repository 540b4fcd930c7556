//! Forgetting, running: what time has made of the memories is announced, and what it has made
//! superfluous goes.
//!
//! A pass goes through its stages in small slices: moves between tiers are announced,
//! near-duplicate observations become one record, what stopped being valid long ago is forgotten,
//! and where there is no room what is needed least. The catalog is held for one slice only, and
//! between two there is a pause in which recalls have the machine to themselves. What a pass finds to
//! do goes through the writer, when nobody else waits for it.
//!
//! No pass is needed for a right answer: tiers follow from the time they are asked for
//! ([`crate::index::fading`]). So a sweep that is cut loses nothing; the next one looks again.

pub mod consolidate;
pub mod duplicates;
mod pass;
mod report;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::{Engine, Inner};
use crate::error::{Code, Error};

pub use self::pass::Announced;
pub use self::report::{Item, SweepReport};

/// How long after its start the daemon first sweeps: those who waited for it come first.
const FIRST: Duration = Duration::from_secs(5);
/// The pause after each slice. A slice holds the catalog for half a millisecond at most.
const PAUSE: Duration = Duration::from_millis(10);

impl Engine {
    /// Sweeps now, and says what was done, or with `dry_run` what would be.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if changes are refused (not for a dry run), and what the writer refuses.
    pub fn sweep(&self, dry_run: bool) -> Result<SweepReport, Error> {
        if !dry_run && self.inner.settings.read_only {
            let message = "this daemon is configured read-only (access.read_only)";
            return Err(Error::new(Code::Unauthorized, message));
        }
        // Whoever asks need not wait until the one under way finds the idle time for its whole pass.
        let asked = &self.inner.shared.sweeps_asked;
        asked.fetch_add(1, Ordering::Relaxed);
        let report = self.pass(dry_run, &|| true);
        asked.fetch_sub(1, Ordering::Relaxed);
        report
    }

    /// States that so many bytes are needed: the next sweep makes room for them, once. Where the store
    /// takes more than `flash.max_bytes` a sweep does so unasked.
    pub fn relieve(&self, bytes_to_free: u64) {
        self.inner.shared.bytes_to_free.store(bytes_to_free, Ordering::Relaxed);
    }

    fn pass(&self, dry_run: bool, pause: &dyn Fn() -> bool) -> Result<SweepReport, Error> {
        let mut announced = self.inner.announced.lock().unwrap_or_else(PoisonError::into_inner);
        pass::Pass::new(self, &mut announced, dry_run, pause).run()
    }
}

/// Runs the sweeping thread until it is told to stop or the engine is gone.
pub(super) fn sweep_in_background(
    inner: &Arc<Inner>,
    stop: Receiver<()>,
) -> io::Result<Option<JoinHandle<()>>> {
    let forgetting = &inner.settings.forgetting;
    let Some(interval) = forgetting.sweep_interval else { return Ok(None) };
    if !forgetting.enabled || inner.settings.read_only {
        return Ok(None);
    }
    // Until the first pass has looked.
    inner.shared.can_free.store(true, Ordering::Relaxed);
    let engine = Arc::downgrade(inner);
    let thread = std::thread::Builder::new().name("omird-sweeper".into());
    thread.spawn(move || run(&engine, &stop, interval)).map(Some)
}

fn run(engine: &Weak<Inner>, stop: &Receiver<()>, interval: Duration) {
    let goes_on = |pause| matches!(stop.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
    let mut wait = FIRST.min(interval);
    while goes_on(wait) {
        wait = interval;
        let Some(inner) = engine.upgrade() else { return };
        let engine = Engine { inner };
        // After each slice, and on while others have work for the writer.
        let pause = || {
            while goes_on(PAUSE) && engine.inner.shared.sweeps_asked.load(Ordering::Relaxed) == 0 {
                if engine.inner.queue.is_empty() {
                    return true;
                }
            }
            false
        };
        match engine.pass(false, &pause) {
            Ok(report) if report.is_empty() => {}
            Ok(report) => tracing::debug!(?report, "swept"),
            Err(error) => tracing::warn!(%error, "the sweep was given up; the next one goes on"),
        }
    }
}
