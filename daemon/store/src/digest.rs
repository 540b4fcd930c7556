//! SHA-256 digests, and their text.

pub(crate) use omir_core::hex::{decode as unhex, encode as hex};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a segment file.
pub type Digest = [u8; 32];

/// SHA-256 of bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}
