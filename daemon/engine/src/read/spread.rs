//! One hop over stated relationships: the entities that those of the best matches are related to.

use std::borrow::Cow;
use std::collections::HashMap;

use omir_core::reference::{Ref, ResourceType};

use crate::Engine;
use crate::encoded::{name_of, named_mentions};
use crate::error::Error;
use crate::recall::query::Query;

/// Matches that lend relevance: those that answer best. What barely agrees would bring in half of the store.
const SEEDS: usize = 8;
/// Most relationships that are followed, those of the best score first. Each is read from the disk.
const MAX_RELATIONSHIPS: usize = 256;

impl Engine {
    /// The query with the entities that relationships of its best matches lead to, if it asks for them. Filters of the query
    /// hold for its hits, and not for what leads there: the person whom a question names is no memory of a week.
    ///
    /// # Errors
    /// `INVALID_QUERY` where there is nothing to begin with.
    pub(crate) fn spread<'q>(&self, query: Cow<'q, Query>) -> Result<Cow<'q, Query>, Error> {
        if !query.spread {
            return Ok(query);
        }
        if !query.has_words() && query.vector.is_none() {
            return Err(Error::query("spread", "needs `q` or `vector` to begin with"));
        }
        let seeds = self.seeds(&query)?;
        if seeds.is_empty() {
            return Ok(query);
        }
        let entities = seeds.keys().filter_map(|name| name.parse().ok()).collect();
        let types = vec![ResourceType::Relationship];
        let limit = Some(MAX_RELATIONSHIPS);
        let followed = self.recall(&Query { types, entities, limit, ..same_view(&query) })?;
        let mut related: HashMap<Ref, f64> = HashMap::new();
        for relationship in &followed.hits {
            let ends: Vec<String> = entities_of(&relationship.resource).collect();
            for (at, end) in ends.iter().enumerate() {
                let others = ends.iter().enumerate().filter(|(other, _)| *other != at);
                let lent = others.filter_map(|(_, other)| seeds.get(other)).copied();
                let lent = lent.fold(0.0, f64::max);
                if let Some(entity) = end.parse().ok().filter(|_| lent > 0.0) {
                    let relevance = related.entry(entity).or_default();
                    *relevance = relevance.max(lent);
                }
            }
        }
        let mut related: Vec<(Ref, f64)> = related.into_iter().collect();
        related.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Cow::Owned(Query { related, ..query.into_owned() }))
    }

    /// The entities that the best matches are or mention, with the score of the match as a share of the best one.
    fn seeds(&self, query: &Query) -> Result<HashMap<String, f64>, Error> {
        let found = self.recall(&Query {
            text: query.text.clone(),
            vector: query.vector.clone(),
            min_cosine: query.min_cosine,
            by_meaning: query.by_meaning,
            floor: query.floor,
            limit: Some(SEEDS),
            ..same_view(query)
        })?;
        let best = found.hits.first().map_or(0.0, |hit| hit.score);
        let mut seeds: HashMap<String, f64> = HashMap::new();
        for hit in found.hits.iter().filter(|_| best > 0.0) {
            for entity in entities_of(&hit.resource) {
                let relevance = seeds.entry(entity).or_default();
                *relevance = relevance.max(hit.score / best);
            }
        }
        Ok(seeds)
    }
}

/// A query that sees what this one sees, and counts nothing as used.
fn same_view(query: &Query) -> Query {
    Query {
        as_of: query.as_of,
        snapshot: query.snapshot,
        include_expired: query.include_expired,
        include_intentions: query.include_intentions,
        include_forgotten: query.include_forgotten,
        touch: false,
        ..Query::default()
    }
}

/// The entities that a resource is, mentions or connects.
fn entities_of(resource: &[u8]) -> impl Iterator<Item = String> {
    let names = named_mentions(resource).into_iter().chain(name_of(resource));
    names.filter(|name| name.starts_with("Entity/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded::id_of;
    use crate::ingest::request::Encoding;
    use crate::testing::parts;

    const STORED: &str = r#"[
        {"resourceType":"Entity","id":"anna","name":"Anna"},
        {"resourceType":"Entity","id":"mug","name":"white mug"},
        {"resourceType":"Entity","id":"saw","name":"saw"},
        {"resourceType":"Entity","id":"bob","name":"Bob"},
        {"resourceType":"Relationship","id":"owns","from":{"ref":"Entity/anna"},"to":{"ref":"Entity/mug"},
         "relationType":"owns"},
        {"resourceType":"Relationship","id":"owned","from":{"ref":"Entity/anna"},"to":{"ref":"Entity/saw"},
         "relationType":"owned","invalidatedAt":"2001-01-01T00:00:00Z"},
        {"resourceType":"MemoryRecord","id":"shelf","content":"it stands on the shelf",
         "entityRefs":[{"ref":"Entity/mug"}]},
        {"resourceType":"MemoryRecord","id":"shed","content":"it hangs in the shed",
         "entityRefs":[{"ref":"Entity/saw"}]},
        {"resourceType":"MemoryRecord","id":"chair","content":"it leans on the chair",
         "entityRefs":[{"ref":"Entity/bob"}]},
        {"resourceType":"MemoryRecord","id":"hall","content":"Anna waits in the hall"}]"#;

    fn filled(dir: &std::path::Path) -> Engine {
        let engine = Engine::open(parts(dir), &mut |_| {}).unwrap();
        let change = engine.prepare(STORED.as_bytes(), Encoding::Json, None).unwrap();
        engine.execute(change).unwrap();
        engine
    }

    fn asked(text: &str) -> Query {
        Query { text: Some(text.into()), spread: true, touch: false, ..Query::default() }
    }

    fn ids(engine: &Engine, query: &Query) -> Vec<String> {
        let found = engine.recall(query).unwrap();
        let mut ids: Vec<String> =
            found.hits.iter().map(|hit| id_of(&hit.resource).unwrap()).collect();
        assert_eq!(found.total, ids.len() as u64);
        ids.sort_unstable();
        ids
    }

    #[test]
    fn one_hop_finds_what_belongs_to_whom_the_question_names() {
        let dir = tempfile::tempdir().unwrap();
        let engine = filled(dir.path());
        let without = Query { spread: false, ..asked("anna") };
        assert_eq!(ids(&engine, &without), ["anna", "hall"]);
        // The relationship mentions the mug that it leads to.
        assert_eq!(ids(&engine, &asked("anna")), ["anna", "hall", "mug", "owns", "shelf"]);
        // Backwards, and from what mentions it as well.
        assert_eq!(ids(&engine, &asked("shelf")), ["anna", "owns", "shelf"]);
        // A relationship that no longer holds leads nowhere, unless that is asked for.
        let expired = Query { include_expired: true, ..asked("anna") };
        let all = ["anna", "hall", "mug", "owned", "owns", "saw", "shed", "shelf"];
        assert_eq!(ids(&engine, &expired), all);
        engine.stop();
    }

    #[test]
    fn filters_hold_for_hits_and_not_for_what_leads_there() {
        let dir = tempfile::tempdir().unwrap();
        let engine = filled(dir.path());
        let types = vec![ResourceType::MemoryRecord];
        let records = Query { types, ..asked("anna") };
        assert_eq!(ids(&engine, &records), ["hall", "shelf"]);
        let text = crate::Question::parse("anna -shelf").unwrap();
        let excluded = Query { text, ..records };
        assert_eq!(ids(&engine, &excluded), ["hall"]);
        let entities = vec!["Entity/mug".parse().unwrap()];
        let of_mug = Query { entities, ..asked("anna") };
        assert_eq!(ids(&engine, &of_mug), ["owns", "shelf"]);
        engine.stop();
    }

    #[test]
    fn what_is_related_ranks_behind_what_matches_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let engine = filled(dir.path());
        let types = vec![ResourceType::MemoryRecord];
        let found = engine.recall(&Query { types, explain: true, ..asked("anna") }).unwrap();
        let order: Vec<String> =
            found.hits.iter().map(|hit| id_of(&hit.resource).unwrap()).collect();
        assert_eq!(order, ["hall", "shelf"]);
        let of = |at: usize| found.hits[at].part(crate::ScorePart::Related).unwrap();
        assert_eq!(of(0), 0.0);
        assert!(of(1) > 0.5 && of(1) <= 1.0, "{}", of(1));
        assert!(found.hits[1].reason.contains("relationship"), "{}", found.hits[1].reason);
        assert!(found.hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        // Nothing to begin with.
        let error = engine.recall(&Query { text: None, ..asked("anna") }).unwrap_err();
        assert_eq!(error.path, "/spread");
        // Words that nothing has lead nowhere.
        assert!(ids(&engine, &asked("zeppelin")).is_empty());
        engine.stop();
    }
}
