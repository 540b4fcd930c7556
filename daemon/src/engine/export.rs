//! A conformant Bundle of everything, or of what a query selects.

use std::collections::HashSet;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
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

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Engine {
    /// Exports what `query` selects with all that it refers to, so that the Bundle validates alone.
    /// What has no `meta` gets ours; see [`stamp`].
    /// A reference to something that was forgotten meanwhile is left out (spec: Conformance,
    /// producers).
    ///
    /// # Errors
    /// `INTERNAL` if a resource cannot be read: an export is whole or it is none.
    pub fn export(&self, query: &Query) -> Result<Export, Error> {
        let (now, _) = self.now();
        let entries = self
            .gather(query, now)?
            .into_iter()
            .map(|gathered| gathered.resource.to_value())
            .collect();
        let id = format!("omird-export-{}", now.as_micros());
        Ok(Export { entries, generated_at: now, id })
    }

    /// What [`Engine::export`] gives, as CBOR, in the order it was recorded, with the place of each in that
    /// order. A place stays what it is, also across starts and compactions, so a transfer can go on after it.
    ///
    /// # Errors
    /// As [`Engine::export`].
    pub fn export_after(
        &self,
        query: &Query,
        after: Option<Place>,
    ) -> Result<Vec<(Place, Vec<u8>)>, Error> {
        let mut gathered = self.gather(query, self.now().0)?;
        gathered.retain(|gathered| after.is_none_or(|after| gathered.place > after));
        gathered.sort_unstable_by_key(|gathered| gathered.place);
        Ok(gathered
            .into_iter()
            .map(|gathered| (gathered.place, cbor::to_vec(&gathered.resource.to_value())))
            .collect())
    }

    /// What `query` selects and what that refers to; each stands without anything that is not there.
    fn gather(&self, query: &Query, now: Timestamp) -> Result<Vec<Gathered>, Error> {
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
        while let Some(id) = queue.pop() {
            let (key, recorded, place) = {
                let catalog = self.catalog();
                let doc = catalog.doc(id);
                let place = Place { seq: doc.seq, ordinal: doc.ordinal };
                (doc.key, Timestamp::from_micros(doc.recorded), place)
            };
            if !present.insert(key) {
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
            let mut resource = outgoing.resource()?;
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
        Ok(resources)
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
