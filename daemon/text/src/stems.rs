//! Stems: what the forms of a word have in common.
//!
//! They are those of the Snowball project, by the crate `rust-stemmers`. They are made of words without accents, because
//! people leave them out: a word with accents and one without have one stem.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::{Language, is_stop_word, words};

impl Language {
    /// Returns the stem of a word as [`words()`] gives it. Words with digits are names and readings: they stay.
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        let algorithm = match self {
            Self::English => Algorithm::English,
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
            Self::Italian => Algorithm::Italian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Dutch => Algorithm::Dutch,
            Self::Other => return Cow::Borrowed(word),
        };
        if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Cow::Borrowed(word);
        }
        let stem = Stemmer::create(algorithm).stem(word);
        // A word that is all ending has no stem.
        if stem.is_empty() { Cow::Borrowed(word) } else { stem }
    }

    /// Calls `f` with the stem of every word of `text` that is no stop word, in order, repetitions included.
    pub fn stems(self, text: &str, mut f: impl FnMut(&str)) {
        words(text, |word| {
            if !is_stop_word(self, word) {
                f(&self.stem(word));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stems(language: Language, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        language.stems(text, |stem| out.push(stem.to_owned()));
        out
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        let one = |text: &str| {
            let mut all = stems(Language::English, text);
            all.dedup();
            assert_eq!(all.len(), 1, "{text}: {all:?}");
        };
        one("charge charges charging charged");
        one("battery batteries");
        one("connect connection connected connecting connections");
        assert_eq!(stems(Language::English, "The robot is at dock_3"), ["robot", "dock", "3"]);
        assert_eq!(stems(Language::English, "3.14 v1.2"), ["3.14", "v1.2"]);
    }

    #[test]
    fn each_language_has_its_own() {
        assert_eq!(stems(Language::German, "die Türen der Küche"), ["tur", "kuch"]);
        assert_eq!(stems(Language::French, "les portes de la cuisine"), ["port", "cuisin"]);
        assert_eq!(stems(Language::Spanish, "las puertas de la cocina"), ["puert", "cocin"]);
        assert_eq!(stems(Language::Italian, "le porte della cucina"), ["port", "cucin"]);
        assert_eq!(stems(Language::Portuguese, "as portas da cozinha"), ["port", "cozinh"]);
        assert_eq!(stems(Language::Dutch, "de deuren van de keuken"), ["deur", "keuk"]);
        assert_eq!(stems(Language::Other, "the doors"), ["the", "doors"]);
        assert_eq!(stems(Language::German, "дверь 房"), ["дверь", "房"]);
    }

    proptest! {
        #[test]
        fn stems_of_any_text_are_short_and_not_empty(text in "\\PC{0,60}|[a-z ]{0,60}", which in 0usize..8) {
            for stem in stems(Language::ALL[which], &text) {
                prop_assert!(!stem.is_empty() && stem.len() <= crate::MAX_TERM_BYTES);
            }
        }

        #[test]
        fn no_ascii_word_stops_a_stemmer(word in "[a-z]{1,64}", which in 0usize..8) {
            prop_assert!(!Language::ALL[which].stem(&word).is_empty());
        }
    }
}
