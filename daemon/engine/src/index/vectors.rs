//! Vectors of versions, by the model that made them.
//!
//! They are derived from what is stored, and apart from the catalog: a thread of its own adds them after the writer has
//! made a version visible (`upkeep/embedding.rs`), so that words, places and times never wait for a vector. A row is a
//! version, a scale and one byte for each number. A scan over all rows is exact; of long vectors in a large space, signs may be
//! looked at first (`vector_space.rs`).

pub(crate) mod file;
mod vector_space;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use omird_embedding::{Embedder, ModelName};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use self::vector_space::keep_scans_on_this_thread;
pub(crate) use self::vector_space::{BLOCK_ROWS, Similar, VectorSpace};
pub(crate) use self::words::{Words, vector_of};

/// Most models whose vectors are searched at a time. A client could name any number of them.
pub(crate) const MAX_SPACES: usize = 16;

/// The way in which words and meaning are weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// The weight of words beside meaning, in [0, 1].
    pub words: f64,
    /// The share that a neighbour in time has, in [0, 1]; 0 for none.
    pub neighbours: f64,
    /// The least cosine of a match, where the question states none.
    pub min_cosine: f64,
}

impl Default for Fusion {
    fn default() -> Self {
        Self { words: 0.6, neighbours: 0.3, min_cosine: 0.15 }
    }
}

/// The embedder that is asked, and how often it was changed.
#[derive(Clone, Default)]
pub(crate) struct Backend {
    /// `None` if vectors are not made here.
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// Rises with each change; 0 until someone has said which it is.
    pub(crate) generation: u64,
}

/// Vectors of all models.
pub(crate) struct Vectors {
    spaces: RwLock<Vec<VectorSpace>>,
    /// Those of single words; `None` if the embedder has none.
    words: RwLock<Option<Words>>,
    backend: RwLock<Backend>,
    wake: Sender<()>,
    orders: Receiver<()>,
    /// True if there may be anything to do for a version that is recorded.
    is_embedding: AtomicBool,
    /// True once the files of the last run were read: before, there may be vectors of models that no space has yet.
    pub(crate) is_loaded: AtomicBool,
    /// Versions that were not looked at yet.
    pub(crate) pending: AtomicU64,
    /// Bytes of the files.
    pub(crate) bytes: AtomicU64,
    /// Files that were damaged, and made again.
    pub(crate) damaged: AtomicU64,
    /// Versions whose vector is of a model beyond [`MAX_SPACES`].
    pub(crate) left_out: AtomicU64,
}

impl Default for Vectors {
    fn default() -> Self {
        // One is enough: who is woken looks at all there is.
        let (wake, orders) = crossbeam_channel::bounded(1);
        Self {
            spaces: RwLock::default(),
            words: RwLock::default(),
            backend: RwLock::default(),
            wake,
            orders,
            is_embedding: AtomicBool::default(),
            is_loaded: AtomicBool::default(),
            pending: AtomicU64::default(),
            bytes: AtomicU64::default(),
            damaged: AtomicU64::default(),
            left_out: AtomicU64::default(),
        }
    }
}

impl Vectors {
    /// The spaces, to be searched. Lock order: the catalog, then the spaces.
    pub(crate) fn spaces(&self) -> RwLockReadGuard<'_, Vec<VectorSpace>> {
        self.spaces.read()
    }

    /// The spaces, to be changed: for short, as recalls wait.
    pub(crate) fn spaces_mut(&self) -> RwLockWriteGuard<'_, Vec<VectorSpace>> {
        self.spaces.write()
    }

    /// The vectors of words, to be searched. Lock order: the catalog, then the words.
    pub(crate) fn words(&self) -> RwLockReadGuard<'_, Option<Words>> {
        self.words.read()
    }

    /// The vectors of words, to be changed: for short, as recalls wait.
    pub(crate) fn words_mut(&self) -> RwLockWriteGuard<'_, Option<Words>> {
        self.words.write()
    }

    /// The embedder of now.
    pub(crate) fn backend(&self) -> Backend {
        self.backend.read().clone()
    }

    /// Goes on with another embedder, or none.
    pub(crate) fn follow(&self, embedder: Option<Arc<dyn Embedder>>) {
        let mut backend = self.backend.write();
        self.is_embedding.store(embedder.is_some(), Ordering::Release);
        *backend = Backend { embedder, generation: backend.generation + 1 };
        drop(backend);
        self.wake();
    }

    /// Has the thread look for work.
    pub(crate) fn wake(&self) {
        // Full: it was woken already, and has not looked yet.
        let _ = self.wake.try_send(());
    }

    /// Notes that versions were recorded; `carry_vectors` if one of them brings a vector.
    pub(crate) fn recorded(&self, carry_vectors: bool) {
        if carry_vectors || self.is_embedding.load(Ordering::Acquire) {
            self.wake();
        }
    }

    /// What wakes the thread.
    pub(crate) fn orders(&self) -> Receiver<()> {
        self.orders.clone()
    }
}

/// Returns true if vectors of two models compare: same name, same size, and the same files where both say which.
pub(crate) fn compare(a: &ModelName, b: &ModelName) -> bool {
    let is_unstated = |model: &ModelName| model.hash == [0; 32];
    a.name == b.name && a.dims == b.dims && (a.hash == b.hash || is_unstated(a) || is_unstated(b))
}
