//! Seals: the integrity and signature of a sealed segment, `segments/<number>.sig`, one small JSON object.
//!
//! ```json
//! {"format": "omird-signature-3", "segment": 2, "bytes": 81234, "sha256": "…", "entries": 12,
//!  "entriesRoot": "…", "previous": "…", "publicKey": "…", "signature": "…"}
//! ```
//!
//! Everything is lower-case hex. The signature is Ed25519 (RFC 8032) by the device key over
//! `"omird segment 3\n" ‖ segment:u64 ‖ bytes:u64 ‖ sha256 ‖ entries:u64 ‖ entriesRoot ‖ previous` with
//! big-endian integers, where `previous` is the link of the segment before (zeros for the first). The link of
//! a segment is its SHA-256. So a segment can be neither changed, nor left out, nor put in another order
//! without the chain telling. `entriesRoot` is the root of the tree over the items of its `entry`
//! ([`merkle`](crate::merkle)), so that one of them can be shown to be in it without the others.
//!
//! A compacted segment takes the place of a run of others in the chain: `previous` is that of the first it
//! replaces, and one more member, `last`, is the link of the last; it is signed behind `previous`. The segments
//! around it stay as they were signed.
//!
//! Older releases wrote neither `entries` nor `entriesRoot`, and signed what is left with a `1` in place of the
//! `3`, or with `last` a `2`; such seals stay as they are.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};

use crate::decode::Limits;
use crate::hex::{decode as unhex, encode as hex};
use crate::json;
use crate::merkle::{Hash, Root};
use crate::number::Number;
use crate::value::{Map, Value};

/// The format of a seal with a root.
pub const FORMAT: &str = "omird-signature-3";
/// The format of a seal without a root.
const FORMAT_PLAIN: &str = "omird-signature-1";
/// The same of one that stands for a run of segments.
const FORMAT_PLAIN_COMPACTED: &str = "omird-signature-2";

/// The signed facts of a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Hash,
    /// The tree over its entries; older releases signed none.
    pub root: Option<Root>,
}

/// The contents of a `.sig` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Number of the segment.
    pub segment: u64,
    /// The file.
    pub contents: Contents,
    /// The link of the segment before it.
    pub previous: Hash,
    /// The link of the last segment it replaces; nothing for a segment sealed from a log.
    pub last: Option<Hash>,
    /// The public key of the signer.
    pub public_key: [u8; 32],
    /// The signature.
    pub signature: [u8; 64],
}

/// A reason for which a seal does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealFault {
    /// There is no `.sig` file.
    Missing,
    /// The `.sig` file is no seal.
    Unreadable,
    /// The segment file is not the one that was signed.
    DigestDiffers,
    /// The segment before is not the one this seal names.
    ChainBroken,
    /// The signature is not by the key in the file.
    BadSignature,
}

impl fmt::Display for SealFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "its signature is missing",
            Self::Unreadable => "the signature file is unreadable",
            Self::DigestDiffers => "the segment's bytes are not the ones that were signed",
            Self::ChainBroken => "it was not signed as the successor of the segment before it",
            Self::BadSignature => "the signature does not verify",
        })
    }
}

impl core::error::Error for SealFault {}

/// Breaks of a chain of seals: the positions of those that do not follow the one before them.
///
/// `seals` are in the order of their segments' first transactions. The first must name 64 zeros.
/// [`Seal::verify`] says if each is authentic and right about its file.
pub fn chain_breaks<'a>(seals: impl IntoIterator<Item = &'a Seal>) -> Vec<usize> {
    let mut before = Hash::default();
    let mut breaks = Vec::new();
    for (position, seal) in seals.into_iter().enumerate() {
        if seal.previous != before {
            breaks.push(position);
        }
        before = seal.link();
    }
    breaks
}

impl Seal {
    /// The link that the seal of the next segment names as its `previous`.
    pub fn link(&self) -> Hash {
        self.last.unwrap_or(self.contents.sha256)
    }

    /// The signed bytes.
    pub fn message(&self) -> Vec<u8> {
        let Contents { bytes, sha256, root } = &self.contents;
        let mut message: Vec<u8> = match (root, self.last) {
            (None, None) => b"omird segment 1\n".to_vec(),
            (None, Some(_)) => b"omird segment 2\n".to_vec(),
            (Some(_), _) => b"omird segment 3\n".to_vec(),
        };
        message.extend_from_slice(&self.segment.to_be_bytes());
        message.extend_from_slice(&bytes.to_be_bytes());
        message.extend_from_slice(sha256);
        if let Some(root) = root {
            message.extend_from_slice(&root.entries.to_be_bytes());
            message.extend_from_slice(&root.hash);
        }
        message.extend_from_slice(&self.previous);
        message.extend(self.last.iter().flatten());
        message
    }

    /// The format that its members make it.
    pub fn format(&self) -> &'static str {
        match (self.contents.root, self.last) {
            (Some(_), _) => FORMAT,
            (None, None) => FORMAT_PLAIN,
            (None, Some(_)) => FORMAT_PLAIN_COMPACTED,
        }
    }

    /// As the text of a `.sig` file.
    pub fn to_json(&self) -> String {
        json::to_string(&self.to_value()) + "\n"
    }

    /// As the object in a `.sig` file.
    pub fn to_value(&self) -> Value {
        let int = |n: u64| Value::Number(Number::from(n));
        let Contents { bytes, sha256, root } = &self.contents;
        let mut map = Map::new();
        map.insert("format", self.format());
        map.insert("segment", int(self.segment));
        map.insert("bytes", int(*bytes));
        map.insert("sha256", hex(sha256));
        if let Some(root) = root {
            map.insert("entries", int(root.entries));
            map.insert("entriesRoot", hex(&root.hash));
        }
        map.insert("previous", hex(&self.previous));
        map.insert("publicKey", hex(&self.public_key));
        map.insert("signature", hex(&self.signature));
        if let Some(last) = &self.last {
            map.insert("last", hex(last));
        }
        Value::Object(map)
    }

    /// Reads the text of a `.sig` file.
    pub fn from_json(text: &[u8]) -> Result<Self, SealFault> {
        let limits = Limits { max_bytes: 4096, ..Limits::default() };
        let value = json::from_slice(text, &limits).map_err(|_| SealFault::Unreadable)?;
        Self::from_value(&value).ok_or(SealFault::Unreadable)
    }

    /// Reads the object in a `.sig` file; `None` if it is no seal.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let int = |name: &str| value.get(name).and_then(Value::as_u64);
        let (has_root, has_last) = match text("format") {
            Some(FORMAT) => (true, value.get("last").is_some()),
            Some(FORMAT_PLAIN) => (false, false),
            Some(FORMAT_PLAIN_COMPACTED) => (false, true),
            _ => return None,
        };
        Some(Self {
            segment: int("segment")?,
            contents: Contents {
                bytes: int("bytes")?,
                sha256: unhex(text("sha256")?)?,
                root: match has_root {
                    true => {
                        Some(Root { entries: int("entries")?, hash: unhex(text("entriesRoot")?)? })
                    }
                    false => None,
                },
            },
            previous: unhex(text("previous")?)?,
            last: if has_last { Some(unhex(text("last")?)?) } else { None },
            public_key: unhex(text("publicKey")?)?,
            signature: unhex(text("signature")?)?,
        })
    }

    /// Checks the seal against the segment's bytes and the link of the segment before it.
    pub fn verify(&self, segment: &[u8], previous: &Hash) -> Result<(), SealFault> {
        let Contents { bytes, sha256, .. } = self.contents;
        if bytes != segment.len() as u64 || sha256 != Hash::from(Sha256::digest(segment)) {
            return Err(SealFault::DigestDiffers);
        }
        if self.previous != *previous {
            return Err(SealFault::ChainBroken);
        }
        if self.is_authentic() { Ok(()) } else { Err(SealFault::BadSignature) }
    }

    /// Returns true if the signature is by the key in the file over what the file says, whatever the
    /// segment holds. A key of small order, under which signatures can be made up, has none.
    pub fn is_authentic(&self) -> bool {
        VerifyingKey::from_bytes(&self.public_key)
            .and_then(|key| {
                key.verify_strict(&self.message(), &Signature::from_bytes(&self.signature))
            })
            .is_ok()
    }
}
