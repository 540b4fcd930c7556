//! Proofs of memories: documents that show, without the segment, that a device sealed a resource
//! (`docs/proofs.md`).
//!
//! ```json
//! {"format": "omird-proof-1", "resource": {…}, "entry": {"index": 4, "cbor": "…"}, "path": ["…"],
//!  "seal": {"format": "omird-signature-3", …}}
//! ```
//!
//! `entry.cbor` is the entry as it lies in the segment, in base64. `path` leads from it to the root that the seal
//! signs ([`merkle`]). `seal` is the `.sig` file of the segment ([`seal`](crate::seal)). `resource` is
//! the entry once more, for people; it may be left out.
//!
//! A proof that is verified says: the holder of this key sealed these bytes as entry `index` of that segment. It says
//! neither that they are true, nor when they were sealed, nor that they are still remembered.
//!
//! Bytes that are no proof are refused with the place of the fault. A proof has one form: what is read is the same as
//! what was written, to the last member.

mod read;
mod verdict;

#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use self::verdict::{judge, report};
use crate::cbor;
use crate::decode::Limits;
use crate::hex;
use crate::json;
use crate::merkle::{self, Hash, PathFault};
use crate::number::Number;
use crate::reference::{Id, Ref};
use crate::seal::Seal;
use crate::value::{Map, Value};

/// The format of the document.
pub const FORMAT: &str = "omird-proof-1";

/// Bytes of the largest document that is read: a resource has 1 MiB, and is in it twice.
pub const MAX_BYTES: usize = 16 << 20;

/// A public key, Ed25519.
pub type PublicKey = [u8; 32];

/// A proof that an entry is in a sealed segment. Not verified until [`Proof::verify`] says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The entry, one CBOR item, as it lies in the segment.
    pub entry: Vec<u8>,
    /// Its place in the segment, counted from 0.
    pub index: u64,
    /// The hashes beside its way up to the root, the lowest first.
    pub path: Vec<Hash>,
    /// The seal of the segment.
    pub seal: Seal,
}

/// The statement of a verified proof, beside the entry itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Number of the segment.
    pub segment: u64,
    /// Place of the entry in it, counted from 0.
    pub index: u64,
    /// Number of entries in the segment.
    pub entries: u64,
}

/// A reason for which a document proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofFault {
    /// It is no proof.
    Unreadable {
        /// JSON Pointer to the fault, `/` for the document.
        path: String,
        /// The fault, and what belongs there.
        message: String,
    },
    /// It is a proof of a format that this release does not know.
    OtherFormat(String),
    /// The seal is of an older release, and signs no root over the entries.
    NoRoot,
    /// The entry is no resource.
    NotAResource(String),
    /// `resource` is not what the entry says.
    ResourceDiffers,
    /// The seal is by another key than the one that is trusted.
    OtherKey {
        /// The key of the seal.
        found: PublicKey,
    },
    /// The signature is not by the key over what the seal says.
    BadSignature,
    /// The entry is not shown to be in the segment.
    Path(PathFault),
}

impl ProofFault {
    /// A short name of the kind of fault, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::OtherFormat(_) => "other-format",
            Self::NoRoot => "no-root",
            Self::NotAResource(_) => "not-a-resource",
            Self::ResourceDiffers => "resource-differs",
            Self::OtherKey { .. } => "other-key",
            Self::BadSignature => "bad-signature",
            Self::Path(_) => "not-included",
        }
    }
}

impl fmt::Display for ProofFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, message } => write!(f, "no proof: {path}: {message}"),
            Self::OtherFormat(format) => write!(
                f,
                "/format: {format:?} is not known here, only {FORMAT:?}; a newer release may read it"
            ),
            Self::NoRoot => f.write_str(
                "/seal/format: a seal of an older release, which signs no root over the entries; a compaction of the \
                 segment makes a new one",
            ),
            Self::NotAResource(message) => {
                write!(f, "/entry/cbor: the entry is no resource: {message}")
            }
            Self::ResourceDiffers => f.write_str(
                "/resource: not what the sealed entry says; only /entry/cbor is proved, and it reads otherwise",
            ),
            Self::OtherKey { found } => write!(
                f,
                "/seal/publicKey: signed by another key than the trusted one: {}",
                hex::encode(found)
            ),
            Self::BadSignature => {
                f.write_str("/seal/signature: not a signature by that key over what the seal says")
            }
            Self::Path(fault) => write!(f, "/path: the entry is not in the segment: {fault}"),
        }
    }
}

impl core::error::Error for ProofFault {}

impl Proof {
    /// Checks that the holder of `key` sealed the entry.
    ///
    /// # Errors
    /// The first fault, in this order: key, signature, path.
    pub fn verify(&self, key: &PublicKey) -> Result<Verified, ProofFault> {
        let root = self.seal.contents.root.ok_or(ProofFault::NoRoot)?;
        if self.seal.public_key != *key {
            return Err(ProofFault::OtherKey { found: self.seal.public_key });
        }
        if !self.seal.is_authentic() {
            return Err(ProofFault::BadSignature);
        }
        root.includes(merkle::leaf(&self.entry), self.index, &self.path)
            .map_err(ProofFault::Path)?;
        let Seal { segment, .. } = self.seal;
        Ok(Verified { segment, index: self.index, entries: root.entries })
    }

    /// The resource that the entry is, as a value.
    ///
    /// # Errors
    /// If the entry is no CBOR of a kind that OMIR uses, or no object.
    pub fn resource(&self) -> Result<Value, ProofFault> {
        let limits = Limits { max_bytes: MAX_BYTES, ..Limits::default() };
        match cbor::from_slice(&self.entry, &limits) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(other) => Err(ProofFault::NotAResource(other.kind_name().into())),
            Err(error) => Err(ProofFault::NotAResource(alloc::format!("{error}"))),
        }
    }

    /// The name of the resource, `None` if the entry states none.
    pub fn reference(&self) -> Option<Ref> {
        let resource = self.resource().ok()?;
        let text = |name: &str| resource.get(name).and_then(Value::as_str);
        Some(Ref::new(text("resourceType")?.parse().ok()?, Id::new(text("id")?).ok()?))
    }

    /// As the document, with the resource for people.
    ///
    /// # Errors
    /// As [`Proof::resource`].
    pub fn to_value(&self) -> Result<Value, ProofFault> {
        let mut map = Map::new();
        map.insert("format", FORMAT);
        map.insert("resource", self.resource()?);
        for (name, value) in self.evidence() {
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }

    /// As the text of the document, one line.
    ///
    /// # Errors
    /// As [`Proof::resource`].
    pub fn to_json(&self) -> Result<String, ProofFault> {
        Ok(json::to_string(&self.to_value()?) + "\n")
    }

    /// The members that prove.
    fn evidence(&self) -> [(&'static str, Value); 3] {
        let mut entry = Map::new();
        entry.insert("index", Value::Number(Number::from(self.index)));
        entry.insert("cbor", STANDARD.encode(&self.entry));
        let path = self.path.iter().map(|hash| Value::Text(hex::encode(hash)));
        [
            ("entry", Value::Object(entry)),
            ("path", Value::Array(path.collect())),
            ("seal", self.seal.to_value()),
        ]
    }
}
