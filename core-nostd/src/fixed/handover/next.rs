//! The next message: which records a message has, which wait, and which are refused.

use heapless::Vec;

use super::time::Word;
use super::{BATCH, Fault, HandOver, Op, Outbox, State, Written};
use crate::fixed::ring::{Number, RingError};
use crate::fixed::{JournalError, Length, Moment, Uptime};

/// The finding about one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It can be sent.
    Fits {
        /// True if a date of it hangs on when this start was.
        by_this_start: bool,
    },
    /// It waits until its date is known better.
    Waits,
    /// It cannot be written, or is too long to be sent.
    Unfit,
    /// It was forgotten.
    Gone,
}

impl<const BYTES: usize> HandOver<'_, BYTES> {
    /// Chooses the records of the next message.
    pub(super) fn plan<O: Outbox>(
        &mut self,
        outbox: &mut O,
        uptime: Uptime,
    ) -> Result<(), Fault<O>> {
        let mut batch = Vec::<Number, BATCH>::new();
        let (mut waits, mut by_this) = (false, false);
        // A record that was refused once goes alone.
        while let Some(&number) = self.mark.refused().get(self.again) {
            match self.look(outbox, number, uptime)? {
                Look::Fits { by_this_start } => {
                    return self.push(outbox, &[number], by_this_start, uptime);
                }
                Look::Gone => self.mark.accept(number),
                Look::Unfit => self.again += 1,
                // So do those behind it.
                Look::Waits => {
                    waits = true;
                    break;
                }
            }
        }
        let mut last = self.mark.until();
        let most = if last < self.singly { 1 } else { BATCH };
        while batch.len() < most {
            let Some(number) = outbox.ring().number_after(last)? else { break };
            if self.passed_over && Some(number) > self.promised {
                // Its date is to be the better one.
                break;
            }
            match self.look(outbox, number, uptime)? {
                Look::Fits { by_this_start } => {
                    by_this |= by_this_start;
                    // As many as are wanted have room.
                    let _ = batch.push(number);
                }
                Look::Waits => {
                    waits = true;
                    break;
                }
                Look::Unfit | Look::Gone if batch.is_empty() => self.refuse(number),
                // Its turn comes, when those before it are marked.
                Look::Unfit | Look::Gone => break,
            }
            last = Some(number);
        }
        if !batch.is_empty() {
            return self.push(outbox, &batch, by_this, uptime);
        }
        self.keep(outbox)?;
        // A promised record that is not there any more was forgotten.
        self.promised = None;
        self.state = match (core::mem::take(&mut self.passed_over), waits) {
            (true, _) => State::Begin,
            (false, true) => State::Untold(uptime.micros),
            (false, false) => State::Done,
        };
        Ok(())
    }

    /// Begins to push these, after what dates them is in flash.
    fn push<O: Outbox>(
        &mut self,
        outbox: &mut O,
        records: &[Number],
        by_this_start: bool,
        uptime: Uptime,
    ) -> Result<(), Fault<O>> {
        if by_this_start {
            if self.word == Word::Better {
                (self.word, self.noted_at) = (Word::Due, uptime.micros);
            }
            self.keep_starts(outbox)?;
            self.promised = self.promised.max(records.last().copied());
        }
        self.request(Op::Push, records);
        Ok(())
    }

    /// The message was answered: the next one, after the time was asked for that was passed over for it.
    pub(super) fn go_on(&mut self) {
        if self.batch.last().copied() >= self.promised {
            self.promised = None;
        }
        let asks = self.promised.is_none() && core::mem::take(&mut self.passed_over);
        self.state = if asks { State::Begin } else { State::Next };
    }

    pub(super) fn refuse(&mut self, number: Number) {
        if self.mark.refused().contains(&number) {
            self.again += 1;
            return;
        }
        self.handed.refused = self.handed.refused.saturating_add(1);
        let all_were_offered = self.again == self.mark.refused().len();
        let given_up = self.mark.refuse(number).is_some();
        self.handed.given_up = self.handed.given_up.saturating_add(given_up.into());
        // This one was, too. Those that wait for their date are still to be.
        if all_were_offered {
            self.again = self.mark.refused().len();
        } else if given_up {
            self.again = self.again.saturating_sub(1);
        }
        self.is_mark_unkept = true;
    }

    /// Finds out if a record can be sent.
    fn look<O: Outbox>(
        &self,
        outbox: &mut O,
        number: Number,
        uptime: Uptime,
    ) -> Result<Look, Fault<O>> {
        let mut length = Length::default();
        match outbox.write(number, &self.starts, &mut length) {
            Ok(record) if self.unsure.is_some() && self.hangs_on(&record, self.unsure) => {
                Ok(Look::Waits)
            }
            Ok(record) => {
                let fits = record.is_whole && length.0 <= BYTES;
                let by_this_start = self.hangs_on(&record, Some(uptime.boot));
                Ok(if fits { Look::Fits { by_this_start } } else { Look::Unfit })
            }
            Err(JournalError::Read { .. }) => Ok(Look::Unfit),
            Err(JournalError::Ring(RingError::NotFound)) => Ok(Look::Gone),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a date of this record hangs on when that start was.
    fn hangs_on(&self, record: &Written, boot: Option<u32>) -> bool {
        record.moments.into_iter().flatten().any(|moment| match moment {
            Moment::At(_) => false,
            Moment::SinceBoot(then) => self.starts.dated_by(then.boot) == boot,
        })
    }
}
