//! How the index names a resource without keeping its text.

use std::fmt;

use omir_core::reference::Ref;
use sha2::{Digest, Sha256};

use crate::digest::unhex;

/// The first 128 bits of SHA-256 over `Type/id`.
///
/// Identifiers are up to 128 characters; a million of them would cost more memory than all the
/// rest of the index. A cryptographic hash is used because ids come from the network: nobody can
/// make two that collide, so equal keys mean equal references and no look-up has to go to disk.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct RefKey([u8; 16]);

impl RefKey {
    /// The key of a reference.
    pub fn of(reference: &Ref) -> Self {
        Self::of_text(&reference.to_string())
    }

    /// The key of a reference written as `Type/id`.
    pub fn of_text(reference: &str) -> Self {
        let digest = Sha256::digest(reference.as_bytes());
        Self(digest[..16].try_into().expect("SHA-256 gives 32 bytes"))
    }

    /// The first 64 bits, for lists in which room is dear: enough to find a reference again among those of one
    /// store. A chance collision in a store of a million needs some 10^12 lost facts.
    pub fn prefix(self) -> KeyPrefix {
        KeyPrefix(*self.0.first_chunk().expect("eight of sixteen bytes"))
    }

    /// As 32 lower-case hex digits.
    pub fn to_hex(self) -> String {
        format!("{self:?}")
    }

    /// Reads [`RefKey::to_hex`]; `None` if it is something else.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }
}

/// The first half of a [`RefKey`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct KeyPrefix([u8; 8]);

impl KeyPrefix {
    /// As a number.
    pub fn to_bits(self) -> u64 {
        u64::from_le_bytes(self.0)
    }
}

impl fmt::Debug for RefKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
