//! The key that a device signs its segments with. What it signs is a seal: [`omir_core::seal`].

use std::fmt;

use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, Mac as _};
use omir_core::hex;
use omir_core::merkle::Hash;
pub use omir_core::seal::{Contents, Seal, SealFault, chain_breaks};
use sha2::Sha256;

/// The key a device signs its segments with.
#[derive(Clone)]
pub struct DeviceKey(SigningKey);

impl DeviceKey {
    /// The key with this secret.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&secret))
    }

    /// The secret half, for whoever signs something else than segments with it, under a prefix of its own.
    pub fn secret(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The public half, as lower-case hex.
    pub fn public_hex(&self) -> String {
        hex::encode(self.0.verifying_key().as_bytes())
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
        previous: Hash,
        last: Option<Hash>,
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

#[cfg(test)]
mod tests {
    use omir_core::merkle::Root;

    use super::*;
    use crate::digest::{Digest, digest};

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

    #[test]
    fn a_derived_key_is_of_one_purpose_and_one_device() {
        let key = DeviceKey::from_secret([7; 32]);
        let derived = key.derived("people");
        assert_eq!(derived, DeviceKey::from_secret([7; 32]).derived("people"));
        assert_ne!(derived, key.derived("places"));
        assert_ne!(derived, DeviceKey::from_secret([8; 32]).derived("people"));
        assert_ne!(derived, [7; 32]);
    }
}
