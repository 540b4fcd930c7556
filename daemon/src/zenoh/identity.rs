//! The identity of a caller over Zenoh: the token in the attachment of a query, a PUT or a DELETE (docs/keys.md,
//! "Tokens").
//! Invariant 38 of ARCHITECTURE.md.

use std::io::Read;

use omird_access::{Access, ENOUGH_OF_CREDENTIAL, bearer};
use zenoh::bytes::ZBytes;

use crate::router::{Caller, Refusal};

/// The way in, for audit lines and counts.
pub(super) const ZENOH: &str = "zenoh";

/// Returns the caller with this attachment. Something that is no token at all says nothing, as ever: other programs may
/// attach what they like.
///
/// # Errors
/// `Unauthenticated`: a token that is wrong is refused, also where none is needed.
pub(super) fn identified(access: &Access, attachment: Option<&ZBytes>) -> Result<Caller, Refusal> {
    let credential = attachment.map(beginning).unwrap_or_default();
    match bearer(&credential).map_err(Refusal::Unauthenticated)? {
        Some(token) => access.identify(ZENOH, token),
        None => access.without_token(ZENOH),
    }
}

/// Returns as much of an attachment as tells of a token: others may be large.
fn beginning(attachment: &ZBytes) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Memory gives what it has.
    let _ = attachment.reader().take(ENOUGH_OF_CREDENTIAL as u64).read_to_end(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::Protocols;
    use crate::router::Unauthenticated;

    #[test]
    fn a_token_is_known_and_any_other_attachment_says_nothing() {
        let access = Access::open_to_all(Protocols::SCOPES);
        let unknown = Refusal::Unauthenticated(Unauthenticated::Unknown);
        let long = format!("Bearer {}", "x".repeat(1 << 20));
        for wrong in ["Bearer abc", "bearer  abc\n", "Bearer", "Bearer a b", &long] {
            let refusal = identified(&access, Some(&ZBytes::from(wrong))).unwrap_err();
            assert_eq!(refusal, unknown, "{wrong:.20}");
        }
        for other in ["Bearers abc", "abc", "", "{\"cause\":\"Bearer abc\"}", &long[7..]] {
            let caller = identified(&access, Some(&ZBytes::from(other))).unwrap();
            assert_eq!(&*caller.name, ZENOH, "{other:.20}");
        }
        assert_eq!(&*identified(&access, None).unwrap().name, ZENOH);
    }

    /// An attachment may come in pieces, none of which holds the word.
    #[test]
    fn a_token_is_read_from_pieces() {
        let mut writer = ZBytes::writer();
        for piece in ["Bea", "rer", " a"] {
            writer.append(ZBytes::from(piece));
        }
        assert_eq!(bearer(&beginning(&writer.finish())), Ok(Some("a")));
    }
}
