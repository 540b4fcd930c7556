//! Sealed segments: `segments/<number>.omirb`, each one OMIR Bundle that validates alone.
//!
//! A segment is made from the logs that are due together. For every reference the newest version in them is an
//! entry; older ones, and those forgotten meanwhile, ride in the manifest, because a Bundle holds
//! a reference only once. Resources that an entry refers to and that were recorded earlier are
//! copied in, without references of their own, so that nothing dangles; a reference to something
//! forgotten is dropped. See `docs/format.md`.
//!
//! | module | the question it answers |
//! |---|---|
//! | `draft` | what do the transactions of logs come to? |
//! | `manifest` | how were the other entries recorded? |
//! | `locate` | where do the parts of an encoded document lie? |
//! | `salvage` | what can still be read of a damaged segment? |
//!
//! Invariant 6 of ARCHITECTURE.md.

mod draft;
pub(crate) mod locate;
pub(crate) mod manifest;
pub(crate) mod salvage;

use std::ops::Range;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::merkle::Root;
use omir_core::model::Resource;
use omir_core::value::Value;

pub use self::draft::{Draft, EarlierResource};
use self::locate::{BadSegment, bad};
use self::manifest::{FoundManifest, Manifest, Older};
pub(crate) use self::salvage::LostName;
use crate::PRODUCER;
use crate::digest::{self, Digest};
use crate::kept_index::block::{Block, Row};
use crate::kept_index::index_extractor::{BlockOf, IndexExtractor};
pub use crate::names::{
    SEGMENTS as DIR, segment_number as number_of, segment_path as path, sidecar_path,
    signature_path,
};
use crate::recorded::version::Stamp;
use crate::signing::signature::Contents;

/// About what a manifest says of an older version, in bytes, beside its resource; and of an entry. Only what is
/// reserved at first goes by it.
const OLDER: usize = 64;
const PER_ENTRY: usize = 24;

/// Reads a resource from the bytes of one version.
///
/// # Errors
/// If they are no CBOR or no valid resource.
pub fn decode_resource(bytes: &[u8]) -> Result<Resource, BadSegment> {
    let value = cbor::from_slice(bytes, &Limits::default())
        .map_err(|error| bad(error.offset, error.to_string()))?;
    Resource::from_value(value).map_err(|faults| {
        let first = faults.into_iter().next();
        bad(0, first.map_or_else(String::new, |f| format!("{}: {}", f.pointer, f.message)))
    })
}

/// A segment: a Bundle as one deterministic CBOR map (RFC 8949 §4.2.1: shorter keys first), of `count`
/// encoded entries and the manifest behind them. Each of `entries` holds one or more, end to end.
pub(super) fn bundle<'a>(
    manifest: &Manifest,
    count: usize,
    entries: impl Iterator<Item = &'a [u8]> + Clone,
    older: &[Older<'_>],
    sealed_at: Timestamp,
) -> Vec<u8> {
    let of_older: usize = older.iter().map(|(_, resource)| OLDER + resource.len()).sum();
    let size = entries.clone().map(<[u8]>::len).sum::<usize>() + of_older;
    let mut out = Vec::with_capacity(size + PER_ENTRY * manifest.entries.len() + 1024);
    cbor::write_map_header(6, &mut out);
    let text = |out: &mut Vec<u8>, s: &str| cbor::write(&Value::from(s), out);
    text(&mut out, "id");
    text(&mut out, &manifest::id(manifest.segment));
    text(&mut out, "entry");
    cbor::write_array_header(count + 1, &mut out);
    entries.for_each(|entry| out.extend_from_slice(entry));
    manifest.write(older, sealed_at, &mut out);
    text(&mut out, "source");
    text(&mut out, PRODUCER);
    text(&mut out, "generatedAt");
    text(&mut out, &sealed_at.to_string());
    text(&mut out, "omirVersion");
    text(&mut out, "R1");
    text(&mut out, "resourceType");
    text(&mut out, "Bundle");
    out.shrink_to_fit();
    out
}

/// A segment's bytes, taken apart without decoding its memories.
pub struct Layout {
    /// The manifest.
    pub manifest: Manifest,
    /// Each entry recorded here: its stamp and where it lies.
    pub entries: Vec<(Stamp, Range<usize>)>,
    /// Each older version: its stamp and where it lies.
    pub superseded: Vec<(Stamp, Range<usize>)>,
    /// Positions of the copies: resources of earlier segments, without references of their own.
    pub copies: Vec<Range<usize>>,
    /// True if the manifest passes its checksum. If not, nothing of what it says can be relied on.
    pub is_manifest_whole: bool,
    /// Names in what cannot be read; found only where damaged entries were looked for.
    pub(crate) names_lost: Vec<LostName>,
}

impl Layout {
    /// Bytes of all versions that were recorded here.
    pub(super) fn versions_len(&self) -> usize {
        self.entries.iter().chain(&self.superseded).map(|(_, range)| range.len()).sum()
    }
}

/// The signed facts of a segment whose digest is known.
///
/// # Errors
/// If the segment cannot be taken apart.
pub fn contents(bytes: &[u8], sha256: Digest) -> Result<Contents, BadSegment> {
    let entries = locate::items(bytes, &locate::member(bytes, &(0..bytes.len()), "entry")?)?;
    let root = Some(Root::of(entries.into_iter().map(|entry| &bytes[entry])));
    Ok(Contents { bytes: bytes.len() as u64, sha256, root })
}

/// Takes a segment apart. Never panics, whatever the bytes are.
pub fn layout(bytes: &[u8]) -> Result<Layout, BadSegment> {
    let entries = locate::items(bytes, &locate::member(bytes, &(0..bytes.len()), "entry")?)?;
    let (last, others) =
        entries.split_last().ok_or_else(|| bad(0, "a segment has at least its manifest"))?;
    let FoundManifest { manifest, superseded, is_whole } = manifest::read(bytes, last.clone())
        .ok_or_else(|| bad(last.start, "the last entry is no manifest of this format"))?;
    if manifest.entries.len() > others.len() {
        return Err(bad(last.start, "the manifest tells of more entries than there are"));
    }
    let (recorded, copies) = others.split_at(manifest.entries.len());
    let entries = manifest.entries.iter().copied().zip(recorded.iter().cloned()).collect();
    let is_manifest_whole = is_whole;
    let (copies, names_lost) = (copies.to_vec(), Vec::new());
    Ok(Layout { entries, superseded, copies, manifest, is_manifest_whole, names_lost })
}

/// Takes a segment apart that may be damaged: its entries are those that pass their checksum. Also tells what does not.
///
/// Where damage hides the places of entries, they are looked for: one wrong length must not take its neighbours with it.
///
/// # Errors
/// If its manifest is damaged, which tells the stamps and checksums.
pub(super) fn layout_of_whole(bytes: &[u8]) -> Result<(Layout, Vec<BadSegment>), BadSegment> {
    let by_structure = layout(bytes).and_then(|layout| entries_that_pass(bytes, layout));
    if by_structure.as_ref().is_ok_and(|(_, lost)| lost.is_empty()) {
        return by_structure;
    }
    match salvage::layout(bytes) {
        Some((layout, lost))
            if by_structure.as_ref().map_or(true, |(_, hidden)| lost.len() < hidden.len()) =>
        {
            Ok((layout, lost))
        }
        Some((salvaged, _)) => by_structure
            .map(|(layout, lost)| (Layout { names_lost: salvaged.names_lost, ..layout }, lost)),
        None => by_structure,
    }
}

/// Drops the entries that do not pass their checksum, and tells of each.
fn entries_that_pass(
    bytes: &[u8],
    mut layout: Layout,
) -> Result<(Layout, Vec<BadSegment>), BadSegment> {
    if !layout.is_manifest_whole || layout.manifest.crcs.len() != layout.entries.len() {
        return Err(bad(bytes.len(), "the manifest does not pass its checksum"));
    }
    let mut lost = Vec::new();
    let mut crcs = layout.manifest.crcs.iter();
    layout.entries.retain(|(_, range)| {
        let is_whole = crcs.next() == Some(&crc32fast::hash(&bytes[range.clone()]));
        if !is_whole {
            lost.push(bad(range.start, "a memory does not pass its checksum"));
        }
        is_whole
    });
    Ok((layout, lost))
}

/// Makes the index block of a segment from its bytes.
///
/// # Errors
/// If anything in it is damaged.
pub fn index<D: IndexExtractor>(bytes: &[u8]) -> Result<BlockOf<D>, BadSegment> {
    let (block, mut lost) = index_what_is_whole::<D>(bytes, None)?;
    if lost.is_empty() { Ok(block) } else { Err(lost.swap_remove(0)) }
}

/// Makes the index block of a segment of what passes its checksum; also tells what does not.
///
/// A damaged memory has no row: not even its name can be relied on. `words` are those that are kept, if they are: then
/// no text is split into words.
///
/// # Errors
/// If its manifest is damaged.
pub fn index_what_is_whole<D: IndexExtractor>(
    bytes: &[u8],
    words: Option<D::Words>,
) -> Result<(BlockOf<D>, Vec<BadSegment>), BadSegment> {
    index_with_losses::<D>(bytes, words).map(|(block, lost, _)| (block, lost))
}

/// A block, what does not pass its checksum, and the names in that.
pub(crate) type WithLosses<D> = (BlockOf<D>, Vec<BadSegment>, Vec<LostName>);

/// As [`index_what_is_whole`], also with the names that damaged memories still tell. Nothing else in them is relied on.
pub(crate) fn index_with_losses<D: IndexExtractor>(
    bytes: &[u8],
    words: Option<D::Words>,
) -> Result<WithLosses<D>, BadSegment> {
    let (layout, lost) = layout_of_whole(bytes)?;
    let names = layout.names_lost;
    let mut versions: Vec<(Stamp, Range<usize>)> =
        layout.entries.into_iter().chain(layout.superseded).collect();
    versions.sort_by_key(|(stamp, _)| (stamp.seq, stamp.ordinal));
    let mut rows = Vec::with_capacity(versions.len());
    let mut text = D::Gathering::default();
    let position = |n: usize| u32::try_from(n).map_err(|_| bad(n, "a segment is at most 4 GiB"));
    for (stamp, range) in versions {
        let raw = &bytes[range.clone()];
        let resource = decode_resource(raw).map_err(|e| bad(range.start + e.offset, e.message))?;
        rows.push(Row {
            stamp,
            facts: D::facts(&resource),
            offset: position(range.start)?,
            len: position(range.len())?,
            crc: crc32fast::hash(raw),
        });
        if words.is_none() {
            D::gather(&mut text, &D::terms(&resource));
        }
    }
    let text = match words {
        Some(words) if D::is_consistent(&rows, &words) => words,
        Some(_) => return index_with_losses::<D>(bytes, None),
        None => D::gathered(text),
    };
    let manifest = layout.manifest;
    let block = Block {
        digest: digest::digest(bytes),
        rows,
        text,
        tombstones: manifest.forgotten,
        touches: manifest.touched,
        log: manifest.log,
        replaces: manifest.replaces,
        boots: manifest.boots,
        mark: manifest.mark,
        first_seq: manifest.first_seq,
        last_seq: manifest.last_seq,
        last_recorded: manifest.last_recorded,
    };
    Ok((block, lost, names))
}
