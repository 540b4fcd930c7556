//! `Bearer TOKEN` (RFC 6750, section 2.1), as an `Authorization` header and a Zenoh attachment have it.

use omird_router::Unauthenticated;

/// Bytes of a token or JWT; a longer one is not looked at, whatever way it comes. A JWT with many scopes has some hundred.
pub const LONGEST_TOKEN: usize = 8 << 10;
/// Bytes of a credential that are enough to tell that its token is too long: the word and blanks, the token, and one more.
pub const ENOUGH_OF_CREDENTIAL: usize = LONGEST_TOKEN + 64;

/// The word before a token, in any case.
const SCHEME: &str = "Bearer";

/// Returns the token of a credential; `None` if it is of another scheme, and so says nothing of tokens.
///
/// # Errors
/// `Unknown`: it is of this scheme, and has no token, more than one word, or more than [`LONGEST_TOKEN`] bytes, or is no
/// text.
pub fn bearer(credential: &[u8]) -> Result<Option<&str>, Unauthenticated> {
    let credential = credential.trim_ascii();
    let Some((scheme, token)) = credential.split_at_checked(SCHEME.len()) else { return Ok(None) };
    let ends = token.first().is_none_or(u8::is_ascii_whitespace);
    if !ends || !scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) {
        return Ok(None);
    }
    let token = token.trim_ascii_start();
    let is_one = (1..=LONGEST_TOKEN).contains(&token.len());
    let token = std::str::from_utf8(token).ok().filter(|token| {
        is_one && !token.contains(|letter: char| letter.is_whitespace() || letter.is_control())
    });
    token.map(Some).ok_or(Unauthenticated::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_its_word() {
        for text in ["Bearer abc", "bearer  abc ", "BEARER abc\n", " Bearer\tabc"] {
            assert_eq!(bearer(text.as_bytes()), Ok(Some("abc")), "{text:?}");
        }
        let longest = "x".repeat(LONGEST_TOKEN);
        assert_eq!(bearer(format!("Bearer {longest}").as_bytes()), Ok(Some(&*longest)));
    }

    #[test]
    fn what_has_the_word_and_no_token_is_refused() {
        let long = format!("Bearer {}", "x".repeat(LONGEST_TOKEN + 1));
        for text in ["Bearer", "Bearer ", "Bearer a b", "bearer\n", "Bearer a\u{a0}b", &long] {
            assert_eq!(bearer(text.as_bytes()), Err(Unauthenticated::Unknown), "{text:.20?}");
        }
        assert_eq!(bearer(b"Bearer \xff"), Err(Unauthenticated::Unknown));
        // As much of it as says that it is too long.
        assert!(bearer(&long.as_bytes()[..ENOUGH_OF_CREDENTIAL.min(long.len())]).is_err());
    }

    #[test]
    fn anything_else_says_nothing() {
        for text in ["", "abc", "Basic abc", "Bearers abc", "Bearer:abc", "{\"a\":\"Bearer abc\"}"]
        {
            assert_eq!(bearer(text.as_bytes()), Ok(None), "{text:?}");
        }
        assert_eq!(bearer(&[0xff; 100]), Ok(None));
    }
}
