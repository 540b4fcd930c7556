//! A store of derived data: where the index of sealed segments is kept between starts.
//!
//! Nothing lies in it that cannot be rebuilt from the segments. So it promises little: it may lose anything at any
//! time, give back something older, or refuse everything. Its users check what they get and rebuild what they miss.
//! Invariant 4 of ARCHITECTURE.md.
//!
//! The program keeps it in sled ([`SledStore`]); the tests of power cuts in memory.

mod sled_store;

use std::fmt;
use std::io;

pub use self::sled_store::{SledStore, folder_size};

/// Why a store of derived data refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedRefused(pub String);

impl fmt::Display for DerivedRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DerivedRefused {}

/// A key with its new value, or with `None` to remove it.
pub type DerivedEntry = (Vec<u8>, Option<Vec<u8>>);

/// A map from keys to values, of derived data.
pub trait Derived: Send + Sync {
    /// The value of a key, `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read: it counts as lost.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DerivedRefused>;

    /// All keys.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn keys(&self) -> Result<Vec<Vec<u8>>, DerivedRefused>;

    /// Puts and removes, and hands that to the disk. A cut may lose it, or a part of it.
    ///
    /// # Errors
    /// If it cannot be written. Then [`Derived::clear`] may help.
    fn write(&mut self, entries: &[DerivedEntry]) -> Result<(), DerivedRefused>;

    /// Throws everything away. On return nothing of it is on the disk, and no cut brings any of it back: what was
    /// forgotten is purged so.
    ///
    /// # Errors
    /// If the disk refuses. Something may be left.
    fn clear(&mut self) -> io::Result<()>;

    /// Bytes on the disk, as far as they can be told.
    fn size_on_disk(&self) -> u64;
}
