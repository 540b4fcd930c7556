//! The thread that makes vectors, and keeps them in files.
//!
//! It follows the writer: each version that becomes visible is read, its text made into a vector, and the vector added. So
//! words never wait for it. The same walk makes all vectors anew where there is nothing to begin with: after the first start
//! with a model, with another model, or when a file is lost, damaged, or of another size. A vector that a client stated is
//! taken as it is.
//!
//! Vectors are derived. A block of them is written when it is full, and the rest at a stop: a power cut costs at most one
//! block of each model, which is made again. Files hold no forgotten memory longer than segments do: what compaction
//! dropped is taken out of them ([`Embedding::purge`]).

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use omird_embedding::{Embedder, Given, ModelName, Vector};
use omird_store::{Handle, ReadGuard, RwLock, decode_resource};

use crate::contained::spawn;
use crate::disk::{self, Disk, DiskFile, Mode};
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::meaning_of;
use crate::index::vectors::file::{self, stable_id};
use crate::index::vectors::{BLOCK_ROWS, Backend, MAX_SPACES, Space, Words, compare, vector_of};
use crate::shared::Shared;

/// The folder of the files.
pub(crate) const DIR: &str = "vectors";
/// The ending of their names.
const ENDING: &str = ".omirv";
/// Versions read and added at a time: recalls wait while they are added.
const AT_ONCE: usize = 64;
/// Rows looked at in one hold of the catalog.
const LOOKED_AT: usize = 4096;
/// Rows of a file: what was forgotten is taken out by writing one file again.
const FILE_ROWS: usize = 64 * BLOCK_ROWS;
/// Interval between looks at what compaction dropped.
const PAUSE: Duration = Duration::from_secs(60);
/// Pause after a disk refused.
const RETRY: Duration = Duration::from_secs(60);

/// The thread's state.
struct Embedding {
    shared: Arc<Shared>,
    catalog: Arc<RwLock<Catalog>>,
    disk: Arc<dyn Disk>,
    backend: Backend,
    /// The first version that was not looked at yet.
    next: DocId,
    /// While all versions are looked at again: those that have a row, by space.
    done: Vec<Vec<u64>>,
    /// Files, by space.
    files: Vec<SpaceFiles>,
    /// The number of the next file.
    next_file: u64,
    /// Versions that had been dropped when files were purged last.
    purged: u64,
    /// No file is written before this.
    wait_until: Option<Instant>,
}

/// The files of one space.
#[derive(Default)]
struct SpaceFiles {
    /// Rows of the space that are in files.
    saved: usize,
    /// The files' numbers.
    numbers: Vec<u64>,
    /// The file that grows.
    tail: Option<Tail>,
}

struct Tail {
    file: Arc<dyn DiskFile>,
    end: u64,
    rows: usize,
}

/// Starts the thread, which ends when the engine is told to stop.
pub(crate) fn embed_in_background(
    shared: Arc<Shared>,
    catalog: Arc<RwLock<Catalog>>,
    disk: Arc<dyn Disk>,
) -> io::Result<JoinHandle<()>> {
    let embedding = Embedding {
        shared,
        catalog,
        disk,
        backend: Backend::default(),
        next: 0,
        done: Vec::new(),
        files: Vec::new(),
        next_file: 1,
        purged: 0,
        wait_until: None,
    };
    // Without it words, places and times are as before.
    spawn("omird-vectors", move || embedding.run(), || {})
}

fn path(number: u64) -> String {
    format!("{DIR}/{number:010}{ENDING}")
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(ENDING)?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

impl Embedding {
    fn run(mut self) {
        self.load();
        loop {
            self.follow();
            while self.step() {
                if self.is_stopping() {
                    break;
                }
                self.follow();
            }
            if self.is_stopping() {
                self.save(true);
                return;
            }
            self.purge();
            match self.shared.vectors.orders().recv_timeout(PAUSE) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.shared.is_stopping.load(Ordering::Acquire)
    }

    fn catalog(&self) -> ReadGuard<'_, Catalog> {
        self.catalog.read()
    }

    /// Reads the files of the last run. What cannot be read, or is of versions that are not there, is made anew.
    fn load(&mut self) {
        let Ok(names) = self.disk.list(DIR) else { return };
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        self.next_file = numbers.last().map_or(1, |last| last + 1);
        for name in names.iter().filter(|name| number_of(name).is_none()) {
            // What a cut left of a file that was being written.
            self.remove(&format!("{DIR}/{name}"));
        }
        if numbers.is_empty() {
            return;
        }
        let versions = self.versions();
        let mut loaded: Vec<(Space, SpaceFiles, HashSet<DocId>)> = Vec::new();
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
            let of = |(space, ..): &(Space, SpaceFiles, HashSet<DocId>)| {
                *space.model() == contents.model && space.is_given() == contents.is_given
            };
            let at = match loaded.iter().position(of) {
                Some(at) => at,
                None if loaded.len() < MAX_SPACES => {
                    let space = Space::new(contents.model.clone(), contents.is_given);
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
                let kept = &bytes[..contents.whole];
                if self.replace(number, kept).is_err() {
                    self.remove(&path(number));
                    continue;
                }
                let message = "the end of a file of vectors is damaged or cut; they are made again";
                tracing::warn!(file = path(number), message);
                self.shared.vectors.damaged.fetch_add(1, Ordering::Relaxed);
            }
            files.numbers.push(number);
            last.insert(at, (number, contents.whole as u64, contents.rows.len()));
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
        // What was read is not made again.
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

    /// Goes on with the embedder of now. With another one all versions are looked at again.
    fn follow(&mut self) {
        let backend = self.shared.vectors.backend();
        if backend.generation == self.backend.generation {
            return;
        }
        self.backend = backend;
        let model = self.backend.embedder.as_ref().map(|embedder| embedder.model().clone());
        // Vectors of another model are of no use, and neither are given ones where the same model makes them from now on:
        // those come with the rest.
        let stays = |space: &Space| match &model {
            Some(model) if space.is_given() => !compare(space.model(), model),
            Some(model) => space.model() == model,
            None => space.is_given(),
        };
        let kept: Vec<bool> = self.shared.vectors.spaces().iter().map(stays).collect();
        let files = std::mem::take(&mut self.files);
        for (files, keeps) in files.into_iter().zip(&kept) {
            if *keeps {
                self.files.push(files);
                continue;
            }
            for number in files.numbers {
                self.remove(&path(number));
            }
        }
        {
            let mut spaces = self.shared.vectors.spaces_mut();
            let mut kept = kept.iter();
            spaces.retain(|_| kept.next().copied().unwrap_or(true));
            if let Some(model) = model
                && !spaces.iter().any(|space| !space.is_given())
            {
                spaces.push(Space::new(model, false));
                self.files.push(SpaceFiles::default());
            }
        }
        *self.shared.vectors.words_mut() = self.backend.embedder.as_ref().and_then(|embedder| {
            has_words(&**embedder).then(|| Words::new(embedder.model().clone()))
        });
        self.shared.vectors.left_out.store(0, Ordering::Relaxed);
        self.look_again();
        self.count_bytes();
    }

    /// Begins to look at all versions again, and notes those that have a row.
    fn look_again(&mut self) {
        self.next = 0;
        let count = self.catalog().docs().len();
        self.done =
            self.shared.vectors.spaces().iter().map(|space| done_in(space, count)).collect();
    }

    /// Returns true if a version has a row in a space.
    fn is_done(&self, space: usize, id: DocId) -> bool {
        let word = self.done.get(space).and_then(|done| done.get(id as usize / 64));
        word.is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Looks at the next few versions; returns false if there are none.
    fn step(&mut self) -> bool {
        let began = Instant::now();
        let own = self.shared.vectors.spaces().iter().position(|space| !space.is_given());
        let makes = self.backend.embedder.is_some();
        let mut work: Vec<(DocId, bool, Handle)> = Vec::new();
        let (looked, is_behind) = {
            let catalog = self.catalog();
            let docs = catalog.docs();
            let mut looked = 0;
            for (id, doc) in docs.iter().enumerate().skip(self.next as usize).take(LOOKED_AT) {
                // The writer has not made it visible yet.
                if doc.is_staged() || work.len() == AT_ONCE {
                    break;
                }
                looked += 1;
                let id = id as DocId;
                let carries = doc.class.carries_vector();
                let is_asked = carries || (makes && own.is_some_and(|own| !self.is_done(own, id)));
                if !doc.dropped && is_asked {
                    work.push((id, carries, catalog.handle(id)));
                }
            }
            let left = docs.len().saturating_sub(self.next as usize + looked);
            self.shared.vectors.pending.store((left + work.len()) as u64, Ordering::Relaxed);
            (looked, left > AT_ONCE)
        };
        self.learn_words();
        if looked == 0 {
            self.done = Vec::new();
            self.shared.vectors.pending.store(0, Ordering::Relaxed);
            return false;
        }
        let mut rows: Vec<(ModelName, bool, DocId, Vector)> = Vec::new();
        for (id, carries, handle) in work {
            self.vectors_of(id, carries, &handle, &mut rows);
        }
        self.next += looked as DocId;
        self.add(rows);
        self.save(false);
        let left = self.shared.vectors.pending.load(Ordering::Relaxed);
        self.shared.vectors.pending.store(left.min(self.left()), Ordering::Relaxed);
        if is_behind {
            // Others want the processor too: a fifth of the time is theirs, however much there is to do.
            std::thread::sleep(began.elapsed() / 4);
        }
        true
    }

    /// Makes vectors of the words that came into the store since.
    fn learn_words(&self) {
        let vectors = &self.shared.vectors;
        let Some(embedder) = self.backend.embedder.as_ref() else { return };
        let mut numbers = vec![0.0; embedder.model().dims];
        while !self.is_stopping() {
            let Some(first) = vectors.words().as_ref().map(Words::looked) else { return };
            let names: Vec<(u32, String)> = {
                let catalog = self.catalog();
                let names = catalog.text.names_from(first).take(LOOKED_AT);
                names.map(|(term, name)| (term, name.to_owned())).collect()
            };
            if names.is_empty() {
                return;
            }
            let of = |(term, name): &(u32, String)| {
                Some((*term, vector_of(&**embedder, name, &mut numbers)?))
            };
            let made: Vec<(u32, Vector)> = names.iter().filter_map(of).collect();
            if let Some(words) = vectors.words_mut().as_mut() {
                words.add(&made, first + names.len());
            }
        }
    }

    /// Number of versions that were not looked at.
    fn left(&self) -> u64 {
        self.catalog().docs().len().saturating_sub(self.next as usize) as u64
    }

    /// Reads a version, and makes or takes its vectors.
    fn vectors_of(
        &self,
        id: DocId,
        carries: bool,
        handle: &Handle,
        rows: &mut Vec<(ModelName, bool, DocId, Vector)>,
    ) {
        let resource = match handle.bytes().and_then(|bytes| {
            decode_resource(&bytes).map_err(|fault| omird_store::ReadError::NotAResource {
                location: handle.location,
                message: fault.to_string(),
            })
        }) {
            Ok(resource) => resource,
            // Compaction has moved it since: it is looked at in its new place, if it is still there.
            Err(error) => {
                tracing::debug!(%error, "a memory has no vector, as it cannot be read");
                return;
            }
        };
        let embedder = self.backend.embedder.as_ref();
        let mut has_own = false;
        if carries {
            for Given { model, vector } in Given::all_of(&resource) {
                let model = ModelName { name: model, dims: vector.values.len(), hash: [0; 32] };
                match embedder.map(|embedder| embedder.model()) {
                    Some(own) if compare(&model, own) => {
                        if !has_own {
                            rows.push((own.clone(), false, id, vector));
                        }
                        has_own = true;
                    }
                    _ => rows.push((model, true, id, vector)),
                }
            }
        }
        if let Some(embedder) = embedder
            && !has_own
            && let Some(text) = meaning_of(&resource)
        {
            let mut numbers = vec![0.0; embedder.model().dims];
            if embedder.embed(&text, &mut numbers)
                && let Some(vector) = Vector::of(&numbers)
            {
                rows.push((embedder.model().clone(), false, id, vector));
            }
        }
    }

    /// Adds rows where recalls find them.
    fn add(&mut self, rows: Vec<(ModelName, bool, DocId, Vector)>) {
        if rows.is_empty() {
            return;
        }
        let vectors = &self.shared.vectors;
        let mut spaces = vectors.spaces_mut();
        for (model, is_given, id, vector) in rows {
            let of = |space: &Space| *space.model() == model && space.is_given() == is_given;
            let at = match spaces.iter().position(of) {
                Some(at) => at,
                None if spaces.len() < MAX_SPACES => {
                    spaces.push(Space::new(model, is_given));
                    self.files.push(SpaceFiles::default());
                    spaces.len() - 1
                }
                None => {
                    vectors.left_out.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            };
            let word = self.done.get(at).and_then(|done| done.get(id as usize / 64));
            if word.is_some_and(|word| word >> (id % 64) & 1 == 1) {
                continue;
            }
            if let Some(space) = spaces.get_mut(at) {
                space.push(id, &vector);
            }
        }
    }

    /// Writes full blocks, or all rows that are in no file yet.
    fn save(&mut self, all: bool) {
        if self.shared.settings().read_only || self.wait_until.is_some_and(|at| Instant::now() < at)
        {
            return;
        }
        for at in 0..self.files.len() {
            loop {
                let saved = self.files.get(at).map_or(0, |files| files.saved);
                let rows = self.shared.vectors.spaces().get(at).map_or(0, Space::rows);
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
    fn purge(&mut self) {
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
        let rows = self.shared.vectors.spaces().get(at).map_or(0, Space::rows);
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
            let bytes = disk::read(&*self.disk, &path(number))?;
            let Some(contents) = file::read(&bytes) else {
                self.remove(&path(number));
                continue;
            };
            if !contents.rows.iter().any(|(id, _)| gone.contains(id)) {
                continue;
            }
            let kept: Vec<_> = contents.rows.iter().filter(|(id, _)| !gone.contains(id)).collect();
            if kept.is_empty() {
                self.remove(&path(number));
                self.disk.sync_dir(DIR)?;
                continue;
            }
            let mut again = file::header(&contents.model, contents.is_given);
            for block in kept.chunks(BLOCK_ROWS) {
                let rows = block.iter().map(|(id, vector)| (*id, vector.scale, &*vector.values));
                again.extend(file::block(rows));
            }
            self.replace(number, &again)?;
        }
        Ok(())
    }

    fn replace(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        if self.shared.settings().read_only {
            return Ok(());
        }
        disk::replace(&*self.disk, &path(number), bytes)?;
        self.disk.sync_dir(DIR)
    }

    fn remove(&self, path: &str) {
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

    fn count_bytes(&self) {
        let numbers = self.files.iter().flat_map(|files| &files.numbers);
        let length = |number: &u64| {
            self.disk.open(&path(*number), Mode::Read).and_then(|file| file.len()).unwrap_or(0)
        };
        self.shared.vectors.bytes.store(numbers.map(length).sum(), Ordering::Relaxed);
    }
}

/// Returns true if an embedder has vectors of single words.
fn has_words(embedder: &dyn Embedder) -> bool {
    let any = Vector::of(&vec![1.0; embedder.model().dims]);
    any.is_some_and(|any| embedder.usual(&any).is_some())
}

/// A bit for each version that has a row in a space.
fn done_in(space: &Space, count: usize) -> Vec<u64> {
    let mut done = vec![0_u64; count.div_ceil(64)];
    for (doc, ..) in space.rows_from(0) {
        if let Some(word) = done.get_mut(doc as usize / 64) {
            *word |= 1 << (doc % 64);
        }
    }
    done
}

#[cfg(test)]
mod tests;
