//! `where_is`: the place where a thing was seen last.

use std::ops::Bound;

use omir_core::instant::Timestamp;
use omir_core::model::Kind;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::{Map, Value};
use omir_core::words::words;
use omird_engine::{Code, Error, Hit, Lookup, Order, Query, TimeRange};
use omird_router::field::ANY_TEXT;
use omird_router::{Field, Shape};

use super::ask::decoded;
use super::memory::{MEMORY, has_place};
use super::{Call, given_up};

/// Entities that a name may mean.
const CANDIDATES: usize = 20;
/// Other things of that name that are told of.
const ALTERNATIVES: usize = 4;
/// Sightings that are tried where the card has lost the latest.
const SPARE: usize = 10;
/// Microseconds by which the clock of the observer may be ahead.
const SLACK: i64 = 60_000_000;

const THING: &[Field] = &[
    Field::new("reference", ANY_TEXT, "").required(),
    Field::new("name", ANY_TEXT, "").required(),
];

/// The members of the result beside those of the sighting.
pub(super) const FOUND: [Field; 6] = [
    Field::new("found", Shape::Flag, "True if a place is known; then x, y, z and frame tell it.")
        .required(),
    Field::new("thing", ANY_TEXT, "The entity that was meant; missing if no entity has that name."),
    Field::new("name", ANY_TEXT, "Its name."),
    Field::new(
        "matched_by",
        Shape::OneOf(&["entity", "words"]),
        "`entity`: a memory that mentions the entity, or the entity itself; `words`: the latest memory with all these words.",
    ),
    Field::new(
        "alternatives",
        Shape::List(&Shape::Object(THING), 0, ALTERNATIVES),
        "Other entities that the name may mean.",
    ),
    Field::new("unreadable", Shape::Flag, "True if the card does not give back a later sighting."),
];

/// The members of a sighting: those of a memory, but what must be there is only if it was found.
pub(super) const SIGHTING: [Field; MEMORY.len()] = {
    let mut fields = [MEMORY[0]; MEMORY.len()];
    let mut at = 0;
    while at < MEMORY.len() {
        fields[at] = Field { is_required: false, ..MEMORY[at] };
        at += 1;
    }
    fields
};

/// An entity that a name may mean.
struct Candidate {
    entity: Ref,
    resource: Value,
}

impl Call<'_> {
    pub(super) fn where_is(&self) -> Result<Map, Error> {
        let thing = self.text("thing").unwrap_or_default().trim();
        if thing.is_empty() {
            return Err(Error::query("thing", "is empty: name a thing, or an Entity/<id>"));
        }
        let (mut candidates, damaged) = self.candidates(thing)?;
        let mut map = Map::new();
        map.insert("found", false);
        let mut sighting = None;
        if !candidates.is_empty() {
            let Candidate { entity, resource } = candidates.remove(0);
            map.insert("thing", entity.to_string());
            map.insert("name", name_of(&resource));
            sighting = self.sighting_of(&entity, &resource)?.map(|found| (found, "entity"));
        }
        if sighting.is_none() {
            sighting = self.sighting_by_words(thing)?.map(|found| (found, "words"));
        }
        if let (None, Some(error)) = (&sighting, damaged) {
            return Err(error);
        }
        if let Some((found, matched_by)) = sighting {
            map.insert("found", true);
            map.insert("matched_by", matched_by);
            for (name, value) in found.iter() {
                map.insert(name, value.clone());
            }
        }
        let others: Vec<Value> = candidates.iter().take(ALTERNATIVES).map(alternative).collect();
        if !others.is_empty() {
            map.insert("alternatives", Value::Array(others));
        }
        Ok(map)
    }

    /// The entities that a text may mean, the likeliest first: the one of that id, those of that very name, those that
    /// have all of its words. The error is of the one of that id, if the card does not give it back.
    fn candidates(&self, thing: &str) -> Result<(Vec<Candidate>, Option<Error>), Error> {
        let engine = &self.omir.engine;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut damaged = None;
        let with_type =
            if thing.contains('/') { thing.to_owned() } else { format!("Entity/{thing}") };
        if let Ok(entity) = with_type.parse::<Ref>()
            && entity.kind == ResourceType::Entity
        {
            match engine.look_up(&entity)? {
                Lookup::Nothing => {}
                Lookup::Whole(bytes) => {
                    candidates.push(Candidate { entity, resource: decoded(&bytes)? });
                }
                Lookup::Damaged(error) | Lookup::Lost(error) => damaged = Some(error),
            }
        }
        let query = Query {
            text: Some(thing.to_lowercase().into()),
            all_words: true,
            types: vec![ResourceType::Entity],
            limit: Some(CANDIDATES),
            touch: false,
            ..Query::default()
        };
        let mut named = Vec::new();
        for hit in engine.recall(&query)?.hits {
            let resource = decoded(&hit.resource)?;
            let Ok(entity) = omir_core::words::name(&resource).parse::<Ref>() else { continue };
            let is_known = candidates.iter().any(|known| known.entity == entity);
            if !is_known && has_all_words(&words(&resource), thing) {
                named.push(Candidate { entity, resource });
            }
        }
        // The sort is stable: within each group the best score comes first.
        named.sort_by_key(|one| name_of(&one.resource).to_lowercase() != thing.to_lowercase());
        candidates.append(&mut named);
        Ok((candidates, damaged))
    }

    /// The latest memory with a place that mentions the entity, or else the entity's own place.
    fn sighting_of(&self, entity: &Ref, resource: &Value) -> Result<Option<Map>, Error> {
        let query = Query { entities: vec![entity.clone()], ..self.sightings() };
        if let Some(found) = self.latest(&query)? {
            return Ok(Some(found));
        }
        let has_place = has_place(resource, self.text("frame"));
        Ok(has_place.then(|| super::memory::shown(resource, &self.frame(), self.now)))
    }

    /// The latest memory with a place and with all of these words.
    fn sighting_by_words(&self, thing: &str) -> Result<Option<Map>, Error> {
        let text = Some(thing.to_lowercase().into());
        self.latest(&Query { text, all_words: true, ..self.sightings() })
    }

    fn sightings(&self) -> Query {
        Query {
            kinds: vec![Kind::Memory],
            frame: self.text("frame").map(str::to_owned),
            has_place: true,
            order: Order::Latest,
            limit: Some(1),
            touch: false,
            ..Query::default()
        }
    }

    /// The first of the matches. What a clock that was ahead has dated later than now comes only if nothing else does, or
    /// it would be the latest until that date.
    fn latest(&self, query: &Query) -> Result<Option<Map>, Error> {
        let last = Timestamp::from_micros(self.now.as_micros().saturating_add(SLACK));
        let until_now = TimeRange { from: Bound::Unbounded, to: Bound::Included(last) };
        for time in [Some(until_now), None] {
            let query = Query { time, ..query.clone() };
            if let Some(found) = self.first(&query)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first match, or where the card has lost it, the first of a few more that can be read.
    fn first(&self, query: &Query) -> Result<Option<Map>, Error> {
        for limit in [1, SPARE] {
            if !self.observer.is_wanted() {
                return Err(given_up());
            }
            let found = self.omir.engine.recall(&Query { limit: Some(limit), ..query.clone() })?;
            if let Some(hit) = found.hits.first() {
                let mut shown = self.hit_of(hit)?;
                if limit > 1 {
                    shown.insert("unreadable", true);
                }
                return Ok(Some(shown));
            }
            if found.unreadable == 0 {
                return Ok(None);
            }
        }
        let lost = format!(
            "the card does not give back the {SPARE} latest memories that tell its place; timeline tells of older ones"
        );
        Err(Error::new(Code::Internal, lost))
    }

    /// A sighting as it is shown: how well it fits was not asked.
    fn hit_of(&self, hit: &Hit) -> Result<Map, Error> {
        let mut map = self.hit(hit)?;
        map.remove("score");
        Ok(map)
    }
}

fn name_of(resource: &Value) -> &str {
    resource.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn alternative(one: &Candidate) -> Value {
    let mut map = Map::new();
    map.insert("reference", one.entity.to_string());
    map.insert("name", name_of(&one.resource));
    Value::Object(map)
}

/// Returns true if each word of `wanted` stands in `text`, in any case.
fn has_all_words(text: &str, wanted: &str) -> bool {
    let split = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let held = split(text);
    split(wanted).iter().all(|word| held.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_must_be_there() {
        assert!(has_all_words("The Red mug, on a table", "red MUG"));
        assert!(!has_all_words("the red chair", "red mug"));
        assert!(!has_all_words("redmug", "red mug"));
    }
}
