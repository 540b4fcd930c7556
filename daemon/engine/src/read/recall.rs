//! Ranked recall: the search, its hits read from disk, and the note of their accesses.

use std::time::Instant;

use super::encoded::mentions_of;
use super::hits::{Hit, Recall};
use super::outgoing::Outgoing;
use crate::Engine;
use crate::encoded::id_of;
use crate::error::Error;
use crate::index::key::RefKey;
use crate::index::scores::ScorePart;
use crate::recall::query::{Query, Snapshot};
use crate::recall::ranking::Ranked;
use crate::recall::score::Weights;
use crate::recall::search::search;
use crate::shared;

/// A hit as the catalog has it, before its bytes are read.
struct Row {
    key: RefKey,
    age: i64,
    forgotten: bool,
    counts_access: bool,
    outgoing: Outgoing,
}

impl Engine {
    /// Ranked recall.
    ///
    /// # Errors
    /// `INVALID_QUERY` where nobody knows the frame that is asked in. What cannot be read is left out, logged
    /// and counted.
    pub fn recall(&self, query: &Query) -> Result<Recall, Error> {
        self.recall_in(query, usize::MAX).map(|(found, _)| found)
    }

    /// As [`Engine::recall`], and the snapshot that the answer is of, if more than `few` matches lie from the offset on: the
    /// same query with that snapshot and another offset gives the next ones, whatever was recorded meanwhile. To name the
    /// snapshot takes a look at all versions, which [`Engine::recall`] spares.
    ///
    /// # Errors
    /// As [`Engine::recall`].
    pub fn recall_page(
        &self,
        query: &Query,
        few: usize,
    ) -> Result<(Recall, Option<Snapshot>), Error> {
        self.recall_in(query, few)
    }

    fn recall_in(&self, query: &Query, few: usize) -> Result<(Recall, Option<Snapshot>), Error> {
        let began = Instant::now();
        let query = &*self.placed(query)?;
        let moment = self.inner.shared.time.moment();
        let now = moment.now.as_micros();
        let at = query.at(now);
        let weights = Weights::of(query);
        let (found, rows, has_bonds, snapshot) = {
            let catalog = self.catalog();
            let has_bonds = catalog.has_bonds();
            let found = search(&catalog, query, now);
            let rows: Vec<Row> = found
                .page
                .iter()
                .map(|ranked| {
                    let doc = catalog.doc(ranked.doc);
                    Row {
                        key: doc.key,
                        age: now.saturating_sub(doc.when.as_micros()),
                        forgotten: doc.forgotten,
                        counts_access: doc.access.is_some() && doc.is_live(),
                        outgoing: Outgoing::of(&catalog, ranked.doc, query.as_of.is_some(), at),
                    }
                })
                .collect();
            let snapshot = (found.total > query.offset.saturating_add(few) as u64).then(|| {
                let of_now = || Snapshot { seq: catalog.newest(), at: moment.now };
                query.snapshot.unwrap_or_else(of_now)
            });
            (found, rows, has_bonds, snapshot)
        };
        let mut hits = Vec::with_capacity(rows.len());
        let mut accesses = Vec::new();
        let mut unreadable = 0;
        for (ranked, row) in found.page.iter().zip(rows) {
            let resource = match self.counted(self.emit(&row.outgoing)) {
                Ok(resource) => resource,
                Err(error) => {
                    tracing::error!(%error, "left out of a recall");
                    unreadable += 1;
                    continue;
                }
            };
            if query.touch && query.as_of.is_none() && row.counts_access {
                accesses.extend(id_of(&resource).map(|id| shared::AccessEvent {
                    key: row.key,
                    target: format!("MemoryRecord/{id}"),
                    at: moment.monotonic,
                    mentions: if has_bonds { mentions_of(&resource) } else { Vec::new() },
                }));
            }
            hits.push(Hit {
                resource,
                score: ranked.score,
                retrievability: ranked.scores[ScorePart::Retrievability],
                distance: ranked.distance,
                reason: reason(query, ranked, &row),
                parts: query.explain.then_some((ranked.scores, weights)),
                forgotten: row.forgotten,
            });
        }
        if !accesses.is_empty() && !self.settings().read_only {
            self.inner.shared.accesses.note(accesses);
        }
        let took_micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok((Recall { hits, total: found.total, unreadable, took_micros }, snapshot))
    }
}

fn reason(query: &Query, ranked: &Ranked, row: &Row) -> String {
    use std::fmt::Write;
    let mut reason = String::new();
    if query.text.is_some() {
        let _ = write!(reason, "words match {:.0} %; ", ranked.scores[ScorePart::Text] * 100.0);
    }
    if let Some(distance) = ranked.distance {
        let _ = write!(reason, "{distance:.2} m away; ");
    }
    let _ = write!(
        reason,
        "{}; retrievability {:.2}",
        age(row.age),
        ranked.scores[ScorePart::Retrievability]
    );
    if row.forgotten {
        reason.push_str("; forgotten");
    }
    reason
}

fn age(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    match seconds {
        ..0 => "still to come".to_owned(),
        0..120 => format!("{seconds} s ago"),
        120..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
