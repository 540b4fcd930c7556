//! Ranked recall: the search, its hits read from disk, and the note of their accesses.

use std::ops::ControlFlow;
use std::time::Instant;

use omird_store::RefKey;

use super::answers::Names;
use super::hits::{Hit, Parts, Recall};
use super::outgoing::Outgoing;
use crate::Engine;
use crate::encoded::id_of;
use crate::encoded::mentions_of;
use crate::error::Error;
use crate::index::catalog::{Catalog, ReadPoint};
use crate::index::scores::ScorePart;
use crate::index::text::TextQuery;
use crate::recall::query::{Query, Snapshot};
use crate::recall::ranking::Ranked;
use crate::recall::score::Weights;
use crate::recall::search::{Matches, search};
use crate::shared;

/// Hits whose rows are taken in one hold of the lock.
const AT_ONCE: usize = 64;

/// The way in which hits were ranked.
struct RankingBasis {
    weights: Weights,
    words: Option<TextQuery>,
}

/// A hit as the catalog has it, before its bytes are read.
struct Row {
    key: RefKey,
    age: i64,
    forgotten: bool,
    counts_access: bool,
    outgoing: Outgoing,
}

impl Row {
    /// Takes what a hit is made of. `now` is the time, `at` the one that the query is judged by.
    fn of(catalog: &Catalog, ranked: &Ranked, query: &Query, now: i64, at: i64) -> Self {
        let doc = catalog.doc(ranked.doc);
        Self {
            key: doc.key,
            age: now.saturating_sub(doc.when.as_micros()),
            forgotten: doc.forgotten,
            counts_access: doc.access.is_some() && doc.is_live(),
            outgoing: Outgoing::of(catalog, ranked.doc, query.as_of.is_some(), at),
        }
    }

    fn hit(&self, query: &Query, ranked: &Ranked, how: &RankingBasis, resource: Vec<u8>) -> Hit {
        let RankingBasis { weights, words } = how;
        let parts = || {
            let bm25 = words.as_ref().map(|words| words.bm25(ranked.text));
            Parts { scores: ranked.scores, weights: *weights, bm25 }
        };
        Hit {
            resource,
            score: ranked.score,
            retrievability: ranked.scores[ScorePart::Retrievability],
            distance: ranked.distance,
            reason: reason(query, ranked, self),
            parts: query.explain.then(parts),
            forgotten: self.forgotten,
            entities: None,
        }
    }
}

impl Engine {
    /// Ranked recall.
    ///
    /// # Errors
    /// `INVALID_QUERY` where the frame that is asked in is unknown. What cannot be read is left out, logged
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

    /// Calls `f` with each hit of a recall, best first, until it breaks off, and returns the number of matches in all. One
    /// hit is in memory at a time, so that a caller with a deadline or with little room stops where it must. What cannot be
    /// read is left out and logged. Nothing counts as accessed, whatever the query says: [`Engine::touch`] does.
    ///
    /// # Errors
    /// As [`Engine::recall`].
    pub fn recall_each(
        &self,
        query: &Query,
        mut f: impl FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<u64, Error> {
        self.recall_each_or_unread(query, |hit| match hit {
            Ok(hit) => f(hit),
            Err(error) => {
                tracing::error!(%error, "left out of a recall");
                ControlFlow::Continue(())
            }
        })
    }

    /// As [`Engine::recall_each`], and calls `f` with the fault of each hit that the disk does not give back.
    ///
    /// # Errors
    /// As [`Engine::recall`].
    pub fn recall_each_or_unread(
        &self,
        query: &Query,
        mut f: impl FnMut(Result<Hit, Error>) -> ControlFlow<()>,
    ) -> Result<u64, Error> {
        let query = &*self.placed(query)?;
        let now = self.inner.shared.time.moment().now.as_micros();
        let at = query.at(now);
        // Before the catalog is taken: it reads texts, and takes the catalog itself.
        let mut verdicts = self.verdicts(query, now);
        let found = search(&self.catalog(), query, now, &mut verdicts);
        let how = RankingBasis { weights: weights_of(query, &found), words: found.words };
        let is_of_now = query.read_point() == ReadPoint::Now && !query.include_forgotten;
        for part in found.page.chunks(AT_ONCE) {
            let rows: Vec<(&Ranked, Row)> = {
                let catalog = self.catalog();
                // Memories that were forgotten or changed since the lock was let go are no hits any more.
                let is_there = |ranked: &&Ranked| {
                    let doc = catalog.doc(ranked.doc);
                    doc.is_live() || !doc.dropped && !is_of_now
                };
                let of = |ranked| (ranked, Row::of(&catalog, ranked, query, now, at));
                part.iter().filter(is_there).map(of).collect()
            };
            for (ranked, row) in rows {
                let read = self.counted(self.emit(&row.outgoing));
                if f(read.map(|resource| row.hit(query, ranked, &how, resource))).is_break() {
                    return Ok(found.total);
                }
            }
        }
        Ok(found.total)
    }

    /// Notes that memories were used: those that an answer rests on, where the recall itself counted nothing. Each is the
    /// resource as CBOR, as a hit has it.
    pub fn touch<'r>(&self, resources: impl IntoIterator<Item = &'r [u8]>) {
        if self.settings().read_only {
            return;
        }
        let at = self.inner.shared.time.moment().monotonic;
        let named = resources.into_iter().filter_map(|resource| {
            let target = format!("MemoryRecord/{}", id_of(resource)?);
            Some((RefKey::of_text(&target), target, resource))
        });
        let accesses: Vec<shared::AccessEvent> = {
            let catalog = self.catalog();
            let has_bonds = catalog.has_bonds();
            let counts =
                |key: &RefKey| catalog.live(key).is_some_and(|id| catalog.doc(id).access.is_some());
            let event = |(key, target, resource)| {
                let mentions = if has_bonds { mentions_of(resource) } else { Vec::new() };
                shared::AccessEvent { key, target, at, mentions }
            };
            named.filter(|(key, _, _)| counts(key)).map(event).collect()
        };
        self.inner.shared.accesses.note(accesses);
    }

    fn recall_in(&self, query: &Query, few: usize) -> Result<(Recall, Option<Snapshot>), Error> {
        let began = Instant::now();
        let query = &*self.placed(query)?;
        let moment = self.inner.shared.time.moment();
        let now = moment.now.as_micros();
        let at = query.at(now);
        let mut verdicts = self.verdicts(query, now);
        let (found, names, rows, has_bonds, snapshot) = {
            let catalog = self.catalog();
            let has_bonds = catalog.has_bonds();
            let found = search(&catalog, query, now, &mut verdicts);
            let names = Names::of(&catalog, &found);
            let row = |ranked| Row::of(&catalog, ranked, query, now, at);
            let rows: Vec<Row> = found.page.iter().map(row).collect();
            let snapshot = (found.total > query.offset.saturating_add(few) as u64).then(|| {
                let of_now = || Snapshot { seq: catalog.newest(), at: moment.now };
                query.snapshot.unwrap_or_else(of_now)
            });
            (found, names, rows, has_bonds, snapshot)
        };
        let how = RankingBasis { weights: weights_of(query, &found), words: found.words.clone() };
        let mut hits = Vec::with_capacity(rows.len());
        let mut accesses = Vec::new();
        let mut unreadable = verdicts.unreadable + found.outdated;
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
            let entities = names.of_hit(&found, ranked.doc);
            hits.push(Hit { entities, ..row.hit(query, ranked, &how, resource) });
        }
        if !accesses.is_empty() && !self.settings().read_only {
            self.inner.shared.accesses.note(accesses);
        }
        let more = names.members(query, &found);
        let took_micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let recall = Recall {
            hits,
            total: found.total,
            hidden: found.hidden,
            corrected: how.words.map(TextQuery::into_corrected).unwrap_or_default(),
            more,
            unreadable,
            took_micros,
        };
        Ok((recall, snapshot))
    }
}

/// The weights that hits were ranked by.
fn weights_of(query: &Query, found: &Matches) -> Weights {
    found.weights.unwrap_or_else(|| Weights::of(query))
}

fn reason(query: &Query, ranked: &Ranked, row: &Row) -> String {
    use std::fmt::Write;
    let mut reason = String::new();
    if query.has_words() {
        let _ = write!(reason, "words match {:.0} %; ", ranked.scores[ScorePart::Text] * 100.0);
    }
    if query.vector.is_some() {
        let _ = write!(reason, "meaning {:.2}; ", ranked.scores[ScorePart::Meaning]);
    }
    let related = ranked.scores[ScorePart::Related];
    if related > 0.0 {
        let _ = write!(reason, "a relationship leads here, {:.0} %; ", related * 100.0);
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

#[cfg(test)]
mod tests {
    use omir_core::cbor;
    use omir_core::decode::Limits;
    use omir_core::value::Value;

    use super::*;
    use crate::error::Code;
    use crate::ingest::request::Encoding;
    use crate::testing::parts;
    use crate::write::command::Change;

    fn put(engine: &Engine, text: &str) {
        let change = engine.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        engine.execute(change).unwrap();
    }

    fn filled(dir: &std::path::Path) -> Engine {
        let engine = Engine::open(parts(dir), &mut |_| {}).unwrap();
        for at in 0..AT_ONCE + 6 {
            let text = format!(
                r#"{{"resourceType":"MemoryRecord","id":"m{at}","content":"a cup, number {at}"}}"#
            );
            put(&engine, &text);
        }
        engine
    }

    #[test]
    fn what_is_never_mentioned_is_refused_instead_of_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let engine = filled(dir.path());
        let of = |name: &str| Query { entities: vec![name.parse().unwrap()], ..Query::default() };
        assert_eq!(engine.recall(&of("Entity/cup")).unwrap().total, 0);
        for refused in ["MemoryRecord/m1", "Episode/m1", "Relationship/m1"] {
            let error = engine.recall(&of(refused)).unwrap_err();
            assert_eq!(
                (error.code, error.path.as_str()),
                (Code::InvalidQuery, "/entity"),
                "{refused}"
            );
            assert!(error.message.contains("Entity/<id>"), "{error}");
        }
    }

    #[test]
    fn hits_come_one_by_one_as_a_recall_has_them_until_it_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let engine = filled(dir.path());
        let text = Some("cup".into());
        let query = Query { text, limit: Some(1000), touch: false, ..Query::default() };
        let all = engine.recall(&query).unwrap();
        let mut found = Vec::new();
        let walk = |most: usize, found: &mut Vec<Vec<u8>>| {
            let walked = engine.recall_each(&query, |hit| {
                found.push(hit.resource);
                if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            assert_eq!(walked.unwrap(), all.total);
        };
        walk(usize::MAX, &mut found);
        let expected: Vec<Vec<u8>> = all.hits.into_iter().map(|hit| hit.resource).collect();
        assert_eq!(found, expected);
        let mut few = Vec::new();
        walk(3, &mut few);
        assert_eq!(few, expected[..3]);
        // A memory that is forgotten on the way is no hit any more.
        let mut seen = 0;
        let walked = engine.recall_each(&query, |hit| {
            if seen == 0 {
                let others = (0..AT_ONCE + 6).map(|at| format!("MemoryRecord/m{at}"));
                let targets = others.map(|target| target.parse().unwrap()).collect();
                engine.execute(Change::Forget(targets)).unwrap();
            }
            seen += 1;
            drop(hit);
            ControlFlow::Continue(())
        });
        assert_eq!(
            (walked.unwrap(), seen),
            (all.total, AT_ONCE),
            "the rows of one hold of the lock"
        );
        engine.stop();
    }

    #[test]
    fn what_is_touched_counts_as_used_and_the_rest_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let engine = filled(dir.path());
        put(&engine, r#"{"resourceType":"Entity","id":"e","name":"cup"}"#);
        let get = |engine: &Engine, name: &str| {
            engine.get(&name.parse().unwrap()).unwrap().expect("it is there")
        };
        let (one, entity) = (get(&engine, "MemoryRecord/m1"), get(&engine, "Entity/e"));
        engine.touch([one.as_slice(), entity.as_slice(), b"no resource"]);
        engine.stop();
        let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
        let count = |name: &str| {
            let record = cbor::from_slice(&get(&engine, name), &Limits::default()).unwrap();
            record.pointer("/decay/accessCount").and_then(Value::as_u64)
        };
        assert_eq!((count("MemoryRecord/m1"), count("MemoryRecord/m2")), (Some(1), None));
        engine.stop();
    }
}
