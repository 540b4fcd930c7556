//! The files of vectors: read at a start, written block by block, and rid of what was forgotten.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Embedding, LOOKED_AT};
use crate::disk::{self, DiskFile, Mode};
use crate::index::doc::DocId;
use crate::index::vectors::file::{self, stable_id};
use crate::index::vectors::{BLOCK_ROWS, MAX_SPACES, VectorSpace};

/// The folder of the files.
pub(super) const DIR: &str = "vectors";
/// The ending of their names.
const ENDING: &str = ".omirv";
/// Rows of a file: what was forgotten is taken out by writing one file again.
const FILE_ROWS: usize = 64 * BLOCK_ROWS;
/// Pause after a disk refused.
const RETRY: Duration = Duration::from_secs(60);

/// The files of one space.
#[derive(Default)]
pub(super) struct SpaceFiles {
    /// Rows of the space that are in files.
    pub(super) saved: usize,
    /// The files' numbers.
    pub(super) numbers: Vec<u64>,
    /// The file that grows.
    tail: Option<Tail>,
}

struct Tail {
    file: Arc<dyn DiskFile>,
    end: u64,
    rows: usize,
}

pub(super) fn path(number: u64) -> String {
    format!("{DIR}/{number:010}{ENDING}")
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(ENDING)?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

impl Embedding {
    /// Reads the files of the last run. Vectors that cannot be read, or are of versions that are not there, are made
    /// again.
    pub(super) fn load(&mut self) {
        let Ok(names) = self.disk.list(DIR) else { return };
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        self.next_file = numbers.last().map_or(1, |last| last + 1);
        for name in names.iter().filter(|name| number_of(name).is_none()) {
            // A cut left it of a file that was being written.
            self.remove(&format!("{DIR}/{name}"));
        }
        if numbers.is_empty() {
            return;
        }
        let versions = self.versions();
        let mut loaded: Vec<(VectorSpace, SpaceFiles, HashSet<DocId>)> = Vec::new();
        let mut last = HashMap::new();
        for number in numbers {
            if self.is_stopping() {
                break;
            }
            let Ok(bytes) = disk::read(&*self.disk, &path(number)) else {
                self.damaged(number, "it cannot be read");
                continue;
            };
            let Some(contents) = file::read(&bytes) else {
                self.damaged(number, "its header is damaged");
                continue;
            };
            let of = |(space, ..): &(VectorSpace, SpaceFiles, HashSet<DocId>)| {
                *space.model() == contents.model && space.is_given() == contents.is_given
            };
            let at = match loaded.iter().position(of) {
                Some(at) => at,
                None if loaded.len() < MAX_SPACES => {
                    let space = VectorSpace::new(contents.model.clone(), contents.is_given);
                    loaded.push((space, SpaceFiles::default(), HashSet::new()));
                    loaded.len() - 1
                }
                None => {
                    self.remove(&path(number));
                    continue;
                }
            };
            let Some((space, files, docs)) = loaded.get_mut(at) else { continue };
            for (id, vector) in &contents.rows {
                if let Some(doc) = versions.get(id)
                    && docs.insert(*doc)
                {
                    space.push(*doc, vector);
                }
            }
            if contents.whole < bytes.len() {
                let message = "the end of a file of vectors is damaged or cut; they are made again";
                tracing::warn!(file = path(number), message);
                self.shared.vectors.damaged.fetch_add(1, Ordering::Relaxed);
            }
            // Vectors of memories that were forgotten and dropped right before a stop or a cut are still in it.
            let kept = without(&contents, |id| !versions.contains_key(&id));
            let kept = kept.as_deref().unwrap_or(&bytes[..contents.whole]);
            if kept.len() < bytes.len() && self.replace(number, kept).is_err() {
                self.remove(&path(number));
                continue;
            }
            if kept.is_empty() {
                continue;
            }
            files.numbers.push(number);
            last.insert(at, (number, kept.len() as u64, contents.rows.len()));
        }
        for (at, (space, mut files, _)) in loaded.into_iter().enumerate() {
            files.saved = space.rows();
            // The last one grows on, or each start would begin another.
            if let Some((number, end, rows)) = last.get(&at).copied()
                && !self.shared.settings().read_only
                && let Ok(file) = self.disk.open(&path(number), Mode::Write)
            {
                files.tail = Some(Tail { file, end, rows });
            }
            self.files.push(files);
            self.shared.vectors.spaces_mut().push(space);
        }
        // Vectors that were read are not made again.
        self.look_again();
        self.count_bytes();
    }

    /// The versions there are, by the numbers that files name them by.
    fn versions(&self) -> HashMap<u64, DocId> {
        let mut versions = HashMap::new();
        let mut first = 0;
        loop {
            let catalog = self.catalog();
            let docs = catalog.docs();
            let part = docs.iter().enumerate().skip(first).take(LOOKED_AT);
            let before = first;
            for (id, doc) in part {
                first = id + 1;
                if !doc.dropped && !doc.is_staged() {
                    versions.insert(stable_id(doc), id as DocId);
                }
            }
            if first == before {
                return versions;
            }
        }
    }

    /// Writes full blocks, or all rows that are in no file yet.
    pub(super) fn save(&mut self, all: bool) {
        if self.shared.settings().read_only || self.wait_until.is_some_and(|at| Instant::now() < at)
        {
            return;
        }
        for at in 0..self.files.len() {
            loop {
                let saved = self.files.get(at).map_or(0, |files| files.saved);
                let rows = self.shared.vectors.spaces().get(at).map_or(0, VectorSpace::rows);
                let count = rows.saturating_sub(saved).min(BLOCK_ROWS);
                if count == 0 || (count < BLOCK_ROWS && !all) {
                    break;
                }
                if let Err(error) = self.save_block(at, saved, count) {
                    tracing::warn!(%error, "vectors cannot be kept for the next start, which makes them again");
                    self.wait_until = Some(Instant::now() + RETRY);
                    if let Some(files) = self.files.get_mut(at) {
                        files.tail = None;
                    }
                    return;
                }
            }
            if all && let Some(tail) = self.files.get(at).and_then(|files| files.tail.as_ref()) {
                let _ = tail.file.sync();
            }
        }
        self.count_bytes();
    }

    /// Appends a block of so many rows of a space to its files.
    fn save_block(&mut self, at: usize, first: usize, count: usize) -> io::Result<()> {
        if self.shared.is_full() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let (bytes, header) = {
            let catalog = self.catalog();
            let spaces = self.shared.vectors.spaces();
            let Some(space) = spaces.get(at) else { return Ok(()) };
            let rows = space.rows_from(first).take(count);
            let rows =
                rows.map(|(doc, scale, values)| (stable_id(catalog.doc(doc)), scale, values));
            (file::block(rows), file::header(space.model(), space.is_given()))
        };
        let Some(files) = self.files.get_mut(at) else { return Ok(()) };
        if files.tail.as_ref().is_some_and(|tail| tail.rows + count > FILE_ROWS) {
            files.tail = None;
        }
        if files.tail.is_none() {
            self.disk.create_dir(DIR)?;
            let number = self.next_file;
            self.next_file += 1;
            let file = self.disk.open(&path(number), Mode::Create)?;
            files.numbers.push(number);
            file.write_at(&header, 0)?;
            self.disk.sync_dir(DIR)?;
            files.tail = Some(Tail { file, end: header.len() as u64, rows: 0 });
        }
        let Some(tail) = &mut files.tail else { return Ok(()) };
        tail.file.write_at(&bytes, tail.end)?;
        tail.end += bytes.len() as u64;
        tail.rows += count;
        files.saved = first + count;
        Ok(())
    }

    /// Takes out the rows of versions that compaction dropped, in memory and in files: nothing tells of what was
    /// forgotten once its segment does not.
    pub(super) fn purge(&mut self) {
        let dropped = {
            let catalog = self.catalog();
            (catalog.docs().len() as u64).saturating_sub(catalog.version_count())
        };
        if dropped == self.purged || self.shared.settings().read_only {
            return;
        }
        for at in 0..self.files.len() {
            let (gone, docs) = self.gone_from(at);
            if gone.is_empty() {
                continue;
            }
            self.save(true);
            if let Err(error) = self.purge_files(at, &gone) {
                tracing::warn!(%error, "vectors of what was dropped cannot be taken out of their files; it is tried again");
                return;
            }
            // Recalls go on with the rows as they were until the others are there.
            let kept = self.shared.vectors.spaces().get(at).map(|space| {
                let kept = space.keeping(|doc| !docs.contains(&doc));
                (space.rows() - kept.rows(), kept)
            });
            if let (Some((lost, kept)), Some(files)) = (kept, self.files.get_mut(at)) {
                files.saved = files.saved.saturating_sub(lost);
                if let Some(space) = self.shared.vectors.spaces_mut().get_mut(at) {
                    *space = kept;
                }
            }
        }
        self.purged = dropped;
        self.count_bytes();
    }

    /// The rows of a space whose version was dropped: their numbers in files, and the versions.
    fn gone_from(&self, at: usize) -> (HashSet<u64>, HashSet<DocId>) {
        let (mut ids, mut docs) = (HashSet::new(), HashSet::new());
        let rows = self.shared.vectors.spaces().get(at).map_or(0, VectorSpace::rows);
        for first in (0..rows).step_by(LOOKED_AT) {
            let catalog = self.catalog();
            let spaces = self.shared.vectors.spaces();
            let part = spaces.get(at).map(|space| space.rows_from(first)).into_iter().flatten();
            for (doc, ..) in part.take(LOOKED_AT) {
                if catalog.doc(doc).dropped {
                    ids.insert(stable_id(catalog.doc(doc)));
                    docs.insert(doc);
                }
            }
        }
        (ids, docs)
    }

    /// Writes the files of a space that name one of these again, without them.
    fn purge_files(&mut self, at: usize, gone: &HashSet<u64>) -> io::Result<()> {
        let Some(files) = self.files.get_mut(at) else { return Ok(()) };
        files.tail = None;
        let numbers = files.numbers.clone();
        for number in numbers {
            let bytes = match disk::read(&*self.disk, &path(number)) {
                Ok(bytes) => bytes,
                // It was removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
            };
            let kept = match file::read(&bytes) {
                Some(contents) => without(&contents, |id| gone.contains(&id)),
                // Its vectors are made again at the next start.
                None => Some(Vec::new()),
            };
            let Some(kept) = kept else { continue };
            self.replace(number, &kept)?;
            if kept.is_empty()
                && let Some(files) = self.files.get_mut(at)
            {
                files.numbers.retain(|of| *of != number);
            }
        }
        Ok(())
    }

    /// Writes a file again, or removes it where nothing is left.
    fn replace(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        if self.shared.settings().read_only {
            return Ok(());
        }
        if bytes.is_empty() {
            match self.disk.remove(&path(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return self.disk.sync_dir(DIR),
            }
        }
        disk::replace(&*self.disk, &path(number), bytes)?;
        self.disk.sync_dir(DIR)
    }

    pub(super) fn remove(&self, path: &str) {
        if !self.shared.settings().read_only {
            let _ = self.disk.remove(path);
        }
    }

    /// Throws a file away whose vectors are made again.
    fn damaged(&self, number: u64, reason: &str) {
        let file = path(number);
        tracing::warn!(file, reason, "a file of vectors is thrown away; they are made again");
        self.shared.vectors.damaged.fetch_add(1, Ordering::Relaxed);
        self.remove(&file);
    }

    pub(super) fn count_bytes(&self) {
        let numbers = self.files.iter().flat_map(|files| &files.numbers);
        let length = |number: &u64| {
            self.disk.open(&path(*number), Mode::Read).and_then(|file| file.len()).unwrap_or(0)
        };
        self.shared.vectors.bytes.store(numbers.map(length).sum(), Ordering::Relaxed);
    }
}

/// A file without the rows that are gone, empty if none is left; `None` if none of them is gone.
fn without(contents: &file::Contents, is_gone: impl Fn(u64) -> bool) -> Option<Vec<u8>> {
    if !contents.rows.iter().any(|(id, _)| is_gone(*id)) {
        return None;
    }
    let kept: Vec<_> = contents.rows.iter().filter(|(id, _)| !is_gone(*id)).collect();
    if kept.is_empty() {
        return Some(Vec::new());
    }
    let mut again = file::header(&contents.model, contents.is_given);
    for block in kept.chunks(BLOCK_ROWS) {
        let rows = block.iter().map(|(id, vector)| (*id, vector.scale, &*vector.values));
        again.extend(file::block(rows));
    }
    Some(again)
}
