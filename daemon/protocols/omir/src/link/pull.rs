//! A pull: what is selected, one resource after the other (docs/serial-protocol.md, section 3).

use omir_core::cbor;
use omir_core::link::message::{BATCH, Pull, Response, fits};
use omir_core::value::Value;

use super::ResponseSink;
use crate::{Cancelled, Omir, add_parameters, parse_query};
use omird_engine::{Code, Cursor, CursorCache, Error, Query, Reading, ReadingStart};

/// The selection of a pull that may go on, kept for one line: one at a time.
#[derive(Clone, Default)]
pub struct Readings(CursorCache);

impl Readings {
    /// Drops one, if it is still the one that is kept.
    pub fn drop(&self, name: &str) {
        self.0.drop(name);
    }

    /// Drops the readings that no client came back for. `now` in microseconds.
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
        with: &mut dyn ResponseSink,
    ) -> Result<Result<(), Cancelled>, Error> {
        let after = pull.after.map(Cursor::from_number);
        let in_filter =
            |error: Error| Error::at(error.code, format!("/filter{}", error.path), error.message);
        let filter = Value::Object(pull.filter.clone());
        let mut named = Vec::new();
        add_parameters(&mut named, &filter).map_err(in_filter)?;
        for name in ["q", "asOf", "limit", "offset"] {
            if named.iter().any(|(given, _)| given == name) {
                let path = format!("/filter/{name}");
                return Err(Error::at(Code::InvalidQuery, path, "not in a pull"));
            }
        }
        let query = |as_of| parse_query(Query::everything(), &named, as_of);
        let wanted =
            ReadingStart { as_of: pull.as_of.as_deref(), store: pull.store.as_deref(), after };
        let reading = self.engine.read_on(&readings.0, &wanted, query, || {
            with.rest_if_due();
            with.is_wanted()
        })?;
        Ok(self.stream(&reading, after, with))
    }

    /// One resource after the other from the disk: as much of the store as is under way on the line is in memory.
    fn stream(
        &self,
        reading: &Reading,
        after: Option<Cursor>,
        with: &mut dyn ResponseSink,
    ) -> Result<(), Cancelled> {
        let selection = &*reading.selection;
        let first = selection.behind(after);
        let count = (selection.len() - first) as u64;
        let (as_of, store) = (reading.as_of.to_string(), reading.store.clone());
        with.say(Response::Begin { as_of, count, store })?;
        let (mut batch, mut told) = (Batch::default(), 0);
        for position in first..selection.len() {
            let (one, bytes) = match self.engine.selected(selection, position).transpose() {
                None => (None, 0),
                Some(Err(error)) => lost(error.message),
                Some(Ok(resource)) => {
                    let written = cbor::to_vec(&resource);
                    if fits(&written) {
                        (Some(Part::Resource(resource)), written.len())
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
                Some(Part::Resource(resource)) => {
                    told += 1;
                    batch.items.push(resource);
                }
                Some(Part::Lost(why)) => batch.lost.push(why),
            }
            batch.bytes += bytes;
            batch.next = selection.cursor(position).map_or(batch.next, Cursor::to_number);
            with.rest_if_due();
        }
        if batch.bytes > 0 {
            with.say(batch.answer())?;
        }
        with.say_end_of(reading.kept.clone(), Response::End { count: told, complete: true })
    }
}

/// One part of an answer.
enum Part {
    Resource(Value),
    /// The reason why a resource is not sent.
    Lost(String),
}

/// Returns the part that stands in the place of a resource, and the bytes that it takes in a message.
fn lost(why: String) -> (Option<Part>, usize) {
    let bytes = why.len() + 8;
    (Some(Part::Lost(why)), bytes)
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

/// The contents of one answer of a pull.
#[derive(Default)]
struct Batch {
    items: Vec<Value>,
    lost: Vec<String>,
    bytes: usize,
    next: u64,
}

impl Batch {
    fn answer(self) -> Response {
        Response::Items { items: self.items, next: self.next, lost: self.lost }
    }
}
