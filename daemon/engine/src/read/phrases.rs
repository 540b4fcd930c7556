//! Texts are read for the phrases of a question, with nothing locked.

use crate::Engine;
use crate::recall::query::Query;
use crate::recall::texts::{Verdicts, unread};

/// Texts whose places are taken in one hold of the lock.
const AT_ONCE: usize = 64;
/// Times that what has come in meanwhile is looked at too, before the search itself reads the last of it.
const ROUNDS: usize = 4;

impl Engine {
    /// Reads the texts that may have the phrases of a query. `now` in microseconds.
    pub(crate) fn verdicts(&self, query: &Query, now: i64) -> Verdicts {
        let mut verdicts = Verdicts::default();
        let Some(question) = query.text.as_ref().filter(|text| text.needs_texts()) else {
            return verdicts;
        };
        for _ in 0..ROUNDS {
            let ids = unread(&self.catalog(), query, now, &mut verdicts);
            if ids.is_empty() {
                break;
            }
            for ids in ids.chunks(AT_ONCE) {
                let handles: Vec<_> = {
                    let catalog = self.catalog();
                    // Versions that were compacted away since the lock was let go match no more.
                    let is_there = |id: &&u32| !catalog.doc(**id).dropped;
                    ids.iter().filter(is_there).map(|&id| (id, catalog.handle(id))).collect()
                };
                for (id, handle) in handles {
                    verdicts.read(question, id, &handle);
                }
            }
        }
        verdicts
    }
}
