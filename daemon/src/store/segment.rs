//! Sealed segments: `segments/<number>.omirb`, each one OMIR Bundle that validates alone.
//!
//! A segment is made from the logs that are due together. For every reference the newest version in them is an
//! entry; older ones, and those forgotten meanwhile, ride in the manifest, because a Bundle holds
//! a reference only once. Resources that an entry refers to and that were recorded earlier are
//! copied in, without references of their own, so that nothing dangles; a reference to something
//! forgotten is dropped. See `docs/format.md`.
//!
//! Invariant 6 of ARCHITECTURE.md.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::Value;

use super::manifest::{self, Manifest};
use super::mark::Mark;
use super::merkle::Root;
use super::signature::{self, Contents, Digest};
use super::transaction::{Op, Touch, Transaction};
use crate::PRODUCER;
use crate::index::block::{self, Block, By, Row, Tombstone};
use crate::index::doc::Stamp;
use crate::index::facts::{Facts, terms_of};
use crate::index::text::TextBlock;

/// The folder of the segments.
pub const DIR: &str = "segments";

/// Where a segment lies.
pub fn path(number: u64) -> String {
    format!("{DIR}/{number:010}.omirb")
}

/// Where its signature lies.
pub fn signature_path(number: u64) -> String {
    format!("{DIR}/{number:010}.sig")
}

/// Where its sidecar lies, which mends it.
pub fn sidecar_path(number: u64) -> String {
    format!("{DIR}/{number:010}.par")
}

/// The number in a segment's file name.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".omirb")?;
    let number: u64 = (digits.len() == 10).then(|| digits.parse().ok()).flatten()?;
    // The catalog numbers files with 32 bits; a name beyond that is none of ours.
    (number < u64::from(u32::MAX)).then_some(number)
}

/// Why the bytes of a segment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSegment {
    /// Byte where it was noticed.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for BadSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.message)
    }
}

pub(super) fn bad(offset: usize, message: impl Into<String>) -> BadSegment {
    BadSegment { offset, message: message.into() }
}

/// What a segment will hold, gathered from the transactions of its log.
#[derive(Default)]
pub struct Draft {
    puts: Vec<(Stamp, Resource)>,
    newest: HashMap<Ref, usize>,
    manifest: Manifest,
    touched: HashMap<String, Touch>,
    buried: HashSet<Ref>,
}

impl Draft {
    /// A draft of segment `number`, made from log file `log`.
    pub fn new(number: u64, log: u64, boots: u64) -> Self {
        let manifest = Manifest { segment: number, log, boots, ..Manifest::default() };
        Self { manifest, ..Self::default() }
    }

    /// Whether there is nothing to seal: not even a start, whose number must not be missing later.
    pub fn is_empty(&self) -> bool {
        self.manifest.first_seq == 0
    }

    /// Takes in the next transaction. Resources that no longer pass validation are reported and
    /// left out: they cannot be part of a valid Bundle.
    pub fn add(&mut self, transaction: &Transaction) -> Result<(), BadSegment> {
        let recorded = transaction.at.as_micros();
        self.cover(transaction.seq, recorded);
        let mut faults = Ok(());
        for (ordinal, op) in transaction.ops.iter().enumerate() {
            let stamp = |version| Stamp {
                seq: transaction.seq,
                ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                version,
                recorded,
            };
            match op {
                Op::Put { version, resource } => match decode(resource) {
                    Ok(resource) => self.put(stamp(*version), resource),
                    Err(fault) => faults = Err(fault),
                },
                Op::Forget { target, version, who } => {
                    self.forget(stamp(*version), target.clone(), transaction.by(*who));
                }
                Op::Touch(touch) => self.touch(touch.clone()),
                Op::Boot { count } => self.manifest.boots = self.manifest.boots.max(*count),
                Op::Mark(mark) => self.mark(mark),
            }
        }
        faults
    }

    /// Extends what the segment covers to transaction `seq`. Transactions come in order.
    pub fn cover(&mut self, seq: u64, recorded: i64) {
        if self.manifest.first_seq == 0 {
            self.manifest.first_seq = seq;
        }
        self.manifest.last_seq = seq;
        self.manifest.last_recorded = recorded;
    }

    /// Takes in the next version.
    pub fn put(&mut self, stamp: Stamp, resource: Resource) {
        let reference = resource.reference();
        self.touched.remove(&reference.to_string());
        self.buried.remove(&reference);
        self.newest.insert(reference, self.puts.len());
        self.puts.push((stamp, resource));
    }

    /// Takes in the next tombstone.
    pub fn forget(&mut self, stamp: Stamp, target: Ref, by: By) {
        self.newest.remove(&target);
        self.touched.remove(&target.to_string());
        self.manifest.forgotten.push(Tombstone::of(&target, stamp, by));
        self.buried.insert(target);
    }

    /// Takes in a tombstone of a compacted segment, whose name is gone.
    pub fn bury(&mut self, grave: Tombstone) {
        self.manifest.forgotten.push(grave);
    }

    /// Takes in an access state.
    pub fn touch(&mut self, touch: Touch) {
        self.touched.insert(touch.target.clone(), touch);
    }

    /// Takes in the next mark.
    pub fn mark(&mut self, mark: &Mark) {
        self.manifest.mark.get_or_insert_default().follow(mark);
    }

    /// The bytes of the segment.
    ///
    /// `earlier` gives the live version of something recorded before this log, or `None` if there
    /// is no such thing (any more).
    pub fn build(
        mut self,
        sealed_at: Timestamp,
        mut earlier: impl FnMut(&Ref) -> Option<Resource>,
    ) -> Vec<u8> {
        let mut carried: HashMap<Ref, Option<Resource>> = HashMap::new();
        let mut entries: Vec<Vec<u8>> = Vec::new();
        for (index, (stamp, resource)) in std::mem::take(&mut self.puts).into_iter().enumerate() {
            let is_newest = self.newest.get(&resource.reference()) == Some(&index);
            let whole = is_newest
                .then(|| self.resolve(resource.clone(), &mut carried, &mut earlier))
                .flatten();
            match whole {
                Some(resource) => {
                    let bytes = cbor::to_vec(&resource.to_value());
                    self.manifest.crcs.push(crc32fast::hash(&bytes));
                    self.manifest.entries.push(stamp);
                    entries.push(bytes);
                }
                None => self.manifest.superseded.push((stamp, resource.to_value())),
            }
        }
        let mut copies: Vec<(Ref, Resource)> =
            carried.into_iter().filter_map(|(reference, copy)| Some((reference, copy?))).collect();
        copies.sort_by(|a, b| a.0.cmp(&b.0));
        entries.extend(copies.into_iter().map(|(_, copy)| cbor::to_vec(&copy.to_value())));
        self.manifest.touched = self.touched.into_values().collect();
        self.manifest.touched.sort_by(|a, b| a.target.cmp(&b.target));
        entries.push(cbor::to_vec(&self.manifest.to_value(sealed_at)));
        bundle(self.manifest.segment, sealed_at, entries.len(), &entries)
    }

    /// Drops references to what is gone and notes what must be copied in. `None` if the resource
    /// cannot stand without something that is gone.
    fn resolve(
        &self,
        mut resource: Resource,
        carried: &mut HashMap<Ref, Option<Resource>>,
        earlier: &mut impl FnMut(&Ref) -> Option<Resource>,
    ) -> Option<Resource> {
        let mut reachable = |target: &Ref| {
            if self.newest.contains_key(target) {
                return true;
            }
            if self.buried.contains(target) {
                return false;
            }
            carried
                .entry(target.clone())
                .or_insert_with(|| {
                    let mut copy = earlier(target)?;
                    copy.retain_references(|_| false);
                    Some(copy)
                })
                .is_some()
        };
        let mut stands = true;
        resource.for_each_reference(|_, required, target| {
            stands &= !required || reachable(target);
        });
        if !stands {
            return None;
        }
        resource.retain_references(|target| reachable(target));
        Some(resource)
    }
}

/// Reads a resource from the bytes of one version.
///
/// # Errors
/// If they are no CBOR or no valid resource.
pub fn decode(bytes: &[u8]) -> Result<Resource, BadSegment> {
    let value = cbor::from_slice(bytes, &Limits::default())
        .map_err(|error| bad(error.offset, error.to_string()))?;
    Resource::from_value(value).map_err(|faults| {
        let first = faults.into_iter().next();
        bad(0, first.map_or_else(String::new, |f| format!("{}: {}", f.pointer, f.message)))
    })
}

/// A Bundle of `count` encoded entries as one deterministic CBOR map (RFC 8949 §4.2.1: shorter keys
/// first). Each of `entries` holds one or more, end to end.
pub(super) fn bundle<'a>(
    number: u64,
    sealed_at: Timestamp,
    count: usize,
    entries: impl IntoIterator<Item = &'a Vec<u8>, IntoIter: Clone>,
) -> Vec<u8> {
    let entries = entries.into_iter();
    let mut out = Vec::with_capacity(entries.clone().map(Vec::len).sum::<usize>() + 256);
    cbor::write_map_header(6, &mut out);
    let text = |out: &mut Vec<u8>, s: &str| cbor::write(&Value::from(s), out);
    text(&mut out, "id");
    text(&mut out, &manifest::id(number));
    text(&mut out, "entry");
    cbor::write_array_header(count, &mut out);
    entries.for_each(|entry| out.extend_from_slice(entry));
    text(&mut out, "source");
    text(&mut out, PRODUCER);
    text(&mut out, "generatedAt");
    text(&mut out, &sealed_at.to_string());
    text(&mut out, "omirVersion");
    text(&mut out, "R1");
    text(&mut out, "resourceType");
    text(&mut out, "Bundle");
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
    /// Where the copies lie: resources of earlier segments, without references of their own.
    pub copies: Vec<Range<usize>>,
    /// Whether the manifest passes its checksum. If not, nothing of what it says can be relied on.
    pub is_manifest_whole: bool,
}

fn member(bytes: &[u8], of: &Range<usize>, name: &str) -> Result<Range<usize>, BadSegment> {
    let entries = cbor::map_entries(&bytes[of.clone()])
        .map_err(|error| bad(of.start + error.offset, error.to_string()))?;
    entries
        .into_iter()
        .find(|entry| entry.key == name)
        .map(|entry| of.start + entry.value_range.start..of.start + entry.value_range.end)
        .ok_or_else(|| bad(of.start, format!("no `{name}` here")))
}

fn items(bytes: &[u8], of: &Range<usize>) -> Result<Vec<Range<usize>>, BadSegment> {
    let items = cbor::array_items(&bytes[of.clone()])
        .map_err(|error| bad(of.start + error.offset, error.to_string()))?;
    Ok(items.into_iter().map(|item| of.start + item.start..of.start + item.end).collect())
}

/// What is signed of a segment whose digest is known.
///
/// # Errors
/// If the segment cannot be taken apart.
pub fn contents(bytes: &[u8], sha256: Digest) -> Result<Contents, BadSegment> {
    let entries = items(bytes, &member(bytes, &(0..bytes.len()), "entry")?)?;
    let root = Some(Root::of(entries.into_iter().map(|entry| &bytes[entry])));
    Ok(Contents { bytes: bytes.len() as u64, sha256, root })
}

/// Takes a segment apart. Never panics, whatever the bytes are.
pub fn layout(bytes: &[u8]) -> Result<Layout, BadSegment> {
    let entries = items(bytes, &member(bytes, &(0..bytes.len()), "entry")?)?;
    let (last, others) =
        entries.split_last().ok_or_else(|| bad(0, "a segment has at least its manifest"))?;
    let episode = cbor::from_slice(&bytes[last.clone()], &Limits::default())
        .map_err(|error| bad(last.start + error.offset, error.to_string()))?;
    let manifest = Manifest::from_value(&episode)
        .ok_or_else(|| bad(last.start, "the last entry is no manifest of this format"))?;
    if manifest.entries.len() > others.len() {
        return Err(bad(last.start, "the manifest tells of more entries than there are"));
    }
    let extensions = items(bytes, &member(bytes, last, "extension")?)?;
    let first = extensions.first().ok_or_else(|| bad(last.start, "no extension"))?;
    let payload = member(bytes, first, "valueJson")?;
    let older = items(bytes, &member(bytes, &payload, "superseded")?)?;
    let superseded = manifest
        .superseded
        .iter()
        .zip(older)
        .map(|((stamp, _), item)| Ok((*stamp, member(bytes, &item, "resource")?)))
        .collect::<Result<Vec<_>, BadSegment>>()?;
    let (recorded, copies) = others.split_at(manifest.entries.len());
    let entries = manifest.entries.iter().copied().zip(recorded.iter().cloned()).collect();
    let is_manifest_whole = manifest::is_whole(&episode);
    Ok(Layout { entries, superseded, copies: copies.to_vec(), manifest, is_manifest_whole })
}

/// Makes the index block of a segment from its bytes.
///
/// # Errors
/// If anything in it is damaged.
pub fn index(bytes: &[u8]) -> Result<Block, BadSegment> {
    let (block, mut lost) = index_what_is_whole(bytes)?;
    if lost.is_empty() { Ok(block) } else { Err(lost.swap_remove(0)) }
}

/// Makes the index block of a segment of what passes its checksum; also tells what does not.
///
/// A damaged memory has no row: not even its name can be relied on.
///
/// # Errors
/// If the segment cannot be taken apart, or its manifest is damaged.
pub fn index_what_is_whole(bytes: &[u8]) -> Result<(Block, Vec<BadSegment>), BadSegment> {
    let mut layout = layout(bytes)?;
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
    let mut versions: Vec<(Stamp, Range<usize>)> =
        layout.entries.into_iter().chain(layout.superseded).collect();
    versions.sort_by_key(|(stamp, _)| (stamp.seq, stamp.ordinal));
    let mut rows = Vec::with_capacity(versions.len());
    let mut terms = Vec::with_capacity(versions.len());
    let position = |n: usize| u32::try_from(n).map_err(|_| bad(n, "a segment is at most 4 GiB"));
    for (stamp, range) in versions {
        let raw = &bytes[range.clone()];
        let resource = decode(raw).map_err(|e| bad(range.start + e.offset, e.message))?;
        rows.push(Row {
            stamp,
            facts: Facts::of(&resource),
            offset: position(range.start)?,
            len: position(range.len())?,
            crc: crc32fast::hash(raw),
        });
        terms.push(terms_of(&resource));
    }
    let manifest = layout.manifest;
    let block = Block {
        format: block::FORMAT,
        digest: signature::digest(bytes),
        rows,
        text: TextBlock::build(terms.iter()),
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
    Ok((block, lost))
}
