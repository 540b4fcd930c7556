//! Records in flash: [`Record`]s over a [`Ring`].
//!
//! The ring knows bytes; this knows that they are records, and that an access changes their forgetting
//! state and nothing else. What is anchored outlives its page (see [`super::ring`] for what is dropped when
//! the ring is full, and for what a cut leaves).

use core::fmt;

use embedded_storage::nor_flash::NorFlash;
use heapless::Vec;

use super::ring::{Entry, Number, Ring, RingError};
use super::{
    Dating, Decay, Mark, Moment, NoRoom, ReadError, ReadErrorKind, Record, Starts, WriteError,
};

/// A failure of the journal.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum JournalError<E> {
    /// The ring did not.
    Ring(RingError<E>),
    /// It was not encoded: the record, or with its state, is longer than `BYTES`, or has a coordinate that
    /// is no number.
    Write(WriteError<NoRoom>),
    /// The bytes in flash are no record of this program, such as one of another version with other
    /// capacities or a larger `BYTES`. They stay where they are; [`Journal::next`] goes on behind its number.
    Read {
        /// Its number.
        number: Number,
        /// The fault.
        error: ReadError,
    },
}

impl<E: fmt::Debug> fmt::Display for JournalError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Read { number, error } => write!(f, "record {}: {error}", number.get()),
        }
    }
}

impl<E: fmt::Debug> core::error::Error for JournalError<E> {}

impl<E> From<RingError<E>> for JournalError<E> {
    fn from(error: RingError<E>) -> Self {
        Self::Ring(error)
    }
}

impl<E> From<WriteError<NoRoom>> for JournalError<E> {
    fn from(error: WriteError<NoRoom>) -> Self {
        Self::Write(error)
    }
}

/// A record that is in flash, with the newest of its forgetting states.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry<const ID: usize, const TEXT: usize, const REFS: usize> {
    /// Its number in the ring.
    pub number: Number,
    /// The record.
    pub record: Record<ID, TEXT, REFS>,
}

/// Records in flash. `BYTES` is the room on the stack for one encoded record and its state.
#[derive(Debug)]
pub struct Journal<F, const ID: usize, const TEXT: usize, const REFS: usize, const BYTES: usize> {
    ring: Ring<F>,
}

impl<F: NorFlash, const ID: usize, const TEXT: usize, const REFS: usize, const BYTES: usize>
    Journal<F, ID, TEXT, REFS, BYTES>
{
    /// Finds what is there: [`Ring::mount`].
    pub fn mount(flash: F) -> Result<Self, JournalError<F::Error>> {
        Ok(Self { ring: Ring::mount(flash)? })
    }

    /// The ring below.
    pub fn ring(&mut self) -> &mut Ring<F> {
        &mut self.ring
    }

    /// Gives the flash back.
    pub fn release(self) -> F {
        self.ring.release()
    }

    /// Appends a record. With `Ok` it is in flash, and no later cut takes it away; if it is anchored it
    /// also outlives its page.
    pub fn remember(
        &mut self,
        record: &Record<ID, TEXT, REFS>,
    ) -> Result<Number, JournalError<F::Error>> {
        let mut bytes = Vec::<u8, BYTES>::new();
        record.write_kept(&mut bytes)?;
        Ok(self.ring.append(&bytes, record.anchored())?)
    }

    /// Counts an access at `now`, which makes the memory last longer: [`Record::accessed`].
    pub fn access(
        &mut self,
        number: Number,
        now: Moment,
        dating: &impl Dating,
    ) -> Result<Decay, JournalError<F::Error>> {
        let decay = self.get(number)?.accessed(now, dating);
        self.set_decay(number, &decay)?;
        Ok(decay)
    }

    /// Anchors a record, or releases it.
    pub fn anchor(&mut self, number: Number, anchored: bool) -> Result<(), JournalError<F::Error>> {
        let before = self.get(number)?.decay.unwrap_or_default();
        self.set_decay(number, &Decay { anchored: Some(anchored), ..before })
    }

    fn set_decay(&mut self, number: Number, decay: &Decay) -> Result<(), JournalError<F::Error>> {
        let mut bytes = Vec::<u8, BYTES>::new();
        decay.write_kept(&mut bytes)?;
        // Both are read into one buffer.
        let record = self.ring.get(number, &mut [0; BYTES])?.len;
        if record + bytes.len() > BYTES {
            return Err(WriteError::Sink(NoRoom).into());
        }
        Ok(self.ring.touch(number, &bytes, decay.anchored == Some(true))?)
    }

    /// Forgets a record for good.
    pub fn forget(&mut self, number: Number) -> Result<(), JournalError<F::Error>> {
        Ok(self.ring.forget(number)?)
    }

    /// The record of that number.
    pub fn get(
        &mut self,
        number: Number,
    ) -> Result<Record<ID, TEXT, REFS>, JournalError<F::Error>> {
        let mut buffer = [0; BYTES];
        match self.ring.get(number, &mut buffer) {
            Ok(entry) => Self::read(&entry, &buffer),
            Err(RingError::Buffer { .. }) => {
                let error = ReadError { at: BYTES, kind: ReadErrorKind::NoRoom };
                Err(JournalError::Read { number, error })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The record after `after`, in the order they were remembered; the oldest after `None`.
    pub fn next(
        &mut self,
        after: Option<Number>,
    ) -> Result<Option<JournalEntry<ID, TEXT, REFS>>, JournalError<F::Error>> {
        let Some(number) = self.ring.number_after(after)? else { return Ok(None) };
        Ok(Some(JournalEntry { number, record: self.get(number)? }))
    }

    /// Returns the mark of the records that another machine has: it answered that they are durable there.
    pub fn handed_over(&mut self) -> Result<Mark, JournalError<F::Error>> {
        Ok(self.ring.handed_over()?)
    }

    /// Writes that mark. With [`Mark::new`] nothing counts as handed over, so another machine, or the same one, gets
    /// everything again. Records that are not handed over do not give way to the mark: if nothing else is left, the
    /// ring is [`RingError::Full`].
    pub fn set_handed_over(&mut self, mark: &Mark) -> Result<(), JournalError<F::Error>> {
        Ok(self.ring.set_handed_over(mark)?)
    }

    /// Forgets the oldest record that was handed over according to `mark`, and returns its number. That makes room
    /// where everything is anchored, and nothing is lost by it. `HandOver::make_room` knows the mark, even if the ring
    /// is so full that [`Journal::handed_over`] does not. A refused record goes only if nothing else up to the mark is
    /// left: no daemon has it, but it was offered, and it would fill the ring for good.
    pub fn forget_oldest(&mut self, mark: &Mark) -> Result<Option<Number>, JournalError<F::Error>> {
        Ok(self.ring.forget_oldest(mark)?)
    }

    /// Returns the known times at which the machine started.
    pub fn starts(&mut self) -> Result<Starts, JournalError<F::Error>> {
        Ok(self.ring.starts()?)
    }

    /// Writes the known times of the machine's starts, under the same condition as [`Journal::set_handed_over`].
    pub fn set_starts(&mut self, starts: &Starts) -> Result<(), JournalError<F::Error>> {
        Ok(self.ring.set_starts(starts)?)
    }

    /// Returns a number for this start of the machine: one above the last that a record or [`Journal::starts`]
    /// names. A start that left neither shares its number with the next one. That does no harm: nobody else was told
    /// of it.
    pub fn next_boot(&mut self) -> Result<u32, JournalError<F::Error>> {
        let known = self.starts()?.newest();
        let (mut next, mut after) = (known.map_or(0, |clock| clock.boot.saturating_add(1)), None);
        loop {
            match self.next(after) {
                Ok(None) => return Ok(next),
                Ok(Some(JournalEntry { number, record })) => {
                    let accessed = record.decay.and_then(|decay| decay.last_access);
                    for moment in [Some(record.created_at), accessed].into_iter().flatten() {
                        if let Moment::SinceBoot(uptime) = moment {
                            next = next.max(uptime.boot.saturating_add(1));
                        }
                    }
                    after = Some(number);
                }
                Err(JournalError::Read { number, .. }) => after = Some(number),
                Err(error) => return Err(error),
            }
        }
    }

    fn read(
        entry: &Entry,
        buffer: &[u8; BYTES],
    ) -> Result<Record<ID, TEXT, REFS>, JournalError<F::Error>> {
        let fault = |error| JournalError::Read { number: entry.number, error };
        let (record, rest) = buffer.split_at(entry.len);
        let mut record = Record::read(record).map_err(fault)?;
        if let Some(len) = entry.state {
            record.decay = Some(Decay::read(&rest[..len]).map_err(fault)?);
        }
        Ok(record)
    }
}
