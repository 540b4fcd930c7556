//! The text of a token: what is shown once, and what is kept of it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The beginning of each token, so that people, logs and scanners of repositories know one.
pub const PREFIX: &str = "omird_";
/// Characters of a token: the prefix, and 256 bits in base64url.
pub(crate) const LENGTH: usize = PREFIX.len() + 43;

/// SHA-256 of a token: what is kept of it. The token has 256 bits of its own, so that no slower hash is called for.
pub(crate) type Digest = [u8; 32];

/// A token, as it is shown once. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a token of random bytes.
    pub(crate) fn of(random: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random)))
    }

    /// Returns the token if the text has the form of one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (text.len() == LENGTH && digits.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the text that is sent as `Bearer TOKEN`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> Digest {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_form_that_is_known_again() {
        let secret = Secret::of([0xfb; 32]);
        assert_eq!(secret.as_str().len(), LENGTH);
        assert_eq!(Secret::parse(secret.as_str()), Some(secret.clone()));
        assert_ne!(Secret::of([1; 32]).digest(), secret.digest());
        for other in ["", "omird_", "omird_short", &secret.as_str()[1..], &"x".repeat(LENGTH)] {
            assert_eq!(Secret::parse(other), None, "{other}");
        }
        assert_eq!(Secret::parse(&secret.as_str().replace('-', "é")), None);
        assert!(!format!("{secret:?}").contains(&secret.as_str()[6..]), "{secret:?}");
    }
}
