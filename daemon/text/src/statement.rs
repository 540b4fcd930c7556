//! How much a sentence states that somebody may need later: a decision, a state, a cause, a reading.
//!
//! The sum of the cues of a sentence, each with a weight in hundredths, brought to [0, 1]. The cues are groups of common
//! English words and the shape of the sentence. The weights were fitted by logistic regression to the sentences of
//! `benches/data/compass` that are there for it, and each agent of them was foretold by the others.

use crate::lexeme::{LexemeKind, eq_folded, lexemes};

/// Groups of words, each with its weight.
#[rustfmt::skip]
const GROUPS: &[(&[&str], i32)] = &[
    // How something is.
    (&["are", "do", "does", "has", "have", "holds", "is", "need", "needs", "remains", "runs", "stay", "stays", "takes"], 81),
    // What is done from now on.
    (&["after", "before", "first", "from", "go", "goes", "going", "instead", "keep", "leave", "now", "rather", "stays",
       "take", "until", "use", "wait", "waits", "will"], 66),
    // What is not as it should be.
    (&["blocked", "broken", "closed", "dead", "dirty", "empty", "error", "errors", "expired", "fail", "failed", "fails",
       "false", "full", "high", "loose", "lost", "low", "missing", "old", "slow", "stale", "stuck", "wrong"], 62),
    // Who tells it.
    (&["i", "me", "my", "our", "us", "we"], -68),
    // The one who is spoken to: a wish is over when it is done.
    (&["please", "you", "your"], -237),
];

/// A sentence without a cue, and the least and the most that counts.
const BARE: f64 = -256.0;
const LEAST: f64 = -600.0;
const MOST: f64 = 100.0;

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
    let is = |is_so: bool, weight: i32| if is_so { f64::from(weight) } else { 0.0 };
    let sum = BARE
        + f64::from(of_groups.sum::<i32>())
        + 140.0 * words.min(30) as f64 / 30.0
        + is(words <= 4, -123)
        + is(has_reading, 53)
        + is(sentence.contains('?'), -192)
        + is(sentence.contains(['_', '/', '=', '[', ']', '{', '}']), -56)
        + is(sentence.contains(": "), -68)
        + is(!has_mark(sentence), -118)
        + is(sentence.starts_with(char::is_lowercase), 38)
        + is(!sentence.starts_with(char::is_alphabetic), -30);
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
