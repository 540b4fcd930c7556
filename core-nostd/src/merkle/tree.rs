//! Making a tree: entries one after the other, and the path of one of them on the way.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::{Hash, Root, leaf, node};

/// A tree that grows by one entry at a time.
///
/// ```
/// use omir_core::merkle::{Tree, leaf};
///
/// let mut tree = Tree::with_path_of(1);
/// [&b"kettle"[..], b"cup", b"spoon"].into_iter().for_each(|entry| tree.push(entry));
/// let (root, path) = tree.finish();
/// assert_eq!(root.includes(leaf(b"cup"), 1, &path.unwrap_or_default()), Ok(()));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tree {
    entries: u64,
    /// Roots of full trees, each smaller than the one before it: the binary digits of `entries`.
    full: Vec<Hash>,
    watched: Option<Watched>,
}

/// The path of an entry, as far as it is known.
#[derive(Debug, Clone)]
struct Watched {
    index: u64,
    path: Vec<Hash>,
    /// Which of the full trees the entry is in, once it was there.
    within: Option<usize>,
}

impl Tree {
    /// A tree without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tree without entries that will know the path of entry `index`, counted from 0.
    pub fn with_path_of(index: u64) -> Self {
        let watched = Watched { index, path: Vec::new(), within: None };
        Self { watched: Some(watched), ..Self::default() }
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        self.push_leaf(leaf(entry));
    }

    /// Adds an entry by its hash as a leaf.
    pub fn push_leaf(&mut self, leaf: Hash) {
        if let Some(watched) = self.watched.as_mut().filter(|w| w.index == self.entries) {
            watched.within = Some(self.full.len());
        }
        self.full.push(leaf);
        // As many trees are full now as the number before had ones at its end.
        for _ in 0..self.entries.trailing_ones() {
            self.join_last();
        }
        self.entries += 1;
    }

    /// The root, and the path of the entry that was asked for: `None` if none was, or if there is no such entry.
    pub fn finish(mut self) -> (Root, Option<Vec<Hash>>) {
        while self.full.len() > 1 {
            self.join_last();
        }
        let hash = self.full.pop().unwrap_or_else(|| Sha256::digest([]).into());
        let path = self.watched.filter(|watched| watched.within.is_some()).map(|w| w.path);
        (Root { entries: self.entries, hash }, path)
    }

    /// Makes one tree of the last two.
    fn join_last(&mut self) {
        let (Some(right), Some(left)) = (self.full.pop(), self.full.pop()) else { return };
        let joined = self.full.len();
        if let Some(watched) = &mut self.watched {
            if watched.within == Some(joined) {
                watched.path.push(right);
            } else if watched.within == Some(joined + 1) {
                watched.path.push(left);
                watched.within = Some(joined);
            }
        }
        self.full.push(node(&left, &right));
    }
}
