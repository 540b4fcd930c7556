//! A reading of many memories, one after the other, that may be interrupted and goes on where it was.
//!
//! Each of its sessions must select the same, or what they bring does not fit together. So it is bounded by the last
//! transaction at its beginning, and its filters are judged by the time of that beginning. Both are in what the
//! client is told first, so that nothing of it is kept here. But what goes by use, by mentions or by where the robot is,
//! may be another selection a moment later: that is kept for a while.

use std::fmt;
use std::sync::Arc;

use omir_core::instant::Timestamp;
use parking_lot::Mutex;

use crate::Engine;
use crate::error::{Code, Error};
use crate::read::export::{Cursor, Selection};
use crate::recall::query::{Query, Snapshot};

/// Bits of a cursor that tell the position in a transaction: 20, a million.
const ORDINAL_BITS: u32 = 20;
/// Time for which an idle selection is kept; microseconds.
pub const KEPT: u64 = 3_600_000_000;

/// The selection of a reader's last reading, if it cannot be rebuilt.
#[derive(Clone, Default)]
pub struct CursorCache(Arc<Mutex<Option<CachedSelection>>>);

struct CachedSelection {
    name: String,
    selection: Arc<Selection>,
    /// Time of its last use; microseconds.
    idle_since: Option<u64>,
}

impl CursorCache {
    fn with<T>(&self, f: impl FnOnce(&mut Option<CachedSelection>) -> T) -> T {
        f(&mut self.0.lock())
    }

    fn put(&self, name: &str, selection: &Arc<Selection>) {
        let (name, selection) = (name.to_owned(), selection.clone());
        self.with(|kept| *kept = Some(CachedSelection { name, selection, idle_since: None }));
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

    /// Returns true if anything is kept.
    pub fn is_used(&self) -> bool {
        self.with(|kept| kept.is_some())
    }

    /// Drops what no client came back for. `now` in microseconds.
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

/// The store that is read, how far, and the name of the selection if that is kept: `identity.transaction` or
/// `identity.transaction.name`.
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

/// The place where a reading begins or goes on.
#[derive(Debug)]
pub struct ReadingStart<'a> {
    /// As the beginning told it, to go on.
    pub as_of: Option<&'a str>,
    /// The same.
    pub store: Option<&'a str>,
    /// The bytes read last.
    pub after: Option<Cursor>,
}

/// A reading as it begins, or goes on.
pub struct Reading {
    /// The resources to be read.
    pub selection: Arc<Selection>,
    /// The time that filters are judged by.
    pub as_of: Timestamp,
    /// The store that is read, and how far, to be sent back as it is.
    pub store: String,
    /// The name of the selection, if it is kept.
    pub kept: Option<String>,
}

impl Engine {
    /// Begins a reading, or goes on with one. `filter` gives the question by the time that it is judged by, without words, a
    /// time, a limit and an offset: none of them makes sense here. Between steps of the work `goes_on` is asked, which may rest.
    ///
    /// # Errors
    /// `INVALID_QUERY`: at `/filter/NAME` what is wrong with a filter; at `/filter`, `/asOf` or `/store` why it cannot go
    /// on and has to begin again. `BUSY` if it was not to go on.
    pub fn read_on(
        &self,
        cache: &CursorCache,
        wanted: &ReadingStart<'_>,
        filter: impl FnOnce(Timestamp) -> Result<Query, Error>,
        goes_on: impl FnMut() -> bool,
    ) -> Result<Reading, Error> {
        let in_filter =
            |error: Error| Error::at(error.code, format!("/filter{}", error.path), error.message);
        let snapshot = self.snapshot(wanted)?;
        let is_new = snapshot.is_none();
        let (snapshot, kept) = match snapshot {
            Some((snapshot, kept)) => (snapshot, kept),
            None => (Snapshot { seq: self.newest(), at: self.now().0 }, None),
        };
        let Snapshot { seq, at: as_of } = snapshot;
        let token = |kept| Token { identity: self.identity(), seq, kept }.write();
        if let Some(name) = kept {
            let selection = cache.get(name).ok_or_else(|| {
                begin_again(
                    "/store",
                    "what these filters selected is not kept any more, and they would select something else by now",
                )
            })?;
            let (store, kept) = (token(Some(name)), Some(name.to_owned()));
            return Ok(Reading { selection, as_of, store, kept });
        }
        let query = filter(as_of).map_err(in_filter)?;
        let query = Query { snapshot: Some(snapshot), ..query };
        let is_passing = query.is_passing() || self.goes_by_place(&query).map_err(in_filter)?;
        if is_passing && !is_new {
            return Err(begin_again("/filter", "these filters would select something else by now"));
        }
        let selection = Arc::new(self.select(&query, wanted.after, goes_on)?);
        let name = is_passing.then(|| self.new_id());
        if let Some(name) = &name {
            cache.put(name, &selection);
        }
        Ok(Reading { selection, as_of, store: token(name.as_deref()), kept: name })
    }

    /// The snapshot of a reading that goes on, and the name of its kept selection; `None` for one that begins.
    fn snapshot<'a>(
        &self,
        wanted: &ReadingStart<'a>,
    ) -> Result<Option<(Snapshot, Option<&'a str>)>, Error> {
        let (as_of, store) = match (wanted.as_of, wanted.store) {
            (Some(as_of), Some(store)) => (as_of, store),
            (None, None) if wanted.after.is_none() => return Ok(None),
            (given, _) => {
                let path = if given.is_some() { "/store" } else { "/asOf" };
                let message = "is needed to go on with a pull: as the first answer told it";
                return Err(Error::at(Code::InvalidQuery, path, message));
            }
        };
        let at = Timestamp::parse(as_of)
            .map_err(|error| Error::query("asOf", format!("{as_of:?} is no instant: {error}")))?;
        let token = Token::read(store).filter(|token| token.identity == self.identity());
        let Some(token) = token else {
            return Err(begin_again("/store", "this is not the memory that was begun with"));
        };
        let kept = i64::try_from(self.settings().keep_history.as_micros()).unwrap_or(i64::MAX);
        if at.as_micros() < self.now().0.as_micros().saturating_sub(kept) {
            let why = format!("what was known at {at} is not kept any more (store.keep_history_s)");
            return Err(begin_again("/asOf", why));
        }
        Ok(Some((Snapshot { seq: token.seq, at }, token.kept)))
    }
}

fn begin_again(path: &str, why: impl fmt::Display) -> Error {
    let message = format!("{why}: begin again, without after, asOf and store");
    Error::at(Code::InvalidQuery, path, message)
}

impl Cursor {
    /// The cursor as one number, which keeps the order.
    pub fn to_number(self) -> u64 {
        self.seq << ORDINAL_BITS | u64::from(self.ordinal).min((1 << ORDINAL_BITS) - 1)
    }

    /// The cursor of a number of [`Cursor::to_number`].
    pub fn from_number(cursor: u64) -> Self {
        let ordinal = cursor & ((1 << ORDINAL_BITS) - 1);
        Self { seq: cursor >> ORDINAL_BITS, ordinal: ordinal as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        for kept in [None, Some("0123abcd")] {
            let token = Token { identity: "00ff", seq: u64::MAX, kept };
            assert_eq!(Token::read(&token.write()), Some(token));
        }
    }

    #[test]
    fn a_cursor_keeps_the_order_and_comes_back() {
        let places = [(0, 0), (0, 7), (1, 0), (1, 999_999), (1 << 43, 3)];
        let places = places.map(|(seq, ordinal)| Cursor { seq, ordinal });
        for pair in places.windows(2) {
            assert!(pair[0].to_number() < pair[1].to_number());
        }
        for one in places {
            assert_eq!(Cursor::from_number(one.to_number()), one);
        }
    }
}
