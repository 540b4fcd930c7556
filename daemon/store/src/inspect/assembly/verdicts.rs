//! Conclusions from the order about each file: whether anything in it is needed, and whether its faults lost something.

use std::collections::HashSet;

use super::Assembly;
use crate::inspect::FileKind;
use crate::inspect::finding::{Finding, Kind, Severity};
use crate::inspect::history::{Act, Event, FileRow, History};
use crate::inspect::scan::{Scan, SealFile};

impl Assembly {
    pub(super) fn finish(mut self) -> History {
        let doubtful = &self.doubtful;
        self.intervals.retain(|interval| {
            let is_doubtful = interval.file.is_some_and(|file| doubtful.contains(&file));
            let mut events = interval.events.iter();
            !(is_doubtful && events.all(|event| matches!(event.act, Act::Touch(_))))
        });
        self.note_usability();
        let mut history = History::default();
        for index in 0..self.scans.len() {
            let is_used = self.intervals.iter().any(|interval| interval.file == Some(index));
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
        history.intervals = self.intervals;
        history
    }

    pub(super) fn note_missing_segments(&mut self) {
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

    /// Files that the daemon could not use, or does not use any more.
    fn note_usability(&mut self) {
        let mut findings = Vec::new();
        for (index, scan) in self.scans.iter_mut().enumerate() {
            let interval = self.intervals.iter().find(|interval| interval.file == Some(index));
            let kept = interval.map_or(0, |interval| {
                let is_memory = |event: &&Event| !matches!(event.act, Act::Touch(_));
                interval.events.iter().filter(is_memory).count() as u64
            });
            let matters = kept > 0 || (scan.is_lossy && interval.is_some());
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

fn row(scan: &Scan, is_needed: bool, is_clean: bool) -> FileRow {
    FileRow {
        source: scan.source.clone(),
        bytes: scan.len,
        transactions: scan.span,
        versions: scan.versions.len() as u64,
        tombstones: scan.tombstones.iter().filter(|tombstone| tombstone.is_forgotten()).count()
            as u64,
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
