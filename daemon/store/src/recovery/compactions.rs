//! Which segments there are: where each begins and what it replaces. A compaction that was cut short
//! is finished or undone here, so that after it either the new segment is there or the old ones.

use std::collections::BTreeMap;
use std::io;

use parking_lot::RwLock;

use super::{Recovery, ahead, borne, is_vouched_for, read_seal, read_segment};
use crate::disk::{Disk, Mode};
use crate::index::Index;
use crate::kept_index::cache::Cache;
use crate::segment::manifest::Manifest;
use crate::signing::signature::Seal;
use crate::{digest, segment};

/// The first transaction of a segment and the segments it replaces.
type Extent = (u64, Vec<u64>);

/// A segment as far as it is known before its memories are read.
pub(super) struct Listed {
    /// Its signature, if that can be read. It matters only if the segment itself is in doubt.
    pub seal: Option<Seal>,
    /// Its first transaction.
    pub first_seq: u64,
    /// True if it is as long as what was signed.
    pub is_as_signed: bool,
    /// The segments it replaces.
    replaces: Vec<u64>,
}

impl<I: Index> Recovery<'_, I> {
    /// Which segments there are, by number.
    pub(super) fn list_segments(
        &mut self,
        cache: &RwLock<&mut Cache>,
    ) -> io::Result<BTreeMap<u64, Listed>> {
        let names = self.disk.list(segment::DIR)?;
        let mut numbers: Vec<u64> =
            names.iter().filter_map(|name| segment::number_of(name)).collect();
        numbers.sort_unstable();
        let mut listed: BTreeMap<u64, Listed> = BTreeMap::new();
        let mut last_seq = 0;
        let disk = self.disk;
        let look = |number: &u64| {
            let seal = read_seal(disk, *number)?;
            let (extent, is_repaired) = extent(disk, cache, *number, seal.as_ref())?;
            let len = disk.open(&segment::path(*number), Mode::Read).and_then(|file| file.len());
            let is_as_signed = seal.as_ref().map(|seal| seal.contents.bytes) == len.ok();
            Ok((seal, extent, is_as_signed, is_repaired))
        };
        ahead::in_order(&numbers, self.threads, look, |number, looked: io::Result<_>| {
            let (seal, extent, is_as_signed, is_repaired) = looked?;
            self.repaired += u64::from(is_repaired);
            // A segment that cannot be read is reported when its turn comes, in the place of its number.
            let (first_seq, replaces) = extent.unwrap_or((last_seq, Vec::new()));
            last_seq = first_seq;
            listed.insert(*number, Listed { seal, first_seq, is_as_signed, replaces });
            Ok::<_, io::Error>(())
        })?;
        // The newest first: what it replaces may have replaced others.
        let compacted: Vec<u64> = listed
            .iter()
            .rev()
            .filter(|(_, segment)| !segment.replaces.is_empty())
            .map(|(number, _)| *number)
            .collect();
        for number in compacted {
            self.finish_compaction(number, &mut listed, &names)?;
        }
        Ok(listed)
    }

    /// Finishes or undoes a compaction that a cut left beside what it replaces: the new segment counts
    /// if it is whole.
    fn finish_compaction(
        &mut self,
        number: u64,
        listed: &mut BTreeMap<u64, Listed>,
        names: &[String],
    ) -> io::Result<()> {
        let Some(segment) = listed.get(&number) else { return Ok(()) };
        let replaced = segment.replaces.clone();
        let is_listed = |path: &String| {
            path.rsplit('/').next().is_some_and(|name| names.iter().any(|known| known == name))
        };
        let files = |number: &u64| {
            [segment::path, segment::signature_path, segment::sidecar_path].map(|of| of(*number))
        };
        if !replaced.iter().flat_map(files).any(|path| is_listed(&path)) {
            return Ok(());
        }
        let path = segment::path(number);
        let seal = read_seal(self.disk, number)?;
        let read = read_segment(self.disk, number, seal.as_ref())?;
        let digest = read.map(|(bytes, _)| digest::digest(&bytes)).ok();
        let present: Vec<u64> =
            replaced.iter().copied().filter(|old| listed.contains_key(old)).collect();
        let is_signed = seal
            .as_ref()
            .is_some_and(|seal| seal.last.is_some() && Some(seal.contents.sha256) == digest);
        // If the first of the others is gone, the new one was signed, and its signature has rotted since.
        let is_begun = present.len() < replaced.len();
        let is_vouched = || {
            seal.is_none()
                && digest.is_some_and(|digest| is_vouched_for(self.disk, number, &digest))
        };
        let is_whole = is_signed || (is_begun && is_vouched());
        if is_whole || present.is_empty() {
            for old in &replaced {
                for path in files(old).into_iter().filter(is_listed) {
                    if !borne(self.disk.remove(&path))? && !self.leftovers.contains(old) {
                        self.leftovers.push(*old);
                    }
                }
            }
            present.iter().for_each(|old| drop(listed.remove(old)));
        } else if present.len() == replaced.len() {
            if !borne(self.disk.remove(&path))? {
                self.left_lying.push(number);
            }
            listed.remove(&number);
        } else {
            // It was whole when the first of them went, and it was damaged since.
            for old in present {
                let message = "a compacted segment took its place, which is damaged now";
                self.set_aside(&segment::path(old), message)?;
                listed.remove(&old);
            }
        }
        borne(self.disk.sync_dir(segment::DIR)).map(drop)
    }
}

/// The first transaction of a segment and the segments it replaces, from the kept index or else from
/// the segment; `None` if it is lost or damaged. Also tells whether it was repaired.
fn extent(
    disk: &dyn Disk,
    cache: &RwLock<&mut Cache>,
    number: u64,
    seal: Option<&Seal>,
) -> io::Result<(Option<Extent>, bool)> {
    let kept = seal.and_then(|seal| cache.read().outline(number, &seal.contents.sha256));
    if let Some(outline) = kept {
        return Ok((Some((outline.first_seq, outline.replaces)), false));
    }
    let Ok((bytes, is_repaired)) = read_segment(disk, number, seal)? else {
        return Ok((None, false));
    };
    let extent = segment::layout_of_whole(&bytes).ok().map(|(layout, _)| {
        let Manifest { first_seq, replaces, .. } = layout.manifest;
        (first_seq, replaces)
    });
    Ok((extent, is_repaired))
}
