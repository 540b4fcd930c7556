//! Answers about all matches, as a reply has them: with the names of entities, which lie on the card.

use std::collections::{HashMap, HashSet};

use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use omird_store::{Handle, RefKey};

use crate::encoded::{float, id_of, named_mentions};
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::spatial::FrameId;
use crate::recall::query::Query;
use crate::recall::search::Matches;
use crate::recall::tally::{Of, Run, Stay};

/// The bytes that tell a name: those of the entity, and those of a version that mentions it.
struct Sources {
    own: Option<Handle>,
    mention: Handle,
}

/// What is still to be read for the answers about all matches. Made while the catalog is held, and read without.
pub(super) struct Names {
    entities: HashMap<RefKey, Sources>,
    /// The entities that each hit of the page is the newest match of.
    of_hits: HashMap<DocId, Vec<RefKey>>,
    /// Names of resources that stand for a stay.
    stays: HashMap<DocId, Handle>,
    frames: HashMap<FrameId, String>,
}

impl Names {
    pub(super) fn of(catalog: &Catalog, found: &Matches) -> Self {
        let mut names = Self {
            entities: HashMap::new(),
            of_hits: HashMap::new(),
            stays: HashMap::new(),
            frames: HashMap::new(),
        };
        let Some(tally) = &found.tally else { return names };
        let frame = |frame: FrameId| (frame, catalog.places.name(frame).to_owned());
        let mut entity = |key: &RefKey, doc: DocId| {
            let own = catalog.live(key).map(|id| catalog.handle(id));
            names.entities.insert(*key, Sources { own, mention: catalog.handle(doc) });
        };
        for (of, _) in tally.groups.iter().flat_map(|(groups, _)| groups) {
            match of {
                Of::Entity(key, doc) => entity(key, *doc),
                Of::Square(at, _) => {
                    let (at, name) = frame(*at);
                    names.frames.insert(at, name);
                }
                Of::Day(_) => {}
            }
        }
        // Only those of the page are told.
        let page: HashSet<DocId> = found.page.iter().map(|hit| hit.doc).collect();
        for (key, doc) in tally.newest.iter().filter(|(_, doc)| page.contains(doc)) {
            entity(key, *doc);
            names.of_hits.entry(*doc).or_default().push(*key);
        }
        for stay in tally.histories.iter().flat_map(|(_, stays, _)| stays) {
            let (at, name) = frame(stay.frame);
            names.frames.insert(at, name);
            names.stays.insert(stay.doc, catalog.handle(stay.doc));
        }
        names
    }

    fn entity(&self, key: &RefKey) -> Value {
        let Some(Sources { own, mention }) = self.entities.get(key) else { return Value::Null };
        let own = own.as_ref().and_then(|handle| id_of(&handle.bytes().ok()?));
        let name = own.map(|id| format!("Entity/{id}")).or_else(|| {
            let bytes = mention.bytes().ok()?;
            named_mentions(&bytes).into_iter().find(|name| RefKey::of_text(name) == *key)
        });
        // The card has lost both.
        name.map_or(Value::Null, Value::from)
    }

    fn frame(&self, frame: FrameId) -> Value {
        self.frames.get(&frame).map_or(Value::Null, |name| Value::from(name.as_str()))
    }

    /// The entities that a hit is the newest match of.
    pub(super) fn of_hit(&self, found: &Matches, doc: DocId) -> Option<Vec<Value>> {
        found.tally.as_ref().filter(|tally| !tally.newest.is_empty())?;
        let own = self.of_hits.get(&doc).into_iter().flatten();
        Some(own.map(|key| self.entity(key)).collect())
    }

    /// The members of a reply beside its hits.
    pub(super) fn members(&self, query: &Query, found: &Matches) -> Vec<(&'static str, Value)> {
        let mut members = Vec::new();
        let asks = &query.asks;
        if !query.exact_total {
            members.push(("totalIsExact", Value::Bool(!found.is_approximate)));
        }
        if found.without_vector > 0 {
            members.push(("pending", number(found.without_vector)));
        }
        if asks.count {
            members.push(("count", number(found.total - found.hidden)));
        }
        let Some(tally) = &found.tally else { return members };
        if let Some((groups, all)) = &tally.groups {
            let cell = asks.cell.unwrap_or(crate::recall::tally::DEFAULT_CELL);
            let counts: Value = groups.iter().map(|(of, run)| self.group(of, run, cell)).collect();
            members.push(("counts", counts));
            members.push(("groups", number(*all)));
        } else if asks.needs_newest() {
            members.push(("groups", number(tally.newest.len() as u64)));
        }
        if let Some((count, run)) = &tally.visits {
            let mut map = Map::new();
            map.insert("count", number(*count));
            if let Some(run) = run {
                insert_times(&mut map, run);
            }
            members.push(("visits", Value::Object(map)));
        }
        if asks.history {
            let histories = tally.histories.iter().map(|(at, stays, count)| {
                let mut map = Map::new();
                let entity = query.entities.get(*at).map(ToString::to_string);
                map.insert("entity", entity.unwrap_or_default());
                map.insert("moves", number(count.saturating_sub(1)));
                map.insert("places", stays.iter().map(|stay| self.stay(stay)).collect::<Value>());
                Value::Object(map)
            });
            members.push(("history", histories.collect()));
        }
        members
    }

    fn group(&self, of: &Of, run: &Run, cell: f64) -> Value {
        let mut map = Map::new();
        match of {
            Of::Entity(key, _) => map.insert("entity", self.entity(key)),
            Of::Day(day) => {
                let text = Timestamp::from_unix(day * 86_400, 0).to_string();
                map.insert("day", text.split('T').next().unwrap_or_default())
            }
            Of::Square(frame, square) => {
                map.insert("frame", self.frame(*frame));
                let middle = square.map(|at| float((at as f64 + 0.5) * cell));
                map.insert("position", middle.into_iter().collect::<Value>())
            }
        };
        map.insert("count", number(run.count));
        insert_times(&mut map, run);
        Value::Object(map)
    }

    fn stay(&self, stay: &Stay) -> Value {
        let mut map = Map::new();
        map.insert("frame", self.frame(stay.frame));
        map.insert("position", stay.position.map(float).into_iter().collect::<Value>());
        map.insert("count", number(stay.run.count));
        insert_times(&mut map, &stay.run);
        let bytes = self.stays.get(&stay.doc).and_then(|handle| handle.bytes().ok());
        let name = bytes.and_then(|bytes| crate::encoded::name_of(&bytes));
        map.insert("ref", name.map_or(Value::Null, Value::from));
        Value::Object(map)
    }
}

fn insert_times(map: &mut Map, run: &Run) {
    map.insert("first", run.first.to_string());
    map.insert("last", run.last.to_string());
}

fn number(n: u64) -> Value {
    Value::Number(Number::from(n))
}
