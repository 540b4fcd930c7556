//! Selector parameters: `name=value` pairs behind a Zenoh key expression.
//!
//! Zenoh splits at `;` and `=` and decodes nothing, so every value is percent-encoded here and
//! percent-decoded by the daemon; a text may hold any character.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Characters that must be encoded in a value. Control and non-ASCII characters are always encoded;
/// brackets, dots and colons stay, so that `_time=[from..to]` is readable on the wire.
const RESERVED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b';')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'`')
    .add(b'|');

/// The parameters of one question, in the order they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    text: String,
    pairs: Vec<(String, String)>,
}

impl Parameters {
    /// No parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `name=value`, the value encoded. Names are ours and need no encoding.
    pub fn push(&mut self, name: &str, value: &str) {
        if !self.text.is_empty() {
            self.text.push(';');
        }
        let _ = write!(self.text, "{name}={}", utf8_percent_encode(value, RESERVED));
        self.pairs.push((name.to_owned(), value.to_owned()));
    }

    /// Adds `name=value` where there is a value.
    pub fn push_some<T: ToString>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.push(name, &value.to_string());
        }
    }

    /// The parameters as they are, for a payload.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// The encoded parameters, as they stand behind the `?`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode_str;

    /// The daemon's use of it.
    fn decode(parameters: &Parameters) -> Vec<(String, String)> {
        zenoh::query::Parameters::from(parameters.as_str())
            .iter()
            .map(|(name, value)| {
                let value = percent_decode_str(value).decode_utf8().unwrap();
                (name.to_owned(), value.into_owned())
            })
            .collect()
    }

    #[test]
    fn any_text_survives() {
        for text in [
            "plain words",
            "a;b=c&d|e",
            "100% ? # + \\ ` < > \" '",
            "Ключ под ковриком 🤖",
            "line\nbreak\ttab\u{0}nul",
            "%41 is not A",
            "",
            "[x..y]",
        ] {
            let mut parameters = Parameters::new();
            parameters.push("q", text);
            parameters.push("limit", "3");
            assert!(parameters.as_str().is_ascii());
            assert_eq!(
                decode(&parameters),
                [("q".into(), text.to_owned()), ("limit".into(), "3".into())]
            );
        }
    }

    #[test]
    fn separators_never_appear_bare() {
        let mut parameters = Parameters::new();
        parameters.push("q", ";=%?#&|");
        assert_eq!(parameters.as_str(), "q=%3B%3D%25%3F%23%26%7C");
    }

    #[test]
    fn time_ranges_and_coordinates_stay_readable() {
        let mut parameters = Parameters::new();
        parameters.push("_time", "[2026-01-01T00:00:00Z..now(-3600s)]");
        parameters.push("near", "-1,2.5");
        parameters.push("ref", "Entity/dock:1");
        assert_eq!(
            parameters.as_str(),
            "_time=[2026-01-01T00:00:00Z..now(-3600s)];near=-1,2.5;ref=Entity/dock:1"
        );
    }

    #[test]
    fn missing_values_leave_nothing() {
        let mut parameters = Parameters::new();
        parameters.push_some::<u32>("limit", None);
        parameters.push_some("offset", Some(7));
        assert_eq!(parameters.as_str(), "offset=7");
    }
}
