//! Reads each segment through once in `store.scrub_days`, while nothing else is to do, and repairs what has rotted.
//!
//! Flash loses bits also where nothing is read, and a sidecar mends only what is found before more of it is lost. So all
//! is read in rounds: each segment is due when as much of the round has gone by as lies before it, so that the reading is
//! spread evenly. How far the round is stands in the [`Mark`](omird_store::Mark): a robot that runs an hour a day
//! comes round as well. What a reader stumbles over comes first.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use omird_store::{FileId, Mender, Scrub, Scrubbed, SealedSegment};

use crate::card::health::Part;
use crate::shared::Shared;
use crate::upkeep::sealing::Sealer;
use crate::write::orders::Closed;

/// A clock that was put back by more than this has put the beginning of a round into a time to come; microseconds.
const AMISS: i64 = 86_400_000_000;

/// Pause after a segment that could not be read or repaired: a card that is full stays so for a while.
const RETRY: Duration = Duration::from_secs(600);

/// The segment that is due, of all in the order of their transactions, and the state of the round.
fn due(pieces: &[SealedSegment], round: Scrub, now: i64, period: i64) -> (Option<usize>, Scrub) {
    let mut round = round;
    let is_ahead = round.began > now.saturating_add(AMISS);
    if round.began == 0 || is_ahead {
        round.began = now;
    }
    let elapsed = now.saturating_sub(round.began);
    let next = pieces.iter().position(|piece| piece.last_seq > round.through);
    let Some(next) = next else {
        if elapsed < period {
            return (None, round);
        }
        if pieces.is_empty() {
            return (None, Scrub { began: now, through: 0, ended: now });
        }
        return due(pieces, Scrub { began: now, through: 0, ..round }, now, period);
    };
    let bytes =
        |pieces: &[SealedSegment]| pieces.iter().map(|piece| u128::from(piece.bytes)).sum::<u128>();
    let gone = u128::from(elapsed.max(0).unsigned_abs());
    let is_due = gone * bytes(pieces) >= u128::from(period.unsigned_abs()) * bytes(&pieces[..next]);
    (is_due.then_some(next), round)
}

/// Reads and repairs, on the thread that seals.
pub(crate) struct Scrubber {
    mender: Arc<Mender>,
    is_allowed: bool,
    /// Segments without a sidecar, as an older release left them.
    bare: BTreeSet<u64>,
    /// The beginning of the round in which the logs were read; the start has read them all.
    logs_read: Option<i64>,
    /// The last refusal of the disk.
    refused: Option<Instant>,
    /// Readers were refused when this was looked at last.
    was_unreadable: bool,
}

impl Scrubber {
    pub(crate) fn new(mender: Arc<Mender>, is_allowed: bool, bare: BTreeSet<u64>) -> Self {
        Self { mender, is_allowed, bare, logs_read: None, refused: None, was_unreadable: false }
    }

    /// Reads the logs that wait through, once in a round; names those that turn out to be damaged.
    pub(crate) fn read_logs(
        &mut self,
        sealer: &Sealer,
        waiting: &VecDeque<Closed>,
        shared: &Shared,
    ) -> Vec<u64> {
        let round = shared.sealed.scrubbing().began;
        let before = *self.logs_read.get_or_insert(round);
        if !self.is_allowed || before == round || !shared.faults.may_seal() {
            return Vec::new();
        }
        self.logs_read = Some(round);
        let sound = waiting.iter().filter(|closed| closed.log.is_sound);
        let read = sound.filter_map(|closed| match sealer.scrub_log(&closed.log) {
            Ok(Some(0)) => None,
            Ok(Some(_)) => {
                shared.integrity.repaired(&FileId::log(closed.log.log).path());
                None
            }
            Ok(None) => Some(closed.log.log),
            Err(error) => {
                tracing::warn!(log = closed.log.log, %error, "could not be read through for rot");
                None
            }
        });
        read.collect()
    }

    /// Reads one segment through, if one is due and no caller waits for the writer. Tells whether there may be more.
    pub(crate) fn idle(&mut self, sealer: &mut Sealer, shared: &Shared) -> bool {
        let is_busy = !shared.queue.is_idle();
        if !self.is_allowed || is_busy || shared.is_stopping.load(Ordering::Acquire) {
            return false;
        }
        if self.is_unreadable(shared) {
            return false;
        }
        let is_pausing = self.refused.is_some_and(|at| at.elapsed() < RETRY);
        if is_pausing || !shared.faults.may_seal() {
            return false;
        }
        if let Some(number) = self.mender.take().or_else(|| self.bare.pop_first()) {
            let is_read = self.scrub(sealer, shared, number);
            if !is_read {
                self.mender.put_back(number);
            }
            return is_read;
        }
        let Some(period) = shared.settings().scrub_every else { return false };
        let now = shared.now().0.as_micros();
        let period = i64::try_from(period.as_micros()).unwrap_or(i64::MAX);
        let (next, mut round) = due(&sealer.pieces, shared.sealed.scrubbing(), now, period);
        if let Some(piece) = next.and_then(|next| sealer.pieces.get(next).cloned()) {
            if !self.scrub(sealer, shared, piece.number) {
                return false;
            }
            round.through = piece.last_seq;
            if sealer.pieces.last().is_some_and(|last| last.last_seq == piece.last_seq) {
                round.ended = now;
            }
        }
        shared.sealed.scrubbed(round);
        next.is_some()
    }

    /// Returns true while readers are refused: a disk that gives nothing says nothing about rot. Once it gives something
    /// again, what seemed lost meanwhile is looked at again.
    fn is_unreadable(&mut self, shared: &Shared) -> bool {
        let is_unreadable = shared.faults.health().of(Part::Read).is_some();
        if self.was_unreadable && !is_unreadable {
            self.refused = None;
            self.mender.retry_lost();
        }
        self.was_unreadable = is_unreadable;
        is_unreadable
    }

    /// Reads a segment and repairs it. Returns whether it could be read and written.
    fn scrub(&mut self, sealer: &mut Sealer, shared: &Shared, number: u64) -> bool {
        let outcome = scrub(sealer, shared, number);
        self.refused = outcome.is_none().then(Instant::now);
        if let Some(is_lost) = outcome {
            self.mender.done(number, is_lost);
        }
        outcome.is_some()
    }
}

/// Reads a segment and repairs it, and tells what was found: whether some of it is lost; `None` if the disk refused.
pub(crate) fn scrub(sealer: &mut Sealer, shared: &Shared, number: u64) -> Option<bool> {
    let file = FileId::segment(number).path();
    match sealer.scrub(number) {
        Ok(None | Some(Scrubbed::Sound)) => shared.integrity.sound(&file),
        Ok(Some(Scrubbed::Segment(_))) => shared.integrity.repaired(&file),
        Ok(Some(Scrubbed::Sidecar)) => {
            tracing::info!(file, "has a new sidecar");
            shared.integrity.sound(&file);
        }
        Ok(Some(Scrubbed::Lost)) => {
            shared.integrity.lost(&file, "it is damaged beyond what its sidecar can restore");
            return Some(true);
        }
        Err(error) => {
            tracing::warn!(file, %error, "could not be read through for rot, or not be repaired, yet");
            return None;
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000_000;
    const DAY: i64 = 24 * HOUR;

    fn pieces(bytes: &[u64]) -> Vec<SealedSegment> {
        let piece = |(at, &bytes): (usize, &u64)| SealedSegment {
            number: at as u64 + 1,
            bytes,
            first_seq: 10 * at as u64 + 1,
            last_seq: 10 * at as u64 + 10,
            last_recorded: 0,
            is_compacted: false,
            is_sound: true,
        };
        bytes.iter().enumerate().map(piece).collect()
    }

    /// Runs the clock by hours; which segments were read, and after how many hours.
    fn run(
        pieces: &[SealedSegment],
        round: &mut Scrub,
        from: i64,
        hours: i64,
        period: i64,
    ) -> Vec<(usize, i64)> {
        let mut read = Vec::new();
        for hour in 0..hours {
            while let (Some(next), began) = due(pieces, *round, from + hour * HOUR, period) {
                *round = Scrub { through: pieces[next].last_seq, ..began };
                read.push((next, hour));
            }
            *round = due(pieces, *round, from + hour * HOUR, period).1;
        }
        read
    }

    #[test]
    fn reading_is_spread_over_the_round() {
        let pieces = pieces(&[100, 200, 100]);
        let mut round = Scrub::default();
        let read = run(&pieces, &mut round, DAY, 9 * 24, 4 * DAY);
        assert_eq!(
            read,
            [(0, 0), (1, 24), (2, 72), (0, 96), (1, 120), (2, 168), (0, 192)],
            "by the bytes before it, and again in the next round"
        );
    }

    #[test]
    fn a_clock_that_is_put_back_does_not_stop_it() {
        let pieces = pieces(&[100, 100]);
        let mut round = Scrub { began: 1000 * DAY, through: 10, ended: 0 };
        let read = run(&pieces, &mut round, DAY, 72, 2 * DAY);
        assert_eq!(read, [(1, 24), (0, 48)]);
    }

    proptest! {
        #[test]
        fn each_segment_is_read_once_in_a_round_also_with_the_power_off_in_between(
            bytes in proptest::collection::vec(1..1000u64, 1..40),
            days in 1..30i64,
        ) {
            let pieces = pieces(&bytes);
            let mut round = Scrub::default();
            let mut read = Vec::new();
            // An hour a day.
            for day in 1..=2 * days + 1 {
                let now = day * DAY;
                while let (Some(next), began) = due(&pieces, round, now, days * DAY) {
                    round = Scrub { through: pieces[next].last_seq, ..began };
                    read.push((round.began, next));
                }
            }
            let first = read.iter().filter(|(began, _)| *began == DAY).map(|(_, next)| *next);
            prop_assert_eq!(first.collect::<Vec<_>>(), (0..pieces.len()).collect::<Vec<_>>());
            let all = read.len();
            read.sort_unstable();
            read.dedup();
            prop_assert_eq!(read.len(), all, "none twice in a round");
        }
    }
}
