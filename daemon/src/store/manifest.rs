//! The last entry of every segment: an Episode that tells how the others were recorded.
//!
//! A Bundle has no room for when a version was recorded, what was superseded or forgotten. Yet a
//! segment must be a Bundle that validates alone, and the index must be rebuildable from segments
//! alone. So the history rides in an extension of one more Episode, which any OMIR consumer may
//! read as "these memories were sealed then" and which costs a few bytes for each memory.
//! The layout is specified in `docs/format.md`.

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::mark::Mark;
use super::transaction::{MAX_SEQ, Touch};
use crate::PRODUCER;
use crate::index::block::{By, Ending, Target, Tombstone};
use crate::index::doc::Stamp;
use crate::index::key::RefKey;

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

/// How the entries of a segment were recorded.
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
    /// Versions that were superseded or forgotten before they were sealed.
    pub superseded: Vec<(Stamp, Value)>,
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

fn stamp_members(stamp: &Stamp) -> [(&'static str, Value); 4] {
    [
        ("seq", int(stamp.seq)),
        ("ordinal", int(stamp.ordinal)),
        ("version", int(stamp.version)),
        ("recorded", int(stamp.recorded)),
    ]
}

/// Differences between neighbours, the first to zero: small numbers, few bytes.
fn deltas(values: impl Iterator<Item = i64>) -> Value {
    let mut before = 0;
    Value::Array(
        values
            .map(|value| {
                let delta = value.wrapping_sub(before);
                before = value;
                int(delta)
            })
            .collect(),
    )
}

impl Manifest {
    /// The Episode that carries the manifest.
    pub fn to_value(&self, sealed_at: Timestamp) -> Value {
        let stamps = || self.entries.iter();
        let mut payload = object([
            ("format", int(FORMAT)),
            ("segment", int(self.segment)),
            ("log", int(self.log)),
            ("firstSeq", int(self.first_seq)),
            ("lastSeq", int(self.last_seq)),
            ("lastRecorded", int(self.last_recorded)),
            ("boots", int(self.boots)),
            ("seq", deltas(stamps().map(|s| s.seq as i64))),
            ("ordinal", Value::Array(stamps().map(|s| int(s.ordinal)).collect())),
            ("version", Value::Array(stamps().map(|s| int(s.version)).collect())),
            ("recorded", deltas(stamps().map(|s| s.recorded))),
            ("crc", Value::Array(self.crcs.iter().map(|&crc| int(crc)).collect())),
        ]);
        let superseded = self.superseded.iter().map(|(stamp, resource)| {
            let mut map = object(stamp_members(stamp));
            map.insert("resource", resource.clone());
            Value::Object(map)
        });
        payload.insert("superseded", Value::Array(superseded.collect()));
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
        payload.insert("forgotten", Value::Array(forgotten.collect()));
        let touched = self.touched.iter().map(Touch::to_item);
        payload.insert("touched", Value::Array(touched.collect()));
        if !self.replaces.is_empty() {
            let numbers = self.replaces.iter().map(|&number| int(number));
            payload.insert("replaces", Value::Array(numbers.collect()));
        }
        if let Some(mark) = &self.mark {
            payload.insert("mark", Value::Object(object(mark.members())));
        }
        payload.insert("check", int(check(&payload)));

        let content = format!(
            "omird sealed segment {}: {} resources, {} older versions, {} forgotten.",
            self.segment,
            self.entries.len(),
            self.superseded.len(),
            self.forgotten.iter().filter(|grave| grave.is_grave()).count(),
        );
        // Maturity of an Episode in R1 (spec: Design Principles §4).
        let meta = object([
            ("omirVersion", "R1".into()),
            ("source", PRODUCER.into()),
            ("maturity", int(3)),
        ]);
        let extension = object([("url", URL.into()), ("valueJson", Value::Object(payload))]);
        Value::Object(object([
            ("resourceType", "Episode".into()),
            ("id", id(self.segment).into()),
            ("meta", Value::Object(meta)),
            ("name", format!("Sealed segment {}", self.segment).into()),
            ("content", content.into()),
            ("source", "event".into()),
            ("createdAt", sealed_at.to_string().into()),
            ("extension", Value::Array(vec![Value::Object(extension)])),
        ]))
    }

    /// Reads the manifest from an Episode; `None` if it is no manifest or not of this format.
    pub fn from_value(episode: &Value) -> Option<Self> {
        let payload = payload(episode)?;
        let u64_of = |name: &str| payload.get(name)?.as_u64();
        if u64_of("format")? != FORMAT {
            return None;
        }
        let list = |name: &str| payload.get(name)?.as_array();
        let sums = |name: &str| -> Option<Vec<i64>> {
            let mut sum = 0i64;
            list(name)?
                .iter()
                .map(|delta| {
                    sum = sum.wrapping_add(delta.as_i64()?);
                    Some(sum)
                })
                .collect()
        };
        let (seq, recorded) = (sums("seq")?, sums("recorded")?);
        let (ordinal, version) = (list("ordinal")?, list("version")?);
        if [recorded.len(), ordinal.len(), version.len()] != [seq.len(); 3] {
            return None;
        }
        let entries = (0..seq.len())
            .map(|i| {
                Some(Stamp {
                    seq: u64::try_from(seq[i]).ok()?,
                    ordinal: u32::try_from(ordinal[i].as_u64()?).ok()?,
                    version: version[i].as_u64()?,
                    recorded: recorded[i],
                })
            })
            .collect::<Option<Vec<_>>>()?;
        // What is salvaged from a damaged segment has none.
        let crcs = list("crc").unwrap_or_default().iter().map(|crc| crc.as_u64()?.try_into().ok());
        let crcs = crcs.collect::<Option<Vec<u32>>>()?;
        let replaces = match payload.get("replaces") {
            Some(list) => list.as_array()?.iter().map(|n| file_number(n.as_u64()?)).collect(),
            None => Some(Vec::new()),
        }?;
        let superseded = list("superseded")?
            .iter()
            .map(|item| Some((stamp_of(item)?, item.get("resource")?.clone())))
            .collect::<Option<Vec<_>>>()?;
        let forgotten = list("forgotten")?.iter().map(tombstone_of).collect::<Option<Vec<_>>>()?;
        let touched = list("touched")?.iter().map(touch_of).collect::<Option<Vec<_>>>()?;
        Some(Self {
            segment: file_number(u64_of("segment")?)?,
            log: file_number(u64_of("log")?)?,
            replaces,
            first_seq: u64_of("firstSeq")?,
            last_seq: u64_of("lastSeq").filter(|&seq| seq <= MAX_SEQ)?,
            last_recorded: payload.get("lastRecorded")?.as_i64()?,
            boots: u64_of("boots")?,
            entries,
            crcs,
            superseded,
            forgotten,
            touched,
            mark: payload.get("mark").and_then(Value::as_object).map(Mark::from_map),
        })
    }
}

/// CRC-32 of a manifest's payload without its member `check`, as deterministic CBOR.
fn check(payload: &Map) -> u32 {
    let mut payload = payload.clone();
    payload.remove("check");
    crc32fast::hash(&cbor::to_vec(&Value::Object(payload)))
}

/// Whether the Episode carries a manifest that passes its own checksum.
pub fn is_whole(episode: &Value) -> bool {
    let payload = payload(episode).and_then(Value::as_object);
    payload.is_some_and(|payload| {
        payload.get("check").and_then(Value::as_u64) == Some(u64::from(check(payload)))
    })
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

fn tombstone_of(item: &Value) -> Option<Tombstone> {
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
fn touch_of(item: &Value) -> Option<Touch> {
    match item {
        Value::Object(map) => Touch::from_map(map.get("ref")?.as_str()?.to_owned(), map),
        item => Touch::from_item(item),
    }
}

fn stamp_of(item: &Value) -> Option<Stamp> {
    Some(Stamp {
        seq: item.get("seq")?.as_u64()?,
        ordinal: u32::try_from(item.get("ordinal")?.as_u64()?).ok()?,
        version: item.get("version")?.as_u64()?,
        recorded: item.get("recorded")?.as_i64()?,
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
            superseded: vec![(stamp(11, 60), Value::from("older"))],
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
        let episode = manifest.to_value(Timestamp::from_unix(1_780_000_000, 0));
        assert!(is_manifest(&episode) && is_whole(&episode));
        assert_eq!(Manifest::from_value(&episode), Some(manifest));
        assert!(omir_core::model::Resource::from_value(episode).is_ok(), "it is a valid Episode");
    }

    #[test]
    fn what_only_bears_the_url_is_no_manifest() {
        let manifest = Manifest::default().to_value(Timestamp::from_unix(1_780_000_000, 0));
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
