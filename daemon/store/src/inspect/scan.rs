//! One file: what is in it, and what is wrong with it. Bytes in, plain data out.

use std::collections::HashSet;
use std::ops::Range;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::model::Resource;
use omir_core::pointer;
use omir_core::reference::Ref;
use omir_core::validate::{self, Fault, Level};

use super::finding::{Finding, Kind, Severity};
use super::{FileKind, Source};
use crate::digest::{self, Digest};
use crate::log::wal;
use crate::recorded::mark::Mark;
use crate::recorded::tombstone::Tombstone;
use crate::recorded::transaction::{Op, Touch, Transaction};
use crate::recorded::version::Stamp;
use crate::segment::locate::BadSegment;
use crate::segment::manifest::Manifest;
use crate::segment::salvage::{names_in, salvage, stated_version};
use crate::segment::{self, Layout};
use crate::signing::signature::Seal;

/// Most faults of one Bundle that are reported one by one.
const MOST_FAULTS: usize = 50;

/// A version that was read.
pub(super) struct FoundVersion {
    pub(super) target: Ref,
    /// When and as which version it was recorded, if that is known.
    pub(super) stamp: Option<Stamp>,
    /// True if the stamp is certainly its own.
    pub(super) is_exact: bool,
    pub(super) range: Range<u64>,
    /// The version it says itself.
    pub(super) stated: Option<u64>,
    /// When it says it was created; microseconds.
    pub(super) created: Option<i64>,
}

/// The signature file of a segment.
pub(super) enum SealFile {
    Missing,
    Unreadable,
    Read(Box<Seal>),
}

/// Contents of a file.
pub(super) struct Scan {
    pub(super) source: Source,
    pub(super) len: u64,
    pub(super) digest: Digest,
    pub(super) seal: SealFile,
    /// Why the daemon could not use the file, and the byte where it would notice.
    pub(super) unreadable: Option<BadSegment>,
    /// First and last transaction, if they are known.
    pub(super) span: Option<(u64, u64)>,
    /// When the last transaction was recorded; microseconds.
    pub(super) last_recorded: i64,
    /// The log a segment was sealed from, or the log's own number.
    pub(super) log: u64,
    /// Segments that this one replaces.
    pub(super) replaces: Vec<u64>,
    pub(super) boots: u64,
    pub(super) mark: Option<Mark>,
    pub(super) versions: Vec<FoundVersion>,
    pub(super) tombstones: Vec<Tombstone>,
    /// Access states, with transaction and position.
    pub(super) touches: Vec<(u64, u32, Touch)>,
    /// Copies of resources of earlier files.
    pub(super) copies: Vec<(Ref, Range<u64>)>,
    /// Transactions of a log: number, and when it was recorded.
    pub(super) transactions: Vec<(u64, i64)>,
    /// The transaction a log's header says it begins with.
    pub(super) header_seq: Option<u64>,
    pub(super) findings: Vec<Finding>,
    /// True if something that was in it cannot be read.
    pub(super) is_lossy: bool,
}

impl Scan {
    /// A file of which nothing is known yet.
    pub(super) fn new(source: &Source, len: u64) -> Self {
        Self {
            source: source.clone(),
            len,
            digest: Digest::default(),
            seal: SealFile::Missing,
            unreadable: None,
            span: None,
            last_recorded: 0,
            log: 0,
            replaces: Vec::new(),
            boots: 0,
            mark: None,
            versions: Vec::new(),
            tombstones: Vec::new(),
            touches: Vec::new(),
            copies: Vec::new(),
            transactions: Vec::new(),
            header_seq: None,
            findings: Vec::new(),
            is_lossy: false,
        }
    }

    /// Returns true if the segment is, to the byte, the one that was signed.
    pub(super) fn is_signed_as_it_is(&self) -> bool {
        matches!(&self.seal, SealFile::Read(seal)
            if seal.contents.sha256 == self.digest && seal.contents.bytes == self.len)
    }

    fn finding(&self, kind: Kind, message: impl Into<String>) -> Finding {
        Finding::new(kind, &self.source.path, message)
    }

    fn lose(&mut self, finding: Finding) {
        self.is_lossy = true;
        self.findings.push(finding);
    }

    fn push(
        &mut self,
        resource: &Resource,
        stamp: Option<Stamp>,
        is_exact: bool,
        range: Range<usize>,
    ) {
        self.versions.push(FoundVersion {
            target: resource.reference(),
            stamp,
            is_exact,
            range: wide(range),
            stated: stated_version(resource),
            created: resource.created_at().map(|at| at.at().as_micros()),
        });
    }

    /// Notes a disk that gave errors.
    pub(super) fn note_disk_errors(&mut self, holes: &[Range<usize>]) {
        for hole in holes {
            let message = "the disk gives an error here";
            let finding = self.finding(Kind::DiskError, message);
            self.findings.push(finding.at(hole.start).of_len(hole.len()));
        }
    }
}

fn wide(range: Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// Reads a segment. With `deep` it is validated as a Bundle as well.
pub(super) fn segment(source: &Source, bytes: &[u8], seal: SealFile, deep: bool) -> Scan {
    let mut scan = Scan::new(source, bytes.len() as u64);
    scan.digest = digest::digest(bytes);
    scan.seal = seal;
    let damaged = |offset: usize, message: &str| BadSegment { offset, message: message.to_owned() };
    match segment::layout(bytes) {
        Ok(layout) if !layout.is_manifest_whole => {
            scan.take_salvage(
                bytes,
                damaged(bytes.len(), "its manifest does not pass its checksum"),
            );
        }
        Ok(layout) => scan.take_layout(bytes, layout),
        Err(fault) => scan.take_salvage(bytes, fault),
    }
    if deep {
        scan.validate(bytes);
    }
    scan
}

impl Scan {
    fn take_layout(&mut self, bytes: &[u8], layout: Layout) {
        self.take_manifest(&layout.manifest);
        let crcs = layout.manifest.crcs.iter().map(Some).chain(std::iter::repeat(None));
        let entries = layout.entries.into_iter().zip(crcs);
        // Older versions are part of the manifest and share its checksum.
        let older = layout.superseded.into_iter().map(|older| (older, None));
        for ((stamp, range), crc) in entries.chain(older) {
            let raw = &bytes[range.clone()];
            if crc.is_some_and(|crc| *crc != crc32fast::hash(raw)) {
                self.take_damaged(bytes, range, "it does not pass its checksum");
                continue;
            }
            match segment::decode_resource(raw) {
                Ok(resource) => self.push(&resource, Some(stamp), true, range),
                Err(fault) => {
                    let offset = range.start + fault.offset;
                    self.take_damaged(bytes, range, &fault.message);
                    self.unreadable.get_or_insert(BadSegment { offset, message: fault.message });
                }
            }
        }
        for range in layout.copies {
            if let Ok(resource) = segment::decode_resource(&bytes[range.clone()]) {
                self.copies.push((resource.reference(), wide(range)));
            }
        }
    }

    /// A manifest's statements on the segment as a whole.
    fn take_manifest(&mut self, manifest: &Manifest) {
        if manifest.first_seq > 0 && manifest.last_seq >= manifest.first_seq {
            self.span = Some((manifest.first_seq, manifest.last_seq));
        }
        self.last_recorded = manifest.last_recorded;
        self.log = manifest.log;
        self.replaces.clone_from(&manifest.replaces);
        self.boots = manifest.boots;
        self.mark.clone_from(&manifest.mark);
        self.take_elements(manifest);
    }

    fn take_elements(&mut self, manifest: &Manifest) {
        self.tombstones.clone_from(&manifest.forgotten);
        let last = manifest.last_seq;
        self.touches = manifest.touched.iter().map(|t| (last, u32::MAX, t.clone())).collect();
    }

    /// An entry that is in its place and is not what was written.
    fn take_damaged(&mut self, bytes: &[u8], range: Range<usize>, fault: &str) {
        let message = format!("a memory cannot be read: {fault}");
        let mut finding =
            self.finding(Kind::BytesLost, message).at(range.start).of_len(range.len());
        finding.names = names_in(&bytes[range]);
        self.lose(finding);
    }

    fn take_salvage(&mut self, bytes: &[u8], fault: BadSegment) {
        let read = salvage(bytes);
        self.unreadable = Some(fault);
        match read.manifest_is_whole {
            true => self.take_manifest(&read.manifest),
            // Numbers that nothing vouches for would put the whole history out of order.
            false => self.take_elements(&read.manifest),
        }
        for item in read.entries {
            self.push(&item.resource, item.stamp, item.is_exact, item.range);
        }
        for (stamp, range) in read.superseded {
            if let Ok(resource) = segment::decode_resource(&bytes[range.clone()]) {
                self.push(&resource, Some(stamp), read.manifest_is_whole, range);
            }
        }
        for copy in read.copies {
            self.copies.push((copy.resource.reference(), wide(copy.range)));
        }
        let message = match (read.lacking, read.holes.len()) {
            (Some(1), 1) => "a memory in here cannot be read".to_owned(),
            (Some(n), 1) => format!("{n} memories in here cannot be read"),
            (Some(n), _) => format!("here lie some of the {n} memories that cannot be read"),
            (None, _) => "whatever memories lie here cannot be read".to_owned(),
        };
        for hole in read.holes {
            let mut finding =
                self.finding(Kind::BytesLost, message.as_str()).at(hole.start).of_len(hole.len());
            finding.names = names_in(&bytes[hole]);
            self.lose(finding);
        }
        if !read.manifest_is_whole {
            let message = "its manifest is damaged: when and as which versions its memories were \
                           recorded is not known for all of them, and older versions, tombstones \
                           and access states in it may be lost";
            self.lose(self.finding(Kind::HistoryLost, message));
        }
    }

    fn validate(&mut self, bytes: &[u8]) {
        let value = match cbor::from_slice(bytes, &Limits::default()) {
            Ok(value) => value,
            Err(error) => {
                let mut finding =
                    self.finding(Kind::BundleInvalid, error.message.clone()).at(error.offset);
                finding.pointer = Some(error.pointer);
                self.findings.push(finding);
                return;
            }
        };
        let faults: Vec<Fault> = validate::validate_bundle(&value, Level::Core)
            .into_iter()
            .filter(|fault| fault.severity() == validate::Severity::Error)
            .collect();
        let entries = entry_offsets(bytes);
        for fault in faults.iter().take(MOST_FAULTS) {
            let message = format!("{} {}", fault.code, fault.message);
            let mut finding = self.finding(Kind::BundleInvalid, message);
            let mut tokens = pointer::tokens(&fault.pointer);
            let entry =
                (tokens.next().as_deref() == Some("entry")).then(|| tokens.next()?.parse().ok());
            let offset = entry.flatten().and_then(|index: usize| entries.get(index));
            finding.offset = offset.copied();
            finding.pointer = Some(fault.pointer.clone());
            self.findings.push(finding);
        }
        if faults.len() > MOST_FAULTS {
            let message = format!("and {} more faults of this kind", faults.len() - MOST_FAULTS);
            self.findings.push(self.finding(Kind::BundleInvalid, message));
        }
    }
}

/// Starts of the entries of a Bundle, as far as they are known.
fn entry_offsets(bytes: &[u8]) -> Vec<u64> {
    let entries = cbor::map_entries(bytes).ok().and_then(|mut e| e.find(|e| e.key == "entry"));
    let Some(range) = entries.map(|entry| entry.value_range) else { return Vec::new() };
    let items = cbor::array_items(&bytes[range.clone()]).unwrap_or_default();
    items.into_iter().map(|item| (range.start + item.start) as u64).collect()
}

/// Reads a log, of which the first `durable` bytes are known to have been durable.
pub(super) fn log(source: &Source, bytes: &[u8], durable: usize) -> Scan {
    let mut scan = Scan::new(source, bytes.len() as u64);
    let FileKind::Log(named) = source.kind else { return scan };
    let stored = wal::stored_number(bytes);
    let number = stored.unwrap_or(named);
    scan.log = number;
    let durable = if stored == Some(named) { durable } else { 0 };
    let Ok(contents) = wal::read_known(bytes, number, durable) else {
        let finding = if bytes.len() <= wal::FILE_HEADER {
            let message =
                "its header is not whole: it was torn while it was made, and holds nothing";
            scan.finding(Kind::LogHeader, message).with_severity(Severity::Info)
        } else {
            scan.is_lossy = true;
            let message = "neither its header nor any transaction in it can be read";
            let mut finding = scan.finding(Kind::LogUnreadable, message).at(0).of_len(bytes.len());
            finding.names = names_in(bytes);
            finding
        };
        scan.findings.push(finding);
        return scan;
    };
    if stored.is_none() {
        let message = "its header is damaged; its transactions can be read";
        scan.findings.push(scan.finding(Kind::LogHeader, message).at(0).of_len(wal::FILE_HEADER));
    } else if number != named {
        let message = format!("its header says that it is log {number}");
        scan.unreadable = Some(BadSegment { offset: 8, message: message.clone() });
        scan.findings.push(scan.finding(Kind::LogHeader, message).at(8).of_len(8));
    }
    scan.header_seq = stored.map(|_| contents.first_seq).filter(|&seq| seq > 0);
    for lost in &contents.damage {
        let message = "these bytes were acknowledged and cannot be read any more";
        let mut finding = scan.finding(Kind::FramesLost, message).at(lost.at).of_len(lost.len);
        finding.names = names_in(&bytes[lost.at..lost.at + lost.len]);
        scan.lose(finding);
    }
    if let Some(cut) = durable.checked_sub(bytes.len()).filter(|&cut| cut > 0) {
        let message = "so many bytes at its end were acknowledged and are gone";
        let finding = scan.finding(Kind::FramesLost, message).at(bytes.len()).of_len(cut);
        scan.lose(finding);
    }
    if contents.end < bytes.len() {
        let message = "the end of the log is torn or rotted: a write that the power cut short was never acknowledged, but if the card \
                       lost it since, one transaction may be lost";
        let finding = scan.finding(Kind::TornEnd, message);
        scan.findings.push(finding.at(contents.end).of_len(bytes.len() - contents.end));
    }
    for frame in &contents.frames {
        scan.take_frame(frame);
    }
    let seqs = scan.transactions.iter().map(|(seq, _)| *seq);
    scan.span = seqs.clone().min().zip(seqs.max());
    scan
}

impl Scan {
    fn take_frame(&mut self, frame: &wal::Frame<'_>) {
        let (transaction, places) = match Transaction::decode(frame.payload) {
            Ok(decoded) => decoded,
            Err(fault) => {
                let message =
                    format!("a whole transaction cannot be understood: {}", fault.message);
                let mut finding = self
                    .finding(Kind::TransactionUnreadable, message)
                    .at(frame.at + fault.offset)
                    .of_len(frame.payload.len().saturating_sub(fault.offset));
                finding.names = names_in(frame.payload);
                return self.lose(finding);
            }
        };
        let recorded = transaction.at.as_micros();
        self.last_recorded = self.last_recorded.max(recorded);
        self.transactions.push((transaction.seq, recorded));
        for (ordinal, (op, place)) in transaction.ops.iter().zip(places).enumerate() {
            let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
            let seq = transaction.seq;
            let stamp = |version| Stamp { seq, ordinal, version, recorded };
            match op {
                Op::Put { version, resource } => {
                    let start = frame.at + place.unwrap_or(0);
                    let range = start..start + resource.len();
                    match segment::decode_resource(resource) {
                        Ok(resource) => self.push(&resource, Some(stamp(*version)), true, range),
                        Err(fault) => {
                            let message = format!("a memory cannot be read: {}", fault.message);
                            let mut finding = self
                                .finding(Kind::BytesLost, message)
                                .at(range.start)
                                .of_len(range.len());
                            finding.names = names_in(resource);
                            self.lose(finding);
                        }
                    }
                }
                Op::Forget { target, version, who } => {
                    let by = transaction.by(*who);
                    self.tombstones.push(Tombstone::of(target, stamp(*version), by));
                }
                Op::Touch(touch) => self.touches.push((seq, ordinal, touch.clone())),
                Op::Boot { count } => self.boots = self.boots.max(*count),
                Op::Mark(mark) => self.mark.get_or_insert_default().follow(mark),
            }
        }
    }

    /// Drops everything of transactions that are not wanted.
    pub(super) fn keep_transactions(&mut self, kept: &HashSet<u64>) {
        self.versions.retain(|found| found.stamp.is_none_or(|stamp| kept.contains(&stamp.seq)));
        self.tombstones.retain(|tombstone| kept.contains(&tombstone.stamp.seq));
        self.touches.retain(|(seq, _, _)| kept.contains(seq));
    }
}
