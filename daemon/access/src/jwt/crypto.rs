//! The signatures of JWTs, for the crate `jsonwebtoken`: the two algorithms that are taken, by the crates that omird links
//! for other reasons. Any other algorithm has no verifier.

use ed25519_dalek::VerifyingKey;
use hmac::{Hmac, Mac as _};
use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use sha2::Sha256;

static PROVIDER: CryptoProvider = CryptoProvider {
    // omird signs none.
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    // JWKs are not read.
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Makes the crate use these; once in a process, and again without effect.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, jsonwebtoken::errors::Error> {
    match (algorithm, key.family()) {
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => {
            let bytes = key.as_bytes().try_into().map_err(|_| ErrorKind::InvalidKeyFormat)?;
            let key = VerifyingKey::from_bytes(bytes).map_err(|_| ErrorKind::InvalidKeyFormat)?;
            Ok(Box::new(EdDsa(key)))
        }
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            let mac =
                Hmac::new_from_slice(key.as_bytes()).map_err(|_| ErrorKind::InvalidKeyFormat)?;
            Ok(Box::new(Hs256(mac)))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct EdDsa(VerifyingKey);

impl Verifier<Vec<u8>> for EdDsa {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let signature = ed25519_dalek::Signature::from_slice(signature)?;
        self.0.verify_strict(message, &signature)
    }
}

impl JwtVerifier for EdDsa {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct Hs256(Hmac<Sha256>);

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        // In a time that does not tell how much of it is right.
        let mac = self.0.clone().chain_update(message);
        mac.verify_slice(signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
