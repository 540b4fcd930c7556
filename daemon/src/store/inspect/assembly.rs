//! From files to one history.
//!
//! Files become chapters. A chapter knows which transactions it covers, so what lacks between two
//! chapters is a gap, and a segment whose manifest is lost belongs where its number and the gap say.
//! What several files hold (a log and the segment made from it) counts once.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use super::finding::{Finding, Kind, Severity};
use super::history::{Act, Chapter, Event, FileRow, History, Place, Version};
use super::scan::{self, Scan, SealFile};
use super::settle::{UNDATED, UNKNOWN, date, settle};
use super::{FileKind, Progress, Source, Store};
use crate::disk;
use crate::index::doc::Stamp;
use crate::index::key::RefKey;
use crate::store::segment;
use crate::store::signature::{Digest, Seal};

/// Reads a store. With `deep` segments are validated as Bundles as well.
pub(super) fn read(
    store: &Store,
    deep: bool,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<History> {
    let size = |source: &Source| {
        let file = store.disk.open(&source.path, disk::Mode::Read);
        file.and_then(|file| file.len()).unwrap_or(0)
    };
    let sizes: Vec<u64> = store.sources.iter().map(size).collect();
    let mut passed = Progress { done: 0, total: sizes.iter().sum() };
    progress(passed);
    let mut scans = Vec::with_capacity(store.sources.len());
    for (source, size) in store.sources.iter().zip(sizes) {
        scans.push(scan_file(store, source, deep)?);
        passed.done += size;
        progress(passed);
    }
    let mut assembly = Assembly::new(scans, store);
    assembly.assemble();
    settle(store, &assembly.scans, &mut assembly.chapters);
    Ok(assembly.finish())
}

fn scan_file(store: &Store, source: &Source, deep: bool) -> io::Result<Scan> {
    let (bytes, holes) = match disk::read_around(&*store.disk, &source.path) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(io::Error::new(error.kind(), format!("{}: {error}", source.path)));
        }
        Err(error) => {
            let mut scan = Scan::new(source, 0);
            let message = format!("it cannot be read: {error}");
            scan.unreadable = Some(segment::BadSegment { offset: 0, message: message.clone() });
            let kind = match source.kind {
                FileKind::Segment(_) => Kind::DiskError,
                FileKind::Log(number) => {
                    scan.log = number;
                    Kind::LogUnreadable
                }
            };
            scan.findings.push(Finding::new(kind, &source.path, message));
            scan.is_lossy = true;
            return Ok(scan);
        }
    };
    let mut scan = match source.kind {
        FileKind::Segment(_) => scan::segment(source, &bytes, seal_of(store, source), deep),
        FileKind::Log(_) => scan::log(source, &bytes),
    };
    scan.note_disk_errors(&holes);
    Ok(scan)
}

fn seal_of(store: &Store, source: &Source) -> SealFile {
    let Some(path) = store.signature_path(source) else { return SealFile::Missing };
    match disk::read(&*store.disk, &path) {
        Ok(text) => Seal::from_json(&text)
            .map_or(SealFile::Unreadable, |seal| SealFile::Read(Box::new(seal))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => SealFile::Missing,
        Err(_) => SealFile::Unreadable,
    }
}

/// A file's place in the history.
struct Slot {
    first: u64,
    /// One less than `first` if the file holds no transaction.
    last: u64,
    scan: usize,
}

struct Assembly {
    scans: Vec<Scan>,
    is_whole_store: bool,
    now: i64,
    chapters: Vec<Chapter>,
    findings: Vec<Finding>,
    /// Logs without transactions, ready to be written on.
    empty: HashSet<usize>,
    /// Files of which only their content can tell whether it is held elsewhere.
    doubtful: HashSet<usize>,
}

impl Assembly {
    fn new(scans: Vec<Scan>, store: &Store) -> Self {
        Self {
            scans,
            is_whole_store: store.is_folder,
            now: store.now.as_micros(),
            chapters: Vec::new(),
            findings: Vec::new(),
            empty: HashSet::new(),
            doubtful: HashSet::new(),
        }
    }

    fn assemble(&mut self) {
        let mut slots = self.segment_slots();
        slots.extend(self.log_slots(&slots));
        // What was set aside may have had its transaction numbers given out again since.
        let mut detached = Vec::new();
        for (index, scan) in self.scans.iter().enumerate() {
            if let (true, Some((first, last))) = (scan.source.is_set_aside, scan.span) {
                let is_free = slots.iter().all(|slot| slot.last < first || last < slot.first);
                match is_free {
                    true => slots.push(Slot { first, last, scan: index }),
                    false => detached.push((index, first, last)),
                }
            }
        }
        slots.sort_by_key(|slot| (slot.first, slot.last, slot.scan));
        self.lay_out(&slots);
        for (index, first, last) in detached {
            self.attach(index, first, last);
        }
        self.note_missing_segments();
        date(&mut self.chapters, &self.scans, self.now);
    }

    fn finish(mut self) -> History {
        let doubtful = &self.doubtful;
        self.chapters.retain(|chapter| {
            let is_doubtful = chapter.file.is_some_and(|file| doubtful.contains(&file));
            let mut events = chapter.events.iter();
            !(is_doubtful && events.all(|event| matches!(event.act, Act::Touch(_))))
        });
        self.note_usability();
        let mut history = History::default();
        for index in 0..self.scans.len() {
            let is_used = self.chapters.iter().any(|chapter| chapter.file == Some(index));
            let is_needed = is_used || self.empty.contains(&index);
            let mut own = std::mem::take(&mut self.scans[index].findings);
            let scan = &self.scans[index];
            let is_clean = own.is_empty() && scan.unreadable.is_none();
            // Whatever is wrong with a file that is not needed, everything in it is held elsewhere;
            // but a log is set aside because not everything in it could be sealed.
            let is_remnant = scan.source.is_set_aside && self.segment_number(index).is_none();
            if !is_needed && !is_remnant {
                own.iter_mut()
                    .filter(|finding| finding.kind != Kind::LogUnreadable)
                    .for_each(|finding| finding.severity = finding.severity.min(Severity::Fault));
            }
            history.findings.append(&mut own);
            history.files.push(row(scan, is_needed, is_clean));
        }
        history.findings.append(&mut self.findings);
        history.chapters = self.chapters;
        history
    }

    fn segment_number(&self, index: usize) -> Option<u64> {
        match self.scans[index].source.kind {
            FileKind::Segment(number) => Some(number),
            FileKind::Log(_) => None,
        }
    }

    /// Files that a start removes because a compaction was cut short: what a whole segment replaces,
    /// or one that is not whole.
    fn unfinished_compactions(&mut self) -> HashSet<usize> {
        let mut gone: HashSet<usize> = HashSet::new();
        let mut compacted: Vec<usize> = (0..self.scans.len())
            .filter(|&index| {
                let scan = &self.scans[index];
                !scan.replaces.is_empty() && !scan.source.is_set_aside
            })
            .collect();
        // The newest first: what it replaces may have replaced others.
        compacted.sort_by_key(|&index| std::cmp::Reverse(self.segment_number(index)));
        for index in compacted {
            if gone.contains(&index) {
                continue;
            }
            let scan = &self.scans[index];
            let old: Vec<usize> = (0..self.scans.len())
                .filter(|&other| !self.scans[other].source.is_set_aside)
                .filter(|&other| {
                    self.segment_number(other).is_some_and(|n| scan.replaces.contains(&n))
                })
                .collect();
            let own = &scan.source.path;
            let (files, message) = if old.is_empty() {
                continue;
            } else if old.len() == scan.replaces.len() && !scan.is_signed_as_it_is() {
                let message = "compaction was cut short; what it was to replace is still there";
                (vec![index], message.to_owned())
            } else {
                (old, format!("compaction was cut short; {own} took its place"))
            };
            for file in files {
                let path = &self.scans[file].source.path;
                self.findings.push(Finding::new(
                    Kind::UnfinishedCompaction,
                    path,
                    message.as_str(),
                ));
                gone.insert(file);
            }
        }
        gone
    }

    /// Segments whose transactions are known, but for those whose logs still hold everything.
    fn segment_slots(&mut self) -> Vec<Slot> {
        let mut slots = Vec::new();
        let unfinished = self.unfinished_compactions();
        let is_log = |scan: &&Scan| matches!(scan.source.kind, FileKind::Log(_));
        let logs: Vec<&Scan> =
            self.scans.iter().filter(is_log).filter(|scan| !scan.source.is_set_aside).collect();
        let held: HashSet<u64> =
            logs.iter().flat_map(|log| &log.transactions).map(|(seq, _)| *seq).collect();
        for (index, scan) in self.scans.iter().enumerate() {
            if unfinished.contains(&index) {
                continue;
            }
            let (FileKind::Segment(_), Some((first, last))) = (scan.source.kind, scan.span) else {
                continue;
            };
            if scan.source.is_set_aside {
                continue;
            }
            // The newest goes first when they are dropped: while that is there, all of them are.
            let newest = FileKind::Log(scan.log);
            let is_in_logs = logs.iter().any(|log| log.source.kind == newest)
                && (first..=last).all(|seq| held.contains(&seq));
            if is_in_logs && scan.replaces.is_empty() && !scan.is_signed_as_it_is() {
                let message =
                    format!("sealing was cut short; the logs up to {} still hold it all", scan.log);
                let finding = Finding::new(Kind::UnfinishedSeal, &scan.source.path, message);
                self.findings.push(finding);
                continue;
            }
            slots.push(Slot { first, last, scan: index });
        }
        slots
    }

    /// Logs, each with the transactions that only it holds.
    fn log_slots(&mut self, segments: &[Slot]) -> Vec<Slot> {
        let covered =
            |seq: u64| segments.iter().any(|slot| (slot.first..=slot.last).contains(&seq));
        let mut logs: Vec<usize> = (0..self.scans.len())
            .filter(|&index| matches!(self.scans[index].source.kind, FileKind::Log(_)))
            .filter(|&index| !self.scans[index].source.is_set_aside)
            .collect();
        // Which came first their headers say; names are easily mixed up.
        logs.sort_by_key(|&index| self.scans[index].log);
        let mut taken: HashSet<u64> = HashSet::new();
        let mut slots = Vec::new();
        for (position, &index) in logs.iter().enumerate() {
            // A log that was given up after a failed sync may hold transactions nobody was told
            // of; the next one says where it took over.
            let later = logs[position + 1..].iter();
            let next = later.filter_map(|&next| self.scans[next].header_seq).next();
            let limit = next.unwrap_or(u64::MAX);
            let scan = &mut self.scans[index];
            let seqs = || scan.transactions.iter().map(|(seq, _)| *seq);
            let abandoned = seqs().filter(|&seq| seq >= limit).count();
            let all = scan.transactions.len();
            let kept: HashSet<u64> = seqs()
                .filter(|&seq| seq < limit && !covered(seq) && !taken.contains(&seq))
                .collect();
            if abandoned > 0 {
                let message = format!(
                    "{} from {limit} on were given up after a failed write; they were never \
                     acknowledged",
                    count(abandoned as u64, "transaction")
                );
                self.findings.push(Finding::new(Kind::Abandoned, &scan.source.path, message));
            }
            scan.keep_transactions(&kept);
            let header = scan.header_seq.filter(|&seq| !covered(seq) && !taken.contains(&seq));
            match kept.iter().min().zip(kept.iter().max()) {
                Some((&first, &last)) => {
                    let first = header.map_or(first, |header| header.min(first));
                    slots.push(Slot { first, last, scan: index });
                }
                None if all > abandoned => {
                    let message = "everything in it is in a segment already; a start removes it";
                    let finding = Finding::new(Kind::HeldElsewhere, &scan.source.path, message);
                    self.findings.push(finding);
                }
                None => {
                    if let Some(first) = header {
                        slots.push(Slot { first, last: first - 1, scan: index });
                    }
                }
            }
            taken.extend(kept);
        }
        slots
    }

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

    /// Chapters and gaps, in order.
    fn lay_out(&mut self, slots: &[Slot]) {
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
                let chapter = self.chapter(slot.scan, slot.first, slot.last);
                self.chapters.push(chapter);
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
                self.doubt(index);
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
        let last_recorded = self.chapters.last().map_or(0, |chapter| chapter.last_recorded);
        self.chapters.push(Chapter {
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
    /// held elsewhere, before the first chapter that was recorded later.
    fn attach(&mut self, index: usize, first: u64, last: u64) {
        let mut chapter = self.chapter(index, first, last);
        let identity = |event: &Event| match &event.act {
            Act::Put(version) => Some((RefKey::of(&version.target), version.stamp.recorded)),
            Act::Forget(grave) => Some((grave.key(), grave.stamp.recorded)),
            Act::Touch(_) => None,
        };
        let known: HashSet<(u64, u32, RefKey, i64)> = self
            .chapters
            .iter()
            .flat_map(|chapter| &chapter.events)
            .filter_map(|event| {
                let (target, recorded) = identity(event)?;
                Some((event.seq, event.ordinal, target, recorded))
            })
            .collect();
        chapter.events.retain(|event| {
            identity(event).is_some_and(|(target, recorded)| {
                !known.contains(&(event.seq, event.ordinal, target, recorded))
            })
        });
        if chapter.events.is_empty() {
            return;
        }
        let own = self.scans[index].last_recorded;
        chapter.last_recorded = own;
        let later = self.chapters.iter().position(|other| other.last_recorded > own);
        self.chapters.insert(later.unwrap_or(self.chapters.len()), chapter);
    }

    /// Brings in a segment that may or may not be held elsewhere, where its number says.
    fn doubt(&mut self, index: usize) {
        let number = self.segment_number(index);
        let is_before = |chapter: &Chapter| {
            chapter
                .file
                .is_none_or(|file| self.segment_number(file).is_some_and(|n| Some(n) < number))
        };
        let at = self.chapters.iter().position(|chapter| !is_before(chapter));
        let at = at.unwrap_or(self.chapters.len());
        let seq = at.checked_sub(1).map_or(1, |before| self.chapters[before].last);
        let mut chapter = self.chapter(index, seq, seq);
        let known: HashSet<(RefKey, u64)> = self
            .chapters
            .iter()
            .flat_map(|chapter| &chapter.events)
            .filter_map(|event| match &event.act {
                Act::Forget(grave) => Some((grave.key(), grave.stamp.version)),
                _ => None,
            })
            .collect();
        chapter.events.retain(|event| match &event.act {
            Act::Forget(grave) => !known.contains(&(grave.key(), grave.stamp.version)),
            _ => true,
        });
        chapter.is_lossy = false;
        chapter.last_recorded = at.checked_sub(1).map_or(0, |b| self.chapters[b].last_recorded);
        self.chapters.insert(at, chapter);
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
                if let Some(chapter) = self.chapters.last_mut() {
                    chapter.is_lossy = true;
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
            let chapter = self.chapter(scan, own, if is_last { last } else { own });
            self.chapters.push(chapter);
        }
    }

    fn chapter(&self, index: usize, first: u64, last: u64) -> Chapter {
        let scan = &self.scans[index];
        let place = |range: &Range<u64>| Place { file: index, range: range.clone() };
        let mut events = Vec::new();
        // What cannot have its place keeps the order it lies in.
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
                place: place(&found.range),
            };
            events.push(Event { seq: stamp.seq, ordinal: stamp.ordinal, act: Act::Put(version) });
        }
        for grave in &scan.graves {
            let (seq, ordinal) = fit(grave.stamp.seq, grave.stamp.ordinal);
            events.push(Event { seq, ordinal, act: Act::Forget(grave.clone()) });
        }
        for (seq, ordinal, touch) in &scan.touches {
            let is_fit = (first..=last).contains(seq);
            let (seq, ordinal) = if is_fit { (*seq, *ordinal) } else { (last, u32::MAX) };
            events.push(Event { seq, ordinal, act: Act::Touch(touch.clone()) });
        }
        events.sort_by_key(|event| (event.seq, event.ordinal));
        let before = self.chapters.last().map_or(0, |chapter| chapter.last_recorded);
        Chapter {
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

    fn note_missing_segments(&mut self) {
        if !self.is_whole_store {
            return;
        }
        let mut numbers: Vec<(u64, &str)> = self
            .scans
            .iter()
            .filter_map(|scan| match scan.source.kind {
                FileKind::Segment(number) => Some((number, scan.source.path.as_str())),
                FileKind::Log(_) => None,
            })
            .collect();
        numbers.sort_unstable();
        // Below a compacted one most numbers are gone for good; what lacks there is a gap in the
        // transactions.
        let compacted = self.scans.iter().filter(|scan| !scan.replaces.is_empty());
        let highest = compacted.filter_map(|scan| match scan.source.kind {
            FileKind::Segment(number) => Some(number),
            FileKind::Log(_) => None,
        });
        let mut next = highest.max().map_or(1, |highest| highest.saturating_add(1));
        numbers.retain(|(number, _)| *number >= next);
        for (number, path) in numbers {
            if number > next {
                let message = match number - next {
                    1 => format!("segment {next} is missing before this one"),
                    _ => format!("segments {next} to {} are missing before this one", number - 1),
                };
                self.findings.push(Finding::new(Kind::SegmentMissing, path, message));
            }
            next = next.max(number.saturating_add(1));
        }
    }

    /// What the daemon could not use as it is, or does not use any more.
    fn note_usability(&mut self) {
        let mut findings = Vec::new();
        for (index, scan) in self.scans.iter_mut().enumerate() {
            let chapter = self.chapters.iter().find(|chapter| chapter.file == Some(index));
            let kept = chapter.map_or(0, |chapter| {
                let is_memory = |event: &&Event| !matches!(event.act, Act::Touch(_));
                chapter.events.iter().filter(is_memory).count() as u64
            });
            let matters = kept > 0 || (scan.is_lossy && chapter.is_some());
            let severity = if matters { Severity::Loss } else { Severity::Fault };
            let rest = match (matters, kept) {
                (false, _) => "nothing in it is needed".to_owned(),
                (true, 0) => "nothing in it can be read".to_owned(),
                (true, n) => {
                    format!("a repair brings back {n} versions and tombstones")
                }
            };
            let path = &scan.source.path;
            let is_segment = matches!(scan.source.kind, FileKind::Segment(_));
            if scan.source.is_set_aside {
                let message = format!("the daemon set it aside and does not serve it; {rest}");
                findings.push(Finding::new(Kind::SetAside, path, message).with_severity(severity));
            } else if let (Some(fault), true) = (&scan.unreadable, is_segment) {
                let message = format!("the daemon cannot read it ({}); {rest}", fault.message);
                let finding = Finding::new(Kind::SegmentUnreadable, path, message);
                findings.push(finding.with_severity(severity).at(fault.offset));
            } else if scan.unreadable.is_some() && matters {
                let message = format!("the daemon cannot read it under this name; {rest}");
                findings.push(Finding::new(Kind::LogHeader, path, message).with_severity(severity));
            }
        }
        self.findings.append(&mut findings);
        self.judge_unreadable_logs();
    }

    /// A log of which nothing can be read lost nothing if a segment was made of it, or if the next
    /// log goes on where the segments end.
    fn judge_unreadable_logs(&mut self) {
        let last_log = self
            .scans
            .iter()
            .filter(|scan| scan.header_seq.is_some() && !scan.source.is_set_aside)
            .map(|scan| scan.log)
            .max();
        let sealed: HashSet<u64> = self
            .scans
            .iter()
            .filter(|scan| matches!(scan.source.kind, FileKind::Segment(_)))
            .map(|scan| scan.log)
            .collect();
        for scan in self.scans.iter_mut().filter(|scan| !scan.source.is_set_aside) {
            if last_log.is_some_and(|last| last > scan.log) || sealed.contains(&scan.log) {
                let unreadable = scan.findings.iter_mut().filter(|f| f.kind == Kind::LogUnreadable);
                unreadable.for_each(|finding| finding.severity = Severity::Fault);
            }
        }
    }
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn row(scan: &Scan, is_needed: bool, is_clean: bool) -> FileRow {
    FileRow {
        source: scan.source.clone(),
        bytes: scan.len,
        transactions: scan.span,
        versions: scan.versions.len() as u64,
        tombstones: scan.graves.iter().filter(|grave| grave.is_grave()).count() as u64,
        replaces: scan.replaces.clone(),
        is_readable: scan.unreadable.is_none(),
        is_needed,
        digest: scan.digest,
        seal: match &scan.seal {
            SealFile::Read(seal) => Some((**seal).clone()),
            SealFile::Missing | SealFile::Unreadable => None,
        },
        seal_is_unreadable: matches!(scan.seal, SealFile::Unreadable),
        is_clean,
    }
}
