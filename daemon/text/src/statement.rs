//! How much a sentence states that somebody may need later: a decision, a state, a cause, a reading.
//!
//! The sum of the cues of a sentence, each with a weight in hundredths, brought to [0, 1]. The cues are groups of common
//! English words and the shape of the sentence. The weights were fitted by logistic regression to the sentences of
//! `benches/data/compass` that are there for it.

use crate::constraint_cue;
use crate::lexeme::{LexemeKind, eq_folded, lexemes};

/// Groups of words, each with its weight.
#[rustfmt::skip]
const GROUPS: &[(&[&str], i32)] = &[
    // How something is.
    (&["are", "do", "does", "has", "have", "holds", "is", "need", "needs", "remains", "runs", "stay", "stays", "takes"], 103),
    // What is done from now on.
    (&["after", "before", "first", "from", "go", "goes", "going", "instead", "keep", "leave", "now", "rather", "stays",
       "take", "until", "use", "wait", "waits", "will"], 77),
    // What is not as it should be.
    (&["blocked", "broken", "closed", "dead", "dirty", "empty", "error", "errors", "expired", "fail", "failed", "fails",
       "false", "full", "high", "loose", "lost", "low", "missing", "old", "slow", "stale", "stuck", "wrong"], 48),
    // What is not so.
    (&["aren't", "can't", "cannot", "didn't", "doesn't", "don't", "hadn't", "isn't", "neither", "never", "no", "nobody",
       "none", "nor", "not", "nothing", "too", "wasn't", "weren't", "without", "won't"], 35),
    // What was so.
    (&["did", "had", "was", "were"], 29),
    // What may be.
    (&["could", "may", "might", "should", "would"], 17),
    // For whom and what it holds.
    (&["all", "any", "anyone", "both", "each", "every", "everything", "everywhere", "nothing", "whole"], 14),
    // Why it is so.
    (&["because", "cause", "caused", "causes", "due", "explains", "hence", "means", "meant", "reason", "since", "so",
       "therefore", "thus", "why"], 7),
    // Who tells it.
    (&["i", "me", "my", "our", "us", "we"], -52),
];

/// A sentence without a cue, and the least and the most that counts.
const BARE: f64 = -297.0;
const LEAST: f64 = -500.0;
const MOST: f64 = 50.0;

/// Returns how much `sentence` states, from 0 to 1.
pub(crate) fn statement(sentence: &str) -> f64 {
    let mut words = 0_usize;
    let mut numbers = 0_usize;
    let mut has = [false; GROUPS.len()];
    let mut has_name = false;
    for lexeme in lexemes(sentence) {
        match lexeme.kind {
            LexemeKind::Word => {
                has_name |= words > 0 && lexeme.text.starts_with(char::is_uppercase);
                words += 1;
                for (has, (group, _)) in has.iter_mut().zip(GROUPS) {
                    *has |= group.iter().any(|word| eq_folded(lexeme.text, word));
                }
            }
            LexemeKind::Number(_) | LexemeKind::Time => {
                numbers += 1;
                words += 1;
            }
            LexemeKind::Symbol => {}
        }
    }
    let of_groups = has.iter().zip(GROUPS).filter(|(has, _)| **has).map(|(_, (_, weight))| *weight);
    let is = |is_so: bool, weight: i32| if is_so { f64::from(weight) } else { 0.0 };
    let sum = BARE
        + f64::from(of_groups.sum::<i32>())
        + is(constraint_cue(sentence).is_some(), 15)
        + 51.0 * numbers.min(3) as f64 / 3.0
        + 68.0 * words.min(30) as f64 / 30.0
        + is(has_name, 35)
        + is(words <= 4, -125)
        + is(words >= 20, 23)
        + is(sentence.contains('?'), -44)
        + is(sentence.contains(['_', '/', '=', '[', ']', '{', '}']), -66);
    ((sum - LEAST) / (MOST - LEAST)).clamp(0.0, 1.0)
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
        for text in ["", "?", "I", "12 13 14 15 16"] {
            assert!((0.0..=1.0).contains(&statement(text)), "{text}");
        }
    }
}
