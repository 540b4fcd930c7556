//! Notes of a journal in its ring: the mark of what was handed over, and the known starts of the machine.

use embedded_storage::nor_flash::NorFlash;

use super::ring::{Number, Ring, RingError};
use super::{Mark, Starts};

const HANDED_OVER: u32 = 1;
const STARTS: u32 = 2;

impl<F: NorFlash> Ring<F> {
    /// See [`super::Journal::handed_over`].
    pub(super) fn handed_over(&mut self) -> Result<Mark, RingError<F::Error>> {
        self.read_note(HANDED_OVER, &mut [0; Mark::BYTES], Mark::from_bytes)
    }

    /// See [`super::Journal::set_handed_over`].
    pub(super) fn set_handed_over(&mut self, mark: &Mark) -> Result<(), RingError<F::Error>> {
        self.set_note(HANDED_OVER, &mark.to_bytes(), mark.until(), mark.refused())
    }

    /// See [`super::Journal::starts`].
    pub(super) fn starts(&mut self) -> Result<Starts, RingError<F::Error>> {
        self.read_note(STARTS, &mut [0; Starts::BYTES], Starts::from_bytes)
    }

    /// See [`super::Journal::set_starts`].
    pub(super) fn set_starts(&mut self, starts: &Starts) -> Result<(), RingError<F::Error>> {
        let mark = self.handed_over()?;
        self.set_note(STARTS, &starts.to_bytes(), mark.until(), mark.refused())
    }

    /// See [`super::Journal::forget_oldest`].
    pub(super) fn forget_oldest(
        &mut self,
        mark: &Mark,
    ) -> Result<Option<Number>, RingError<F::Error>> {
        let (mut after, mut chosen) = (None, None);
        while let Some(number) = self.number_after(after)?
            && Some(number) <= mark.until()
        {
            if mark.covers(number) {
                chosen = Some(number);
                break;
            }
            chosen = chosen.or(Some(number));
            after = Some(number);
        }
        if let Some(number) = chosen {
            self.forget(number)?;
        }
        Ok(chosen)
    }

    /// Reads a note. One that is absent, or longer than any of ours, reads as no bytes.
    fn read_note<T>(
        &mut self,
        name: u32,
        buffer: &mut [u8],
        read: fn(&[u8]) -> T,
    ) -> Result<T, RingError<F::Error>> {
        match self.note(name, buffer) {
            Ok(len) => Ok(read(&buffer[..len.unwrap_or_default()])),
            Err(RingError::Buffer { .. }) => Ok(read(&[])),
            Err(error) => Err(error),
        }
    }
}
