//! The last entry of every segment: an Episode that tells how the others were recorded.
//!
//! A Bundle has no room for when a version was recorded, what was superseded or forgotten. Yet a
//! segment must be a Bundle that validates alone, and the index must be rebuildable from segments
//! alone. So the history rides in an extension of one more Episode, which any OMIR consumer may
//! read as "these memories were sealed then" and which costs a few bytes for each memory.
//! The layout is specified in `docs/format.md`.
//!
//! It is read and written without being a value as a whole: the older versions in it may be most of a
//! segment, and are never more than bytes here.

use std::ops::Range;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::locate;
use super::mark::Mark;
use super::transaction::{MAX_SEQ, Touch};
use crate::PRODUCER;
use crate::block::{By, Ending, Target, Tombstone};
use crate::key::RefKey;
use crate::version::Stamp;

/// The extension that holds a manifest.
pub const URL: &str = "urn:omird:ext:segment";
/// Version of the manifest's layout.
pub const FORMAT: u64 = 1;

/// What the id of every manifest's Episode begins with.
pub const ID_PREFIX: &str = "omird.segment.";

/// The id of the manifest's Episode.
pub fn id(segment: u64) -> String {
    format!("{ID_PREFIX}{segment:010}")
}

/// An older version: what was superseded or forgotten before it was sealed, as the bytes of its resource.
pub type Older<'a> = (Stamp, &'a [u8]);

/// How the entries of a segment were recorded. The older versions that ride along are apart from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manifest {
    /// Number of the segment.
    pub segment: u64,
    /// The log file it was sealed from; the newest, for one that replaces others.
    pub log: u64,
    /// Segments it replaces; none unless it was compacted.
    pub replaces: Vec<u64>,
    /// First transaction.
    pub first_seq: u64,
    /// Last transaction.
    pub last_seq: u64,
    /// When the last transaction was recorded; microseconds.
    pub last_recorded: i64,
    /// Starts of the daemon so far.
    pub boots: u64,
    /// How each of the first entries was recorded; entries behind them, up to the manifest, are
    /// copies that are there so that references resolve.
    pub entries: Vec<Stamp>,
    /// CRC-32 of the bytes of each of those entries, so that a damaged one is known from the whole
    /// ones around it.
    pub crcs: Vec<u32>,
    /// What was forgotten, and where a compaction dropped a version that ended another.
    pub forgotten: Vec<Tombstone>,
    /// Access states.
    pub touched: Vec<Touch>,
    /// Where the store stood; nothing before the first mark.
    pub mark: Option<Mark>,
}

fn int(n: impl Into<i128>) -> Value {
    Value::Number(Number::from(n.into()))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

/// The members of a stamp, in the order of the deterministic encoding.
fn stamp_members(stamp: &Stamp) -> [(&'static str, Value); 4] {
    [
        ("seq", int(stamp.seq)),
        ("ordinal", int(stamp.ordinal)),
        ("version", int(stamp.version)),
        ("recorded", int(stamp.recorded)),
    ]
}

/// A list as it is written, from its items one by one.
fn list(items: impl ExactSizeIterator<Item = Value>) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::write_array_header(items.len(), &mut out);
    items.for_each(|item| cbor::write(&item, &mut out));
    out
}

/// Differences between neighbours, the first to zero: small numbers, few bytes.
fn deltas(values: impl ExactSizeIterator<Item = i64>) -> Vec<u8> {
    let mut before = 0;
    list(values.map(|value| {
        let delta = value.wrapping_sub(before);
        before = value;
        int(delta)
    }))
}

/// The value of a member of the payload, as it is written.
enum Member<'a> {
    Encoded(Vec<u8>),
    /// The older versions, which are most of a payload: never put together but in the segment.
    Older(&'a [Older<'a>]),
}

impl From<Value> for Member<'_> {
    fn from(value: Value) -> Self {
        Self::Encoded(cbor::to_vec(&value))
    }
}

impl From<Vec<u8>> for Member<'_> {
    fn from(encoded: Vec<u8>) -> Self {
        Self::Encoded(encoded)
    }
}

/// Gives the bytes of a payload of these members, piece by piece. They come in the order of the
/// deterministic encoding.
fn write_payload(members: &[(&str, Member<'_>)], write: &mut dyn FnMut(&[u8])) {
    let mut piece = Vec::new();
    cbor::write_map_header(members.len(), &mut piece);
    for (name, member) in members {
        cbor::write(&Value::from(*name), &mut piece);
        match member {
            Member::Encoded(bytes) => piece.extend_from_slice(bytes),
            Member::Older(older) => {
                cbor::write_array_header(older.len(), &mut piece);
                for (stamp, resource) in *older {
                    cbor::write_map_header(5, &mut piece);
                    for (name, value) in stamp_members(stamp) {
                        cbor::write(&Value::from(name), &mut piece);
                        cbor::write(&value, &mut piece);
                    }
                    cbor::write(&Value::from("resource"), &mut piece);
                    write(&piece);
                    write(resource);
                    piece.clear();
                }
            }
        }
        write(&piece);
        piece.clear();
    }
}

/// The order of keys in the deterministic encoding (RFC 8949 §4.2.1).
fn sort(members: &mut [(&str, Member<'_>)]) {
    members.sort_unstable_by_key(|(name, _)| (name.len(), *name));
}

impl Manifest {
    /// The members of the payload, `check` among them.
    fn members<'a>(&self, older: &'a [Older<'a>]) -> Vec<(&'static str, Member<'a>)> {
        let stamps = || self.entries.iter();
        let forgotten = self.forgotten.iter().map(|grave| {
            let mut map = object(stamp_members(&grave.stamp));
            match &grave.target {
                Target::Name(name) => map.insert("ref", name.clone()),
                Target::Key(key) => map.insert("key", key.to_hex()),
            };
            match grave.ending {
                Ending::Dropped => map.insert("dropped", Value::Bool(true)),
                Ending::Forgotten(By::Rule) => map.insert("rule", Value::Bool(true)),
                Ending::Forgotten(By::Merging(into)) => map.insert("into", into.to_hex()),
                Ending::Forgotten(By::Someone) => None,
            };
            Value::Object(map)
        });
        let mut members = vec![
            ("format", int(FORMAT).into()),
            ("segment", int(self.segment).into()),
            ("log", int(self.log).into()),
            ("firstSeq", int(self.first_seq).into()),
            ("lastSeq", int(self.last_seq).into()),
            ("lastRecorded", int(self.last_recorded).into()),
            ("boots", int(self.boots).into()),
            ("seq", deltas(stamps().map(|s| s.seq as i64)).into()),
            ("ordinal", list(stamps().map(|s| int(s.ordinal))).into()),
            ("version", list(stamps().map(|s| int(s.version))).into()),
            ("recorded", deltas(stamps().map(|s| s.recorded)).into()),
            ("crc", list(self.crcs.iter().map(|&crc| int(crc))).into()),
            ("superseded", Member::Older(older)),
            ("forgotten", list(forgotten).into()),
            ("touched", list(self.touched.iter().map(Touch::to_item)).into()),
        ];
        if !self.replaces.is_empty() {
            let numbers = self.replaces.iter().map(|&number| int(number));
            members.push(("replaces", list(numbers).into()));
        }
        if let Some(mark) = &self.mark {
            members.push(("mark", Value::Object(object(mark.members())).into()));
        }
        sort(&mut members);
        let mut check = crc32fast::Hasher::new();
        write_payload(&members, &mut |piece| check.update(piece));
        members.push(("check", int(check.finalize()).into()));
        sort(&mut members);
        members
    }

    /// Appends the Episode that carries the manifest, with the older versions in it.
    pub fn write(&self, older: &[Older<'_>], sealed_at: Timestamp, out: &mut Vec<u8>) {
        let content = format!(
            "omird sealed segment {}: {} resources, {} older versions, {} forgotten.",
            self.segment,
            self.entries.len(),
            older.len(),
            self.forgotten.iter().filter(|grave| grave.is_grave()).count(),
        );
        // Maturity of an Episode in R1 (spec: Design Principles §4).
        let meta = object([
            ("omirVersion", "R1".into()),
            ("source", PRODUCER.into()),
            ("maturity", int(3)),
        ]);
        // In the order of the deterministic encoding.
        let members: [(&str, Value); 6] = [
            ("id", id(self.segment).into()),
            ("meta", Value::Object(meta)),
            ("name", format!("Sealed segment {}", self.segment).into()),
            ("source", "event".into()),
            ("content", content.into()),
            ("createdAt", sealed_at.to_string().into()),
        ];
        cbor::write_map_header(members.len() + 2, out);
        for (name, value) in &members {
            cbor::write(&Value::from(*name), out);
            cbor::write(value, out);
        }
        cbor::write(&Value::from("extension"), out);
        cbor::write_array_header(1, out);
        cbor::write_map_header(2, out);
        for text in ["url", URL, "valueJson"] {
            cbor::write(&Value::from(text), out);
        }
        write_payload(&self.members(older), &mut |piece| out.extend_from_slice(piece));
        for text in ["resourceType", "Episode"] {
            cbor::write(&Value::from(text), out);
        }
    }
}

/// A manifest as it was found in the bytes of a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What it says.
    pub manifest: Manifest,
    /// Each older version: its stamp, and where its resource lies.
    pub superseded: Vec<(Stamp, Range<usize>)>,
    /// Whether it passes its own checksum.
    pub is_whole: bool,
}

/// Reads the manifest from the Episode that lies at `episode`; `None` if it is no manifest or not of this
/// format. Never panics, whatever the bytes are.
pub fn read(bytes: &[u8], episode: Range<usize>) -> Option<Found> {
    let extensions = locate::member(bytes, &episode, "extension").ok()?;
    let first = locate::items(bytes, &extensions).ok()?.into_iter().next()?;
    let url = value(bytes, &locate::member(bytes, &first, "url").ok()?)?;
    if url.as_str()? != URL {
        return None;
    }
    read_payload(bytes, locate::member(bytes, &first, "valueJson").ok()?)
}

/// Reads the payload of a manifest's extension.
pub(super) fn read_payload(bytes: &[u8], payload: Range<usize>) -> Option<Found> {
    let members = locate::members(bytes, &payload).ok()?;
    let range_of = |name: &str| {
        let member = members.iter().find(|member| member.name == name)?;
        Some(member.value.clone())
    };
    let value_of = |name: &str| value(bytes, &range_of(name)?);
    let u64_of = |name: &str| value_of(name)?.as_u64();
    if u64_of("format")? != FORMAT {
        return None;
    }
    let items_of = |name: &str| locate::items(bytes, &range_of(name)?).ok();
    let numbers = |name: &str| -> Option<Vec<i64>> {
        items_of(name)?.iter().map(|item| value(bytes, item)?.as_i64()).collect()
    };
    let sums = |name: &str| -> Option<Vec<i64>> {
        let mut sum = 0i64;
        let mut numbers = numbers(name)?;
        for number in &mut numbers {
            sum = sum.wrapping_add(*number);
            *number = sum;
        }
        Some(numbers)
    };
    let unsigned = |name: &str| -> Option<Vec<u64>> {
        items_of(name)?.iter().map(|item| value(bytes, item)?.as_u64()).collect()
    };
    let (seq, recorded) = (sums("seq")?, sums("recorded")?);
    let (ordinal, version) = (unsigned("ordinal")?, unsigned("version")?);
    if [recorded.len(), ordinal.len(), version.len()] != [seq.len(); 3] {
        return None;
    }
    let entries = (0..seq.len())
        .map(|i| {
            Some(Stamp {
                seq: u64::try_from(seq[i]).ok()?,
                ordinal: u32::try_from(ordinal[i]).ok()?,
                version: version[i],
                recorded: recorded[i],
            })
        })
        .collect::<Option<Vec<_>>>()?;
    // What is salvaged from a damaged segment has none.
    let crcs = range_of("crc").map_or(Some(Vec::new()), |_| unsigned("crc"))?;
    let crcs = crcs.into_iter().map(|crc| crc.try_into().ok()).collect::<Option<Vec<u32>>>()?;
    let replaces = match range_of("replaces") {
        Some(_) => unsigned("replaces")?.into_iter().map(file_number).collect(),
        None => Some(Vec::new()),
    }?;
    let older = items_of("superseded")?;
    let superseded = older.iter().map(|item| older_at(bytes, item)).collect::<Option<Vec<_>>>()?;
    let each =
        |name: &str| items_of(name).map(|items| items.into_iter().map(|item| value(bytes, &item)));
    let forgotten =
        each("forgotten")?.map(|item| tombstone_of(&item?)).collect::<Option<Vec<_>>>()?;
    let touched = each("touched")?.map(|item| touch_of(&item?)).collect::<Option<Vec<_>>>()?;
    let manifest = Manifest {
        segment: file_number(u64_of("segment")?)?,
        log: file_number(u64_of("log")?)?,
        replaces,
        first_seq: u64_of("firstSeq")?,
        last_seq: u64_of("lastSeq").filter(|&seq| seq <= MAX_SEQ)?,
        last_recorded: value_of("lastRecorded")?.as_i64()?,
        boots: u64_of("boots")?,
        entries,
        crcs,
        forgotten,
        touched,
        mark: value_of("mark").as_ref().and_then(Value::as_object).map(Mark::from_map),
    };
    let is_whole = u64_of("check") == Some(u64::from(checksum(bytes, &members)));
    Some(Found { manifest, superseded, is_whole })
}

/// CRC-32 of a payload without its member `check`.
fn checksum(bytes: &[u8], members: &[locate::Member<'_>]) -> u32 {
    let others = || members.iter().filter(|member| member.name != "check");
    let mut header = Vec::new();
    cbor::write_map_header(others().count(), &mut header);
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header);
    others().for_each(|member| crc.update(&bytes[member.key.start..member.value.end]));
    crc.finalize()
}

fn value(bytes: &[u8], range: &Range<usize>) -> Option<Value> {
    cbor::from_slice(&bytes[range.clone()], &Limits::default()).ok()
}

/// The stamp of an older version that an item of a manifest is, and where its resource lies.
pub(super) fn older_at(bytes: &[u8], item: &Range<usize>) -> Option<(Stamp, Range<usize>)> {
    let members = locate::members(bytes, item).ok()?;
    let range_of = |name: &str| Some(&members.iter().find(|member| member.name == name)?.value);
    let stamp = stamp_by(|name| value(bytes, range_of(name)?))?;
    Some((stamp, range_of("resource")?.clone()))
}

/// A number a file can have: the catalog numbers files with 32 bits.
fn file_number(number: u64) -> Option<u64> {
    (number < u64::from(u32::MAX)).then_some(number)
}

/// Whether a resource is the manifest of some segment, which is history and no memory: an Episode
/// under a manifest's id with a payload of a format that we write. Anything else that bears the
/// extension's URL is a resource like any other.
pub fn is_manifest(resource: &Value) -> bool {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    let format = payload(resource).and_then(|payload| payload.get("format")?.as_u64());
    text("resourceType") == Some("Episode")
        && text("id").is_some_and(|id| id.starts_with(ID_PREFIX))
        && format == Some(FORMAT)
}

fn payload(episode: &Value) -> Option<&Value> {
    let extension = episode.get("extension")?.as_array()?.first()?;
    (extension.get("url")?.as_str()? == URL).then(|| extension.get("valueJson"))?
}

pub(super) fn tombstone_of(item: &Value) -> Option<Tombstone> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let target = match text("ref") {
        Some(name) => Target::Name(name.to_owned()),
        None => Target::Key(RefKey::from_hex(text("key")?)?),
    };
    let is_set = |name: &str| item.get(name).and_then(Value::as_bool) == Some(true);
    // What says of no rule that we know was forgotten by someone: nothing is kept longer for it.
    let ending = match text("into").and_then(RefKey::from_hex) {
        _ if is_set("dropped") => Ending::Dropped,
        Some(into) => Ending::Forgotten(By::Merging(into)),
        None if is_set("rule") => Ending::Forgotten(By::Rule),
        None => Ending::Forgotten(By::Someone),
    };
    Some(Tombstone { target, stamp: stamp_of(item)?, ending })
}

/// Reads an access state: a list, or the members that stood in its place before.
pub(super) fn touch_of(item: &Value) -> Option<Touch> {
    match item {
        Value::Object(map) => Touch::from_map(map.get("ref")?.as_str()?.to_owned(), map),
        item => Touch::from_item(item),
    }
}

fn stamp_of(item: &Value) -> Option<Stamp> {
    stamp_by(|name| item.get(name).cloned())
}

fn stamp_by(member: impl Fn(&str) -> Option<Value>) -> Option<Stamp> {
    Some(Stamp {
        seq: member("seq")?.as_u64()?,
        ordinal: u32::try_from(member("ordinal")?.as_u64()?).ok()?,
        version: member("version")?.as_u64()?,
        recorded: member("recorded")?.as_i64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_survives_its_episode() {
        let stamp = |seq, recorded| Stamp { seq, ordinal: 1, version: 2, recorded };
        let manifest = Manifest {
            segment: 4,
            log: 9,
            replaces: vec![1, 3],
            first_seq: 10,
            last_seq: 20,
            last_recorded: 77,
            boots: 3,
            entries: vec![stamp(10, 50), stamp(12, 70), stamp(20, 77)],
            crcs: vec![1, u32::MAX, 3],
            forgotten: vec![
                Tombstone::of(&"Entity/x".parse().unwrap(), stamp(13, 71), By::Someone),
                Tombstone {
                    target: Target::Key(RefKey::of_text("MemoryRecord/z")),
                    stamp: stamp(13, 71),
                    ending: Ending::Forgotten(By::Merging(RefKey::of_text("MemoryRecord/a"))),
                },
                Tombstone {
                    target: Target::Key(RefKey::of_text("MemoryRecord/w")),
                    stamp: stamp(13, 71),
                    ending: Ending::Forgotten(By::Rule),
                },
                Tombstone {
                    target: Target::Key(RefKey::of_text("Entity/y")),
                    stamp: stamp(14, 72),
                    ending: Ending::Dropped,
                },
            ],
            touched: vec![Touch {
                target: "MemoryRecord/y".into(),
                last_access: 5,
                access_count: 2,
                half_life_hours: 36.0,
            }],
            mark: Some(Mark { now: 77, written: 9, ..Mark::default() }),
        };
        let older = cbor::to_vec(&Value::from("older"));
        let mut bytes = vec![7, 7];
        let sealed_at = Timestamp::from_unix(1_780_000_000, 0);
        manifest.write(&[(stamp(11, 60), &older)], sealed_at, &mut bytes);
        let found = read(&bytes, 2..bytes.len()).expect("it is a manifest");
        assert!(found.is_whole);
        assert_eq!(found.manifest, manifest);
        let [(older_stamp, range)] = &found.superseded[..] else { panic!("{found:?}") };
        assert_eq!((*older_stamp, &bytes[range.clone()]), (stamp(11, 60), &older[..]));
        let episode = cbor::from_slice(&bytes[2..], &Limits::default()).unwrap();
        assert_eq!(cbor::to_vec(&episode), bytes[2..], "the deterministic encoding");
        assert!(is_manifest(&episode));
        assert!(omir_core::model::Resource::from_value(episode).is_ok(), "it is a valid Episode");

        let payload = bytes.windows(9).position(|window| window == b"valueJson").unwrap() + 9;
        let end = bytes.len() - "lresourceTypegEpisode".len();
        for at in payload..end {
            let mut rotten = bytes.clone();
            rotten[at] ^= 1;
            let found = read(&rotten, 2..rotten.len());
            assert!(found.is_none_or(|found| !found.is_whole), "byte {at}");
        }
    }

    #[test]
    fn what_only_bears_the_url_is_no_manifest() {
        let mut bytes = Vec::new();
        Manifest::default().write(&[], Timestamp::from_unix(1_780_000_000, 0), &mut bytes);
        let manifest = cbor::from_slice(&bytes, &Limits::default()).unwrap();
        let with = |name: &str, value: Value| {
            let mut map = manifest.as_object().unwrap().clone();
            map.insert(name, value);
            Value::Object(map)
        };
        let extension = |payload: Value| {
            let extension = object([("url", URL.into()), ("valueJson", payload)]);
            Value::Array(vec![Value::Object(extension)])
        };
        assert!(is_manifest(&manifest));
        for other in [
            with("resourceType", "Entity".into()),
            with("id", "segment.1".into()),
            with("extension", extension(Value::Object(Map::new()))),
            with("extension", extension("format".into())),
            with("extension", extension(Value::Object(object([("format", int(FORMAT + 1))])))),
            with("extension", Value::Array(Vec::new())),
        ] {
            assert!(!is_manifest(&other), "{other:?}");
        }
    }
}
