//! Facts of a text: sentences that state something, word for word.
//!
//! A fact is a sentence with a number, a name or a cue word. A critical fact states a constraint; this is step 2 of
//! `extract-1`, named `facts-1`. A question states nothing, and is a fact only if it is critical. What a tool printed, such as
//! the lines of a file, is none, whatever words are in it.

use std::collections::BTreeSet;

use crate::lexeme::{LexemeKind, lexemes};
use crate::output::statements;
use crate::{Language, LineKind, constraint_cue, entities, outcome_cue};

/// Returns the facts of `text` in order, each once.
pub fn facts(language: Language, text: &str) -> Vec<&str> {
    let told = statements(text).filter(|(kind, _)| *kind != LineKind::Listing);
    once(told.filter_map(|(kind, one)| is_fact(language, kind, one).then_some(one)))
}

/// Returns the critical facts of `text` in order, each once: sentences that state a constraint.
pub fn critical_facts(text: &str) -> Vec<&str> {
    let said = statements(text).filter(|(kind, _)| *kind == LineKind::Said);
    once(said.filter_map(|(_, one)| constraint_cue(one).is_some().then_some(one)))
}

/// Words of a sentence that begins with a pronoun, at most, for it to say nothing without the one before.
const ELLIPTIC: usize = 4;
/// Words of a sentence without a number behind its first one, at least.
const LEAST_OTHERS: usize = 2;
/// Words that stand for what was said before.
const PRONOUNS: &[&str] = &["he", "it", "she", "that", "these", "they", "this", "those"];

fn is_fact(language: Language, kind: LineKind, sentence: &str) -> bool {
    if kind.is_result() || constraint_cue(sentence).is_some() {
        return true;
    }
    let mut words = lexemes(sentence).filter(|one| one.kind != LexemeKind::Symbol);
    let Some(first) = words.next() else { return false };
    let is_pronoun = PRONOUNS.iter().any(|pronoun| first.is_word(pronoun));
    let others = words.take(ELLIPTIC).count();
    let has_number = sentence.bytes().any(|byte| byte.is_ascii_digit());
    // One word names something and says nothing of it, whatever digits it has; two do not say much more.
    if !sentence.contains(char::is_whitespace) && first.kind == LexemeKind::Word
        || !has_number && (others < LEAST_OTHERS || is_pronoun && others < ELLIPTIC)
    {
        return false;
    }
    let is_question = sentence.trim_end_matches(['"', '\'', ')', '”', '’']).ends_with(['?', '？']);
    !is_question
        && (has_number
            || outcome_cue(sentence).is_some()
            || !entities(language, sentence, &[]).is_empty())
}

fn once<'a>(sentences: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    sentences.filter(|sentence| seen.insert(*sentence)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_have_a_number_a_name_or_a_cue() {
        let text = "The robot must not enter room 12. It went on. Alice Smith repaired the arm.\n\
                    Is it 5 m? The lid fails often. The battery is at 40 %. It went on. The battery is at 40 %.";
        assert_eq!(
            facts(Language::English, text),
            [
                "The robot must not enter room 12.",
                "Alice Smith repaired the arm.",
                "The lid fails often.",
                "The battery is at 40 %.",
            ]
        );
    }

    #[test]
    fn what_says_nothing_alone_is_no_fact() {
        let text = "It works. `arm.rs`\nThis fails. Alice Smith. It works since cable 4 is new. Because the arm is up.";
        assert_eq!(
            facts(Language::English, text),
            ["It works since cable 4 is new.", "Because the arm is up."]
        );
    }

    #[test]
    fn a_listing_states_no_facts() {
        let text = "The map must have an origin.\n[File: map.py (3 lines total)]\n1:def load(path):\n\
                    2:    # must not be empty\n3:    return open(path)\n(Open file: map.py)\n\
                    KeyError: 'origin' must be set\n4 passed, 1 failed in 0.2s";
        assert_eq!(critical_facts(text), ["The map must have an origin."]);
        assert_eq!(
            facts(Language::English, text),
            [
                "The map must have an origin.",
                "KeyError: 'origin' must be set",
                "4 passed, 1 failed in 0.2s"
            ]
        );
    }

    #[test]
    fn critical_facts_are_constraints_once_each() {
        let text = "Never open door 3. The door is red. Never open door 3.\nMust we stop?";
        assert_eq!(critical_facts(text), ["Never open door 3.", "Must we stop?"]);
        assert!(critical_facts("").is_empty());
    }
}
