//! The thread that seals in the background, trying again what could not be sealed. When there is
//! nothing to seal it compacts, and reads what is sealed through for rot.
//!
//! A log that is closed is durable and served as it is. It is not sealed at once: most of what a robot
//! sees is part of another memory a week later, and what is forgotten or superseded until then is
//! never written a second time. So each log waits until it is old, and those that are [`due`] become
//! one segment.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use omir_core::instant::Timestamp;
use omird_store::{FileId, Retention, SealError, Unsealed};

use crate::card::health::{Fault, Part, State};
use crate::card::reserve::with_reserve;
use crate::contained::{contain, spawn};
use crate::error::{Code, Error};
use crate::index::catalog::Catalog;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::upkeep::compaction::{self, Compactor};
use crate::upkeep::scrubbing::Scrubber;
use crate::write::orders::{Closed, CompactionAnswer, CompactionScope, SealOrder, age};

/// The sealer, which knows from the catalog what is live.
pub(crate) type Sealer = omird_store::Sealer<Catalog>;

/// Pause before a log that could not be sealed is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Rules by which logs are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    /// So many bytes are never left to wait, nor sealed together if they are in several logs: a start
    /// reads them all.
    bytes: u64,
    /// Age from which a log does not wait.
    age: Duration,
}

impl Rules {
    fn of(settings: &Settings) -> Self {
        let age = settings.seal_after.min(settings.purge_after);
        Self { bytes: settings.segment_bytes, age }
    }
}

/// Number of the oldest waiting logs to be sealed now, together; 0 if none.
fn due(waiting: &VecDeque<Closed>, now: Timestamp, rules: &Rules, is_urgent: bool) -> usize {
    if waiting.is_empty() {
        return 0;
    }
    let sound = waiting.iter().take_while(|closed| closed.log.is_sound).count();
    if sound == 0 {
        return 1;
    }
    let mut sum = 0u64;
    let together = waiting.iter().take(sound).take_while(|closed| {
        sum = sum.saturating_add(closed.log.end);
        sum <= rules.bytes
    });
    let together = together.count().max(1);
    let bytes: u64 = waiting.iter().map(|closed| closed.log.end).sum();
    if is_urgent || sound < waiting.len() || bytes >= rules.bytes / 2 {
        return together;
    }
    // Younger logs stay behind: their memories still change.
    let is_old = |closed: &&Closed| age(closed.log.began, now) >= rules.age;
    waiting.iter().take(together).take_while(is_old).count()
}

/// Notes that a log is sound no more.
fn set_unsound(waiting: &mut VecDeque<Closed>, log: u64, shared: &Shared) {
    let message = "it was sound and is not any more: what is left of it is sealed alone, and the file set aside";
    shared.integrity.lost(&FileId::log(log).path(), message);
    for closed in waiting.iter_mut().filter(|closed| closed.log.log == log) {
        closed.log.is_sound = false;
    }
}

/// Writes logs that wait again if they were deleted. One that no reader holds open any more is lost.
fn keep_logs(sealer: &Sealer, waiting: &mut VecDeque<Closed>, shared: &Shared) {
    if !shared.faults.may_seal() {
        return;
    }
    for closed in waiting.iter_mut().filter(|closed| closed.log.is_sound) {
        let path = FileId::log(closed.log.log).path();
        match sealer.keep_log(&closed.log) {
            Ok(Some(false)) => {}
            Ok(Some(true)) => shared.integrity.written_again(&path),
            Ok(None) => {
                shared.integrity.lost(&path, "it was deleted while it waited to be sealed");
                closed.log.is_sound = false;
            }
            Err(error) => {
                tracing::warn!(file = path, %error, "was deleted and is not written again yet");
            }
        }
    }
}

/// Starts the sealing thread, which ends when it is told to.
pub(crate) fn seal_in_background(
    sealer: Sealer,
    compactor: Compactor,
    scrubber: Scrubber,
    orders: Receiver<SealOrder>,
    shared: Arc<Shared>,
) -> io::Result<JoinHandle<()>> {
    let sealing = Sealing {
        history: compactor.history_micros(),
        sealer,
        compactor,
        scrubber,
        rules: Rules::of(&shared.settings()),
        shared,
        orders,
        durable: i64::MIN,
        waiting: VecDeque::new(),
        asked: Vec::new(),
        fault: None,
        is_more_due: false,
    };
    let shared = sealing.shared.clone();
    let broken =
        move || shared.faults.stalled(Part::Seal, "a bug ended the thread that seals".to_owned());
    spawn("omird-sealer", move || sealing.run(), broken)
}

struct Sealing {
    sealer: Sealer,
    compactor: Compactor,
    scrubber: Scrubber,
    shared: Arc<Shared>,
    orders: Receiver<SealOrder>,
    rules: Rules,
    /// Time before which everything recorded is durable; microseconds.
    durable: i64,
    /// Logs to be sealed, oldest first.
    waiting: VecDeque<Closed>,
    /// Requests for a compaction.
    asked: Vec<(CompactionScope, CompactionAnswer)>,
    /// The reason why the log that was tried last is not sealed.
    fault: Option<Error>,
    /// Time for which superseded versions are kept; microseconds.
    history: i64,
    /// True if what was done last in idle time left more to do.
    is_more_due: bool,
}

impl Sealing {
    fn run(mut self) {
        let mut is_stopping = false;
        while !is_stopping {
            let (mut report, mut look) = (None, None);
            let order = self.next();
            self.follow_settings();
            match order {
                Ok(SealOrder::Seal(closed)) => {
                    let durable = closed.iter().map(|closed| closed.at.as_micros()).max();
                    self.durable = self.durable.max(durable.unwrap_or(i64::MIN));
                    self.waiting.extend(closed);
                }
                Ok(SealOrder::Look(done)) => look = Some(done),
                Ok(SealOrder::Report(done)) => report = Some(done),
                Ok(SealOrder::Compact(scope, answer)) => self.asked.push((scope, answer)),
                Ok(SealOrder::Stop) => is_stopping = true,
                Ok(SealOrder::FreeUp) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.shared.broken.refusal().is_some() {
                // It is unknown what the writer left half done in what logs are judged by.
                break;
            }
            keep_logs(&self.sealer, &mut self.waiting, &self.shared);
            let is_of_all =
                |(scope, _): &(CompactionScope, CompactionAnswer)| *scope != CompactionScope::Due;
            let is_first = is_stopping && self.shared.sealed.segments.load(Ordering::Relaxed) == 0;
            self.seal(report.is_some() || is_first || self.asked.iter().any(is_of_all));
            if let Some(done) = look {
                let _ = done.send(());
            }
            if let Some(done) = report {
                let fault = || self.fault.clone().unwrap_or_else(|| self.shared.faults.refusal());
                let sealed = if self.waiting.is_empty() { Ok(()) } else { Err(fault()) };
                let _ = done.send(sealed);
            }
            self.compact_as_asked();
            for log in self.scrubber.read_logs(&self.sealer, &self.waiting, &self.shared) {
                set_unsound(&mut self.waiting, log, &self.shared);
            }
            self.is_more_due = !is_stopping && self.keep_up();
            if self.shared.vectors.bytes.load(Ordering::Relaxed) > 0 {
                // Vectors of what was dropped go too.
                self.shared.vectors.wake();
            }
            self.count();
        }
    }

    /// Goes by the settings as of now.
    fn follow_settings(&mut self) {
        let settings = self.shared.settings();
        self.rules = Rules::of(&settings);
        self.compactor.follow(&settings);
        self.history = self.compactor.history_micros();
    }

    /// Compacts one run, if any is due. Tells whether there may be more.
    fn keep_up(&mut self) -> bool {
        let Self { compactor, sealer, shared, .. } = self;
        if compactor.is_to_free_up(shared) {
            return compactor.free_up(sealer, shared)
                || (self.due(false) == 0 && self.scrubber.idle(&mut self.sealer, &self.shared));
        }
        shared.free_space.is_being_freed.store(false, Ordering::Release);
        self.due(false) == 0
            && (self.compactor.idle(&mut self.sealer, &self.shared)
                || self.scrubber.idle(&mut self.sealer, &self.shared))
    }

    fn next(&self) -> Result<SealOrder, RecvTimeoutError> {
        if !self.is_more_due {
            let is_short = self.compactor.is_to_free_up(&self.shared);
            let wait = match (is_short, self.due(false) > 0) {
                (true, _) => compaction::LOOK_WHEN_FULL,
                // After a failure, unless there is more news first.
                (false, true) => RETRY,
                (false, false) => compaction::LOOK_WHEN_SHORT,
            };
            return self.orders.recv_timeout(wait);
        }
        self.orders.try_recv().map_err(|error| match error {
            TryRecvError::Empty => RecvTimeoutError::Timeout,
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
        })
    }

    /// Number of the oldest logs to be sealed now; with `is_urgent` as many as may be.
    fn due(&self, is_urgent: bool) -> usize {
        let is_short = || self.shared.quota_usage().bytes_to_free() > 0;
        let is_urgent =
            is_urgent || self.compactor.has_dead_logs() || (!self.waiting.is_empty() && is_short());
        due(&self.waiting, self.shared.time.history(), &self.rules, is_urgent)
    }

    /// Seals what is due, or all with `is_urgent`, as far as the disk lets it.
    fn seal(&mut self, is_urgent: bool) {
        loop {
            let count = self.due(is_urgent);
            let Self { sealer, shared, waiting, fault, history, durable, .. } = self;
            if count == 0 || !shared.faults.may_seal() {
                break;
            }
            let logs: Vec<Unsealed> = waiting.iter().take(count).map(|closed| closed.log).collect();
            let horizon = shared.time.history().as_micros().saturating_sub(*history);
            let lapse = Retention { horizon, durable: *durable };
            let sealed =
                with_reserve(shared.free_space.reserve_to_lend(), SealError::is_full, || {
                    sealer.seal(&logs, shared.time.order(), lapse)
                });
            match sealed {
                Ok(_) => {
                    shared.faults.recovered(Part::Seal);
                    shared.sealed.index_bytes.store(sealer.cache.size_on_disk(), Ordering::Relaxed);
                    waiting.drain(..count);
                }
                Err(SealError::Rotten { log, bytes }) => {
                    tracing::warn!(log, bytes, "bytes of a log are lost");
                    set_unsound(waiting, log, shared);
                }
                Err(error) => {
                    match &error {
                        SealError::Disk(error) => {
                            shared.faults.refused(&*sealer.disk, Part::Seal, error);
                        }
                        fault => shared.faults.stalled(Part::Seal, fault.to_string()),
                    }
                    tracing::warn!(log = logs[0].log, %error, "not sealed yet; served from the log");
                    let code = if error.is_full() { Code::StorageFull } else { Code::Internal };
                    *fault = Some(Error::new(code, error.to_string()));
                    break;
                }
            }
        }
        self.count();
    }

    fn compact_as_asked(&mut self) {
        for (scope, answer) in std::mem::take(&mut self.asked) {
            let compacted = if self.waiting.is_empty() || scope == CompactionScope::Due {
                self.compactor.serve(scope, &mut self.sealer, &self.shared)
            } else {
                Err(self.unsealed())
            };
            self.count();
            contain("a listener that was told of a compaction", || answer(compacted));
        }
    }

    /// The refusal of a compaction while logs wait: forgotten memories may still be in them.
    fn unsealed(&self) -> Error {
        let is_full = |fault: &Fault| fault.state == State::Full;
        if self.shared.faults.health().of(Part::Seal).is_some_and(is_full) {
            let fault = self.fault.as_ref().map_or("", |fault| &fault.message);
            let message = format!(
                "the disk is full, and what is in the log must be sealed first ({fault}); forget more, or free \
                 some space, and try again"
            );
            return Error::new(Code::StorageFull, message);
        }
        let message = "what is in the log could not be sealed yet; see the daemon's log";
        Error::new(Code::Internal, message)
    }

    /// For `status`.
    fn count(&self) {
        let bytes = self.waiting.iter().map(|closed| closed.log.end).sum();
        self.shared.sealed.unsealed_logs.store(self.waiting.len() as u64, Ordering::Relaxed);
        self.shared.sealed.unsealed_bytes.store(bytes, Ordering::Relaxed);
        self.shared.sealed.segments.store(self.sealer.pieces.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;
    const RULES: Rules = Rules { bytes: 1000, age: Duration::from_secs(28 * 86_400) };

    /// Logs of so many bytes, one a week from day 0 on.
    fn waiting(bytes: &[u64]) -> VecDeque<Closed> {
        let closed = |(week, &end): (i64, &u64)| Closed {
            log: Unsealed {
                log: week as u64,
                end,
                durable: end,
                first: 1,
                began: Timestamp::from_micros(7 * DAY * week),
                is_sound: true,
            },
            at: Timestamp::from_micros(7 * DAY * (week + 1)),
        };
        (0..).zip(bytes).map(closed).collect()
    }

    #[test]
    fn each_log_waits_until_it_is_old() {
        let on = |bytes: &[u64], day: i64, is_urgent| {
            due(&waiting(bytes), Timestamp::from_micros(DAY * day), &RULES, is_urgent)
        };
        assert_eq!(on(&[], 100, true), 0);
        assert_eq!(on(&[10, 10, 10], 27, false), 0);
        assert_eq!(on(&[10, 10, 10, 10], 28, false), 1);
        assert_eq!(on(&[10, 10, 10, 10], 41, false), 2, "the power was off for long");
        assert_eq!(on(&[10], 28, false), 1);
        assert_eq!(on(&[10, 10], 1, true), 2);
        // A start would have to read too much.
        assert_eq!(on(&[250, 250], 1, false), 2);
        assert_eq!(on(&[900, 900, 900], 1, false), 1, "no more together than one may have");
        assert_eq!(on(&[5000], 1, false), 1);
        // The clock was set back a little, and by a year.
        assert_eq!(on(&[10, 10], -1, false), 0);
        assert_eq!(on(&[10, 10], -365, false), 2);
    }

    #[test]
    fn a_damaged_log_is_sealed_alone_and_holds_nothing_up() {
        let now = Timestamp::from_micros(15 * DAY);
        let mut logs = waiting(&[10, 10, 10]);
        logs[1].log.is_sound = false;
        assert_eq!(due(&logs, now, &RULES, false), 1, "what is before it");
        logs.pop_front();
        assert_eq!(due(&logs, now, &RULES, false), 1, "itself");
        logs.pop_front();
        assert_eq!(due(&logs, now, &RULES, false), 0);
    }
}
