//! Reading: one resource, all of a type, and recalls.
//!
//! The catalog is locked only while rows are chosen; bytes are read afterwards, from files that
//! never change under a reader.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use omir_core::cbor::{self, MapSlot};
use omir_core::decode::{DecodeError, Limits};
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::number::Number;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::tier::Tier;
use omir_core::value::{Map, Value};

use super::Engine;
use super::plan::{inherit_access, set_tier};
use super::shared;
use crate::disk;
use crate::error::{Code, Error};
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::Access;
use crate::index::key::RefKey;
use crate::recall::query::Query;
use crate::recall::score::{Parts, Weights};
use crate::recall::search::{Ranked, search};
use crate::store::read::Handle;
use crate::store::segment;

/// A stored version on its way out, with what came after it was written.
pub(super) struct Outgoing {
    id: DocId,
    handle: Handle,
    /// The accesses so far, if there were any.
    access: Option<Access>,
    /// The tier, if time has moved it.
    tier: Option<Tier>,
    /// Whether it may refer to something that was forgotten.
    may_dangle: bool,
    /// The newer version that the card has lost: this one must not pass for the current one.
    missing: Option<Missing>,
}

/// A version that is known to have been there and cannot be read.
#[derive(Debug, Clone, Copy)]
struct Missing {
    version: u64,
    /// The newest that can be read, if there is one.
    readable: Option<u64>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} is unreadable: the card has lost it. ", self.version)?;
        match self.readable {
            Some(readable) => write!(
                f,
                "Version {readable}, before it, can be read by `asOf`. Remember it anew, or forget it"
            ),
            None => f.write_str("Remember it anew, or forget it"),
        }
    }
}

impl Outgoing {
    /// A version as it is at `now` (microseconds); `as_of` if that is another time than now, when
    /// later accesses had not been.
    pub(super) fn of(catalog: &Catalog, id: DocId, as_of: bool, now: i64) -> Self {
        let is_touched = catalog.doc(id).is_touched && !as_of;
        Self {
            id,
            handle: catalog.handle(id),
            access: if is_touched { catalog.access(id) } else { None },
            tier: catalog.moved(id, as_of, now),
            may_dangle: catalog.has_graves() && !as_of,
            missing: catalog.missing(id).filter(|stamp| !as_of || stamp.recorded <= now).map(
                |stamp| Missing { version: stamp.version, readable: Some(catalog.doc(id).version) },
            ),
        }
    }

    /// How much of the disk it takes.
    pub(super) fn stored_bytes(&self) -> u64 {
        u64::from(self.handle.location.len)
    }

    /// # Errors
    /// `INTERNAL` if the card has lost a newer version.
    fn check_is_newest(&self) -> Result<(), Error> {
        self.missing.map_or(Ok(()), |missing| Err(unreadable(missing)))
    }

    /// The resource as CBOR.
    fn cbor(&self) -> Result<Vec<u8>, Error> {
        self.check_is_newest()?;
        let mut bytes = self.handle.bytes().map_err(unreadable)?;
        if let Some(access) = self.access {
            bytes = with_access(&bytes, &access).map_err(unreadable)?;
        }
        if let Some(tier) = self.tier {
            bytes = with_tier(&bytes, tier).map_err(unreadable)?;
        }
        Ok(bytes)
    }

    /// The resource, typed.
    pub(super) fn resource(&self) -> Result<Resource, Error> {
        self.check_is_newest()?;
        let mut resource = self.handle.resource().map_err(unreadable)?;
        inherit_access(&mut resource, self.access, false);
        set_tier(&mut resource, self.tier);
        Ok(resource)
    }
}

fn unreadable(fault: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("a stored resource cannot be read: {fault}"))
}

/// One recalled memory.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The resource as CBOR.
    pub resource: Vec<u8>,
    /// Its score in [0, 1].
    pub score: f64,
    /// Its retrievability now.
    pub retrievability: f64,
    /// Metres from where the recall asked, if it did.
    pub distance: Option<f64>,
    /// Why it is here, for a person.
    pub reason: String,
    /// What the score is made of, if asked for, with the weight of each part.
    pub parts: Option<(Parts, Weights)>,
    /// Whether it was forgotten.
    pub forgotten: bool,
}

/// The answer to a recall.
#[derive(Debug, Clone)]
pub struct Recall {
    /// The page, best first.
    pub hits: Vec<Hit>,
    /// How many match in all.
    pub total: u64,
    /// How many belong on this page and cannot be read.
    pub unreadable: u64,
    /// How long it took inside the engine.
    pub took_micros: u64,
}

/// Something that is there and cannot be read.
#[derive(Debug, Clone)]
pub struct Unread {
    /// Its name, unless that is lost with it.
    pub name: Option<Ref>,
    /// Where it lies and what is the matter.
    pub error: Error,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}: {}", self.error.message),
            None => write!(f, "its name is lost: {}", self.error.message),
        }
    }
}

/// What there is under a name.
#[derive(Debug, Clone)]
pub enum Found {
    /// Nothing that lives.
    Nothing,
    /// A resource as CBOR.
    Whole(Vec<u8>),
    /// A resource that the disk does not give back, though it is there.
    Damaged(Error),
}

fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

impl Hit {
    /// Everything but the resource, in the order of the reply.
    fn members(&self) -> Vec<(&'static str, Value)> {
        let mut members =
            vec![("score", float(self.score)), ("retrievability", float(self.retrievability))];
        if let Some(distance) = self.distance {
            members.push(("distance", float(distance)));
        }
        members.push(("reason", self.reason.as_str().into()));
        if self.forgotten {
            members.push(("forgotten", Value::Bool(true)));
        }
        if let Some((parts, weights)) = &self.parts {
            let w = weights.parts();
            let part = |value: f64, weight: f64| {
                let mut map = Map::new();
                map.insert("value", float(value));
                map.insert("weight", float(weight));
                Value::Object(map)
            };
            let mut map = Map::new();
            map.insert("text", part(parts.text, w.text));
            map.insert("proximity", part(parts.proximity, w.proximity));
            map.insert("retrievability", part(parts.retrievability, w.retrievability));
            map.insert("recency", part(parts.recency, w.recency));
            map.insert("importance", part(parts.importance, w.importance));
            map.insert("confidence", part(parts.confidence, w.confidence));
            members.push(("parts", Value::Object(map)));
        }
        members
    }
}

impl Recall {
    /// As a value, for JSON.
    ///
    /// # Errors
    /// `INTERNAL` if stored bytes are no CBOR, which their checksum rules out.
    pub fn to_value(&self) -> Result<Value, Error> {
        let limits = Limits::default();
        let hits = self
            .hits
            .iter()
            .map(|hit| {
                let resource = cbor::from_slice(&hit.resource, &limits).map_err(unreadable)?;
                let mut map = Map::new();
                map.insert("resource", resource);
                for (name, value) in hit.members() {
                    map.insert(name, value);
                }
                Ok(Value::Object(map))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut map = Map::new();
        map.insert("hits", Value::Array(hits));
        map.insert("total", Value::Number(Number::from(self.total)));
        if self.unreadable > 0 {
            map.insert("unreadable", Value::Number(Number::from(self.unreadable)));
        }
        map.insert("tookMicros", Value::Number(Number::from(self.took_micros)));
        Ok(Value::Object(map))
    }

    /// As CBOR. The resources go out as they lie on the disk, without being decoded.
    pub fn to_cbor(&self) -> Vec<u8> {
        let bytes: usize = self.hits.iter().map(|hit| hit.resource.len() + 160).sum();
        let mut out = Vec::with_capacity(bytes + 64);
        let text = |out: &mut Vec<u8>, name: &str| cbor::write(&Value::from(name), out);
        cbor::write_map_header(3 + usize::from(self.unreadable > 0), &mut out);
        text(&mut out, "hits");
        cbor::write_array_header(self.hits.len(), &mut out);
        for hit in &self.hits {
            let members = hit.members();
            cbor::write_map_header(members.len() + 1, &mut out);
            text(&mut out, "resource");
            out.extend_from_slice(&hit.resource);
            for (name, value) in members {
                text(&mut out, name);
                cbor::write(&value, &mut out);
            }
        }
        text(&mut out, "total");
        cbor::write(&Value::Number(Number::from(self.total)), &mut out);
        if self.unreadable > 0 {
            text(&mut out, "unreadable");
            cbor::write(&Value::Number(Number::from(self.unreadable)), &mut out);
        }
        text(&mut out, "tookMicros");
        cbor::write(&Value::Number(Number::from(self.took_micros)), &mut out);
        out
    }
}

impl Engine {
    pub(super) fn outgoing(&self, ids: impl IntoIterator<Item = DocId>) -> Vec<Outgoing> {
        let (now, _) = self.now();
        let catalog = self.catalog();
        ids.into_iter()
            // Forgotten and compacted away since the lock was let go.
            .filter(|&id| !catalog.doc(id).gone)
            .map(|id| Outgoing::of(&catalog, id, false, now.as_micros()))
            .collect()
    }

    /// The bytes as a client gets them: with all accesses so far, in the tier it is in by now, and
    /// without references to what was forgotten, so that they can be changed and sent back.
    pub(super) fn emit(&self, outgoing: &Outgoing) -> Result<Vec<u8>, Error> {
        let bytes = outgoing.cbor()?;
        if !outgoing.may_dangle || !has_optional_references(&bytes) {
            return Ok(bytes);
        }
        let mut resource = segment::decode(&bytes).map_err(unreadable)?;
        let catalog = self.catalog();
        let dropped =
            resource.retain_references(|target| catalog.stands(outgoing.id, &RefKey::of(target)));
        Ok(if dropped { cbor::to_vec(&resource.to_value()) } else { bytes })
    }

    /// The live version of a resource as CBOR, or `None` if there is none.
    ///
    /// # Errors
    /// `INTERNAL` if it is there and the disk does not give it back whole.
    pub fn get(&self, reference: &Ref) -> Result<Option<Vec<u8>>, Error> {
        let key = RefKey::of(reference);
        let (id, lost) = {
            let catalog = self.catalog();
            (catalog.live(&key), catalog.lost(&key).filter(|lost| !lost.is_forgotten))
        };
        match (id.and_then(|id| self.outgoing([id]).pop()), lost) {
            (Some(outgoing), _) => self.counted(self.emit(&outgoing)).map(Some),
            (None, Some(lost)) => {
                let missing = Missing { version: lost.stamp.version, readable: None };
                self.counted(Err(unreadable(missing)))
            }
            (None, None) => Ok(None),
        }
    }

    /// As [`Engine::get`], but tells what is damaged from a card that is away for now.
    ///
    /// # Errors
    /// `INTERNAL` if the card is away.
    pub fn look_up(&self, reference: &Ref) -> Result<Found, Error> {
        match self.get(reference) {
            Ok(found) => Ok(found.map_or(Found::Nothing, Found::Whole)),
            Err(error) => match self.inner.disk.mounting() {
                Err(away) if disk::is_gone(&away) => Err(error),
                _ => Ok(Found::Damaged(error)),
            },
        }
    }

    /// Calls `f` with every live resource of a type, or of all types, as CBOR, oldest first. What cannot be read is
    /// left out, and logged.
    pub fn each(&self, of: Option<ResourceType>, mut f: impl FnMut(Vec<u8>)) {
        let _ = self.each_or_unread(of, |one| {
            match one {
                Ok(bytes) => f(bytes),
                Err(unread) => tracing::error!(%unread, "left out"),
            }
            ControlFlow::Continue(())
        });
    }

    /// As [`Engine::each`], also with what cannot be read, and until `f` breaks it off.
    pub fn each_or_unread(
        &self,
        of: Option<ResourceType>,
        mut f: impl FnMut(Result<Vec<u8>, Unread>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ids: Vec<DocId> = {
            let catalog = self.catalog();
            (0..)
                .zip(catalog.docs())
                .filter(|(_, doc)| doc.is_live())
                .filter(|(_, doc)| of.is_none_or(|of| doc.class.resource_type() == of))
                .map(|(id, _)| id)
                .collect()
        };
        // In small parts, so that neither the lock nor the memory is held for all of them.
        for part in ids.chunks(256) {
            for outgoing in self.outgoing(part.iter().copied()) {
                let bytes = self.counted(self.emit(&outgoing));
                f(bytes.map_err(|error| Unread { name: self.name_of(&outgoing), error }))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The name of something that cannot be read, if its bytes still tell it: the index knows what its hash must be.
    fn name_of(&self, outgoing: &Outgoing) -> Option<Ref> {
        let (of, key) = {
            let catalog = self.catalog();
            let doc = catalog.doc(outgoing.id);
            (doc.class.resource_type(), doc.key)
        };
        let id = id_of(&outgoing.handle.unchecked_bytes()?)?;
        let name = Ref::new(of, Id::new(id).ok()?);
        (RefKey::of(&name) == key).then_some(name)
    }

    /// Ranked recall.
    ///
    /// # Errors
    /// `INVALID_QUERY` where nobody knows the frame that is asked in. What cannot be read is left out, logged
    /// and counted.
    pub fn recall(&self, query: &Query) -> Result<Recall, Error> {
        let began = Instant::now();
        let query = &*self.placed(query)?;
        let moment = self.inner.shared.time.moment();
        let now = moment.now.as_micros();
        let at = query.at(now);
        let weights = Weights::of(query);
        let (found, rows, has_bonds) = {
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
            (found, rows, has_bonds)
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
                accesses.extend(id_of(&resource).map(|id| shared::Access {
                    key: row.key,
                    target: format!("MemoryRecord/{id}"),
                    at: moment.monotonic,
                    mentions: if has_bonds { mentions_of(&resource) } else { Vec::new() },
                }));
            }
            hits.push(Hit {
                resource,
                score: ranked.score,
                retrievability: ranked.parts.retrievability,
                distance: ranked.distance,
                reason: reason(query, ranked, &row),
                parts: query.explain.then_some((ranked.parts, weights)),
                forgotten: row.forgotten,
            });
        }
        if !accesses.is_empty() && !self.settings().read_only {
            self.inner.shared.note_accesses(accesses);
        }
        let took_micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(Recall { hits, total: found.total, unreadable, took_micros })
    }

    /// Counts what cannot be read.
    pub(super) fn counted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.inner.shared.unreadable.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

struct Row {
    key: RefKey,
    age: i64,
    forgotten: bool,
    counts_access: bool,
    outgoing: Outgoing,
}

/// Whether an encoded resource has members that refer to others and can do without.
fn has_optional_references(resource: &[u8]) -> bool {
    cbor::map_entries(resource).is_ok_and(|mut members| {
        members.any(|member| matches!(&*member.key, "entityRefs" | "parentId" | "sourceEpisode"))
    })
}

/// An encoded record with this access state in its decay block; everything else stays as it is.
///
/// Decoding the whole record for three numbers would cost more than the rest of a recall.
fn with_access(record: &[u8], access: &Access) -> Result<Vec<u8>, DecodeError> {
    let slot = cbor::map_slot(record, "decay")?;
    let mut decay = match &slot.value {
        Some(value) => cbor::from_slice(&record[value.clone()], &Limits::default())?,
        None => Value::Object(Map::new()),
    };
    if let Value::Object(decay) = &mut decay {
        decay.insert("halfLifeHours", float(access.half_life_hours));
        let last_access = Timestamp::from_micros(access.last_access);
        decay.insert("lastAccess", last_access.to_string());
        decay.insert("accessCount", Value::Number(Number::from(access.access_count)));
    }
    Ok(with_member(record, "decay", &decay, &slot))
}

/// An encoded record in this tier; everything else stays as it is.
pub(super) fn with_tier(record: &[u8], tier: Tier) -> Result<Vec<u8>, DecodeError> {
    let slot = cbor::map_slot(record, "tier")?;
    Ok(with_member(record, "tier", &Value::from(tier.as_str()), &slot))
}

/// An encoded map with a member at its place.
fn with_member(map: &[u8], name: &str, value: &Value, slot: &MapSlot) -> Vec<u8> {
    let mut out = Vec::with_capacity(map.len() + 96);
    cbor::write_map_header(slot.members + usize::from(slot.value.is_none()), &mut out);
    out.extend_from_slice(&map[slot.start..slot.member.start]);
    cbor::write(&Value::from(name), &mut out);
    cbor::write(value, &mut out);
    out.extend_from_slice(&map[slot.member.end..]);
    out
}

/// The id in an encoded resource.
pub fn id_of(resource: &[u8]) -> Option<String> {
    let id = cbor::map_slot(resource, "id").ok()?.value?;
    let id = cbor::from_slice(&resource[id], &Limits::default()).ok()?;
    id.as_str().map(str::to_owned)
}

/// The entities an encoded record mentions.
fn mentions_of(record: &[u8]) -> Vec<RefKey> {
    let slot = cbor::map_slot(record, "entityRefs").ok().and_then(|slot| slot.value);
    let refs = slot.and_then(|refs| cbor::from_slice(&record[refs], &Limits::default()).ok());
    let refs = refs.as_ref().and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|each| each.get("ref")?.as_str()).map(RefKey::of_text).collect()
}

fn reason(query: &Query, ranked: &Ranked, row: &Row) -> String {
    use std::fmt::Write;
    let mut reason = String::new();
    if query.text.is_some() {
        let _ = write!(reason, "words match {:.0} %; ", ranked.parts.text * 100.0);
    }
    if let Some(distance) = ranked.distance {
        let _ = write!(reason, "{distance:.2} m away; ");
    }
    let _ = write!(reason, "{}; retrievability {:.2}", age(row.age), ranked.parts.retrievability);
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
    use super::*;
    use crate::plan::inherit_access;

    #[test]
    fn splicing_an_access_state_is_the_same_as_setting_it() {
        let access = Access {
            half_life_hours: 336.25,
            last_access: 1_780_000_000_000_001,
            access_count: 3,
            anchored: true,
        };
        for decay in ["", r#""decay":{},"#, r#""decay":{"anchored":true,"accessCount":1},"#] {
            let json = format!(
                r#"{{"resourceType":"MemoryRecord","id":"a",{decay}"content":"x","kind":"plan",
                "createdAt":"2026-05-30T11:42:05Z","importance":0.5,"version":2}}"#
            );
            let value = omir_core::json::from_slice(json.as_bytes(), &Limits::default()).unwrap();
            let mut resource = Resource::from_value(value).unwrap();
            let bytes = cbor::to_vec(&resource.to_value());
            let spliced = with_access(&bytes, &access).unwrap();
            inherit_access(&mut resource, Some(access), false);
            assert_eq!(spliced, cbor::to_vec(&resource.to_value()), "{decay}");
            let spliced = with_tier(&spliced, Tier::Archive).unwrap();
            set_tier(&mut resource, Some(Tier::Archive));
            assert_eq!(spliced, cbor::to_vec(&resource.to_value()), "{decay}");
        }
    }
}
