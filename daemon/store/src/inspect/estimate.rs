//! Estimates what no stamp tells: the most likely times and versions, and what only copies still hold.

use std::collections::{HashMap, HashSet};

use omir_core::cbor;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use sha2::{Digest as _, Sha256};

use super::Store;
use super::cat::Reader;
use super::history::{Act, Event, HistoryInterval, Position, Version};
use super::scan::{FoundVersion, Scan};
use crate::recorded::ref_key::RefKey;
use crate::recorded::version::Stamp;
use crate::segment::salvage::stated_version;

/// The version of what does not say its own, until [`estimate_versions`] has counted.
pub(super) const UNKNOWN: u64 = 0;
/// The time of what has none, until [`estimate_dates`] has looked at its neighbours.
pub(super) const UNDATED: i64 = i64::MIN;

/// Gives what nothing vouches for the most likely time: what its stamp says, else when it says it was
/// created, but between what was recorded before and after it, and not in the future.
pub(super) fn estimate_dates(intervals: &mut [HistoryInterval], scans: &[Scan], now: i64) {
    let mut after = now;
    for index in (0..intervals.len()).rev() {
        let before = index.checked_sub(1).map_or(0, |before| intervals[before].last_recorded);
        let interval = &mut intervals[index];
        let known = interval.events.iter().find_map(|event| match &event.act {
            Act::Put(version) if version.is_exact => Some(version.stamp.recorded),
            _ => None,
        });
        let is_vague = interval.events.iter().any(Event::is_vague);
        let limit = if interval.last_recorded > before { interval.last_recorded } else { after };
        let likely = |recorded: i64| recorded.min(limit).max(before);
        let found: HashMap<u64, &FoundVersion> = interval
            .file
            .map_or(&[][..], |file| &scans[file].versions)
            .iter()
            .map(|found| (found.range.start, found))
            .collect();
        let mut latest = interval.last_recorded;
        for event in &mut interval.events {
            let stamp = match &mut event.act {
                Act::Put(version) if !version.is_exact => {
                    let own = found.get(&version.position.range.start);
                    if version.stamp.recorded == UNDATED {
                        version.stamp.recorded = own.and_then(|f| f.created).unwrap_or(before);
                    }
                    if let Some(stated) = own.and_then(|found| found.stated) {
                        version.stamp.version = stated;
                    }
                    &mut version.stamp
                }
                Act::Forget(tombstone) if is_vague => &mut tombstone.stamp,
                _ => continue,
            };
            stamp.recorded = likely(stamp.recorded);
            latest = latest.max(stamp.recorded);
        }
        interval.last_recorded = latest;
        after = known.unwrap_or(after).min(after);
    }
}

/// Brings in what only copies still tell of, drops what is known twice, and counts versions that do
/// not say their own.
pub(super) fn estimate_versions(store: &Store, scans: &[Scan], intervals: &mut [HistoryInterval]) {
    let first_lossy = intervals.iter().position(|interval| interval.is_lossy);
    let has_vague = intervals.iter().any(|interval| interval.events.iter().any(Event::is_vague));
    if first_lossy.is_some() || has_vague {
        let paths: Vec<String> = scans.iter().map(|scan| scan.source.path.clone()).collect();
        compare(&mut Reader::over(store, paths), intervals, first_lossy);
    }
    let mut versions: HashMap<RefKey, u64> = HashMap::new();
    let events = intervals.iter_mut().flat_map(|interval| &mut interval.events);
    for event in events {
        match &mut event.act {
            Act::Put(version) => {
                let last = versions.entry(RefKey::of(&version.target)).or_insert(0);
                if version.stamp.version == UNKNOWN {
                    version.stamp.version = last.saturating_add(1);
                }
                *last = version.stamp.version;
            }
            Act::Forget(tombstone) => {
                versions.insert(tombstone.key(), tombstone.stamp.version);
            }
            Act::Touch(_) => {}
        }
    }
}

fn compare(reader: &mut Reader<'_>, intervals: &mut [HistoryInterval], first_lossy: Option<usize>) {
    let mut known: HashSet<(Ref, [u8; 32])> = HashSet::new();
    let mut suspects: HashSet<Ref> = HashSet::new();
    for (index, interval) in intervals.iter().enumerate() {
        let vague = interval.events.iter().filter_map(|event| match &event.act {
            Act::Put(version) if !version.is_exact => Some(version.target.clone()),
            _ => None,
        });
        suspects.extend(vague);
        if first_lossy.is_some_and(|lossy| lossy < index) {
            suspects.extend(interval.copies.iter().map(|(target, _)| target.clone()));
        }
    }
    for event in intervals.iter().flat_map(|interval| &interval.events) {
        if let Act::Put(version) = &event.act
            && version.is_exact
            && suspects.contains(&version.target)
            && let Ok(resource) = reader.resource(&version.position)
        {
            known.insert(fingerprint(resource));
        }
    }
    let mut last_lossy = None;
    for index in 0..intervals.len() {
        let interval = &mut intervals[index];
        interval.events.retain(|event| match &event.act {
            Act::Put(version) if !version.is_exact => reader
                .resource(&version.position)
                .is_ok_and(|resource| known.insert(fingerprint(resource))),
            _ => true,
        });
        if let Some(lossy) = last_lossy {
            let copies = std::mem::take(&mut intervals[index].copies);
            for (target, place) in &copies {
                let Ok(resource) = reader.resource(place) else { continue };
                let stated = stated_version(&resource);
                if known.insert(fingerprint(resource)) {
                    let version = stated.unwrap_or(UNKNOWN);
                    insert_copy(&mut intervals[lossy], target, place, version);
                }
            }
            intervals[index].copies = copies;
        }
        if intervals[index].is_lossy {
            last_lossy = Some(index);
        }
    }
}

/// Puts a version that only a later copy tells of at the end of where it must have been lost.
fn insert_copy(interval: &mut HistoryInterval, target: &Ref, place: &Position, version: u64) {
    let last = interval.events.iter().filter(|event| event.seq == interval.last);
    // Access states stand behind everything.
    let ordinal = last.map(|event| event.ordinal).filter(|&o| o < u32::MAX).max();
    let ordinal = ordinal.map_or(0, |ordinal| ordinal.saturating_add(1));
    let (seq, recorded) = (interval.last, interval.last_recorded);
    let stamp = Stamp { seq, ordinal, version, recorded };
    let version =
        Version { target: target.clone(), stamp, is_exact: false, position: place.clone() };
    interval.events.push(Event { seq, ordinal, act: Act::Put(version) });
    interval.events.sort_by_key(|event| (event.seq, event.ordinal));
}

/// The common part of two resources of which one is a copy of the other.
fn fingerprint(mut resource: Resource) -> (Ref, [u8; 32]) {
    let target = resource.reference();
    resource.retain_references(|_| false);
    (target, Sha256::digest(cbor::to_vec(&resource.to_value())).into())
}
