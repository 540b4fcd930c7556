//! Integrity and signature of a sealed segment: `segments/<number>.sig`, one small JSON object.
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
//! ([`omir_core::merkle`]), so that one of them can be shown to be in it without the others.
//!
//! A compacted segment takes the place of a run of others in the chain: `previous` is that of the first it
//! replaces, and one more member, `last`, is the link of the last; it is signed behind `previous`. The segments
//! around it stay as they were signed.
//!
//! Older releases wrote neither `entries` nor `entriesRoot`, and signed what is left with a `1` in place of the
//! `3`, or with `last` a `2`; such seals stay as they are.

use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use hmac::{Hmac, Mac as _};
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::merkle::Root;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use sha2::Sha256;

use crate::digest::{Digest, digest, hex, unhex};

const FORMAT: &str = "omird-signature-3";
/// The format of a seal without a root.
const FORMAT_PLAIN: &str = "omird-signature-1";
/// The same of one that stands for a run of segments.
const FORMAT_PLAIN_COMPACTED: &str = "omird-signature-2";

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

    /// Returns a key for something else than signing, drawn from this one: the same for the same purpose, and telling nothing
    /// of this one or of another purpose (HMAC-SHA-256 of the purpose under the secret, RFC 2104).
    pub fn derived(&self, purpose: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes())
            .expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// Signs segment `number`, which follows the one whose link is `previous`. One that replaces a run of others has
    /// the `previous` of the first of them, and as `last` the link of the last.
    pub fn sign(
        &self,
        number: u64,
        contents: &Contents,
        previous: Digest,
        last: Option<Digest>,
    ) -> Seal {
        let public_key = self.0.verifying_key().to_bytes();
        let contents = *contents;
        let mut seal =
            Seal { segment: number, contents, previous, last, public_key, signature: [0; 64] };
        seal.signature = self.0.sign(&seal.message()).to_bytes();
        seal
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKey({})", self.public_hex())
    }
}

/// The signed facts of a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Digest,
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
    pub previous: Digest,
    /// The link of the last segment it replaces; nothing for a segment sealed from a log.
    pub last: Option<Digest>,
    /// The public key of the signer.
    pub public_key: [u8; 32],
    /// The signature.
    pub signature: [u8; 64],
}

/// Why a seal does not hold.
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

/// Breaks of a chain of seals: the positions of those that do not follow the one before them.
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
    /// The link that the seal of the next segment names as its `previous`.
    pub fn link(&self) -> Digest {
        self.last.unwrap_or(self.contents.sha256)
    }

    /// The signed message.
    fn message(&self) -> Vec<u8> {
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

    /// As the text of a `.sig` file.
    pub fn to_json(&self) -> String {
        let int = |n: u64| Value::Number(Number::from(n));
        let Contents { bytes, sha256, root } = &self.contents;
        let format = match (root, self.last) {
            (Some(_), _) => FORMAT,
            (None, None) => FORMAT_PLAIN,
            (None, Some(_)) => FORMAT_PLAIN_COMPACTED,
        };
        let mut map = Map::new();
        map.insert("format", format);
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
        json::to_string(&Value::Object(map)) + "\n"
    }

    /// Reads the text of a `.sig` file.
    pub fn from_json(text: &[u8]) -> Result<Self, SealFault> {
        let limits = Limits { max_bytes: 4096, ..Limits::default() };
        let value = json::from_slice(text, &limits).map_err(|_| SealFault::Unreadable)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let int = |name: &str| value.get(name).and_then(Value::as_u64);
        let (has_root, has_last) = match text("format") {
            Some(FORMAT) => (true, value.get("last").is_some()),
            Some(FORMAT_PLAIN) => (false, false),
            Some(FORMAT_PLAIN_COMPACTED) => (false, true),
            _ => return Err(SealFault::Unreadable),
        };
        (|| {
            Some(Self {
                segment: int("segment")?,
                contents: Contents {
                    bytes: int("bytes")?,
                    sha256: unhex(text("sha256")?)?,
                    root: match has_root {
                        true => Some(Root {
                            entries: int("entries")?,
                            hash: unhex(text("entriesRoot")?)?,
                        }),
                        false => None,
                    },
                },
                previous: unhex(text("previous")?)?,
                last: if has_last { Some(unhex(text("last")?)?) } else { None },
                public_key: unhex(text("publicKey")?)?,
                signature: unhex(text("signature")?)?,
            })
        })()
        .ok_or(SealFault::Unreadable)
    }

    /// Checks the seal against the segment's bytes and the link of the segment before it.
    pub fn verify(&self, segment: &[u8], previous: &Digest) -> Result<(), SealFault> {
        let Contents { bytes, sha256, .. } = self.contents;
        if bytes != segment.len() as u64 || sha256 != digest(segment) {
            return Err(SealFault::DigestDiffers);
        }
        if self.previous != *previous {
            return Err(SealFault::ChainBroken);
        }
        if self.is_authentic() { Ok(()) } else { Err(SealFault::BadSignature) }
    }

    /// Returns true if the signature is by the key in the file over what the file says, whatever the
    /// segment holds.
    pub fn is_authentic(&self) -> bool {
        VerifyingKey::from_bytes(&self.public_key)
            .and_then(|key| key.verify(&self.message(), &Signature::from_bytes(&self.signature)))
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(digest: Digest) -> Contents {
        Contents { bytes: 5, sha256: digest, root: Some(Root::of([&b"entry"[..]])) }
    }

    fn seal() -> Seal {
        DeviceKey::from_secret([7; 32]).sign(3, &contents(digest(b"bytes")), [1; 32], None)
    }

    #[test]
    fn a_seal_survives_its_file_and_verifies() {
        let read = Seal::from_json(seal().to_json().as_bytes()).unwrap();
        assert_eq!(read, seal());
        assert_eq!(read.verify(b"bytes", &[1; 32]), Ok(()));
    }

    #[test]
    fn seals_of_older_releases_are_read_as_they_were_signed() {
        let key = DeviceKey::from_secret([7; 32]);
        let plain = Contents { root: None, ..contents(digest(b"bytes")) };
        for (last, format) in [(None, "omird-signature-1"), (Some([2; 32]), "omird-signature-2")] {
            let seal = key.sign(3, &plain, [1; 32], last);
            let text = seal.to_json();
            assert!(text.contains(format) && !text.contains("entries"), "{text}");
            let read = Seal::from_json(text.as_bytes()).unwrap();
            assert_eq!(read, seal);
            assert!(read.is_authentic());
        }
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
            chain.push(key.sign(u64::from(n), &contents([n; 32]), previous, None));
        }
        assert_eq!(chain_breaks(&chain), Vec::<usize>::new());
        for run in [0..1, 0..3, 1..3, 2..5, 0..5] {
            let (first, last) = (&chain[run.start], &chain[run.end - 1]);
            let seal = key.sign(6, &contents([6; 32]), first.previous, Some(last.link()));
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
        let first = key.sign(1, &contents([1; 32]), Digest::default(), None);
        let run = key.sign(4, &contents([4; 32]), first.link(), Some([3; 32]));
        let third = key.sign(5, &contents([5; 32]), run.link(), None);
        assert_eq!(chain_breaks([&first, &third]), [1]);
        assert_eq!(chain_breaks([&run, &third]), [0]);
        assert_eq!(chain_breaks([&first, &third, &run]), [1, 2]);
        let forged = Seal { last: Some([9; 32]), ..run.clone() };
        assert!(!forged.is_authentic(), "`last` is signed");
        let unmarked = Seal { last: None, ..run };
        assert!(!unmarked.is_authentic(), "that there is a `last` is signed");
        let mut rootless = first;
        rootless.contents.root = None;
        assert!(!rootless.is_authentic(), "the root is signed");
    }
}
