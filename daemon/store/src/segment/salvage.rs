//! The readable rest of a damaged segment.
//!
//! Every resource in a segment is a CBOR map whose first key, in deterministic order, is `id`. So
//! behind a damaged stretch the next one can be found again; it is taken only if it decodes and
//! validates, and, where the manifest is whole, only if its checksum is in there. The checksum also
//! tells which entry it is, and so when and as which version it was recorded.
//!
//! A damaged manifest is taken apart member by member. What it still says is likely and not
//! certain; where it says nothing of an entry, only what the entry itself says is known.

use std::collections::HashSet;
use std::ops::Range;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::model::Resource;
use omir_core::reference::{Id, Ref};
use omir_core::value::{Map, Value};

use super::locate::{BadSegment, bad};
use super::manifest::{self, FoundManifest, Manifest};
use super::{Layout, decode_resource};
use crate::recorded::ref_key::{KeyPrefix, RefKey};
use crate::recorded::tombstone::Tombstone;
use crate::recorded::transaction::Touch;
use crate::recorded::version::Stamp;

/// The key `resourceType` with its header.
const TYPE: &[u8] = b"\x6cresourceType";
/// The key `id` with its header.
const ID: &[u8] = b"\x62id";
/// The key under which a manifest holds a superseded version.
const RESOURCE: &[u8] = b"\x68resource";

/// Most bytes behind a manifest: the source, the time, and what kind of document it is.
const TRAILER: usize = 256;

/// A resource that was read.
pub(crate) struct Item {
    /// Its place.
    pub(crate) range: Range<usize>,
    /// Its contents.
    pub(crate) resource: Resource,
    /// When and as which version it was recorded, as far as that can be told.
    pub(crate) stamp: Option<Stamp>,
    /// True if the stamp is certainly its own.
    pub(crate) is_exact: bool,
}

/// A name that damaged bytes tell. A bit of it may be wrong as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostName {
    pub(crate) key: KeyPrefix,
    /// Its version, where a stretch has as many names as lack there.
    pub(crate) stamp: Option<Stamp>,
}

/// The readable part of a damaged segment.
#[derive(Default)]
pub(crate) struct Salvage {
    /// Recorded entries; without a whole manifest the copies are among them.
    pub(crate) entries: Vec<Item>,
    /// Copies of earlier resources.
    pub(crate) copies: Vec<Item>,
    /// Older versions.
    pub(crate) superseded: Vec<(Stamp, Range<usize>)>,
    /// The manifest, or what is left of it.
    pub(crate) manifest: Manifest,
    /// True if the manifest passes its checksum.
    pub(crate) manifest_is_whole: bool,
    /// Stretches that hold or may hold entries nobody can read.
    pub(crate) holes: Vec<Range<usize>>,
    /// Names in them, as far as they can be read.
    pub(crate) names: Vec<LostName>,
    /// How many entries lack, if that can be told.
    pub(crate) lacking: Option<usize>,
}

/// Reads what can be read. Never panics, whatever the bytes are.
pub(crate) fn salvage(bytes: &[u8]) -> Salvage {
    let front = front(bytes);
    let body = front.map_or(0, |front| front.first);
    let Walk { mut items, manifest } = walk(bytes, body);
    let items_end = items.last().map_or(body, |item| item.range.end);
    let mut salvage = Salvage::default();
    let mut end = bytes.len();
    match manifest {
        Some((found, start)) => {
            end = start;
            salvage.superseded = found.superseded;
            salvage.manifest = found.manifest;
            salvage.manifest_is_whole = true;
        }
        None => {
            let mut parts = Parts::read(bytes, items_end);
            salvage.superseded = std::mem::take(&mut parts.superseded);
            salvage.manifest = parts.into_manifest();
        }
    }
    salvage.superseded.retain(|(_, range)| decode_resource(&bytes[range.clone()]).is_ok());
    if salvage.manifest_is_whole {
        let count = front.map(|front| front.count);
        sort_by_checksum(bytes, items, body..end, count, &mut salvage);
        return salvage;
    }
    // Whatever lacks may have been an entry, unless they are all there.
    let are_all_there = front.is_some_and(|front| items.len() + 1 == front.count);
    if !are_all_there {
        salvage.holes = between(items.iter().map(|item| &item.range), body..end);
        salvage.names =
            salvage.holes.iter().flat_map(|hole| names_of(&bytes[hole.clone()], &[])).collect();
    }
    let Manifest { crcs, entries, .. } = &salvage.manifest;
    for item in &mut items {
        let crc = crc32fast::hash(&bytes[item.range.clone()]);
        let index = crcs.iter().position(|&known| known == crc);
        item.stamp = index.and_then(|index| entries.get(index)).copied();
    }
    salvage.entries = items;
    salvage
}

/// Takes a segment apart whose manifest alone is where it was; `None` if that is damaged too. Also tells of each entry that
/// lacks, by the stretches they may have stood in.
pub(super) fn layout(bytes: &[u8]) -> Option<(Layout, Vec<BadSegment>)> {
    let Salvage { entries, copies, superseded, manifest, manifest_is_whole, holes, names, lacking } =
        salvage(bytes);
    if !manifest_is_whole {
        return None;
    }
    let entries = entries.into_iter().filter_map(|item| Some((item.stamp?, item.range))).collect();
    let copies = copies.into_iter().map(|item| item.range).collect();
    let places = holes.iter().map(|hole| hole.start).chain(std::iter::repeat(bytes.len()));
    let lost = places
        .take(lacking.unwrap_or_default())
        .map(|start| bad(start, "a memory does not pass its checksum"))
        .collect();
    let (is_manifest_whole, names_lost) = (true, names);
    Some((Layout { manifest, entries, superseded, copies, is_manifest_whole, names_lost }, lost))
}

/// Tells recorded entries, copies and damaged entries apart, by a manifest that is whole.
fn sort_by_checksum(
    bytes: &[u8],
    items: Vec<Item>,
    body: Range<usize>,
    count: Option<usize>,
    salvage: &mut Salvage,
) {
    let (crcs, stamps) = (&salvage.manifest.crcs, &salvage.manifest.entries);
    let mut expected = 0;
    let mut unknown = Vec::new();
    // Gaps: the end of the entry before each, and the numbers of the entries that lack there.
    let mut lacks: Vec<(usize, Range<usize>)> = Vec::new();
    let mut end = body.start;
    for mut item in items {
        let crc = crc32fast::hash(&bytes[item.range.clone()]);
        let Some(index) = (expected..crcs.len()).find(|&index| crcs[index] == crc) else {
            unknown.push(item);
            continue;
        };
        lacks.push((end, expected..index));
        end = item.range.end;
        expected = index + 1;
        // Copies stand behind all entries: what was passed over was an entry once.
        unknown.clear();
        item.stamp = stamps.get(index).copied();
        item.is_exact = true;
        salvage.entries.push(item);
    }
    // Copies stand behind all entries, so the last ones are those. Without their number, entries that lack are taken to be first.
    let copies = match count {
        Some(count) => count.saturating_sub(crcs.len() + 1),
        None => unknown.len().saturating_sub(crcs.len() - expected),
    };
    salvage.copies = unknown.split_off(unknown.len().saturating_sub(copies));
    let lacking = crcs.len() - salvage.entries.len();
    salvage.lacking = Some(lacking);
    if lacking > 0 {
        lacks.push((end, expected..crcs.len()));
        let read = salvage.entries.iter().chain(&salvage.copies).map(|item| &item.range);
        salvage.holes = between(read, body);
        for hole in &salvage.holes {
            let lack = lacks.iter().find(|(start, _)| *start == hole.start);
            let stamps = lack.and_then(|(_, lack)| stamps.get(lack.clone())).unwrap_or_default();
            salvage.names.extend(names_of(&bytes[hole.clone()], stamps));
        }
    }
}

/// The stretches of `whole` that lie between the others.
fn between<'a>(
    others: impl Iterator<Item = &'a Range<usize>>,
    whole: Range<usize>,
) -> Vec<Range<usize>> {
    let mut at = whole.start;
    let mut stretches = Vec::new();
    let end = whole.end..whole.end;
    for other in others.cloned().chain([end]) {
        if other.start > at {
            stretches.push(at..other.start);
        }
        at = other.end;
    }
    stretches
}

/// Names in bytes that are no longer whole: `Type/id`, or the id alone where its type is lost.
pub(crate) fn names_in(bytes: &[u8]) -> Vec<String> {
    const MOST: usize = 100;
    let mut names: Vec<String> = Vec::new();
    each_name_in(bytes, |reference, id| {
        let name = reference.map_or(id, |reference| reference.to_string());
        if !names.contains(&name) {
            names.push(name);
        }
        names.len() < MOST
    });
    names
}

/// Names in bytes that are no longer whole, of those whose type can be read too.
pub(crate) fn keys_in(bytes: &[u8]) -> HashSet<KeyPrefix> {
    names_of(bytes, &[]).iter().map(|name| name.key).collect()
}

/// The names in a stretch that lacks the entries of these stamps.
fn names_of(bytes: &[u8], stamps: &[Stamp]) -> Vec<LostName> {
    let mut found: Vec<Option<KeyPrefix>> = Vec::new();
    each_name_in(bytes, |reference, _| {
        found.push(reference.map(|reference| RefKey::of(&reference).prefix()));
        true
    });
    let is_each_there = found.len() == stamps.len();
    let stamp = |n: usize| stamps.get(n).filter(|_| is_each_there).copied();
    let names = found.into_iter().enumerate();
    names.filter_map(|(n, key)| Some(LostName { key: key?, stamp: stamp(n) })).collect()
}

/// Names in a segment that is set aside: nothing of it is served.
pub(crate) fn keys_set_aside(bytes: &[u8]) -> HashSet<KeyPrefix> {
    let Salvage { entries, names, .. } = salvage(bytes);
    let read = entries.iter().map(|item| RefKey::of(&item.resource.reference()).prefix());
    read.chain(names.iter().map(|name| name.key)).collect()
}

/// Calls `f` with each id, and its reference where its type can be read, until it returns false.
///
/// An id stands first in a map, and its type later in the same map: members are passed over one by one as far as they can be read.
/// Ids within them are of something else. Behind a member that cannot be read the type is looked for up to the next such map.
fn each_name_in(bytes: &[u8], mut f: impl FnMut(Option<Ref>, String) -> bool) {
    let mut at = 0;
    while let Some(start) = next_map(bytes, at) {
        let Members { id, kind, end, is_whole } = Members::read(bytes, start);
        at = end.max(start + 1);
        let Some(id) = id.filter(|id| Id::check(id).is_ok()) else { continue };
        let is_resource = kind.is_some() || !is_whole;
        if id.starts_with(manifest::ID_PREFIX) || !is_resource {
            continue;
        }
        let kind = kind.or_else(|| {
            let next = next_map(bytes, at).unwrap_or(bytes.len());
            let rest = &bytes[at.min(next)..next];
            find(rest, TYPE, 0).and_then(|found| text(&rest[found + TYPE.len()..]))
        });
        let reference = kind.and_then(|kind| format!("{kind}/{id}").parse::<Ref>().ok());
        if !f(reference, id) {
            return;
        }
    }
}

/// The members of a map that tell its name, as far as they can be read.
struct Members {
    id: Option<String>,
    kind: Option<String>,
    /// Where reading ended.
    end: usize,
    /// True if all members were read.
    is_whole: bool,
}

impl Members {
    fn read(bytes: &[u8], start: usize) -> Self {
        let (count, mut at) = match bytes[start] {
            0xb8 => (usize::from(bytes.get(start + 1).copied().unwrap_or(0)), start + 2),
            header => (usize::from(header.wrapping_sub(0xa0)), start + 1),
        };
        let (mut id, mut kind) = (None, None);
        for _ in 0..count {
            let rest = bytes.get(at..).unwrap_or_default();
            let Ok((key, used)) = cbor::read_item(&rest[..rest.len().min(256)], &Limits::default())
            else {
                return Self { id, kind, end: at, is_whole: false };
            };
            let value = &rest[used..];
            match key.as_str() {
                Some("id") => id = text(value),
                Some("resourceType") => kind = text(value),
                Some(_) => {}
                None => return Self { id, kind, end: at, is_whole: false },
            }
            let Ok(of_value) = cbor::skip_item(value, &Limits::default()) else {
                return Self { id, kind, end: at + used, is_whole: false };
            };
            at += used + of_value;
        }
        Self { id, kind, end: at, is_whole: true }
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    let limits = Limits { max_items: 1, ..Limits::default() };
    // A damaged header may claim any length; ids and types are short.
    let (value, _) = cbor::read_item(&bytes[..bytes.len().min(256)], &limits).ok()?;
    value.as_str().map(str::to_owned)
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

/// The beginning of a segment, if it is whole.
#[derive(Clone, Copy)]
struct Front {
    /// Position of the first entry.
    first: usize,
    /// How many entries there are, with copies and manifest.
    count: usize,
}

fn front(bytes: &[u8]) -> Option<Front> {
    // A map of fewer than 24 members has a header of one byte.
    let mut at = matches!(bytes.first()?, 0xa1..=0xb7).then_some(1)?;
    loop {
        let (key, used) = cbor::read_item(bytes.get(at..)?, &Limits::default()).ok()?;
        at += used;
        if key.as_str()? == "entry" {
            let (count, used) = cbor::read_array_header(bytes.get(at..)?).ok()?;
            let count = count.filter(|&count| (1..=bytes.len()).contains(&count))?;
            return Some(Front { first: at + used, count });
        }
        at += cbor::skip_item(bytes.get(at..)?, &Limits::default()).ok()?;
    }
}

struct Walk {
    items: Vec<Item>,
    /// The manifest and where it begins.
    manifest: Option<(FoundManifest, usize)>,
}

/// Everything behind `at` that decodes and validates, up to the manifest. What looks like a manifest elsewhere is what a client
/// stored, and decides nothing.
fn walk(bytes: &[u8], mut at: usize) -> Walk {
    let mut items = Vec::new();
    while let Some(start) = next_map(bytes, at) {
        at = start + 1;
        if bytes[..start].ends_with(RESOURCE) {
            continue;
        }
        let Ok((value, used)) = cbor::read_item(&bytes[start..], &Limits::default()) else {
            continue;
        };
        if manifest::is_manifest(&value) {
            let is_last = bytes.len() - (start + used) <= TRAILER;
            let found = manifest::read(bytes, start..start + used).filter(|_| is_last);
            match found.filter(|found| found.is_whole) {
                Some(found) => return Walk { items, manifest: Some((found, start)) },
                None => continue,
            }
        }
        if let Ok(resource) = Resource::from_value(value) {
            let range = start..start + used;
            at = range.end;
            items.push(Item { range, resource, stamp: None, is_exact: false });
        }
    }
    Walk { items, manifest: None }
}

/// The next place at which a map begins whose first key is `id`.
fn next_map(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let key = find(bytes, ID, at)?;
        at = key + 1;
        let short = key.checked_sub(1).filter(|&at| matches!(bytes[at], 0xa1..=0xb7));
        let long = key.checked_sub(2).filter(|&at| bytes[at] == 0xb8);
        if let Some(start) = short.or(long).filter(|&start| start >= from) {
            return Some(start);
        }
    }
}

/// The version a resource says it is; only records say one, and without a word it is 1.
pub(crate) fn stated_version(resource: &Resource) -> Option<u64> {
    match resource {
        Resource::MemoryRecord(record) => {
            Some(record.version.as_ref().and_then(|version| version.as_u64()).unwrap_or(1))
        }
        _ => None,
    }
}

/// The members of a damaged manifest that can still be read.
#[derive(Default)]
struct Parts {
    scalars: Map,
    lists: Map,
    superseded: Vec<(Stamp, Range<usize>)>,
    forgotten: Vec<Tombstone>,
    touched: Vec<Touch>,
}

const SCALARS: [&str; 6] = ["segment", "log", "firstSeq", "lastSeq", "lastRecorded", "boots"];
const LISTS: [&str; 5] = ["seq", "ordinal", "version", "recorded", "crc"];

impl Parts {
    /// Returns what can be read behind `from`.
    fn read(bytes: &[u8], from: usize) -> Self {
        let mut parts = Self::default();
        // The content of a memory may look like anything; what tells of it stands behind the URL.
        let Some(start) = find(bytes, manifest::URL.as_bytes(), from) else {
            parts.read_elements(bytes, from);
            return parts;
        };
        let rest = &bytes[start..];
        for name in SCALARS {
            if let Some(value) = member(rest, name, |value| value.as_i64().is_some()) {
                parts.scalars.insert(name, value);
            }
        }
        for name in LISTS {
            if let Some(value) = member(rest, name, |value| value.as_array().is_some()) {
                parts.lists.insert(name, value);
            }
        }
        parts.read_elements(bytes, start);
        parts
    }

    /// Older versions, tombstones and access states: maps of four to six members whose first key
    /// is `seq`, `ref` or `key`, and lists of four items whose first is a text.
    fn read_elements(&mut self, bytes: &[u8], from: usize) {
        let mut at = from;
        while at + 5 <= bytes.len() {
            let here = &bytes[at..];
            let start = at;
            at += 1;
            let keys: [&[u8]; 3] = [b"\x63seq", b"\x63ref", b"\x63key"];
            let begins = match here[0] {
                0xa4..=0xa6 => keys.iter().any(|key| here[1..].starts_with(key)),
                0x84 => matches!(here[1], 0x60..=0x79),
                _ => false,
            };
            if !begins {
                continue;
            }
            let Ok((value, used)) = cbor::read_item(here, &Limits::default()) else { continue };
            let is_read = if value.get("resource").is_some() {
                let older = manifest::older_at(bytes, &(start..start + used));
                older.map(|older| self.superseded.push(older))
            } else if value.get("seq").is_some() {
                manifest::tombstone_of(&value).map(|tombstone| self.forgotten.push(tombstone))
            } else {
                manifest::touch_of(&value).map(|touch| self.touched.push(touch))
            };
            if is_read.is_some() {
                at += used - 1;
            }
        }
    }

    fn into_manifest(self) -> Manifest {
        let read = manifest_of(&self.scalars).unwrap_or_default();
        // The stamps are of use only together, and with the checksums.
        let lists = Some(&self.lists).filter(|lists| lists.len() == LISTS.len());
        let stamps = lists.and_then(manifest_of);
        let Manifest { entries, crcs, .. } =
            stamps.filter(|stamps| stamps.entries.len() == stamps.crcs.len()).unwrap_or_default();
        let Self { forgotten, touched, .. } = self;
        Manifest { entries, crcs, forgotten, touched, ..read }
    }
}

/// The value of the first member of that name that is of the right kind.
fn member(bytes: &[u8], name: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    let key = cbor::to_vec(&Value::from(name));
    let mut at = 0;
    loop {
        at = find(bytes, &key, at)? + key.len();
        if let Ok((value, _)) = cbor::read_item(&bytes[at..], &Limits::default())
            && fits(&value)
        {
            return Some(value);
        }
    }
}

/// A manifest of these members, read by the one reader of manifests; all other members stand for nothing.
fn manifest_of(members: &Map) -> Option<Manifest> {
    let mut payload = Map::new();
    payload.insert("format", Value::from(manifest::FORMAT));
    for name in SCALARS {
        payload.insert(name, members.get(name).cloned().unwrap_or_else(|| Value::from(0u64)));
    }
    for name in LISTS.into_iter().chain(["superseded", "forgotten", "touched"]) {
        let empty = || Value::Array(Vec::new());
        payload.insert(name, members.get(name).cloned().unwrap_or_else(empty));
    }
    let encoded = cbor::to_vec(&Value::Object(payload));
    manifest::read_payload(&encoded, 0..encoded.len()).map(|found| found.manifest)
}
