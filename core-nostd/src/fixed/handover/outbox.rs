//! The journal as a hand-over sees it, whatever its capacities.

use embedded_storage::nor_flash::NorFlash;

use crate::fixed::ring::{Number, Ring};
use crate::fixed::{Dating, Journal, JournalError, Moment, Sink};

/// Records that wait in flash to be handed over: a [`Journal`].
pub trait Outbox {
    /// The flash of the ring.
    type Flash: NorFlash;

    /// Returns the ring that holds the records.
    fn ring(&mut self) -> &mut Ring<Self::Flash>;

    /// Writes a record as an OMIR document has it.
    fn write(
        &mut self,
        number: Number,
        dating: &impl Dating,
        sink: &mut impl Sink,
    ) -> Result<Written, Fault<Self>>;
}

/// The error of an [`Outbox`].
pub(super) type Fault<O> =
    JournalError<<<O as Outbox>::Flash as embedded_storage::nor_flash::ErrorType>::Error>;

/// A record of an [`Outbox`] that was read, and perhaps written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Every moment of the record.
    pub moments: [Option<Moment>; 5],
    /// False if the sink has only a part of the record: it took no more, or the record cannot be written.
    pub is_whole: bool,
}

impl<F: NorFlash, const ID: usize, const TEXT: usize, const REFS: usize, const BYTES: usize> Outbox
    for Journal<F, ID, TEXT, REFS, BYTES>
{
    type Flash = F;

    fn ring(&mut self) -> &mut Ring<F> {
        self.ring()
    }

    fn write(
        &mut self,
        number: Number,
        dating: &impl Dating,
        sink: &mut impl Sink,
    ) -> Result<Written, Fault<Self>> {
        let record = self.get(number)?;
        let accessed = record.decay.and_then(|decay| decay.last_access);
        let stamp = record.pose.as_ref().and_then(|pose| pose.stamp);
        let created = Some(record.created_at);
        Ok(Written {
            moments: [created, record.event_time, record.valid_until, accessed, stamp],
            is_whole: record.write(dating, sink).is_ok(),
        })
    }
}
