//! A pull: what is selected, one resource after the other, and how it goes on after an interruption
//! (docs/serial.md, section 3).
//!
//! Each of its sessions must select the same, or what they bring does not fit together. So it is fenced by the last
//! transaction at its beginning, and its filters are judged by the time of that beginning. Both are in what the first
//! answer tells, so that nothing of it is kept here. But what goes by use, by mentions or by where the robot is, may be
//! another selection a moment later: that is kept for a while.

use std::sync::{Arc, Mutex, PoisonError};

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::link::message::{Answer, BATCH, Pull, fits};
use omir_core::value::Value;

use super::desk::{Job, Unwanted};
use super::share::Turn;
use crate::engine::Engine;
use crate::engine::export::{Place, Selection};
use crate::error::{Code, Error};
use crate::recall::parameters;
use crate::recall::query::{Fence, Query};

/// Bits of a cursor that tell the position in a transaction: 20, a million.
const ORDINAL_BITS: u32 = 20;
/// How long a selection is kept for who goes on, after it was last worked on; microseconds.
const KEPT: u64 = 3_600_000_000;

/// The selection of the last pull of a port that cannot be made anew.
#[derive(Clone, Default)]
pub struct Shelf(Arc<Mutex<Option<Kept>>>);

struct Kept {
    name: String,
    selection: Arc<Selection>,
    /// Since when nothing was done with it; microseconds.
    idle_since: Option<u64>,
}

impl Shelf {
    fn with<T>(&self, f: impl FnOnce(&mut Option<Kept>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, name: &str, selection: &Arc<Selection>) {
        let (name, selection) = (name.to_owned(), selection.clone());
        self.with(|kept| *kept = Some(Kept { name, selection, idle_since: None }));
    }

    fn get(&self, name: &str) -> Option<Arc<Selection>> {
        self.with(|kept| {
            let kept = kept.as_ref().filter(|kept| kept.name == name)?;
            Some(kept.selection.clone())
        })
    }

    /// Drops a selection, if it is still the one that is kept.
    pub fn drop(&self, name: &str) {
        self.with(|kept| drop(kept.take_if(|kept| kept.name == name)));
    }

    #[cfg(test)]
    pub fn is_used(&self) -> bool {
        self.with(|kept| kept.is_some())
    }

    /// Drops what nobody came back for. `now` in microseconds.
    pub fn tidy(&self, is_used: bool, now: u64) {
        self.with(|kept| {
            let Some(it) = kept else { return };
            it.idle_since = (!is_used).then(|| it.idle_since.unwrap_or(now));
            if it.idle_since.is_some_and(|since| now.saturating_sub(since) > KEPT) {
                *kept = None;
            }
        });
    }
}

/// Which memory a pull is of, how far it goes, and the name of its selection if that is kept: the member `store` of its
/// first answer, `identity.transaction` or `identity.transaction.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'a> {
    identity: &'a str,
    seq: u64,
    kept: Option<&'a str>,
}

impl<'a> Token<'a> {
    fn read(text: &'a str) -> Option<Token<'a>> {
        let (identity, rest) = text.split_once('.')?;
        let (seq, kept) = match rest.split_once('.') {
            Some((seq, kept)) => (seq, Some(kept)),
            None => (rest, None),
        };
        Some(Token { identity, seq: seq.parse().ok()?, kept })
    }

    fn write(&self) -> String {
        let Token { identity, seq, kept } = self;
        kept.map_or(format!("{identity}.{seq}"), |kept| format!("{identity}.{seq}.{kept}"))
    }
}

/// A pull as it begins, or goes on.
struct Begun {
    selection: Arc<Selection>,
    as_of: Timestamp,
    store: String,
    /// The name of the selection, if it is kept.
    kept: Option<String>,
}

impl Job {
    pub(super) fn pull(&self, pull: &Pull, share: &mut Turn) -> Result<(), Error> {
        let begun = self.begin_pull(pull, share)?;
        let told = self.stream(&begun, pull.after.map(place), share);
        // Whoever does not want the rest has ended the session, or cancelled.
        told.or(Ok(()))
    }

    fn begin_pull(&self, pull: &Pull, share: &mut Turn) -> Result<Begun, Error> {
        let in_filter =
            |error: Error| Error::at(error.code, format!("/filter{}", error.path), error.message);
        let filter = Value::Object(pull.filter.clone());
        let named = parameters::from_payload(&filter).map_err(in_filter)?;
        for name in ["q", "asOf", "limit", "offset"] {
            if named.iter().any(|(given, _)| given == name) {
                let path = format!("/filter/{name}");
                return Err(Error::at(Code::InvalidQuery, path, "not in a pull"));
            }
        }
        let engine = &self.engine;
        let fence = going_on(engine, pull)?;
        let is_new = fence.is_none();
        let (fence, kept) = match fence {
            Some((fence, kept)) => (fence, kept),
            None => (Fence { seq: engine.newest(), at: engine.now().0 }, None),
        };
        let Fence { seq, at: as_of } = fence;
        let token = |kept| Token { identity: engine.identity(), seq, kept }.write();
        if let Some(name) = kept {
            let selection = self.shelf.get(name).ok_or_else(|| {
                anew(
                    "/store",
                    "what these filters selected is not kept any more, and they would select something else by now",
                )
            })?;
            let (store, kept) = (token(Some(name)), Some(name.to_owned()));
            return Ok(Begun { selection, as_of, store, kept });
        }
        let query = engine.query_at(Query::everything(), &named, as_of).map_err(in_filter)?;
        let query = Query { fence: Some(fence), ..query };
        let is_passing = query.is_passing() || engine.goes_by_place(&query)?;
        if is_passing && !is_new {
            return Err(anew("/filter", "these filters would select something else by now"));
        }
        let after = pull.after.map(place);
        let selection = Arc::new(engine.select(&query, after, || {
            share.rest_if_due();
            self.wanted.strong_count() > 0
        })?);
        let name = is_passing.then(|| engine.new_id());
        if let Some(name) = &name {
            self.shelf.put(name, &selection);
        }
        Ok(Begun { selection, as_of, store: token(name.as_deref()), kept: name })
    }

    /// One resource after the other from the disk: as much of the store as is under way on the line is in memory.
    fn stream(
        &self,
        begun: &Begun,
        after: Option<Place>,
        share: &mut Turn,
    ) -> Result<(), Unwanted> {
        let selection = &*begun.selection;
        let first = selection.behind(after);
        let count = (selection.len() - first) as u64;
        let (as_of, store) = (begun.as_of.to_string(), begun.store.clone());
        self.say(Answer::Begin { as_of, count, store })?;
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
                self.say(std::mem::take(&mut batch).answer())?;
                share.rest();
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
            batch.next = selection.place(position).map_or(batch.next, cursor);
            share.rest_if_due();
        }
        if batch.bytes > 0 {
            self.say(batch.answer())?;
        }
        self.say_last_of(begun.kept.clone(), Answer::End { count: told, complete: true })
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

fn anew(path: &str, why: impl std::fmt::Display) -> Error {
    let message = format!("{why}: begin anew, without after, asOf and store");
    Error::at(Code::InvalidQuery, path, message)
}

/// Where a pull was begun that is to go on, and the name of what was kept of it. Nothing of one that begins.
fn going_on<'a>(
    engine: &Engine,
    pull: &'a Pull,
) -> Result<Option<(Fence, Option<&'a str>)>, Error> {
    let (as_of, store) = match (&pull.as_of, &pull.store) {
        (Some(as_of), Some(store)) => (as_of, store),
        (None, None) if pull.after.is_none() => return Ok(None),
        (given, _) => {
            let path = if given.is_some() { "/store" } else { "/asOf" };
            let message = "is needed to go on with a pull: as the first answer told it";
            return Err(Error::at(Code::InvalidQuery, path, message));
        }
    };
    let at = Timestamp::parse(as_of)
        .map_err(|error| Error::query("asOf", format!("{as_of:?} is no instant: {error}")))?;
    let token = Token::read(store).filter(|token| token.identity == engine.identity());
    let Some(token) = token else {
        return Err(anew("/store", "this is not the memory that was begun with"));
    };
    let kept = i64::try_from(engine.settings().keep_history.as_micros()).unwrap_or(i64::MAX);
    if at.as_micros() < engine.now().0.as_micros().saturating_sub(kept) {
        let why = format!("what was known at {at} is not kept any more (store.keep_history_s)");
        return Err(anew("/asOf", why));
    }
    Ok(Some((Fence { seq: token.seq, at }, token.kept)))
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

fn cursor(place: Place) -> u64 {
    place.seq << ORDINAL_BITS | u64::from(place.ordinal).min((1 << ORDINAL_BITS) - 1)
}

fn place(cursor: u64) -> Place {
    let ordinal = cursor & ((1 << ORDINAL_BITS) - 1);
    Place { seq: cursor >> ORDINAL_BITS, ordinal: ordinal as u32 }
}

#[cfg(test)]
mod tests;
