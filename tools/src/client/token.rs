//! The token that goes with each question: of `--token-file`, else of `OMIR_TOKEN` (docs/access.md).
//!
//! It is never an argument: everybody on a machine sees those.

use std::path::Path;

use crate::cli::Globals;
use crate::error::{Error, Result};

/// The variable of the environment that holds a token.
pub const VARIABLE: &str = "OMIR_TOKEN";
/// A file with more holds no token.
const MOST_BYTES: usize = 16 << 10;

/// A token, and where it came from.
#[derive(Clone)]
pub struct Token {
    text: String,
    origin: String,
}

impl Token {
    /// Returns the token for these options, if there is one.
    ///
    /// # Errors
    /// [`Error::Input`] if the file cannot be read or holds none; [`Error::Usage`] for a variable that holds none.
    pub fn given(globals: &Globals) -> Result<Option<Self>> {
        match &globals.token_file {
            Some(file) => Self::of_file(file).map(Some),
            None => Self::of_variable(std::env::var(VARIABLE).ok()),
        }
    }

    fn of_file(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file).map_err(|why| Error::input(file, why))?;
        let text = std::str::from_utf8(&bytes).ok().and_then(one_word);
        let text = text.ok_or_else(|| {
            Error::input(
                file,
                "holds no token: `omir token add NAME --scope SCOPE > FILE` makes one",
            )
        })?;
        Ok(Self { text, origin: file.display().to_string() })
    }

    fn of_variable(value: Option<String>) -> Result<Option<Self>> {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
        let text = one_word(&value)
            .ok_or_else(|| Error::Usage(format!("what {VARIABLE} holds is no token")))?;
        Ok(Some(Self { text, origin: VARIABLE.to_owned() }))
    }

    /// Returns the token alone.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns what the attachment of a query says, and the header `Authorization` of HTTP.
    #[must_use]
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.text)
    }
}

/// Returns a text without the blanks and line ends around it, if that is one word.
fn one_word(text: &str) -> Option<String> {
    let text = text.trim();
    let is_one = !text.is_empty()
        && text.len() <= MOST_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_one.then(|| text.to_owned())
}

/// Says what to do about `UNAUTHENTICATED`.
pub(super) fn advice(token: Option<&Token>) -> String {
    match token {
        Some(token) => format!("The token was that of {}", token.origin),
        None => format!(
            "Set {VARIABLE}, or name a file that holds the token with --token-file; at the robot that is \
             keys/local.token in its data folder"
        ),
    }
}

/// Never shown.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the token of {}", self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::globals;

    #[test]
    fn a_file_holds_one_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let path = file.to_str().unwrap();
        let given = || Token::given(&globals(&["--token-file", path]));
        let error = given().unwrap_err();
        assert!(error.to_string().contains(path), "{error}");
        for (text, expected) in [
            ("abc_123\n", Some("Bearer abc_123")),
            ("  abc\r\n", Some("Bearer abc")),
            ("", None),
            ("\n", None),
            ("a b", None),
            ("a\nb\n", None),
            ("a\u{e4}", None),
        ] {
            std::fs::write(&file, text).unwrap();
            let bearer = given().map(|token| token.unwrap().bearer());
            assert_eq!(bearer.as_deref().ok(), expected, "{text:?}: {bearer:?}");
        }
        std::fs::write(&file, "secret").unwrap();
        assert!(!format!("{:?}", given()).contains("secret"));
    }

    #[test]
    fn a_variable_that_is_empty_is_none() {
        let of = |text: &str| Token::of_variable(Some(text.to_owned()));
        assert!(Token::of_variable(None).unwrap().is_none());
        assert!(of("").unwrap().is_none());
        assert_eq!(of("abc").unwrap().unwrap().as_str(), "abc");
        assert!(of("a b").unwrap_err().to_string().contains(VARIABLE));
    }
}
