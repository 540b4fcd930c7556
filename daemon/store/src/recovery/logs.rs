//! The logs that no segment covers yet: replayed into the catalog, each up to its torn end.
//!
//! What a transaction means is worked out ahead on several threads, a batch of frames at a time;
//! the catalog moves in the order of the log.

use std::collections::HashMap;
use std::io;

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;

use super::{Recovery, ahead, borne, read};
use crate::disk::{self, Mode};
use crate::index::Index;
use crate::kept_index::index_extractor::IndexExtractor;
use crate::log::Unsealed;
use crate::log::wal;
use crate::log::witness::{self, Fact, WitnessContents};
use crate::recorded::mark::Mark;
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::DeletionOrigin;
use crate::recorded::transaction::{Op, Touch, Transaction, Unreadable};
use crate::recorded::version::{FileId, Location, Stamp};
use crate::segment::locate::BadSegment;
use crate::segment::{self, salvage};

/// How many numbers a log may have given out of which nothing can be read.
const RESERVED: u64 = 1 << 24;
/// Bytes of frames that are decoded at a time: some hundreds of memories, and what they become takes
/// a few times as much.
const BATCH: usize = 256 << 10;

/// A log as it was replayed.
pub(super) struct ReplayedLog {
    pub unsealed: Unsealed,
    pub has_frames: bool,
    pub has_changes: bool,
}

/// The effects of a transaction on the catalog.
struct Step<D: IndexExtractor> {
    /// The end of its frame.
    end: u64,
    seq: u64,
    at: Timestamp,
    effects: Vec<Effect<D>>,
}

impl<D: IndexExtractor> Step<D> {
    /// The time that what cannot be undone went by, if it says so.
    fn certain(&self) -> Option<Timestamp> {
        let certain = self.effects.iter().find_map(|effect| match effect {
            Effect::Mark(mark) => Some(mark.certain),
            _ => None,
        });
        certain.filter(|&certain| certain > 0).map(Timestamp::from_micros)
    }
}

/// Facts and terms that the index draws from a version.
type ExtractedFacts<D> = Box<(<D as IndexExtractor>::Facts, <D as IndexExtractor>::Terms)>;

enum Effect<D: IndexExtractor> {
    Put { version: u64, location: Location, drawn: Result<ExtractedFacts<D>, BadSegment> },
    Forget { target: Ref, version: u64, by: DeletionOrigin },
    Touch(Touch),
    Boot(u64),
    Mark(Mark),
}

impl<I: Index> Recovery<'_, I> {
    /// Replays all logs, oldest first.
    pub(super) fn replay_logs(&mut self, numbers: &[u64]) -> io::Result<Vec<ReplayedLog>> {
        let mut contents = Vec::new();
        let mut unreadable: HashMap<u64, u64> = HashMap::new();
        let witnesses: HashMap<u64, WitnessContents> =
            numbers.iter().map(|&number| (number, witness::load(self.disk, number))).collect();
        for &number in numbers {
            let path = wal::path(number);
            let mut bytes = match read(self.disk, &path)? {
                Ok(bytes) => bytes,
                Err(error) => match disk::read_around(self.disk, &path) {
                    Ok((bytes, holes)) => {
                        let lost = holes.iter().map(|hole| hole.len() as u64).sum();
                        self.report(
                            &path,
                            format!("{lost} of its {} bytes cannot be read ({error})", bytes.len()),
                        );
                        unreadable.insert(number, lost);
                        bytes
                    }
                    Err(_) => {
                        self.set_aside(&path, &format!("the log cannot be read ({error})"))?;
                        continue;
                    }
                },
            };
            self.repair_log(number, &mut bytes)?;
            let first_seq = wal::read(&bytes, number).map(|c| c.first_seq).ok();
            contents.push((number, bytes, first_seq));
        }
        let mut replayed = Vec::new();
        for (index, (number, bytes, first_seq)) in contents.iter().enumerate() {
            // A log that was abandoned after a failed sync may hold frames nobody was told about;
            // the next log says where it took over.
            let follower = contents[index + 1..]
                .iter()
                .find_map(|(other, _, first)| Some((*other, first.filter(|&first| first > 0)?)));
            let next = follower.map(|(_, first)| first);
            let witness = &witnesses[number];
            let mut log = self.replay(*number, bytes, next.unwrap_or(u64::MAX), witness)?;
            if let Some(lost) = unreadable.get(number) {
                // Bytes written behind a hole, or over it, may not come back. The transaction numbers in
                // the hole stay taken: the card may give its bytes back another day.
                if let Some(log) = &mut log {
                    log.unsealed.is_sound = false;
                    log.unsealed.end = bytes.len() as u64;
                }
                if next.is_none() {
                    self.last_seq += lost / wal::FRAME_HEADER as u64 + 1;
                }
            }
            replayed.extend(log);
            // It also says that all before it had been durable, so no torn end explains a gap.
            if let (Some(own), Some(next)) = (*first_seq, next)
                && next > own
                && self.last_seq + 1 < next
            {
                let (from, to) = (self.last_seq + 1, next - 1);
                self.last_seq = to;
                // Its own end, unless another log lacks in between: it is sealed alone, and kept.
                let is_own = follower.is_some_and(|(other, _)| other == number + 1);
                self.report(
                    &wal::path(if is_own { *number } else { number + 1 }),
                    format!("transactions {from} to {to} were acknowledged and are lost"),
                );
                if let Some(log) = replayed.last_mut()
                    && log.unsealed.log == *number
                    && is_own
                {
                    log.unsealed.is_sound = false;
                }
            }
        }
        if numbers.last() != contents.last().map(|(number, ..)| number) {
            self.last_seq += RESERVED;
        }
        for (number, witness) in witnesses {
            let is_sound = |log: &ReplayedLog| log.unsealed.log == number && log.unsealed.is_sound;
            if !replayed.iter().any(is_sound) && !self.needless_logs.contains(&number) {
                self.last_seq = self.last_seq.max(witness.last_seq);
                self.note_lossy_log(number)?;
                self.facts.extend(witness.facts);
            }
        }
        Ok(replayed)
    }

    /// Notes that acknowledged versions are lost with a log, under the name that it has by now.
    fn note_lossy_log(&mut self, number: u64) -> io::Result<()> {
        let path = wal::path(number);
        let is_there =
            self.disk.list(wal::DIR)?.iter().any(|name| path == format!("{}/{name}", wal::DIR));
        self.lossy.insert(if is_there { path } else { format!("{path}.damaged") });
        Ok(())
    }

    /// The file that is missing before log `number`: a segment that left its signature behind, or else the log before.
    fn missing_before(&self, number: u64) -> io::Result<String> {
        let names = self.disk.list(segment::DIR)?;
        let is_there =
            |path: &String| names.iter().any(|name| *path == format!("{}/{name}", segment::DIR));
        let signed = names.iter().filter_map(|name| name.strip_suffix(".sig"));
        let signed = signed.filter_map(|stem| segment::number_of(&format!("{stem}.omirb")));
        let missing = signed.map(segment::path).filter(|path| !is_there(path)).max();
        Ok(missing.unwrap_or_else(|| wal::path(number.saturating_sub(1))))
    }

    fn replay(
        &mut self,
        number: u64,
        bytes: &[u8],
        limit: u64,
        witness: &WitnessContents,
    ) -> io::Result<Option<ReplayedLog>> {
        let path = wal::path(number);
        // Bytes that the witness calls durable and that are not there have rotted: no torn write explains it.
        let durable = usize::try_from(witness.end).unwrap_or(usize::MAX);
        let Ok(contents) = wal::read_known(bytes, number, durable) else {
            if bytes.len() <= wal::FILE_HEADER && durable <= wal::FILE_HEADER {
                // Torn while it was made; nothing was ever acknowledged from it.
                self.needless_logs.push(number);
                borne(witness::remove(self.disk, number).and_then(|()| self.disk.remove(&path)))?;
            } else {
                self.set_aside(&path, "the log's header and frames are unreadable")?;
            }
            return Ok(None);
        };
        let mut log = ReplayedLog {
            unsealed: Unsealed {
                log: number,
                end: contents.end as u64,
                durable: 0,
                first: 0,
                began: Timestamp::from_micros(0),
                is_sound: contents.damage.is_empty(),
            },
            has_frames: false,
            has_changes: false,
        };
        if contents.first_seq > self.last_seq + 1 {
            // The log remembers that there was more before it: a file is gone. Its numbers are not
            // given out again, or a copy that turns up later would contradict what is here.
            let (from, to) = (self.last_seq + 1, contents.first_seq - 1);
            let missing = self.missing_before(number)?;
            self.report(
                &missing,
                format!("is missing: transactions {from} to {to} came before {path} and are lost"),
            );
            self.last_seq = to;
        }
        for lost in &contents.damage {
            self.names.extend(salvage::keys_in(&bytes[lost.at..lost.at + lost.len]));
            self.report(
                &path,
                format!("{} bytes from byte {} were acknowledged and are lost", lost.len, lost.at),
            );
        }
        if let Some(cut) = durable.checked_sub(bytes.len()).filter(|&cut| cut > 0) {
            self.report(&path, format!("{cut} bytes at its end were acknowledged and are lost"));
            log.unsealed.is_sound = false;
        }
        self.catalog.files_mut().add_log(FileId::log(number), self.disk.open(&path, Mode::Read)?);
        let mut facts = Vec::new();
        let covered = self.last_seq;
        let mut is_marked = false;
        let mut end = wal::FILE_HEADER as u64;
        let is_wanted = |seq: u64| covered < seq && seq < limit;
        let _ = ahead::in_order(
            &batches(&contents.frames),
            self.threads,
            |frames| {
                frames.iter().map(|frame| decode::<I>(number, frame, is_wanted)).collect::<Vec<_>>()
            },
            |_, steps| {
                for step in steps {
                    let step = match step {
                        Ok(step) => step,
                        Err(fault) => {
                            self.report(&path, format!("a transaction is unreadable ({fault})"));
                            log.unsealed.is_sound = false;
                            continue;
                        }
                    };
                    if step.seq >= limit {
                        return Err(());
                    }
                    end = step.end;
                    if step.seq <= covered {
                        continue;
                    }
                    if !log.has_frames {
                        log.unsealed.first = step.seq;
                        log.unsealed.began = step.at;
                    }
                    log.has_frames = true;
                    // Stamps may be of a time that a clock was ahead of; marks say what was certain.
                    if let (false, Some(certain)) = (is_marked, step.certain()) {
                        is_marked = true;
                        log.unsealed.began = log.unsealed.began.min(certain);
                    }
                    log.has_changes |= self.apply(&path, step, &mut facts);
                }
                Ok(())
            },
        );
        if log.unsealed.is_sound {
            log.unsealed.end = end.min(contents.end as u64);
        }
        if contents.frames.is_empty() && contents.end == wal::FILE_HEADER {
            log.unsealed.end = wal::FILE_HEADER as u64;
        }
        if log.unsealed.is_sound {
            log.unsealed.durable = log.unsealed.end;
        }
        if !log.has_frames {
            log.unsealed.first = self.last_seq + 1;
            if end > wal::FILE_HEADER as u64 {
                // Everything in it is sealed: the cut came before the log was dropped.
                self.catalog.files_mut().drop_file(FileId::log(number));
                self.needless_logs.push(number);
                borne(
                    (self.disk.remove(&path))
                        .and_then(|()| witness::remove(self.disk, number))
                        .and_then(|()| self.disk.sync_dir(wal::DIR)),
                )?;
                return Ok(None);
            }
        }
        if log.unsealed.is_sound && (!witness.is_whole || !says(&witness.facts, &facts)) {
            // A power cut took what was not synced, an older release wrote none, or it has rotted.
            borne(witness::replace(self.disk, number, &facts))?;
        }
        Ok(Some(log))
    }

    /// Turns back single bits of a log that have rotted, on the card as well.
    fn repair_log(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()> {
        let path = wal::path(number);
        let mended = wal::mend(bytes, number);
        let Some(first) = mended.first() else { return Ok(()) };
        let written = wal::write_mended(self.disk, number, &mended);
        let count = mended.len();
        tracing::warn!(file = path, bits = count, first = first.at, "rotten bits were turned back");
        self.repaired += count as u64;
        // On a disk that cannot be written to, what lies there is read as it is, and fails its checksum.
        borne(written).map(|_| ())
    }

    /// Applies a transaction; returns whether it held a version or a tombstone.
    fn apply(&mut self, path: &str, step: Step<I>, facts: &mut Vec<Fact>) -> bool {
        let recorded = step.at.as_micros();
        let mut has_changes = false;
        for (ordinal, effect) in step.effects.into_iter().enumerate() {
            let stamp = |version| Stamp {
                seq: step.seq,
                ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                version,
                recorded,
            };
            match effect {
                Effect::Put { version, location, drawn } => {
                    has_changes = true;
                    match drawn {
                        // Words of superseded versions are dropped by `finish_loading`.
                        Ok(drawn) => {
                            let (drawn, terms) = *drawn;
                            facts.extend(Fact::version(&I::key(&drawn), stamp(version)));
                            self.catalog.load(&drawn, &terms, stamp(version), location);
                        }
                        Err(fault) => {
                            self.report(path, format!("byte {}: {fault}", location.offset));
                        }
                    }
                }
                Effect::Forget { target, version, by } => {
                    has_changes = true;
                    let key = RefKey::of(&target);
                    facts.push(Fact::tombstone(&key, stamp(version), by));
                    self.catalog.load_tombstone(&key, stamp(version), by);
                }
                Effect::Touch(touch) => self.catalog.replay_touch(&touch),
                Effect::Boot(count) => self.boots = self.boots.max(count),
                Effect::Mark(mark) => {
                    self.stamps.note(recorded, mark.certain);
                    self.mark.follow(&mark);
                }
            }
        }
        self.last_seq = step.seq;
        self.latest = self.latest.max(recorded);
        has_changes
    }
}

/// Returns true if a witness says all of what a log says. It may also tell of what was sealed before.
fn says(told: &[Fact], facts: &[Fact]) -> bool {
    told.ends_with(facts)
}

/// The frames in runs of about [`BATCH`] bytes.
fn batches<'f, 'b>(frames: &'f [wal::Frame<'b>]) -> Vec<&'f [wal::Frame<'b>]> {
    let (mut batches, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, frame) in frames.iter().enumerate() {
        bytes += frame.payload.len();
        if bytes >= BATCH || at + 1 == frames.len() {
            batches.push(&frames[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    batches
}

/// Reads a frame of log `number`, and draws what the index needs of it, if it is a wanted one.
fn decode<D: IndexExtractor>(
    number: u64,
    frame: &wal::Frame<'_>,
    is_wanted: impl Fn(u64) -> bool,
) -> Result<Step<D>, Unreadable> {
    let (transaction, places) = Transaction::decode(frame.payload)?;
    let Transaction { seq, at, ref ops } = transaction;
    let ops = ops.iter().zip(places).filter(|_| is_wanted(seq));
    let effects = ops.map(|(op, place)| match op {
        Op::Put { version, resource } => {
            let offset = frame.at + place.unwrap_or(0);
            let location = Location {
                file: FileId::log(number),
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                len: u32::try_from(resource.len()).unwrap_or(u32::MAX),
                crc: crc32fast::hash(resource),
            };
            let drawn = segment::decode_resource(resource)
                .map(|resource| Box::new((D::facts(&resource), D::terms(&resource))));
            Effect::Put { version: *version, location, drawn }
        }
        Op::Forget { target, version, who } => {
            let by = transaction.by(*who);
            Effect::Forget { target: target.clone(), version: *version, by }
        }
        Op::Touch(touch) => Effect::Touch(touch.clone()),
        Op::Boot { count } => Effect::Boot(*count),
        Op::Mark(mark) => Effect::Mark(mark.clone()),
    });
    let end = (frame.at + frame.payload.len()) as u64;
    Ok(Step { end, seq, at, effects: effects.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_every_frame_once_and_in_order() {
        let payload = vec![0; BATCH];
        for lengths in [&[][..], &[1], &[BATCH], &[BATCH / 2, BATCH / 2, 3, BATCH, 0], &[0, 0]] {
            let frames: Vec<_> = lengths
                .iter()
                .enumerate()
                .map(|(at, len)| wal::Frame { at, payload: &payload[..*len] })
                .collect();
            let batches = batches(&frames);
            assert!(batches.iter().all(|batch| !batch.is_empty()));
            assert_eq!(batches.concat(), frames);
        }
    }
}
