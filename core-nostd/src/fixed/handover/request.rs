//! Requests of a hand-over: the beginning of one, and the records that follow it.

use ciborium_ll::Header;
use heapless::Vec;

use super::{Fault, HandOver, Outbox, State};
use crate::cbor_head::Head;
use crate::fixed::ring::{Number, RingError};
use crate::fixed::{JournalError, NoRoom, Sink};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Info,
    Unlock,
    Push,
}

impl<const BYTES: usize> HandOver<'_, BYTES> {
    /// Begins a request: `id`, `op`, and the members that `op` needs.
    pub(super) fn request(&mut self, op: Op, records: &[Number]) {
        self.id = self.id.wrapping_add(1);
        (self.sent, self.cut) = (0, false);
        self.answer.clear();
        self.out.clear();
        self.batch = Vec::from_slice(records).unwrap_or_default();
        self.state = match self.head(op) {
            Ok(()) => State::Sending { op, next: 0 },
            // No room even for this.
            Err(NoRoom) => State::Refused,
        };
    }

    fn head(&mut self, op: Op) -> Result<(), NoRoom> {
        let (name, members) = match op {
            Op::Info => ("info", 2),
            Op::Unlock => ("unlock", 3),
            Op::Push => ("push", 3),
        };
        // Deterministic: shorter keys first.
        put(&mut self.out, Header::Map(Some(members)))?;
        text(&mut self.out, "id")?;
        put(&mut self.out, Header::Positive(self.id.into()))?;
        text(&mut self.out, "op")?;
        text(&mut self.out, name)?;
        match op {
            Op::Info => Ok(()),
            Op::Unlock => {
                text(&mut self.out, "token")?;
                text(&mut self.out, self.token.unwrap_or_default())
            }
            Op::Push => {
                text(&mut self.out, "items")?;
                put(&mut self.out, Header::Array(Some(self.batch.len())))
            }
        }
    }

    /// Encodes the record that is sent next; false if it is gone or cannot be written.
    pub(super) fn encode<O: Outbox>(
        &mut self,
        outbox: &mut O,
        number: Number,
    ) -> Result<bool, Fault<O>> {
        self.out.clear();
        self.sent = 0;
        match outbox.write(number, &self.starts, &mut self.out) {
            Ok(written) => Ok(written.is_whole),
            Err(JournalError::Read { .. } | JournalError::Ring(RingError::NotFound)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn put(out: &mut impl Sink<Error = NoRoom>, header: Header) -> Result<(), NoRoom> {
    out.put(Head::new(header).as_bytes())
}

fn text(out: &mut impl Sink<Error = NoRoom>, text: &str) -> Result<(), NoRoom> {
    put(out, Header::Text(Some(text.len())))?;
    out.put(text.as_bytes())
}
