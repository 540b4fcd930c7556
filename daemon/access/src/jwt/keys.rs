//! The keys that JWTs may be signed with.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::VerifyingKey;
use jsonwebtoken::{Algorithm, DecodingKey};
use omir_core::hex;
use sha2::{Digest as _, Sha256};

/// RFC 8410, section 4: what stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// RFC 7518, section 3.2: a key of HS256 is no shorter than its hash.
const LEAST_SECRET: usize = 32;

/// A key that a JWT may be signed with. `Debug` does not show it.
#[derive(Clone)]
pub struct JwtKey {
    algorithm: Algorithm,
    decoding: DecodingKey,
    digest: [u8; 32],
}

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidKey {
    /// No public key of Ed25519 in a form that is known.
    NoPublicKey,
    /// A key by which anybody can sign.
    Weak,
    /// A private key, which does not belong on a robot.
    Private,
    /// A public key where a secret should be: everybody knows it.
    NoSecret,
    /// A secret that can be guessed.
    Short,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPublicKey => {
                "is no public key of Ed25519: a PEM text (openssl pkey -pubout), or its 32 bytes in base64 or hexadecimal \
                 digits"
            }
            Self::Weak => "is a weak key: anybody could sign for it",
            Self::Private => "is a private key; only its public half belongs here (openssl pkey -pubout)",
            Self::NoSecret => "is a PEM text, and no secret; a public key is named with `eddsa_file`",
            Self::Short => "has less than 32 bytes: openssl rand -base64 32 makes a secret",
        })
    }
}

impl std::error::Error for InvalidKey {}

impl JwtKey {
    /// Returns the public key of EdDSA in a text.
    ///
    /// # Errors
    /// If it is none.
    pub fn eddsa(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        if text.contains("PRIVATE KEY") {
            return Err(InvalidKey::Private);
        }
        let bytes = public_bytes(text).ok_or(InvalidKey::NoPublicKey)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| InvalidKey::NoPublicKey)?;
        if key.is_weak() {
            return Err(InvalidKey::Weak);
        }
        Ok(Self::of(Algorithm::EdDSA, DecodingKey::from_ed_der(&bytes), &bytes))
    }

    /// Returns the secret of HS256 in the bytes of a file, without a line end behind it.
    ///
    /// # Errors
    /// If it is none.
    pub fn hs256(bytes: &[u8]) -> Result<Self, InvalidKey> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.starts_with(b"-----BEGIN") {
            return Err(InvalidKey::NoSecret);
        }
        if bytes.len() < LEAST_SECRET {
            return Err(InvalidKey::Short);
        }
        Ok(Self::of(Algorithm::HS256, DecodingKey::from_secret(bytes), bytes))
    }

    fn of(algorithm: Algorithm, decoding: DecodingKey, bytes: &[u8]) -> Self {
        Self { algorithm, decoding, digest: Sha256::digest(bytes).into() }
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }
}

/// By digest: that a configuration is the same as before needs no look at a secret.
impl PartialEq for JwtKey {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && self.digest == other.digest
    }
}

impl Eq for JwtKey {}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKey({:?}, …)", self.algorithm)
    }
}

fn public_bytes(text: &str) -> Option<[u8; 32]> {
    if let Some(rest) = text.strip_prefix("-----BEGIN PUBLIC KEY-----") {
        let (body, _) = rest.split_once("-----END PUBLIC KEY-----")?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).ok()?;
        return der.strip_prefix(&SPKI)?.try_into().ok();
    }
    if let Some(bytes) = hex::decode(text) {
        return Some(bytes);
    }
    let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    #[test]
    fn a_public_key_is_read_in_each_form() {
        let bytes = SigningKey::from_bytes(&[7; 32]).verifying_key().to_bytes();
        let der: Vec<u8> = SPKI.iter().chain(&bytes).copied().collect();
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(der)
        );
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        let key = JwtKey::eddsa(&pem).unwrap();
        for form in [hex, STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)] {
            assert_eq!(JwtKey::eddsa(&form).unwrap(), key, "{form}");
        }
        assert!(!format!("{key:?}").contains("255"), "{key:?}");
    }

    #[test]
    fn what_is_no_key_is_refused_with_a_reason() {
        for (text, why) in [
            ("", InvalidKey::NoPublicKey),
            ("nonsense", InvalidKey::NoPublicKey),
            ("-----BEGIN PUBLIC KEY-----", InvalidKey::NoPublicKey),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", InvalidKey::NoPublicKey),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", InvalidKey::Private),
            (&"0".repeat(64), InvalidKey::Weak),
        ] {
            assert_eq!(JwtKey::eddsa(text).unwrap_err(), why, "{text}");
        }
        assert_eq!(JwtKey::hs256(b"hunter2\n").unwrap_err(), InvalidKey::Short);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{}", "A".repeat(44));
        assert_eq!(JwtKey::hs256(pem.as_bytes()).unwrap_err(), InvalidKey::NoSecret);
        let with_line_end = [&[b'k'; 32][..], b"\n"].concat();
        assert_eq!(JwtKey::hs256(&with_line_end), JwtKey::hs256(&[b'k'; 32]));
    }
}
