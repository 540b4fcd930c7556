//! The identity of a caller over Zenoh: the token in the attachment of a query, a PUT or a DELETE (docs/keys.md,
//! "Tokens").
//! Invariant 38 of ARCHITECTURE.md.

use omird_access::Access;
use zenoh::bytes::ZBytes;

use crate::router::{Caller, Refusal, Unauthenticated};

/// The way in, for audit lines and counts.
pub(super) const ZENOH: &str = "zenoh";
/// The word before a token, as in HTTP (RFC 6750).
const BEARER: &str = "Bearer";
/// Bytes of an attachment that is looked at. A longer one holds no token of ours.
const MOST_BYTES: usize = 16 << 10;

/// Returns who asks with this attachment. Something that is no token at all says nothing, as ever: other programs may
/// attach what they like.
///
/// # Errors
/// `Unauthenticated`: a token that is wrong is refused, also where none is needed.
pub(super) fn identified(access: &Access, attachment: Option<&ZBytes>) -> Result<Caller, Refusal> {
    match attachment.map_or(Attached::Nothing, Attached::read) {
        Attached::Nothing => access.without_token(ZENOH),
        Attached::Token(token) => access.identify(ZENOH, &token),
        Attached::TooLong => Err(Refusal::Unauthenticated(Unauthenticated::Unknown)),
    }
}

/// The meaning of an attachment.
#[derive(Debug, PartialEq, Eq)]
enum Attached {
    /// It says nothing of who asks.
    Nothing,
    /// This token.
    Token(String),
    /// A token that cannot be one.
    TooLong,
}

impl Attached {
    fn read(attachment: &ZBytes) -> Self {
        let begins = attachment.slices().next().unwrap_or_default();
        if attachment.len() > MOST_BYTES {
            let is_meant = after_bearer(&begins[..begins.len().min(BEARER.len() + 1)]).is_some();
            return if is_meant { Self::TooLong } else { Self::Nothing };
        }
        let bytes = attachment.to_bytes();
        let Some(token) = after_bearer(&bytes) else { return Self::Nothing };
        // Bytes that are no text are no token, and are refused as one.
        Self::Token(String::from_utf8_lossy(token).trim().to_owned())
    }
}

/// Returns what stands behind the word, in capitals or not, and a blank.
fn after_bearer(bytes: &[u8]) -> Option<&[u8]> {
    let (word, token) = bytes.split_at_checked(BEARER.len())?;
    let is_word = word.eq_ignore_ascii_case(BEARER.as_bytes());
    let ends = token.first().is_none_or(u8::is_ascii_whitespace);
    (is_word && ends).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_its_word_and_anything_else_is_none() {
        let token = |text: &str| Attached::Token(text.to_owned());
        let long = format!("Bearer {}", "x".repeat(MOST_BYTES));
        for (text, expected) in [
            ("Bearer abc", token("abc")),
            ("bearer  abc\n", token("abc")),
            ("Bearer", token("")),
            ("Bearer ", token("")),
            ("Bearer a b", token("a b")),
            ("Bearers abc", Attached::Nothing),
            ("abc", Attached::Nothing),
            ("", Attached::Nothing),
            ("{\"cause\":\"Bearer abc\"}", Attached::Nothing),
            (&long, Attached::TooLong),
            (&long[7..], Attached::Nothing),
        ] {
            assert_eq!(Attached::read(&ZBytes::from(text)), expected, "{text:.20}");
        }
        let no_text = [b"Bearer ".as_slice(), &[0xff]].concat();
        assert_eq!(Attached::read(&ZBytes::from(no_text)), token("\u{fffd}"));
    }
}
