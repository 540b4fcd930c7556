//! The thread that makes vectors, and keeps them in files.
//!
//! It follows the writer: each version that becomes visible is read, its text made into a vector, and the vector added. So
//! words never wait for it. The same walk makes all vectors again where there is nothing to begin with: after the first start
//! with a model, with another model, or when a file is lost, damaged, or of another size. A vector that a client stated is
//! taken as it is.
//!
//! Vectors are derived. A block of them is written when it is full, and the rest at a stop: a power cut costs at most one
//! block of each model, which is made again. Files hold no forgotten memory longer than segments do: what compaction
//! dropped is taken out of them ([`Embedding::purge`]), at the latest when they are read at the next start.

mod files;
mod words;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use omird_embedding::{Given, ModelName, Vector};
use omird_store::{Handle, ReadGuard, RwLock, decode_resource};

use self::files::{SpaceFiles, path};
use self::words::has_words;

use crate::contained::spawn;
use crate::disk::Disk;
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::meaning_of;
use crate::index::vectors::{Backend, MAX_SPACES, VectorSpace, Words, compare};
use crate::shared::Shared;

/// Versions read and added at a time: recalls wait while they are added.
const AT_ONCE: usize = 64;
/// Rows looked at in one hold of the catalog.
const LOOKED_AT: usize = 4096;
/// Times that a version is read in vain, a [`PAUSE`] apart, before it stays without a vector until the next start.
const MOST_TRIES: u8 = 5;
/// Interval between looks at what compaction dropped, and between tries to read.
const PAUSE: Duration = Duration::from_secs(60);

/// The thread's state.
struct Embedding {
    shared: Arc<Shared>,
    catalog: Arc<RwLock<Catalog>>,
    disk: Arc<dyn Disk>,
    backend: Backend,
    /// The first version that was not looked at yet.
    next: DocId,
    /// Versions that the card did not give back, and how often it was asked.
    unread: Vec<(DocId, u8)>,
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
        unread: Vec::new(),
        done: Vec::new(),
        files: Vec::new(),
        next_file: 1,
        purged: 0,
        wait_until: None,
    };
    // Without it words, places and times are as before.
    spawn("omird-vectors", move || embedding.run(), || {})
}

impl Embedding {
    fn run(mut self) {
        // Until they are read or made, callers are told that they are missing.
        self.shared.vectors.pending.store(self.left(), Ordering::Relaxed);
        self.load();
        self.shared.vectors.is_loaded.store(true, Ordering::Release);
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
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => self.read_again(),
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
        let stays = |space: &VectorSpace| match &model {
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
                spaces.push(VectorSpace::new(model, false));
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
        self.unread.clear();
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
            let pending = left + work.len() + self.unread.len();
            self.shared.vectors.pending.store(pending as u64, Ordering::Relaxed);
            (looked, left > AT_ONCE)
        };
        self.learn_words();
        if looked == 0 {
            self.done = Vec::new();
            self.shared.vectors.pending.store(self.unread.len() as u64, Ordering::Relaxed);
            return false;
        }
        let mut rows: Vec<(ModelName, bool, DocId, Vector)> = Vec::new();
        for (id, carries, handle) in work {
            if !self.vectors_of(id, carries, &handle, &mut rows) {
                self.unread.push((id, 1));
            }
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

    /// Number of versions that were not looked at, or not read.
    fn left(&self) -> u64 {
        let left = self.catalog().docs().len().saturating_sub(self.next as usize);
        (left + self.unread.len()) as u64
    }

    /// Tries once more to read what the card did not give back.
    fn read_again(&mut self) {
        let mut rows = Vec::new();
        for (id, tries) in std::mem::take(&mut self.unread) {
            let (carries, handle) = {
                let catalog = self.catalog();
                let doc = catalog.doc(id);
                if doc.dropped {
                    continue;
                }
                (doc.class.carries_vector(), catalog.handle(id))
            };
            if self.vectors_of(id, carries, &handle, &mut rows) {
                continue;
            }
            if tries < MOST_TRIES {
                self.unread.push((id, tries + 1));
            } else {
                let at = handle.location;
                tracing::warn!(
                    ?at,
                    "a memory has no vector until the next start, as it cannot be read"
                );
            }
        }
        self.add(rows);
        self.shared.vectors.pending.store(self.left(), Ordering::Relaxed);
    }

    /// Reads a version, and makes or takes its vectors; returns false if it cannot be read.
    fn vectors_of(
        &self,
        id: DocId,
        carries: bool,
        handle: &Handle,
        rows: &mut Vec<(ModelName, bool, DocId, Vector)>,
    ) -> bool {
        let resource = match handle.bytes().and_then(|bytes| {
            decode_resource(&bytes).map_err(|fault| omird_store::ReadError::NotAResource {
                location: handle.location,
                message: fault.to_string(),
            })
        }) {
            Ok(resource) => resource,
            Err(error) => {
                tracing::debug!(%error, "a memory has no vector yet, as it cannot be read");
                return false;
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
        true
    }

    /// Adds rows where recalls find them.
    fn add(&mut self, rows: Vec<(ModelName, bool, DocId, Vector)>) {
        if rows.is_empty() {
            return;
        }
        let vectors = &self.shared.vectors;
        let mut spaces = vectors.spaces_mut();
        for (model, is_given, id, vector) in rows {
            let of = |space: &VectorSpace| *space.model() == model && space.is_given() == is_given;
            let at = match spaces.iter().position(of) {
                Some(at) => at,
                None if spaces.len() < MAX_SPACES => {
                    spaces.push(VectorSpace::new(model, is_given));
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
}

/// A bit for each version that has a row in a space.
fn done_in(space: &VectorSpace, count: usize) -> Vec<u64> {
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
