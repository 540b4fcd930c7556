//! Patterns: short names for a kind of task, drawn from its title and intent.
//!
//! The slug rule of `docs/experience.md`, "Patterns": NFKD without marks, lower case, split at all but `a-z` and `0-9`. Words
//! of one character and stop words end a chain. Adjacent words of a chain are joined by `_`; a chain of one word gives that word.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The most patterns of a task.
pub(crate) const MOST: usize = 5;

const STOP_WORDS: [&str; 25] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it", "of",
    "on", "or", "that", "the", "this", "to", "was", "were", "will", "with",
];

/// Returns the patterns of these texts, in order, each once, the first [`MOST`].
pub(crate) fn patterns<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for chain in texts.into_iter().flat_map(chains) {
        let slugs: Vec<String> = match chain.as_slice() {
            [only] => vec![only.clone()],
            words => words.windows(2).map(|pair| pair.join("_")).collect(),
        };
        for slug in slugs {
            if found.len() == MOST {
                return found;
            }
            if !found.contains(&slug) {
                found.push(slug);
            }
        }
    }
    found
}

/// Returns the patterns that a text names, as a question does. The reference of a hint, `pattern_` and a slug, names that slug.
pub(crate) fn named(text: &str) -> Vec<String> {
    patterns([text.strip_prefix(PREFIX).unwrap_or(text)])
}

/// The beginning of the reference of a pattern in a hint.
pub(crate) const PREFIX: &str = "pattern_";

/// Returns the words of a text, in chains.
fn chains(text: &str) -> Vec<Vec<String>> {
    let plain: String =
        text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect();
    let mut chains = vec![Vec::new()];
    for word in plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if word.len() == 1 || STOP_WORDS.contains(&word) {
            chains.push(Vec::new());
        } else if let Some(chain) = chains.last_mut() {
            chain.push(word.to_owned());
        }
    }
    chains.retain(|chain| !chain.is_empty());
    chains
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_by_hand() {
        let title = "JWT Authentication Implementation";
        let intent = "Implement JWT authentication in Node.js Express application";
        assert_eq!(
            patterns([title, intent]),
            [
                "jwt_authentication",
                "authentication_implementation",
                "implement_jwt",
                "node_js",
                "js_express"
            ]
        );
        assert_eq!(patterns(["Dock at station 2", "Dock the robot"]), ["dock", "station", "robot"]);
        assert_eq!(patterns(["Tür öffnen", "Ｄｏｃｋ"]), ["tur_offnen", "dock"]);
        assert_eq!(patterns(["a 2 of", "机器人"]), Vec::<String>::new());
    }

    #[test]
    fn a_question_names_a_pattern_as_a_hint_does() {
        assert_eq!(named("Dock"), ["dock"]);
        assert_eq!(named("pattern_jwt_authentication"), ["jwt_authentication"]);
        assert_eq!(named("pattern"), ["pattern"]);
    }

    proptest! {
        #[test]
        fn a_pattern_names_itself_and_is_bounded(text in "\\PC{0,80}") {
            let found = patterns([text.as_str()]);
            prop_assert!(found.len() <= MOST);
            for slug in &found {
                prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
                prop_assert_eq!(named(&format!("{PREFIX}{slug}")), vec![slug.clone()]);
            }
        }
    }
}
