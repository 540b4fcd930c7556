//! Integrity and signature of a sealed segment: `segments/<number>.sig`, one small JSON object.
//!
//! ```json
//! {"format": "omird-signature-1", "segment": 2, "bytes": 81234, "sha256": "…", "previous": "…",
//!  "publicKey": "…", "signature": "…"}
//! ```
//!
//! Everything is lower-case hex. The signature is Ed25519 (RFC 8032) by the device key over
//! `"omird segment 1\n" ‖ segment:u64 ‖ bytes:u64 ‖ sha256 ‖ previous` with big-endian integers,
//! where `previous` is the link of the segment before (zeros for the first). The link of a segment
//! is its SHA-256. So a segment can be neither changed, nor left out, nor put in another order
//! without the chain telling.
//!
//! A compacted segment takes the place of a run of others in the chain: its seal has the format
//! `omird-signature-2`, `previous` is that of the first it replaces, and one more member, `last`, is
//! the link of the last. The signature is then over
//! `"omird segment 2\n" ‖ segment:u64 ‖ bytes:u64 ‖ sha256 ‖ previous ‖ last`. The segments around
//! it stay as they were signed.

use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a segment file.
pub type Digest = [u8; 32];

const FORMAT: &str = "omird-signature-1";
/// The format of a seal that stands for a run of segments.
const FORMAT_COMPACTED: &str = "omird-signature-2";

/// SHA-256 of bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// The key a device signs its segments with.
#[derive(Clone)]
pub struct DeviceKey(SigningKey);

impl DeviceKey {
    /// The key with this secret.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&secret))
    }

    /// The public half, as lower-case hex.
    pub fn public_hex(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    /// Signs a segment that was sealed from a log.
    pub fn sign(&self, segment: u64, bytes: u64, sha256: Digest, previous: Digest) -> Seal {
        self.seal(segment, bytes, sha256, previous, None)
    }

    /// Signs a segment that replaces a run of others: `previous` is that of the first of them, `last`
    /// the link of the last.
    pub fn sign_compacted(
        &self,
        segment: u64,
        bytes: u64,
        sha256: Digest,
        previous: Digest,
        last: Digest,
    ) -> Seal {
        self.seal(segment, bytes, sha256, previous, Some(last))
    }

    fn seal(
        &self,
        segment: u64,
        bytes: u64,
        sha256: Digest,
        previous: Digest,
        last: Option<Digest>,
    ) -> Seal {
        let public_key = self.0.verifying_key().to_bytes();
        let mut seal =
            Seal { segment, bytes, sha256, previous, last, public_key, signature: [0; 64] };
        seal.signature = self.0.sign(&seal.message()).to_bytes();
        seal
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKey({})", self.public_hex())
    }
}

/// The contents of a `.sig` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Number of the segment.
    pub segment: u64,
    /// Length of the segment file.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Digest,
    /// The link of the segment before it.
    pub previous: Digest,
    /// The link of the last segment it replaces; nothing for a segment sealed from a log.
    pub last: Option<Digest>,
    /// Who signed.
    pub public_key: [u8; 32],
    /// The signature.
    pub signature: [u8; 64],
}

/// Why a seal does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealFault {
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
            Self::Unreadable => "the signature file is unreadable",
            Self::DigestDiffers => "the segment's bytes are not the ones that were signed",
            Self::ChainBroken => "it was not signed as the successor of the segment before it",
            Self::BadSignature => "the signature does not verify",
        })
    }
}

/// Where a chain of seals breaks: the positions of those that do not follow the one before them.
///
/// `seals` are in the order of their segments' first transactions. The first must name 64 zeros.
/// Whether each is authentic and right about its file is another question: [`Seal::verify`].
pub fn chain_breaks<'a>(seals: impl IntoIterator<Item = &'a Seal>) -> Vec<usize> {
    let mut before = Digest::default();
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
    /// What the seal of the next segment names as its `previous`.
    pub fn link(&self) -> Digest {
        self.last.unwrap_or(self.sha256)
    }

    /// What is signed.
    fn message(&self) -> Vec<u8> {
        let mut message: Vec<u8> = match self.last {
            None => b"omird segment 1\n".to_vec(),
            Some(_) => b"omird segment 2\n".to_vec(),
        };
        message.extend_from_slice(&self.segment.to_be_bytes());
        message.extend_from_slice(&self.bytes.to_be_bytes());
        message.extend_from_slice(&self.sha256);
        message.extend_from_slice(&self.previous);
        message.extend(self.last.iter().flatten());
        message
    }

    /// As the text of a `.sig` file.
    pub fn to_json(&self) -> String {
        let int = |n: u64| Value::Number(Number::from(n));
        let format = if self.last.is_some() { FORMAT_COMPACTED } else { FORMAT };
        let members = [
            ("format", Value::from(format)),
            ("segment", int(self.segment)),
            ("bytes", int(self.bytes)),
            ("sha256", hex(&self.sha256).into()),
            ("previous", hex(&self.previous).into()),
            ("publicKey", hex(&self.public_key).into()),
            ("signature", hex(&self.signature).into()),
        ];
        let last = self.last.map(|last| ("last", hex(&last).into()));
        let map: Map = members.into_iter().chain(last).map(|(k, v)| (k.to_owned(), v)).collect();
        json::to_string(&Value::Object(map)) + "\n"
    }

    /// Reads the text of a `.sig` file.
    pub fn from_json(text: &[u8]) -> Result<Self, SealFault> {
        let limits = Limits { max_bytes: 4096, ..Limits::default() };
        let value = json::from_slice(text, &limits).map_err(|_| SealFault::Unreadable)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let int = |name: &str| value.get(name).and_then(Value::as_u64);
        let is_compacted = match text("format") {
            Some(FORMAT) => false,
            Some(FORMAT_COMPACTED) => true,
            _ => return Err(SealFault::Unreadable),
        };
        (|| {
            Some(Self {
                segment: int("segment")?,
                bytes: int("bytes")?,
                sha256: unhex(text("sha256")?)?,
                previous: unhex(text("previous")?)?,
                last: if is_compacted { Some(unhex(text("last")?)?) } else { None },
                public_key: unhex(text("publicKey")?)?,
                signature: unhex(text("signature")?)?,
            })
        })()
        .ok_or(SealFault::Unreadable)
    }

    /// Checks the seal against the segment's bytes and the link of the segment before it.
    pub fn verify(&self, segment: &[u8], previous: &Digest) -> Result<(), SealFault> {
        if self.bytes != segment.len() as u64 || self.sha256 != digest(segment) {
            return Err(SealFault::DigestDiffers);
        }
        if self.previous != *previous {
            return Err(SealFault::ChainBroken);
        }
        if self.is_authentic() { Ok(()) } else { Err(SealFault::BadSignature) }
    }

    /// Whether the signature is by the key in the file over what the file says, whatever the
    /// segment holds.
    pub fn is_authentic(&self) -> bool {
        VerifyingKey::from_bytes(&self.public_key)
            .and_then(|key| key.verify(&self.message(), &Signature::from_bytes(&self.signature)))
            .is_ok()
    }
}

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads lower- or upper-case hex of exactly `N` bytes.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        DeviceKey::from_secret([7; 32]).sign(3, 5, digest(b"bytes"), [1; 32])
    }

    #[test]
    fn a_seal_survives_its_file_and_verifies() {
        let read = Seal::from_json(seal().to_json().as_bytes()).unwrap();
        assert_eq!(read, seal());
        assert_eq!(read.verify(b"bytes", &[1; 32]), Ok(()));
    }

    #[test]
    fn every_kind_of_tampering_is_named() {
        assert_eq!(seal().verify(b"bytez", &[1; 32]), Err(SealFault::DigestDiffers));
        assert_eq!(seal().verify(b"bytes", &[2; 32]), Err(SealFault::ChainBroken));
        let renumbered = Seal { segment: 4, ..seal() };
        assert_eq!(renumbered.verify(b"bytes", &[1; 32]), Err(SealFault::BadSignature));
        assert_eq!(Seal::from_json(b"{}"), Err(SealFault::Unreadable));
    }

    #[test]
    fn a_seal_that_stands_for_a_run_holds_the_chain_together() {
        let key = DeviceKey::from_secret([7; 32]);
        let mut chain: Vec<Seal> = Vec::new();
        for n in 1..=5u8 {
            let previous = chain.last().map_or(Digest::default(), Seal::link);
            chain.push(key.sign(u64::from(n), 5, [n; 32], previous));
        }
        assert_eq!(chain_breaks(&chain), Vec::<usize>::new());
        for run in [0..1, 0..3, 1..3, 2..5, 0..5] {
            let (first, last) = (&chain[run.start], &chain[run.end - 1]);
            let seal = key.sign_compacted(6, 5, [6; 32], first.previous, last.link());
            let read = Seal::from_json(seal.to_json().as_bytes()).unwrap();
            assert_eq!(read, seal);
            assert!(read.is_authentic());
            let mut compacted = chain.clone();
            compacted.splice(run.clone(), [read]);
            assert_eq!(chain_breaks(&compacted), Vec::<usize>::new(), "{run:?}");
        }
    }

    #[test]
    fn a_chain_tells_where_a_seal_is_missing_or_moved() {
        let key = DeviceKey::from_secret([7; 32]);
        let first = key.sign(1, 5, [1; 32], Digest::default());
        let run = key.sign_compacted(4, 5, [4; 32], first.link(), [3; 32]);
        let third = key.sign(5, 5, [5; 32], run.link());
        assert_eq!(chain_breaks([&first, &third]), [1]);
        assert_eq!(chain_breaks([&run, &third]), [0]);
        assert_eq!(chain_breaks([&first, &third, &run]), [1, 2]);
        let forged = Seal { last: Some([9; 32]), ..run.clone() };
        assert!(!forged.is_authentic(), "`last` is signed");
        let unmarked = Seal { last: None, ..run };
        assert!(!unmarked.is_authentic(), "the format is signed");
    }
}
