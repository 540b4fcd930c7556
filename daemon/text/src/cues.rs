//! Cue words: those that tell of an outcome. Those of a constraint are in `constraint.rs`.
//!
//! The words are English. A cue is a whole word, in any case: `read-only` has no `only` in it.

use crate::lexeme::{Lexeme, LexemeKind, eq_folded, lexemes};

/// Words that tell how something turned out, and why.
const OUTCOMES: &[&str] = &["because", "so", "works", "fails", "learned", "instead", "solved"];

/// Returns the first cue word of `sentence` that tells of an outcome, such as `because` or `solved`.
pub fn outcome_cue(sentence: &str) -> Option<&'static str> {
    first_cue(sentence, OUTCOMES)
}

fn first_cue(sentence: &str, cues: &'static [&'static str]) -> Option<&'static str> {
    lexemes(sentence)
        .filter(|lexeme| lexeme.kind == LexemeKind::Word)
        .find_map(|word| cue_of(cues, &word, None))
}

/// Returns the cue that `word` is, or that it makes with the word behind it.
pub(crate) fn cue_of(
    cues: &'static [&'static str],
    word: &Lexeme<'_>,
    next: Option<&Lexeme<'_>>,
) -> Option<&'static str> {
    let fits = |cue: &&&str| match cue.split_once(' ') {
        Some((first, second)) => {
            word.is_word(first) && next.is_some_and(|next| next.is_word(second))
        }
        None => eq_folded(word.text, cue),
    };
    cues.iter().find(fits).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_words_of_their_own() {
        assert_eq!(outcome_cue("It works now, because the cable is new"), Some("works"));
        assert_eq!(outcome_cue("Solved by a reboot"), Some("solved"));
        assert_eq!(outcome_cue("A sofa is there"), None);
    }
}
