//! Cue words: those that make a sentence a constraint, or tell of an outcome.
//!
//! The words are English. A cue is a whole word, in any case: `read-only` has no `only` in it.

use crate::lexeme::{LexemeKind, eq_folded, lexemes};

/// Words and pairs of words that state a constraint, with their inflected forms.
const CONSTRAINTS: &[&str] = &[
    "must",
    "mustn't",
    "shall",
    "shan't",
    "never",
    "always",
    "require",
    "requires",
    "required",
    "requirement",
    "requirements",
    "constraint",
    "constraints",
    "only",
    "at least",
    "at most",
    "limit",
    "limits",
    "deadline",
    "deadlines",
    "forbidden",
    "do not",
    "don't",
    "cannot",
    "can't",
    "can not",
];

/// Words that tell how something turned out, and why.
const OUTCOMES: &[&str] = &["because", "so", "works", "fails", "learned", "instead", "solved"];

/// Returns the first cue word of `sentence` that states a constraint, such as `must` or `at least`.
///
/// A sentence with one must be remembered: it is critical.
pub fn constraint_cue(sentence: &str) -> Option<&'static str> {
    first_cue(sentence, CONSTRAINTS)
}

/// Returns the first cue word of `sentence` that tells of an outcome, such as `because` or `solved`.
pub fn outcome_cue(sentence: &str) -> Option<&'static str> {
    first_cue(sentence, OUTCOMES)
}

fn first_cue(sentence: &str, cues: &'static [&'static str]) -> Option<&'static str> {
    let mut words = lexemes(sentence).filter(|lexeme| lexeme.kind == LexemeKind::Word).peekable();
    while let Some(word) = words.next() {
        let next = words.peek();
        let fits = |cue: &&&str| match cue.split_once(' ') {
            Some((first, second)) => {
                word.is_word(first) && next.is_some_and(|next| next.is_word(second))
            }
            None => eq_folded(word.text, cue),
        };
        if let Some(cue) = cues.iter().find(fits) {
            return Some(cue);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cue_of_the_rule_makes_a_constraint() {
        for (sentence, cue) in [
            ("The robot must not enter room 12.", "must"),
            ("You shall pass", "shall"),
            ("NEVER open door 3", "never"),
            ("It always sticks", "always"),
            ("Two keys are required", "required"),
            ("They require care", "require"),
            ("A requirement: quiet", "requirement"),
            ("The constraint is time", "constraint"),
            ("Only staff may enter", "only"),
            ("Keep at least 2 m", "at least"),
            ("At most five", "at most"),
            ("The limit is 5", "limit"),
            ("Deadline is 2026-05-30T11:42:05Z", "deadline"),
            ("Entry is forbidden", "forbidden"),
            ("Do not touch", "do not"),
            ("Don’t touch", "don't"),
            ("It cannot turn", "cannot"),
        ] {
            assert_eq!(constraint_cue(sentence), Some(cue), "{sentence}");
        }
        for sentence in [
            "",
            "Use JWT tokens.",
            "The disk is read-only",
            "mustard",
            "It is at the least used dock",
            "It did not move",
        ] {
            assert_eq!(constraint_cue(sentence), None, "{sentence}");
        }
    }

    #[test]
    fn outcomes_have_words_of_their_own() {
        assert_eq!(outcome_cue("It works now, because the cable is new"), Some("works"));
        assert_eq!(outcome_cue("Solved by a reboot"), Some("solved"));
        assert_eq!(outcome_cue("A sofa is there"), None);
    }
}
