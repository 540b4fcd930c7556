//! The date of this start: the daemon's word on the time, and the part of it that is worth a write of flash.

use super::{Fault, HandOver, Outbox, unless_full};
use crate::fixed::starts::SAME;
use crate::fixed::{BootClock, Trust, Uptime};
use crate::instant::Timestamp;

/// An answer that took longer, microseconds, tells the time badly: it is asked for again, a few times.
const PROMPT: u64 = 500_000;
const MOST_ASKED: u8 = 5;
/// Without more reason than that, what is heard of the time is not written to flash more often; microseconds.
const HOUR: u64 = 3_600_000_000;

/// The known starts of the machine, compared with the note of them in flash.
///
/// A counter that is wrong by a hundredth dates each session a little differently. A node that stays at the cable
/// would wear its flash for that alone, and lose the records that give way to notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It is the note.
    Noted,
    /// It is better, by little: what is not dated by it loses little with it.
    Better,
    /// It is to be written: nothing was known, by a better clock; it moved by a second and a hundredth of the uptime; an
    /// hour has passed; or a record is dated by it.
    Due,
}

impl<const BYTES: usize> HandOver<'_, BYTES> {
    /// Dates this start, and keeps that where it matters, so that it stays dated so. False if the answer took too long
    /// to tell the time.
    pub(super) fn learn<O: Outbox>(
        &mut self,
        outbox: &mut O,
        time: Timestamp,
        trust: Trust,
        uptime: Uptime,
    ) -> Result<bool, Fault<O>> {
        let noted = outbox.ring().starts()?;
        let note = noted.word(uptime.boot);
        if self.word == Word::Noted {
            self.starts = noted;
        }
        let known = self.starts.trust(uptime.boot);
        let round_trip = uptime.micros.saturating_sub(self.asked_at);
        // An answer that took long is no news of a clock that was heard in time.
        if known < Some(trust) || known == Some(trust) && round_trip <= PROMPT {
            if round_trip > PROMPT {
                self.asked = self.asked.saturating_add(1);
                if self.asked < MOST_ASKED {
                    return Ok(false);
                }
            }
            // Somewhere on the way it was that time.
            let then = Uptime { micros: uptime.micros - round_trip / 2, ..uptime };
            if self.promised.is_some() {
                self.passed_over = true;
            } else if let Some(clock) = BootClock::learnt(time, then)
                && self.starts.learn(clock, trust)
                && self.word == Word::Noted
            {
                self.word = Word::Better;
            }
        }
        if self.word == Word::Better && self.is_due(note, uptime) {
            (self.word, self.noted_at) = (Word::Due, uptime.micros);
        }
        self.keep(outbox)?;
        let since = *self.untold.get_or_insert(uptime.micros);
        let is_sure = self.starts.trust(uptime.boot) == Some(Trust::Synchronised)
            || uptime.micros.saturating_sub(since) >= self.patience;
        self.unsure = (!is_sure).then_some(uptime.boot);
        Ok(true)
    }

    /// Returns true if what is known of this start is worth a write of flash, which has that `note` of it.
    fn is_due(&self, note: Option<(Timestamp, Trust)>, uptime: Uptime) -> bool {
        let (Some((noted, before)), Some((started, trust))) = (note, self.starts.word(uptime.boot))
        else {
            return true;
        };
        let moved = started.micros_since(noted).unsigned_abs();
        trust != before
            || moved >= SAME.unsigned_abs().max(uptime.micros / 100)
            || uptime.micros.saturating_sub(self.noted_at) >= HOUR
    }

    pub(super) fn keep_starts<O: Outbox>(&mut self, outbox: &mut O) -> Result<(), Fault<O>> {
        if self.word == Word::Due && unless_full(outbox.ring().set_starts(&self.starts))? {
            self.word = Word::Noted;
        }
        Ok(())
    }
}
