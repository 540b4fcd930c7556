//! Verifying a proof without its World: the checks of each method, and the verdict on a document from a stranger.
//!
//! The document is a VerificationProof, `{"method", "proof"?}`, as an Authority takes it out of the evidence. Evidence
//! itself is refused, because a verifier sees no time and no actor.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use ed25519_dalek::Signature;

use super::check::verification_proof;
use super::proof::{Path, Proof, bytes, hex, members};
use super::verifier::{Keys, Method, signed};
use crate::decode::Limits;
use crate::json;
use crate::merkle::climb;
use crate::pointer;
use crate::value::{Map, Value};

/// Bytes of the largest document that is read. The longest proof, a path of 64 hashes with the longest WorldId, has less
/// than a quarter of it.
pub const MAX_PROOF_BYTES: usize = 64 << 10;

/// Levels and values that no proof needs more of: a microcontroller reads it with little stack and heap.
const LIMITS: Limits = Limits { max_bytes: MAX_PROOF_BYTES, max_depth: 16, max_items: 1024 };

/// The reason why a document proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyFault {
    /// It is no VerificationProof, or its data is not in the form of its method.
    Unreadable {
        /// JSON Pointer to the fault, `/` for the document.
        path: String,
        /// The fault, and what belongs there.
        message: String,
    },
    /// It is evidence: a proof with a time and an actor.
    Evidence {
        /// The member that only evidence has.
        member: &'static str,
    },
    /// The method is `none`.
    NothingVerified,
    /// The method is unknown here.
    UnknownMethod(String),
    /// No trusted key signed it.
    OtherKey {
        /// The key that the proof names.
        found: [u8; 32],
    },
    /// The signature is not by that key over this WorldId and this hash.
    BadSignature,
    /// A digest is not the one that it is compared with.
    DigestDiffers {
        /// JSON Pointer to the digest.
        path: &'static str,
    },
}

impl VerifyFault {
    /// Returns a short name of the kind of fault, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::Evidence { .. } => "evidence",
            Self::NothingVerified => "nothing-verified",
            Self::UnknownMethod(_) => "unknown-method",
            Self::OtherKey { .. } => "other-key",
            Self::BadSignature => "bad-signature",
            Self::DigestDiffers { .. } => "digest-differs",
        }
    }

    fn at(path: &str, message: impl Into<String>) -> Self {
        Self::Unreadable { path: pointer::displayed(path).into(), message: message.into() }
    }
}

impl fmt::Display for VerifyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, message } => write!(f, "no proof: {path}: {message}"),
            Self::Evidence { member } => write!(
                f,
                "/{member}: this is evidence; extract the proof from it: an object with its `method` and its `proof`, \
                 and nothing else"
            ),
            Self::NothingVerified => f.write_str("/method: `none` verifies nothing"),
            Self::UnknownMethod(method) => write!(
                f,
                "/method: {method:?} is not known here, only existence, hash, merkle and signature; whoever made the \
                 method must verify it"
            ),
            Self::OtherKey { found } => {
                write!(f, "/proof/publicKey: signed by a key that is not trusted: {}", hex(found))
            }
            Self::BadSignature => f.write_str(
                "/proof/signature: not a signature by that key over this WorldId and this hash",
            ),
            Self::DigestDiffers { path } => {
                write!(f, "{path}: not the digest that the proof computed")
            }
        }
    }
}

impl core::error::Error for VerifyFault {}

impl Keys {
    /// Returns true if a proof holds: [`Keys::check`].
    pub fn verify(&self, proof: &Proof) -> bool {
        self.check(proof).is_ok()
    }

    /// Checks that a proof holds. It needs no World, no store and no time.
    ///
    /// # Errors
    /// The first fault. An unknown method never holds.
    pub fn check(&self, proof: &Proof) -> Result<(), VerifyFault> {
        match Method::by_name(&proof.method) {
            Some(Method::None) => Err(VerifyFault::NothingVerified),
            // It has no data: with some it could name a World, and be taken for a proof of that one.
            Some(Method::Existence) if proof.proof.is_some() => {
                Err(VerifyFault::at("/proof", "`existence` has no data: leave `proof` out"))
            }
            Some(Method::Existence) => Ok(()),
            Some(Method::Hash) => check_hash(proof),
            Some(Method::Merkle) => check_merkle(proof),
            Some(Method::Signature) => self.check_signature(proof),
            None => Err(VerifyFault::UnknownMethod(proof.method.clone())),
        }
    }

    fn check_signature(&self, proof: &Proof) -> Result<(), VerifyFault> {
        let map = form(proof, "ed25519", &["hash", "publicKey", "signature"])?;
        let (found, hash) = (digits(map, "publicKey")?, digits(map, "hash")?);
        let signature = Signature::from_bytes(&digits(map, "signature")?);
        let key = self.trusted.iter().find(|trusted| *trusted.as_bytes() == found);
        let key = key.ok_or(VerifyFault::OtherKey { found })?;
        let message = signed(proof.world_id().unwrap_or_default(), &hash);
        key.verify_strict(&message, &signature).map_err(|_| VerifyFault::BadSignature)
    }
}

fn check_hash(proof: &Proof) -> Result<(), VerifyFault> {
    let map = form(proof, "sha-256", &["computedHash", "expectedHash"])?;
    let computed: [u8; 32] = digits(map, "computedHash")?;
    same(digits(map, "expectedHash")?, computed, "/proof/expectedHash")
}

fn check_merkle(proof: &Proof) -> Result<(), VerifyFault> {
    let map = form(proof, "sha-256", &["computedRoot", "expectedRoot", "pathProof"])?;
    let computed: [u8; 32] = digits(map, "computedRoot")?;
    if let Some(path) = map.get("pathProof") {
        let expected = "a `leafHash`, and at most 64 `siblings` with `hash` and `position`";
        let path = Path::from_value(path);
        let path = path.ok_or_else(|| VerifyFault::at("/proof/pathProof", expected))?;
        same(climb(path.leaf, path.siblings), computed, "/proof/pathProof")?;
    }
    same(digits(map, "expectedRoot")?, computed, "/proof/expectedRoot")
}

fn same(found: [u8; 32], computed: [u8; 32], path: &'static str) -> Result<(), VerifyFault> {
    if found == computed { Ok(()) } else { Err(VerifyFault::DigestDiffers { path }) }
}

/// Returns the members of a proof in the form of its method.
fn form<'a>(proof: &'a Proof, algorithm: &str, known: &[&str]) -> Result<&'a Map, VerifyFault> {
    members(proof, algorithm, known).ok_or_else(|| {
        let message = format!(
            "an object with `alg` {algorithm:?}, `canon` \"jcs\", the `worldId`, {}, and nothing else",
            known.join(", ")
        );
        VerifyFault::at("/proof", message)
    })
}

/// Reads a member of a proof as bytes.
fn digits<const N: usize>(map: &Map, name: &str) -> Result<[u8; N], VerifyFault> {
    bytes(map, name).ok_or_else(|| {
        VerifyFault::at(&pointer::join("/proof", name), format!("{} lower-case hex digits", 2 * N))
    })
}

/// Reads a VerificationProof from its text, JSON of at most [`MAX_PROOF_BYTES`].
///
/// # Errors
/// If it is evidence, or no VerificationProof: not `method` and `proof` alone.
pub fn read_proof(document: &[u8]) -> Result<Proof, VerifyFault> {
    let value = json::from_slice(document, &LIMITS)
        .map_err(|error| VerifyFault::at(&error.pointer, error.to_string()))?;
    let map = value.as_object();
    let map = map.ok_or_else(|| VerifyFault::at("/", "an object with `method` and `proof`"))?;
    let foreign = ["verifiedAt", "verifiedBy"].into_iter().find(|name| map.get(name).is_some());
    if let Some(member) = foreign {
        return Err(VerifyFault::Evidence { member });
    }
    if let Some(fault) = verification_proof(&value, true).into_iter().next() {
        return Err(VerifyFault::at(&fault.pointer, fault.text));
    }
    Proof::extract(&value).ok_or_else(|| VerifyFault::at("/method", "a name of a method"))
}

/// Judges a document by one public key: `{"valid": true, "method", …}`, or `{"valid": false, "fault", "message"}`.
///
/// `docs/manifesto.md` has the members. What it depends on is in its arguments, so it gives the same on every machine.
pub fn verdict(document: &[u8], key: &[u8; 32]) -> Value {
    let keys = Keys::verifying().trusting(key);
    let judged = read_proof(document).and_then(|proof| keys.check(&proof).map(|()| proof));
    let mut map = Map::new();
    map.insert("valid", judged.is_ok());
    match judged {
        Ok(proof) => {
            map.insert("method", proof.method.as_str());
            // `existence` has no form: members beside it were not checked.
            if proof.method != Method::Existence.as_str()
                && let Some(world_id) = proof.world_id()
            {
                map.insert("worldId", world_id);
            }
            if proof.method == Method::Signature.as_str() {
                map.insert("publicKey", hex(key));
            }
        }
        Err(fault) => {
            map.insert("fault", fault.name());
            map.insert("message", fault.to_string());
        }
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests;
