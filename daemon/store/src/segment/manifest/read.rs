//! Reads a manifest from the bytes of its Episode. Never panics, whatever the bytes are.

use std::ops::Range;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::value::Value;

use super::{FORMAT, FoundManifest, Manifest, URL};
use crate::recorded::mark::Mark;
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::{DeletionOrigin, EndCause, Target, Tombstone};
use crate::recorded::transaction::{MAX_SEQ, Touch};
use crate::recorded::version::Stamp;
use crate::segment::locate;

/// Reads the manifest from the Episode that lies at `episode`; `None` if it is no manifest or not of this
/// format. Never panics, whatever the bytes are.
pub fn read(bytes: &[u8], episode: Range<usize>) -> Option<FoundManifest> {
    let extensions = locate::member(bytes, &episode, "extension").ok()?;
    let first = locate::items(bytes, &extensions).ok()?.into_iter().next()?;
    let url = value(bytes, &locate::member(bytes, &first, "url").ok()?)?;
    if url.as_str()? != URL {
        return None;
    }
    read_payload(bytes, locate::member(bytes, &first, "valueJson").ok()?)
}

/// Reads the payload of a manifest's extension.
pub(crate) fn read_payload(bytes: &[u8], payload: Range<usize>) -> Option<FoundManifest> {
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
    // A manifest salvaged from a damaged segment has none.
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
    Some(FoundManifest { manifest, superseded, is_whole })
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
pub(crate) fn older_at(bytes: &[u8], item: &Range<usize>) -> Option<(Stamp, Range<usize>)> {
    let members = locate::members(bytes, item).ok()?;
    let range_of = |name: &str| Some(&members.iter().find(|member| member.name == name)?.value);
    let stamp = stamp_by(|name| value(bytes, range_of(name)?))?;
    Some((stamp, range_of("resource")?.clone()))
}

/// A number a file can have: the catalog numbers files with 32 bits.
fn file_number(number: u64) -> Option<u64> {
    (number < u64::from(u32::MAX)).then_some(number)
}

pub(crate) fn tombstone_of(item: &Value) -> Option<Tombstone> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let target = match text("ref") {
        Some(name) => Target::Name(name.to_owned()),
        None => Target::Key(RefKey::from_hex(text("key")?)?),
    };
    let is_set = |name: &str| item.get(name).and_then(Value::as_bool) == Some(true);
    // A tombstone that names no rule that we know is a user's: nothing is kept longer for it.
    let ending = match text("into").and_then(RefKey::from_hex) {
        _ if is_set("dropped") => EndCause::Dropped,
        Some(into) => EndCause::Forgotten(DeletionOrigin::Merging(into)),
        None if is_set("rule") => EndCause::Forgotten(DeletionOrigin::Rule),
        None => EndCause::Forgotten(DeletionOrigin::User),
    };
    Some(Tombstone { target, stamp: stamp_of(item)?, ending })
}

/// Reads an access state: a list, or the members that stood in its place before.
pub(crate) fn touch_of(item: &Value) -> Option<Touch> {
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
