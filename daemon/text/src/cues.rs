//! Cue words: those that make a sentence a constraint, or tell of an outcome.
//!
//! The words are English. A cue is a whole word, in any case: `read-only` has no `only` in it.

use crate::lexeme::{Lexeme, LexemeKind, eq_folded, lexemes};
use crate::{Language, is_stop_word};

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
/// A sentence with one must be remembered: it is critical. `must have worked` concludes something and constrains nothing.
pub fn constraint_cue(sentence: &str) -> Option<&'static str> {
    first_cue(sentence, CONSTRAINTS)
}

/// Past participles without the ending `ed`.
#[rustfmt::skip]
const PARTICIPLES: &[&str] = &[
    "been", "begun", "broken", "come", "done", "fallen", "forgotten", "given", "gone", "got", "gotten", "had", "hit",
    "left", "lost", "made", "met", "put", "run", "seen", "sent", "shut", "slept", "stood",
    "stuck", "taken", "thrown", "told", "torn", "worn", "written",
];

/// Words behind `must have` that are looked at.
const MOST_BEHIND: usize = 24;

/// Words behind which a participle is what has to be done in time, and no conclusion.
const IN_TIME: &[&str] = &["before", "by", "once", "prior", "until", "when"];

/// Returns true if `rest`, which follows `must`, makes a conclusion of it: `have been wet`, `have slipped on it`. A participle
/// before a noun is not one (`must have locked doors`), nor what has to be done in time.
fn is_conclusion(rest: &[Lexeme<'_>]) -> bool {
    let [have, verb, behind @ ..] = rest else { return false };
    if !have.is_word("have") || behind.iter().take(MOST_BEHIND).any(|word| is_one_of(word, IN_TIME))
    {
        return false;
    }
    let is_irregular = is_one_of(verb, PARTICIPLES);
    let is_regular = || {
        let lower = verb.text.to_lowercase();
        let is_before_noun = behind
            .first()
            .is_some_and(|next| !is_stop_word(Language::English, &next.text.to_lowercase()));
        lower.len() > 4 && lower.ends_with("ed") && !is_before_noun
    };
    is_irregular || is_regular()
}

fn is_one_of(lexeme: &Lexeme<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| lexeme.is_word(word))
}

/// Returns the first cue word of `sentence` that tells of an outcome, such as `because` or `solved`.
pub fn outcome_cue(sentence: &str) -> Option<&'static str> {
    first_cue(sentence, OUTCOMES)
}

fn first_cue(sentence: &str, cues: &'static [&'static str]) -> Option<&'static str> {
    let words: Vec<Lexeme<'_>> =
        lexemes(sentence).filter(|lexeme| lexeme.kind == LexemeKind::Word).collect();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let fits = |cue: &&&str| match cue.split_once(' ') {
            Some((first, second)) => {
                word.is_word(first) && next.is_some_and(|next| next.is_word(second))
            }
            None => eq_folded(word.text, cue),
        };
        let found = cues.iter().find(fits);
        // A sentence has few of these words, and the rest of it is read for `must` alone.
        let is_concluded = || word.is_word("must") && is_conclusion(&words[at + 1..]);
        if let Some(cue) = found.filter(|_| !is_concluded()) {
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
    fn a_conclusion_is_no_constraint() {
        for sentence in [
            "The upload must have worked.",
            "It must have slipped on the wet tiles",
            "Somebody must have left the hatch open",
            "The cart must have been wet",
        ] {
            assert_eq!(constraint_cue(sentence), None, "{sentence}");
        }
        for sentence in [
            "A cart must have brakes",
            "Stores must have locked doors",
            "The pump must have been primed before it runs",
            "It must have worked, but never again",
        ] {
            assert!(constraint_cue(sentence).is_some(), "{sentence}");
        }
    }

    #[test]
    fn outcomes_have_words_of_their_own() {
        assert_eq!(outcome_cue("It works now, because the cable is new"), Some("works"));
        assert_eq!(outcome_cue("Solved by a reboot"), Some("solved"));
        assert_eq!(outcome_cue("A sofa is there"), None);
    }
}
