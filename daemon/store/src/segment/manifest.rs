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

mod read;
mod write;

use std::ops::Range;

use omir_core::value::Value;

use crate::recorded::mark::Mark;
use crate::recorded::tombstone::Tombstone;
use crate::recorded::transaction::Touch;
use crate::recorded::version::Stamp;

pub use self::read::read;
pub(crate) use self::read::{older_at, read_payload, tombstone_of, touch_of};

/// The extension that holds a manifest.
pub const URL: &str = "urn:omird:ext:segment";
/// Version of the manifest's layout.
pub(crate) const FORMAT: u64 = 1;

/// The beginning of the id of every manifest's Episode.
pub(crate) const ID_PREFIX: &str = "omird.segment.";

/// The id of the manifest's Episode.
pub(crate) fn id(segment: u64) -> String {
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
    /// Tombstones, those of versions that ended another and were dropped by a compaction among them.
    pub forgotten: Vec<Tombstone>,
    /// Access states.
    pub touched: Vec<Touch>,
    /// The last mark of the store; none before the first.
    pub mark: Option<Mark>,
}

/// A manifest as it was found in the bytes of a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundManifest {
    /// The manifest.
    pub manifest: Manifest,
    /// Each older version: its stamp, and where its resource lies.
    pub superseded: Vec<(Stamp, Range<usize>)>,
    /// True if it passes its own checksum.
    pub is_whole: bool,
}

/// Returns true if a resource is the manifest of some segment, which is history and no memory: an Episode
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

#[cfg(test)]
mod tests {
    use omir_core::cbor;
    use omir_core::decode::Limits;
    use omir_core::instant::Timestamp;
    use omir_core::value::Map;

    use super::write::object;
    use super::*;
    use crate::recorded::ref_key::RefKey;
    use crate::recorded::tombstone::{DeletionOrigin, EndCause, Target};
    use crate::recorded::values::int;

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
                Tombstone::of(&"Entity/x".parse().unwrap(), stamp(13, 71), DeletionOrigin::User),
                Tombstone {
                    target: Target::Key(RefKey::of_text("MemoryRecord/z")),
                    stamp: stamp(13, 71),
                    ending: EndCause::Forgotten(DeletionOrigin::Merging(RefKey::of_text(
                        "MemoryRecord/a",
                    ))),
                },
                Tombstone {
                    target: Target::Key(RefKey::of_text("MemoryRecord/w")),
                    stamp: stamp(13, 71),
                    ending: EndCause::Forgotten(DeletionOrigin::Rule),
                },
                Tombstone {
                    target: Target::Key(RefKey::of_text("Entity/y")),
                    stamp: stamp(14, 72),
                    ending: EndCause::Dropped,
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
