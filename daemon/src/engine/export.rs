//! A conformant Bundle of everything, or of what a query selects.

use std::collections::HashSet;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::number::Number;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use super::view::Outgoing;
use super::{Engine, stamp};
use crate::PRODUCER;
use crate::error::{Code, Error};
use crate::index::doc::DocId;
use crate::index::key::RefKey;
use crate::recall::query::Query;
use crate::recall::search::search;

/// A Bundle, made entry by entry.
pub struct Export {
    entries: Vec<Value>,
    generated_at: Timestamp,
    id: String,
    left_out: LeftOut,
}

/// What a disk no longer gives back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How many resources.
    pub count: u64,
    /// Where the first of them lie and what is the matter, for people. Their names are lost with them.
    pub first: Vec<String>,
}

/// Most that are told of one by one.
const MAX_TOLD: usize = 8;

impl LeftOut {
    fn note(&mut self, error: Error) {
        self.count += 1;
        if self.first.len() < MAX_TOLD {
            self.first.push(error.message);
        }
    }

    /// As it goes with the Bundle, as JSON; `None` if nothing was left out.
    pub fn to_value(&self) -> Option<Value> {
        let mut map = Map::new();
        map.insert("unreadable", Value::Number(Number::from(self.count)));
        map.insert(
            "first",
            self.first.iter().map(|why| Value::from(why.as_str())).collect::<Value>(),
        );
        (self.count > 0).then_some(Value::Object(map))
    }
}

/// Where something stands in the order of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its transaction.
    pub seq: u64,
    /// Its position in that.
    pub ordinal: u32,
}

/// A resource on its way into an export.
struct Gathered {
    resource: Resource,
    recorded: Timestamp,
    place: Place,
}

impl Export {
    /// The Bundle.
    pub fn to_value(self) -> Value {
        let mut bundle = Map::new();
        bundle.insert("resourceType", "Bundle");
        bundle.insert("omirVersion", "R1");
        bundle.insert("id", self.id);
        bundle.insert("generatedAt", self.generated_at.to_string());
        bundle.insert("source", PRODUCER);
        bundle.insert("entry", Value::Array(self.entries));
        Value::Object(bundle)
    }

    /// How many resources it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// What should be in it and cannot be read.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Engine {
    /// Exports what `query` selects with all that it refers to, so that the Bundle validates alone.
    /// What has no `meta` gets ours; see [`stamp`].
    /// A reference to something that was forgotten meanwhile is left out (spec: Conformance,
    /// producers). So is what cannot be read, and what cannot stand without that; see
    /// [`Export::left_out`].
    ///
    /// # Errors
    /// `INTERNAL` if nothing can be read of all there is: then it is not a memory that is damaged.
    pub fn export(&self, query: &Query) -> Result<Export, Error> {
        self.export_within(query, u64::MAX)
    }

    /// As [`Engine::export`], of at most so many bytes as they are stored: for an answer of which several
    /// copies are made.
    ///
    /// # Errors
    /// As [`Engine::export`], and `TOO_LARGE`.
    pub fn export_within(&self, query: &Query, most: u64) -> Result<Export, Error> {
        let (now, _) = self.now();
        let (gathered, left_out) = self.gather(query, now, most)?;
        let entries = gathered.into_iter().map(|gathered| gathered.resource.to_value()).collect();
        let id = format!("omird-export-{}", now.as_micros());
        Ok(Export { entries, generated_at: now, id, left_out })
    }

    /// What [`Engine::export`] gives, as CBOR, in the order it was recorded, with the place of each in that
    /// order. A place stays what it is, also across starts and compactions, so a transfer can go on after it.
    ///
    /// # Errors
    /// As [`Engine::export`], and `INTERNAL` if anything cannot be read: whoever goes on after a place would
    /// never hear of it.
    pub fn export_after(
        &self,
        query: &Query,
        after: Option<Place>,
    ) -> Result<Vec<(Place, Vec<u8>)>, Error> {
        let (mut gathered, left_out) = self.gather(query, self.now().0, u64::MAX)?;
        if let Some(why) = left_out.first.first() {
            let message = format!(
                "{} resources cannot be read; an export gives the others. {why}",
                left_out.count
            );
            return Err(Error::new(Code::Internal, message));
        }
        gathered.retain(|gathered| after.is_none_or(|after| gathered.place > after));
        gathered.sort_unstable_by_key(|gathered| gathered.place);
        Ok(gathered
            .into_iter()
            .map(|gathered| (gathered.place, cbor::to_vec(&gathered.resource.to_value())))
            .collect())
    }

    /// What `query` selects and what that refers to; each stands without anything that is not there.
    fn gather(
        &self,
        query: &Query,
        now: Timestamp,
        most: u64,
    ) -> Result<(Vec<Gathered>, LeftOut), Error> {
        let query = &*self.placed(query)?;
        let as_of = query.as_of;
        let selected: Vec<DocId> = {
            let catalog = self.catalog();
            let mut ids: Vec<DocId> = search(&catalog, query, now.as_micros())
                .page
                .iter()
                .map(|ranked| ranked.doc)
                .collect();
            if query.limit.is_none() {
                ids.sort_unstable();
            }
            ids
        };
        let mut present: HashSet<RefKey> = HashSet::new();
        let mut queue = selected;
        queue.reverse();
        let mut resources: Vec<Gathered> = Vec::new();
        let mut bytes = 0;
        let mut lost: HashSet<RefKey> = HashSet::new();
        let mut left_out = LeftOut::default();
        while let Some(id) = queue.pop() {
            let (key, recorded, place) = {
                let catalog = self.catalog();
                let doc = catalog.doc(id);
                let place = Place { seq: doc.seq, ordinal: doc.ordinal };
                (doc.key, Timestamp::from_micros(doc.recorded), place)
            };
            if lost.contains(&key) || !present.insert(key) {
                continue;
            }
            let outgoing = {
                let at = as_of.unwrap_or(now).as_micros();
                let catalog = self.catalog();
                // Forgotten and compacted away since the lock was let go.
                if catalog.doc(id).gone {
                    present.remove(&key);
                    continue;
                }
                Outgoing::of(&catalog, id, as_of.is_some(), at)
            };
            bytes += outgoing.stored_bytes();
            if bytes > most {
                let message = format!(
                    "what this exports is more than {most} bytes (limits.max_import_bytes); ask for \
                     less by type, since, near or other filters, or page with limit and offset. \
                     `omir export` gives it at once"
                );
                return Err(Error::new(Code::TooLarge, message));
            }
            let mut resource = match self.counted(outgoing.resource()) {
                Ok(resource) => resource,
                Err(error) => {
                    tracing::error!(%error, "left out of an export");
                    left_out.note(error);
                    present.remove(&key);
                    lost.insert(key);
                    continue;
                }
            };
            let catalog = self.catalog();
            if as_of.is_none() {
                resource.retain_references(|target| catalog.stands(id, &RefKey::of(target)));
            }
            let mut wanted: Vec<Ref> = Vec::new();
            resource.for_each_reference(|_, _, target| wanted.push(target.clone()));
            for target in wanted {
                let key = RefKey::of(&target);
                let version = match as_of {
                    None => catalog.live(&key),
                    Some(at) => catalog.version_at(&key, at.as_micros()),
                };
                queue.extend(version.filter(|_| !present.contains(&key)));
            }
            resources.push(Gathered { resource, recorded, place });
        }
        if let Some(why) = left_out.first.first().filter(|_| resources.is_empty()) {
            return Err(Error::new(Code::Internal, why.clone()));
        }
        // What cannot stand without something forgotten is left out, and what leaned on that too.
        loop {
            let before = resources.len();
            resources.retain(|Gathered { resource, .. }| {
                let mut stands = true;
                resource.for_each_reference(|_, required, target| {
                    stands &= !required || present.contains(&RefKey::of(target));
                });
                if !stands {
                    present.remove(&RefKey::of(&resource.reference()));
                }
                stands
            });
            if resources.len() == before {
                break;
            }
        }
        for Gathered { resource, recorded, .. } in &mut resources {
            resource.retain_references(|target| present.contains(&RefKey::of(target)));
            stamp::export(resource, *recorded);
        }
        Ok((resources, left_out))
    }
}

/// Reads back what was written as CBOR, for adapters that want a value.
///
/// # Errors
/// `INTERNAL`; stored bytes are checked before they get here.
pub fn decode_stored(bytes: &[u8]) -> Result<Value, Error> {
    cbor::from_slice(bytes, &Limits::default())
        .map_err(|error| Error::new(Code::Internal, format!("stored bytes: {error}")))
}
