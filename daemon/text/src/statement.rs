//! Measures how much of a sentence a reader may need later: a decision, a state, a cause, a reading.
//!
//! The sum of the cues of a sentence, in halves, brought to [0, 1]. The cues are groups of common English words and the shape of
//! the sentence. They are few and their weights coarse on purpose: what was fitted closer to the sentences of
//! `benches/data/compass` that are there for it did worse on agents that it had not seen. Each agent was foretold by the others.

use crate::lexeme::{LexemeKind, eq_folded, lexemes};

/// Groups of words, each with its weight.
#[rustfmt::skip]
const GROUPS: &[(&[&str], f64)] = &[
    // How something is: verbs of the present. A report of what was done has none of them.
    (&["are", "aren't", "belongs", "can", "can't", "cannot", "comes", "do", "does", "doesn't", "don't", "fails", "gets", "goes",
       "has", "hasn't", "have", "haven't", "holds", "is", "isn't", "keeps", "lets", "means", "need", "needs", "remain", "remains",
       "runs", "stay", "stays", "takes", "wants", "won't", "works"], 1.0),
    // Rules that hold from now on, and orders of steps.
    (&["after", "before", "first", "from", "instead", "keep", "leave", "now", "rather", "until", "when", "while", "will"], 1.0),
    // States that are not as they should be.
    (&["above", "below", "blocked", "broken", "closed", "dead", "dirty", "empty", "error", "errors", "expired", "fail", "failed",
       "fails", "false", "full", "high", "loose", "lost", "low", "missing", "old", "over", "slow", "stale", "stuck", "too",
       "wrong"], 0.5),
    // First persons.
    (&["i", "i'd", "i'll", "i'm", "i've", "me", "my", "our", "us", "we", "we'll", "we've"], -0.5),
];

/// The least and the most that the cues of a sentence add up to.
const LEAST: f64 = -3.5;
const MOST: f64 = 3.0;

/// Words of a sentence that is too short to say much, at most.
const SHORT: usize = 4;

/// Returns how much `sentence` states, from 0 to 1.
pub(crate) fn statement(sentence: &str) -> f64 {
    let mut words = 0_usize;
    let mut has = [false; GROUPS.len()];
    let (mut has_reading, mut number_ends) = (false, None);
    for lexeme in lexemes(sentence) {
        let is_near = number_ends.is_some_and(|end| lexeme.start <= end + 1);
        number_ends = None;
        match lexeme.kind {
            LexemeKind::Word => {
                words += 1;
                has_reading |= is_near && lexeme.text.chars().count() <= LONGEST_UNIT;
                for (has, (group, _)) in has.iter_mut().zip(GROUPS) {
                    *has |= group.iter().any(|word| eq_folded(lexeme.text, word));
                }
            }
            LexemeKind::Number(_) | LexemeKind::Time => {
                words += 1;
                number_ends = Some(lexeme.end());
            }
            LexemeKind::Symbol => has_reading |= is_near && lexeme.text == "%",
        }
    }
    let of_groups = has.iter().zip(GROUPS).filter(|(has, _)| **has).map(|(_, (_, weight))| *weight);
    let is = |is_so: bool, weight: f64| if is_so { weight } else { 0.0 };
    let sum = of_groups.sum::<f64>()
        + is(words <= SHORT, -1.0)
        + is(!has_mark(sentence), -1.0)
        + is(has_reading, 0.5)
        + is(sentence.contains('?'), -0.5)
        + is(sentence.contains(": "), -0.5);
    ((sum - LEAST) / (MOST - LEAST)).clamp(0.0, 1.0)
}

/// Letters of a unit behind its number, at most.
const LONGEST_UNIT: usize = 3;

/// Returns true if a sentence ends with its mark.
pub(crate) fn has_mark(sentence: &str) -> bool {
    let bare = sentence.trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '」']);
    bare.ends_with(['.', '!', '?', '。', '！', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_says_more_than_a_step() {
        let state = statement("The left lift is out of service until Monday.");
        let step = statement("Moved on.");
        let log = statement("[planner] goal=3/4");
        assert!(state > step + 0.3 && state > log + 0.3, "{state} {step} {log}");
        assert!(statement("Is the lift out of service?") < state);
        let wish = statement("Please look at the left lift.");
        let line = statement("left lift -> service (monday)");
        assert!(state > wish + 0.3 && state > line + 0.2, "{state} {wish} {line}");
        assert!(
            statement("The lift takes 40 s to floor 3.")
                > statement("The lift takes us to floor 3.")
        );
        for text in ["", "?", "I", "12 13 14 15 16"] {
            assert!((0.0..=1.0).contains(&statement(text)), "{text}");
        }
    }
}
