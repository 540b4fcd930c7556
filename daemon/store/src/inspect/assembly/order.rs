//! The order of the files: intervals one after the other, gaps between them, and where a file belongs that does
//! not say.

use std::collections::HashSet;
use std::ops::Range;

use super::{Assembly, Slot, count};
use crate::digest::Digest;
use crate::inspect::FileKind;
use crate::inspect::estimate::{UNDATED, UNKNOWN};
use crate::inspect::finding::{Finding, Kind};
use crate::inspect::history::{Act, Event, HistoryInterval, Position, Version};
use crate::inspect::scan::{Scan, SealFile};
use crate::recorded::ref_key::RefKey;
use crate::recorded::version::Stamp;

impl Assembly {
    /// Segments of which it is not known which transactions they hold, with the last transaction
    /// that is certainly before each.
    fn unplaced(&self) -> Vec<(u64, usize)> {
        (0..self.scans.len())
            .filter(|&index| self.scans[index].span.is_none())
            .filter_map(|index| Some((self.segment_number(index)?, index)))
            .map(|(own, index)| {
                if let Some(last) = self.last_before(index) {
                    return (last, index);
                }
                let before = (0..self.scans.len())
                    .filter(|&other| self.segment_number(other).is_some_and(|n| n < own));
                let last = before.filter_map(|other| Some(self.scans[other].span?.1)).max();
                (last.unwrap_or(0), index)
            })
            .collect()
    }

    /// The last transaction before a segment, as its signature tells: a compacted one has a higher
    /// number than what comes after it.
    fn last_before(&self, index: usize) -> Option<u64> {
        let seal = |scan: &Scan| match &scan.seal {
            SealFile::Read(seal) if seal.is_authentic() => Some(seal.clone()),
            _ => None,
        };
        let previous = seal(&self.scans[index])?.previous;
        if previous == Digest::default() {
            return Some(0);
        }
        let is_it = |scan: &&Scan| seal(scan).is_some_and(|seal| seal.link() == previous);
        Some(self.scans.iter().filter(|scan| scan.span.is_some()).find(is_it)?.span?.1)
    }

    /// Intervals and gaps, in order.
    pub(super) fn lay_out(&mut self, slots: &[Slot]) {
        let mut unplaced = self.unplaced();
        let mut next = 1;
        let mut previous: Option<usize> = None;
        if !self.is_whole_store {
            next = slots.first().map_or(1, |slot| slot.first);
        }
        for slot in slots {
            if slot.first > next {
                let lacking = (next, slot.first - 1);
                let fits = |before: u64| (next..slot.first).contains(&before.saturating_add(1));
                let here: Vec<usize> =
                    unplaced.iter().filter(|u| fits(u.0)).map(|(_, index)| *index).collect();
                unplaced.retain(|(before, _)| !fits(*before));
                if here.is_empty() {
                    self.gap(lacking, previous, slot.scan);
                } else {
                    self.place(&here, lacking);
                }
            }
            let is_empty = slot.last < slot.first;
            if is_empty {
                self.empty.insert(slot.scan);
            } else if slot.last < next {
                let path = &self.scans[slot.scan].source.path;
                let message = "everything in it is in an earlier segment as well";
                self.findings.push(Finding::new(Kind::HeldElsewhere, path, message));
                continue;
            } else {
                let interval = self.interval(slot.scan, slot.first, slot.last);
                self.intervals.push(interval);
                self.note_inner_gaps(slot);
            }
            previous = Some(slot.scan);
            next = next.max(slot.last.saturating_add(1));
        }
        for (before, index) in unplaced {
            if before.saturating_add(1) >= next {
                // Nothing follows it, so nobody knows how many transactions it held.
                self.place(&[index], (next, next));
                next = next.saturating_add(1);
            } else {
                self.place_unproven(index);
            }
        }
    }

    fn gap(&mut self, lacking: (u64, u64), before: Option<usize>, behind: usize) {
        let (first, last) = lacking;
        let path = |index: usize| self.scans[index].source.path.clone();
        let between = match before {
            Some(before) => format!("between {} and this file", path(before)),
            None => "before this file".to_owned(),
        };
        let message = format!("{} {between} lack", count(last - first + 1, "transaction"));
        let mut finding = Finding::new(Kind::SequenceGap, &path(behind), message);
        finding.transactions = Some(lacking);
        self.findings.push(finding);
        let last_recorded = self.intervals.last().map_or(0, |interval| interval.last_recorded);
        self.intervals.push(HistoryInterval {
            file: None,
            first,
            last,
            last_recorded,
            log: 0,
            boots: 0,
            mark: None,
            events: Vec::new(),
            copies: Vec::new(),
            is_lossy: true,
        });
    }

    /// Brings in a set-aside file whose transaction numbers were given out again: without what is
    /// held elsewhere, before the first interval that was recorded later.
    pub(super) fn attach(&mut self, index: usize, first: u64, last: u64) {
        let mut interval = self.interval(index, first, last);
        let identity = |event: &Event| match &event.act {
            Act::Put(version) => Some((RefKey::of(&version.target), version.stamp.recorded)),
            Act::Forget(tombstone) => Some((tombstone.key(), tombstone.stamp.recorded)),
            Act::Touch(_) => None,
        };
        let known: HashSet<(u64, u32, RefKey, i64)> = self
            .intervals
            .iter()
            .flat_map(|interval| &interval.events)
            .filter_map(|event| {
                let (target, recorded) = identity(event)?;
                Some((event.seq, event.ordinal, target, recorded))
            })
            .collect();
        interval.events.retain(|event| {
            identity(event).is_some_and(|(target, recorded)| {
                !known.contains(&(event.seq, event.ordinal, target, recorded))
            })
        });
        if interval.events.is_empty() {
            return;
        }
        let own = self.scans[index].last_recorded;
        interval.last_recorded = own;
        let later = self.intervals.iter().position(|other| other.last_recorded > own);
        self.intervals.insert(later.unwrap_or(self.intervals.len()), interval);
    }

    /// Brings in a segment that may or may not be held elsewhere, where its number says.
    fn place_unproven(&mut self, index: usize) {
        let number = self.segment_number(index);
        let is_before = |interval: &HistoryInterval| {
            interval
                .file
                .is_none_or(|file| self.segment_number(file).is_some_and(|n| Some(n) < number))
        };
        let at = self.intervals.iter().position(|interval| !is_before(interval));
        let at = at.unwrap_or(self.intervals.len());
        let seq = at.checked_sub(1).map_or(1, |before| self.intervals[before].last);
        let mut interval = self.interval(index, seq, seq);
        let known: HashSet<(RefKey, u64)> = self
            .intervals
            .iter()
            .flat_map(|interval| &interval.events)
            .filter_map(|event| match &event.act {
                Act::Forget(tombstone) => Some((tombstone.key(), tombstone.stamp.version)),
                _ => None,
            })
            .collect();
        interval.events.retain(|event| match &event.act {
            Act::Forget(tombstone) => !known.contains(&(tombstone.key(), tombstone.stamp.version)),
            _ => true,
        });
        interval.is_lossy = false;
        interval.last_recorded = at.checked_sub(1).map_or(0, |b| self.intervals[b].last_recorded);
        self.intervals.insert(at, interval);
        self.doubtful.insert(index);
    }

    /// Transactions that lack within a log: what was in its damaged frames.
    fn note_inner_gaps(&mut self, slot: &Slot) {
        let scan = &self.scans[slot.scan];
        let FileKind::Log(_) = scan.source.kind else { return };
        let mut seqs: Vec<u64> = scan.transactions.iter().map(|(seq, _)| *seq).collect();
        seqs.sort_unstable();
        let mut next = slot.first;
        for seq in seqs {
            if seq > next {
                let message = format!("{} in this file lack", count(seq - next, "transaction"));
                let mut finding = Finding::new(Kind::SequenceGap, &scan.source.path, message);
                finding.transactions = Some((next, seq - 1));
                self.findings.push(finding);
                if let Some(interval) = self.intervals.last_mut() {
                    interval.is_lossy = true;
                }
            }
            next = seq.saturating_add(1);
        }
    }

    /// Puts segments without a known place where transactions lack, one after the other.
    fn place(&mut self, scans: &[usize], (first, last): (u64, u64)) {
        for (index, &scan) in (0u64..).zip(scans) {
            let is_last = index + 1 == scans.len() as u64;
            let own = first.saturating_add(index).min(last);
            let interval = self.interval(scan, own, if is_last { last } else { own });
            self.intervals.push(interval);
        }
    }

    fn interval(&self, index: usize, first: u64, last: u64) -> HistoryInterval {
        let scan = &self.scans[index];
        let place = |range: &Range<u64>| Position { file: index, range: range.clone() };
        let mut events = Vec::new();
        // Events without a place of their own keep the order they lie in.
        let mut unplaced = 1 << 31;
        let mut fit = |seq: u64, ordinal: u32| {
            if (first..=last).contains(&seq) {
                return (seq, ordinal);
            }
            unplaced += 1;
            (first, unplaced)
        };
        for found in &scan.versions {
            let unknown = Stamp { seq: 0, ordinal: 0, version: UNKNOWN, recorded: UNDATED };
            let mut stamp = found.stamp.unwrap_or(unknown);
            (stamp.seq, stamp.ordinal) = fit(stamp.seq, stamp.ordinal);
            let version = Version {
                target: found.target.clone(),
                stamp,
                is_exact: found.is_exact,
                position: place(&found.range),
            };
            events.push(Event { seq: stamp.seq, ordinal: stamp.ordinal, act: Act::Put(version) });
        }
        for tombstone in &scan.tombstones {
            let (seq, ordinal) = fit(tombstone.stamp.seq, tombstone.stamp.ordinal);
            events.push(Event { seq, ordinal, act: Act::Forget(tombstone.clone()) });
        }
        for (seq, ordinal, touch) in &scan.touches {
            let is_fit = (first..=last).contains(seq);
            let (seq, ordinal) = if is_fit { (*seq, *ordinal) } else { (last, u32::MAX) };
            events.push(Event { seq, ordinal, act: Act::Touch(touch.clone()) });
        }
        events.sort_by_key(|event| (event.seq, event.ordinal));
        let before = self.intervals.last().map_or(0, |interval| interval.last_recorded);
        HistoryInterval {
            file: Some(index),
            first,
            last,
            last_recorded: scan.last_recorded.max(before),
            log: scan.log,
            boots: scan.boots,
            mark: scan.mark.clone(),
            events,
            copies: scan.copies.iter().map(|(t, range)| (t.clone(), place(range))).collect(),
            is_lossy: scan.is_lossy,
        }
    }
}
