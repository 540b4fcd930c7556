//! The writer's work when the clock is set: corrects access states at once, and redates,
//! in small batches between other work, what came in before.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use omird_store::{Handle, RefKey, UntrustedInterval};

use crate::encoded::id_of;
use crate::index::doc::DocId;
use crate::index::facts::DecayState;
use crate::time::timeline::Adjustment;
use crate::time::uncertainty::may_wait;
use crate::write::command::{Change, Effect, Reply};
use crate::write::writer::Writer;

/// Most versions that are looked at in one go.
const LOOKED_AT: usize = 512;
/// Pause before a batch that was refused is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// Longest time to commit what came in before the clock was set; microseconds on
/// the monotonic clock.
const GRACE: i64 = 10_000_000;

/// A redating under way.
pub(crate) struct Redating {
    intervals: Vec<UntrustedInterval>,
    /// The next version to look at.
    cursor: DocId,
    /// True if there is more than this behind the cursor is known with each look.
    has_more: bool,
    /// After a refusal.
    not_before: Option<Instant>,
}

impl Writer {
    /// Acts on what the clock did since the last time.
    pub(crate) fn keep_time(&mut self) {
        while let Some(adjustment) = self.shared.time.next_adjustment() {
            self.adjust(&adjustment);
        }
    }

    fn adjust(&mut self, Adjustment { step, correctable, .. }: &Adjustment) {
        let seconds = step.after.saturating_sub(step.before) / 1_000_000;
        tracing::info!(state = step.to.as_str(), seconds, "the clock was set");
        let moved: Vec<(RefKey, Handle)> = {
            let mut catalog = self.catalog.write();
            let states: Vec<(RefKey, DocId, DecayState)> = (0..)
                .zip(catalog.docs())
                .filter(|(_, doc)| doc.is_live())
                .filter_map(|(id, doc)| {
                    let access = catalog.decay_state(id)?;
                    // A state of its own, or that of a date to come.
                    let may_move = doc.is_touched || access.last_access > step.after;
                    let intervals = if may_move { correctable.as_slice() } else { &[] };
                    let last = adjusted(access.last_access, intervals, step.after);
                    let moves = last != access.last_access;
                    moves.then_some((doc.key, id, DecayState { last_access: last, ..access }))
                })
                .collect();
            let moved = states.iter().map(|(key, id, _)| (*key, catalog.handle(*id)));
            let moved = moved.collect();
            for (key, _, access) in states {
                catalog.touch(&key, access);
            }
            if step.after < step.before {
                catalog.refresh_score_bounds(step.after);
            }
            moved
        };
        for (key, handle) in moved {
            // An unreadable record is not journaled; whoever reads it is told.
            if let Some(id) = handle.bytes().ok().and_then(|bytes| id_of(&bytes)) {
                self.touches.records.entry(key).or_insert_with(|| format!("MemoryRecord/{id}"));
            }
        }
        // With the mark that says how time goes on, in one transaction: never one without the other.
        let touches = self.drain_touches();
        self.note(touches);
        if !correctable.is_empty() {
            self.resume_redating();
        }
    }

    /// Begins to redate what waits for it, also what a crash left.
    pub(crate) fn resume_redating(&mut self) {
        let intervals = self.shared.time.correctable();
        let since = intervals.iter().map(|interval| interval.since).min();
        self.redating = since.filter(|_| !self.settings.read_only).map(|since| {
            let catalog = self.catalog.read();
            let cursor = catalog.docs().partition_point(|doc| doc.recorded < since);
            let cursor = DocId::try_from(cursor).unwrap_or(DocId::MAX);
            Redating { intervals, cursor, has_more: true, not_before: None }
        });
    }

    /// Returns true if there is more to look at right now.
    pub(crate) fn is_redating(&self) -> bool {
        self.redating.as_ref().is_some_and(|work| {
            work.has_more && work.not_before.is_none_or(|at| Instant::now() >= at)
        })
    }

    /// The next batch of what is to be redated.
    pub(crate) fn redate(&mut self) -> Option<(Change, usize, Reply)> {
        if self.shared.time.refused.swap(false, Ordering::AcqRel) {
            // A refused batch is still as it was: look at everything again, in a while.
            self.resume_redating();
            self.redating.as_mut()?.not_before = Some(Instant::now() + RETRY);
        }
        let work = self.redating.as_mut()?;
        if work.not_before.is_some_and(|at| Instant::now() < at) {
            return None;
        }
        let (looked_at, next, end) = {
            let catalog = self.catalog.read();
            let end = catalog.docs().len() as DocId;
            let next = work.cursor.saturating_add(LOOKED_AT as DocId).min(end);
            let looked_at: Vec<(RefKey, Handle)> = (work.cursor..next)
                .map(|id| (id, catalog.doc(id)))
                .filter(|(_, doc)| doc.is_live())
                .map(|(id, doc)| (doc.key, catalog.handle(id)))
                .collect();
            (looked_at, next, end)
        };
        work.cursor = next;
        work.has_more = next < end;
        // Memories that came in by a clock that may have been right bear no note.
        let all_may = work.intervals.iter().any(|interval| interval.coarse);
        let waits = |handle: &Handle| handle.bytes().is_ok_and(|bytes| all_may || may_wait(&bytes));
        let keys: Vec<RefKey> =
            looked_at.into_iter().filter(|(_, handle)| waits(handle)).map(|(key, _)| key).collect();
        if keys.is_empty() {
            self.finish_redating();
            return None;
        }
        let shared = self.shared.clone();
        shared.time.in_flight.fetch_add(1, Ordering::AcqRel);
        shared.queue.accepted.fetch_add(1, Ordering::AcqRel);
        let reply: Reply = Box::new(move |result| {
            let time = &shared.time;
            match result.map(|receipt| receipt.effect) {
                Ok(Effect::Remembered(stored)) => time.count_corrected(stored.len() as u64),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "memories could not be redated; tried again later");
                    time.refused.store(true, Ordering::Release);
                }
            }
            time.in_flight.fetch_sub(1, Ordering::AcqRel);
        });
        Some((Change::Correct(keys, self.redating.as_ref()?.intervals.clone()), 0, reply))
    }

    /// Ends it once everything was looked at, and everything there can be was committed.
    fn finish_redating(&mut self) {
        let time = &self.shared.time;
        let Some(work) = &self.redating else { return };
        let now = time.moment().monotonic;
        let is_over = |interval: &UntrustedInterval| {
            now < interval.until || now.saturating_sub(interval.until) > GRACE
        };
        let is_idle = time.in_flight.load(Ordering::Acquire) == 0;
        if !work.has_more
            && is_idle
            && !time.refused.load(Ordering::Acquire)
            && work.intervals.iter().all(is_over)
        {
            time.drop_corrected(&work.intervals);
            self.redating = None;
        }
    }
}

/// A time of access as it is once dating shows `now`: moved if it was noted while the time was
/// unknown, and never later than now, so that nothing stays unfaded until a wrong clock's time has come.
fn adjusted(last_access: i64, intervals: &[UntrustedInterval], now: i64) -> i64 {
    let interval = intervals.iter().rev().find(|interval| interval.dated().contains(&last_access));
    let moved = interval.and_then(|interval| Some(last_access.saturating_add(interval.step()?)));
    moved.unwrap_or(last_access).min(now)
}
