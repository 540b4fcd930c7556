//! Pages of memories: what one result may hold, and the cursor that asks for the next.
//!
//! A cursor names a snapshot of the store, so that the pages are those of one answer, whatever is recorded between them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_engine::{Error, Query, Snapshot};
use omird_router::field::{ANY_NUMBER, ANY_TEXT};
use omird_router::{Field, Shape};

use super::memory::MEMORY;

/// Memories of a page that states no limit.
const DEFAULT_LIMIT: usize = 10;
/// Most memories of a page.
pub(super) const MAX_LIMIT: i64 = 50;
/// Bytes of JSON that the memories of a page may have: what a model reads at once. The first one is always there.
const PAGE_BYTES: usize = 24 << 10;
/// Time for which a cursor holds, in microseconds: superseded versions may be gone after longer.
const CURSOR_LIFE: i64 = 3_600_000_000;

/// The input of each tool that gives pages.
pub(super) const LIMIT: Field =
    Field::new("limit", Shape::Integer(1, MAX_LIMIT), "Most memories to return; 10 if left out.");
/// The same.
pub(super) const CURSOR: Field = Field::new(
    "cursor",
    Shape::Text(200),
    "`next_cursor` of the last page, with all other arguments as they were, for the next page.",
);

/// The result of each of them.
pub(super) const PAGE: &[Field] = &[
    Field::new(
        "memories",
        Shape::List(&Shape::Object(MEMORY), 0, usize::MAX),
        "The memories of this page, in order.",
    )
    .required(),
    Field::new("total", Shape::Integer(0, i64::MAX), "Number of all that match.").required(),
    Field::new("more", Shape::Flag, "True if there are more behind this page.").required(),
    Field::new("next_cursor", ANY_TEXT, "Gives the next page; missing on the last."),
    Field::new(
        "corrected",
        Shape::List(&ANY_TEXT, 1, usize::MAX),
        "Words of `query` that no memory has, each with what it was read as; in quotes a word is not corrected.",
    ),
    Field::new(
        "unreadable",
        ANY_NUMBER,
        "Number of memories of this page that the card does not give back.",
    ),
];

/// Puts the page that the arguments ask for into a query.
///
/// # Errors
/// `INVALID_QUERY` if the cursor is none of this question.
pub(super) fn apply(
    query: &mut Query,
    question: &Question<'_>,
    arguments: &Map,
    now: Timestamp,
) -> Result<(), Error> {
    let limit = arguments.get("limit").and_then(Value::as_u64);
    query.limit = Some(limit.map_or(DEFAULT_LIMIT, |limit| limit as usize));
    let Some(cursor) = arguments.get("cursor").and_then(Value::as_str) else { return Ok(()) };
    let begin_again = "ask again without it, and begin with the first page";
    let Some((offset, snapshot)) = question.read_cursor(cursor) else {
        let message = format!("{cursor:?} is no cursor of this question: {begin_again}");
        return Err(Error::query("cursor", message));
    };
    if now.micros_since(snapshot.at) > CURSOR_LIFE {
        return Err(Error::query("cursor", format!("is older than an hour: {begin_again}")));
    }
    (query.offset, query.snapshot) = (offset, Some(snapshot));
    // A look further down the same list is no further use of it.
    query.touch = false;
    Ok(())
}

/// A question of which there may be several pages: the store, the tool and its arguments.
#[derive(Debug)]
pub(super) struct Question<'a> {
    store: &'a str,
    tool: &'a str,
    arguments: &'a Map,
}

impl<'a> Question<'a> {
    pub(super) fn new(store: &'a str, tool: &'a str, arguments: &'a Map) -> Self {
        Self { store, tool, arguments }
    }

    /// A number that tells this question from others; of another release it may be another.
    fn digest(&self) -> u32 {
        let is_asked = |name: &str| name != "cursor" && name != "limit";
        let mut asked: Vec<(&str, String)> = self
            .arguments
            .iter()
            .filter(|(name, value)| is_asked(name) && !value.is_null())
            .map(|(name, value)| (name, json::to_string(value)))
            .collect();
        asked.sort_unstable();
        let mut hasher = DefaultHasher::new();
        (self.store, self.tool, asked).hash(&mut hasher);
        hasher.finish() as u32
    }

    fn cursor(&self, offset: usize, snapshot: Snapshot) -> String {
        let (seq, at) = (snapshot.seq, snapshot.at.as_micros());
        format!("{offset}-{seq}-{at}-{:08x}", self.digest())
    }

    fn read_cursor(&self, text: &str) -> Option<(usize, Snapshot)> {
        let mut parts = text.split('-');
        let mut next = || parts.next();
        let (offset, seq, at) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
        let at = Timestamp::from_micros(at.parse().ok()?);
        let is_ours = u32::from_str_radix(next()?, 16).ok()? == self.digest() && next().is_none();
        is_ours.then_some((offset, Snapshot { seq, at }))
    }

    /// Makes a result of memories, as many as it may hold. `shown` of them were found at `offset`, of `total`.
    pub(super) fn page(
        &self,
        memories: Vec<Map>,
        offset: usize,
        total: u64,
        unreadable: u64,
        snapshot: Option<Snapshot>,
    ) -> Map {
        let found = memories.len();
        let mut bytes = 0;
        let mut kept: Vec<Value> = Vec::new();
        for memory in memories {
            let memory = Value::Object(memory);
            bytes += json::to_string(&memory).len();
            if bytes > PAGE_BYTES && !kept.is_empty() {
                break;
            }
            kept.push(memory);
        }
        let is_cut = kept.len() < found;
        // A page that is cut does not count unreadable memories: the next page may meet them again.
        let next = offset + kept.len() + if is_cut { 0 } else { unreadable as usize };
        let mut map = Map::new();
        map.insert("memories", Value::Array(kept));
        map.insert("total", total);
        let more = (next as u64) < total;
        map.insert("more", more);
        if let Some(snapshot) = snapshot.filter(|_| more) {
            map.insert("next_cursor", self.cursor(next, snapshot));
        }
        if unreadable > 0 {
            map.insert("unreadable", unreadable);
        }
        map
    }
}
