//! A pull: what is selected, one resource after the other (docs/serial-protocol.md, section 3).

use omir_core::cbor;
use omir_core::link::message::{Answer, BATCH, Pull, fits};
use omir_core::value::Value;

use super::{Exchange, Unwanted};
use crate::Omir;
use omird_engine::error::Error;
use omird_engine::export::Place;
use omird_engine::reading::{Reading, Shelf, Wanted};

/// What a pull selected that may go on, kept for one line: one at a time.
#[derive(Clone, Default)]
pub struct Readings(Shelf);

impl Readings {
    /// Drops one, if it is still the one that is kept.
    pub fn drop(&self, name: &str) {
        self.0.drop(name);
    }

    /// Drops what nobody came back for. `now` in microseconds.
    pub fn tidy(&self, is_used: bool, now: u64) {
        self.0.tidy(is_used, now);
    }

    /// Returns true if one is kept.
    pub fn are_kept(&self) -> bool {
        self.0.is_used()
    }
}

impl Omir {
    pub(super) fn pull(
        &self,
        pull: &Pull,
        readings: &Readings,
        with: &mut dyn Exchange,
    ) -> Result<(), Error> {
        let after = pull.after.map(Place::at);
        let wanted = Wanted {
            filter: &pull.filter,
            as_of: pull.as_of.as_deref(),
            store: pull.store.as_deref(),
            after,
        };
        let reading = self.engine.read_on(&readings.0, &wanted, || {
            with.rest_if_due();
            with.is_wanted()
        })?;
        let told = self.stream(&reading, after, with);
        // Whoever does not want the rest has ended the session, or cancelled.
        told.or(Ok(()))
    }

    /// One resource after the other from the disk: as much of the store as is under way on the line is in memory.
    fn stream(
        &self,
        reading: &Reading,
        after: Option<Place>,
        with: &mut dyn Exchange,
    ) -> Result<(), Unwanted> {
        let selection = &*reading.selection;
        let first = selection.behind(after);
        let count = (selection.len() - first) as u64;
        let (as_of, store) = (reading.as_of.to_string(), reading.store.clone());
        with.say(Answer::Begin { as_of, count, store })?;
        let (mut batch, mut told) = (Batch::default(), 0);
        for position in first..selection.len() {
            let (one, bytes) = match self.engine.selected(selection, position).transpose() {
                None => (None, 0),
                Some(Err(error)) => lost(error.message),
                Some(Ok(resource)) => {
                    let written = cbor::to_vec(&resource);
                    if fits(&written) {
                        (Some(Ok(resource)), written.len())
                    } else {
                        lost(does_not_fit(&resource, written.len()))
                    }
                }
            };
            if batch.bytes > 0 && batch.bytes + bytes > BATCH {
                with.say(std::mem::take(&mut batch).answer())?;
                with.rest();
            }
            match one {
                None => {}
                Some(Ok(resource)) => {
                    told += 1;
                    batch.items.push(resource);
                }
                Some(Err(why)) => batch.lost.push(why),
            }
            batch.bytes += bytes;
            batch.next = selection.place(position).map_or(batch.next, Place::cursor);
            with.rest_if_due();
        }
        if batch.bytes > 0 {
            with.say(batch.answer())?;
        }
        with.say_end_of(reading.kept.clone(), Answer::End { count: told, complete: true })
    }
}

/// What is sent in the place of a resource, and how many bytes of the message it takes.
fn lost(why: String) -> (Option<Result<Value, String>>, usize) {
    let bytes = why.len() + 8;
    (Some(Err(why)), bytes)
}

fn does_not_fit(resource: &Value, bytes: usize) -> String {
    let text = |name| resource.get(name).and_then(Value::as_str).unwrap_or_default();
    format!(
        "{}/{} ({bytes} bytes) is larger, or nested deeper, than a message over a serial line may be; \
         `dump` and `omir export` give it",
        text("resourceType"),
        text("id")
    )
}

/// What goes into one answer of a pull.
#[derive(Default)]
struct Batch {
    items: Vec<Value>,
    lost: Vec<String>,
    bytes: usize,
    next: u64,
}

impl Batch {
    fn answer(self) -> Answer {
        Answer::Items { items: self.items, next: self.next, lost: self.lost }
    }
}
