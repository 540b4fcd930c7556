//! Models behind a server: how it is asked, what for, and what of it one call uses. `money` pays for it.
//!
//! | file | holds |
//! |---|---|
//! | `server` | the server: asked, asked again, left alone for a time |
//! | `summary` | summaries: the request, and a judgement of what comes back |
//! | `embedding` | vectors: the request, what comes back, and the note beside a vector that is stated |
//! | `vector_cache` | vectors that were made lately |
//! | `waiting_pool` | threads for calls that wait for it |

pub(crate) mod embedding;
pub(crate) mod server;
pub(crate) mod summary;
pub(crate) mod vector_cache;
pub(crate) mod waiting_pool;

use std::cell::{Cell, RefCell};

use crate::compress::{Compressed, Source};

/// A caller's preference about a summary by a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Preference {
    /// This call takes no model's time.
    #[default]
    None,
    /// If it is there, and can be paid for.
    Preferred,
    /// The caller takes nothing else.
    Required,
}

/// The measure that an answer was ranked by, as `meta.similarity` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Similarity {
    Words,
    Meaning,
}

impl Similarity {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Meaning => "meaning",
        }
    }
}

/// The use of a model by one call.
#[derive(Debug, Default)]
pub(crate) struct ModelUse {
    pub(crate) preference: Preference,
    /// Millionths of a dollar.
    pub(crate) cost: Cell<u64>,
    /// It was wanted and there, and something else stands in its place.
    pub(crate) is_missed: Cell<bool>,
    /// The measure that an answer was ranked by, where vectors are made.
    pub(crate) similarity: Cell<Option<Similarity>>,
    /// The last summary: a call that is worked out again does not ask and pay again.
    pub(crate) last: RefCell<Option<(Vec<Source>, Compressed)>>,
}
