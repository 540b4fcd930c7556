//! Keywords of a text: the words that it is about.
//!
//! A word counts more the more often it occurs (by the square root), in the first sentence (half as much again), and if it is
//! a name with a digit or capitals within. Forms of one stem count together; the one that came first is shown. Without other
//! texts to compare with, nothing tells a rare word from a common one except the stop words.

use std::collections::BTreeMap;

use crate::lexeme::{LexemeKind, lexemes};
use crate::{Language, is_stop_word, sentences, words};

/// Words shorter than this are no keywords, unless they have a digit or are written in capitals.
const MIN_LETTERS: usize = 3;

/// Returns at most `most` keywords of `text`, in lower case, the weightiest first; of equal ones the first in the text.
pub fn keywords(language: Language, text: &str, most: usize) -> Vec<String> {
    let mut found: BTreeMap<String, Keyword> = BTreeMap::new();
    let mut position = 0;
    for (index, sentence) in sentences(text).enumerate() {
        for lexeme in lexemes(sentence).filter(|lexeme| lexeme.kind == LexemeKind::Word) {
            let Some(folded) = folded(lexeme.text) else { continue };
            let has_digit = folded.bytes().any(|byte| byte.is_ascii_digit());
            let is_capital =
                lexeme.text.len() > 1 && lexeme.text.chars().skip(1).any(char::is_uppercase);
            let is_short = folded.chars().count() < MIN_LETTERS && folded.is_ascii();
            if is_stop_word(language, &folded) || (is_short && !has_digit && !is_capital) {
                continue;
            }
            position += 1;
            let stem = language.stem(&folded).into_owned();
            let keyword = found.entry(stem).or_insert_with(|| Keyword {
                shown: folded,
                position,
                ..Keyword::default()
            });
            keyword.count += 1;
            keyword.is_early |= index == 0;
            keyword.is_name |= has_digit || is_capital;
        }
    }
    let mut ranked: Vec<Keyword> = found.into_values().collect();
    ranked.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.position.cmp(&b.position)));
    ranked.into_iter().take(most).map(|keyword| keyword.shown).collect()
}

#[derive(Debug, Default)]
struct Keyword {
    shown: String,
    position: usize,
    count: u32,
    is_early: bool,
    is_name: bool,
}

impl Keyword {
    fn weight(&self) -> f64 {
        let early = if self.is_early { 1.5 } else { 1.0 };
        let name = if self.is_name { 1.5 } else { 1.0 };
        f64::from(self.count).sqrt() * early * name
    }
}

/// The word as a keyword shows it: its first form, in lower case and without accents. `dock_3` stays together.
fn folded(text: &str) -> Option<String> {
    if text.is_ascii() && text.len() <= crate::MAX_TERM_BYTES {
        let lower = text.to_ascii_lowercase();
        let known = lower.strip_suffix("'s").unwrap_or(&lower);
        return known.bytes().any(|byte| byte.is_ascii_alphanumeric()).then(|| known.to_owned());
    }
    let mut first = None;
    words(text, |word| {
        if first.is_none() {
            first = Some(word.to_owned());
        }
    });
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization as _;
    use unicode_normalization::char::is_combining_mark;

    use super::*;

    #[test]
    fn keywords_by_weight() {
        let text = "The gripper of dock_3 slips. Grippers slip when wet. We cleaned the gripper, and it was fine.";
        // By hand: √3 · 1.5 = 2.60, 1.5 · 1.5 = 2.25, √2 · 1.5 = 2.12.
        assert_eq!(keywords(Language::English, text, 3), ["gripper", "dock_3", "slips"]);
        assert_eq!(keywords(Language::English, "Use JWT tokens.", 5), ["jwt", "use", "tokens"]);
        assert_eq!(
            keywords(Language::German, "Die Tür der Küche ist offen", 9),
            ["tur", "kuche", "offen"]
        );
        assert!(keywords(Language::English, "the of and", 5).is_empty());
        assert!(keywords(Language::English, text, 0).is_empty());
    }

    proptest! {
        #[test]
        fn keywords_are_few_unlike_and_of_the_text(text in "\\PC{0,80}", most in 0usize..6) {
            let found = keywords(Language::English, &text, most);
            prop_assert!(found.len() <= most);
            let mut unlike = found.clone();
            unlike.sort_unstable();
            unlike.dedup();
            prop_assert_eq!(unlike.len(), found.len());
            let mut all = Vec::new();
            words(&text, |word| all.push(word.to_owned()));
            // "0¹" is folded to one word, "01".
            let plain: String = text.nfkd().filter(|c| !is_combining_mark(*c)).collect();
            let plain = plain.to_lowercase();
            for word in found.iter().filter(|word| word.bytes().all(|b| b.is_ascii_alphanumeric())) {
                prop_assert!(all.contains(word) || plain.contains(word.as_str()), "{}", word);
            }
        }
    }
}
