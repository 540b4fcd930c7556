//! Which transactions each file stands for: what several files hold counts once, and what a write that was cut
//! short left beside what it was made of does not count.

use std::collections::HashSet;

use super::{Assembly, Slot, count};
use crate::inspect::FileKind;
use crate::inspect::finding::{Finding, Kind};
use crate::inspect::scan::Scan;

impl Assembly {
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
    pub(super) fn segment_slots(&mut self) -> Vec<Slot> {
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
    pub(super) fn log_slots(&mut self, segments: &[Slot]) -> Vec<Slot> {
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
}
