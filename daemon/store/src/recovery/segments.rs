//! The sealed segments: each one's index block from sled, or rebuilt from the segment, and all of
//! them into the catalog, in the order of their first transactions.
//!
//! Blocks are read and made ahead on several threads, and their words go into the catalog on another;
//! what is decided, reported and written is decided here, one segment after the other.

use std::io;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use parking_lot::RwLock;

use super::compactions::Listed;
use super::{Recovery, StartProgress, ahead, borne, is_vouched_for, read_segment, unread};
use crate::digest::{self, Digest};
use crate::disk::{Disk, Mode};
use crate::files::SeqRange;
use crate::index::Index;
use crate::kept_index::block::IndexKind;
use crate::kept_index::block_codec::BlockParts;
use crate::kept_index::cache::Cache;
use crate::kept_index::index_extractor::{BlockOf, IndexExtractor};
use crate::log::witness::{Fact, FactKind};
use crate::recorded::version::{DocId, FileId};
use crate::rot::segment_repair;
use crate::segment;
use crate::segment::locate::BadSegment;
use crate::segment::{LostName, WithLosses};
use crate::signing::signature::Seal;
use crate::upkeep::sealer::SealedSegment;

/// The state of a segment as it was found.
enum Examined<D: IndexExtractor> {
    /// Its block was kept.
    Kept(BlockOf<D>),
    /// Its block was rebuilt from so many bytes, for the kinds that were missing; with what is damaged of the memories.
    Made {
        len: u64,
        missing: Vec<IndexKind>,
        authenticity: Authenticity,
        made: Result<WithLosses<D>, BadSegment>,
    },
    /// The card lost it.
    Lost(io::Error),
}

/// The evidence that a segment is what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authenticity {
    /// It is what was signed.
    Signed,
    /// Its signature is lost, or was never there because a cut came before; its sidecar vouches for it.
    Vouched,
    /// Nothing says so.
    Unknown,
}

/// The words of a block on their way: number of the segment, row of the first document.
type Words<D> = (u64, DocId, <D as IndexExtractor>::Words);

/// All segments that are used.
pub(super) struct Loaded {
    /// Number of the next segment.
    pub next: u64,
    /// Link of the last one.
    pub previous: Digest,
    /// The segments, by first transaction.
    pub pieces: Vec<SealedSegment>,
}

impl<I: Index> Recovery<'_, I> {
    /// Loads all segments, by their first transaction.
    pub(super) fn load_segments(
        &mut self,
        cache: &mut Cache,
        logs: &[u64],
        progress: &mut dyn FnMut(StartProgress),
    ) -> io::Result<Loaded> {
        let cache = RwLock::new(cache);
        let mut segments: Vec<(u64, Listed)> = self.list_segments(&cache)?.into_iter().collect();
        // Of two that begin alike, the one that was signed so comes first and is used.
        segments.sort_by_key(|(number, listed)| (listed.first_seq, !listed.is_as_signed, *number));
        let mut lexicon = self.catalog.take_lexicon();
        let (previous, pieces) = thread::scope(|scope| {
            let (words, blocks) = mpsc::sync_channel::<Words<I>>(0);
            let adding = scope.spawn(move || {
                for (number, base, block) in blocks {
                    I::load_words(&mut lexicon, base, &block).map_err(|error| (number, error))?;
                }
                Ok(lexicon)
            });
            // With it the channel ends.
            let loaded = self.load_in_order(&segments, &cache, logs, words, progress);
            match adding.join() {
                Ok(Ok(lexicon)) => self.catalog.put_lexicon(lexicon),
                // The block passed its checksum, so this is our own bug; the segment still decides.
                Ok(Err((number, error))) => {
                    return Err(io::Error::other(format!("{}: {error}", segment::path(number))));
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
            loaded
        })?;
        let cache = cache.into_inner();
        cache.retain(|number| pieces.iter().any(|piece| piece.number == number));
        // Listed again: what was set aside keeps its number, what was half sealed gives it back.
        let names = self.disk.list(segment::DIR)?;
        let highest = names
            .iter()
            .filter_map(|name| segment::number_of(name.strip_suffix(".damaged").unwrap_or(name)))
            .filter(|number| !self.left_lying.contains(number))
            .max();
        Ok(Loaded { next: highest.map_or(1, |number| number + 1), previous, pieces })
    }

    fn load_in_order(
        &mut self,
        segments: &[(u64, Listed)],
        cache: &RwLock<&mut Cache>,
        logs: &[u64],
        words: SyncSender<Words<I>>,
        progress: &mut dyn FnMut(StartProgress),
    ) -> io::Result<(Digest, Vec<SealedSegment>)> {
        let total = segments.len() as u64;
        let mut done = 0;
        let mut previous = Digest::default();
        let mut pieces: Vec<SealedSegment> = Vec::new();
        let disk = self.disk;
        let look = |(number, listed): &(u64, Listed)| {
            examine::<I>(disk, cache, *number, listed.seal.as_ref(), logs)
        };
        ahead::in_order(segments, self.threads, look, |(number, listed), examined| {
            let (number, seal) = (*number, listed.seal.as_ref());
            let path = segment::path(number);
            done += 1;
            let before = self.rebuilt;
            let Some(block) = self.accept(number, seal, examined?, cache, logs)? else {
                return Ok(());
            };
            if self.rebuilt > before {
                progress(StartProgress::Rebuilding { done, total });
            }
            if block.first_seq <= self.last_seq {
                // Left where it is, another start could use it in place of the others.
                self.set_aside(&path, "its transactions are in other segments as well")?;
                return Ok(());
            }
            if seal.is_some_and(|seal| seal.previous != previous) {
                tracing::warn!(
                    segment = number,
                    "not signed as the successor of the one before it"
                );
            }
            if seal.is_none() {
                self.unsigned.push(number);
            }
            previous = seal.map_or(block.digest, Seal::link);
            let base = self.catalog.load_rows(&block, FileId::segment(number));
            let file = self.disk.open(&path, Mode::Read)?;
            pieces.push(SealedSegment {
                number,
                bytes: file.len()?,
                first_seq: block.first_seq,
                last_seq: block.last_seq,
                last_recorded: block.last_recorded,
                is_compacted: !block.replaces.is_empty(),
                is_sound: true,
            });
            let span = SeqRange { first_seq: block.first_seq, last_seq: block.last_seq };
            self.catalog.files_mut().add_segment(FileId::segment(number), file, span);
            self.last_seq = self.last_seq.max(block.last_seq);
            self.last_log = self.last_log.max(block.log);
            self.boots = self.boots.max(block.boots);
            if let Some(mark) = &block.mark {
                self.stamps.note(block.last_recorded, mark.certain);
                self.mark.follow(mark);
            }
            self.latest = self.latest.max(block.last_recorded);
            // If nobody takes it any more, the thread tells why when it is joined.
            words.send((number, base, block.text)).map_err(io::Error::other)
        })?;
        Ok((previous, pieces))
    }

    /// The block of a segment, or `None` if the segment is not to be used.
    fn accept(
        &mut self,
        number: u64,
        seal: Option<&Seal>,
        examined: Examined<I>,
        cache: &RwLock<&mut Cache>,
        logs: &[u64],
    ) -> io::Result<Option<BlockOf<I>>> {
        let path = segment::path(number);
        let (len, missing, authenticity, made) = match examined {
            Examined::Kept(block) => return Ok(Some(block)),
            Examined::Made { len, missing, authenticity, made } => {
                (len, missing, authenticity, made)
            }
            Examined::Lost(error) => {
                self.set_aside(&path, &format!("the segment cannot be read ({error})"))?;
                return Ok(None);
            }
        };
        match made {
            // A log it stands for could not be dropped when it was sealed; sealing it again would
            // bring back what a compaction dropped.
            Ok((block, lost, names))
                if authenticity == Authenticity::Signed
                    || !logs.contains(&block.log)
                    || !block.replaces.is_empty() =>
            {
                if let Some(first) = lost.first() {
                    // Its second copy knows those that are no first versions. Where that is lost as well, the damaged bytes tell.
                    let facts = segment_repair::facts_of(self.disk, number);
                    let has_facts = facts.is_some();
                    self.facts.extend(facts.unwrap_or_default());
                    for LostName { key, stamp } in names {
                        match stamp.filter(|stamp| stamp.version > 1 && !has_facts) {
                            Some(stamp) => {
                                self.facts.push(Fact { key, stamp, kind: FactKind::Version });
                            }
                            None => {
                                self.names.insert(key);
                            }
                        }
                    }
                    self.lossy.insert(path.clone());
                    let count = lost.len();
                    let message = format!("damaged memories: {count}, the first at {first}");
                    self.report(&path, message + "; the others are served");
                } else if authenticity == Authenticity::Unknown {
                    let message = if seal.is_some() {
                        "its bytes are not the ones that were signed; it is readable and served"
                    } else {
                        "neither its signature nor its sidecar is readable; it is served as it is"
                    };
                    self.report(&path, message.to_owned());
                }
                let mut cache = cache.write();
                cache.put::<I>(number, len, &block, &missing);
                self.rebuilt += u64::from(cache.is_for(len));
                Ok(Some(block))
            }
            Ok(_) => {
                // Sealing was cut short. The log is still there and will be sealed again.
                if !borne(self.disk.remove(&path))? {
                    self.left_lying.push(number);
                }
                Ok(None)
            }
            Err(fault) => {
                self.set_aside(&path, &format!("the segment is unreadable ({fault})"))?;
                Ok(None)
            }
        }
    }
}

/// Finds the block of a segment, or makes it. Changes nothing: it runs ahead of what is decided.
fn examine<D: IndexExtractor>(
    disk: &dyn Disk,
    cache: &RwLock<&mut Cache>,
    number: u64,
    seal: Option<&Seal>,
    logs: &[u64],
) -> io::Result<Examined<D>> {
    let path = segment::path(number);
    let open = disk.open(&path, Mode::Read);
    let len = open.and_then(|file| file.len()).map_err(|error| unread(&path, &error))?;
    let is_kept = |block: &BlockOf<D>| !logs.contains(&block.log) || !block.replaces.is_empty();
    let kept = seal
        .filter(|seal| seal.contents.bytes == len)
        .map(|seal| cache.read().get::<D>(number, &seal.contents.sha256));
    let kept = match kept.unwrap_or_else(BlockParts::none).into_block() {
        Ok(block) if is_kept(&block) => return Ok(Examined::Kept(block)),
        Ok(_) => BlockParts::none(),
        Err(parts) => *parts,
    };
    let bytes = match read_segment(disk, number, seal)? {
        Ok((bytes, _)) => bytes,
        Err(error) => return Ok(Examined::Lost(error)),
    };
    let missing = kept.missing();
    // The kept index was made of the bytes that were signed.
    let is_signed = || seal.is_some_and(|seal| digest::digest(&bytes) == seal.contents.sha256);
    let words = kept.into_words().filter(|_| is_signed());
    let made = segment::index_with_losses::<D>(&bytes, words);
    let digest = made.as_ref().ok().map(|(block, ..)| block.digest);
    let authenticity = match (seal, digest) {
        (Some(seal), Some(digest)) if seal.contents.sha256 == digest => Authenticity::Signed,
        (None, Some(digest)) if is_vouched_for(disk, number, &digest) => Authenticity::Vouched,
        _ => Authenticity::Unknown,
    };
    Ok(Examined::Made { len, missing, authenticity, made })
}
