//! A conformant Bundle of everything, or of what a query selects.

use std::collections::HashSet;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use omird_store::RefKey;
use parking_lot::Mutex;

use crate::Engine;
use crate::PRODUCER;
use crate::error::{Code, Error};
use crate::index::catalog::{ReadPoint, VersionReader};
use crate::index::doc::DocId;
use crate::read::outgoing::Outgoing;
use crate::recall::query::Query;
use crate::recall::search::search;
use crate::time::stamp;

/// A Bundle, made entry by entry.
#[derive(Debug)]
pub struct Export {
    entries: Vec<Value>,
    generated_at: Timestamp,
    left_out: LeftOut,
}

/// Resources that a disk no longer gives back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of resources.
    pub count: u64,
    /// Locations and faults of the first of them, for people. Their names are lost with them.
    pub first: Vec<String>,
}

/// Most that are told of one by one.
const MAX_TOLD: usize = 8;

impl LeftOut {
    /// One more.
    pub fn note(&mut self, error: Error) {
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

/// A position in the order of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Its transaction.
    pub seq: u64,
    /// Its position in that.
    pub ordinal: u32,
}

/// A resource that belongs into an export.
#[derive(Debug, Clone, Copy)]
struct Selected {
    id: DocId,
    key: RefKey,
    recorded: Timestamp,
    cursor: Cursor,
}

/// Resources that belong into an export, without their contents: a few dozen bytes for each.
struct Gathered {
    /// Also what cannot be read, but nothing that cannot stand without what is missing.
    found: Vec<Selected>,
    /// Possible targets of references.
    present: HashSet<RefKey>,
    left_out: LeftOut,
    versions: VersionReader,
}

/// Resources of an export, to be taken one by one; see [`Engine::select`].
pub struct Selection {
    found: Vec<Selected>,
    present: HashSet<RefKey>,
    point: ReadPoint,
    versions: Mutex<VersionReader>,
    /// The time it is judged by; microseconds.
    at: i64,
    head: Map,
    left_out: LeftOut,
}

impl Selection {
    /// Number of resources, with those that cannot be read.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The resources that belong in it and could not be read when it was made. They are among those that are counted by
    /// [`Selection::len`].
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The Bundle, without its entries.
    pub fn head(&self) -> &Map {
        &self.head
    }

    /// The position of the first that stands behind a place.
    pub fn behind(&self, cursor: Option<Cursor>) -> usize {
        self.found.partition_point(|found| cursor.is_some_and(|cursor| found.cursor <= cursor))
    }

    /// Cursor of the resource at this position.
    pub fn cursor(&self, position: usize) -> Option<Cursor> {
        self.found.get(position).map(|found| found.cursor)
    }
}

impl Export {
    /// The Bundle.
    pub fn to_value(self) -> Value {
        let mut bundle = head(self.generated_at);
        bundle.insert("entry", Value::Array(self.entries));
        Value::Object(bundle)
    }

    /// Number of resources it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Resources that belong in it and cannot be read.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Returns true if it holds none.
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
        let mut resources: Vec<(Resource, Timestamp)> = Vec::new();
        let gathered = self.gather(query, now, most, |resource, recorded| {
            resources.push((resource, recorded));
            true
        })?;
        let mut entries = Vec::with_capacity(resources.len());
        for (mut resource, recorded) in resources {
            if gathered.present.contains(&RefKey::of(&resource.reference())) {
                resource.retain_references(|target| gathered.present.contains(&RefKey::of(target)));
                stamp::export(&mut resource, recorded);
                entries.push(resource.to_value());
            }
        }
        Ok(Export { entries, generated_at: now, left_out: gathered.left_out })
    }

    /// Selects the resources of [`Engine::export`], to be taken one by one with [`Engine::selected`]: for readers that are
    /// slow or have little room. They come in the order in which they were recorded, beginning `after` a cursor. That
    /// order survives starts and compactions, so a transfer can go on.
    ///
    /// Everything is read once here, for what it refers to. `breathe` is called after each resource, with
    /// nothing locked, and says whether to go on.
    ///
    /// # Errors
    /// As [`Engine::export`], and `BUSY` if it is not to go on.
    pub fn select(
        &self,
        query: &Query,
        after: Option<Cursor>,
        mut breathe: impl FnMut() -> bool,
    ) -> Result<Selection, Error> {
        let (now, _) = self.now();
        let Gathered { mut found, present, versions, left_out } =
            self.gather(query, now, u64::MAX, |_, _| breathe())?;
        found.retain(|found| after.is_none_or(|after| found.cursor > after));
        found.sort_unstable_by_key(|found| found.cursor);
        found.shrink_to_fit();
        let (point, at) = (query.read_point(), query.at(now.as_micros()));
        let (versions, head) = (Mutex::new(versions), head(now));
        Ok(Selection { found, present, point, versions, at, head, left_out })
    }

    /// The resource at a position of a selection. `None` if there is none, or if it was forgotten meanwhile and is
    /// gone from the disk too.
    ///
    /// # Errors
    /// `INTERNAL`: it cannot be read. The others can be, perhaps.
    pub fn selected(&self, selection: &Selection, position: usize) -> Result<Option<Value>, Error> {
        let Some(&Selected { id, recorded, .. }) = selection.found.get(position) else {
            return Ok(None);
        };
        let outgoing = {
            let at = match selection.point {
                ReadPoint::Now => self.now().0.as_micros(),
                ReadPoint::At(_) | ReadPoint::UpTo(_) => selection.at,
            };
            let catalog = self.catalog();
            if catalog.doc(id).dropped {
                return Ok(None);
            }
            Outgoing::of(&catalog, id, matches!(selection.point, ReadPoint::At(_)), at)
        };
        let mut resource = self.counted(outgoing.resource())?;
        let catalog = self.catalog();
        let mut versions = selection.versions.lock();
        resource.retain_references(|target| {
            let key = RefKey::of(target);
            selection.present.contains(&key) && versions.stood(&catalog, id, &key)
        });
        drop((catalog, versions));
        stamp::export(&mut resource, recorded);
        Ok(Some(resource.to_value()))
    }

    /// Gathers the selection of `query` and all its references, each given to `keep` as it is stored.
    fn gather(
        &self,
        query: &Query,
        now: Timestamp,
        most: u64,
        mut keep: impl FnMut(Resource, Timestamp) -> bool,
    ) -> Result<Gathered, Error> {
        // The selection does not depend on a model, unless a vector is stated.
        let query = Query { by_meaning: false, ..query.clone() };
        let query = &*self.placed(&query)?;
        let (point, at) = (query.read_point(), query.at(now.as_micros()));
        let mut verdicts = self.verdicts(query, now.as_micros());
        let selected: Vec<DocId> = {
            let catalog = self.catalog();
            let mut ids: Vec<DocId> = search(&catalog, query, now.as_micros(), &mut verdicts)
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
        let mut found: Vec<Selected> = Vec::new();
        // Pairs of which the first cannot stand without the second.
        let mut needs: Vec<(RefKey, RefKey)> = Vec::new();
        let mut bytes = 0;
        let mut lost: HashSet<RefKey> = HashSet::new();
        let mut left_out = LeftOut::default();
        let mut versions = VersionReader::new(point);
        while let Some(id) = queue.pop() {
            let one = {
                let catalog = self.catalog();
                let doc = catalog.doc(id);
                let cursor = Cursor { seq: doc.seq, ordinal: doc.ordinal };
                Selected {
                    id,
                    key: doc.key,
                    recorded: Timestamp::from_micros(doc.recorded),
                    cursor,
                }
            };
            if lost.contains(&one.key) || !present.insert(one.key) {
                continue;
            }
            let outgoing = {
                let catalog = self.catalog();
                // Forgotten and compacted away since the lock was let go.
                if catalog.doc(id).dropped {
                    present.remove(&one.key);
                    continue;
                }
                Outgoing::of(&catalog, id, matches!(point, ReadPoint::At(_)), at)
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
            found.push(one);
            let mut resource = match self.counted(outgoing.resource()) {
                Ok(resource) => resource,
                Err(error) => {
                    tracing::error!(%error, "left out of an export");
                    left_out.note(error);
                    present.remove(&one.key);
                    lost.insert(one.key);
                    continue;
                }
            };
            let catalog = self.catalog();
            resource.retain_references(|target| versions.stood(&catalog, id, &RefKey::of(target)));
            resource.for_each_reference(|_, required, target| {
                let target = RefKey::of(target);
                if required {
                    needs.push((one.key, target));
                }
                let version = versions.version(&catalog, &target);
                queue.extend(version.filter(|_| !present.contains(&target)));
            });
            drop(catalog);
            if !keep(resource, one.recorded) {
                return Err(Error::new(Code::Busy, "it was given up before it was gathered"));
            }
        }
        if let Some(why) = left_out.first.first().filter(|_| present.is_empty()) {
            return Err(Error::new(Code::Internal, why.clone()));
        }
        // Resources that cannot stand without something forgotten are left out, and so are those that lean on them.
        loop {
            let before = present.len();
            for (key, target) in &needs {
                if !present.contains(target) {
                    present.remove(key);
                }
            }
            if present.len() == before {
                break;
            }
        }
        found.retain(|one| present.contains(&one.key) || lost.contains(&one.key));
        Ok(Gathered { found, present, left_out, versions })
    }
}

/// A Bundle without entries.
fn head(now: Timestamp) -> Map {
    let mut bundle = Map::new();
    bundle.insert("resourceType", "Bundle");
    bundle.insert("omirVersion", "R1");
    bundle.insert("id", format!("omird-export-{}", now.as_micros()));
    bundle.insert("generatedAt", now.to_string());
    bundle.insert("source", PRODUCER);
    bundle
}

/// Reads back what was written as CBOR, for callers that want a value.
///
/// # Errors
/// `INTERNAL`; stored bytes are checked before they get here.
pub fn decode_stored(bytes: &[u8]) -> Result<Value, Error> {
    cbor::from_slice(bytes, &Limits::default())
        .map_err(|error| Error::new(Code::Internal, format!("stored bytes: {error}")))
}
