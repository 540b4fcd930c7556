//! Facts of a text: sentences that state something, word for word.
//!
//! A fact is a sentence with a number, a name or a cue word. A critical fact states a constraint; this is step 2 of
//! `extract-1`, named `facts-1`. A question states nothing, and is a fact only if it is critical.

use std::collections::BTreeSet;

use crate::{Language, constraint_cue, entities, outcome_cue, sentences};

/// Returns the facts of `text` in order, each once.
pub fn facts(language: Language, text: &str) -> Vec<&str> {
    once(sentences(text).filter(|sentence| is_fact(language, sentence)))
}

/// Returns the critical facts of `text` in order, each once: sentences that state a constraint.
pub fn critical_facts(text: &str) -> Vec<&str> {
    once(sentences(text).filter(|sentence| constraint_cue(sentence).is_some()))
}

fn is_fact(language: Language, sentence: &str) -> bool {
    if constraint_cue(sentence).is_some() {
        return true;
    }
    let is_question = sentence.trim_end_matches(['"', '\'', ')', '”', '’']).ends_with(['?', '？']);
    let has_number = || sentence.bytes().any(|byte| byte.is_ascii_digit());
    !is_question
        && (has_number()
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
    fn critical_facts_are_constraints_once_each() {
        let text = "Never open door 3. The door is red. Never open door 3.\nMust we stop?";
        assert_eq!(critical_facts(text), ["Never open door 3.", "Must we stop?"]);
        assert!(critical_facts("").is_empty());
    }
}
