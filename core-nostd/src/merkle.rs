//! Merkle trees over a list of entries, as RFC 9162 (Certificate Transparency 2.0), 2.1, defines them: with a path
//! one entry is shown to be in the list without the others.
//!
//! The hash of a leaf is SHA-256 of `00 ‖ entry`; that of a node `01 ‖ left ‖ right`, where the left side has the
//! largest power of two of leaves that is less than all of them:
//!
//! ```text
//!            root                 path of entry 2: [hash of 3, node of 0 and 1, hash of 4]
//!           /    \                sides:           [right,     left,            right]
//!        node     leaf 4
//!       /    \
//!   node     node
//!   /  \     /  \
//!  0    1   2    3
//! ```
//!
//! Following a path needs no allocator; making one ([`Tree`]) needs the feature `alloc`. A [`Tree`] is fed one entry
//! after the other and holds no more than one hash for each of its levels.

#[cfg(feature = "alloc")]
mod tree;

#[cfg(test)]
mod tests;

use core::fmt;

use sha2::{Digest as _, Sha256};

#[cfg(feature = "alloc")]
pub use self::tree::Tree;

/// A SHA-256.
pub type Hash = [u8; 32];

/// The hash of an entry as a leaf of a tree.
pub fn leaf(entry: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// The hash of a node above two others.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// The number of entries, and the root over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// Number of entries.
    pub entries: u64,
    /// The root.
    pub hash: Hash,
}

impl Root {
    /// The root over entries.
    #[cfg(feature = "alloc")]
    pub fn of<'e>(entries: impl IntoIterator<Item = &'e [u8]>) -> Self {
        let mut tree = Tree::new();
        entries.into_iter().for_each(|entry| tree.push(entry));
        tree.finish().0
    }

    /// Checks that the entry whose hash as a leaf is `leaf` is entry `index` of the list that this is the root over.
    ///
    /// # Errors
    /// If it is not, or if `path` is not the one for this place.
    pub fn includes(&self, leaf: Hash, index: u64, path: &[Hash]) -> Result<(), PathFault> {
        let &Self { entries, hash } = self;
        if index >= entries {
            return Err(PathFault::Outside { index, entries });
        }
        let expected = sides(index, entries).count();
        if path.len() != expected {
            return Err(PathFault::Length { expected, found: path.len() });
        }
        match climb(leaf, sides(index, entries).zip(path.iter().copied())) == hash {
            true => Ok(()),
            false => Err(PathFault::OtherRoot),
        }
    }
}

/// A reason for which an entry is not shown to be in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathFault {
    /// The list is shorter than that.
    Outside {
        /// The place that was asked for, counted from 0.
        index: u64,
        /// Entries in the list.
        entries: u64,
    },
    /// Paths of that place have another number of hashes.
    Length {
        /// Hashes there must be.
        expected: usize,
        /// Hashes there are.
        found: usize,
    },
    /// Entry and path lead to another root.
    OtherRoot,
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { index, entries } => {
                write!(f, "there is no entry {index} among {entries}, counted from 0")
            }
            Self::Length { expected, found } => {
                write!(f, "the path has {found} hashes, and {expected} lead from there to the root")
            }
            Self::OtherRoot => f.write_str("entry and path lead to another root"),
        }
    }
}

impl core::error::Error for PathFault {}

/// The side on which a hash of a path stands when both are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the hash that comes from below.
    Left,
    /// Behind it.
    Right,
}

/// The sides of the hashes of the path from entry `index` of `entries` to their root, the lowest first. There are as
/// many as the path has hashes: 64 at most, and none for the only entry or for one that does not exist.
pub fn sides(index: u64, entries: u64) -> impl Iterator<Item = Side> {
    // RFC 9162, 2.1.3.2: `fn` and `sn`.
    let (mut at, mut last) = match index < entries {
        true => (index, entries - 1),
        false => (0, 0),
    };
    core::iter::from_fn(move || {
        if last == 0 {
            return None;
        }
        let side = match at & 1 == 1 || at == last {
            true => Side::Left,
            false => Side::Right,
        };
        if side == Side::Left && at & 1 == 0 {
            // The last of an odd number rises until it has a neighbour. It is not 0: `last` is not.
            let lone = at.trailing_zeros();
            (at, last) = (at >> lone, last >> lone);
        }
        (at, last) = (at >> 1, last >> 1);
        Some(side)
    })
}

/// The root that a leaf's hash and the hashes beside its way up lead to, the lowest first.
pub fn climb(leaf: Hash, path: impl IntoIterator<Item = (Side, Hash)>) -> Hash {
    path.into_iter().fold(leaf, |below, (side, beside)| match side {
        Side::Left => node(&beside, &below),
        Side::Right => node(&below, &beside),
    })
}
